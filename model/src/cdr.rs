//! The call detail record.

use serde::{Deserialize, Serialize};

use crate::call::{BillingMode, Direction, EndedBy, HangupCause, Transport};
use crate::device::Device;
use crate::forwarding::ForwardReason;
use crate::ids::{
    AgentId, CallId, CampaignId, ContactId, ExtensionId, NodeId, OrganisationId, TeamId, TrunkId,
};
use crate::media_quality::CallQuality;
use crate::money::{Amount, Currency};
use crate::quality::{CalleeMedia, MediaVerdict, Quality};
use crate::rating::Billing;
use crate::time::Timestamp;

/// One call in its stored and journalled form: all fields that any reader may see, and the ids that decide
/// which readers may. The public API writes it as [`CdrView`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cdr {
    /// Primary key.
    pub call_uuid: CallId,
    /// The tenant the record belongs to.
    pub organisation_id: OrganisationId,
    /// The caller's extension, or the extension called from outside.
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
    /// The caller's number; empty when withheld.
    pub caller_number: Option<String>,
    /// The number as routed.
    pub destination_number: Option<String>,
    /// The digits dialled, when routing converted them to another number.
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
    /// Why the far end of the last attempt ended or failed; `None` without a bridge, or without a final response.
    pub bridge_cause: Option<HangupCause>,
    /// The far end's final SIP response of the last attempt.
    pub sip_status: Option<u16>,
    /// The side that ended the call; `None` while it is live, or if unknown.
    #[serde(default)]
    pub ended_by: Option<EndedBy>,
    /// Whether the call carried a fax (T.38).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub fax: bool,
    /// The call for whose party a transfer placed this call.
    #[serde(default)]
    pub transferred_from: Option<CallId>,
    /// The call whose party replaced a party of this one; the last, if there were several.
    #[serde(default)]
    pub transferred_to: Option<CallId>,
    /// The number of the extension that forwarded the call; the last, if there were several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forwarded_by: Option<String>,
    /// Why that extension forwarded it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forward_reason: Option<ForwardReason>,
    /// The number that it forwarded the call to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forwarded_to: Option<String>,
    /// The price for the customer.
    pub sell_amount: Amount,
    /// The price of the carrier, in `currency`.
    pub cost_amount: Amount,
    /// The currency of the amounts.
    pub currency: Option<Currency>,
    /// The called extension, whatever the caller's type; only in the journal, for `call.missed`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub called: Option<Called>,
    /// Input plus output tokens of the AI that handled the call. The store takes them from its conversation,
    /// whichever of the two is stored first.
    #[serde(default)]
    pub ai_tokens: Option<u64>,
    /// The details of the amounts.
    #[serde(default)]
    pub billing: Billing,
    /// The text of the program that requested the call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reference: Option<String>,
    /// Media of the caller's leg.
    pub quality: Quality,
    /// Media of the called party's leg; `None` when no called party's leg was judged, and in old records.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub media_b: Option<Quality>,
    /// The caller's device; unknown in old records.
    #[serde(default, skip_serializing_if = "Device::is_unknown")]
    pub device_a: Device,
    /// The called party's device; unknown in old records.
    #[serde(default, skip_serializing_if = "Device::is_unknown")]
    pub device_b: Device,
    /// The media quality of both legs; only in the journal, because the store keeps it beside the record.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub media: Option<Box<CallQuality>>,
}

/// The called extension of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Called {
    /// The extension.
    pub extension_id: ExtensionId,
    /// Its team.
    pub team_id: Option<TeamId>,
}

impl Cdr {
    /// True when both codecs are known and differ.
    pub fn transcoded(&self) -> bool {
        matches!((&self.codec_a, &self.codec_b), (Some(a), Some(b)) if !a.eq_ignore_ascii_case(b))
    }

