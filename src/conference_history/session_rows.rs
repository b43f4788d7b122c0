//! Live sessions, in the form of their rows.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use sidetone_model::event::EventViewers;
use sidetone_model::ids::ConferenceSessionId;
use sidetone_model::room::event::{Person, RoomChange, RoomEvent};
use sidetone_model::room::rows::{
    EventSource, InviteRow, NewEvent, PersonRow, RecordingRow, Rows, SessionRow, TalkChange,
};
use sidetone_model::room::{Invite, InviteReason, InviteState};
use sidetone_model::time::Timestamp;

/// Folds the events of rooms into rows.
///
/// *Bounds*: the live sessions with their people and invites, and the rows folded since [`SessionRows::take`].
#[derive(Debug, Default)]
pub struct SessionRows {
    live: BTreeMap<ConferenceSessionId, Session>,
    /// The rows to be stored.
    rows: Rows,
    dirty: BTreeSet<ConferenceSessionId>,
    /// Events that were discarded.
    discarded: u64,
}

#[derive(Debug)]
struct Session {
    row: SessionRow,
    people: BTreeMap<u32, Row<PersonRow>>,
    invites: Vec<Row<InviteRow>>,
    /// The `seq` of the last event that shows one.
    seq: u64,
    /// The teams and extensions of its current members.
    viewers: Option<Arc<EventViewers>>,
}

/// A row, and whether it is stored in its current state.
#[derive(Debug)]
struct Row<T> {
    row: T,
    is_stored: bool,
}

impl SessionRows {
    /// Folds a change and keeps its event.
    pub fn fold(&mut self, event: RoomEvent) {
        self.take_in(event, true);
    }

    /// Folds a change without its event, because the event queue is full; the stored session is the same.
    pub fn fold_silently(&mut self, event: RoomEvent) {
        self.take_in(event, false);
    }

    /// Folds a talk change.
    pub fn send(&mut self, told: TalkChange) {
        let Some(session) = self.live.get_mut(&told.event.session) else { return };
        session.row.revision = session.row.revision.max(told.event.revision);
        self.dirty.insert(told.event.session);
        let viewers = session.viewers.clone();
        self.rows.events.push(session.next(EventSource::Talk(told), viewers));
    }

    /// Marks every live session as live at `now`.
    pub fn seen(&mut self, now: Timestamp) {
        self.rows.seen_at = (!self.live.is_empty()).then_some(now);
    }

    /// Ends every live session; called when no further change can arrive.
    pub fn end_all(&mut self, now: Timestamp) {
        let live: Vec<RoomEvent> = self.live.values().map(|session| session.ended(now)).collect();
        for event in live {
            self.fold(event);
        }
    }

    /// Returns the rows to be stored now.
    pub fn take(&mut self) -> Rows {
        for id in std::mem::take(&mut self.dirty) {
            let Some(session) = self.live.get_mut(&id) else { continue };
            session.take(&mut self.rows);
            if session.row.ended_at.is_some() {
                self.live.remove(&id);
            }
        }
        std::mem::take(&mut self.rows)
    }

    /// Returns the number of live sessions.
    pub fn live(&self) -> usize {
        self.live.len()
    }

    /// Returns the number of events that were discarded.
    pub fn discarded(&self) -> u64 {
        self.discarded
    }

    fn take_in(&mut self, event: RoomEvent, is_told: bool) {
        if let RoomChange::Recorded { bytes, error } = &event.what {
            let (session, organisation_id) = (event.session, event.organisation_id);
            let (bytes, error) = (*bytes, error.clone());
            if let Some(live) = self.live.get_mut(&session) {
                live.row.is_recording = false;
                self.dirty.insert(session);
            }
            self.rows.recordings.push(RecordingRow { session, organisation_id, bytes, error });
            return;
        }
        if let RoomChange::Opened { room_name } = &event.what {
            self.live.entry(event.session).or_insert_with(|| Session::opened(&event, room_name));
        }
        // A session that has ended has no further changes.
        let known = self.live.get_mut(&event.session).filter(|session| session.row.ended_at.is_none());
        let Some(session) = known else { return };
        let before = session.viewers.clone();
        session.change(&event);
        self.dirty.insert(event.session);
        if event.what == RoomChange::Recording(true) {
            // A completed recording has been started again.
            self.rows.recordings.retain(|recording| recording.session != event.session);
        }
        if event.what.is_event() {
            if is_told {
                let viewers = session.shown_to(&event.what, before);
                self.rows.events.push(session.next(EventSource::Room(event), viewers));
            } else {
                self.discarded += 1;
            }
        }
    }
}

