//! Integration keys, stored without their secrets.

mod declare;
mod manage;

pub use declare::{ApiKeyRow, ApiKeyText};
