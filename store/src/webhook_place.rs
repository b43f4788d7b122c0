//! How far this process has read the event log for webhooks.

use std::sync::Arc;

use parking_lot::Mutex;
use sidetone_model::event::Position;
use sidetone_model::time::Timestamp;

/// The position up to which this process has read the log for webhooks; clones share it.
#[derive(Debug, Clone, Default)]
pub(super) struct HandOut(Arc<Mutex<Option<Place>>>);

/// A position in the log.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place {
    /// The stored position: every event before it is queued.
    pub(super) stored: Position,
    /// When this process last read or stored it.
    pub(super) stored_at: Timestamp,
    /// No webhook subscribes to the events between the stored place and here.
    pub(super) reached: Position,
}

impl HandOut {
    /// The position; `None` when only the database has it.
    pub(super) fn place(&self) -> Option<Place> {
        *self.0.lock()
    }

    pub(super) fn set_place(&self, place: Option<Place>) {
        *self.0.lock() = place;
    }
}

impl Place {
    /// Whether a restart would read too many events again, including events from before a webhook was created.
    pub(super) fn is_due(&self, next: Position, now: Timestamp) -> bool {
        next.0.saturating_sub(self.stored.0) >= UNSTORED_MAX
            || now.since(self.stored_at).saturating_abs() >= STORED_EVERY_US
    }
}

/// How often the position is stored while no webhook subscribes to the events.
const STORED_EVERY_US: i64 = 1_000_000;
/// The position is stored after this many events in any case.
const UNSTORED_MAX: i64 = 4_096;
