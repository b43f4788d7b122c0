//! "Conversation (AI or human-handled call)" of the public document: one test per row of its tables, named after
//! the row.

use serde_json::{Value, json};
use sidetone_model::cdr::Cdr;
use uuid::Uuid;

use crate::common::records::ended;
use crate::http::engine::Engine;

/// Keys that see every amount, only the sell amounts, and none.
const AUDIT: &str = "acmeaudit001";
const BILLING: &str = "acmebill0001";
const CRM: &str = "acmecrm00001";
const ROBOT: &str = "acmerobot001";

/// Every field that a conversation may show, and when.
const FIELDS: [(&str, Rule); 29] = [
    ("id", Rule::Always),
    ("organisation_id", Rule::Always),
    ("call_uuid", Rule::Always),
    ("direction", Rule::Always),
    ("started_at", Rule::Always),
    ("ended_at", Rule::Optional),
    ("agent_id", Rule::Nullable),
    ("agent_kind", Rule::Always),
    ("contact_id", Rule::Optional),
    ("contact_e164", Rule::Optional),
    ("summary", Rule::Optional),
    ("turn_count", Rule::Always),
    ("provider", Rule::Optional),
    ("model", Rule::Optional),
    ("virtual_agent_profile_id", Rule::Nullable),
    ("virtual_agent_profile_name", Rule::Optional),
    ("ai_billing_mode", Rule::Optional),
    ("ai_cost_amount", Rule::WithMargin),
    ("ai_cost_currency", Rule::WithMargin),
    ("ai_sell_amount", Rule::WithBilling),
    ("ai_sell_currency", Rule::WithBilling),
    ("tokens_input", Rule::Optional),
    ("tokens_output", Rule::Optional),
    ("tokens_audio", Rule::Optional),
    ("audio_split_known", Rule::Optional),
    ("flags", Rule::Always),
    ("assembled_context", Rule::Optional),
    ("turns", Rule::Always),
    // The criteria of the review belong to the tenant and are not part of the conversation.
    ("profile", Rule::Never),
];

/// When a conversation shows a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rule {
    /// Always, with a value.
    Always,
    /// Not at all.
    Never,
    /// Always; null when there is no value.
    Nullable,
    /// When it has a value.
    Optional,
    /// When it has a value, with `billing:read`.
    WithBilling,
    /// When it has a value, with `margin:read`.
    WithMargin,
}

fn path(number: u128) -> String {
    format!("/conversations/{}", Uuid::from_u128(0xC0_0000 + number))
}

/// A virtual agent's completed conversation with every optional field.
fn full() -> Value {
    json!({
        "call_uuid": ended(1).call_uuid, "direction": "outbound", "started_at": "2026-01-01T00:00:02.123Z",
        "ended_at": "2026-01-01T00:01:02.123Z", "agent_id": Uuid::from_u128(0xA6), "agent_kind": "virtual",
        "contact_id": Uuid::from_u128(0xC7), "contact_e164": "+442071230000", "summary": "Asked for Bolt.",
        "provider": "acme-ai", "model": "talk-1", "virtual_agent_profile_id": Uuid::from_u128(0xF0),
        "virtual_agent_profile_name": "Sales", "ai_billing_mode": "rated", "tokens_input": 1000,
        "tokens_output": 200, "tokens_audio": 600, "assembled_context": "Sell.\n",
        "profile": {"competitors": ["Bolt"]},
        "turns": [
            {"seq": 7, "at": "2026-01-01T00:00:03Z", "role": "agent", "text": "Bolt?", "speaker": "Robin",
             "tool_name": "lookup", "tool_args": {"q": "Bolt"}, "tool_result": {"found": false}},
            {"seq": 3, "at": "2026-01-01T00:00:02.5Z", "role": "caller"},
        ],
    })
}

/// A person's running conversation without optional fields.
fn bare() -> Value {
    json!({
        "call_uuid": ended(2).call_uuid, "direction": "inbound", "started_at": "2026-01-01T00:00:02Z",
        "agent_kind": "human",
    })
}

/// An engine with both.
fn engine() -> Engine {
    let engine = Engine::start(|ids| {
        let own = |number| Cdr { organisation_id: ids.acme, ..ended(number) };
        vec![own(1), own(2)]
    });
    for (number, report) in [(1, full()), (2, bare())] {
        let answer = engine.call("PUT", ROBOT, &path(number), &report);
        assert_eq!(answer.status, 201, "{}", answer.body);
    }
    engine
}

/// Checks a row against its rule, and against `value` in the conversation that has everything.
fn row(name: &str, value: Value) {
    let (_, rule) = FIELDS.into_iter().find(|(field, _)| *field == name).unwrap();
    let engine = engine();
    for key in [AUDIT, BILLING, CRM] {
        let (full, bare) = (engine.get(key, &path(1)).body, engine.get(key, &path(2)).body);
        let by_call = engine.get(key, &format!("/cdrs/{}/conversation", ended(1).call_uuid)).body;
        assert_eq!(by_call, full);
        let shown = match rule {
            Rule::WithBilling => key != CRM,
            Rule::WithMargin => key == AUDIT,
            _ => true,
        };
        assert_eq!(full.get(name), Some(&value).filter(|_| shown), "{key}");
        let bare = bare.get(name);
        match rule {
            Rule::Always => assert!(bare.is_some_and(|value| !value.is_null()), "{key}"),
            Rule::Nullable => assert_eq!(bare, Some(&Value::Null), "{key}"),
            _ => assert_eq!(bare, None, "{key}"),
        }
    }
}

