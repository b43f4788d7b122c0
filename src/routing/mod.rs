//! Where a call goes: pure functions over the directory.

pub mod directory;
pub mod plan;

pub use directory::Directory;
pub use plan::{Origin, Refusal, Route, route};
