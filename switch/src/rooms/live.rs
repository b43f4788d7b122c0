//! A live room: its members, and their changes.
//!
//! Every change is published with the room's new revision, so that readers of the news and readers of the
//! room agree. What a seat hears, and whether it is muted, is computed from the state in one place.

use std::collections::BTreeMap;

use sidetone_model::ids::{CallId, ConferenceSessionId, ExtensionId, LegId, OrganisationId, TeamId, TrunkId};
use sidetone_model::prompt::Prompt;
use sidetone_model::room::news::{Person, RoomChange, RoomNews};
use sidetone_model::room::{LiveMember, LiveRoom, Role, RoomName};
use sidetone_model::time::{Now, Timestamp};

use crate::rooms::desk::Desk;
use crate::rooms::invites::Ringing;
use crate::rooms::keypad::Keypad;
use crate::rooms::{Arrival, Hears, MixId, Output, Who};

/// A room with at least one member.
#[derive(Debug)]
pub(super) struct Live {
    pub(super) name: RoomName,
    pub(super) organisation: OrganisationId,
    pub(super) title: String,
    pub(super) session: ConferenceSessionId,
    pub(super) mix: MixId,
    pub(super) started_at: Timestamp,
    pub(super) rules: Rules,
    pub(super) locked: bool,
    pub(super) recording: bool,
    pub(super) all_muted: bool,
    pub(super) revision: u64,
    pub(super) members: BTreeMap<u32, Member>,
    last_member: u32,
    moderators: usize,
    pub(super) invites: Vec<Ringing>,
    /// Recordings that were started and whose end is not reported yet.
    pub(super) recordings: usize,
}

/// Settings of the stored room that stay fixed while the room is live.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Rules {
    pub(super) waits: bool,
    pub(super) ends: bool,
}

/// A member of a room.
#[derive(Debug)]
pub(super) struct Member {
    pub(super) id: u32,
    pub(super) leg: LegId,
    pub(super) call: CallId,
    pub(super) number: String,
    pub(super) name: String,
    pub(super) role: Role,
    pub(super) extension: Option<ExtensionId>,
    pub(super) team: Option<TeamId>,
    pub(super) joined_at: Timestamp,
    pub(super) muted: bool,
    /// Muted by "mute all", and therefore unmuted with it.
    pub(super) by_all: bool,
    pub(super) talking: bool,
    pub(super) held: bool,
    /// Seated without being asked for a PIN.
    pub(super) unasked: bool,
    /// Wrong PINs keyed in the room.
    pub(super) tries: u8,
    /// A PIN keyed in the room whose result is due later, because the room or the trunk is slow.
    pub(super) claim: Option<String>,
    /// The trunk that the call came by.
    pub(super) trunk: Option<TrunkId>,
    pub(super) keypad: Keypad,
    /// The seat as the media engine last received it.
    seat: Seat,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Seat {
    pub(super) muted: bool,
    pub(super) hears: Hears,
}

impl Member {
    /// The identity for which wrong PINs are counted.
    pub(super) fn counted(&self) -> Who {
        Who::new(self.extension, &self.number)
    }
}

impl Live {
    /// Opens a room without members; the caller seats the first member at once.
    pub(super) fn open(
        now: Now,
        name: RoomName,
        organisation: OrganisationId,
        title: String,
        rules: Rules,
        desk: &mut Desk,
    ) -> Live {
        let mut room = Live {
            name,
            organisation,
            title: title.clone(),
            session: desk.session(now),
            mix: desk.mix(),
            started_at: now.wall,
            rules,
            locked: false,
            recording: false,
            all_muted: false,
            revision: 0,
            members: BTreeMap::new(),
            last_member: 0,
            moderators: 0,
            invites: Vec::new(),
            recordings: 0,
        };
        room.tell(now, RoomChange::Opened { room_name: title }, desk);
        room
    }

    /// Publishes a change.
    pub(super) fn tell(&mut self, now: Now, what: RoomChange, desk: &mut Desk) {
        self.revision += 1;
        desk.push(Output::News(RoomNews {
            organisation_id: self.organisation,
            room: self.name,
            room_id: self.name.room_id(),
            session: self.session,
            at: now.wall,
            revision: self.revision,
            what,
        }));
    }

