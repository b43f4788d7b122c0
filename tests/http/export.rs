//! `GET /cdrs/export`: the call log as a file.

use serde_json::Value;
use sidetone_model::call::{EndedBy, HangupCause};
use sidetone_model::cdr::Cdr;
use sidetone_model::device::Device;
use sidetone_model::forwarding::ForwardReason;
use sidetone_model::ids::{AgentId, CampaignId, ContactId, TeamId};
use sidetone_model::money::Amount;
use sidetone_model::quality::{MediaVerdict, Quality};
use sidetone_model::rating::{Billing, CarrierCharge};
use uuid::Uuid;

use crate::common::records::{at, ended};
use crate::http::engine::{Engine, Ids};

const CRM: &str = "acmecrm00001";
const BOSS: &str = "acmeboss0001";

/// More records than one chunk, the first with every field; one of Bolt's.
fn records(ids: Ids) -> Vec<Cdr> {
    let id = Uuid::from_u128;
    let charge =
        CarrierCharge { currency: "USD".parse().unwrap(), amount: Amount::ONE, fx_rate: Some(Amount::ONE) };
    let mut all: Vec<Cdr> = (0..1203)
        .map(|number| Cdr {
            organisation_id: ids.acme,
            started_at: at((number / 7) as i64),
            billsec: number as u32,
            ..ended(number)
        })
        .collect();
    all[0] = Cdr {
        caller_number: Some("=cmd|' /C calc'!A0".to_owned()),
        destination_number: Some("+442071230000".to_owned()),
        dialled_number: Some("say \"hi\", you".to_owned()),
        agent_id: Some(AgentId(id(1))),
        team_id: Some(TeamId(id(2))),
        campaign_id: Some(CampaignId(id(3))),
        contact_id: Some(ContactId(id(4))),
        bridge_cause: Some(HangupCause::UserBusy),
        ended_by: Some(EndedBy::Caller),
        fax: true,
        transferred_from: Some(ended(1).call_uuid),
        transferred_to: Some(ended(2).call_uuid),
        forwarded_by: Some("1002".into()),
        forward_reason: Some(ForwardReason::Busy),
        forwarded_to: Some("1003".into()),
        ai_tokens: Some(1200),
        reference: Some("ticket-4711".to_owned()),
        device_a: Device {
            user_agent: Some("Example Phone 7".to_owned()),
            network: Some("192.0.2.0/24".to_owned()),
        },
        device_b: Device {
            user_agent: Some("=gateway".to_owned()),
            network: Some("2001:db8::/64".to_owned()),
        },
        media_b: Some(Quality { verdict: Some(MediaVerdict::PtimeMismatch), ..all[0].quality }),
        billing: Billing { cost: Some(charge), ..Billing::default() },
        ..all[0].clone()
    };
    all[1].billing.cost = Some(CarrierCharge { fx_rate: None, ..charge });
    all.push(Cdr { organisation_id: ids.bolt, ..ended(5000) });
    all
}

#[test]
fn csv_is_the_default_newest_first_with_every_record_once() {
    let engine = Engine::start(records);
    let (status, head, body) = engine.text(CRM, "/cdrs/export");
    assert_eq!(status, 200);
    assert!(head.contains("content-type: text/csv; charset=utf-8"), "{head}");
    assert!(head.contains("content-disposition: attachment; filename=\"cdrs.csv\""), "{head}");
    assert!(body.ends_with("\r\n"));
    let calls: Vec<&str> = body.lines().skip(1).map(|line| line.split_once(',').unwrap().0).collect();
    let wanted: Vec<String> = (0..1203).rev().map(|number| ended(number).call_uuid.to_string()).collect();
    assert_eq!(calls, wanted);
    let last = body.lines().last().unwrap();
    assert!(last.contains(",'=cmd|' /C calc'!A0,+442071230000,\"say \"\"hi\"\", you\","), "{last}");
    assert!(last.contains(",ticket-4711,"), "{last}");
}

#[test]
fn ndjson_is_one_record_a_line_as_the_list_writes_it() {
    let engine = Engine::start(records);
    let (status, head, body) = engine.text(CRM, "/cdrs/export?format=ndjson&order=asc");
    assert_eq!(status, 200);
    assert!(head.contains("content-type: application/x-ndjson") && head.contains("cdrs.ndjson"), "{head}");
    let rows: Vec<Value> = body.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(rows.len(), 1203);
    let list = engine.get(CRM, "/cdrs?order=asc&limit=500");
    assert_eq!(&rows[..500], list.body["items"].as_array().unwrap());
}

#[test]
fn every_field_that_a_record_shows_is_a_column() {
    let engine = Engine::start(records);
    for key in [CRM, BOSS] {
        let (_, _, body) = engine.text(key, "/cdrs/export?min_billsec=1202");
        let mut columns: Vec<&str> = body.lines().next().unwrap().split(',').collect();
        columns.sort_unstable();
        // A charge is converted or not, so no single record has all fields.
        let shown = [0, 1].map(|number| engine.get(key, &format!("/cdrs/{}", ended(number).call_uuid)));
        let mut fields = [shown[0].fields(), shown[1].fields()].concat();
        // The called party's figures are separate columns.
        fields.retain(|name| *name != "media_b");
        let far = shown[0].body["media_b"].as_object().unwrap();
        let far: Vec<String> = far.keys().map(|name| format!("{name}_b")).collect();
        fields.extend(far.iter().map(String::as_str));
        fields.sort_unstable();
        fields.dedup();
        assert_eq!(columns, fields, "{key}");
    }
}

#[test]
fn the_called_party_has_columns_of_its_own() {
    let engine = Engine::start(records);
    for (query, verdict, worse) in
        [("min_billsec=0&q=calc", "ptime_mismatch", "ptime_mismatch"), ("min_billsec=1202", "", "ok")]
    {
        let (_, _, body) = engine.text(CRM, &format!("/cdrs/export?{query}"));
        let rows: Vec<Vec<&str>> = body.lines().map(|line| line.rsplit(',').collect()).collect();
        // Counted from the right, where no column has text of a caller.
        let cell = |name: &str| rows[1][rows[0].iter().position(|column| *column == name).unwrap()];
        assert_eq!([cell("media_verdict"), cell("media_verdict_b")], ["ok", verdict], "{body}");
        assert_eq!(cell("media_verdict_worse"), worse);
        assert_eq!(cell("loss_pct_b").is_empty(), verdict.is_empty(), "absent, never zero");
    }
}

#[test]
fn an_export_knows_the_filters_of_the_list() {
    let engine = Engine::start(records);
    for (query, count) in [
        ("min_billsec=1200", 3),
        ("q=calc", 1),
        ("media_verdict=ok&media_verdict_b=ptime_mismatch", 1),
        ("did=%25", 0),
        ("from=2026-01-01T00:02:00Z&transcoded=false", 363),
    ] {
        let (status, _, body) = engine.text(CRM, &format!("/cdrs/export?{query}"));
        assert_eq!((status, body.lines().count() - 1), (200, count), "{query}");
        assert_eq!(engine.get(CRM, &format!("/cdrs?{query}")).body["total"], count, "{query}");
    }
}

#[test]
fn an_export_without_the_permission_answers_403() {
    let engine = Engine::start(|_| vec![]);
    assert_eq!(engine.text("acmerooms001", "/cdrs/export").0, 403);
    let answer = engine.get(CRM, "/cdrs/export?format=xml");
    assert_eq!((answer.status, answer.code()), (400, "invalid_request"));
}
