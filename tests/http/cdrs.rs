//! "Call detail record", "CDR page" and "Call log" of the public document.

use serde_json::json;
use sidetone_model::call::{BillingMode, Direction, HangupCause, Transport};
use sidetone_model::cdr::Cdr;
use sidetone_model::ids::{AgentId, CallId, CampaignId, ContactId, TeamId};
use sidetone_model::money::Amount;
use sidetone_model::quality::Quality;
use uuid::Uuid;

use crate::common::records::{answered, at, ended};
use crate::http::engine::{Engine, Ids};

const CRM: &str = "acmecrm00001";
const BOSS: &str = "acmeboss0001";

/// A record with every field, one without optional fields, and one of another tenant.
fn records(ids: Ids) -> Vec<Cdr> {
    let id = Uuid::from_u128;
    let full = Cdr {
        organisation_id: ids.acme,
        direction: Direction::Inbound,
        transport: Transport::Whatsapp,
        billing_mode: BillingMode::Rated,
        codec_b: Some("opus".to_owned()),
        dialled_number: Some("0044".to_owned()),
        agent_id: Some(AgentId(id(1))),
        team_id: Some(TeamId(id(2))),
        campaign_id: Some(CampaignId(id(3))),
        contact_id: Some(ContactId(id(4))),
        bridge_cause: Some(HangupCause::UserBusy),
        sip_status: Some(486),
        ai_tokens: Some(9_007_199_254_740_993),
        reference: None,
        sell_amount: Amount::from_scaled(120_000_000),
        cost_amount: Amount::from_scaled(80_000_000),
        ..ended(1)
    };
    let bare = Cdr {
        organisation_id: ids.acme,
        started_at: at(-60),
        answered_at: None,
        codec_a: None,
        codec_b: None,
        caller_number: None,
        destination_number: None,
        node_id: None,
        sip_status: None,
        currency: None,
        quality: Quality::default(),
        ..answered(2)
    };
    let foreign = Cdr { organisation_id: ids.bolt, ..ended(3) };
    vec![full, bare, foreign]
}

fn path(number: u128) -> String {
    format!("/cdrs/{}", ended(number).call_uuid)
}

#[test]
fn a_record_has_every_field_of_the_table_under_its_name() {
    let engine = Engine::start(records);
    let answer = engine.get(BOSS, &path(1));
    assert_eq!(
        answer.body,
        json!({
            "call_uuid": ended(1).call_uuid,
            "direction": "inbound",
            "transport": "whatsapp",
            "started_at": "2026-01-01T00:00:00.123Z",
            "answered_at": "2026-01-01T00:00:02.123Z",
            "ended_at": "2026-01-01T00:01:02.123Z",
            "billsec": 60,
            "billing_mode": "rated",
            "transcoded": true,
            "codec_a": "PCMU",
            "codec_b": "opus",
            "caller_number": "1001",
            "destination_number": "1002",
            "dialled_number": "0044",
            "agent_id": Uuid::from_u128(1),
            "team_id": Uuid::from_u128(2),
            "campaign_id": Uuid::from_u128(3),
            "contact_id": Uuid::from_u128(4),
            "fs_node_id": Uuid::from_u128(0x0DE),
            "hangup_cause": "NORMAL_CLEARING",
            "bridge_cause": "USER_BUSY",
            "sip_status": 486,
            "sell_amount": "1.20",
            "cost_amount": "0.80",
            "margin": "0.40",
            "currency": "EUR",
            "ai_tokens": 9_007_199_254_740_993_u64,
            "jitter_ms": 1.1,
            "loss_pct": 0.0,
            "mean_interval_ms": 20.01,
            "quality_pct": 100.0,
            "mos": 4.5,
            "media_verdict": "ok",
            "media_verdict_worse": "ok",
        })
    );
}

