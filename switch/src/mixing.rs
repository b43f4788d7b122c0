//! What the switch tells the mixes of the media engine, in its own words: seats, prompts by name, recordings.

use sidetone_model::ids::{ConferenceSessionId, OrganisationId};
use sidetone_model::prompt::Prompt;

/// What a seated party hears while nothing is played to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SeatHears {
    /// The hold music of its organisation.
    Music,
    /// Nothing.
    Nothing,
    /// Everybody else in the room.
    Room,
}

/// What a whole mix is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MixOrder {
    /// Play these to everybody in it, in the organisation's voice.
    Play {
        /// Whose prompts.
        organisation: OrganisationId,
        /// One after the other.
        prompts: Vec<Prompt>,
    },
    /// Record it until [`MixOrder::StopRecording`]; then, or when the recording ends by itself,
    /// [`Input::Recorded`](crate::machine::Input::Recorded) tells what there is.
    Record(RecordingPlan),
    /// Record it no longer.
    StopRecording,
}

/// What a recording is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordingPlan {
    /// Which session.
    pub session: ConferenceSessionId,
    /// Whose it is.
    pub organisation: OrganisationId,
}

/// A recording that is closed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recording {
    /// How long its file is, in octets.
    pub bytes: u64,
    /// Why it ended before it was told to.
    pub error: Option<String>,
}
