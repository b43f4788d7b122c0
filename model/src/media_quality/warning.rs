//! Warnings that are sent immediately when the media quality of a live call changes.

use serde::Serialize;

use crate::call::words;
use crate::media_quality::LegSide;
use crate::quality::MediaVerdict;
use crate::time::Timestamp;

words! {
    /// What changed on a leg.
    MediaChange {
        /// Audio comes again.
        AudioBack = "audio_back",
        /// Packets come from an address that is not the party's, or went to one.
        ForeignSource = "foreign_source",
        /// No audio arrives although it is expected.
        NoAudio = "no_audio",
        /// The leg is judged otherwise than before.
        Verdict = "verdict",
    }
}

/// A degradation on a leg of a live call, or the end of one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct MediaWarning {
    /// The side of the call.
    pub leg: LegSide,
    /// The number of the leg's party; left out if it is unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub party: Option<String>,
    /// What changed.
    pub state: MediaChange,
    /// The current verdict on the leg.
    pub media_verdict: Option<MediaVerdict>,
    /// The previously reported verdict; `ok` at first.
    pub previous: MediaVerdict,
    /// The result as a sentence.
    pub sentence: String,
    /// The start of the silence, also when it has ended, or of the verdict.
    pub since: Timestamp,
    /// When it was detected.
    pub at: Timestamp,
}
