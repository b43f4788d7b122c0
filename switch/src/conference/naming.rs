//! Asks a caller for its name before it is seated in a room that announces names.
//!
//! The recorded name of an extension is looked up first; the caller is asked only when there is none. A party that was
//! called or moved into the room is not asked. The caller waits in a mix of its own, which is recorded while the caller
//! speaks. Every phase has a deadline, after which the caller is seated without a name.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use sidetone_model::ids::{LegId, RoomId};
use sidetone_model::prompt::Prompt;
use sidetone_model::time::Now;

use crate::conference::entry::Entrant;
use crate::conference::outputs::{Alarm, Outputs};
use crate::conference::{Goal, Hears, MixId, NameOrder, Output};

/// The callers whose names are looked up or recorded before they are seated, and the legs whose names must be
/// forgotten.
#[derive(Debug, Default)]
pub(super) struct Namings {
    asked: HashMap<LegId, Naming>,
    /// Legs for which a name was looked up or recorded.
    sought: HashSet<LegId>,
}

/// A caller who waits to be seated.
#[derive(Debug)]
struct Naming {
    entrant: Entrant,
    mix: MixId,
    phase: Phase,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// The caller hears the question; carries the token of the prompt.
    Asked(u64),
    /// The recording is over and is being stored.
    Kept,
    /// The caller speaks and is recorded.
    Recorded,
    /// The name is being looked up.
    Sought,
}

/// A caller to seat, and whether there is a recorded name.
pub(super) struct Named {
    pub(super) entrant: Entrant,
    pub(super) is_known: bool,
}

impl Namings {
    /// Whether a leg waits here to be seated.
    pub(super) fn is_asked(&self, leg: LegId) -> bool {
        self.asked.contains_key(&leg)
    }

    /// The rooms of the waiting callers.
    pub(super) fn rooms(&self) -> impl Iterator<Item = RoomId> {
        self.asked.values().map(|naming| naming.entrant.room)
    }

    /// Looks up the caller's name, or asks for it. Returns a caller to seat immediately.
    pub(super) fn begin(&mut self, now: Now, entrant: Entrant, outputs: &mut Outputs) -> Option<Entrant> {
        let (leg, organisation, extension) =
            (entrant.who.leg, entrant.who.organisation, entrant.who.extension);
        let is_of = |naming: &&Naming| naming.entrant.who.organisation == organisation;
        let is_full = self.asked.values().filter(is_of).count() >= ASKED_MAX;
        if is_full || extension.is_none() && !may_be_asked(&entrant) {
            return Some(entrant);
        }
        let mix = outputs.mix();
        outputs.push(Output::Join { leg, mix, organisation, muted: false, hears: Hears::Room });
        self.sought.insert(leg);
        let mut naming = Naming { entrant, mix, phase: Phase::Sought };
        match extension {
            Some(extension) => {
                outputs.push(Output::Name(NameOrder::Find { leg, organisation, extension }));
                outputs.set(Alarm::Name(leg), now.instant + ANSWER_MAX);
            }
            None => naming.ask(now, outputs),
        }
        self.asked.insert(leg, naming);
        None
    }

    /// Handles the result of a look-up or of a recording.
    pub(super) fn found(
        &mut self,
        now: Now,
        leg: LegId,
        is_known: bool,
        outputs: &mut Outputs,
    ) -> Option<Named> {
        let naming = self.asked.get_mut(&leg)?;
        match naming.phase {
            Phase::Sought if !is_known && may_be_asked(&naming.entrant) => {
                naming.ask(now, outputs);
                None
            }
            Phase::Kept | Phase::Recorded | Phase::Sought => self.done(leg, is_known, outputs),
            // The result of an earlier look-up arrived too late.
            Phase::Asked(_) => None,
        }
    }

    /// Handles the end of the question: the caller speaks now.
    pub(super) fn played(&mut self, now: Now, leg: LegId, token: u64, outputs: &mut Outputs) {
        let Some(naming) = self.asked.get_mut(&leg).filter(|naming| naming.phase == Phase::Asked(token))
        else {
            return;
        };
        let (mix, organisation) = (naming.mix, naming.entrant.who.organisation);
        let extension = naming.entrant.who.extension;
        naming.phase = Phase::Recorded;
        outputs.push(Output::Name(NameOrder::Record { mix, leg, organisation, extension }));
        outputs.set(Alarm::Name(leg), now.instant + SPOKEN_MAX);
    }