    /// Adds a member; returns its id and seat. The caller passes the seat to the media engine.
    pub(super) fn seat(
        &mut self,
        now: Now,
        who: Arrival,
        role: Role,
        unasked: bool,
        desk: &mut Desk,
    ) -> (u32, Seat) {
        self.last_member += 1;
        let muted = self.all_muted && role == Role::Participant;
        let member = Member {
            id: self.last_member,
            leg: who.leg,
            call: who.call,
            number: who.number,
            name: who.name,
            role,
            extension: who.extension,
            team: who.team,
            joined_at: now.wall,
            muted,
            by_all: muted,
            talking: false,
            held: false,
            unasked,
            tries: 0,
            claim: None,
            trunk: who.trunk,
            keypad: Keypad::default(),
            seat: Seat { muted, hears: Hears::Room },
        };
        self.add(now, member, desk)
    }

    fn add(&mut self, now: Now, mut member: Member, desk: &mut Desk) -> (u32, Seat) {
        self.moderators += usize::from(member.role == Role::Moderator);
        member.seat = self.seat_of(&member);
        let (id, seat, person) = (member.id, member.seat, member.person());
        self.members.insert(id, member);
        self.tell(now, RoomChange::Joined(person), desk);
        (id, seat)
    }

    /// Removes a member.
    pub(super) fn unseat(&mut self, now: Now, id: u32, desk: &mut Desk) -> Option<Member> {
        let member = self.members.remove(&id)?;
        self.moderators -= usize::from(member.role == Role::Moderator);
        self.tell(now, RoomChange::Left { member: id }, desk);
        Some(member)
    }

    /// Makes a participant a moderator under a new member id; returns the former member and the new id.
    pub(super) fn promote(&mut self, now: Now, id: u32, desk: &mut Desk) -> Option<(Person, u32)> {
        let mut member = self.unseat(now, id, desk)?;
        let before = member.person();
        let told = member.seat;
        self.last_member += 1;
        member.id = self.last_member;
        member.role = Role::Moderator;
        member.joined_at = now.wall;
        member.talking = false;
        // A moderator joins unmuted. A member who was muted individually stays muted, and that is published.
        let was_muted = std::mem::take(&mut member.muted) && !member.by_all;
        member.by_all = false;
        let (new, _) = self.add(now, member, desk);
        if let Some(member) = self.members.get_mut(&new) {
            member.seat = told;
            member.muted = was_muted;
        }
        if was_muted {
            self.tell(now, RoomChange::Muted { member: new, muted: true }, desk);
        }
        self.settle(desk);
        Some((before, new))
    }

    /// Brings the media engine in line with the state.
    pub(super) fn settle(&mut self, desk: &mut Desk) {
        let waits = self.waits();
        for member in self.members.values_mut() {
            let (told, seat) = (member.seat, member.seat_while(waits));
            member.seat = seat;
            if told.muted != seat.muted {
                desk.push(Output::Mute(member.leg, seat.muted));
            }
            if told.hears != seat.hears {
                desk.push(Output::Hear(member.leg, seat.hears));
            }
        }
    }

    /// Clears "talking" of members who are not heard.
    pub(super) fn hush(&mut self, now: Now, desk: &mut Desk) {
        let waits = self.waits();
        let silent = |member: &&mut Member| member.talking && !member.is_heard(waits);
        let hushed: Vec<_> = self
            .members
            .values_mut()
            .filter(silent)
            .map(|member| {
                member.talking = false;
                member.id
            })
            .collect();
        for member in hushed {
            self.tell(now, RoomChange::Talking { member, talking: false }, desk);
        }
    }

    /// Mutes or unmutes a member; returns whether that changed anything.
    pub(super) fn mute(&mut self, now: Now, id: u32, muted: bool, desk: &mut Desk) -> bool {
        let Some(member) = self.members.get_mut(&id) else { return false };
        if std::mem::replace(&mut member.muted, muted) == muted {
            return false;
        }
        member.by_all = false;
        self.tell(now, RoomChange::Muted { member: id, muted }, desk);
        self.hush(now, desk);
        self.settle(desk);
        true
    }

    /// Toggles "mute all", which leaves moderators out; returns the new state.
    pub(super) fn mute_all(&mut self, now: Now, desk: &mut Desk) -> bool {
        self.all_muted = !self.all_muted;
        let on = self.all_muted;
        for member in self.members.values_mut() {
            if on && member.role == Role::Participant && !member.muted {
                (member.muted, member.by_all) = (true, true);
            } else if !on && std::mem::take(&mut member.by_all) {
                member.muted = false;
            }
        }
        self.tell(now, RoomChange::AllMuted(on), desk);
        self.hush(now, desk);
        self.settle(desk);
        self.say(vec![if on { Prompt::AllMuted } else { Prompt::AllUnmuted }], desk);
        on
    }

