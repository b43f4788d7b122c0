//! Entry to rooms: asks callers for a room's number and for its PIN.
//!
//! [`Callers`] owns the callers on their way in and those who hear a last prompt. A caller who has passed becomes an
//! [`Entrant`]; the machine seats the entrant, or has the entrant refused.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use sidetone_model::call::HangupCause;
use sidetone_model::ids::{LegId, RoomId};
use sidetone_model::prompt::Prompt;
use sidetone_model::room::{DialFailure, Role};
use sidetone_model::time::Now;

use crate::conference::dialling::Dialling;
use crate::conference::keypad::{DIGITS_MAX, PAUSE};
use crate::conference::outputs::{Alarm, Outputs};
use crate::conference::pin_attempts::{Attempt, PinAttempts};
use crate::conference::pins::{TRIES_MAX, role_of};
use crate::conference::{Arrival, Hears, Output, PinCaller, RoomDirectory, Sought};

/// The context for checks of numbers and PINs: the stored rooms, the limits on wrong PINs, and the outputs.
pub(super) struct Checks<'a> {
    pub(super) directory: &'a RoomDirectory,
    pub(super) pin_attempts: &'a mut PinAttempts,
    pub(super) outputs: &'a mut Outputs,
    /// Whether other nodes may own rooms.
    pub(super) seeks: bool,
}

/// A caller who passed the PIN check or needs no PIN.
#[derive(Debug)]
pub(super) struct Entrant {
    pub(super) who: Arrival,
    pub(super) room: RoomId,
    pub(super) role: Role,
    /// Whether the caller was seated without a PIN prompt.
    pub(super) unasked: bool,
    /// Whether the caller is already in a mix of its own.
    pub(super) in_mix: bool,
    /// The call of the room that the party answered.
    pub(super) dialling: Option<Box<Dialling>>,
}

/// The callers on their way into rooms, and those who are about to be hung up.
#[derive(Debug)]
pub(super) struct Callers {
    asked: HashMap<LegId, Caller>,
    /// Callers who hear a last prompt before we hang up.
    leaving: HashMap<LegId, Leaving>,
    /// Most callers that are asked at the same time.
    len_max: usize,
}

/// A caller who is asked for a room's number or PIN.
#[derive(Debug)]
struct Caller {
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
    /// Was called by the room, and is asked to press 1.
    Confirm(Box<Dialling>),
    /// Asked for the PIN of a room.
    Pin(RoomId),
    /// Asked for a room's number.
    Room,
    /// Waits until the node that owns the room is found.
    Seek { room: RoomId, until: Instant },
    /// Waits for the result of the PIN check.
    Verdict { room: RoomId, due: Instant },
}

/// A caller who hears a last prompt before the hang-up.
#[derive(Clone, Copy, Debug)]
struct Leaving {
    token: u64,
    cause: HangupCause,
}

impl Leaving {
    /// How long the last prompt may play before we hang up anyway.
    const LONGEST: Duration = Duration::from_secs(10);
}

impl Callers {
    /// Creates the state without callers; at most `len_max` callers are asked at the same time.
    pub(super) fn new(len_max: usize) -> Self {
        Callers { asked: HashMap::new(), leaving: HashMap::new(), len_max }
    }

    /// Whether the limit of callers is reached.
    pub(super) fn is_full(&self) -> bool {
        self.asked.len() >= self.len_max
    }

    /// Whether the leg is asked, or is about to be hung up.
    pub(super) fn knows(&self, leg: LegId) -> bool {
        self.is_asked(leg) || self.leaving.contains_key(&leg)
    }

    /// Whether the leg is asked for a room's number or a PIN.
    pub(super) fn is_asked(&self, leg: LegId) -> bool {
        self.asked.contains_key(&leg)
    }

    /// The rooms that callers are about to enter.
    pub(super) fn rooms(&self) -> impl Iterator<Item = RoomId> {
        self.asked.values().filter_map(|caller| match &caller.stage {
            Stage::Pin(room) | Stage::Seek { room, .. } | Stage::Verdict { room, .. } => Some(*room),
            Stage::Confirm(dialling) => Some(dialling.room),
            Stage::Room => None,
        })
    }

    /// The callers who wait until the node that owns a room is found.
    pub(super) fn seekers(&self, wanted: RoomId) -> Vec<LegId> {
        let seeks = |caller: &Caller| matches!(caller.stage, Stage::Seek { room, .. } if room == wanted);
        let seekers = self.asked.iter().filter(|(_, caller)| seeks(caller));
        let mut legs: Vec<LegId> = seekers.map(|(leg, _)| *leg).collect();
        legs.sort_unstable();
        legs
    }

