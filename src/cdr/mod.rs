//! The way of call records to the database.

pub mod journal;
pub mod reader;
pub mod segment;
pub mod storage;
pub mod writer;
