//! State shared by all parts of the machine: outputs, timers, random numbers and counters.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::time::Instant;

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use sidetone_model::ids::{CallId, ConferenceSessionId, ExtensionId, LegId, OrganisationId, RoomId};
use sidetone_model::pin_guessing::PinGuessing;
use sidetone_model::prompt::Prompt;
use sidetone_model::recording::RecordingFailed;
use sidetone_model::room::RoomName;
use sidetone_model::time::Now;

use crate::conference::pin_attempts::{Attempt, Reached};
use crate::conference::{DialId, MixId, Output, PinCaller};

/// The purpose of a timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Alarm {
    /// The time limit for the last party of merged calls.
    Alone(RoomName),
    /// For a caller on the way in: a pause between digits, silence, or a PIN result that is due.
    Caller(LegId),
    /// The time limit for the members of a room that another node has handed over to arrive.
    Expected(RoomId),
    /// A default member is to be rung again.
    Invite(RoomName, ExtensionId),
    /// The result of a PIN that a member keyed in the room is due.
    Claim(LegId),
    /// The time limit to look up a caller's name, or for one of the steps to record it.
    Name(LegId),
    /// A recorder has not reported the end of a recording.
    Recording(ConferenceSessionId),
    /// The sound that is played into a room is over.
    Sound(RoomName),
}

/// Outputs, timers, the random generator and the counters.
#[derive(Debug)]
pub(super) struct Outputs {
    outputs: VecDeque<Output>,
    due: BTreeSet<(Instant, Alarm)>,
    alarms: HashMap<Alarm, Instant>,
    rng: StdRng,
    /// For ids of calls.
    calls: StdRng,
    last_token: u64,
    last_dial: u64,
}

impl Outputs {
    pub(super) fn new(seed: u64) -> Self {
        Outputs {
            outputs: VecDeque::new(),
            due: BTreeSet::new(),
            alarms: HashMap::new(),
            rng: StdRng::seed_from_u64(seed),
            calls: StdRng::seed_from_u64(!seed),
            last_token: 0,
            last_dial: 0,
        }
    }

    pub(super) fn push(&mut self, output: Output) {
        self.outputs.push_back(output);
    }

    pub(super) fn poll(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    /// Plays prompts to a leg; returns the token that [`Input::Played`](crate::conference::Input::Played) will
    /// carry.
    pub(super) fn play(&mut self, leg: LegId, prompts: Vec<Prompt>) -> u64 {
        self.last_token += 1;
        self.push(Output::Play(leg, prompts, self.last_token));
        self.last_token
    }

    /// Reports the limits on wrong PINs that an attempt reached.
    pub(super) fn report_guessing(
        &mut self,
        now: Now,
        attempt: &Attempt,
        number: &str,
        reached: Vec<Reached>,
    ) {
        for Reached { limit, failures, window } in reached {
            self.push(Output::PinGuessing(PinGuessing {
                organisation_id: attempt.organisation,
                room_id: attempt.room,
                limit,
                number: number.to_owned(),
                extension_id: match attempt.who {
                    PinCaller::Extension(extension) => Some(extension),
                    PinCaller::Number(_) => None,
                },
                trunk_id: attempt.trunk,
                failures: u32::try_from(failures).unwrap_or(u32::MAX),
                window_seconds: window.as_secs(),
                at: now.wall,
            }));
        }
    }

    /// Reports a recording that ended with an error.
    pub(super) fn report_recording(
        &mut self,
        now: Now,
        (organisation_id, room, session_id): (OrganisationId, RoomName, ConferenceSessionId),
        bytes: u64,
        error: Option<&str>,
    ) {
        let Some(error) = error else { return };
        self.push(Output::RecordingFailed(RecordingFailed {
            organisation_id,
            session_id,
            room_id: room.room_id(),
            room,
            error: error.to_owned(),
            bytes,
            at: now.wall,
        }));
    }

    /// Sets a timer; replaces its earlier time.
    pub(super) fn set(&mut self, alarm: Alarm, at: Instant) {
        self.clear(alarm);
        self.alarms.insert(alarm, at);
        self.due.insert((at, alarm));
    }

    /// Sets a timer, unless it is already set for an earlier time.
    pub(super) fn set_sooner(&mut self, alarm: Alarm, at: Instant) {
        if self.alarms.get(&alarm).is_none_or(|set| at < *set) {
            self.set(alarm, at);
        }
    }

    pub(super) fn clear(&mut self, alarm: Alarm) {
        if let Some(at) = self.alarms.remove(&alarm) {
            self.due.remove(&(at, alarm));
        }
    }

    /// Returns when the next timer is due.
    pub(super) fn next_alarm(&self) -> Option<Instant> {
        self.due.first().map(|(at, _)| *at)
    }

    /// Removes and returns a timer that is due.
    pub(super) fn ring(&mut self, now: Instant) -> Option<Alarm> {
        let alarm = self.due.first().filter(|(at, _)| *at <= now).map(|(_, alarm)| *alarm)?;
        self.clear(alarm);
        Some(alarm)
    }

    pub(super) fn mix(&mut self) -> MixId {
        MixId(self.rng.random())
    }

    pub(super) fn dial(&mut self) -> DialId {
        self.last_dial += 1;
        DialId(self.last_dial)
    }

    pub(super) fn session(&mut self, now: Now) -> ConferenceSessionId {
        ConferenceSessionId(by_time(now, self.rng.random()))
    }

    /// Returns the id of a call to place, which sorts by time.
    pub(super) fn call(&mut self, now: Now) -> CallId {
        CallId(by_time(now, self.calls.random()))
    }
}

/// RFC 9562 §5.7.
fn by_time(now: Now, random: [u8; 10]) -> uuid::Uuid {
    let millis = u64::try_from(now.wall.as_micros() / 1000).unwrap_or(0);
    uuid::Builder::from_unix_timestamp_millis(millis, &random).into_uuid()
}
