//! The call detail record.

use serde::{Deserialize, Serialize};

use crate::call::{BillingMode, Direction, HangupCause, Transport};
use crate::ids::{
    AgentId, CallId, CampaignId, ContactId, ExtensionId, NodeId, OrganisationId, TeamId, TrunkId,
};
use crate::money::{Amount, Currency};
use crate::quality::Quality;
use crate::time::Timestamp;

/// One call as it is stored and journalled: everything that any reader may be shown, and the ids that
/// decide who is. What the public API writes of it is [`CdrView`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cdr {
    /// Primary key.
    pub call_uuid: CallId,
    /// The tenant the record belongs to.
    pub organisation_id: OrganisationId,
    /// The extension the call was on: the caller's, or the one called from outside.
    pub extension_id: Option<ExtensionId>,
    /// The trunk that carried the outside leg.
    pub trunk_id: Option<TrunkId>,
    /// See [`Direction`].
    pub direction: Direction,
    /// See [`Transport`].
    pub transport: Transport,
    /// When the caller's INVITE arrived.
    pub started_at: Timestamp,
    /// When the caller was answered.
    pub answered_at: Option<Timestamp>,
    /// When the caller's leg ended.
    pub ended_at: Option<Timestamp>,
    /// Whole seconds from answer to end, rounded down; 0 when unanswered.
    pub billsec: u32,
    /// See [`BillingMode`].
    pub billing_mode: BillingMode,
    /// Codec of the caller's leg.
    pub codec_a: Option<String>,
    /// Codec of the far leg.
    pub codec_b: Option<String>,
    /// Who called; empty when withheld.
    pub caller_number: Option<String>,
    /// The number as routed.
    pub destination_number: Option<String>,
    /// The digits keyed, when routing read them as another number.
    pub dialled_number: Option<String>,
    /// The agent of the record.
    pub agent_id: Option<AgentId>,
    /// The team of the record.
    pub team_id: Option<TeamId>,
    /// The campaign that placed the call.
    pub campaign_id: Option<CampaignId>,
    /// The customer the call was with.
    pub contact_id: Option<ContactId>,
    /// The node that carried the call.
    pub node_id: Option<NodeId>,
    /// Why the caller's leg ended.
    pub hangup_cause: Option<HangupCause>,
    /// Why the far end of the last attempt ended without an answer.
    pub bridge_cause: Option<HangupCause>,
    /// The far end's final SIP response of the last attempt.
    pub sip_status: Option<u16>,
    /// What the customer pays.
    pub sell_amount: Amount,
    /// What the carrier charges, in `currency`.
    pub cost_amount: Amount,
    /// The currency of the amounts.
    pub currency: Option<Currency>,
    /// Input plus output tokens of the AI that handled the call; the store knows them from its conversation,
    /// whichever of the two comes first.
    #[serde(default)]
    pub ai_tokens: Option<u64>,
    /// Media of the caller's leg.
    pub quality: Quality,
}

impl Cdr {
    /// True when both codecs are known and differ.
    pub fn transcoded(&self) -> bool {
        matches!((&self.codec_a, &self.codec_b), (Some(a), Some(b)) if !a.eq_ignore_ascii_case(b))
    }

    /// The record as the public API writes it; `margin` shows what only `margin:read` may see.
    pub fn view(&self, margin: bool) -> CdrView<'_> {
        let places = self.currency.map_or(2, Currency::places);
        let quality = &self.quality;
        CdrView {
            call_uuid: self.call_uuid,
            direction: self.direction,
            transport: self.transport,
            started_at: self.started_at,
            answered_at: self.answered_at,
            ended_at: self.ended_at,
            billsec: self.billsec,
            billing_mode: self.billing_mode,
            transcoded: self.transcoded(),
            codec_a: self.codec_a.as_deref(),
            codec_b: self.codec_b.as_deref(),
            caller_number: self.caller_number.as_deref(),
            destination_number: self.destination_number.as_deref(),
            dialled_number: self.dialled_number.as_deref(),
            agent_id: self.agent_id,
            team_id: self.team_id,
            campaign_id: self.campaign_id,
            contact_id: self.contact_id,
            fs_node_id: self.node_id,
            hangup_cause: self.hangup_cause,
            bridge_cause: self.bridge_cause,
            sip_status: self.sip_status,
            sell_amount: self.sell_amount.to_text(places),
            cost_amount: margin.then(|| self.cost_amount.to_text(places)),
            margin: margin.then(|| {
                let margin = self.sell_amount.scaled().saturating_sub(self.cost_amount.scaled());
                Amount::from_scaled(margin).to_text(places)
            }),
            currency: self.currency,
            ai_tokens: self.ai_tokens,
            jitter_ms: quality.jitter_ms.map(|h| h.as_f64()),
            loss_pct: quality.loss_pct.map(|h| h.as_f64()),
            mean_interval_ms: quality.mean_interval_ms.map(|h| h.as_f64()),
            quality_pct: quality.quality_pct.map(|h| h.as_f64()),
            mos: quality.mos.map(|h| h.as_f64()),
            media_verdict: quality.verdict.map(crate::quality::MediaVerdict::as_str),
        }
    }
}

