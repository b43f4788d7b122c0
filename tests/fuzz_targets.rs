//! The fuzz targets on a stable compiler: the committed corpus, mutations of it, and random bytes.
//!
//! `PROPTEST_CASES` sets the number of each.
#![allow(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    unreachable_pub,
    reason = "a test may stop where it fails"
)]

#[macro_use]
#[path = "common/fuzzing.rs"]
mod fuzzing;
mod outbound_http {
    pub(crate) use sidetone::outbound_http::{OutboundHttp, Policy, URL_LEN_MAX};
}
#[path = "../fuzz/src/webhook_url.rs"]
mod targets;

targets! { webhook_url }
