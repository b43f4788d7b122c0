//! The composition root: the one place that knows every part and puts the engine together.

mod engine;
mod switching;

pub use engine::{Engine, StartError, panel};
pub(crate) use engine::{HTTP_STOP_MAX, WRITER_STOP_MAX, directory_ports, journal_dir, rate_ports};

pub(crate) use crate::clock::wall_clock;
