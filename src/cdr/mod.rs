//! The path of call records to the database.

pub mod copies;
pub mod journal;
mod progress;
pub mod reader;
mod recent;
pub mod segment;
pub mod storage;
mod waiter;
pub mod writer;