    /// Handles the result of the search for the node that owns a room; returns a caller who needs no PIN.
    pub(super) fn sought(
        &mut self,
        now: Now,
        leg: LegId,
        found: Sought,
        checks: Checks<'_>,
    ) -> Option<Entrant> {
        let caller = self.asked.get_mut(&leg)?;
        let Stage::Seek { room, .. } = caller.stage else { return None };
        match found {
            Sought::Here => return self.found(now, leg, room, checks),
            Sought::Elsewhere => {
                caller.stage = Stage::Seek { room, until: now.instant + JOIN_MAX };
                caller.arm(checks.outputs);
            }
            Sought::Nowhere => self.not_found(now, leg, checks.outputs),
        }
        None
    }

    /// Refuses a caller when no node has the room.
    fn not_found(&mut self, now: Now, leg: LegId, outputs: &mut Outputs) {
        self.dismiss(now, leg, vec![Prompt::Goodbye], HangupCause::NormalTemporaryFailure, outputs);
    }

    /// Asks a caller for a room's number.
    pub(super) fn ask_room(&mut self, now: Now, who: Arrival, outputs: &mut Outputs) {
        self.ask(now, who, Stage::Room, outputs);
    }

    /// Asks a party that a room called to press 1. A mailbox that answers never does.
    pub(super) fn ask_confirmation(
        &mut self,
        now: Now,
        who: Arrival,
        dialling: Dialling,
        outputs: &mut Outputs,
    ) {
        self.ask(now, who, Stage::Confirm(Box::new(dialling)), outputs);
    }

    /// Refuses the parties that a room called and that have not confirmed, because the room was ended.
    pub(super) fn cancel_confirmations(&mut self, now: Now, ended: RoomId, outputs: &mut Outputs) {
        let is_of = |caller: &Caller| matches!(&caller.stage, Stage::Confirm(of) if of.room == ended);
        let mut legs: Vec<LegId> =
            self.asked.iter().filter(|(_, caller)| is_of(caller)).map(|(leg, _)| *leg).collect();
        legs.sort_unstable();
        for leg in legs {
            self.not_confirmed(now, leg, DialFailure::Cancelled, outputs);
            self.dismiss(now, leg, vec![Prompt::Ended], HangupCause::NormalClearing, outputs);
        }
    }

    /// Handles a caller who wants to enter a room: returns a caller who needs no PIN, asks others for it.
    pub(super) fn come_into(
        &mut self,
        now: Now,
        who: Arrival,
        room: RoomId,
        in_mix: bool,
        checks: Checks<'_>,
    ) -> Option<Entrant> {
        let Checks { directory, pin_attempts, outputs, .. } = checks;
        let config = directory.room(room).filter(|config| config.organisation_id == who.organisation);
        let Some(config) = config else {
            self.refuse(now, &who, in_mix, vec![Prompt::NoSuchRoom, Prompt::Goodbye], outputs);
            return None;
        };
        if let Some(role) = who.extension.and_then(|extension| config.exempt(extension)) {
            return Some(Entrant { who, room, role, unasked: true, in_mix, dialling: None });
        }
        if config.participant_pin.is_empty() {
            let role = Role::Participant;
            return Some(Entrant { who, room, role, unasked: true, in_mix, dialling: None });
        }
        if pin_attempts.refuses(now.instant, room, &who.counted()) {
            self.refuse(now, &who, in_mix, vec![Prompt::Goodbye], outputs);
        } else {
            self.ask(now, who, Stage::Pin(room), outputs);
        }
        None
    }

    /// Plays the reason, then hangs up.
    pub(super) fn refuse(
        &mut self,
        now: Now,
        who: &Arrival,
        in_mix: bool,
        prompts: Vec<Prompt>,
        outputs: &mut Outputs,
    ) {
        if !in_mix {
            join_alone(who, outputs);
        }
        self.turn_away(now, who.leg, prompts, HangupCause::NormalClearing, outputs);
    }

    /// Plays last prompts to a leg that is in a mix, then hangs up.
    pub(super) fn turn_away(
        &mut self,
        now: Now,
        leg: LegId,
        prompts: Vec<Prompt>,
        cause: HangupCause,
        outputs: &mut Outputs,
    ) {
        let token = outputs.play(leg, prompts);
        self.leaving.insert(leg, Leaving { token, cause });
        outputs.set(Alarm::Caller(leg), now.instant + Leaving::LONGEST);
    }

