//! The way in: asks callers for a room's number and for its PIN.

use std::time::{Duration, Instant};

use sidetone_model::call::HangupCause;
use sidetone_model::ids::{LegId, RoomId};
use sidetone_model::prompt::Prompt;
use sidetone_model::room::{Pin, Role, RoomConfig};
use sidetone_model::time::Now;
use subtle::{Choice, ConstantTimeEq};

use crate::rooms::desk::{Alarm, Desk};
use crate::rooms::keypad::{DIGITS_MAX, PAUSE};
use crate::rooms::{Arrival, Hears, Output, Rooms, Who};

/// A caller who is asked for a room's number or PIN.
#[derive(Debug)]
pub(super) struct Caller {
    who: Arrival,
    stage: Stage,
    digits: String,
    /// Wrong entries; counted separately for room numbers and PINs.
    tries: u8,
    /// The token of the prompt that plays.
    playing: Option<u64>,
    came: Instant,
    /// When the last digit was keyed, or when the caller arrived.
    heard: Instant,
    /// When to repeat the prompt.
    again: Option<Instant>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Stage {
    /// Asked for the PIN of a room.
    Pin(RoomId),
    /// Asked for a room's number.
    Room,
    /// Waits for the result of the PIN check.
    Verdict { room: RoomId, due: Instant },
}

/// A caller who hears a last prompt before the hang-up.
#[derive(Clone, Copy, Debug)]
pub(super) struct Leaving {
    pub(super) token: u64,
    pub(super) cause: HangupCause,
}

impl Leaving {
    /// How long the last prompt may play before we hang up anyway.
    pub(super) const LONGEST: Duration = Duration::from_secs(10);
}

impl Rooms {
    /// Asks a caller for a room's number.
    pub(super) fn ask_room(&mut self, now: Now, who: Arrival) {
        self.ask(now, who, Stage::Room);
    }

    /// Handles a caller who wants into a room: seats the caller, or asks for the PIN.
    pub(super) fn come_into(&mut self, now: Now, who: Arrival, room: RoomId, in_mix: bool) {
        let book = std::sync::Arc::clone(&self.book);
        let Some(config) = book.room(room).filter(|config| config.organisation_id == who.organisation) else {
            return self.refuse(now, &who, in_mix, vec![Prompt::NoSuchRoom, Prompt::Goodbye]);
        };
        if let Some(role) = who.extension.and_then(|extension| config.exempt(extension)) {
            self.admit(now, who, room, role, true, in_mix);
        } else if config.participant_pin.is_empty() {
            self.admit(now, who, room, Role::Participant, true, in_mix);
        } else if self.guard.refuses(now.instant, room, &who.counted()) {
            self.refuse(now, &who, in_mix, vec![Prompt::Goodbye]);
        } else {
            self.ask(now, who, Stage::Pin(room));
        }
    }

    /// Seats a caller who passed the PIN check or needs no PIN, if the room accepts the caller; returns
    /// whether it did.
    pub(super) fn admit(
        &mut self,
        now: Now,
        who: Arrival,
        room: RoomId,
        role: Role,
        unasked: bool,
        in_mix: bool,
    ) -> bool {
        match self.door(room.into(), role) {
            Ok(()) => {
                self.take_seat(now, who, room.into(), role, unasked);
                true
            }
            Err(reason) => {
                self.refuse(now, &who, in_mix, vec![reason, Prompt::Goodbye]);
                false
            }
        }
    }

    /// Plays the reason, then hangs up.
    pub(super) fn refuse(&mut self, now: Now, who: &Arrival, in_mix: bool, prompts: Vec<Prompt>) {
        if !in_mix {
            self.join_alone(who);
        }
        self.turn_away(now, who.leg, prompts, HangupCause::NormalClearing);
    }

    fn ask(&mut self, now: Now, who: Arrival, stage: Stage) {
        let leg = who.leg;
        if self.callers.len() >= self.config.callers_max {
            return self.desk.push(Output::HangUp(leg, HangupCause::SwitchCongestion));
        }
        self.join_alone(&who);
        let mut caller = Caller {
            who,
            stage,
            digits: String::new(),
            tries: 0,
            playing: None,
            came: now.instant,
            heard: now.instant,
            again: None,
        };
        caller.prompt(vec![], &mut self.desk);
        self.callers.insert(leg, caller);
    }

    /// Puts a leg into a mix of its own.
    fn join_alone(&mut self, who: &Arrival) {
        let mix = self.desk.mix();
        let (leg, organisation) = (who.leg, who.organisation);
        self.desk.push(Output::Join { leg, mix, organisation, muted: false, hears: Hears::Room });
    }

