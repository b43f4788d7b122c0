//! Trunks: carriers and peers, identified by the source addresses of their calls.

mod declare;
mod manage;
mod rows;

pub(crate) use rows::interop;

pub use declare::{CLASH, TrunkRow};
