//! A live room: its members, and their changes.
//!
//! Every change is published with the room's new revision, so that a reader of the events and a reader of the
//! room see the same state. One function computes from the state what a seat hears and whether it is muted.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use sidetone_model::call::HangupCause;
use sidetone_model::ids::{CallId, ConferenceSessionId, ExtensionId, LegId, OrganisationId, TeamId, TrunkId};
use sidetone_model::prompt::Prompt;
use sidetone_model::room::event::{MemberChange, Person, RoomChange, RoomEvent};
use sidetone_model::room::{
    DialKind, DialRequest, InviteReason, InviteState, LiveMember, LiveRoom, MemberGain, PlayingSound, Role,
    RoomName,
};
use sidetone_model::time::{Now, Timestamp};

use crate::conference::channels::Channels;
use crate::conference::invitation::Invitation;
use crate::conference::keypad::Keypad;
use crate::conference::member_controls::Controls;
use crate::conference::outputs::Outputs;
use crate::conference::{Arrival, DeviceId, Hears, MixId, Output, PinCaller};

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
    pub(super) invites: Vec<Invitation>,
    /// When the last join and the last leave were announced.
    pub(super) announced: [Option<Announced>; 2],
    /// Recordings that were started and whose end is not reported yet.
    pub(super) recordings: usize,
    /// The sound that a program plays.
    pub(super) playing: Option<PlayingSound>,
    pub(super) channels: Channels,
    /// Whether its members are being moved to another node, or from one.
    pub(super) is_moving: bool,
}

/// Settings of the stored room that stay fixed while the room is live.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Rules {
    pub(super) waits: bool,
    pub(super) ends: bool,
}

/// The last announcement of joins, or of leaves.
#[derive(Clone, Copy, Debug)]
pub(super) struct Announced {
    pub(super) at: Instant,
    pub(super) by_name: bool,
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
    /// How long it has talked, without the current talk spurt.
    talked: Duration,
    /// When the current talk spurt began.
    talks_since: Option<Instant>,
    pub(super) held: bool,
    /// Sends neither RTP nor RTCP.
    pub(super) silent: bool,
    /// The registered phone.
    pub(super) device: Option<DeviceId>,
    /// Seated without a PIN prompt.
    pub(super) unasked: bool,
    /// Wrong PINs keyed in the room.
    pub(super) tries: u8,
    /// A PIN keyed in the room whose result is due later, because the room or the trunk is slow.
    pub(super) claim: Option<String>,
    /// The trunk that the call came by.
    pub(super) trunk: Option<TrunkId>,
    pub(super) keypad: Keypad,
    /// The settings made by controls.
    pub(super) controls: Controls,
    /// The seat as the media engine last received it.
    pub(super) seat: Seat,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Seat {
    pub(super) muted: bool,
    pub(super) hears: Hears,
    gain: MemberGain,
    /// The only leg that hears it.
    whisper_to: Option<LegId>,
    /// Whether it is on the left channel of a recording with two.
    left: bool,
}

impl Member {
    /// The identity for which wrong PINs are counted.
    pub(super) fn counted(&self) -> PinCaller {
        PinCaller::new(self.extension, &self.number)
    }
}

impl Live {
    /// Opens a room without members; the caller of this function seats the first member immediately.
    pub(super) fn open(
        now: Now,
        name: RoomName,
        organisation: OrganisationId,
        title: String,
        rules: Rules,
        outputs: &mut Outputs,
    ) -> Live {
        let mut room = Live {
            name,
            organisation,
            title: title.clone(),
            session: outputs.session(now),
            mix: outputs.mix(),
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
            announced: [None; 2],
            recordings: 0,
            playing: None,
            channels: Channels::default(),
            is_moving: false,
        };
        room.tell(now, RoomChange::Opened { room_name: title }, outputs);
        room
    }