    /// Locks or unlocks the room.
    pub(super) fn lock(&mut self, now: Now, locked: bool, desk: &mut Desk) {
        if std::mem::replace(&mut self.locked, locked) != locked {
            self.tell(now, RoomChange::Locked(locked), desk);
            self.say(vec![if locked { Prompt::Locked } else { Prompt::Unlocked }], desk);
        }
    }

    /// Starts or stops recording.
    pub(super) fn record(&mut self, now: Now, on: bool, desk: &mut Desk) {
        if self.recording == on {
            return;
        }
        self.recording = on;
        if on {
            self.recordings += 1;
            desk.push(Output::Record(self.mix, self.session, self.organisation));
        } else {
            desk.push(Output::StopRecording(self.mix));
        }
        self.tell(now, RoomChange::Recording(on), desk);
        self.say(vec![if on { Prompt::RecordingOn } else { Prompt::RecordingOff }], desk);
    }

    /// Handles the end of a recording.
    pub(super) fn recorded(&mut self, now: Now, bytes: u64, error: Option<String>, desk: &mut Desk) {
        self.recordings = self.recordings.saturating_sub(1);
        // No started recording is left, so the present one ended by itself.
        if self.recording && self.recordings == 0 {
            self.recording = false;
            self.tell(now, RoomChange::Recording(false), desk);
            self.say(vec![Prompt::RecordingOff], desk);
        }
        self.tell(now, RoomChange::Recorded { bytes, error }, desk);
    }

    /// Records whether a member talks; a member who is not heard never counts as talking.
    pub(super) fn talking(&mut self, now: Now, id: u32, talking: bool, desk: &mut Desk) {
        let waits = self.waits();
        let Some(member) = self.members.get_mut(&id) else { return };
        if talking && !member.is_heard(waits) || member.talking == talking {
            return;
        }
        member.talking = talking;
        self.tell(now, RoomChange::Talking { member: id, talking }, desk);
    }

    /// Plays prompts to all who hear the room.
    pub(super) fn say(&self, prompts: Vec<Prompt>, desk: &mut Desk) {
        if !self.members.is_empty() {
            desk.push(Output::PlayAll(self.mix, self.organisation, prompts));
        }
    }

    /// Whether participants wait for a moderator.
    pub(super) fn waits(&self) -> bool {
        self.rules.waits && self.moderators == 0
    }

    /// Whether a moderator is in it.
    pub(super) fn is_moderated(&self) -> bool {
        self.moderators > 0
    }

    /// Returns the room as the API shows it.
    pub(super) fn view(&self, now: Timestamp) -> LiveRoom {
        LiveRoom {
            room: self.name,
            organisation_id: self.organisation,
            room_id: self.name.room_id(),
            room_name: self.title.clone(),
            session_id: self.session,
            started_at: self.started_at,
            locked: self.locked,
            recording: self.recording,
            all_muted: self.all_muted,
            run_seconds: u64::try_from(now.since(self.started_at) / 1_000_000).unwrap_or(0),
            revision: self.revision,
            members: self.members.values().map(Member::view).collect(),
        }
    }

    fn seat_of(&self, member: &Member) -> Seat {
        member.seat_while(self.waits())
    }
}

impl Member {
    /// Returns the member as the news show it.
    pub(super) fn person(&self) -> Person {
        Person {
            member: self.id,
            name: self.name.clone(),
            number: self.number.clone(),
            role: self.role,
            extension_id: self.extension,
            call_uuid: self.call,
            leg: self.leg,
            joined_at: self.joined_at,
        }
    }

    fn seat_while(&self, waits: bool) -> Seat {
        if waits && self.role == Role::Participant {
            Seat { muted: true, hears: Hears::Music }
        } else {
            Seat { muted: self.muted, hears: Hears::Room }
        }
    }

    fn is_heard(&self, waits: bool) -> bool {
        !self.held && !self.seat_while(waits).muted
    }

    fn view(&self) -> LiveMember {
        LiveMember {
            id: self.id,
            call_uuid: self.call,
            number: self.number.clone(),
            name: self.name.clone(),
            role: self.role,
            muted: self.muted,
            talking: self.talking,
            joined_at: self.joined_at,
            extension_id: self.extension,
            team_id: self.team,
        }
    }
}
