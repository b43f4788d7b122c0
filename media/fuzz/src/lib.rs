//! Properties that must hold for any bytes, as functions that panic when one does not.
//!
//! libFuzzer calls them (`targets/`), and so does `media/tests/integration/fuzz_targets.rs` on a stable compiler: with
//! the inputs of `corpus/`, with mutations of them, and with random bytes.
#![allow(dead_code, unreachable_pub, reason = "each of the two callers uses a part")]
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    missing_docs,
    reason = "to panic is what a target is for"
)]

mod choices;
mod frames;
mod link;
mod pcap;
mod rtcp;
mod rtp;
mod session;
mod tcp;
mod trace;

pub use link::link_layers;
pub use pcap::pcap_reader;
pub use rtcp::rtcp;
pub use rtp::rtp;
pub use session::media_session;
pub use tcp::tcp_reassembly;
pub use trace::trace_reader;