    fn ask(&mut self, now: Now, who: Arrival, stage: Stage, outputs: &mut Outputs) {
        let leg = who.leg;
        if self.is_full() {
            return outputs.push(Output::HangUp(leg, HangupCause::SwitchCongestion));
        }
        join_alone(&who, outputs);
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
        caller.prompt(vec![], outputs);
        self.asked.insert(leg, caller);
    }

    /// Handles a digit that a caller keyed; returns a caller whose input is complete and correct.
    pub(super) fn keyed(&mut self, now: Now, leg: LegId, digit: char, checks: Checks<'_>) -> Option<Entrant> {
        let caller = self.asked.get_mut(&leg)?;
        if matches!(caller.stage, Stage::Seek { .. } | Stage::Verdict { .. }) {
            return None;
        }
        if let Stage::Confirm(dialling) = &caller.stage {
            let (room, role, dialling) = (dialling.room, dialling.role, Some(dialling.clone()));
            let Caller { who, .. } = (digit == '1').then(|| self.take(leg, checks.outputs))??;
            return Some(Entrant { who, room, role, unasked: true, in_mix: true, dialling });
        }
        match digit {
            '0'..='9' | '*' => caller.key(now.instant, digit, checks.outputs),
            '#' if !caller.digits.is_empty() => return self.done(now, leg, checks),
            _ => {}
        }
        None
    }

    /// Handles the end of a prompt.
    pub(super) fn played(&mut self, now: Now, leg: LegId, token: u64, outputs: &mut Outputs) {
        if let Some(leaving) = self.leaving.get(&leg) {
            if leaving.token == token {
                self.hang_up(leg, outputs);
            }
        } else if let Some(caller) = self.asked.get_mut(&leg) {
            caller.played(now.instant, token, outputs);
        }
    }

    /// Handles a leg that is over.
    pub(super) fn gone(&mut self, now: Now, leg: LegId, outputs: &mut Outputs) {
        outputs.clear(Alarm::Caller(leg));
        self.not_confirmed(now, leg, DialFailure::NotConfirmed, outputs);
        self.asked.remove(&leg);
        self.leaving.remove(&leg);
    }

    /// Handles the caller's timeout: the end of the last prompt, a PIN result that is due, silence, the time limit of
    /// entry, or a prompt to repeat. Returns a caller whose input is correct.
    pub(super) fn due(&mut self, now: Now, leg: LegId, checks: Checks<'_>) -> Option<Entrant> {
        if self.leaving.contains_key(&leg) {
            self.hang_up(leg, checks.outputs);
            return None;
        }
        let caller = self.asked.get_mut(&leg)?;
        let is_over = |since: Instant, most| now.instant.saturating_duration_since(since) >= most;
        match caller.stage {
            Stage::Verdict { room, due } if due <= now.instant => return self.judge(now, leg, room, checks),
            Stage::Seek { until, .. } if until <= now.instant => self.not_found(now, leg, checks.outputs),
            Stage::Seek { .. } | Stage::Verdict { .. } => caller.arm(checks.outputs),
            Stage::Confirm(_) if is_over(caller.came, CONFIRM_MAX) => {
                self.not_confirmed(now, leg, DialFailure::NotConfirmed, checks.outputs);
                let cause = HangupCause::NormalClearing;
                self.dismiss(now, leg, vec![Prompt::Goodbye], cause, checks.outputs);
            }
            _ if is_over(caller.came, STAY_MAX) || is_over(caller.heard, SILENCE_MAX) => {
                let cause = HangupCause::NormalClearing;
                self.dismiss(now, leg, vec![Prompt::Goodbye], cause, checks.outputs);
            }
            _ if !caller.digits.is_empty() => {
                if is_over(caller.heard, PAUSE) {
                    return self.done(now, leg, checks);
                }
                caller.arm(checks.outputs);
            }
            _ if caller.again.is_some_and(|again| again <= now.instant) => {
                caller.prompt(vec![], checks.outputs);
            }
            _ => caller.arm(checks.outputs),
        }
        None
    }

