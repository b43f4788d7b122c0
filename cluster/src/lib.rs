//! Several nodes that share one PostgreSQL and one NATS: which of them are there, and what they are told of each other.
//!
//! [`membership`], [`bindings`], [`leases`], [`limits`], [`copies`], [`orphans`] and [`signs`] are machines without I/O. [`nats`] carries their
//! messages; the feature of the same name has the sockets.
//! Leases, order and storage are those of JetStream's key-value store; nothing of consensus is built here.

pub mod bindings;
pub mod copies;
pub mod leases;
pub mod limits;
pub mod membership;
#[cfg(feature = "nats")]
pub mod nats;
pub mod orphans;
pub mod signs;