impl Session {
    fn opened(event: &RoomEvent, room_name: &str) -> Self {
        let row = SessionRow {
            id: event.session,
            organisation_id: event.organisation_id,
            room: event.room,
            room_id: event.room_id,
            room_name: room_name.to_owned(),
            started_at: event.at,
            ended_at: None,
            seen_at: event.at,
            peak_members: 0,
            is_recorded: false,
            is_recording: false,
            recording_channels: 1,
            events: 0,
            revision: event.revision,
        };
        Session { row, people: BTreeMap::new(), invites: Vec::new(), seq: 0, viewers: None }
    }

    /// Numbers the session's next event. `call.conferenced` has no `seq`, and is not counted for it.
    fn next(&mut self, what: EventSource, viewers: Option<Arc<EventViewers>>) -> NewEvent {
        self.row.events += 1;
        let is_merge =
            matches!(&what, EventSource::Room(event) if matches!(event.what, RoomChange::Merged { .. }));
        self.seq += u64::from(!is_merge);
        NewEvent { session: self.row.id, position: self.row.events, seq: self.seq, what, viewers }
    }

    fn change(&mut self, event: &RoomEvent) {
        self.row.seen_at = self.row.seen_at.max(event.at);
        self.row.revision = self.row.revision.max(event.revision);
        match &event.what {
            RoomChange::Ended => {
                self.end(event.at);
                self.note_viewers();
            }
            RoomChange::Invited(invite) => self.invite(invite),
            RoomChange::Joined(person) => {
                self.join(person.clone());
                self.note_viewers();
            }
            RoomChange::Left { member, talked_ms, .. } => {
                if let Some(person) = self.people.get_mut(member) {
                    person.row.left_at = Some(event.at);
                    person.row.talked_ms = *talked_ms;
                    person.is_stored = false;
                }
                self.note_viewers();
            }
            // A recording is in progress until it is reported complete, even after the request to stop it.
            RoomChange::Recording(on) => {
                self.row.is_recorded |= *on;
                self.row.is_recording |= *on;
            }
            RoomChange::RecordingChannels(channels) => self.row.recording_channels = *channels,
            // These are read from the live room only.
            RoomChange::AllMuted(_)
            | RoomChange::Locked(_)
            | RoomChange::Member { .. }
            | RoomChange::Merged { .. }
            | RoomChange::Muted { .. }
            | RoomChange::Opened { .. }
            | RoomChange::Played { .. }
            | RoomChange::Playing(_)
            | RoomChange::Recorded { .. }
            | RoomChange::Talking { .. } => {}
        }
    }

    /// The users who see an event, besides those who see the whole organisation: the users of the members after the
    /// change; if a member leaves or the session ends, the members before it.
    fn shown_to(&self, what: &RoomChange, before: Option<Arc<EventViewers>>) -> Option<Arc<EventViewers>> {
        match what {
            RoomChange::Ended | RoomChange::Left { .. } => before,
            // It precedes the parties of both calls: only the user who requested it is known.
            RoomChange::Merged { by, .. } => {
                let mut viewers = before.as_deref().cloned().unwrap_or_default();
                viewers.extensions.extend(by.extension_id);
                Some(Arc::new(viewers)).filter(|viewers| !viewers.is_empty())
            }
            _ => self.viewers.clone(),
        }
    }

    fn note_viewers(&mut self) {
        let here = self.people.values().map(|person| &person.row).filter(|row| row.left_at.is_none());
        let mut viewers = EventViewers::default();
        for row in here {
            viewers.teams.extend(row.person.team_id);
            viewers.extensions.extend(row.person.extension_id);
        }
        self.viewers = Some(viewers).filter(|viewers| !viewers.is_empty()).map(Arc::new);
    }

