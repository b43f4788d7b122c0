//! The quality of a call and of its legs, and the ports that return it.

use serde::{Deserialize, Serialize};

use crate::call::words;
use crate::ids::{CallId, OrganisationId, TeamId};
use crate::media_quality::{Affected, Blame, CalleeQuality, InboundMedia, OutboundMedia, RuleCheck};
use crate::port_future::PortFuture;
use crate::quality::{MediaVerdict, Quality};
use crate::time::Timestamp;

words! {
    /// Whether the figures may still change.
    QualityState {
        /// The call is over.
        Final = "final",
        /// The call is up.
        Live = "live",
    }
}

words! {
    /// The side of a call that a leg is on.
    LegSide {
        /// The leg of the record's own figures: the caller's; for a call that a room placed, that of the
        /// party who answered.
        A = "a",
        /// The far leg.
        B = "b",
    }
}

/// The media of a call: the verdict and its reasons, for both legs and both directions.
///
/// Nullable fields are always present; other fields are absent when they have no value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct CallQuality {
    /// The call.
    pub call_uuid: CallId,
    /// Whether the figures may still change.
    pub state: QualityState,
    /// When the figures were taken: now, or at the end of the call.
    pub at: Timestamp,
    /// The version of the rules and figures of this verdict; absent when nothing was judged. A record keeps its
    /// version: its figures are never computed again.
    #[cfg_attr(feature = "openapi", schema(example = "2"))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rules_version: Option<String>,
    /// The verdict on leg `a`, as in the record; null without media.
    #[cfg_attr(feature = "openapi", schema(required))]
    #[serde(default)]
    pub media_verdict: Option<MediaVerdict>,
    /// The condition of the rule that held, such as `loss`; absent when it has no name.
    #[cfg_attr(feature = "openapi", schema(example = "loss"))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The party responsible; absent when nothing is wrong or no party can be named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blame: Option<Blame>,
    /// The result as a sentence.
    pub sentence: String,
    /// The worse of the verdicts on both legs, as in the record.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub media_verdict_worse: Option<MediaVerdict>,
    /// A summary of the called party's leg; absent when the call had no called party.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub callee: Option<CalleeQuality>,
    /// Other remarks on any leg.
    #[serde(default)]
    pub flags: Vec<String>,
    /// The legs that had media: `a`, then `b`.
    #[serde(default)]
    pub legs: Vec<LegQuality>,
}

/// The media of one party's side of a call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct LegQuality {
    /// Which side it is.
    pub leg: LegSide,
    /// The party's number; absent when it is unknown.
    #[cfg_attr(feature = "openapi", schema(example = "1001"))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub party: Option<String>,
    /// The verdict; null until SDP is negotiated.
    #[cfg_attr(feature = "openapi", schema(required))]
    #[serde(default)]
    pub media_verdict: Option<MediaVerdict>,
    /// The condition of the rule that held, such as `clumps`; absent when it has no name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The party responsible; absent when nothing is wrong or no party can be named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blame: Option<Blame>,
    /// The verdict as a sentence.
    pub sentence: String,
    /// Other remarks, such as `latched` or `local_drop`.
    #[serde(default)]
    pub flags: Vec<String>,
    /// The audio codec last received.
    #[cfg_attr(feature = "openapi", schema(example = "PCMU"))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub codec: Option<String>,
    /// The first and the last affected second; absent without any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub affected: Option<Affected>,
    /// The measurements of all rules, or only of the one that fired.
    #[serde(default)]
    pub rules: Vec<RuleCheck>,
    /// The addresses of the party.
    #[serde(default)]
    pub addresses: LegAddresses,
    /// Packets from and to addresses that are not the party's; absent when there were none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub foreign: Option<ForeignMedia>,
    /// The fax on this leg; absent for a leg that carried none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fax: Option<FaxMedia>,
    /// The video of this leg; absent for a leg that carried none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub video: Option<VideoMedia>,
    /// Packets from the party.
    #[serde(default)]
    pub inbound: InboundMedia,
    /// Packets to the party.
    #[serde(default)]
    pub outbound: OutboundMedia,
    /// Its packet trace; absent without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace: Option<LegTrace>,
}

