//! Rooms that move between the nodes of a cluster: the state that the next node receives, and the members who take
//! their seats there again.
//!
//! A member who is seated again is not asked for a PIN, and a locked or full room admits it. While a room moves, the
//! absence of members who have not arrived yet has no effect: the room neither waits for its moderator nor ends
//! without one, and does not announce members.

use std::collections::HashMap;
use std::time::Duration;

use sidetone_model::ids::{LegId, RoomId};
use sidetone_model::room::event::{MemberChange, RoomChange};
use sidetone_model::room::{MemberGain, Role, RoomName};
use sidetone_model::time::Now;

use crate::conference::Output;
use crate::conference::channels::Channels;
use crate::conference::live::{Live, Member};
use crate::conference::live_rooms::LiveRooms;
use crate::conference::member_controls::Controls;
use crate::conference::outputs::{Alarm, Outputs};
use crate::conference::{Arrival, RoomDirectory};
use crate::room_state::{MemberState, RoomState};

/// The rooms that other nodes hand over to this one.
///
/// *Bounds*: [`ROOMS_MAX`], each for [`EXPECTED_MAX`].
#[derive(Debug, Default)]
pub(super) struct Expected(HashMap<RoomId, Coming>);

/// A room whose members are being moved to this node.
#[derive(Debug)]
struct Coming {
    state: RoomState,
    /// The ids of the members who have arrived, by seat name.
    seated: HashMap<String, u32>,
    /// The ids of members whose whisper's listener has not arrived yet, with the listener's seat name.
    whispers: Vec<(u32, String)>,
}

impl Expected {
    /// Expects the members of a room; returns `false` when too many rooms are expected.
    pub(super) fn expect(&mut self, now: Now, state: RoomState, outputs: &mut Outputs) -> bool {
        let room = state.room;
        if self.0.len() >= ROOMS_MAX && !self.0.contains_key(&room) {
            return false;
        }
        self.0.insert(room, Coming { state, seated: HashMap::new(), whispers: Vec::new() });
        outputs.set(Alarm::Expected(room), now.instant + EXPECTED_MAX);
        true
    }

    /// Whether the member with this seat name is expected.
    pub(super) fn has(&self, room: RoomId, seat: &str) -> bool {
        self.0.get(&room).is_some_and(|coming| coming.state.members.iter().any(|member| member.seat == seat))
    }

    /// Seats a member with its state from the other node; returns whether it was expected.
    pub(super) fn seat(
        &mut self,
        now: Now,
        who: &Arrival,
        room: RoomId,
        (live, directory): (&mut LiveRooms, &RoomDirectory),
        outputs: &mut Outputs,
    ) -> bool {
        let Some(coming) = self.0.get_mut(&room) else { return false };
        let is_it = |member: &&MemberState| Some(&member.seat) == who.returns.as_ref();
        let Some(member) = coming.state.members.iter().find(is_it).cloned() else { return false };
        coming.state.members.retain(|other| other.seat != member.seat);
        let Some(id) = live.take_kept_seat(now, who, (&coming.state, &member), directory, outputs) else {
            return false;
        };
        coming.seated.insert(member.seat, id);
        if let Some(listener) = member.whisper_to {
            coming.whispers.push((id, listener));
        }
        let Some(present) = live.get_mut(room.into()) else { return true };
        let found = coming.whispers.extract_if(.., |(_, to)| coming.seated.contains_key(to));
        let found: Vec<(u32, String)> = found.collect();
        for (whisperer, to) in found {
            present.whispers_to(now, whisperer, coming.seated.get(&to).copied(), outputs);
        }
        if coming.state.members.is_empty() {
            self.over(now, room, live, outputs);
        }
        true
    }

    /// Ends the wait for a room's members; the room goes on without those who have not arrived.
    pub(super) fn over(&mut self, now: Now, room: RoomId, live: &mut LiveRooms, outputs: &mut Outputs) {
        outputs.clear(Alarm::Expected(room));
        let Some(coming) = self.0.remove(&room) else { return };
        let Some(present) = live.get_mut(room.into()) else { return };
        for (whisperer, _) in coming.whispers {
            present.whispers_to(now, whisperer, None, outputs);
        }
        present.moves(now, false, outputs);
    }
}