    fn join(&mut self, person: Person) {
        let (session, organisation_id) = (self.row.id, self.row.organisation_id);
        let member = person.member;
        let row = PersonRow { session, organisation_id, person, left_at: None, talked_ms: 0 };
        self.people.insert(member, Row { row, is_stored: false });
        let here = self.people.values().filter(|person| person.row.left_at.is_none()).count();
        self.row.peak_members = self.row.peak_members.max(u32::try_from(here).unwrap_or(u32::MAX));
    }

    fn invite(&mut self, invite: &Invite) {
        let place =
            self.invites.iter().position(|known| known.row.invite.extension_id == invite.extension_id);
        let place = place.unwrap_or(self.invites.len());
        let (session, organisation_id) = (self.row.id, self.row.organisation_id);
        let row = InviteRow { session, organisation_id, place, invite: invite.clone() };
        match self.invites.get_mut(place) {
            Some(known) => *known = Row { row, is_stored: false },
            None => self.invites.push(Row { row, is_stored: false }),
        }
    }

    /// Marks every person as having left, and ends every invite that is still ringing.
    fn end(&mut self, at: Timestamp) {
        self.row.ended_at = Some(at);
        for person in self.people.values_mut().filter(|person| person.row.left_at.is_none()) {
            person.row.left_at = Some(at);
            person.is_stored = false;
        }
        for invite in self.invites.iter_mut().filter(|invite| is_open(invite.row.invite.state)) {
            invite.row.invite.state = InviteState::Cancelled;
            invite.row.invite.last_reason = InviteReason::RoomEnded;
            invite.is_stored = false;
        }
    }

    /// Moves unsaved rows into `rows`, and drops people who have left.
    fn take(&mut self, rows: &mut Rows) {
        rows.sessions.push(self.row.clone());
        let changed = self.people.values_mut().filter(|person| !person.is_stored);
        rows.people.extend(changed.map(|person| {
            person.is_stored = true;
            person.row.clone()
        }));
        self.people.retain(|_, person| person.row.left_at.is_none());
        let changed = self.invites.iter_mut().filter(|invite| !invite.is_stored);
        rows.invites.extend(changed.map(|invite| {
            invite.is_stored = true;
            invite.row.clone()
        }));
    }

    /// Builds the change that ends the session, for a session whose end was not reported.
    fn ended(&self, at: Timestamp) -> RoomEvent {
        let row = &self.row;
        RoomEvent {
            organisation_id: row.organisation_id,
            room: row.room,
            room_id: row.room_id,
            session: row.id,
            at,
            revision: row.revision + 1,
            what: RoomChange::Ended,
        }
    }
}

/// Returns whether the room still waits for the invited member.
fn is_open(state: InviteState) -> bool {
    matches!(state, InviteState::Pending | InviteState::Ringing | InviteState::Waiting)
}

#[cfg(test)]
mod tests {
    use sidetone_model::call::HangupCause;
    use sidetone_model::ids::{CallId, ExtensionId, LegId, OrganisationId, RoomId, TeamId};
    use sidetone_model::room::Role;
    use sidetone_model::room::event::MergedBy;
    use uuid::Uuid;

    use super::*;

    fn event(revision: u64, what: RoomChange) -> RoomEvent {
        RoomEvent {
            organisation_id: OrganisationId(Uuid::from_u128(1)),
            room: RoomId(Uuid::from_u128(9)).into(),
            room_id: Some(RoomId(Uuid::from_u128(9))),
            session: ConferenceSessionId(Uuid::from_u128(2)),
            at: at(revision),
            revision,
            what,
        }
    }

    fn at(revision: u64) -> Timestamp {
        Timestamp::from_micros(i64::try_from(revision).unwrap() * 1_000_000)
    }

    fn joined(member: u32) -> RoomChange {
        RoomChange::Joined(Person {
            member,
            name: format!("Person {member}"),
            number: format!("{}", 100 + member),
            role: Role::Participant,
            extension_id: None,
            team_id: None,
            call_uuid: CallId(Uuid::from_u128(member.into())),
            leg: LegId(Uuid::from_u128(member.into())),
            joined_at: at(0),
        })
    }

    fn invited(extension: u128, state: InviteState) -> RoomChange {
        let extension_id = ExtensionId(Uuid::from_u128(extension));
        let (number, name) = ("101".to_owned(), String::new());
        RoomChange::Invited(Invite { extension_id, number, name, state, last_reason: InviteReason::None })
    }

