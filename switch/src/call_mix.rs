//! The state of a call's own mix: the hold, the prompt that plays, and the recording.

use sidetone_model::call_prompt::{LivePrompt, PlaySide};
use sidetone_model::live_call::LiveRecording;
use sidetone_sip::sdp::Direction;

use crate::io::Party;

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
        self.prompt.play_id.0.as_u64_pair().1
    }

    /// Whether a party is to hear it, also when it has ended for the party.
    pub(super) fn is_for(&self, party: Party) -> bool {
        match self.prompt.side {
            PlaySide::Both => true,
            PlaySide::Callee => party != Party::Caller,
            PlaySide::Caller => party == Party::Caller,
        }
    }

    /// Notes its end for a party; returns whether it is over for all.
    pub(super) fn has_ended_for(&mut self, party: Party) -> bool {
        let [caller, callee] = &mut self.waits;
        *(if party == Party::Caller { caller } else { callee }) = false;
        self.waits == [false; 2]
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
