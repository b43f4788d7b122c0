//! Call records: how a record is built when a call ends, and its way to the database.

pub mod build;
pub mod journal;
pub mod reader;
pub mod segment;
pub mod storage;
pub mod writer;
