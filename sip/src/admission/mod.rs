//! Admission: decides which datagrams are read, by their source and their apparent type.
//!
//! Sources of datagrams can be forged in any number, so no memory here grows with them: buckets are in tables
//! of fixed size, at cells chosen with a secret ([`Buckets`]). A source that exceeds its limit is dropped and
//! does not affect others. Messages of a live dialog, of an authenticated peer, and answers to our challenges
//! have separate buckets, which unauthenticated sources cannot empty.
//!
//! Not here: the meaning of a message, and whether its digest is correct.

mod buckets;
mod machine;
mod peers;

pub use buckets::{Bucket, Buckets, Rate};
pub use machine::{Admission, AdmissionConfig, Dropped, Grant};
pub use peers::{PEERS_MAX, Peers};