    /// Publishes a change.
    pub(super) fn tell(&mut self, now: Now, what: RoomChange, outputs: &mut Outputs) {
        self.revision += 1;
        outputs.push(Output::Event(RoomEvent {
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
        outputs: &mut Outputs,
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
            talked: Duration::ZERO,
            talks_since: None,
            held: false,
            silent: who.is_silent,
            device: who.device,
            unasked,
            tries: 0,
            claim: None,
            trunk: who.trunk,
            keypad: Keypad::default(),
            controls: Controls::default(),
            seat: Seat {
                muted,
                hears: Hears::Room,
                gain: MemberGain::default(),
                whisper_to: None,
                left: false,
            },
        };
        self.add(now, member, outputs)
    }

    fn add(&mut self, now: Now, mut member: Member, outputs: &mut Outputs) -> (u32, Seat) {
        self.moderators += usize::from(member.role == Role::Moderator);
        // A leg joins a mix without gain and is heard by all. `settle` sets the rest; until then, a member who
        // whispers is muted.
        let seat = member.seat_while(self.waits());
        let muted = seat.muted || member.controls.whisper_to.is_some();
        member.seat = Seat { muted, gain: MemberGain::default(), left: false, ..seat };
        let (id, seat, person) = (member.id, member.seat, member.person());
        self.members.insert(id, member);
        self.tell(now, RoomChange::Joined(person), outputs);
        (id, seat)
    }

    /// Gives a member's seat to another call of the same phone; returns the leg of the lost call, and the seat.
    pub(super) fn reseat(
        &mut self,
        now: Now,
        id: u32,
        who: Arrival,
        role: Role,
        outputs: &mut Outputs,
    ) -> Option<(LegId, Seat)> {
        let before = self.unseat(now, id, HangupCause::MediaTimeout, outputs)?;
        let lost = before.leg;
        let role = if before.role == Role::Moderator { before.role } else { role };
        let joins_muted = self.all_muted && role == Role::Participant;
        let muted = before.muted && !(before.by_all && role == Role::Moderator);
        // A moderator ends every mute with a key.
        let mute_locked = before.controls.mute_locked && role == Role::Participant;
        let controls = Controls { mute_locked, ..before.controls };
        let member = Member {
            leg: who.leg,
            call: who.call,
            number: who.number,
            name: who.name,
            role,
            muted,
            by_all: muted && joins_muted && !controls.mute_locked,
            talking: false,
            held: false,
            silent: who.is_silent,
            claim: None,
            keypad: Keypad::default(),
            controls,
            ..before
        };
        let (_, seat) = self.add(now, member, outputs);
        if muted != joins_muted {
            self.tell(now, RoomChange::Muted { member: id, muted }, outputs);
        }
        self.retell(now, id, outputs);
        Some((lost, seat))
    }

    /// Removes a member.
    pub(super) fn unseat(
        &mut self,
        now: Now,
        id: u32,
        cause: HangupCause,
        outputs: &mut Outputs,
    ) -> Option<Member> {
        let mut member = self.members.remove(&id)?;
        member.talks(now.instant, false);
        self.moderators -= usize::from(member.role == Role::Moderator);
        let talked_ms = u64::try_from(member.talked.as_millis()).unwrap_or(u64::MAX);
        self.tell(now, RoomChange::Left { member: id, cause, talked_ms }, outputs);
        Some(member)
    }

    /// Makes a participant a moderator under a new member id; returns the former member and the new id.
    pub(super) fn promote(&mut self, now: Now, id: u32, outputs: &mut Outputs) -> Option<(Person, u32)> {
        let mut member = self.unseat(now, id, HangupCause::NormalClearing, outputs)?;
        let before = member.person();
        let told = member.seat;
        // A moderator ends every mute with a key.
        member.controls.mute_locked = false;
        self.last_member += 1;
        member.id = self.last_member;
        member.role = Role::Moderator;
        member.joined_at = now.wall;
        member.talked = Duration::ZERO;
        // A moderator joins unmuted. A member who was muted individually stays muted, and that is published.
        let was_muted = std::mem::take(&mut member.muted) && !member.by_all;
        member.by_all = false;
        let (new, _) = self.add(now, member, outputs);
        if let Some(member) = self.members.get_mut(&new) {
            member.seat = told;
            member.muted = was_muted;
        }
        if was_muted {
            self.tell(now, RoomChange::Muted { member: new, muted: true }, outputs);
        }
        self.retell(now, new, outputs);
        self.listener_is(now, id, new, outputs);
        self.settle(outputs);
        Some((before, new))
    }

    /// Brings the media engine in line with the state.
    pub(super) fn settle(&mut self, outputs: &mut Outputs) {
        let waits = self.waits();
        let listeners = self.listeners();
        let (channels, is_moderated) = (self.channels, self.is_moderated());
        let first = self.members.keys().next().copied();
        for member in self.members.values_mut() {
            let (leg, told, mut seat) = (member.leg, member.seat, member.seat_while(waits));
            seat.whisper_to = listeners.get(&member.id).copied();
            // Without a listener, a whisper is heard by no member.
            seat.muted |= member.controls.whisper_to.is_some() && seat.whisper_to.is_none();
            seat.left = channels.is_left(member.role, is_moderated, first == Some(member.id));
            member.seat = seat;
            // A whisper is never heard by the other members: mute before it ends, unmute after it has begun.
            if seat.muted && !told.muted {
                outputs.push(Output::Mute(leg, true));
            }
            if told.whisper_to != seat.whisper_to {
                outputs.push(Output::Whisper(leg, seat.whisper_to));
            }
            if told.muted && !seat.muted {
                outputs.push(Output::Mute(leg, false));
            }
            if told.hears != seat.hears {
                outputs.push(Output::Hear(leg, seat.hears));
            }
            if told.gain != seat.gain {
                outputs.push(Output::Gain(leg, seat.gain));
            }
            if told.left != seat.left {
                outputs.push(Output::Left(leg, seat.left));
            }
        }
    }

    /// Publishes the controls of a member who joined again, under another id or on another call.
    pub(super) fn retell(&mut self, now: Now, id: u32, outputs: &mut Outputs) {
        let Some(controls) = self.members.get(&id).map(|member| member.controls) else { return };
        for change in controls.changes() {
            self.tell_member(now, id, change, outputs);
        }
    }

    /// Redirects whispers to a member's new id.
    pub(super) fn listener_is(&mut self, now: Now, before: u32, after: u32, outputs: &mut Outputs) {
        for id in self.whisperers_to(before) {
            if let Some(member) = self.members.get_mut(&id) {
                member.controls.whisper_to = Some(after);
            }
            self.tell_member(now, id, MemberChange::Whisper(Some(after)), outputs);
        }
    }

    /// The listener's leg for each member who whispers.
    fn listeners(&self) -> BTreeMap<u32, LegId> {
        let listener = |member: &Member| Some(self.members.get(&member.controls.whisper_to?)?.leg);
        self.members.values().filter_map(|member| Some((member.id, listener(member)?))).collect()
    }

    /// The members who whisper to this one.
    pub(super) fn whisperers_to(&self, listener: u32) -> Vec<u32> {
        let whispers = |member: &&Member| member.controls.whisper_to == Some(listener);
        self.members.values().filter(whispers).map(|member| member.id).collect()
    }

    /// Publishes a change of what a member hears, or how it is heard.
    pub(super) fn tell_member(&mut self, now: Now, member: u32, change: MemberChange, outputs: &mut Outputs) {
        self.tell(now, RoomChange::Member { member, change }, outputs);
    }

    /// Clears "talking" of members who are not heard.
    pub(super) fn hush(&mut self, now: Now, outputs: &mut Outputs) {
        let waits = self.waits();
        let silent = |member: &&mut Member| member.talking && !member.is_heard(waits);
        let hushed: Vec<_> = self
            .members
            .values_mut()
            .filter(silent)
            .map(|member| {
                member.talks(now.instant, false);
                member.id
            })
            .collect();
        for member in hushed {
            self.tell(now, RoomChange::Talking { member, talking: false }, outputs);
        }
    }

    /// Mutes or unmutes a member; returns whether that changed anything.
    pub(super) fn mute(&mut self, now: Now, id: u32, muted: bool, outputs: &mut Outputs) -> bool {
        let Some(member) = self.members.get_mut(&id) else { return false };
        if std::mem::replace(&mut member.muted, muted) == muted {
            return false;
        }
        member.by_all = false;
        let was_locked = std::mem::take(&mut member.controls.mute_locked);
        self.tell(now, RoomChange::Muted { member: id, muted }, outputs);
        if was_locked {
            self.tell_member(now, id, MemberChange::MuteLock(false), outputs);
        }
        self.hush(now, outputs);
        self.settle(outputs);
        true
    }

    /// Toggles "mute all", which leaves moderators out; returns the new state.
    pub(super) fn mute_all(&mut self, now: Now, outputs: &mut Outputs) -> bool {
        self.all_muted = !self.all_muted;
        let on = self.all_muted;
        for member in self.members.values_mut() {
            if on && member.role == Role::Participant && !member.muted {
                (member.muted, member.by_all) = (true, true);
            } else if !on && std::mem::take(&mut member.by_all) {
                member.muted = false;
            }
        }
        self.tell(now, RoomChange::AllMuted(on), outputs);
        self.hush(now, outputs);
        self.settle(outputs);
        self.say(vec![if on { Prompt::AllMuted } else { Prompt::AllUnmuted }], outputs);
        on
    }

    /// Locks or unlocks the room.
    pub(super) fn lock(&mut self, now: Now, locked: bool, outputs: &mut Outputs) {
        if std::mem::replace(&mut self.locked, locked) != locked {
            self.tell(now, RoomChange::Locked(locked), outputs);
            self.say(vec![if locked { Prompt::Locked } else { Prompt::Unlocked }], outputs);
        }
    }

    /// Starts or stops recording, which all members hear.
    pub(super) fn record(&mut self, now: Now, on: bool, outputs: &mut Outputs) {
        if self.recording != on {
            self.record_silently(now, on, outputs);
            self.say(vec![if on { Prompt::RecordingOn } else { Prompt::RecordingOff }], outputs);
        }
    }

    /// Starts or stops recording without a prompt.
    pub(super) fn record_silently(&mut self, now: Now, on: bool, outputs: &mut Outputs) {
        self.recording = on;
        if on {
            self.recordings += 1;
            let (mix, session, organisation) = (self.mix, self.session, self.organisation);
            if self.channels.have_sides() {
                if self.channels.fix() {
                    self.tell(now, RoomChange::RecordingChannels(self.channels.count()), outputs);
                }
                outputs.push(Output::RecordChannels(mix, session, organisation));
            } else {
                self.channels.fix();
                outputs.push(Output::Record(mix, session, organisation));
            }
        } else {
            outputs.push(Output::StopRecording(self.mix));
        }
        self.tell(now, RoomChange::Recording(on), outputs);
    }

    /// Handles the end of a recording.
    pub(super) fn recorded(&mut self, now: Now, bytes: u64, error: Option<String>, outputs: &mut Outputs) {
        self.recordings = self.recordings.saturating_sub(1);
        // No started recording is left, so the present one ended by itself.
        if self.recording && self.recordings == 0 {
            self.recording = false;
            self.tell(now, RoomChange::Recording(false), outputs);
            self.say(vec![Prompt::RecordingOff], outputs);
        }
        self.tell(now, RoomChange::Recorded { bytes, error }, outputs);
    }

    /// Records whether a member talks; a member who is not heard never counts as talking.
    pub(super) fn talking(&mut self, now: Now, id: u32, talking: bool, outputs: &mut Outputs) {
        let waits = self.waits();
        let Some(member) = self.members.get_mut(&id) else { return };
        if talking && !member.is_heard(waits) || member.talking == talking {
            return;
        }
        member.talks(now.instant, talking);
        self.tell(now, RoomChange::Talking { member: id, talking }, outputs);
    }

    /// Plays prompts to all members who hear the room.
    pub(super) fn say(&self, prompts: Vec<Prompt>, outputs: &mut Outputs) {
        if !self.members.is_empty() {
            outputs.push(Output::PlayAll(self.mix, self.organisation, prompts));
        }
    }

    /// Whether participants wait for a moderator.
    pub(super) fn waits(&self) -> bool {
        self.rules.waits && self.moderators == 0 && !self.is_moving
    }

    /// Whether the extension of that number is in the room.
    pub(super) fn has_extension(&self, request: &DialRequest) -> bool {
        let is_it = |member: &Member| member.extension.is_some() && member.number == request.target;
        request.kind == DialKind::Extension && self.members.values().any(is_it)
    }

    /// Returns the leg of the only member.
    pub(super) fn only_member(&self) -> Option<LegId> {
        let mut members = self.members.values();
        members.next().filter(|_| members.next().is_none()).map(|member| member.leg)
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
            playing: self.playing,
            run_seconds: u64::try_from(now.since(self.started_at) / 1_000_000).unwrap_or(0),
            revision: self.revision,
            members: self.members.values().map(|member| member.view(self.waits())).collect(),
        }
    }

    /// Returns the invitation of a default member.
    pub(super) fn invite(&self, extension: ExtensionId) -> Option<&Invitation> {
        self.invites.iter().find(|invite| invite.who.extension_id == extension)
    }

    /// Returns the invitation of a default member.
    pub(super) fn invite_mut(&mut self, extension: ExtensionId) -> Option<&mut Invitation> {
        self.invites.iter_mut().find(|invite| invite.who.extension_id == extension)
    }

    /// Sets the state of an invitation; publishes it if it changed.
    pub(super) fn invite_is(
        &mut self,
        now: Now,
        extension: ExtensionId,
        state: InviteState,
        reason: InviteReason,
        outputs: &mut Outputs,
    ) {
        let Some(invite) = self.invite_mut(extension) else { return };
        if (invite.state, invite.reason) == (state, reason) {
            return;
        }
        (invite.state, invite.reason) = (state, reason);
        let published = invite.published();
        self.tell(now, RoomChange::Invited(published), outputs);
    }

    /// Plays the state of the room to a member who was just seated.
    pub(super) fn greet(&self, id: u32, leg: LegId, outputs: &mut Outputs) {
        let Some(member) = self.members.get(&id) else { return };
        let is_stored = matches!(self.name, RoomName::Stored(_));
        let waits = self.waits() && member.role == Role::Participant;
        let is_alone = is_stored && !waits && self.members.len() == 1;
        let words = [
            (waits, Prompt::WaitForModerator),
            (is_alone, Prompt::Alone),
            (member.muted && !self.all_muted, Prompt::Muted),
            (member.muted && self.all_muted, Prompt::AllMuted),
            (self.recording, Prompt::RecordingOn),
        ];
        let prompts: Vec<_> =
            words.into_iter().filter_map(|(holds, prompt)| holds.then_some(prompt)).collect();
        if !prompts.is_empty() {
            outputs.play(leg, prompts);
        }
    }
}

impl Member {
    /// Starts or stops the count of its talk time.
    fn talks(&mut self, now: Instant, talking: bool) {
        self.talking = talking;
        if let Some(since) = self.talks_since.take() {
            self.talked += now.saturating_duration_since(since);
        }
        self.talks_since = talking.then_some(now);
    }

