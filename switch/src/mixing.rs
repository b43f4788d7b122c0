//! Orders of the switch to the mixes of the media engine: seats, prompts by name, recordings.

use sidetone_model::ids::{ConferenceSessionId, OrganisationId};
use sidetone_model::language::Language;
use sidetone_model::prompt::{Prompt, SoundName};

use crate::port_id::PortId;

/// The audio that a seated party hears while no prompt plays to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SeatHears {
    /// The hold music of its organisation.
    Music,
    /// Nothing: no packet is sent.
    Nothing,
    /// All other parties in the room.
    Room,
    /// Silence, in packets.
    Silence,
}

/// An order to an entire mix.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MixOrder {
    /// Play these prompts to all seats, in the organisation's version.
    Play {
        /// The organisation of the prompts.
        organisation: OrganisationId,
        /// The language of the built-in prompts.
        language: Language,
        /// The prompts, in order.
        prompts: Vec<Prompt>,
    },
    /// Play this sound to all seats, in place of an earlier one and beside the prompts.
    PlaySound {
        /// The organisation of the sound.
        organisation: OrganisationId,
        /// The language of a built-in prompt.
        language: Language,
        /// The sound.
        sound: SoundName,
    },
    /// Record it until [`MixOrder::StopRecording`]; then, or when the recording ends by itself,
    /// [`Input::Recorded`](crate::machine::Input::Recorded) reports its file.
    Record(RecordingPlan),
    /// Stop recording.
    StopRecording,
    /// End the sound.
    StopSound,
}

/// Identifies a recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordingPlan {
    /// The session; with `sides` the id of a call's recording.
    pub session: ConferenceSessionId,
    /// The organisation.
    pub organisation: OrganisationId,
    /// The ports of the left and the right channel; `None` records the entire mix.
    pub sides: Option<[PortId; 2]>,
    /// Channels of the file: two with `sides`, one or two for an entire mix.
    pub channels: u16,
}

/// A recording that is closed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recording {
    /// The length of its file, in octets.
    pub bytes: u64,
    /// Why it ended without an order.
    pub error: Option<String>,
}