/// The public JSON of a record: a nullable field is always there, an optional one is left out when it has
/// no value (api-decisions C2, "null or absent").
#[derive(Clone, Debug, PartialEq, Serialize)]
#[expect(missing_docs, reason = "the fields are those of `Cdr` under their public names")]
pub struct CdrView<'a> {
    pub call_uuid: CallId,
    pub direction: Direction,
    pub transport: Transport,
    pub started_at: Timestamp,
    pub answered_at: Option<Timestamp>,
    pub ended_at: Option<Timestamp>,
    pub billsec: u32,
    pub billing_mode: BillingMode,
    pub transcoded: bool,
    pub codec_a: Option<&'a str>,
    pub codec_b: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub caller_number: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub destination_number: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dialled_number: Option<&'a str>,
    pub agent_id: Option<AgentId>,
    pub team_id: Option<TeamId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub campaign_id: Option<CampaignId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub contact_id: Option<ContactId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fs_node_id: Option<NodeId>,
    pub hangup_cause: Option<HangupCause>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bridge_cause: Option<HangupCause>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sip_status: Option<u16>,
    pub sell_amount: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost_amount: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub margin: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub currency: Option<Currency>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ai_tokens: Option<u64>,
    pub jitter_ms: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub loss_pct: Option<f64>,
    pub mean_interval_ms: Option<f64>,
    pub quality_pct: Option<f64>,
    pub mos: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub media_verdict: Option<&'static str>,
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;
    use crate::quality::{Hundredths, MediaVerdict};

    fn unanswered() -> Cdr {
        Cdr {
            call_uuid: CallId(Uuid::nil()),
            organisation_id: OrganisationId(Uuid::nil()),
            extension_id: None,
            trunk_id: None,
            direction: Direction::Internal,
            transport: Transport::Sip,
            started_at: Timestamp::from_micros(0),
            answered_at: None,
            ended_at: None,
            billsec: 0,
            billing_mode: BillingMode::Free,
            codec_a: None,
            codec_b: None,
            caller_number: None,
            destination_number: None,
            dialled_number: None,
            agent_id: None,
            team_id: None,
            campaign_id: None,
            contact_id: None,
            node_id: None,
            hangup_cause: None,
            bridge_cause: None,
            sip_status: None,
            sell_amount: Amount::ZERO,
            cost_amount: Amount::ZERO,
            currency: None,
            ai_tokens: None,
            quality: Quality::default(),
        }
    }

    /// Exactly the nullable and required fields stand in a record that knows nothing else.
    #[test]
    fn nullable_is_null_and_optional_is_absent() {
        let json = serde_json::to_value(unanswered().view(false)).unwrap();
        let mut names: Vec<_> = json.as_object().unwrap().keys().cloned().collect();
        names.sort();
        assert_eq!(
            names,
            [
                "agent_id",
                "answered_at",
                "billing_mode",
                "billsec",
                "call_uuid",
                "codec_a",
                "codec_b",
                "direction",
                "ended_at",
                "hangup_cause",
                "jitter_ms",
                "mean_interval_ms",
                "mos",
                "quality_pct",
                "sell_amount",
                "started_at",
                "team_id",
                "transcoded",
                "transport",
            ]
        );
        assert_eq!(json["sell_amount"], "0.00");
    }

    #[test]
    fn margin_is_shown_only_to_those_who_may() {
        let mut cdr = unanswered();
        cdr.sell_amount = "1.25".parse().unwrap();
        cdr.cost_amount = "0.80005".parse().unwrap();
        let hidden = serde_json::to_value(cdr.view(false)).unwrap();
        assert!(hidden.get("cost_amount").is_none() && hidden.get("margin").is_none());
        let shown = serde_json::to_value(cdr.view(true)).unwrap();
        assert_eq!((&shown["cost_amount"], &shown["margin"]), (&"0.80005".into(), &"0.44995".into()));
    }

    #[test]
    fn codecs_compare_by_name() {
        let mut cdr = unanswered();
        assert!(!cdr.transcoded());
        (cdr.codec_a, cdr.codec_b) = (Some("opus".into()), Some("OPUS".into()));
        assert!(!cdr.transcoded());
        cdr.codec_b = Some("PCMU".into());
        assert!(cdr.transcoded());
    }

    /// The journal keeps records as JSON: what is read back is what was written.
    #[test]
    fn a_record_survives_the_journal() {
        let mut cdr = unanswered();
        cdr.quality = Quality {
            jitter_ms: Some(Hundredths(2096)),
            loss_pct: Some(Hundredths(0)),
            verdict: Some(MediaVerdict::Ok),
            ..Quality::default()
        };
        cdr.currency = Some("EUR".parse().unwrap());
        let text = serde_json::to_string(&cdr).unwrap();
        assert_eq!(serde_json::from_str::<Cdr>(&text).unwrap(), cdr);
    }
}