/// Checks a row of the table of turns: the value in turn 7, and in turn 3, which was reported with less.
fn turn_row(name: &str, full: Value, bare: Option<Value>) {
    let body = engine().get(CRM, &path(1)).body;
    let turns = body["turns"].as_array().unwrap();
    assert_eq!(turns[1].get(name), Some(&full));
    assert_eq!(turns[0].get(name), bare.as_ref());
}

#[test]
fn id() {
    row("id", json!(Uuid::from_u128(0xC0_0001)));
}

#[test]
fn organisation_id() {
    let engine = engine();
    assert_eq!(engine.get(CRM, &path(1)).body["organisation_id"], json!(engine.ids.acme));
}

#[test]
fn call_uuid() {
    row("call_uuid", json!(ended(1).call_uuid));
}

#[test]
fn direction() {
    row("direction", json!("outbound"));
    assert_eq!(engine().get(CRM, &path(2)).body["direction"], "inbound");
}

#[test]
fn started_at_and_ended_at() {
    row("started_at", json!("2026-01-01T00:00:02.123Z"));
    row("ended_at", json!("2026-01-01T00:01:02.123Z"));
}

#[test]
fn agent_id() {
    row("agent_id", json!(Uuid::from_u128(0xA6)));
}

#[test]
fn agent_kind() {
    row("agent_kind", json!("virtual"));
    assert_eq!(engine().get(CRM, &path(2)).body["agent_kind"], "human");
}

#[test]
fn contact_id() {
    row("contact_id", json!(Uuid::from_u128(0xC7)));
}

#[test]
fn contact_e164() {
    row("contact_e164", json!("+442071230000"));
}

#[test]
fn summary() {
    row("summary", json!("Asked for Bolt."));
}

#[test]
fn turn_count() {
    row("turn_count", json!(2));
    assert_eq!(engine().get(CRM, &path(2)).body["turn_count"], 0);
}

#[test]
fn provider() {
    row("provider", json!("acme-ai"));
}

#[test]
fn model() {
    row("model", json!("talk-1"));
}

#[test]
fn virtual_agent_profile_id() {
    row("virtual_agent_profile_id", json!(Uuid::from_u128(0xF0)));
}

#[test]
fn virtual_agent_profile_name() {
    row("virtual_agent_profile_name", json!("Sales"));
}

#[test]
fn ai_billing_mode() {
    row("ai_billing_mode", json!("rated"));
}

#[test]
fn ai_cost_amount() {
    row("ai_cost_amount", json!("0.0222"));
    row("ai_cost_currency", json!("USD"));
}

#[test]
fn ai_sell_amount() {
    row("ai_sell_amount", json!("0.0288"));
    row("ai_sell_currency", json!("EUR"));
}

#[test]
fn tokens_input() {
    row("tokens_input", json!(1000));
}

#[test]
fn tokens_output() {
    row("tokens_output", json!(200));
}

#[test]
fn tokens_audio() {
    row("tokens_audio", json!(600));
}

#[test]
fn audio_split_known() {
    row("audio_split_known", json!(true));
}

#[test]
fn flags() {
    row("flags", json!([{"kind": "competitor", "seq": 7, "detail": "Bolt"}]));
    assert_eq!(engine().get(CRM, &path(2)).body["flags"], json!([]));
}

#[test]
fn assembled_context() {
    row("assembled_context", json!("Sell.\n"));
}

#[test]
fn turns() {
    let body = engine().get(CRM, &path(2)).body;
    assert_eq!(body["turns"], json!([]));
}

#[test]
fn turn_seq() {
    turn_row("seq", json!(7), Some(json!(3)));
}

#[test]
fn turn_at() {
    turn_row("at", json!("2026-01-01T00:00:03.000Z"), Some(json!("2026-01-01T00:00:02.500Z")));
}

#[test]
fn turn_role() {
    turn_row("role", json!("agent"), Some(json!("caller")));
}

#[test]
fn turn_speaker() {
    turn_row("speaker", json!("Robin"), Some(json!("")));
}

#[test]
fn turn_text() {
    turn_row("text", json!("Bolt?"), Some(json!("")));
}

#[test]
fn turn_tool_name() {
    turn_row("tool_name", json!("lookup"), None);
}

#[test]
fn turn_tool_args() {
    turn_row("tool_args", json!({"q": "Bolt"}), None);
}

#[test]
fn turn_tool_result() {
    turn_row("tool_result", json!({"found": false}), None);
}

/// This test finds any extra or missing field, whatever its name.
#[test]
fn a_conversation_has_these_fields_and_no_other() {
    use Rule::*;

    let engine = engine();
    let names = |rules: &[Rule]| {
        let mut names: Vec<&str> =
            FIELDS.into_iter().filter(|(_, rule)| rules.contains(rule)).map(|(name, _)| name).collect();
        names.sort_unstable();
        names
    };
    let full = engine.get(AUDIT, &path(1));
    assert_eq!(full.fields(), names(&[Always, Nullable, Optional, WithBilling, WithMargin]));
    assert_eq!(engine.get(BILLING, &path(1)).fields(), names(&[Always, Nullable, Optional, WithBilling]));
    assert_eq!(engine.get(CRM, &path(1)).fields(), names(&[Always, Nullable, Optional]));
    assert_eq!(engine.get(AUDIT, &path(2)).fields(), names(&[Always, Nullable]));
    let keys = |at: usize| {
        let mut keys: Vec<&str> =
            full.body["turns"][at].as_object().unwrap().keys().map(String::as_str).collect();
        keys.sort_unstable();
        keys
    };
    assert_eq!(keys(0), ["at", "role", "seq", "speaker", "text"]);
    assert_eq!(keys(1), ["at", "role", "seq", "speaker", "text", "tool_args", "tool_name", "tool_result"]);
}
