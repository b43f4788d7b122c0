//! The log of events, in the order in which they became visible.

use crate::access::Scope;
use crate::event::envelope::{PlacedEvent, Position};
use crate::ids::EventId;
use crate::ports::PortFuture;

/// The next part of the log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EventBatch {
    /// The events, in order. Kinds of a newer version that this one does not know are left out.
    pub events: Vec<PlacedEvent>,
    /// The position to continue after; the requested position when there were no events.
    pub next: Position,
    /// Whether the end of the log was reached.
    pub is_last: bool,
}

/// Reads the stored events.
pub trait EventLog: Send + Sync {
    /// The events inside `scope` after the position `after`, at most `limit`.
    fn after(&self, scope: Scope, after: Position, limit: u32) -> PortFuture<'_, EventBatch>;

    /// The current end of the log: later events come after it.
    fn end(&self) -> PortFuture<'_, Position>;

    /// The position of an event inside `scope`; `None` if there is no such event.
    fn position_of(&self, scope: Scope, id: EventId) -> PortFuture<'_, Option<Position>>;

    /// Returns a position such that every event whose id is `first` or greater comes after it.
    fn position_before(&self, first: EventId) -> PortFuture<'_, Position>;
}
