//! The fuzz targets on a stable compiler: the committed corpus, variations of it, and random bytes.
//!
//! `PROPTEST_CASES` sets the number of cases of each.

#![allow(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test may stop where it fails"
)]

#[macro_use]
#[path = "../../tests/common/fuzzing.rs"]
mod fuzzing;
#[path = "../fuzz/src/lib.rs"]
mod targets;

targets! { api_key jwt }
