//! The caller of a request, its scope and its permissions.

mod permission;
mod principal;
mod role;
mod scope;

pub use permission::Permission;
pub use principal::{Principal, Who};
pub use role::Role;
pub use scope::Scope;
