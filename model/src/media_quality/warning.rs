//! Warnings that are sent at once when the media quality of a live call changes.

use serde::Serialize;
use serde_json::{Map, Value};

use crate::call::words;
use crate::event::{Event, EventKind};
use crate::live_call::LiveCall;
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
    /// The whole of it in words that can be read out.
    pub sentence: String,
    /// Since when: the silence, also when it is over, or the judgement.
    pub since: Timestamp,
    /// When it was noticed.
    pub at: Timestamp,
}

impl MediaWarning {
    /// Makes the event for it.
    pub fn event(&self, call: &LiveCall) -> Event {
        let mut data = Map::from_iter([("call_uuid".to_owned(), Value::from(call.uuid.to_string()))]);
        data.insert("direction".to_owned(), Value::from(call.direction.as_str()));
        for (name, number) in [("caller", &call.caller), ("destination", &call.destination)] {
            data.extend(number.clone().map(|number| (name.to_owned(), Value::from(number))));
        }
        if let Ok(Value::Object(fields)) = serde_json::to_value(self) {
            data.extend(fields);
        }
        Event::new(EventKind::CallMediaWarning, call.organisation_id, call.team_id, self.at, data)
    }
}