    /// Returns the member as events show it.
    pub(super) fn person(&self) -> Person {
        Person {
            member: self.id,
            name: self.name.clone(),
            number: self.number.clone(),
            role: self.role,
            extension_id: self.extension,
            team_id: self.team,
            call_uuid: self.call,
            leg: self.leg,
            joined_at: self.joined_at,
        }
    }

    /// The seat, given whether participants wait for a moderator; without the listener of a whisper.
    fn seat_while(&self, waits: bool) -> Seat {
        let waits = self.controls.on_hold || waits && self.role == Role::Participant;
        let hears = match (waits, self.controls.deaf) {
            (true, _) => Hears::Music,
            (false, true) => Hears::Nothing,
            (false, false) => Hears::Room,
        };
        Seat { muted: self.muted || waits, hears, gain: self.controls.gain, whisper_to: None, left: false }
    }

    fn is_heard(&self, waits: bool) -> bool {
        !self.held && !self.seat_while(waits).muted
    }

    fn view(&self, waits: bool) -> LiveMember {
        let Controls { mute_locked, deaf, on_hold, gain, whisper_to } = self.controls;
        LiveMember {
            id: self.id,
            call_uuid: self.call,
            number: self.number.clone(),
            name: self.name.clone(),
            role: self.role,
            muted: self.muted,
            mute_locked,
            deaf,
            on_hold,
            waiting: waits && self.role == Role::Participant,
            gain,
            // 0 stands for a listener who has not joined yet; it is no member's id.
            whisper_to: whisper_to.filter(|listener| *listener > 0),
            talking: self.talking,
            joined_at: self.joined_at,
            extension_id: self.extension,
            team_id: self.team,
        }
    }
}
