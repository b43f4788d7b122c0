//! Where a call goes: pure functions over the directory.

pub mod directory;
pub mod numbering;
pub mod plan;

pub use directory::Directory;
pub use plan::{Origin, Outside, Reason, Refusal, Route, Target, outside, route};
