//! Tests of the crate from outside: laws of the messages, torture messages, other parsers as oracles, fuzz targets.

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

#[expect(unreachable_pub, reason = "the corpus is shared with the tests of the root crate")]
#[path = "../corpus/mod.rs"]
mod corpus;
mod differential;
mod fuzz_targets;
mod laws;
mod oversize;
#[path = "../../fuzz/src/lib.rs"]
mod targets;
mod torture;
