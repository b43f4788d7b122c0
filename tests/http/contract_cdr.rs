//! "Call detail record" of the public document: one test per row of its table, named after the row.
//!
//! Each row is checked in the list, in the single record and in the export, with and without `margin:read`.

use serde_json::{Value, json};
use sidetone_model::call::{BillingMode, Direction, EndedBy, HangupCause, Transport};
use sidetone_model::cdr::Cdr;
use sidetone_model::device::Device;
use sidetone_model::forwarding::ForwardReason;
use sidetone_model::ids::{AgentId, CampaignId, ContactId, TeamId};
use sidetone_model::money::Amount;
use sidetone_model::quality::{Hundredths, MediaVerdict, Quality};
use sidetone_model::rating::{Billing, CarrierCharge};
use uuid::Uuid;

use crate::common::records::{answered, at, ended};
use crate::http::engine::{Engine, Ids};

/// Keys with `margin:read`, and without.
const KEYS: [(&str, bool); 2] = [("acmeboss0001", true), ("acmecrm00001", false)];

/// Every field that a record may show, and when.
const FIELDS: [(&str, Rule); 51] = [
    ("call_uuid", Rule::Always),
    ("direction", Rule::Always),
    ("transport", Rule::Always),
    ("started_at", Rule::Always),
    ("answered_at", Rule::Nullable),
    ("ended_at", Rule::Nullable),
    ("billsec", Rule::Always),
    ("billing_mode", Rule::Always),
    ("transcoded", Rule::Always),
    ("codec_a", Rule::Nullable),
    ("codec_b", Rule::Nullable),
    ("caller_number", Rule::Optional),
    ("destination_number", Rule::Optional),
    ("dialled_number", Rule::Optional),
    ("agent_id", Rule::Nullable),
    ("team_id", Rule::Nullable),
    ("campaign_id", Rule::Optional),
    ("contact_id", Rule::Optional),
    ("fs_node_id", Rule::Optional),
    ("hangup_cause", Rule::Nullable),
    ("bridge_cause", Rule::Optional),
    ("sip_status", Rule::Optional),
    ("ended_by", Rule::Optional),
    ("transferred_from", Rule::Optional),
    ("transferred_to", Rule::Optional),
    ("forwarded_by", Rule::Optional),
    ("forward_reason", Rule::Optional),
    ("forwarded_to", Rule::Optional),
    ("fax", Rule::Optional),
    ("sell_amount", Rule::Always),
    ("cost_amount", Rule::AlwaysWithMargin),
    ("margin", Rule::AlwaysWithMargin),
    ("currency", Rule::Optional),
    ("cost_currency", Rule::OptionalWithMargin),
    ("cost_amount_original", Rule::OptionalWithMargin),
    ("fx_rate", Rule::OptionalWithMargin),
    ("cost_unconverted", Rule::OptionalWithMargin),
    ("ai_tokens", Rule::Optional),
    ("jitter_ms", Rule::Nullable),
    ("loss_pct", Rule::Optional),
    ("mean_interval_ms", Rule::Nullable),
    ("quality_pct", Rule::Nullable),
    ("mos", Rule::Nullable),
    ("media_verdict", Rule::Optional),
    ("media_b", Rule::Optional),
    ("media_verdict_worse", Rule::Optional),
    ("user_agent_a", Rule::Optional),
    ("network_a", Rule::Optional),
    ("user_agent_b", Rule::Optional),
    ("network_b", Rule::Optional),
    // The call log's own field that distinguishes the records of an organisation is `call_uuid`.
    ("organisation_id", Rule::Never),
];

/// When a record shows a field (api-decisions C2, "null or absent").
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rule {
    /// Always, with a value.
    Always,
    /// Always, with `margin:read`.
    AlwaysWithMargin,
    /// Never: such a field would be an easy mistake.
    Never,
    /// Always; null when there is no value.
    Nullable,
    /// When it has a value.
    Optional,
    /// When it has a value, with `margin:read`.
    OptionalWithMargin,
}