impl LiveRooms {
    /// Seats a member with its state from another node, and opens the room for the first one; returns its id. `None` if
    /// this node has no such stored room, or no further room may open.
    fn take_kept_seat(
        &mut self,
        now: Now,
        who: &Arrival,
        (state, kept): (&RoomState, &MemberState),
        directory: &RoomDirectory,
        outputs: &mut Outputs,
    ) -> Option<u32> {
        let (name, leg) = (RoomName::from(state.room), who.leg);
        if self.get(name).is_none() {
            directory.room(state.room).filter(|_| self.takes_another())?;
            self.open(now, name, who, directory, outputs);
            self.get_mut(name)?.resume(now, state, outputs);
        }
        let room = self.get_mut(name)?;
        let role = if kept.is_moderator { Role::Moderator } else { Role::Participant };
        let (id, seat) = room.seat(now, who.clone(), role, kept.unasked, outputs);
        // A member that whispers is muted until its listener is here.
        let muted = seat.muted || kept.muted || kept.whisper_to.is_some();
        let (mix, organisation) = (room.mix, who.organisation);
        outputs.push(Output::Join { leg, mix, organisation, muted, hears: seat.hears });
        room.restore(now, id, kept, muted, outputs);
        room.note_roster(id, outputs);
        self.seat_is(leg, name, id);
        Some(id)
    }
}

impl Live {
    /// The state of the room for the next node; `seat` returns the name of a leg's seat.
    pub(super) fn state(&self, room: RoomId, seat: impl Fn(LegId) -> String) -> RoomState {
        let seat_of = |id: u32| self.members.get(&id).map(|member| seat(member.leg));
        let members = self.members.values().map(|member| {
            let Controls { mute_locked, deaf, on_hold, gain, whisper_to } = member.controls;
            MemberState {
                seat: seat(member.leg),
                is_moderator: member.role == Role::Moderator,
                unasked: member.unasked,
                tries: member.tries,
                muted: member.muted,
                by_all: member.by_all,
                mute_locked,
                deaf,
                on_hold,
                gain_db: gain.gain_db,
                automatic_gain: gain.automatic_gain,
                whisper_to: whisper_to.and_then(seat_of),
            }
        });
        RoomState {
            room,
            locked: self.locked,
            all_muted: self.all_muted,
            recording: self.recording,
            channels: self.channels.count(),
            members: members.collect(),
        }
    }

    /// Notes that the move of the room's members has begun or ended.
    pub(super) fn moves(&mut self, now: Now, moves: bool, outputs: &mut Outputs) {
        self.is_moving = moves;
        self.hush(now, outputs);
        self.settle(outputs);
    }

    /// Restores the state of the room, which has no members here yet.
    fn resume(&mut self, now: Now, state: &RoomState, outputs: &mut Outputs) {
        self.is_moving = true;
        self.channels = Channels::of(state.channels);
        if state.locked {
            self.locked = true;
            self.tell(now, RoomChange::Locked(true), outputs);
        }
        if state.all_muted {
            self.all_muted = true;
            self.tell(now, RoomChange::AllMuted(true), outputs);
        }
        if state.recording {
            self.record_silently(now, true, outputs);
        }
    }

    /// Restores the settings of a member who has just been seated, and whose leg is `muted`.
    fn restore(&mut self, now: Now, id: u32, kept: &MemberState, muted: bool, outputs: &mut Outputs) {
        let gain = MemberGain { gain_db: kept.gain_db, automatic_gain: kept.automatic_gain };
        let Some(member) = self.members.get_mut(&id) else { return };
        let was_muted = member.muted;
        (member.muted, member.by_all, member.tries) = (kept.muted, kept.by_all, kept.tries);
        member.seat.muted = muted;
        // The listener's id is set when the listener is seated; until then it is no member's id.
        let whisper_to = kept.whisper_to.is_some().then_some(NO_MEMBER);
        member.controls = Controls {
            mute_locked: kept.mute_locked,
            deaf: kept.deaf,
            on_hold: kept.on_hold,
            gain,
            whisper_to,
        };
        if was_muted != kept.muted {
            self.tell(now, RoomChange::Muted { member: id, muted: kept.muted }, outputs);
        }
        let changes = self.members.get(&id).map(|member| Controls { whisper_to: None, ..member.controls });
        for change in changes.into_iter().flat_map(Controls::changes) {
            self.tell_member(now, id, change, outputs);
        }
        self.settle(outputs);
    }

    /// Sets the listener of a whisper that waited for it; without a listener, the whisperer is muted.
    fn whispers_to(&mut self, now: Now, id: u32, listener: Option<u32>, outputs: &mut Outputs) {
        let is_open = |member: &&mut Member| member.controls.whisper_to == Some(NO_MEMBER);
        let Some(member) = self.members.get_mut(&id).filter(is_open) else { return };
        member.controls.whisper_to = listener;
        match listener {
            Some(_) => self.tell_member(now, id, MemberChange::Whisper(listener), outputs),
            None => drop(self.mute(now, id, true, outputs)),
        }
        self.settle(outputs);
    }
}

/// No member has this id.
const NO_MEMBER: u32 = 0;
/// Rooms that are expected at the same time.
const ROOMS_MAX: usize = 2_000;
/// How long the members of a room may take to arrive.
const EXPECTED_MAX: Duration = Duration::from_secs(8);
