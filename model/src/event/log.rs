//! The log of events: what happened in the order in which it became visible.

use crate::access::Scope;
use crate::event::envelope::{PlacedEvent, Position};
use crate::ids::EventId;
use crate::ports::PortFuture;

/// The next part of the log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EventBatch {
    /// The events, in order. Those that a newer version stored and this one does not know are left out.
    pub events: Vec<PlacedEvent>,
    /// Behind which to go on; the position that was asked for when nothing came.
    pub next: Position,
    /// Whether there was nothing more.
    pub is_last: bool,
}

/// The stored events, to be read.
pub trait EventLog: Send + Sync {
    /// The events inside `scope` behind `after`, at most `limit`.
    fn after(&self, scope: Scope, after: Position, limit: u32) -> PortFuture<'_, EventBatch>;

    /// Where the log ends now: what becomes visible later is behind it.
    fn end(&self) -> PortFuture<'_, Position>;

    /// Where an event inside `scope` stands; `None` when there is none such.
    fn position_of(&self, scope: Scope, id: EventId) -> PortFuture<'_, Option<Position>>;

    /// A position that no event with an id of `first` or greater is before.
    fn position_before(&self, first: EventId) -> PortFuture<'_, Position>;
}