    fn opened() -> SessionRows {
        let mut session_rows = SessionRows::default();
        session_rows.fold(event(1, RoomChange::Opened { room_name: "Board".to_owned() }));
        session_rows
    }

    fn left(rows: &Rows) -> Vec<(u32, Option<Timestamp>)> {
        rows.people.iter().map(|row| (row.person.member, row.left_at)).collect()
    }

    #[test]
    fn a_session_is_its_people_its_peak_and_its_end() {
        let mut session_rows = opened();
        for (revision, what) in [
            joined(1),
            joined(2),
            RoomChange::Left { member: 1, cause: HangupCause::NormalClearing, talked_ms: 2_500 },
            RoomChange::Recording(true),
            RoomChange::Recording(false),
            joined(3),
        ]
        .into_iter()
        .enumerate()
        {
            session_rows.fold(event(revision as u64 + 2, what));
        }
        let rows = session_rows.take();
        let session = &rows.sessions[0];
        assert_eq!((session.peak_members, session.is_recorded, session.ended_at), (2, true, None));
        assert_eq!((session.room_name.as_str(), session.events, session.revision), ("Board", 6, 7));
        assert_eq!(rows.events.iter().map(|event| event.seq).collect::<Vec<_>>(), [1, 2, 3, 4, 5, 6]);
        assert_eq!(left(&rows), [(1, Some(at(4))), (2, None), (3, None)]);
        assert_eq!(rows.people.iter().map(|row| row.talked_ms).collect::<Vec<_>>(), [2_500, 0, 0]);
        assert!(session_rows.take().is_empty(), "nothing is stored twice");
        session_rows.fold(event(8, RoomChange::Ended));
        session_rows.fold(event(9, joined(4)));
        session_rows.fold(event(10, RoomChange::Recorded { bytes: 44, error: None }));
        let rows = session_rows.take();
        assert_eq!(rows.sessions[0].ended_at, Some(at(8)));
        assert_eq!(left(&rows), [(2, Some(at(8))), (3, Some(at(8)))]);
        assert_eq!((rows.recordings.len(), session_rows.live()), (1, 0));
        session_rows.fold(event(11, RoomChange::Ended));
        assert!(session_rows.take().is_empty(), "it is over");
    }

    #[test]
    fn events_are_for_the_teams_and_extensions_of_those_who_are_in_the_room() {
        let seated = |member: u32| {
            let RoomChange::Joined(person) = joined(member) else { unreachable!() };
            let extension_id = Some(ExtensionId(Uuid::from_u128(member.into())));
            // The third has an extension without a team.
            let team_id = (member < 3).then(|| TeamId(Uuid::from_u128(u128::from(member) + 10)));
            RoomChange::Joined(Person { extension_id, team_id, ..person })
        };
        let left = |member| RoomChange::Left { member, cause: HangupCause::NormalClearing, talked_ms: 0 };
        let by = MergedBy { extension_id: Some(ExtensionId(Uuid::from_u128(8))), ..MergedBy::default() };
        let cases = [
            (RoomChange::Merged { calls: [CallId(Uuid::nil()); 2], by }, "x8"),
            (RoomChange::Locked(true), ""),
            (seated(1), "t11 x1"),
            (seated(2), "t11 t12 x1 x2"),
            (left(1), "t11 t12 x1 x2"),
            (RoomChange::Locked(false), "t12 x2"),
            (seated(3), "t12 x2 x3"),
            (left(2), "t12 x2 x3"),
            (RoomChange::Ended, "x3"),
        ];
        let mut session_rows = opened();
        for (number, (what, expected)) in cases.into_iter().enumerate() {
            session_rows.fold(event(number as u64 + 2, what.clone()));
            // Earlier stored rows make no difference.
            let rows = session_rows.take();
            let event = rows.events[0].event().unwrap();
            let viewers = event.viewers.as_deref().cloned().unwrap_or_default();
            let teams = viewers.teams.iter().map(|team| format!("t{}", team.0.as_u128()));
            let extensions = viewers.extensions.iter().map(|own| format!("x{}", own.0.as_u128()));
            assert_eq!(teams.chain(extensions).collect::<Vec<_>>().join(" "), expected, "{what:?}");
        }
    }

