//! Builds the record of a finished call from its facts and outcome; pure.

use sidetone_model::call::{BillingMode, Direction, EndedBy, HangupCause, Transport};
use sidetone_model::cdr::{Called, Cdr};
use sidetone_model::device::Device;
use sidetone_model::forwarding::ForwardReason;
use sidetone_model::ids::{AgentId, CallId, ExtensionId, NodeId, OrganisationId, TeamId, TrunkId};
use sidetone_model::money::{Amount, Currency};
use sidetone_model::quality::Quality;
use sidetone_model::rating::{Billing, Tariff};
use sidetone_model::time::Timestamp;

/// The facts of a call that are fixed by its first INVITE.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Facts {
    /// The call.
    pub call: CallId,
    /// The organisation of the record.
    pub organisation: OrganisationId,
    /// The organisation's currency.
    pub currency: Currency,
    /// The caller's extension, or the extension called from outside.
    pub extension: Option<ExtensionId>,
    /// The agent of that extension.
    pub agent: Option<AgentId>,
    /// That extension's team.
    pub team: Option<TeamId>,
    /// The extension that is called.
    pub called: Option<Called>,
    /// The trunk the call came from; of a call from no trunk, the one it went to.
    pub trunk: Option<TrunkId>,
    /// The direction.
    pub direction: Direction,
    /// The transport of the call.
    pub transport: Transport,
    /// The node that carries it.
    pub node: NodeId,
    /// Wall clock time when the INVITE arrived.
    pub started_at: Timestamp,
    /// The caller's number.
    pub caller_number: Option<String>,
    /// The number as routed.
    pub destination_number: Option<String>,
    /// The digits dialled, when routing converted them to another number.
    pub dialled_number: Option<String>,
    /// The last extension that forwarded the call.
    pub forwarded: Option<Forwarded>,
    /// The prices of a call that is rated.
    pub tariff: Option<Tariff>,
}

/// An extension that forwarded a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Forwarded {
    /// Its number.
    pub by: String,
    /// Why it forwarded the call.
    pub reason: ForwardReason,
    /// The number that it forwarded the call to, as routed.
    pub to: Option<String>,
}

/// The course of the call.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Microseconds from the INVITE to the answer, by the monotonic clock.
    pub answered_after_us: Option<i64>,
    /// Microseconds from the INVITE to the end, by the monotonic clock; `None` while the call is up.
    pub ended_after_us: Option<i64>,
    /// Codec of the caller's leg.
    pub codec_a: Option<String>,
    /// Codec of the far leg.
    pub codec_b: Option<String>,
    /// Why the caller's leg ended.
    pub hangup_cause: Option<HangupCause>,
    /// Why the far leg of the last attempt ended.
    pub bridge_cause: Option<HangupCause>,
    /// The far end's final response of the last attempt.
    pub sip_status: Option<u16>,
    /// Which side ended the call.
    pub ended_by: Option<EndedBy>,
    /// Whether it carried a fax (T.38).
    pub fax: bool,
    /// The call whose party this call was placed for by a transfer.
    pub transferred_from: Option<CallId>,
    /// The call whose party took over from a party of this one.
    pub transferred_to: Option<CallId>,
    /// Media of the caller's leg.
    pub quality: Quality,
    /// Media of the called party's leg, once there is one.
    pub quality_b: Option<Quality>,
    /// The caller's device.
    pub device_a: Device,
    /// The called party's device.
    pub device_b: Device,
}

