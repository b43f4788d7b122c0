//! Call detail records: built when a call ends, journalled, stored.

pub mod build;
