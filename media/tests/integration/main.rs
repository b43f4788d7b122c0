//! The crate from outside: figures, verdicts, codecs, playout, mixes and the relay. The tests that count
//! allocations are binaries of their own, since each counts what its whole process allocates.

#![allow(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test may stop where it fails"
)]

// First: the macro that makes tests of fuzz targets.
#[macro_use]
#[path = "../../../tests/common/fuzzing.rs"]
mod fuzzing;

mod addresses;
mod audio;
#[cfg(feature = "net")]
#[allow(clippy::duplicate_mod, reason = "the same tests with both ways to the kernel")]
#[path = "relay/mod.rs"]
mod by_epoll;
#[cfg(feature = "net")]
#[allow(clippy::duplicate_mod, reason = "the same tests with both ways to the kernel")]
#[path = "relay/mod.rs"]
mod by_io_uring;
mod codecs;
mod deferred;
mod dtmf_audio;
mod explain;
mod fuzz_targets;
mod laws;
mod mix;
mod model;
mod numbers;
mod pcap_damage;
mod perception;
mod playout;
mod scenarios;
mod sentences;
mod sizes;
mod sources;
#[path = "../support/mod.rs"]
mod support;
#[path = "../../fuzz/src/lib.rs"]
mod targets;
mod verdicts;
mod watch;
mod wav_damage;