/// The record of a call. Times after the start follow the monotonic clock, so that a step of the wall clock
/// during a call changes neither `billsec` nor the order of the three timestamps.
pub fn build(facts: &Facts, outcome: Outcome) -> Cdr {
    let at = |after_us: Option<i64>| after_us.map(|us| facts.started_at.plus_micros(us.max(0)));
    let billed_us = match (outcome.answered_after_us, outcome.ended_after_us) {
        (Some(answered), Some(ended)) => ended.saturating_sub(answered).max(0),
        _ => 0,
    };
    Cdr {
        call_uuid: facts.call,
        organisation_id: facts.organisation,
        extension_id: facts.extension,
        trunk_id: facts.trunk,
        direction: facts.direction,
        transport: facts.transport,
        started_at: facts.started_at,
        answered_at: at(outcome.answered_after_us),
        ended_at: at(outcome.ended_after_us),
        billsec: u32::try_from(billed_us / 1_000_000).unwrap_or(u32::MAX),
        // With prices: the amounts are 0 until the call is settled.
        billing_mode: if facts.tariff.is_some() { BillingMode::Rated } else { BillingMode::Free },
        codec_a: outcome.codec_a,
        codec_b: outcome.codec_b,
        caller_number: facts.caller_number.clone(),
        destination_number: facts.destination_number.clone(),
        dialled_number: facts.dialled_number.clone(),
        agent_id: facts.agent,
        team_id: facts.team,
        campaign_id: None,
        contact_id: None,
        node_id: Some(facts.node),
        hangup_cause: outcome.hangup_cause,
        bridge_cause: outcome.bridge_cause,
        sip_status: outcome.sip_status,
        ended_by: outcome.ended_by,
        fax: outcome.fax,
        transferred_from: outcome.transferred_from,
        transferred_to: outcome.transferred_to,
        forwarded_by: facts.forwarded.as_ref().map(|forwarded| forwarded.by.clone()),
        forward_reason: facts.forwarded.as_ref().map(|forwarded| forwarded.reason),
        forwarded_to: facts.forwarded.as_ref().and_then(|forwarded| forwarded.to.clone()),
        sell_amount: Amount::ZERO,
        cost_amount: Amount::ZERO,
        called: facts.called,
        ai_tokens: None,
        reference: None,
        currency: Some(facts.tariff.map_or(facts.currency, |tariff| tariff.sell.currency)),
        billing: Billing { tariff: facts.tariff, ..Billing::default() },
        quality: outcome.quality,
        media_b: outcome.quality_b.and_then(Quality::of_callee),
        device_a: outcome.device_a,
        device_b: outcome.device_b,
        media: None,
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    fn facts() -> Facts {
        Facts {
            call: CallId(Uuid::from_u128(1)),
            organisation: OrganisationId(Uuid::from_u128(2)),
            currency: "EUR".parse().unwrap(),
            extension: None,
            agent: None,
            team: None,
            called: None,
            trunk: None,
            direction: Direction::Internal,
            transport: Transport::Sip,
            node: NodeId(Uuid::from_u128(3)),
            started_at: Timestamp::from_micros(1_000_000),
            caller_number: Some("1001".into()),
            destination_number: Some("1002".into()),
            dialled_number: None,
            forwarded: None,
            tariff: None,
        }
    }

    #[test]
    fn billsec_is_whole_seconds_from_answer_to_end() {
        let cases = [
            (None, Some(9_000_000), 0),
            (Some(4_000_000), Some(63_999_999), 59),
            (Some(4_000_000), Some(64_000_000), 60),
            (Some(4_000_000), None, 0),
        ];
        for (answered_after_us, ended_after_us, billsec) in cases {
            let outcome = Outcome { answered_after_us, ended_after_us, ..Outcome::default() };
            assert_eq!(build(&facts(), outcome).billsec, billsec, "{answered_after_us:?} {ended_after_us:?}");
        }
    }

    #[test]
    fn the_record_is_that_of_the_agent_and_the_team() {
        let (agent, team) = (AgentId(Uuid::from_u128(7)), TeamId(Uuid::from_u128(8)));
        let facts = Facts { agent: Some(agent), team: Some(team), ..facts() };
        let cdr = build(&facts, Outcome::default());
        assert_eq!((cdr.agent_id, cdr.team_id), (Some(agent), Some(team)));
    }

    /// Ring time is never billed, and the timestamps stay in order.
    #[test]
    fn instants_follow_the_start() {
        let outcome = Outcome {
            answered_after_us: Some(20_000_000),
            ended_after_us: Some(21_500_000),
            ..Outcome::default()
        };
        let cdr = build(&facts(), outcome);
        assert_eq!(cdr.answered_at, Some(Timestamp::from_micros(21_000_000)));
        assert_eq!(cdr.ended_at, Some(Timestamp::from_micros(22_500_000)));
        assert_eq!(cdr.billsec, 1);
    }
}
