//! Who asks, and what that lets them see and do.

mod permission;
mod principal;
mod role;
mod scope;

pub use permission::Permission;
pub use principal::{Principal, Who};
pub use role::Role;
pub use scope::Scope;
