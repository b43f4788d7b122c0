//! The engine of Sidetone: the rooms that the binary composes.

pub mod config;
pub mod fields;