const FULL: u128 = 1;
const BARE: u128 = 2;
const UNCONVERTED: u128 = 3;

/// The figures of a called party with bad audio.
fn lossy() -> Quality {
    Quality {
        jitter_ms: Some(Hundredths(310)),
        loss_pct: Some(Hundredths(1512)),
        mean_interval_ms: None,
        mos: Some(Hundredths(233)),
        quality_pct: Some(Hundredths(8_100)),
        verdict: Some(MediaVerdict::LossyInbound),
    }
}

/// A record with every compatible field, one without optional fields, and one whose carrier charged in a currency
/// without a rate.
fn records(ids: Ids) -> Vec<Cdr> {
    let id = Uuid::from_u128;
    let charge = CarrierCharge {
        currency: "USD".parse().unwrap(),
        amount: "0.8695652".parse().unwrap(),
        fx_rate: Some("0.92".parse().unwrap()),
    };
    let full = Cdr {
        organisation_id: ids.acme,
        direction: Direction::Outbound,
        billing_mode: BillingMode::Rated,
        codec_b: Some("opus".to_owned()),
        dialled_number: Some("02071230000".to_owned()),
        agent_id: Some(AgentId(id(1))),
        team_id: Some(TeamId(id(2))),
        campaign_id: Some(CampaignId(id(3))),
        contact_id: Some(ContactId(id(4))),
        bridge_cause: Some(HangupCause::NoAnswer),
        sip_status: Some(480),
        ended_by: Some(EndedBy::Callee),
        fax: true,
        transferred_from: Some(ended(BARE).call_uuid),
        transferred_to: Some(ended(UNCONVERTED).call_uuid),
        forwarded_by: Some("1002".into()),
        forward_reason: Some(ForwardReason::Unregistered),
        forwarded_to: Some("1003".into()),
        ai_tokens: Some(1200),
        reference: None,
        sell_amount: "1.2".parse().unwrap(),
        cost_amount: "0.79999998".parse().unwrap(),
        billing: Billing { cost: Some(charge), ..Billing::default() },
        media_b: Some(lossy()),
        device_a: Device {
            user_agent: Some("Example Phone 7".to_owned()),
            network: Some("192.0.2.0/24".to_owned()),
        },
        device_b: Device {
            user_agent: Some("=gateway".to_owned()),
            network: Some("2001:db8::/64".to_owned()),
        },
        ..ended(FULL)
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
        ..answered(BARE)
    };
    let unconverted = Cdr {
        organisation_id: ids.acme,
        started_at: at(-120),
        transport: Transport::Whatsapp,
        sell_amount: "1".parse().unwrap(),
        cost_amount: Amount::from_scaled(86_956_520),
        billing: Billing { cost: Some(CarrierCharge { fx_rate: None, ..charge }), ..Billing::default() },
        ..ended(UNCONVERTED)
    };
    vec![full, bare, unconverted]
}

/// A call as a caller reads it, which is the same in the list and by id.
fn seen(engine: &Engine, key: &str, call: u128) -> Value {
    let call_uuid = ended(call).call_uuid;
    let one = engine.get(key, &format!("/cdrs/{call_uuid}"));
    assert_eq!(one.status, 200, "{}", one.body);
    let is_it = |item: &&Value| item["call_uuid"] == json!(call_uuid);
    let list = engine.get(key, "/cdrs").body;
    assert_eq!(list["items"].as_array().unwrap().iter().find(is_it), Some(&one.body));
    let (_, _, export) = engine.text(key, "/cdrs/export?format=ndjson");
    let lines: Vec<Value> = export.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.iter().find(is_it), Some(&one.body));
    one.body
}