#[test]
fn a_nullable_field_is_null_and_an_optional_one_is_absent() {
    let engine = Engine::start(records);
    let answer = engine.get(BOSS, &path(2));
    let nullable = [
        "agent_id",
        "answered_at",
        "codec_a",
        "codec_b",
        "ended_at",
        "hangup_cause",
        "jitter_ms",
        "mean_interval_ms",
        "mos",
        "quality_pct",
        "team_id",
    ];
    for name in nullable {
        assert!(answer.body[name].is_null() && answer.body.get(name).is_some(), "{name}");
    }
    let mut expected = vec![
        "billing_mode",
        "billsec",
        "call_uuid",
        "cost_amount",
        "direction",
        "margin",
        "sell_amount",
        "started_at",
        "transcoded",
        "transport",
    ];
    expected.extend(nullable);
    expected.sort_unstable();
    assert_eq!(answer.fields(), expected);
}

#[test]
fn margin_read_alone_shows_cost_and_margin() {
    let engine = Engine::start(records);
    let answer = engine.get(CRM, &path(1));
    for name in
        ["cost_amount", "margin", "cost_currency", "cost_amount_original", "fx_rate", "cost_unconverted"]
    {
        assert!(answer.body.get(name).is_none(), "{name}");
    }
    assert_eq!((&answer.body["sell_amount"], &answer.body["currency"]), (&json!("1.20"), &json!("EUR")));
    let list = engine.get(CRM, "/cdrs");
    assert!(!list.body.to_string().contains("cost_amount") && !list.body.to_string().contains("margin"));
}

#[test]
fn the_page_has_its_four_fields_and_the_defaults() {
    let engine = Engine::start(records);
    let answer = engine.get(CRM, "/cdrs");
    assert_eq!(answer.status, 200);
    assert_eq!(answer.fields(), ["items", "limit", "offset", "total"]);
    assert_eq!(
        (&answer.body["total"], &answer.body["limit"], &answer.body["offset"]),
        (&json!(2), &json!(50), &json!(0))
    );
    assert!(answer.head.contains("content-type: application/json"));
}

#[test]
fn the_list_is_newest_first_and_pages_are_disjoint() {
    let engine = Engine::start(|ids| {
        (0..12)
            .map(|number| Cdr {
                organisation_id: ids.acme,
                started_at: at((number / 3) as i64),
                ..ended(number)
            })
            .collect()
    });
    let mut seen: Vec<CallId> = Vec::new();
    for offset in [0, 5, 10] {
        let answer = engine.get(CRM, &format!("/cdrs?limit=5&offset={offset}"));
        assert_eq!(answer.body["total"], 12);
        let items = answer.body["items"].as_array().unwrap();
        seen.extend(items.iter().map(|item| item["call_uuid"].as_str().unwrap().parse::<CallId>().unwrap()));
    }
    let expected: Vec<CallId> = (0..12).rev().map(|number| ended(number).call_uuid).collect();
    assert_eq!(seen, expected);
}

#[test]
fn a_wrong_field_answers_400_and_the_message_names_every_one() {
    let engine = Engine::start(|_| vec![]);
    let answer = engine.get(CRM, "/cdrs?limit=501&offset=-1&sort=foo");
    assert_eq!((answer.status, answer.code()), (400, "invalid_request"));
    let message = answer.body["error"]["message"].as_str().unwrap();
    for field in ["limit: ", "offset: ", "sort: "] {
        assert!(message.contains(field), "{message}");
    }
}

#[test]
fn a_record_that_is_no_uuid_400_that_is_not_there_404() {
    let engine = Engine::start(|_| vec![]);
    let cases = [
        ("/cdrs/abc", 400, "invalid_request"),
        ("/cdrs/00000000000000000000000000000001", 400, "invalid_request"),
        ("/cdrs/00000000-0000-0000-0000-000000000001", 404, "not_found"),
    ];
    for (path, status, code) in cases {
        let answer = engine.get(CRM, path);
        assert_eq!((answer.status, answer.code()), (status, code), "{path}");
    }
}

#[test]
fn an_upper_case_uuid_finds_the_record() {
    let engine = Engine::start(records);
    assert_eq!(engine.get(CRM, &path(1).to_uppercase().replace("/CDRS", "/cdrs")).status, 200);
}