    #[test]
    fn a_merge_takes_no_seq() {
        let mut session_rows = SessionRows::default();
        let merged = RoomChange::Merged { calls: [CallId(Uuid::nil()); 2], by: MergedBy::default() };
        let changes = [RoomChange::Opened { room_name: String::new() }, merged, joined(1), joined(2)];
        for (revision, what) in (1..).zip(changes) {
            session_rows.fold(event(revision, what));
        }
        let rows = session_rows.take();
        assert_eq!(rows.events.iter().map(|event| event.position).collect::<Vec<_>>(), [1, 2, 3]);
        assert_eq!(rows.events.iter().map(|event| event.seq).collect::<Vec<_>>(), [0, 1, 2]);
        assert_eq!(rows.sessions[0].events, 3);
    }

    #[test]
    fn invites_keep_their_places_and_are_cancelled_by_the_end() {
        let mut session_rows = opened();
        for (extension, state) in [
            (1, InviteState::Pending),
            (2, InviteState::Pending),
            (3, InviteState::Pending),
            (2, InviteState::Waiting),
            (1, InviteState::Joined),
            (3, InviteState::Declined),
        ] {
            session_rows.fold(event(2, invited(extension, state)));
        }
        let states = |rows: &Rows| -> Vec<(usize, InviteState, InviteReason)> {
            let row = |row: &InviteRow| (row.place, row.invite.state, row.invite.last_reason);
            rows.invites.iter().map(row).collect()
        };
        let none = InviteReason::None;
        let rows = session_rows.take();
        assert!(rows.events.is_empty());
        let expected = [
            (0, InviteState::Joined, none),
            (1, InviteState::Waiting, none),
            (2, InviteState::Declined, none),
        ];
        assert_eq!(states(&rows), expected);
        session_rows.end_all(at(5));
        let rows = session_rows.take();
        assert_eq!(states(&rows), [(1, InviteState::Cancelled, InviteReason::RoomEnded)]);
        assert_eq!((rows.sessions[0].ended_at, rows.events.len()), (Some(at(5)), 1));
    }

    /// The recorded length is valid until the room is recorded again.
    #[test]
    fn a_recording_is_under_way_until_it_is_complete() {
        let recorded = |bytes| RoomChange::Recorded { bytes, error: None };
        let mut session_rows = opened();
        let mut story = |changes: &[RoomChange]| {
            for what in changes {
                session_rows.fold(event(2, what.clone()));
            }
            let rows = session_rows.take();
            let bytes: Vec<u64> = rows.recordings.iter().map(|row| row.bytes).collect();
            (rows.sessions.first().map(|session| session.is_recording), bytes)
        };
        let (on, off) = (RoomChange::Recording(true), RoomChange::Recording(false));
        assert_eq!(story(std::slice::from_ref(&on)), (Some(true), vec![]));
        assert_eq!(story(std::slice::from_ref(&off)), (Some(true), vec![]), "not written out yet");
        assert_eq!(story(&[recorded(100)]), (Some(false), vec![100]));
        assert_eq!(story(&[on.clone(), off.clone(), recorded(200), on, off]), (Some(true), vec![]));
        assert_eq!(story(&[RoomChange::Ended]), (Some(true), vec![]));
        assert_eq!(story(&[recorded(300)]), (None, vec![300]));
    }

    #[test]
    fn an_event_that_there_is_no_room_for_changes_nothing_else() {
        let (mut loud, mut silent) = (opened(), opened());
        for (revision, what) in [
            joined(1),
            joined(2),
            RoomChange::Left { member: 2, cause: HangupCause::NormalClearing, talked_ms: 2_500 },
        ]
        .into_iter()
        .enumerate()
        {
            loud.fold(event(revision as u64, what.clone()));
            silent.fold_silently(event(revision as u64, what));
        }
        let (mut loud, quiet) = (loud.take(), silent.take());
        assert_eq!((silent.discarded(), quiet.events.len()), (3, 0));
        loud.events.clear();
        loud.sessions[0].events = 0;
        assert_eq!(loud, quiet);
    }
}