/// Checks a row against its rule, and against `value` in the record that has everything.
fn row(name: &str, value: Value) {
    let (_, rule) = FIELDS.into_iter().find(|(field, _)| *field == name).unwrap();
    let engine = Engine::start(records);
    for (key, margin) in KEYS {
        let (full, bare) = (seen(&engine, key, FULL), seen(&engine, key, BARE));
        let shown = margin || !matches!(rule, Rule::AlwaysWithMargin | Rule::OptionalWithMargin);
        assert_eq!(full.get(name), Some(&value).filter(|_| shown), "{key}");
        let bare = bare.get(name);
        match rule {
            Rule::Always => assert!(bare.is_some_and(|value| !value.is_null()), "{key}"),
            Rule::AlwaysWithMargin => {
                assert_eq!(bare.is_some_and(|value| value.is_string()), margin, "{key}")
            }
            Rule::Nullable => assert_eq!(bare, Some(&Value::Null), "{key}"),
            Rule::Never | Rule::Optional | Rule::OptionalWithMargin => assert_eq!(bare, None, "{key}"),
        }
    }
}

/// A change of a record, and the value then shown.
type Case = (fn(Cdr) -> Cdr, Option<Value>);

/// Checks the value that each of `records` shows under `name`.
fn shows<const N: usize>(name: &str, cases: [Case; N]) {
    for (change, expected) in cases {
        let engine =
            Engine::start_with(move |ids| vec![change(Cdr { organisation_id: ids.acme, ..ended(1) })]);
        assert_eq!(seen(&engine, "acmeboss0001", 1).get(name), expected.as_ref(), "{name}");
    }
}

#[test]
fn call_uuid() {
    row("call_uuid", json!(ended(FULL).call_uuid));
}

#[test]
fn direction() {
    row("direction", json!("outbound"));
    shows(
        "direction",
        [
            (|cdr| Cdr { direction: Direction::Inbound, ..cdr }, Some(json!("inbound"))),
            (|cdr| Cdr { direction: Direction::Internal, ..cdr }, Some(json!("internal"))),
        ],
    );
}

#[test]
fn transport() {
    row("transport", json!("sip"));
    shows("transport", [(|cdr| Cdr { transport: Transport::Whatsapp, ..cdr }, Some(json!("whatsapp")))]);
}

#[test]
fn started_at() {
    row("started_at", json!("2026-01-01T00:00:00.123Z"));
}

#[test]
fn answered_at() {
    row("answered_at", json!("2026-01-01T00:00:02.123Z"));
}

#[test]
fn ended_at() {
    row("ended_at", json!("2026-01-01T00:01:02.123Z"));
}

#[test]
fn billsec() {
    row("billsec", json!(60));
}

#[test]
fn billing_mode() {
    row("billing_mode", json!("rated"));
    shows("billing_mode", [(|cdr| Cdr { billing_mode: BillingMode::Free, ..cdr }, Some(json!("free")))]);
}

#[test]
fn transcoded() {
    row("transcoded", json!(true));
    shows(
        "transcoded",
        [
            (|cdr| cdr, Some(json!(false))),
            (|cdr| Cdr { codec_b: None, ..cdr }, Some(json!(false))),
            (|cdr| Cdr { codec_b: Some("pcmu".to_owned()), ..cdr }, Some(json!(false))),
            (|cdr| Cdr { codec_b: Some("PCMA".to_owned()), ..cdr }, Some(json!(true))),
        ],
    );
}

#[test]
fn codec_a_and_codec_b() {
    row("codec_a", json!("PCMU"));
    row("codec_b", json!("opus"));
}

#[test]
fn caller_number() {
    row("caller_number", json!("1001"));
}

#[test]
fn destination_number() {
    row("destination_number", json!("1002"));
}

#[test]
fn dialled_number() {
    row("dialled_number", json!("02071230000"));
}

#[test]
fn agent_id() {
    row("agent_id", json!(Uuid::from_u128(1)));
}

#[test]
fn team_id() {
    row("team_id", json!(Uuid::from_u128(2)));
}

#[test]
fn campaign_id() {
    row("campaign_id", json!(Uuid::from_u128(3)));
}

