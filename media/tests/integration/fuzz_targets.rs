//! Runs the fuzz targets on a stable compiler: their corpora, mutations of these, and random bytes.
//!
//! `PROPTEST_CASES` sets the number of each.

#![allow(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test may stop where it fails"
)]

targets! { link_layers media_session pcap_reader rtcp rtp tcp_reassembly trace_reader }
