//! "Call log" of the public document: one test per row of the table of query parameters, named after it.

use sidetone_model::call::{Direction, HangupCause, Transport};
use sidetone_model::cdr::Cdr;
use sidetone_model::ids::{AgentId, CampaignId, ExtensionId, NodeId, TeamId, TrunkId};
use sidetone_model::money::Amount;
use sidetone_model::quality::{MediaVerdict, Quality};
use uuid::Uuid;

use crate::common::records::{at, ended};
use crate::http::engine::{Engine, Ids};

const CRM: &str = "acmecrm00001";

/// Calls 1 to 4 of Acme, one hour apart; call 9 is Bolt's and matches whatever call 1 matches.
fn records(ids: Ids) -> Vec<Cdr> {
    let id = Uuid::from_u128;
    let first = Cdr {
        organisation_id: ids.acme,
        extension_id: Some(ExtensionId(id(1))),
        trunk_id: Some(TrunkId(id(2))),
        agent_id: Some(AgentId(id(3))),
        team_id: Some(TeamId(id(4))),
        campaign_id: Some(CampaignId(id(5))),
        node_id: Some(NodeId(id(6))),
        direction: Direction::Inbound,
        transport: Transport::Whatsapp,
        codec_b: Some("opus".to_owned()),
        caller_number: Some("anonymous".to_owned()),
        destination_number: Some("+442071230000".to_owned()),
        hangup_cause: Some(HangupCause::UserBusy),
        billsec: 7,
        started_at: at(0),
        ended_at: Some(at(10)),
        sell_amount: Amount::from_scaled(910_000_000),
        media_b: Some(Quality { verdict: Some(MediaVerdict::LossyInbound), ..Quality::default() }),
        ..ended(1)
    };
    let second = Cdr {
        organisation_id: ids.acme,
        direction: Direction::Outbound,
        caller_number: Some("1002".to_owned()),
        destination_number: Some("+442071230000".to_owned()),
        dialled_number: Some("02071230000".to_owned()),
        billsec: 60,
        started_at: at(3600),
        ended_at: Some(at(3700)),
        sell_amount: Amount::from_scaled(1_050_000_000),
        quality: Quality { verdict: Some(MediaVerdict::JitteryInbound), ..Quality::default() },
        media_b: Some(Quality { verdict: Some(MediaVerdict::Ok), ..Quality::default() }),
        ..ended(2)
    };
    let third = Cdr {
        organisation_id: ids.acme,
        caller_number: Some("1003".to_owned()),
        destination_number: Some("50%_off".to_owned()),
        codec_b: None,
        billsec: 0,
        started_at: at(7200),
        ended_at: None,
        ..ended(3)
    };
    let fourth = Cdr {
        organisation_id: ids.acme,
        caller_number: None,
        destination_number: Some("İSTANBUL".to_owned()),
        billsec: 7,
        started_at: at(10_800),
        ended_at: Some(at(10_801)),
        ..ended(4)
    };
    let foreign = Cdr { organisation_id: ids.bolt, call_uuid: ended(9).call_uuid, ..first.clone() };
    vec![first, second, third, fourth, foreign]
}

/// Runs each query and compares the calls of the response, in order, and its total.
fn check(cases: &[(&str, &[u128])]) {
    let engine = Engine::start(records);
    for (query, expected) in cases {
        let answer = engine.get(CRM, &format!("/cdrs?{query}"));
        assert_eq!(answer.status, 200, "{query}: {}", answer.body);
        let found: Vec<String> = answer.body["items"]
            .as_array()
            .unwrap()
            .iter()
            .map(|item| item["call_uuid"].as_str().unwrap().to_owned())
            .collect();
        let wanted: Vec<String> = expected.iter().map(|call| ended(*call).call_uuid.to_string()).collect();
        assert_eq!(found, wanted, "{query}");
        let paged = query.contains("limit=") || query.contains("offset=");
        assert!(paged || answer.body["total"] == expected.len(), "{query}");
    }
}

/// Runs each query and compares the message of the 400.
fn refuse(cases: &[(&str, &str)]) {
    let engine = Engine::start(|_| vec![]);
    for (query, message) in cases {
        let answer = engine.get(CRM, &format!("/cdrs?{query}"));
        assert_eq!((answer.status, answer.code()), (400, "invalid_request"), "{query}");
        assert_eq!(answer.body["error"]["message"], *message, "{query}");
    }
}

/// An id filter: the one call with the id, none for an unused id, 400 for an invalid UUID.
fn check_id(name: &str, number: u128) {
    let (own, other) = (Uuid::from_u128(number), Uuid::from_u128(0xFFFF));
    check(&[(&format!("{name}={own}"), &[1]), (&format!("{name}={other}"), &[])]);
    let message = format!("{name}: must be a UUID");
    refuse(&[(&format!("{name}="), &message), (&format!("{name}={}", own.simple()), &message)]);
}