#[test]
fn contact_id() {
    row("contact_id", json!(Uuid::from_u128(4)));
}

#[test]
fn fs_node_id() {
    row("fs_node_id", json!(Uuid::from_u128(0x0DE)));
}

#[test]
fn hangup_cause() {
    row("hangup_cause", json!("NORMAL_CLEARING"));
}

#[test]
fn bridge_cause() {
    row("bridge_cause", json!("NO_ANSWER"));
}

#[test]
fn ended_by() {
    row("ended_by", json!("callee"));
}

#[test]
fn fax() {
    row("fax", json!(true));
}

#[test]
fn transferred_from() {
    row("transferred_from", json!(ended(BARE).call_uuid));
}

#[test]
fn transferred_to() {
    row("transferred_to", json!(ended(UNCONVERTED).call_uuid));
}

#[test]
fn forwarded_by() {
    row("forwarded_by", json!("1002"));
}

#[test]
fn user_agent_a() {
    row("user_agent_a", json!("Example Phone 7"));
}

#[test]
fn network_a() {
    row("network_a", json!("192.0.2.0/24"));
}

#[test]
fn user_agent_b() {
    row("user_agent_b", json!("=gateway"));
}

#[test]
fn network_b() {
    row("network_b", json!("2001:db8::/64"));
}

#[test]
fn forward_reason() {
    row("forward_reason", json!("unregistered"));
}

#[test]
fn forwarded_to() {
    row("forwarded_to", json!("1003"));
}

#[test]
fn sip_status() {
    row("sip_status", json!(480));
}

#[test]
fn sell_amount() {
    row("sell_amount", json!("1.20"));
    let amount = |text: &'static str| Some(json!(text));
    shows(
        "sell_amount",
        [
            (|cdr| Cdr { sell_amount: Amount::ZERO, ..cdr }, amount("0.00")),
            (|cdr| Cdr { sell_amount: Amount::from_scaled(1), ..cdr }, amount("0.00000001")),
            (|cdr| Cdr { sell_amount: Amount::MAX, ..cdr }, amount("92233720368.54775807")),
            (|cdr| Cdr { currency: "JPY".parse().ok(), ..cdr }, amount("0")),
            (|cdr| Cdr { currency: "KWD".parse().ok(), ..cdr }, amount("0.000")),
        ],
    );
}

#[test]
fn cost_amount() {
    row("cost_amount", json!("0.79999998"));
}

#[test]
fn margin() {
    row("margin", json!("0.40000002"));
    shows("margin", [(|cdr| Cdr { cost_amount: "0.5".parse().unwrap(), ..cdr }, Some(json!("-0.50")))]);
}

#[test]
fn currency() {
    row("currency", json!("EUR"));
}

#[test]
fn cost_currency() {
    row("cost_currency", json!("USD"));
}

#[test]
fn cost_amount_original() {
    row("cost_amount_original", json!("0.8695652"));
}

#[test]
fn fx_rate() {
    row("fx_rate", json!("0.92"));
}

#[test]
fn cost_unconverted() {
    let engine = Engine::start(records);
    for (key, margin) in KEYS {
        let record = seen(&engine, key, UNCONVERTED);
        let expected = if margin { Some(&Value::Bool(true)) } else { None };
        assert_eq!(record.get("cost_unconverted"), expected, "{key}");
        assert_eq!(record.get("fx_rate"), None, "{key}");
        if margin {
            // The unconverted amount of the carrier.
            assert_eq!(record["cost_amount"], record["cost_amount_original"]);
        }
        assert_eq!(seen(&engine, key, FULL).get("cost_unconverted"), None, "present only when true");
        assert_eq!(seen(&engine, key, BARE).get("cost_unconverted"), None);
    }
}

#[test]
fn ai_tokens() {
    row("ai_tokens", json!(1200));
    shows("ai_tokens", [(|cdr| Cdr { ai_tokens: Some(1 << 62), ..cdr }, Some(json!(1_u64 << 62)))]);
}

