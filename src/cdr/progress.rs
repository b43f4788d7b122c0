//! How far the journal is written: set by its thread, read by the reader and for the metrics.

use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64};

use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::cdr::recent::Recent;

/// How far the journal is durable.
#[derive(Debug, Clone, Copy)]
pub(super) struct Mark {
    pub(super) segment: u64,
    pub(super) len: u64,
}

/// The progress of the journal's thread, for the reader and for queries about the disk.
#[derive(Debug)]
pub(super) struct Progress {
    pub(super) committed: Mutex<Mark>,
    pub(super) closed: AtomicBool,
    pub(super) failing: AtomicBool,
    pub(super) written: Notify,
    /// [`SPACE_FREE`], [`RESERVE_LEFT`] or [`RESERVE_IN_USE`].
    pub(super) space: AtomicU8,
    pub(super) free_bytes: AtomicU64,
    pub(super) failed_segments: AtomicU64,
    /// The last durable records, which the reader need not read back.
    pub(super) recent: Mutex<Recent>,
}

/// The disk has free space.
pub(super) const SPACE_FREE: u8 = 0;
/// Only the reserve is left on the disk.
pub(super) const RESERVE_LEFT: u8 = 1;
/// The reserve is in use, or could not be allocated.
pub(super) const RESERVE_IN_USE: u8 = 2;
