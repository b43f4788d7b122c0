//! The media figures of a call record.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A figure with two decimals, kept exactly as a count of hundredths; a JSON number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(value_type = f64))]
pub struct Hundredths(pub i64);

impl Hundredths {
    /// The figure as a float, for output only.
    pub fn as_f64(self) -> f64 {
        // Exact: figures are far below 2⁵³ hundredths.
        self.0 as f64 / 100.0
    }
}

impl Serialize for Hundredths {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64(self.as_f64())
    }
}

impl<'de> Deserialize<'de> for Hundredths {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = f64::deserialize(deserializer)?;
        if value.is_finite() && value.abs() < 1e12 {
            Ok(Hundredths((value * 100.0).round() as i64))
        } else {
            Err(serde::de::Error::custom("figure out of range"))
        }
    }
}

/// The verdict on the audio that arrived on a leg.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum MediaVerdict {
    /// Audio arrived and left, but was damaged.
    DegradedAudio,
    /// Packets arrived too unevenly for a normal buffer.
    JitteryInbound,
    /// Packets that were sent to us never arrived.
    LossyInbound,
    /// Nothing arrived from the party.
    NoInboundMedia,
    /// We sent nothing to the party.
    NoOutboundMedia,
    /// Nothing wrong was seen.
    Ok,
    /// The sender packs another duration than was negotiated.
    PtimeMismatch,
    /// The call was not answered.
    Unanswered,
    /// The sender's clock or pacing is wrong.
    UnpacedSender,
    /// Media went, or was asked for, at an address that cannot work.
    WrongAdvertisedAddress,
}

impl MediaVerdict {
    /// Every verdict with the name that the API and the database use.
    pub const ALL: [(MediaVerdict, &'static str); 10] = [
        (MediaVerdict::DegradedAudio, "degraded_audio"),
        (MediaVerdict::JitteryInbound, "jittery_inbound"),
        (MediaVerdict::LossyInbound, "lossy_inbound"),
        (MediaVerdict::NoInboundMedia, "no_inbound_media"),
        (MediaVerdict::NoOutboundMedia, "no_outbound_media"),
        (MediaVerdict::Ok, "ok"),
        (MediaVerdict::PtimeMismatch, "ptime_mismatch"),
        (MediaVerdict::Unanswered, "unanswered"),
        (MediaVerdict::UnpacedSender, "unpaced_sender"),
        (MediaVerdict::WrongAdvertisedAddress, "wrong_advertised_address"),
    ];

    /// Every verdict by severity, the worst first: first no audio at all, the cause before its effect; then
    /// lost, late and otherwise damaged audio; then faults of the sender only; then verdicts that are not
    /// faults of the audio.
    pub const BY_SEVERITY: [MediaVerdict; 10] = [
        MediaVerdict::WrongAdvertisedAddress,
        MediaVerdict::NoInboundMedia,
        MediaVerdict::NoOutboundMedia,
        MediaVerdict::LossyInbound,
        MediaVerdict::JitteryInbound,
        MediaVerdict::DegradedAudio,
        MediaVerdict::UnpacedSender,
        MediaVerdict::PtimeMismatch,
        MediaVerdict::Unanswered,
        MediaVerdict::Ok,
    ];

    /// The worse of the verdicts on the two directions of a call, by [`MediaVerdict::BY_SEVERITY`]; if only
    /// one direction has a verdict, that one.
    pub fn worse(one: Option<Self>, other: Option<Self>) -> Option<Self> {
        Self::BY_SEVERITY.into_iter().find(|verdict| [one, other].contains(&Some(*verdict)))
    }

    /// The name that the API and the database use.
    pub fn as_str(self) -> &'static str {
        Self::ALL.iter().find(|(verdict, _)| *verdict == self).map_or("ok", |(_, name)| name)
    }

    /// The verdict of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().find(|(_, known)| *known == name).map(|(verdict, _)| *verdict)
    }
}

/// Media figures of one leg; `None` where there was too little audio to judge.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Quality {
    /// Peak inbound jitter, ms.
    pub jitter_ms: Option<Hundredths>,
    /// Inbound packets that never arrived, percent of those expected.
    pub loss_pct: Option<Hundredths>,
    /// Mean gap between arriving packets, ms.
    pub mean_interval_ms: Option<Hundredths>,
    /// Mean opinion score, derived only from `quality_pct`.
    pub mos: Option<Hundredths>,
    /// Received packets minus flaws, percent of received.
    pub quality_pct: Option<Hundredths>,
    /// `None` for a leg that never had an RTP session.
    pub verdict: Option<MediaVerdict>,
}

