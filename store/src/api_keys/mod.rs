//! Integration keys, stored without their secrets.

mod declare;
mod find;
mod manage;
mod rows;

pub use declare::ApiKeyRow;
pub use rows::ApiKeyText;
