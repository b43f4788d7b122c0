//! Live traffic of any switch: the packets of an interface, judged as a capture is, and a record for every call.
//!
//! One thread reads the kernel's rings ([`ring`]) and hands every frame, where the kernel wrote it, to the
//! capture engine; calls that are over leave it as records ([`book`]) by the journal, as a switch's own do. What the
//! kernel had to drop is told with the calls that were up then ([`drops`]).
//!
//! Only `ring.rs` knows the crate `netring`.

pub mod book;
pub mod counters;
pub mod drops;
pub mod interfaces;
pub mod ring;
pub mod scribe;
pub mod session;
pub mod thread;