    /// Handles a digit that a caller keyed.
    pub(super) fn caller_keyed(&mut self, now: Now, leg: LegId, digit: char) {
        let Some(caller) = self.callers.get_mut(&leg) else { return };
        if matches!(caller.stage, Stage::Verdict { .. }) {
            return;
        }
        match digit {
            '0'..='9' | '*' => caller.key(now.instant, digit, &mut self.desk),
            '#' if !caller.digits.is_empty() => self.caller_done(now, leg),
            _ => {}
        }
    }

    /// Handles the caller's alarm: PIN result, silence, end of entry, or a repeated prompt.
    pub(super) fn caller_due(&mut self, now: Now, leg: LegId) {
        let Some(caller) = self.callers.get_mut(&leg) else { return };
        let is_over = |since: Instant, most| now.instant.saturating_duration_since(since) >= most;
        match caller.stage {
            Stage::Verdict { room, due } if due <= now.instant => self.judge(now, leg, room),
            Stage::Verdict { .. } => caller.arm(&mut self.desk),
            _ if is_over(caller.came, STAY_MAX) || is_over(caller.heard, SILENCE_MAX) => {
                self.dismiss(now, leg, vec![Prompt::Goodbye], HangupCause::NormalClearing);
            }
            _ if !caller.digits.is_empty() => {
                if is_over(caller.heard, PAUSE) {
                    self.caller_done(now, leg)
                } else {
                    caller.arm(&mut self.desk)
                }
            }
            _ if caller.again.is_some_and(|again| again <= now.instant) => {
                caller.prompt(vec![], &mut self.desk)
            }
            _ => caller.arm(&mut self.desk),
        }
    }

    /// Handles a complete room number or PIN.
    fn caller_done(&mut self, now: Now, leg: LegId) {
        let Some(caller) = self.callers.get_mut(&leg) else { return };
        match caller.stage {
            Stage::Pin(room) => {
                match self.guard.verdict_at(now.instant, room, &caller.who.counted(), caller.who.trunk) {
                    None => self.judge(now, leg, room),
                    Some(Some(due)) => {
                        caller.stage = Stage::Verdict { room, due };
                        caller.arm(&mut self.desk);
                    }
                    Some(None) => {
                        self.dismiss(now, leg, vec![Prompt::Goodbye], HangupCause::SwitchCongestion)
                    }
                }
            }
            Stage::Room => self.find_room(now, leg),
            Stage::Verdict { .. } => {}
        }
    }

    fn find_room(&mut self, now: Now, leg: LegId) {
        let Some(caller) = self.callers.get_mut(&leg) else { return };
        let digits = std::mem::take(&mut caller.digits);
        let Some(room) = self.book.by_number(caller.who.organisation, &digits) else {
            caller.tries += 1;
            if caller.tries >= TRIES_MAX {
                let last = vec![Prompt::NoSuchRoom, Prompt::Goodbye];
                return self.dismiss(now, leg, last, HangupCause::UnallocatedNumber);
            }
            return caller.prompt(vec![Prompt::NoSuchRoom], &mut self.desk);
        };
        let needs_pin = self.book.room(room).is_some_and(|config| {
            let exempt = caller.who.extension.and_then(|extension| config.exempt(extension));
            exempt.is_none() && !config.participant_pin.is_empty()
        });
        if needs_pin && !self.guard.refuses(now.instant, room, &caller.who.counted()) {
            caller.stage = Stage::Pin(room);
            caller.tries = 0;
            caller.heard = now.instant;
            return caller.prompt(vec![], &mut self.desk);
        }
        if let Some(caller) = self.take_caller(leg) {
            self.come_into(now, caller.who, room, true);
        }
    }