/// Where a leg's packets come from and go to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct LegAddresses {
    /// Where the party's accepted packets come from, as `address:port`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// The RTP address in the party's SDP.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub advertised: Option<String>,
    /// The address in our SDP to the party.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub own_advertised: Option<String>,
    /// Where we last sent RTP.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sent_to: Option<String>,
    /// Where the party's SIP comes from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signalling: Option<String>,
    /// The last source whose packets were refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rejected_source: Option<String>,
    /// Whether the party's packets came from another address than its SDP.
    pub latched: bool,
}

/// The datagrams of a fax (T.38 over UDPTL). They are counted and not judged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct FaxMedia {
    /// Datagrams from the party.
    pub received: u64,
    /// Datagrams sent to the party.
    pub sent: u64,
    /// Sequence numbers of the party that never came; a later datagram usually repeats their content.
    pub missing: u64,
}

/// The RTP packets of a leg's video. They are counted and not judged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct VideoMedia {
    /// Packets from the party.
    pub received: u64,
    /// Octets of their payloads.
    pub received_bytes: u64,
    /// Packets sent to the party.
    pub sent: u64,
    /// Sequence numbers of the party that never came.
    pub missing: u64,
}

/// Packets from and to addresses that are not the party's.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ForeignMedia {
    /// RTP packets that were refused because of their source address.
    pub rejected_packets: u64,
    /// RTP packets that were accepted as the party's.
    pub accepted_packets: u64,
    /// RTP packets that were sent there.
    pub sent_packets: u64,
    /// The last of these addresses, as `address:port`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_source: Option<String>,
}

/// A packet trace of a leg: headers only, for later analysis.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct LegTrace {
    /// Its name in the directory of traces.
    pub file: String,
    /// Its size in bytes.
    pub bytes: u64,
}

impl LegQuality {
    /// The figures of the leg that a record stores.
    pub fn figures(&self) -> Quality {
        let inbound = &self.inbound;
        Quality {
            jitter_ms: inbound.jitter_ms,
            loss_pct: inbound.loss_pct,
            mean_interval_ms: inbound.mean_interval_ms,
            mos: inbound.mos,
            quality_pct: inbound.quality_pct,
            verdict: self.media_verdict,
        }
    }

    /// Whether the party was sent no audio.
    fn heard_nothing(&self) -> bool {
        self.media_verdict == Some(MediaVerdict::NoOutboundMedia)
    }

    /// Whether no usable audio came from the party.
    fn was_not_heard(&self) -> bool {
        match self.media_verdict {
            Some(MediaVerdict::NoInboundMedia) => true,
            // The other reasons for this verdict concern a party whose audio arrived.
            Some(MediaVerdict::WrongAdvertisedAddress) => {
                self.reason.as_deref().is_some_and(|reason| REASONS_OF_SILENCE.contains(&reason))
            }
            _ => false,
        }
    }
}

impl CallQuality {
    /// The quality without the rows of its timelines.
    #[must_use]
    pub fn without_timeline(mut self) -> Self {
        self.legs.iter_mut().for_each(|leg| leg.inbound.timeline = None);
        self
    }

    /// The quality with another verdict on the caller's leg: if the answer never reached the caller, the call
    /// was unanswered, whatever the figures of its legs.
    #[must_use]
    pub fn with_verdict(self, media_verdict: Option<MediaVerdict>) -> Self {
        CallQuality { media_verdict, ..self }.with_callee()
    }

    /// The quality with the fields that are derived from the legs and the verdict: the called party and the
    /// worse verdict. This completes records stored before those fields existed.
    #[must_use]
    pub fn with_callee(mut self) -> Self {
        let is_answered = self.media_verdict != Some(MediaVerdict::Unanswered);
        let far = self.legs.iter().find(|leg| leg.leg == LegSide::B).filter(|_| is_answered);
        self.callee = far.and_then(|leg| {
            CalleeQuality::judged(leg.figures(), leg.reason.as_deref(), leg.blame, &leg.sentence)
        });
        let callee = self.callee.as_ref().map(|callee| callee.media_verdict);
        self.media_verdict_worse = MediaVerdict::worse(self.media_verdict, callee);
        self
    }

