//! Integration keys: everything but the secret.

mod declare;
mod manage;

pub use declare::{ApiKeyRow, ApiKeyText};
