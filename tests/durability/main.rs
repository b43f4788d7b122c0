//! What a broken, full or slow disk, a power cut, a jump of the clock and a killed process cost.
#![allow(
    clippy::disallowed_methods,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    unreachable_pub,
    reason = "a helper of a test may fail the test"
)]

#[path = "../common/chosen.rs"]
mod chosen;
#[path = "../common/database.rs"]
mod database;
mod disk;
mod power_loss;
#[path = "../common/records.rs"]
mod records;
#[path = "../common/site.rs"]
mod site;

/// Whether the test runs as root; some attacks need it.
pub fn is_root() -> bool {
    use std::os::unix::fs::MetadataExt;
    std::fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0)
}
