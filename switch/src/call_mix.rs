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
    /// The parties have no seats.
    None,
    /// They hear only the mix.
    Taken,
}

/// The mix of one call: its parties have seats in it, beside the relay between them or instead of it.
#[derive(Debug)]
pub(super) struct OwnMix {
    /// The party that has put the other on hold.
    pub(super) holder: Option<Party>,
    /// The prompt that plays.
    pub(super) playing: Option<Playing>,
    /// The recording in progress.
    pub(super) recording: Option<LiveRecording>,
    /// The seats of both parties.
    pub(super) seats: Seats,
    /// The direction last offered to the caller and to the callee; `None` when it must be offered again.
    pub(super) asked: [Option<Direction>; 2],
}

/// The mix of two linked calls, in the state of one of them: with the seat of its own party.
#[derive(Debug)]
pub(super) struct LinkedMix {
    /// The mix, the same in both calls.
    pub(super) id: MixId,
    /// The hold that a program requested through either call.
    pub(super) hold: Option<LinkHold>,
    /// The prompt that plays.
    pub(super) playing: Option<LinkedPlaying>,
    /// The recording in progress.
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
    /// Whether it still plays to the linked party of this call.
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
    /// Whether it still plays to the caller, and to the callee.
    pub(super) waits: [bool; 2],
}

impl Playing {
    pub(super) fn new(prompt: LivePrompt) -> Self {
        let waits = [prompt.side != PlaySide::Callee, prompt.side != PlaySide::Caller];
        Playing { prompt, waits }
    }

    /// The token that identifies the prompt when the relay reports its end.
    pub(super) fn token(&self) -> u64 {
        token_of(&self.prompt)
    }

    /// Whether the prompt is for a party, even if it has already ended for that party.
    pub(super) fn is_for(&self, party: Party) -> bool {
        is_for(self.prompt.side, party == Party::Caller)
    }

    /// Records the end of the prompt for a party; returns whether it has ended for both.
    pub(super) fn has_ended_for(&mut self, party: Party) -> bool {
        let [caller, callee] = &mut self.waits;
        *(if party == Party::Caller { caller } else { callee }) = false;
        self.waits == [false; 2]
    }
}

impl LinkedPrompt {
    /// The token that identifies the prompt when the relay reports its end.
    pub(super) fn token(&self) -> u64 {
        token_of(&self.prompt)
    }

    /// Whether the prompt is for the caller's side (`caller`), or for the called side.
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
