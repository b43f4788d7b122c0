//! Where a call goes: pure functions over the directory.

pub mod carrier_numbers;
pub mod directory;
pub mod plan;

pub use carrier_numbers::{caller_from_carrier, to_carrier};
pub use directory::Directory;
pub use plan::{Origin, Outside, Reason, Refusal, Route, Target, from_extension, is_short, outside, route};
