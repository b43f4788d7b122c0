//! The live stream of events: its filter, start and items.

use std::sync::Arc;

use crate::access::Permission;
use crate::event::{Event, EventKind, EventPatterns, EventReader, EventViewers, PlacedEvent, Position};
use crate::ids::{EventId, OrganisationId, TeamId};
use crate::port_future::PortFuture;
use crate::time::Timestamp;

/// The events of one stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventFilter {
    /// The caller.
    pub reader: EventReader,
    /// The caller's permissions: kinds that need another permission are not sent.
    pub permissions: Vec<Permission>,
    /// The requested patterns.
    pub patterns: EventPatterns,
}

impl EventFilter {
    /// Whether the event passes the filter.
    pub fn admits(&self, event: &Event) -> bool {
        self.admits_kind(event.kind)
            && self.reader.sees(event.organisation_id, event.team_id, event.viewers.as_deref())
    }

    /// Whether the event passes the filter.
    pub fn admits_streamed(&self, event: &StreamedEvent) -> bool {
        self.admits_kind(event.kind)
            && self.reader.sees(event.organisation_id, event.team_id, event.viewers.as_deref())
    }

    fn admits_kind(&self, kind: EventKind) -> bool {
        self.patterns.matches(kind) && self.permissions.contains(&kind.permission())
    }
}

/// The start of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// After the last event that the client has seen.
    After(EventId),
    /// With the next event.
    Now,
    /// With the events stored at this time or later.
    Since(Timestamp),
}

/// A stored event in the form for streams and webhooks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamedEvent {
    /// Its position in the log.
    pub position: Position,
    /// Its id.
    pub id: EventId,
    /// Its kind.
    pub kind: EventKind,
    /// Whose it is.
    pub organisation_id: OrganisationId,
    /// The team of the call that the event is about.
    pub team_id: Option<TeamId>,
    /// Further teams and extensions whose users see it.
    pub viewers: Option<Arc<EventViewers>>,
    /// The envelope as it is sent; formatted once for all receivers.
    pub envelope: String,
}

impl From<&PlacedEvent> for StreamedEvent {
    fn from(placed: &PlacedEvent) -> Self {
        let PlacedEvent { position, event } = placed;
        Self {
            position: *position,
            id: event.id,
            kind: event.kind,
            organisation_id: event.organisation_id,
            team_id: event.team_id,
            viewers: event.viewers.clone(),
            envelope: event.envelope(),
        }
    }
}

/// Events that are missing in a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gap {
    /// The client read too slowly. The stream ends, and a new one can start after the last event that was
    /// read.
    SlowReader {
        /// The first missing event.
        first: EventId,
        /// The last missing event so far.
        last: EventId,
        /// The number of missing events so far.
        events: u64,
    },
    /// The events are older than the replay limit.
    TooOld {
        /// Events stored from then on follow.
        replay_from: Timestamp,
    },
    /// The event to start after is unknown, so the missing events cannot be determined.
    UnknownId {
        /// Events stored from then on follow.
        replay_from: Timestamp,
    },
}

impl Gap {
    /// The reason as a word.
    pub const fn reason(&self) -> &'static str {
        match self {
            Gap::SlowReader { .. } => "slow_reader",
            Gap::TooOld { .. } => "too_old",
            Gap::UnknownId { .. } => "unknown_id",
        }
    }
}

/// An item of a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StreamItem {
    /// An event.
    Event(Arc<StreamedEvent>),
    /// Some events are missing.
    Gap(Gap),
    /// All stored events were sent; new ones follow.
    Live,
}

/// Opens live streams of events.
pub trait EventStreams: Send + Sync {
    /// Opens a stream of the events that `filter` admits; `now` limits how far back it may start.
    fn open(&self, filter: EventFilter, start: Start, now: Timestamp)
    -> PortFuture<'_, Box<dyn EventStream>>;
}

/// One stream.
pub trait EventStream: Send {
    /// Returns the next item; `None` at the end. May be dropped and called again.
    fn next(&mut self) -> PortFuture<'_, Option<StreamItem>>;
}

/// How far back a stream may start.
pub const REPLAY_US: i64 = 15 * 60 * 60 * 1_000_000;
