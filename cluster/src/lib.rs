//! Several nodes that share one PostgreSQL and one NATS: which of them are up, and what they report to each other.
//!
//! [`membership`], [`bindings`], [`leases`], [`limits`], [`copies`], [`orphans`] and [`signs`] are state machines
//! without I/O. [`nats`] carries their messages; the feature of the same name adds the sockets.
//! Leases, ordering and storage are those of JetStream's key-value store; this crate implements no consensus.

pub mod bindings;
pub mod copies;
pub mod leases;
pub mod limits;
pub mod membership;
#[cfg(feature = "nats")]
pub mod nats;
pub mod orphans;
pub mod signs;
