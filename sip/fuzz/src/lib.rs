//! Properties that must hold for any bytes, as functions that panic when one does not.
//!
//! libFuzzer calls them (`targets/`), and so does `sip/tests/integration/fuzz_targets.rs` on a stable compiler: with the
//! inputs of `corpus/`, with mutations of them, and with random bytes.
#![allow(dead_code, unreachable_pub, reason = "each of the two callers uses a part")]
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    missing_docs,
    reason = "to panic is what a target is for"
)]

mod dialog;
mod digest;
mod message;
mod sdp;
mod stream;

pub use dialog::sip_dialog;
pub use digest::digest;
pub use message::sip_message;
pub use sdp::sdp;
pub use stream::sip_stream;