    /// Handles a complete room number or PIN.
    fn done(&mut self, now: Now, leg: LegId, checks: Checks<'_>) -> Option<Entrant> {
        let caller = self.asked.get_mut(&leg)?;
        match caller.stage {
            Stage::Pin(room) => {
                match checks.pin_attempts.verdict_at(now.instant, &caller.who.attempt(room)) {
                    None => return self.judge(now, leg, room, checks),
                    Some(Some(due)) => {
                        caller.stage = Stage::Verdict { room, due };
                        caller.arm(checks.outputs);
                    }
                    Some(None) => {
                        let cause = HangupCause::SwitchCongestion;
                        self.dismiss(now, leg, vec![Prompt::Goodbye], cause, checks.outputs);
                    }
                }
            }
            Stage::Room => return self.find_room(now, leg, checks),
            Stage::Confirm(_) | Stage::Seek { .. } | Stage::Verdict { .. } => {}
        }
        None
    }

    fn find_room(&mut self, now: Now, leg: LegId, checks: Checks<'_>) -> Option<Entrant> {
        let caller = self.asked.get_mut(&leg)?;
        let digits = std::mem::take(&mut caller.digits);
        let Some(room) = checks.directory.by_number(caller.who.organisation, &digits) else {
            caller.tries += 1;
            if caller.tries >= TRIES_MAX {
                let last = vec![Prompt::NoSuchRoom, Prompt::Goodbye];
                self.dismiss(now, leg, last, HangupCause::UnallocatedNumber, checks.outputs);
            } else {
                caller.prompt(vec![Prompt::NoSuchRoom], checks.outputs);
            }
            return None;
        };
        if checks.seeks {
            caller.stage = Stage::Seek { room, until: now.instant + SEEK_MAX };
            caller.arm(checks.outputs);
            checks.outputs.push(Output::Seek(leg, room));
            return None;
        }
        self.found(now, leg, room, checks)
    }

    /// Handles a caller whose room this node owns, or will own: asks for its PIN, or returns the caller.
    fn found(&mut self, now: Now, leg: LegId, room: RoomId, checks: Checks<'_>) -> Option<Entrant> {
        let caller = self.asked.get_mut(&leg)?;
        let needs_pin = checks.directory.room(room).is_some_and(|config| {
            let exempt = caller.who.extension.and_then(|extension| config.exempt(extension));
            exempt.is_none() && !config.participant_pin.is_empty()
        });
        if needs_pin && !checks.pin_attempts.refuses(now.instant, room, &caller.who.counted()) {
            caller.stage = Stage::Pin(room);
            caller.tries = 0;
            caller.heard = now.instant;
            caller.prompt(vec![], checks.outputs);
            return None;
        }
        let caller = self.take(leg, checks.outputs)?;
        self.come_into(now, caller.who, room, true, checks)
    }

    /// Checks the PIN: returns a caller who keyed the right one, or counts the wrong PIN.
    fn judge(&mut self, now: Now, leg: LegId, room: RoomId, checks: Checks<'_>) -> Option<Entrant> {
        let Checks { directory, pin_attempts, outputs, .. } = checks;
        let caller = self.asked.get_mut(&leg)?;
        let digits = std::mem::take(&mut caller.digits);
        let Some(config) = directory.room(room) else {
            let last = vec![Prompt::NoSuchRoom, Prompt::Goodbye];
            self.dismiss(now, leg, last, HangupCause::UnallocatedNumber, outputs);
            return None;
        };
        let who = caller.who.counted();
        if let Some(role) = role_of(config, &digits) {
            let caller = self.take(leg, outputs)?;
            pin_attempts.succeeded(room, &who);
            let who = caller.who;
            return Some(Entrant { who, room, role, unasked: false, in_mix: true, dialling: None });
        }
        // Read before this failure is counted: the caller was allowed three tries when the prompt began.
        let attempt = caller.who.attempt(room);
        let tries_max = if pin_attempts.is_slow(now.instant, &attempt) { 1 } else { TRIES_MAX };
        let reached = pin_attempts.failed(now.instant, &attempt);
        outputs.report_guessing(now, &attempt, &caller.who.number, reached);
        caller.tries += 1;
        if caller.tries >= tries_max || pin_attempts.refuses(now.instant, room, &who) {
            // The prompt for a wrong PIN asks for another try.
            let last = vec![Prompt::Goodbye];
            self.dismiss(now, leg, last, HangupCause::CallRejected, outputs);
            return None;
        }
        caller.stage = Stage::Pin(room);
        caller.prompt(vec![Prompt::WrongPin], outputs);
        None
    }

    /// Reports the failed call to a party that a room called, if the party has not confirmed.
    fn not_confirmed(&self, now: Now, leg: LegId, cause: DialFailure, outputs: &mut Outputs) {
        if let Some(Stage::Confirm(dialling)) = self.asked.get(&leg).map(|caller| &caller.stage) {
            dialling.report_failure(now, cause, outputs);
        }
    }