    /// Handles a key: the hash key ends the recording; during the question it skips the name.
    pub(super) fn keyed(
        &mut self,
        now: Now,
        leg: LegId,
        digit: char,
        outputs: &mut Outputs,
    ) -> Option<Named> {
        let naming = self.asked.get_mut(&leg).filter(|_| digit == '#')?;
        match naming.phase {
            Phase::Asked(_) => self.done(leg, false, outputs),
            Phase::Recorded => {
                naming.keep(now, outputs);
                None
            }
            Phase::Kept | Phase::Sought => None,
        }
    }

    /// Handles a deadline.
    pub(super) fn due(&mut self, now: Now, leg: LegId, outputs: &mut Outputs) -> Option<Named> {
        let naming = self.asked.get_mut(&leg)?;
        if naming.phase == Phase::Recorded {
            naming.keep(now, outputs);
            return None;
        }
        self.done(leg, false, outputs)
    }

    /// Handles a leg that is over; returns the caller if it was on its way to a seat.
    pub(super) fn gone(&mut self, leg: LegId, outputs: &mut Outputs) -> Option<Entrant> {
        outputs.clear(Alarm::Name(leg));
        let Naming { entrant, mix, phase } = self.asked.remove(&leg)?;
        if phase == Phase::Recorded {
            outputs.push(Output::StopRecording(mix));
        }
        Some(entrant)
    }

    /// Forgets the name of a leg that is over; its leaving has been announced by then.
    pub(super) fn forget(&mut self, leg: LegId, outputs: &mut Outputs) {
        if self.sought.remove(&leg) {
            outputs.push(Output::Name(NameOrder::Forget(leg)));
        }
    }

    /// Removes the parties that a room called, because the room was ended.
    pub(super) fn cancel(&mut self, ended: RoomId, outputs: &mut Outputs) -> Vec<Entrant> {
        let is_of = |naming: &Naming| naming.entrant.room == ended && naming.entrant.dialling.is_some();
        let mut legs: Vec<LegId> =
            self.asked.iter().filter(|(_, naming)| is_of(naming)).map(|(leg, _)| *leg).collect();
        legs.sort_unstable();
        let done = legs.into_iter().filter_map(|leg| self.done(leg, false, outputs));
        done.map(|named| named.entrant).collect()
    }

    fn done(&mut self, leg: LegId, is_known: bool, outputs: &mut Outputs) -> Option<Named> {
        outputs.clear(Alarm::Name(leg));
        let Naming { entrant, phase, .. } = self.asked.remove(&leg)?;
        if matches!(phase, Phase::Asked(_)) {
            outputs.push(Output::StopPlaying(leg));
        }
        Some(Named { entrant: Entrant { in_mix: true, ..entrant }, is_known })
    }
}

impl Naming {
    fn ask(&mut self, now: Now, outputs: &mut Outputs) {
        let leg = self.entrant.who.leg;
        self.phase = Phase::Asked(outputs.play(leg, vec![Prompt::SayName]));
        outputs.set(Alarm::Name(leg), now.instant + QUESTION_MAX);
    }

    fn keep(&mut self, now: Now, outputs: &mut Outputs) {
        self.phase = Phase::Kept;
        outputs.push(Output::StopRecording(self.mix));
        outputs.set(Alarm::Name(self.entrant.who.leg), now.instant + ANSWER_MAX);
    }
}

/// Whether the party called the room itself. A called party may be a mailbox, whose greeting would become its name.
fn may_be_asked(entrant: &Entrant) -> bool {
    matches!(entrant.who.goal, Goal::Ask | Goal::Room(_))
}

/// Most callers of an organisation whose names are looked up or recorded at the same time; others are seated without.
const ASKED_MAX: usize = 50;

/// How long the question may take.
const QUESTION_MAX: Duration = Duration::from_secs(15);

/// How long a name may be.
const SPOKEN_MAX: Duration = Duration::from_secs(5);

/// Time limit to look up a name, and to store one.
const ANSWER_MAX: Duration = Duration::from_secs(2);
