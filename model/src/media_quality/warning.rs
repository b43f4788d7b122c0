//! Warnings that are sent at once when the media quality of a live call changes.

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

/// A change for the worse on a leg of a live call, or its end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct MediaWarning {
    /// Which side of the call it is.
    pub leg: LegSide,
    /// The number at its far end; left out when it is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub party: Option<String>,
    /// What changed.
    pub state: MediaChange,
    /// How the leg is judged now.
    pub media_verdict: Option<MediaVerdict>,
    /// The previously reported judgement; `ok` at first.
    pub previous: MediaVerdict,
    /// The result as a sentence.
    pub sentence: String,
    /// Since when: the silence, also when it is over, or the judgement.
    pub since: Timestamp,
    /// When it was noticed.
    pub at: Timestamp,
}