    fn dismiss(
        &mut self,
        now: Now,
        leg: LegId,
        prompts: Vec<Prompt>,
        cause: HangupCause,
        outputs: &mut Outputs,
    ) {
        self.take(leg, outputs);
        self.turn_away(now, leg, prompts, cause, outputs);
    }

    fn take(&mut self, leg: LegId, outputs: &mut Outputs) -> Option<Caller> {
        outputs.clear(Alarm::Caller(leg));
        let caller = self.asked.remove(&leg)?;
        if caller.playing.is_some() {
            outputs.push(Output::StopPlaying(leg));
        }
        Some(caller)
    }

    fn hang_up(&mut self, leg: LegId, outputs: &mut Outputs) {
        outputs.clear(Alarm::Caller(leg));
        if let Some(leaving) = self.leaving.remove(&leg) {
            outputs.push(Output::HangUp(leg, leaving.cause));
        }
    }
}

/// Puts a leg into a mix of its own.
fn join_alone(who: &Arrival, outputs: &mut Outputs) {
    let mix = outputs.mix();
    let (leg, organisation) = (who.leg, who.organisation);
    outputs.push(Output::Join { leg, mix, organisation, muted: false, hears: Hears::Room });
}

impl Caller {
    /// Plays prompts, then the question.
    fn prompt(&mut self, mut prompts: Vec<Prompt>, outputs: &mut Outputs) {
        prompts.push(match self.stage {
            Stage::Confirm(_) => Prompt::ConfirmJoin,
            Stage::Room | Stage::Seek { .. } => Prompt::EnterRoom,
            Stage::Pin(_) | Stage::Verdict { .. } => Prompt::EnterPin,
        });
        self.playing = Some(outputs.play(self.who.leg, prompts));
        self.again = None;
        self.arm(outputs);
    }

    /// Handles a digit: it stops the prompt and is appended; `*` clears the digits.
    fn key(&mut self, now: Instant, digit: char, outputs: &mut Outputs) {
        if self.playing.take().is_some() {
            outputs.push(Output::StopPlaying(self.who.leg));
        }
        match digit {
            '*' => self.digits.clear(),
            // Further digits are dropped: this many already match no PIN and no room.
            _ if self.digits.len() < DIGITS_MAX => self.digits.push(digit),
            _ => {}
        }
        self.heard = now;
        self.again = Some(now + ASK_AGAIN);
        self.arm(outputs);
    }

    /// Handles the end of a prompt: schedules its repetition.
    fn played(&mut self, now: Instant, token: u64, outputs: &mut Outputs) {
        if self.playing == Some(token) {
            self.playing = None;
            self.again = Some(now + ASK_AGAIN);
            self.arm(outputs);
        }
    }

    fn arm(&self, outputs: &mut Outputs) {
        let due = match self.stage {
            Stage::Seek { until: due, .. } | Stage::Verdict { due, .. } => due,
            _ => {
                let pause = (!self.digits.is_empty()).then(|| self.heard + PAUSE);
                let confirm = matches!(self.stage, Stage::Confirm(_)).then(|| self.came + CONFIRM_MAX);
                let bounds = [Some(self.heard + SILENCE_MAX), pause, confirm, self.again];
                bounds.into_iter().flatten().fold(self.came + STAY_MAX, Instant::min)
            }
        };
        outputs.set(Alarm::Caller(self.who.leg), due);
    }
}

impl Arrival {
    /// A PIN that this caller keyed at a room.
    fn attempt(&self, room: RoomId) -> Attempt {
        Attempt { organisation: self.organisation, room, who: self.counted(), trunk: self.trunk }
    }

    /// The identity for which this caller's wrong PINs are counted.
    pub(super) fn counted(&self) -> PinCaller {
        PinCaller::new(self.extension, &self.number)
    }
}

/// How long a party that a room called may take to confirm.
const CONFIRM_MAX: Duration = Duration::from_secs(30);

/// How long a caller waits until a node owns the room: the lease of a failed node, plus a margin.
const SEEK_MAX: Duration = Duration::from_secs(5);

/// How long the node that owns a room may take to answer the caller's call.
const JOIN_MAX: Duration = Duration::from_secs(8);

/// How long a caller may key nothing.
const SILENCE_MAX: Duration = Duration::from_secs(60);

/// How long a caller may take in all to enter a room.
const STAY_MAX: Duration = Duration::from_secs(300);

/// Time from the end of a prompt to its repetition.
const ASK_AGAIN: Duration = Duration::from_secs(10);
