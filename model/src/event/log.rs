//! The log of events, in the order in which they became visible.

use std::sync::Arc;

use crate::event::envelope::{PlacedEvent, Position};
use crate::event::stream::StreamedEvent;
use crate::event::viewers::EventReader;
use crate::ids::EventId;
use crate::port_future::PortFuture;

/// The next part of the log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EventBatch {
    /// The events, in order. Kinds that only a newer version knows are left out.
    pub events: Vec<PlacedEvent>,
    /// The position to continue after; the requested position when there were no events.
    pub next: Position,
    /// Whether the end of the log was reached.
    pub is_last: bool,
}

/// Events that this process stored recently, without gaps between them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecentEvents {
    /// The events, in order; never empty.
    pub events: Vec<Arc<StreamedEvent>>,
    /// The position to continue after.
    pub next: Position,
    /// Whether the list ends with the last event that this process stored.
    pub is_last: bool,
}

/// Reads the stored events.
pub trait EventLog: Send + Sync {
    /// The events after the position `after`, at most `limit`, of all organisations: those that this process
    /// stored itself. Does not query the database.
    ///
    /// `None` if they do not follow `after` without a gap: the reader was away for too long, another process
    /// stored events in between, or nothing new was stored here. [`EventLog::after`] then returns the next
    /// ones.
    fn recent(&self, after: Position, limit: u32) -> Option<RecentEvents>;

    /// The events after the position `after` that `reader` may see, at most `limit`.
    fn after<'a>(
        &'a self,
        reader: &'a EventReader,
        after: Position,
        limit: u32,
    ) -> PortFuture<'a, EventBatch>;

    /// The current end of the log: later events come after it.
    fn end(&self) -> PortFuture<'_, Position>;

    /// The position of an event that `reader` may see; `None` if there is no such event.
    fn position_of<'a>(&'a self, reader: &'a EventReader, id: EventId) -> PortFuture<'a, Option<Position>>;

    /// Returns a position such that every event whose id is `first` or greater comes after it.
    fn position_before(&self, first: EventId) -> PortFuture<'_, Position>;
}
