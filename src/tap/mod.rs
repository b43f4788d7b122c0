//! Live traffic of any switch: the packets of an interface, judged like a capture, with a record for every call.
//!
//! One thread reads the kernel's rings ([`ring`]) and passes every frame to the capture engine without a
//! copy; finished calls become records ([`cdr_mapper`]) that go through the journal like a switch's own. Packets
//! that the kernel dropped are attributed to the calls at that time ([`drops`]).
//!
//! Only `ring.rs` uses the crate `netring`.

pub mod cdr_mapper;
pub mod cdr_writer;
pub mod counters;
pub mod drops;
pub mod interfaces;
pub mod ring;
pub mod session;
pub mod thread;