#[test]
fn extension_id() {
    check_id("extension_id", 1);
}

#[test]
fn did() {
    check(&[
        ("did=207123", &[2, 1]),
        ("did=%2B44", &[2, 1]),
        ("did=0207", &[2]),
        ("did=207123&direction=inbound", &[1]),
        ("did=1002", &[]),
        ("did=OFF", &[3]),
        ("did=0%25_o", &[3]),
        ("did=%25", &[3]),
        ("did=_", &[3]),
        ("did=i%CC%87stan", &[4]),
        ("did=", &[4, 3, 2, 1]),
    ]);
}

#[test]
fn campaign_id() {
    check_id("campaign_id", 5);
}

#[test]
fn from() {
    check(&[
        ("from=2026-01-01", &[4, 3, 2, 1]),
        ("from=2026-01-01T01:00:00.123Z", &[4, 3, 2]),
        ("from=2026-01-01T01:00:00.123456Z", &[4, 3, 2]),
        ("from=2026-01-01T01:00:00.123457Z", &[4, 3]),
        ("from=2026-01-01T04:00:00%2B01:00", &[4]),
        ("from=2026-01-02", &[]),
    ]);
    let message = "from: must be an RFC 3339 timestamp, its + written as %2B, or a date YYYY-MM-DD";
    refuse(&[("from=yesterday", message), ("from=2026-02-30", message), ("from=1767225600", message)]);
}

#[test]
fn to() {
    check(&[
        ("to=2026-01-01", &[]),
        ("to=2026-01-01T01:00:00.123456Z", &[1]),
        ("to=2026-01-01T01:00:00.123457Z", &[2, 1]),
        ("to=2026-01-02", &[4, 3, 2, 1]),
        ("from=2026-01-01T00:30:00Z&to=2026-01-01T02:30:00Z", &[3, 2]),
    ]);
    refuse(&[("to=", "to: must be an RFC 3339 timestamp, its + written as %2B, or a date YYYY-MM-DD")]);
}

#[test]
fn team_id() {
    check_id("team_id", 4);
}

#[test]
fn agent_id() {
    check_id("agent_id", 3);
}

#[test]
fn direction() {
    check(&[("direction=inbound", &[1]), ("direction=outbound", &[2]), ("direction=internal", &[4, 3])]);
    refuse(&[("direction=INBOUND", "direction: must be one of inbound, outbound, internal")]);
}

#[test]
fn transport() {
    check(&[("transport=whatsapp", &[1]), ("transport=sip", &[4, 3, 2])]);
    refuse(&[("transport=pigeon", "transport: must be one of node, sip, whatsapp")]);
}

#[test]
fn hangup_cause() {
    check(&[
        ("hangup_cause=USER_BUSY", &[1]),
        ("hangup_cause=user_busy", &[]),
        ("hangup_cause=NO_SUCH_CAUSE", &[]),
    ]);
}

#[test]
fn transcoded() {
    check(&[("transcoded=true", &[1]), ("transcoded=false", &[4, 3, 2])]);
    refuse(&[("transcoded=yes", "transcoded: must be true or false")]);
}

#[test]
fn trunk_id() {
    check_id("trunk_id", 2);
}

#[test]
fn min_billsec() {
    check(&[
        ("min_billsec=0", &[4, 3, 2, 1]),
        ("min_billsec=7", &[4, 2, 1]),
        ("min_billsec=8", &[2]),
        ("min_billsec=9223372036854775807", &[]),
    ]);
    refuse(&[("min_billsec=-1", "min_billsec: must be a whole number, 0 or more")]);
}

#[test]
fn node_id() {
    check_id("node_id", 6);
}

#[test]
fn organisation_id() {
    let engine = Engine::start(records);
    let own = engine.get(CRM, &format!("/cdrs?organisation_id={}", engine.ids.acme));
    assert_eq!((own.status, own.body["total"].as_u64()), (200, Some(4)));
    for foreign in [engine.ids.bolt.0, Uuid::from_u128(0xFFFF)] {
        let answer = engine.get(CRM, &format!("/cdrs?organisation_id={foreign}&team_id={foreign}"));
        assert_eq!((answer.status, answer.code()), (403, "forbidden"));
        let (status, _, _) = engine.text(CRM, &format!("/cdrs/export?organisation_id={foreign}"));
        assert_eq!(status, 403);
    }
    refuse(&[("organisation_id=acme", "organisation_id: must be a UUID")]);
}

