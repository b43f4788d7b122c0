//! The fields of the demo's API responses that it uses.

use serde::Deserialize;
use serde_json::Value;

use crate::demo::script::Scene;

/// The fields of a record that the table shows.
#[derive(Clone, Debug, Deserialize)]
#[expect(missing_docs, reason = "the fields are those of the API's record under their public names")]
pub struct Record {
    pub call_uuid: String,
    pub caller_number: Option<String>,
    pub destination_number: Option<String>,
    pub billsec: u32,
    pub hangup_cause: Option<String>,
    #[serde(flatten)]
    pub audio: Audio,
    pub media_b: Option<Audio>,
}

/// The fields of one direction that the table shows: the audio sent by one party.
#[derive(Clone, Debug, Deserialize)]
#[expect(missing_docs, reason = "the fields are those of the API's record under their public names")]
pub struct Audio {
    pub loss_pct: Option<f64>,
    pub jitter_ms: Option<f64>,
    pub mean_interval_ms: Option<f64>,
    pub quality_pct: Option<f64>,
    pub mos: Option<f64>,
    pub media_verdict: Option<String>,
}

impl Audio {
    /// Whether the verdict is `ok`.
    pub(super) fn is_ok(&self) -> bool {
        self.media_verdict.as_deref() == Some("ok")
    }
}

/// The result of one scene.
#[derive(Clone, Debug)]
pub struct Showing {
    /// The scene.
    pub scene: Scene,
    /// Its index in [`SCENES`](super::SCENES).
    pub place: usize,
    /// How many times it was played: 2 if the first verdict was not the expected one.
    pub attempts: u32,
    /// The record of the last attempt, as JSON from the API.
    pub json: Value,
    /// The same, parsed.
    pub record: Record,
    /// The explanation of its verdict, as JSON from the API; null if nothing was analysed.
    pub quality: Value,
}

impl Showing {
    /// Whether the verdict is the expected one.
    pub fn is_as_expected(&self) -> bool {
        self.record.audio.media_verdict.as_deref() == Some(self.scene.expected.as_str())
    }
}

/// The sentence on the caller's audio in the quality of a call.
pub(super) fn sentence(quality: &Value) -> Option<&str> {
    quality.get("sentence")?.as_str()
}

/// The sentence on the called party's audio.
pub(super) fn callee_sentence(quality: &Value) -> Option<&str> {
    quality.get("callee")?.get("sentence")?.as_str()
}
