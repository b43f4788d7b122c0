//! Admission: which datagrams are worth being read, decided by where they come from and what they seem to be.
//!
//! Sources of datagrams can be forged and are without number, so nothing here grows with them: buckets stand in tables
//! of a fixed size at places that a secret decides ([`Buckets`]). A source that is behind its rate is dropped and hinders
//! no other; what belongs to a live dialog, comes from a peer that has proved itself or answers a challenge of ours has
//! buckets of its own, which no stranger can empty.
//!
//! Not here: what a message means, and whether its digest is right.

mod buckets;
mod machine;
mod peers;

pub use buckets::{Bucket, Buckets, Rate};
pub use machine::{Admission, AdmissionConfig, Dropped, Grant};
pub use peers::{PEERS_MAX, Peers};