    /// The common result of these legs; the verdict is that of leg `a`.
    ///
    /// If a party heard nothing because nothing came from the other party, that is an effect: the sentence
    /// and the blame are those of the cause.
    pub fn of_legs(call_uuid: CallId, state: QualityState, at: Timestamp, legs: Vec<LegQuality>) -> Self {
        let mut flags: Vec<String> = Vec::new();
        for flag in legs.iter().flat_map(|leg| &leg.flags) {
            if !flags.contains(flag) {
                flags.push(flag.clone());
            }
        }
        let judged = legs.iter().find(|leg| leg.leg == LegSide::A);
        let is_fine = |leg: &LegQuality| matches!(leg.media_verdict, None | Some(MediaVerdict::Ok));
        // The caller's leg may be good although the audio from the far end was impaired: the sentence then
        // covers both.
        let far = legs.iter().find(|leg| leg.leg == LegSide::B && !is_fine(leg));
        let mut blame = judged.and_then(|leg| leg.blame);
        let sentence = match (judged, far) {
            (None, None) => NO_MEDIA.to_owned(),
            (Some(leg), None) | (None, Some(leg)) => leg.sentence.clone(),
            (Some(leg), Some(far)) if leg.heard_nothing() && far.was_not_heard() => {
                blame = far.blame;
                format!("{} That is why the caller heard nothing.", far.sentence)
            }
            (Some(leg), Some(far)) if leg.was_not_heard() && far.heard_nothing() => {
                format!("{} That is why the called party heard nothing.", leg.sentence)
            }
            (Some(leg), Some(far)) => format!("{} {}", leg.sentence, far.sentence),
        };
        CallQuality {
            call_uuid,
            state,
            at,
            rules_version: None,
            media_verdict: judged.and_then(|leg| leg.media_verdict),
            reason: judged.and_then(|leg| leg.reason.clone()),
            blame,
            sentence,
            media_verdict_worse: None,
            callee: None,
            flags,
            legs,
        }
        .with_callee()
    }
}

/// The quality of a live call, and the owner that decides who may see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LiveCallQuality {
    /// The call's organisation.
    pub organisation_id: OrganisationId,
    /// The call's team.
    pub team_id: Option<TeamId>,
    /// The current figures.
    pub quality: CallQuality,
}

/// Reads the media of live calls.
pub trait LiveQuality: Send + Sync {
    /// Returns the current figures of a call, of any organisation; `None` once it is over.
    fn quality(&self, call: CallId) -> PortFuture<'_, Option<LiveCallQuality>>;
}

/// The sentence if no leg was judged.
pub(super) const NO_MEDIA: &str = "The call had no media.";
/// The reasons for which a wrong address made a party inaudible.
pub(super) const REASONS_OF_SILENCE: [&str; 4] =
    ["rejected_source", "advertised_unreachable", "own_unreachable", "icmp_unreachable"];

#[cfg(test)]
mod tests {
    use super::*;

    fn leg(leg: LegSide, verdict: MediaVerdict, reason: Option<&str>, blame: Blame) -> LegQuality {
        LegQuality {
            leg,
            party: None,
            media_verdict: Some(verdict),
            reason: reason.map(str::to_owned),
            blame: Some(blame),
            sentence: format!("{leg:?} is {}.", verdict.as_str()),
            flags: Vec::new(),
            codec: None,
            affected: None,
            rules: Vec::new(),
            addresses: LegAddresses::default(),
            foreign: None,
            fax: None,
            video: None,
            inbound: InboundMedia::default(),
            outbound: OutboundMedia::default(),
            trace: None,
        }
    }