    /// The worse of the verdicts on the two directions.
    pub fn worse_verdict(&self) -> Option<MediaVerdict> {
        MediaVerdict::worse(self.quality.verdict, self.media_b.and_then(|media| media.verdict))
    }

    /// The record as the public API writes it; `margin` includes the fields that need `margin:read`.
    pub fn view(&self, margin: bool) -> CdrView<'_> {
        let places = self.currency.map_or(2, Currency::places);
        let quality = &self.quality;
        let cost = self.billing.cost.as_ref().filter(|_| margin);
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
            ended_by: self.ended_by,
            fax: self.fax.then_some(true),
            transferred_from: self.transferred_from,
            transferred_to: self.transferred_to,
            forwarded_by: self.forwarded_by.as_deref(),
            forward_reason: self.forward_reason,
            forwarded_to: self.forwarded_to.as_deref(),
            sell_amount: self.sell_amount.to_text(places),
            cost_amount: margin.then(|| self.cost_amount.to_text(places)),
            margin: margin.then(|| {
                let margin = self.sell_amount.scaled().saturating_sub(self.cost_amount.scaled());
                Amount::from_scaled(margin).to_text(places)
            }),
            currency: self.currency,
            ai_tokens: self.ai_tokens,
            reference: self.reference.as_deref(),
            cost_currency: cost.map(|cost| cost.currency),
            cost_amount_original: cost.map(|cost| cost.amount.to_text(cost.currency.places())),
            fx_rate: cost.and_then(|cost| cost.fx_rate).map(|rate| rate.to_text(0)),
            cost_unconverted: cost.filter(|cost| cost.fx_rate.is_none()).map(|_| true),
            jitter_ms: quality.jitter_ms.map(|h| h.as_f64()),
            loss_pct: quality.loss_pct.map(|h| h.as_f64()),
            mean_interval_ms: quality.mean_interval_ms.map(|h| h.as_f64()),
            quality_pct: quality.quality_pct.map(|h| h.as_f64()),
            mos: quality.mos.map(|h| h.as_f64()),
            media_verdict: quality.verdict.map(MediaVerdict::as_str),
            media_b: self.media_b.and_then(|media| media.callee()),
            media_verdict_worse: self.worse_verdict().map(MediaVerdict::as_str),
            user_agent_a: self.device_a.user_agent.as_deref(),
            network_a: self.device_a.network.as_deref(),
            user_agent_b: self.device_b.user_agent.as_deref(),
            network_b: self.device_b.network.as_deref(),
        }
    }
}

