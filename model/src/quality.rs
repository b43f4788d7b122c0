//! What a call record says about media.

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

/// The judgement on the audio that arrived on the caller's leg.
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

    /// The name that the API and the database use.
    pub fn as_str(self) -> &'static str {
        Self::ALL.iter().find(|(verdict, _)| *verdict == self).map_or("ok", |(_, name)| name)
    }

    /// The verdict of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().find(|(_, known)| *known == name).map(|(verdict, _)| *verdict)
    }
}

/// Media figures of the caller's leg; `None` where there was too little audio to judge.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Quality {
    /// Peak inbound jitter, ms.
    pub jitter_ms: Option<Hundredths>,
    /// Inbound packets that never arrived, percent of those expected.
    pub loss_pct: Option<Hundredths>,
    /// Mean gap between arriving packets, ms.
    pub mean_interval_ms: Option<Hundredths>,
    /// Mean opinion score, a function of `quality_pct` alone.
    pub mos: Option<Hundredths>,
    /// Received packets minus flaws, percent of received.
    pub quality_pct: Option<Hundredths>,
    /// `None` for a leg that never had an RTP session.
    pub verdict: Option<MediaVerdict>,
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

    #[test]
    fn hundredths_are_exact_numbers() {
        assert_eq!(serde_json::to_string(&Hundredths(2096)).unwrap(), "20.96");
        assert_eq!(serde_json::from_str::<Hundredths>("20.96").unwrap(), Hundredths(2096));
        assert_eq!(serde_json::from_str::<Hundredths>("4.5").unwrap(), Hundredths(450));
    }
}
