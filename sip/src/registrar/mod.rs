//! Who is registered where: the bindings of each address of record (RFC 3261 §10.3).
//!
//! [`Registrar`] decides about typed [`Registration`]s and keeps the [`Binding`]s with the flow that each came by,
//! because behind a NAT the flow is the only way back (RFC 5626). [`Registration::from_request`] and [`reply`]
//! stand between it and messages.
//!
//! Not here: whether the sender may register this address. The switch authenticates first.

mod binding;
mod machine;
mod request;

pub use binding::{Binding, BindingId};
pub use machine::{Input, Output, Registrar, RegistrarConfig, RemovalReason};
pub use request::{ContactUpdate, Contacts, RegisterError, Registration, reply};

#[cfg(test)]
mod tests;
