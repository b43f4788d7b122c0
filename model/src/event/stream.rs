//! What somebody who follows the events live asks for, and what they get.

use std::sync::Arc;

use crate::access::{Permission, Scope};
use crate::event::{Event, EventPatterns, Position};
use crate::ids::EventId;
use crate::ports::PortFuture;
use crate::time::Timestamp;

/// Which events one stream shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventFilter {
    /// Whose.
    pub scope: Scope,
    /// What the caller holds: of the kinds that need another permission they are told nothing.
    pub permissions: Vec<Permission>,
    /// What they asked for.
    pub patterns: EventPatterns,
}

impl EventFilter {
    /// Whether the event is shown.
    pub fn admits(&self, event: &Event) -> bool {
        self.patterns.matches(event.kind)
            && self.permissions.contains(&event.kind.permission())
            && self.scope.covers(event.organisation_id, event.team_id)
    }
}

/// Where a stream begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// Behind the event that was seen last.
    After(EventId),
    /// With what happens from now on.
    Now,
    /// With what was stored at this instant or later.
    Since(Timestamp),
}

/// An event on its way to streams.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamedEvent {
    /// Where it stands in the log.
    pub position: Position,
    /// Its id.
    pub id: EventId,
    /// Its kind's name.
    pub kind: &'static str,
    /// The event as it is sent; made once for all streams.
    pub envelope: String,
}

/// Events that a stream does not show although it should.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gap {
    /// The reader took them too slowly; the stream ends, and another one goes on behind the last event that was read.
    SlowReader {
        /// The first that is missing.
        first: EventId,
        /// The last that is missing so far.
        last: EventId,
        /// How many are missing so far.
        events: u64,
    },
    /// They are older than what is replayed.
    TooOld {
        /// What was stored from then on follows.
        replay_from: Timestamp,
    },
    /// The event to go on behind is not known, so that nobody can say which are missing.
    UnknownId {
        /// What was stored from then on follows.
        replay_from: Timestamp,
    },
}

impl Gap {
    /// The word for why.
    pub const fn reason(&self) -> &'static str {
        match self {
            Gap::SlowReader { .. } => "slow_reader",
            Gap::TooOld { .. } => "too_old",
            Gap::UnknownId { .. } => "unknown_id",
        }
    }
}

/// The next thing on a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StreamItem {
    /// An event.
    Event(Arc<StreamedEvent>),
    /// Some are missing.
    Gap(Gap),
    /// What was stored before has been shown; what follows happens now.
    Live,
}

/// Who shows events live.
pub trait EventStreams: Send + Sync {
    /// A stream of what `filter` admits; `now` bounds how far back it may begin.
    fn open(&self, filter: EventFilter, start: Start, now: Timestamp)
    -> PortFuture<'_, Box<dyn EventStream>>;
}

/// One stream.
pub trait EventStream: Send {
    /// The next thing; `None` when there is nothing more. May be dropped and called again.
    fn next(&mut self) -> PortFuture<'_, Option<StreamItem>>;
}

/// How far back a stream may begin.
pub const REPLAY_US: i64 = 15 * 60 * 60 * 1_000_000;