/// A call detail record. Nullable fields are always present; other fields are absent when they have no value.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = Cdr))]
pub struct CdrView<'a> {
    /// The call of this record.
    pub call_uuid: CallId,
    /// The direction of the call.
    pub direction: Direction,
    /// The transport of the call.
    pub transport: Transport,
    /// When the caller's INVITE arrived.
    pub started_at: Timestamp,
    /// When the caller was answered; null when it never was.
    #[cfg_attr(feature = "openapi", schema(required))]
    pub answered_at: Option<Timestamp>,
    /// When the caller's leg ended.
    #[cfg_attr(feature = "openapi", schema(required))]
    pub ended_at: Option<Timestamp>,
    /// Billed seconds: from answer to end, rounded down; 0 when unanswered.
    pub billsec: u32,
    /// Whether the call is priced.
    pub billing_mode: BillingMode,
    /// True when `codec_a` differs from `codec_b`.
    pub transcoded: bool,
    /// Codec of the caller's leg.
    #[cfg_attr(feature = "openapi", schema(required, example = "PCMU"))]
    pub codec_a: Option<&'a str>,
    /// Codec of the far leg.
    #[cfg_attr(feature = "openapi", schema(required, example = "opus"))]
    pub codec_b: Option<&'a str>,
    /// The caller's number; absent when withheld.
    #[cfg_attr(feature = "openapi", schema(example = "1001"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub caller_number: Option<&'a str>,
    /// The number as routed.
    #[cfg_attr(feature = "openapi", schema(example = "+442071230000"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub destination_number: Option<&'a str>,
    /// The digits the caller keyed; present only when routing read them as a different number.
    #[cfg_attr(feature = "openapi", schema(example = "02071230000"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dialled_number: Option<&'a str>,
    /// The agent of the call.
    #[cfg_attr(feature = "openapi", schema(required))]
    pub agent_id: Option<AgentId>,
    /// The team of the call.
    #[cfg_attr(feature = "openapi", schema(required))]
    pub team_id: Option<TeamId>,
    /// The campaign that placed the call; present only when one did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub campaign_id: Option<CampaignId>,
    /// The customer the call was with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub contact_id: Option<ContactId>,
    /// The switch node that carried the call; absent when it is unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fs_node_id: Option<NodeId>,
    /// Why the caller's leg ended, a Q.850 name such as `NORMAL_CLEARING`; the list is open.
    #[cfg_attr(feature = "openapi", schema(required, value_type = Option<String>, example = "NORMAL_CLEARING"))]
    pub hangup_cause: Option<HangupCause>,
    /// The far end's cause for the last bridge attempt; absent when there was no bridge or no answer.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>, example = "USER_BUSY"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bridge_cause: Option<HangupCause>,
    /// The far end's final SIP response for the last bridge attempt; absent when none was received.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sip_status: Option<u16>,
    /// Which side ended the call: `caller`, `callee`, or `system` for a limit, a timer, a failure or an operator;
    /// absent where it is unknown, as in older records.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>, example = "caller"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended_by: Option<EndedBy>,
    /// True for a call that carried a fax (T.38 over UDPTL), for all or a part of its time; absent in other records.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fax: Option<bool>,
    /// The `call_uuid` of the call whose party was transferred to this call; absent in other records.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub transferred_from: Option<CallId>,
    /// The `call_uuid` of the call that a party of this call was transferred to; absent in other records.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub transferred_to: Option<CallId>,
    /// The number of the extension that forwarded the call, the last if there were several; absent when none did.
    #[cfg_attr(feature = "openapi", schema(example = "1001"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub forwarded_by: Option<&'a str>,
    /// Why `forwarded_by` forwarded the call: `always`, `busy`, `do_not_disturb`, `no_answer`, `redirected` (by its
    /// phone) or `unregistered`; the list is open.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>, example = "no_answer"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub forward_reason: Option<ForwardReason>,
    /// The number that `forwarded_by` forwarded the call to, as routed; absent in other records, and in older ones.
    #[cfg_attr(feature = "openapi", schema(example = "+442079460000"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub forwarded_to: Option<&'a str>,
    /// The customer's price, in `currency`.
    #[cfg_attr(feature = "openapi", schema(value_type = Amount))]
    pub sell_amount: String,
    /// The carrier's charge, converted into `currency`; only with `margin:read`.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<Amount>))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost_amount: Option<String>,
    /// `sell_amount` less `cost_amount`; only with `margin:read`.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<Amount>))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub margin: Option<String>,
    /// Currency of `sell_amount`, `cost_amount` and `margin`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub currency: Option<Currency>,
    /// Input plus output tokens of the AI that handled the call; absent when no AI did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ai_tokens: Option<u64>,
    /// The text that the program gave when it requested the call; absent for other calls.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reference: Option<&'a str>,
    /// Currency that the carrier charged in; only with `margin:read`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost_currency: Option<Currency>,
    /// The carrier's charge in `cost_currency`, before conversion; only with `margin:read`.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<Amount>))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost_amount_original: Option<String>,
    /// One unit of `cost_currency` in `currency`, fixed when the call was settled; only with `margin:read`.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<Amount>))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fx_rate: Option<String>,
    /// True when there was no conversion rate: `cost_amount` is then the carrier's raw figure and `margin` is not
    /// meaningful; only with `margin:read`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost_unconverted: Option<bool>,
    /// Peak inbound jitter, ms.
    #[cfg_attr(feature = "openapi", schema(required))]
    pub jitter_ms: Option<f64>,
    /// Percent of inbound packets that never arrived; absent when too little audio arrived to judge.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub loss_pct: Option<f64>,
    /// Mean gap between arriving packets, ms; about 20 on a healthy 20 ms stream.
    #[cfg_attr(feature = "openapi", schema(required))]
    pub mean_interval_ms: Option<f64>,
    /// Received packets minus flaws, as a share of received.
    #[cfg_attr(feature = "openapi", schema(required))]
    pub quality_pct: Option<f64>,
    /// Mean opinion score, derived only from `quality_pct`.
    #[cfg_attr(feature = "openapi", schema(required))]
    pub mos: Option<f64>,
    /// Verdict on the audio that arrived on the caller's leg; absent for a leg without an RTP session.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<MediaVerdict>))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub media_verdict: Option<&'static str>,
    /// The same figures for the called party's leg; absent when the call had no called party, and in records that are
    /// older than these figures.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub media_b: Option<CalleeMedia>,
    /// The worse of the verdicts on both legs. Verdicts by severity, worst first: `wrong_advertised_address`,
    /// `no_inbound_media`, `no_outbound_media`, `lossy_inbound`, `jittery_inbound`, `degraded_audio`,
    /// `unpaced_sender`, `ptime_mismatch`, `unanswered`, `ok`.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<MediaVerdict>))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub media_verdict_worse: Option<&'static str>,
    /// The `User-Agent` of the caller's device, at most 120 characters; absent if it sent none, and in older records.
    #[cfg_attr(feature = "openapi", schema(example = "Example Phone 7.1"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user_agent_a: Option<&'a str>,
    /// The network of the caller: the /24 (IPv4) or /64 (IPv6) block that its audio came from, otherwise its SIP; absent
    /// in older records.
    #[cfg_attr(feature = "openapi", schema(example = "192.0.2.0/24"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network_a: Option<&'a str>,
    /// The `User-Agent` or `Server` of the called party's device, as `user_agent_a`.
    #[cfg_attr(feature = "openapi", schema(example = "Example Gateway 2.0"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user_agent_b: Option<&'a str>,
    /// The network of the called party, as `network_a`.
    #[cfg_attr(feature = "openapi", schema(example = "2001:db8:1:2::/64"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network_b: Option<&'a str>,
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;
    use crate::quality::Hundredths;
    use crate::rating::CarrierCharge;

    fn unanswered() -> Cdr {
        Cdr {
            call_uuid: CallId(Uuid::nil()),
            organisation_id: OrganisationId(Uuid::nil()),
            called: None,
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
            ended_by: None,
            fax: false,
            transferred_from: None,
            transferred_to: None,
            forwarded_by: None,
            forward_reason: None,
            forwarded_to: None,
            sell_amount: Amount::ZERO,
            cost_amount: Amount::ZERO,
            currency: None,
            ai_tokens: None,
            reference: None,
            billing: Billing::default(),
            quality: Quality::default(),
            media_b: None,
            device_a: Device::default(),
            device_b: Device::default(),
            media: None,
        }
    }

    /// The far end's response takes precedence, then the cause of the caller's leg; an answered call has no
    /// such reason.
    #[test]
    fn a_record_says_why_it_was_not_answered() {
        let busy = "the far end refused it (486 Busy Here), which means that the called party was busy.";
        let cases = [
            (Some(486), Some(HangupCause::UserBusy), busy),
            (Some(487), Some(HangupCause::OriginatorCancel), "the caller hung up before the answer."),
            (None, Some(HangupCause::UserNotRegistered), "the called party is registered nowhere."),
            (None, None, "The call was not answered."),
        ];
        for (sip_status, hangup_cause, words) in cases {
            let said = crate::failure::of_record(&Cdr { sip_status, hangup_cause, ..unanswered() }).unwrap();
            assert!(said.contains(words), "{said}");
        }
        let answered = Cdr { answered_at: Some(Timestamp::from_micros(1)), ..unanswered() };
        assert_eq!(crate::failure::of_record(&answered), None);
    }

    /// A record without further data contains exactly the nullable and the required fields.
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

    /// The carrier's charge of a record, converted and not, for readers with the permission.
    #[test]
    fn what_the_carrier_charged_is_shown_with_the_margin() {
        let mut cdr = unanswered();
        cdr.currency = Some("EUR".parse().unwrap());
        cdr.sell_amount = "0.012".parse().unwrap();
        cdr.cost_amount = "0.00736".parse().unwrap();
        let charge = CarrierCharge {
            currency: "USD".parse().unwrap(),
            amount: "0.008".parse().unwrap(),
            fx_rate: Some("0.92".parse().unwrap()),
        };
        cdr.billing.cost = Some(charge);
        let fields =
            ["cost_amount", "margin", "cost_currency", "cost_amount_original", "fx_rate", "cost_unconverted"];
        let shown = |cdr: &Cdr, margin| {
            let json = serde_json::to_value(cdr.view(margin)).unwrap();
            fields.map(|name| json.get(name).map(ToString::to_string))
        };
        let texts = |texts: [Option<&str>; 6]| texts.map(|text| text.map(str::to_owned));
        let converted = [r#""0.00736""#, r#""0.00464""#, r#""USD""#, r#""0.008""#, r#""0.92""#].map(Some);
        let [cost, margin, currency, original, rate] = converted;
        assert_eq!(shown(&cdr, true), texts([cost, margin, currency, original, rate, None]));
        assert_eq!(shown(&cdr, false), [const { None }; 6]);
        (cdr.cost_amount, cdr.billing.cost) =
            (charge.amount, Some(CarrierCharge { fx_rate: None, ..charge }));
        let raw = Some(r#""0.008""#);
        assert_eq!(shown(&cdr, true), texts([raw, Some(r#""0.004""#), currency, raw, None, Some("true")]));
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

    /// The journal stores records as JSON and reads them back unchanged.
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
        assert!(!text.contains("media_b"), "a record without it is written as before");
        assert!(!text.contains("device_"), "a record without it is written as before");
        assert_eq!(serde_json::from_str::<Cdr>(&text).unwrap(), cdr);
        cdr.media_b = Some(Quality { verdict: Some(MediaVerdict::LossyInbound), ..cdr.quality });
        cdr.device_a = Device { user_agent: Some("Example Phone 7".into()), network: None };
        cdr.device_b = Device { user_agent: None, network: Some("192.0.2.0/24".into()) };
        let text = serde_json::to_string(&cdr).unwrap();
        assert_eq!(serde_json::from_str::<Cdr>(&text).unwrap(), cdr);
    }

    #[test]
    fn the_called_party_is_shown_beside_the_caller() {
        let mut cdr = unanswered();
        cdr.quality.verdict = Some(MediaVerdict::Ok);
        let shown = |cdr: &Cdr| serde_json::to_value(cdr.view(false)).unwrap();
        assert_eq!(shown(&cdr).get("media_b"), None);
        assert_eq!(shown(&cdr)["media_verdict_worse"], "ok");
        let verdict = Some(MediaVerdict::LossyInbound);
        let loss_pct = Some(Hundredths(1500));
        cdr.media_b = Some(Quality { verdict, loss_pct, ..Quality::default() });
        let expected = serde_json::json!({ "media_verdict": "lossy_inbound", "loss_pct": 15.0 });
        assert_eq!(shown(&cdr)["media_b"], expected);
        assert_eq!(shown(&cdr)["media_verdict"], "ok", "the caller's own");
        assert_eq!(shown(&cdr)["media_verdict_worse"], "lossy_inbound");
    }
}