impl Quality {
    /// The figures as those of a called party; `None` if its leg was not judged, or the call was not
    /// answered.
    pub fn of_callee(self) -> Option<Self> {
        self.verdict.is_some_and(|verdict| verdict != MediaVerdict::Unanswered).then_some(self)
    }

    /// The figures of the called party, as a record shows them.
    pub fn callee(&self) -> Option<CalleeMedia> {
        let Quality { jitter_ms, loss_pct, mean_interval_ms, mos, quality_pct, verdict } =
            self.of_callee()?;
        Some(CalleeMedia { media_verdict: verdict?, loss_pct, jitter_ms, mean_interval_ms, quality_pct, mos })
    }
}

/// Media of the called party's leg, for the audio that arrived from it; the record's other figures are of the
/// caller's leg.
///
/// Figures that cannot be judged are absent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct CalleeMedia {
    /// Verdict on the audio that arrived on the called party's leg.
    pub media_verdict: MediaVerdict,
    /// Percent of inbound packets that never arrived.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub loss_pct: Option<Hundredths>,
    /// Peak inbound jitter, ms.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jitter_ms: Option<Hundredths>,
    /// Mean gap between arriving packets, ms.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mean_interval_ms: Option<Hundredths>,
    /// Received packets minus flaws, as a share of received.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub quality_pct: Option<Hundredths>,
    /// Mean opinion score, derived only from `quality_pct`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mos: Option<Hundredths>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_round_trip_and_match_json() {
        for (verdict, name) in MediaVerdict::ALL {
            assert_eq!(MediaVerdict::from_name(name), Some(verdict));
            assert_eq!(verdict.as_str(), name);
            assert_eq!(serde_json::to_string(&verdict).unwrap(), format!("\"{name}\""));
        }
        assert_eq!(MediaVerdict::from_name("fine"), None);
    }

    /// For every pair: the worse one is earlier in the list, whichever direction it belongs to.
    #[test]
    fn the_worse_of_two_verdicts_is_the_more_severe() {
        use MediaVerdict::{LossyInbound, NoInboundMedia, NoOutboundMedia, Unanswered};
        let all = MediaVerdict::BY_SEVERITY;
        assert!(MediaVerdict::ALL.iter().all(|(verdict, _)| all.contains(verdict)));
        for (place, one) in all.into_iter().enumerate() {
            for other in all.iter().skip(place).copied() {
                assert_eq!(MediaVerdict::worse(Some(one), Some(other)), Some(one));
                assert_eq!(MediaVerdict::worse(Some(other), Some(one)), Some(one));
            }
            assert_eq!(MediaVerdict::worse(Some(one), None), Some(one));
            assert_eq!(MediaVerdict::worse(None, Some(one)), Some(one));
        }
        assert_eq!(MediaVerdict::worse(None, None), None);
        let cases = [
            ((MediaVerdict::Ok, LossyInbound), LossyInbound),
            ((NoOutboundMedia, NoInboundMedia), NoInboundMedia),
            ((MediaVerdict::Ok, Unanswered), Unanswered),
        ];
        for ((caller, callee), worse) in cases {
            assert_eq!(MediaVerdict::worse(Some(caller), Some(callee)), Some(worse));
        }
    }

    #[test]
    fn a_party_that_did_not_answer_is_no_called_party() {
        let of = |verdict| Quality { verdict, loss_pct: Some(Hundredths(0)), ..Quality::default() };
        assert_eq!(of(None).callee(), None);
        assert_eq!(of(Some(MediaVerdict::Unanswered)).callee(), None);
        let shown = serde_json::to_value(of(Some(MediaVerdict::Ok)).callee()).unwrap();
        assert_eq!(shown, serde_json::json!({ "media_verdict": "ok", "loss_pct": 0.0 }));
    }

    #[test]
    fn hundredths_are_exact_numbers() {
        assert_eq!(serde_json::to_string(&Hundredths(2096)).unwrap(), "20.96");
        assert_eq!(serde_json::from_str::<Hundredths>("20.96").unwrap(), Hundredths(2096));
        assert_eq!(serde_json::from_str::<Hundredths>("4.5").unwrap(), Hundredths(450));
    }
}
