//! Trunks: carriers and peers, identified by the addresses that their calls come from.

mod declare;
mod manage;
mod rows;

pub(crate) use rows::interop;

pub use declare::{CLASH, TrunkRow};