#[test]
fn jitter_ms() {
    row("jitter_ms", json!(1.1));
}

#[test]
fn loss_pct() {
    row("loss_pct", json!(0.0));
}

#[test]
fn mean_interval_ms() {
    row("mean_interval_ms", json!(20.01));
}

#[test]
fn quality_pct() {
    row("quality_pct", json!(100.0));
}

#[test]
fn mos() {
    row("mos", json!(4.5));
    let silent = |cdr: Cdr| Cdr { quality: Quality { mos: Some(Hundredths(100)), ..cdr.quality }, ..cdr };
    shows("mos", [(silent, Some(json!(1.0)))]);
}

#[test]
fn media_verdict() {
    row("media_verdict", json!("ok"));
    let names = [
        "ok",
        "unanswered",
        "no_inbound_media",
        "no_outbound_media",
        "wrong_advertised_address",
        "lossy_inbound",
        "jittery_inbound",
        "unpaced_sender",
        "ptime_mismatch",
        "degraded_audio",
    ];
    let engine = Engine::start(|ids| {
        let verdicts = MediaVerdict::ALL.into_iter().zip(100..);
        verdicts
            .map(|((verdict, _), number)| Cdr {
                organisation_id: ids.acme,
                quality: Quality { verdict: Some(verdict), ..Quality::default() },
                ..ended(number)
            })
            .collect()
    });
    let list = engine.get("acmecrm00001", "/cdrs").body;
    let items = list["items"].as_array().unwrap();
    let mut shown: Vec<&str> = items.iter().map(|item| item["media_verdict"].as_str().unwrap()).collect();
    let mut expected = names.to_vec();
    shown.sort_unstable();
    expected.sort_unstable();
    assert_eq!(shown, expected);
}

#[test]
fn media_b() {
    let figures = json!({ "media_verdict": "lossy_inbound", "loss_pct": 15.12, "jitter_ms": 3.1,
        "quality_pct": 81.0, "mos": 2.33 });
    row("media_b", figures);
    let judged = |cdr: Cdr| Cdr { media_b: Some(Quality { verdict: None, ..lossy() }), ..cdr };
    shows("media_b", [(judged, None)]);
}

#[test]
fn media_verdict_worse() {
    row("media_verdict_worse", json!("lossy_inbound"));
    let alone = |cdr: Cdr| Cdr { media_b: None, ..cdr };
    let caller = |cdr: Cdr| Cdr {
        quality: Quality { verdict: Some(MediaVerdict::NoInboundMedia), ..cdr.quality },
        media_b: Some(lossy()),
        ..cdr
    };
    shows("media_verdict_worse", [(alone, Some(json!("ok"))), (caller, Some(json!("no_inbound_media")))]);
}

/// This test finds any extra or missing field, whatever its name.
#[test]
fn a_record_has_these_fields_and_no_other() {
    let engine = Engine::start(records);
    let names = |wanted: fn(Rule) -> bool| {
        let mut names: Vec<&str> =
            FIELDS.into_iter().filter(|(_, rule)| wanted(*rule)).map(|(name, _)| name).collect();
        names.sort_unstable();
        names
    };
    let fields = |key: &str, call: u128| {
        let record = seen(&engine, key, call);
        let mut names: Vec<String> = record.as_object().unwrap().keys().cloned().collect();
        names.sort_unstable();
        names
    };
    use Rule::*;
    let mut all = names(|rule| rule != Never);
    all.retain(|name| *name != "cost_unconverted");
    assert_eq!(fields("acmeboss0001", FULL), all);
    let without_margin = names(|rule| matches!(rule, Always | Nullable | Optional));
    assert_eq!(fields("acmecrm00001", FULL), without_margin);
    let least = names(|rule| matches!(rule, Always | AlwaysWithMargin | Nullable));
    assert_eq!(fields("acmeboss0001", BARE), least);
    assert_eq!(fields("acmecrm00001", BARE), names(|rule| matches!(rule, Always | Nullable)));
}
