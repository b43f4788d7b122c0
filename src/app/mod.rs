//! The composition root: the only module that depends on every part, and assembles the engine.

mod certificates;
mod clustering;
mod edge;
mod engine;
mod listeners;
mod ports;
mod senders;
mod start;
mod stored;
mod switching;

pub(crate) use certificates::{http_server, open_tls, reload_tls};
pub use engine::{Engine, StartError};
pub(crate) use engine::{HTTP_STOP_MAX, WRITER_STOP_MAX, journal_dir};
pub use ports::panel;
pub(crate) use ports::{api_state, directory_ports, rate_ports};
pub(crate) use senders::Senders;

pub(crate) use crate::clock::wall_clock;
