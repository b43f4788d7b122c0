//! What is stored of sessions: rows as they are from now on, and events.

use std::collections::BTreeMap;

use crate::event::Event;
use crate::ids::{ConferenceSessionId, NodeId, OrganisationId, RoomId};
use crate::ports::PortFuture;
use crate::room::news::{Person, RoomNews};
use crate::room::{Invite, RoomName};
use crate::time::Timestamp;

/// Where sessions are stored.
pub trait SessionLog: Send + Sync {
    /// Stores rows and events, in one transaction. Storing the same again changes nothing, and adds no event twice.
    fn store<'a>(&'a self, node: NodeId, rows: &'a Rows) -> PortFuture<'a, ()>;
}

/// What is stored at one time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Rows {
    /// Sessions.
    pub sessions: Vec<SessionRow>,
    /// People of theirs.
    pub people: Vec<PersonRow>,
    /// Default members of theirs.
    pub invites: Vec<InviteRow>,
    /// Recordings that are complete.
    pub recordings: Vec<RecordingRow>,
    /// What is told of them, in order.
    pub events: Vec<NewEvent>,
    /// The instant at which every session of the node that is not over is known to be live.
    pub seen_at: Option<Timestamp>,
}

/// A session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionRow {
    /// The session.
    pub id: ConferenceSessionId,
    /// Whose it is.
    pub organisation_id: OrganisationId,
    /// The switch's name of the room.
    pub room: RoomName,
    /// The stored room.
    pub room_id: Option<RoomId>,
    /// What people called it then.
    pub room_name: String,
    /// When the first member came.
    pub started_at: Timestamp,
    /// When it ended.
    pub ended_at: Option<Timestamp>,
    /// When something was heard of it last.
    pub seen_at: Timestamp,
    /// How many were in it at one time at most.
    pub peak_members: u32,
    /// Whether a recording was begun.
    pub is_recorded: bool,
    /// Whether one is under way, so that what is known of its length is not true any more.
    pub is_recording: bool,
    /// How many events tell of it so far.
    pub events: u64,
    /// The live room's revision.
    pub revision: u64,
}

/// Somebody in a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PersonRow {
    /// The session.
    pub session: ConferenceSessionId,
    /// Whose it is.
    pub organisation_id: OrganisationId,
    /// Who.
    pub person: Person,
    /// When they left.
    pub left_at: Option<Timestamp>,
}

/// A default member of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InviteRow {
    /// The session.
    pub session: ConferenceSessionId,
    /// Whose it is.
    pub organisation_id: OrganisationId,
    /// Its place among the session's.
    pub place: usize,
    /// Who, and how far they are.
    pub invite: Invite,
}

/// A recording that is complete.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordingRow {
    /// The session.
    pub session: ConferenceSessionId,
    /// Whose it is.
    pub organisation_id: OrganisationId,
    /// The file's length.
    pub bytes: u64,
    /// Why it ended before its time.
    pub error: Option<String>,
}

/// An event to be made in the transaction that stores it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewEvent {
    /// The session that it tells of.
    pub session: ConferenceSessionId,
    /// Its place among the session's events, from 1.
    pub seq: u64,
    /// What it tells.
    pub what: Telling,
}

/// What an event tells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Telling {
    /// A change of the room.
    News(RoomNews),
    /// Who talks.
    Talk(Told),
}

/// A change of who talks that is due.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Told {
    /// The room as of its last change.
    pub news: RoomNews,
    /// Who began or stopped.
    pub member: u32,
    /// Which of the two.
    pub talking: bool,
    /// Everybody who talks.
    pub all: Vec<u32>,
}

impl Rows {
    /// Whether there is nothing to store.
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
    /// The same rows apart: those of each session, and the instant that belongs to none.
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
    /// The event, as of now.
    pub fn event(&self) -> Option<Event> {
        match &self.what {
            Telling::News(news) => news.event(self.seq),
            Telling::Talk(told) => Some(told.news.talk_event(self.seq, told.member, told.talking, &told.all)),
        }
    }
}
