//! Apply files: the resources of organisations, declared in TOML and applied to the database.
//!
//! [`Declaration::parse`] reads and validates a file without the database and reports every mistake at once;
//! [`apply`] then applies it in one transaction, idempotent by natural keys. What is stored and not declared
//! stays. Secrets are shown once, in the [`Report`].

mod ai_prices;
mod apply;
mod apply_people;
mod call_info;
mod file;
mod lines;
mod outside;
mod people;
mod rates;
mod report;
mod room_pins;
mod rooms;

pub use apply::{ProvisionError, apply};
pub use file::Declaration;
pub use lines::Lines;
pub use report::Report;
pub use room_pins::{DefaultPin, RoomPins};