    /// Checks the PIN: seats the caller, or counts the wrong PIN.
    fn judge(&mut self, now: Now, leg: LegId, room: RoomId) {
        let Some(caller) = self.callers.get_mut(&leg) else { return };
        let digits = std::mem::take(&mut caller.digits);
        let Some(config) = self.book.room(room) else {
            let last = vec![Prompt::NoSuchRoom, Prompt::Goodbye];
            return self.dismiss(now, leg, last, HangupCause::UnallocatedNumber);
        };
        if let Some(role) = role_of(config, &digits) {
            if let Some(caller) = self.take_caller(leg) {
                self.guard.succeeded(room, &caller.who.counted());
                self.admit(now, caller.who, room, role, false, true);
            }
            return;
        }
        let who = caller.who.counted();
        // Read before this failure counts, because the caller was given three tries when the prompt began.
        let tries_max = if self.guard.is_slow(now.instant, room) { 1 } else { TRIES_MAX };
        self.guard.failed_by(now.instant, room, &who, caller.who.trunk);
        caller.tries += 1;
        if caller.tries >= tries_max || self.guard.refuses(now.instant, room, &who) {
            let last = vec![Prompt::WrongPin, Prompt::Goodbye];
            return self.dismiss(now, leg, last, HangupCause::CallRejected);
        }
        caller.stage = Stage::Pin(room);
        caller.prompt(vec![Prompt::WrongPin], &mut self.desk);
    }

    fn dismiss(&mut self, now: Now, leg: LegId, prompts: Vec<Prompt>, cause: HangupCause) {
        self.take_caller(leg);
        self.turn_away(now, leg, prompts, cause);
    }

    fn take_caller(&mut self, leg: LegId) -> Option<Caller> {
        self.desk.clear(Alarm::Caller(leg));
        let caller = self.callers.remove(&leg)?;
        if caller.playing.is_some() {
            self.desk.push(Output::StopPlaying(leg));
        }
        Some(caller)
    }
}

impl Caller {
    /// Plays prompts, then the question.
    fn prompt(&mut self, mut prompts: Vec<Prompt>, desk: &mut Desk) {
        prompts.push(if self.stage == Stage::Room { Prompt::EnterRoom } else { Prompt::EnterPin });
        self.playing = Some(desk.play(self.who.leg, prompts));
        self.again = None;
        self.arm(desk);
    }

    /// Handles a digit: it stops the prompt and is appended; `*` clears the digits.
    fn key(&mut self, now: Instant, digit: char, desk: &mut Desk) {
        if self.playing.take().is_some() {
            desk.push(Output::StopPlaying(self.who.leg));
        }
        match digit {
            '*' => self.digits.clear(),
            // Further digits are dropped: this many already match no PIN and no room.
            _ if self.digits.len() < DIGITS_MAX => self.digits.push(digit),
            _ => {}
        }
        self.heard = now;
        self.again = Some(now + ASK_AGAIN);
        self.arm(desk);
    }

    /// Handles the end of a prompt: schedules its repetition.
    pub(super) fn played(&mut self, now: Instant, token: u64, desk: &mut Desk) {
        if self.playing == Some(token) {
            self.playing = None;
            self.again = Some(now + ASK_AGAIN);
            self.arm(desk);
        }
    }

    fn arm(&self, desk: &mut Desk) {
        let due = match self.stage {
            Stage::Verdict { due, .. } => due,
            _ => {
                let pause = (!self.digits.is_empty()).then(|| self.heard + PAUSE);
                let bounds = [Some(self.heard + SILENCE_MAX), pause, self.again];
                bounds.into_iter().flatten().fold(self.came + STAY_MAX, Instant::min)
            }
        };
        desk.set(Alarm::Caller(self.who.leg), due);
    }
}

impl Arrival {
    /// The identity for which this caller's wrong PINs are counted.
    pub(super) fn counted(&self) -> Who {
        Who::new(self.extension, &self.number)
    }
}

/// Returns the role that a PIN gives. Takes the same time for every PIN, right or wrong.
pub(super) fn role_of(config: &RoomConfig, digits: &str) -> Option<Role> {
    let moderator = is_pin(&config.moderator_pin, digits);
    let participant = is_pin(&config.participant_pin, digits);
    if moderator.into() {
        Some(Role::Moderator)
    } else {
        // A room whose participant PIN was removed meanwhile accepts any digits.
        (participant.into() || config.participant_pin.is_empty()).then_some(Role::Participant)
    }
}

/// Whether `digits` equal `pin`; an empty PIN equals nothing.
pub(super) fn is_pin(pin: &Pin, digits: &str) -> Choice {
    pin.as_str().as_bytes().ct_eq(digits.as_bytes()) & Choice::from(u8::from(!pin.is_empty()))
}

/// Wrong PINs, and unknown room numbers, allowed per call.
pub(super) const TRIES_MAX: u8 = 3;

/// How long a caller may key nothing.
const SILENCE_MAX: Duration = Duration::from_secs(60);

/// How long a caller may take in all to enter a room.
const STAY_MAX: Duration = Duration::from_secs(300);

/// Time from the end of a prompt to its repetition.
const ASK_AGAIN: Duration = Duration::from_secs(10);
