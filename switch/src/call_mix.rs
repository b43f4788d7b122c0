//! The state of a call's own mix: the hold, the prompt that plays, and the recording.

use sidetone_media::mix::MixId;
use sidetone_model::call_prompt::{LivePrompt, PlaySide};
use sidetone_model::live_call::LiveRecording;
use sidetone_sip::sdp::Direction;

use crate::io::{LinkHold, LinkedPrompt, Party};

/// The seats of the parties in a mix of the call's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Seats {
    /// The mix listens to both, while they are relayed to each other.
    Listened,
    /// They have none.
    None,
    /// They hear only the mix.
    Taken,
}

/// A mix in which the parties of one call have seats instead of being relayed to each other.
#[derive(Debug)]
pub(super) struct OwnMix {
    /// The party that has put the other on hold.
    pub(super) holder: Option<Party>,
    /// The prompt that plays.
    pub(super) playing: Option<Playing>,
    /// The recording under way.
    pub(super) recording: Option<LiveRecording>,
    /// The seats of both parties.
    pub(super) seats: Seats,
    /// The direction that the caller and the callee were asked for last; `None` when it must be asked again.
    pub(super) asked: [Option<Direction>; 2],
}

/// The mix of two linked calls, as one of them has it: with the seat of its own party.
#[derive(Debug)]
pub(super) struct LinkedMix {
    /// The mix, the same in both calls.
    pub(super) id: MixId,
    /// The hold of a program, by either party.
    pub(super) hold: Option<LinkHold>,
    /// The prompt that plays.
    pub(super) playing: Option<LinkedPlaying>,
    /// The recording under way.
    pub(super) recording: Option<LiveRecording>,
    /// Whether this call ordered the recording.
    pub(super) orders: bool,
    /// The seat of the linked party.
    pub(super) seats: Seats,
}

/// A prompt that plays to one or both parties of linked calls.
#[derive(Clone, Copy, Debug)]
pub(super) struct LinkedPlaying {
    pub(super) order: LinkedPrompt,
    /// Whether it has yet to end for the linked party of this call.
    pub(super) waits: bool,
}

impl LinkedMix {
    pub(super) fn new(id: MixId) -> Self {
        LinkedMix { id, hold: None, playing: None, recording: None, orders: false, seats: Seats::None }
    }

    /// Returns the seat that the linked party needs.
    pub(super) fn wanted(&self) -> Seats {
        match (self.hold, self.recording.is_some() || self.playing.is_some()) {
            (Some(_), _) => Seats::Taken,
            (None, true) => Seats::Listened,
            (None, false) => Seats::None,
        }
    }
}

/// A prompt that plays to one or both parties.
#[derive(Clone, Copy, Debug)]
pub(super) struct Playing {
    pub(super) prompt: LivePrompt,
    /// Whether it has yet to end for the caller and for the callee.
    pub(super) waits: [bool; 2],
}

impl Playing {
    pub(super) fn new(prompt: LivePrompt) -> Self {
        let waits = [prompt.side != PlaySide::Callee, prompt.side != PlaySide::Caller];
        Playing { prompt, waits }
    }

    /// Identifies its ends in the reports of the relay.
    pub(super) fn token(&self) -> u64 {
        token_of(&self.prompt)
    }

    /// Whether a party is to hear it, also when it has ended for the party.
    pub(super) fn is_for(&self, party: Party) -> bool {
        is_for(self.prompt.side, party == Party::Caller)
    }

    /// Notes its end for a party; returns whether it is over for all.
    pub(super) fn has_ended_for(&mut self, party: Party) -> bool {
        let [caller, callee] = &mut self.waits;
        *(if party == Party::Caller { caller } else { callee }) = false;
        self.waits == [false; 2]
    }
}

impl LinkedPrompt {
    /// Identifies its ends in the reports of the relay.
    pub(super) fn token(&self) -> u64 {
        token_of(&self.prompt)
    }

    /// Whether the caller's side of the call is to hear it, or the called one.
    pub(super) fn is_for(&self, caller: bool) -> bool {
        is_for(self.prompt.side, caller)
    }
}

impl OwnMix {
    /// Whether the parties hear only the mix.
    pub(super) fn is_taken(&self) -> bool {
        self.seats == Seats::Taken
    }

    pub(super) fn asked(&self, party: Party) -> Option<Direction> {
        let [caller, callee] = self.asked;
        if party == Party::Caller { caller } else { callee }
    }

    pub(super) fn asked_mut(&mut self, party: Party) -> &mut Option<Direction> {
        let [caller, callee] = &mut self.asked;
        if party == Party::Caller { caller } else { callee }
    }
}

fn token_of(prompt: &LivePrompt) -> u64 {
    prompt.play_id.0.as_u64_pair().1
}

fn is_for(side: PlaySide, caller: bool) -> bool {
    match side {
        PlaySide::Both => true,
        PlaySide::Callee => !caller,
        PlaySide::Caller => caller,
    }
}