#[test]
fn limit() {
    check(&[("limit=1", &[4]), ("limit=500", &[4, 3, 2, 1])]);
    let message = "limit: must be between 1 and 500";
    refuse(&[("limit=0", message), ("limit=501", message), ("limit=", message)]);
}

#[test]
fn offset() {
    check(&[("offset=0", &[4, 3, 2, 1]), ("offset=3", &[1]), ("offset=4", &[]), ("limit=1&offset=2", &[2])]);
    refuse(&[("offset=-1", "offset: must be a whole number, 0 or more")]);
}

#[test]
fn sort() {
    check(&[
        ("sort=billsec", &[2, 4, 1, 3]),
        ("sort=caller_number", &[1, 3, 2, 4]),
        ("sort=destination_number", &[4, 3, 2, 1]),
        ("sort=direction", &[2, 4, 3, 1]),
        ("sort=ended_at", &[4, 2, 1, 3]),
        ("sort=sell_amount", &[2, 1, 4, 3]),
        ("sort=started_at", &[4, 3, 2, 1]),
    ]);
    refuse(&[(
        "sort=cost_amount",
        "sort: unknown key 'cost_amount', must be one of billsec, caller_number, destination_number, \
         direction, ended_at, mos, sell_amount, started_at",
    )]);
}

#[test]
fn order() {
    check(&[
        ("order=asc", &[1, 2, 3, 4]),
        ("order=desc", &[4, 3, 2, 1]),
        ("sort=billsec&order=asc", &[3, 1, 4, 2]),
        ("sort=caller_number&order=asc", &[2, 3, 1, 4]),
        ("sort=destination_number&order=asc", &[1, 2, 3, 4]),
        ("sort=direction&order=asc", &[1, 3, 4, 2]),
        ("sort=ended_at&order=asc", &[1, 2, 4, 3]),
        ("sort=sell_amount&order=asc", &[3, 4, 1, 2]),
        ("sort=started_at&order=asc", &[1, 2, 3, 4]),
    ]);
    refuse(&[("order=ASC", "order: must be asc or desc")]);
}

#[test]
fn q() {
    check(&[
        ("q=ANONY", &[1]),
        ("q=02071", &[2]),
        ("q=user_b", &[1]),
        ("q=%25", &[3]),
        ("q=%C4%B0stanbul", &[4]),
        ("q=%27%20OR%201=1", &[]),
        ("q=", &[4, 3, 2, 1]),
    ]);
    let long = format!("q={}", "x".repeat(1001));
    refuse(&[
        (&long, "q: must be at most 1000 characters"),
        ("q=%00", "q: must not contain control characters"),
    ]);
}

#[test]
fn the_message_names_every_field_that_is_wrong_in_the_order_of_the_request() {
    refuse(&[(
        "to=x&agent_id=x&order=x&from=2026-01-01&limit=x&colour=red&to=2026-01-01",
        "to: must be an RFC 3339 timestamp, its + written as %2B, or a date YYYY-MM-DD; \
         agent_id: must be a UUID; order: must be asc or desc; limit: must be between 1 and 500; \
         colour: is not a parameter of this list; to: is given more than once",
    )]);
}

#[test]
fn media_verdict() {
    check(&[
        ("media_verdict=ok", &[4, 3, 1]),
        ("media_verdict=jittery_inbound", &[2]),
        ("media_verdict=ok&direction=inbound", &[1]),
        ("media_verdict=degraded_audio", &[]),
    ]);
    refuse_verdict("media_verdict");
}

/// A record without a called party, or from before the field existed, has no such verdict.
#[test]
fn media_verdict_b() {
    check(&[
        ("media_verdict_b=lossy_inbound", &[1]),
        ("media_verdict_b=ok", &[2]),
        ("media_verdict_b=ok&media_verdict=jittery_inbound", &[2]),
        ("media_verdict_b=ok&media_verdict=ok", &[]),
        ("media_verdict_b=lossy_inbound&from=2026-01-01T01:00:00Z", &[]),
        ("media_verdict_b=unanswered", &[]),
    ]);
    refuse_verdict("media_verdict_b");
}

fn refuse_verdict(name: &str) {
    let known = MediaVerdict::ALL.map(|(_, name)| name).join(", ");
    let message = format!("{name}: unknown verdict 'bad', must be one of {known}");
    refuse(&[(&format!("{name}=bad"), &message)]);
}

#[test]
fn filters_combine() {
    check(&[
        ("did=207&min_billsec=8", &[2]),
        ("did=207&min_billsec=8&direction=inbound", &[]),
        ("q=207&sort=billsec&order=asc&limit=1&offset=1", &[2]),
    ]);
}
