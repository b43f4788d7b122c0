//! The stored form of sessions: rows in their new state, and events.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::event::{Event, EventViewers};
use crate::ids::{ConferenceSessionId, NodeId, OrganisationId, RoomId};
use crate::port_future::PortFuture;
use crate::room::event::{Person, RoomEvent};
use crate::room::{Invite, RoomName};
use crate::time::Timestamp;

/// The store for sessions.
pub trait SessionLog: Send + Sync {
    /// Stores rows and events in one transaction. Storing the same rows again changes nothing and adds no
    /// event twice.
    fn store<'a>(&'a self, node: NodeId, rows: &'a Rows) -> PortFuture<'a, ()>;
}

/// The rows of one transaction.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Rows {
    /// Sessions.
    pub sessions: Vec<SessionRow>,
    /// People in these sessions.
    pub people: Vec<PersonRow>,
    /// Default members of these sessions.
    pub invites: Vec<InviteRow>,
    /// Recordings that are complete.
    pub recordings: Vec<RecordingRow>,
    /// Their events, in order.
    pub events: Vec<NewEvent>,
    /// The time at which every open session of the node was known to be live.
    pub seen_at: Option<Timestamp>,
}

/// A session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionRow {
    /// The session.
    pub id: ConferenceSessionId,
    /// The organisation it belongs to.
    pub organisation_id: OrganisationId,
    /// The switch's name for the room.
    pub room: RoomName,
    /// The stored room.
    pub room_id: Option<RoomId>,
    /// The room's display name at that time.
    pub room_name: String,
    /// When the first member joined.
    pub started_at: Timestamp,
    /// When it ended.
    pub ended_at: Option<Timestamp>,
    /// The time of the last change or of the last `seen_at` mark.
    pub seen_at: Timestamp,
    /// The largest number of members at one time.
    pub peak_members: u32,
    /// Whether a recording was started.
    pub is_recorded: bool,
    /// Whether a recording is in progress; a stored length is then out of date.
    pub is_recording: bool,
    /// Channels of its recording.
    pub recording_channels: u16,
    /// The number of its events so far.
    pub events: u64,
    /// The live room's revision.
    pub revision: u64,
}

/// A person in a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PersonRow {
    /// The session.
    pub session: ConferenceSessionId,
    /// The organisation it belongs to.
    pub organisation_id: OrganisationId,
    /// The person.
    pub person: Person,
    /// When they left.
    pub left_at: Option<Timestamp>,
    /// How long the person talked, in milliseconds; known after the person has left.
    pub talked_ms: u64,
}

/// A default member of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InviteRow {
    /// The session.
    pub session: ConferenceSessionId,
    /// The organisation it belongs to.
    pub organisation_id: OrganisationId,
    /// Its position in the session's list.
    pub place: usize,
    /// The invited member, and the state of the invite.
    pub invite: Invite,
}

/// A complete recording.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordingRow {
    /// The session.
    pub session: ConferenceSessionId,
    /// The organisation it belongs to.
    pub organisation_id: OrganisationId,
    /// The file's length.
    pub bytes: u64,
    /// Why the recording ended early.
    pub error: Option<String>,
}

/// An event that is created in the transaction that stores it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewEvent {
    /// The session it belongs to.
    pub session: ConferenceSessionId,
    /// Its position among all events of the session, from 1: those up to the stored position are not stored again.
    pub position: u64,
    /// Its `seq`, from 1: its position among the session's events with a `seq`.
    pub seq: u64,
    /// The source of the event.
    pub what: EventSource,
    /// The members' teams and extensions, whose users see it.
    pub viewers: Option<Arc<EventViewers>>,
}

/// The source of an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EventSource {
    /// A change of the room.
    Room(RoomEvent),
    /// A member started or stopped talking.
    Talk(TalkChange),
}

/// A start or stop of talking that is due to be reported.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TalkChange {
    /// The room as of its last change.
    pub event: RoomEvent,
    /// The member who started or stopped.
    pub member: u32,
    /// Whether the member talks now.
    pub talking: bool,
    /// All members who are speaking.
    pub all: Vec<u32>,
}

impl Rows {
    /// Returns whether there is nothing to store.
    pub fn is_empty(&self) -> bool {
        self.sessions.is_empty()
            && self.people.is_empty()
            && self.invites.is_empty()
            && self.recordings.is_empty()
            && self.events.is_empty()
            && self.seen_at.is_none()
    }
}

impl Rows {
    /// The same rows, split: those of each session, and `seen_at`, which belongs to no session.
    pub fn by_session(&self) -> Vec<Rows> {
        type Parts = BTreeMap<Option<ConferenceSessionId>, Rows>;
        fn of(parts: &mut Parts, session: Option<ConferenceSessionId>) -> &mut Rows {
            parts.entry(session).or_default()
        }
        let mut parts = Parts::new();
        if self.seen_at.is_some() {
            of(&mut parts, None).seen_at = self.seen_at;
        }
        for row in &self.sessions {
            of(&mut parts, Some(row.id)).sessions.push(row.clone());
        }
        for row in &self.people {
            of(&mut parts, Some(row.session)).people.push(row.clone());
        }
        for row in &self.invites {
            of(&mut parts, Some(row.session)).invites.push(row.clone());
        }
        for row in &self.recordings {
            of(&mut parts, Some(row.session)).recordings.push(row.clone());
        }
        for row in &self.events {
            of(&mut parts, Some(row.session)).events.push(row.clone());
        }
        parts.into_values().collect()
    }
}

impl NewEvent {
    /// Returns the event in its current form; `None` if the change has no event.
    pub fn event(&self) -> Option<Event> {
        let event = match &self.what {
            EventSource::Room(event) => event.event(self.seq)?,
            EventSource::Talk(change) => {
                change.event.talk_event(self.seq, change.member, change.talking, &change.all)
            }
        };
        Some(Event { viewers: self.viewers.clone(), ..event })
    }
}
