//! The registrar: the bindings of each address of record (RFC 3261 §10.3).
//!
//! [`Registrar`] decides about typed [`Registration`]s and stores the [`Binding`]s with the flow of each,
//! because behind a NAT a phone is reachable only on its flow (RFC 5626). [`Registration::from_request`] and
//! [`reply`] convert from and to messages.
//!
//! Not here: whether the sender may register this address; the switch authenticates first.

mod binding;
mod elsewhere;
mod gruu;
mod lost;
mod machine;
mod order;
mod pace;
mod reachability;
mod request;
mod saved;

pub use binding::{Binding, BindingId};
pub use elsewhere::BindingElsewhere;
pub use gruu::{Device, GruuKey};
pub use machine::{Input, Output, Registrar, RegistrarConfig, RemovalReason};
pub use reachability::{BindingState, ProbeResult, Reachability};
pub use request::{ContactUpdate, Contacts, RegisterError, Registration, reply, reply_headers};
pub use saved::SavedBinding;

#[cfg(test)]
mod flow_tests;
#[cfg(test)]
mod ice_tests;
#[cfg(test)]
mod probe_tests;
#[cfg(test)]
mod tests;