    #[test]
    fn a_silence_is_told_once_by_its_cause() {
        use MediaVerdict::{LossyInbound, NoInboundMedia, NoOutboundMedia, WrongAdvertisedAddress};
        type Told = (MediaVerdict, Option<&'static str>, Blame);
        let unheard: Told = (NoInboundMedia, None, Blame::Remote);
        let unreachable: Told = (WrongAdvertisedAddress, Some("advertised_unreachable"), Blame::Remote);
        let blackhole: Told = (WrongAdvertisedAddress, Some("blackhole"), Blame::Remote);
        let silenced: Told = (NoOutboundMedia, None, Blame::Us);
        let lossy: Told = (LossyInbound, Some("loss"), Blame::Network);
        let cases = [
            (
                unheard,
                silenced,
                Blame::Remote,
                "A is no_inbound_media. That is why the called party heard nothing.",
            ),
            (
                unreachable,
                silenced,
                Blame::Remote,
                "A is wrong_advertised_address. That is why the called party heard nothing.",
            ),
            (
                silenced,
                unheard,
                Blame::Remote,
                "B is no_inbound_media. That is why the caller heard nothing.",
            ),
            (silenced, lossy, Blame::Us, "A is no_outbound_media. B is lossy_inbound."),
            (blackhole, silenced, Blame::Remote, "A is wrong_advertised_address. B is no_outbound_media."),
            (unheard, unheard, Blame::Remote, "A is no_inbound_media. B is no_inbound_media."),
            (silenced, silenced, Blame::Us, "A is no_outbound_media. B is no_outbound_media."),
        ];
        for (near, far, blame, sentence) in cases {
            let legs = vec![leg(LegSide::A, near.0, near.1, near.2), leg(LegSide::B, far.0, far.1, far.2)];
            let call = CallQuality::of_legs(
                CallId::from(uuid::Uuid::from_u128(1)),
                QualityState::Final,
                Timestamp::from_micros(0),
                legs,
            );
            assert_eq!((call.sentence.as_str(), call.blame), (sentence, Some(blame)));
            assert_eq!((call.media_verdict, call.reason.as_deref()), (Some(near.0), near.1));
            let callee = call.callee.unwrap();
            assert_eq!((callee.media_verdict, callee.reason.as_deref()), (far.0, far.1));
            assert_eq!((callee.blame, callee.sentence), (Some(far.2), format!("B is {}.", far.0.as_str())));
            assert_eq!(call.media_verdict_worse, MediaVerdict::worse(Some(near.0), Some(far.0)));
        }
    }

    fn of(legs: Vec<LegQuality>) -> CallQuality {
        let call = CallId::from(uuid::Uuid::from_u128(1));
        CallQuality::of_legs(call, QualityState::Final, Timestamp::from_micros(0), legs)
    }

    #[test]
    fn a_call_without_an_answer_has_no_called_party() {
        use MediaVerdict::{LossyInbound, Unanswered};
        let legs = || {
            vec![
                leg(LegSide::A, LossyInbound, None, Blame::Network),
                leg(LegSide::B, LossyInbound, None, Blame::Network),
            ]
        };
        assert_eq!(of(legs()).callee.map(|callee| callee.media_verdict), Some(LossyInbound));
        let unanswered = of(legs()).with_verdict(Some(Unanswered));
        assert_eq!((unanswered.callee, unanswered.media_verdict_worse), (None, Some(Unanswered)));
        let mut rings = legs();
        rings[1].media_verdict = Some(Unanswered);
        assert_eq!(of(rings).callee, None);
        assert_eq!(of(legs()[..1].to_vec()).callee, None, "a room is no called party");
    }

    /// Quality stored before the called party's fields existed is completed from its legs.
    #[test]
    fn a_stored_quality_is_completed_from_its_legs() {
        let legs = vec![
            leg(LegSide::A, MediaVerdict::Ok, None, Blame::Us),
            leg(LegSide::B, MediaVerdict::LossyInbound, Some("loss"), Blame::Network),
        ];
        let call = of(legs);
        let mut old = serde_json::to_value(&call).unwrap();
        let fields = old.as_object_mut().unwrap();
        assert!(fields.remove("callee").is_some() && fields.remove("media_verdict_worse").is_some());
        let read: CallQuality = serde_json::from_value(old).unwrap();
        assert_eq!((&read.callee, read.media_verdict_worse), (&None, None));
        assert_eq!(read.with_callee(), call);
    }
}
