//! Apply files: the resources of organisations, declared in TOML and applied to the database.
//!
//! [`Declaration::parse`] reads and validates a file without the database and reports all errors together; [`apply`]
//! then brings the database into this state in one transaction, idempotent by natural keys. Stored resources that are
//! not declared are kept. Secrets leave this module once, in the [`Report`].

mod ai_prices;
mod apply;
mod apply_forwarding;
mod apply_rates;
mod apply_rooms;
mod apply_users;
mod call_info;
mod extensions;
mod file;
mod rates;
mod reading;
mod report;
mod room_pins;
mod rooms;
mod trunks;
mod users;
mod work;

pub use apply::apply;
pub use extensions::Lines;
pub use file::Declaration;
pub use report::Report;
pub use room_pins::{DefaultPin, RoomPins};
pub use work::ProvisionError;
