//! "Conversation" of the public document, and the reports that create conversations.

use serde_json::{Value, json};
use sidetone_model::access::Scope;
use sidetone_model::cdr::Cdr;
use sidetone_model::event::{EventKind, Position};
use uuid::Uuid;

use crate::common::records::ended;
use crate::common::schema::documented;
use crate::http::engine::{Engine, Ids};
use crate::http::face::Answer;

const AUDIT: &str = "acmeaudit001";
const BILLING: &str = "acmebill0001";
const CRM: &str = "acmecrm00001";
const ROBOT: &str = "acmerobot001";

/// Calls 1 and 2 of Acme, call 3 of Bolt.
fn records(ids: Ids) -> Vec<Cdr> {
    let own = |number| Cdr { organisation_id: ids.acme, ..ended(number) };
    vec![own(1), own(2), Cdr { organisation_id: ids.bolt, ..ended(3) }]
}

fn id(number: u128) -> String {
    Uuid::from_u128(0xC0_0000 + number).to_string()
}

fn path(number: u128) -> String {
    format!("/conversations/{}", id(number))
}

/// A completed conversation on call `number`.
fn report(number: u128) -> Value {
    json!({
        "call_uuid": ended(number).call_uuid,
        "direction": "inbound",
        "started_at": "2026-01-01T00:00:02.123Z",
        "ended_at": "2026-01-01T00:01:02.123Z",
        "agent_id": Uuid::from_u128(0xA6),
        "agent_kind": "virtual",
        "contact_id": Uuid::from_u128(0xC7),
        "contact_e164": "+442071230000",
        "summary": "Asked when we open.",
        "provider": "acme-ai",
        "model": "talk-1",
        "virtual_agent_profile_id": Uuid::from_u128(0xF0),
        "virtual_agent_profile_name": "Reception",
        "ai_billing_mode": "rated",
        "tokens_input": 1000,
        "tokens_output": 200,
        "tokens_audio": 600,
        "audio_split_known": true,
        "assembled_context": "You answer the phone of Acme.\nBe brief.",
        "profile": {
            "competitors": ["Bolt"],
            "knowledge_base": {"handed_over_whole": false, "search_tools": ["search"]},
        },
        "turns": turns(),
    })
}

fn turns() -> Value {
    json!([
        {"seq": 1, "at": "2026-01-01T00:00:02.200Z", "role": "agent", "speaker": "", "text": "Hello."},
        {"seq": 2, "at": "2026-01-01T00:00:04.000Z", "role": "caller", "speaker": "Ada", "text": "When are you open?"},
        {"seq": 3, "at": "2026-01-01T00:00:05.000Z", "role": "tool", "speaker": "", "text": "",
         "tool_name": "hours", "tool_args": {"day": "monday", "n": [1, 2.5, null]}, "tool_result": {"from": "10:00"}},
        {"seq": 4, "at": "2026-01-01T00:00:06.000Z", "role": "agent", "speaker": "", "text": "At ten, as Bolt is."},
    ])
}

/// The report with these fields changed; null removes a field.
fn with(mut report: Value, changes: Value) -> Value {
    let fields = report.as_object_mut().unwrap();
    for (name, value) in changes.as_object().unwrap() {
        if value.is_null() {
            fields.shift_remove(name);
        } else {
            fields.insert(name.clone(), value.clone());
        }
    }
    report
}

fn put(engine: &Engine, number: u128, report: &Value) -> Answer {
    engine.call("PUT", ROBOT, &path(number), report)
}

/// The values of tools are stored and answered as they were sent, to the digit.
#[test]
fn the_values_of_tools_keep_every_digit() {
    let engine = Engine::start(records);
    let args = r#"{"amount":1.10,"account":12345678901234567890123,"of":[2.50,1E+2]}"#;
    // Not in the order of their positions, and with white space.
    let turns = format!(
        r#"[{{"seq": 2, "at": "2026-01-01T00:00:05.000Z", "role": "agent", "text": "Yes."}},
            {{"seq": 1, "at": "2026-01-01T00:00:04.000Z", "role": "tool", "tool_name": "debt",
              "tool_args": {}, "tool_result": {{"owes": 900.00}}}}]"#,
        args.replace(',', " ,\n")
    );
    let whole = report(1).to_string().replace(&self::turns().to_string(), &turns);
    let (status, answer) = engine.put_text(ROBOT, &path(1), &whole);
    assert_eq!(status, 201, "{answer}");
    let (_, _, found) = engine.text(AUDIT, &path(1));
    for shown in [answer, found] {
        assert!(shown.contains(&format!(r#""tool_args":{args}"#)), "{shown}");
        assert!(shown.contains(r#""tool_result":{"owes":900.00}"#), "{shown}");
    }
    // The same again, and the same value as an earlier version stored it.
    for again in [whole.clone(), whole.replace("1.10", "1.1").replace("900.00", "900.0")] {
        let (status, answer) = engine.put_text(ROBOT, &path(1), &again);
        assert_eq!(status, 200, "{answer}");
        assert!(answer.contains(&format!(r#""tool_args":{args}"#)), "{answer}");
    }
    let other = whole.replace("1.10", "1.2");
    assert_eq!(engine.put_text(ROBOT, &path(1), &other).0, 409);
    let long = whole.replace("1.10", &format!("1.{}", "0".repeat(66_000)));
    let (status, answer) = engine.put_text(ROBOT, &path(2), &long);
    assert_eq!(status, 400, "{answer}");
    assert!(answer.contains("turns[1].tool_args: must be at most 65536 bytes of JSON"), "{answer}");
}

/// An engine with conversation 1, complete.
fn engine() -> Engine {
    let engine = Engine::start(records);
    let answer = put(&engine, 1, &report(1));
    assert_eq!(answer.status, 201, "{}", answer.body);
    engine
}

#[test]
fn a_conversation_has_every_field_of_the_table_under_its_name() {
    let engine = engine();
    let answer = engine.get(AUDIT, &path(1));
    assert_eq!(answer.status, 200);
    assert_eq!(
        answer.body,
        json!({
            "id": id(1),
            "organisation_id": engine.ids.acme,
            "call_uuid": ended(1).call_uuid,
            "direction": "inbound",
            "started_at": "2026-01-01T00:00:02.123Z",
            "ended_at": "2026-01-01T00:01:02.123Z",
            "agent_id": Uuid::from_u128(0xA6),
            "agent_kind": "virtual",
            "contact_id": Uuid::from_u128(0xC7),
            "contact_e164": "+442071230000",
            "summary": "Asked when we open.",
            "turn_count": 4,
            "provider": "acme-ai",
            "model": "talk-1",
            "virtual_agent_profile_id": Uuid::from_u128(0xF0),
            "virtual_agent_profile_name": "Reception",
            "ai_billing_mode": "rated",
            // 400 at 2.50, 600 at 32, 200 at 10, per million.
            "ai_cost_amount": "0.0222",
            "ai_cost_currency": "USD",
            // 400 at 4, 600 at 40, 200 at 16.
            "ai_sell_amount": "0.0288",
            "ai_sell_currency": "EUR",
            "tokens_input": 1000,
            "tokens_output": 200,
            "tokens_audio": 600,
            "audio_split_known": true,
            "flags": [
                {"kind": "competitor", "seq": 4, "detail": "Bolt"},
                {"kind": "never_searched", "seq": 4, "detail": "answered without searching the knowledge base"},
            ],
            "assembled_context": "You answer the phone of Acme.\nBe brief.",
            "turns": turns(),
        })
    );
    let by_call = engine.get(AUDIT, &format!("/cdrs/{}/conversation", ended(1).call_uuid));
    assert_eq!((by_call.status, by_call.body), (200, answer.body));
}

#[test]
fn agent_id_and_profile_id_are_null_for_a_person_and_what_is_the_ais_is_absent() {
    let engine = Engine::start(records);
    let human = json!({
        "call_uuid": ended(1).call_uuid,
        "direction": "outbound",
        "started_at": "2026-01-01T00:00:02Z",
        "ended_at": null,
        "agent_kind": "human",
        "profile": {"competitors": ["Bolt"]},
        "turns": [{"seq": 0, "at": "2026-01-01T00:00:03Z", "role": "agent", "text": "Bolt"}],
    });
    assert_eq!(put(&engine, 1, &human).status, 201);
    let done = with(human, json!({"ended_at": "2026-01-01T00:00:09Z"}));
    let answer = put(&engine, 1, &done);
    assert_eq!(
        answer.fields(),
        [
            "agent_id",
            "agent_kind",
            "call_uuid",
            "direction",
            "ended_at",
            "flags",
            "id",
            "organisation_id",
            "started_at",
            "turn_count",
            "turns",
            "virtual_agent_profile_id",
        ]
    );
    assert!(answer.body["agent_id"].is_null() && answer.body["virtual_agent_profile_id"].is_null());
    assert_eq!(answer.body["flags"], json!([]));
    let record = engine.get(CRM, &format!("/cdrs/{}", ended(1).call_uuid));
    assert!(record.body.get("ai_tokens").is_none());
    for name in ["provider", "tokens_input", "ai_billing_mode", "virtual_agent_profile_id"] {
        let answer = put(&engine, 2, &with(report(2), json!({"agent_kind": "human"})));
        let message = answer.body["error"]["message"].as_str().unwrap();
        assert!(message.contains(&format!("{name}: belongs to a virtual agent")), "{message}");
    }
}

#[test]
fn ai_cost_amount_is_absent_without_margin_read_and_when_byo() {
    let engine = engine();
    for (key, shown) in [(CRM, false), (BILLING, false), (AUDIT, true)] {
        let answer = engine.get(key, &path(1));
        assert_eq!(answer.body.get("ai_cost_amount").is_some(), shown, "{key}");
        assert_eq!(answer.body.get("ai_cost_currency").is_some(), shown, "{key}");
    }
    put(&engine, 2, &with(report(2), json!({"ai_billing_mode": "byo"})));
    let answer = engine.get(AUDIT, &path(2));
    assert_eq!(answer.body["ai_billing_mode"], "byo");
    assert!(answer.body.get("ai_cost_amount").is_none());
}

#[test]
fn ai_sell_amount_is_absent_never_zero_without_billing_read_without_a_price_and_when_byo() {
    let engine = engine();
    for (key, shown) in [(CRM, false), (BILLING, true), (AUDIT, true)] {
        let answer = engine.get(key, &path(1));
        assert_eq!(answer.body.get("ai_sell_amount").is_some(), shown, "{key}");
        assert_eq!(answer.body.get("ai_sell_currency").is_some(), shown, "{key}");
    }
    put(&engine, 2, &with(report(2), json!({"model": "write-1"})));
    let answer = engine.get(AUDIT, &path(2));
    assert_eq!(answer.body.get("ai_sell_amount"), None);
    assert_eq!(answer.body["ai_cost_amount"], "0.0222");
    let other = Engine::start(records);
    put(&other, 1, &with(report(1), json!({"ai_billing_mode": "byo"})));
    assert!(other.get(AUDIT, &path(1)).body.get("ai_sell_amount").is_none());
}

#[test]
fn audio_is_priced_at_the_text_rate_when_the_split_is_not_known() {
    let engine = Engine::start(records);
    let unsplit = with(report(1), json!({"tokens_audio": null, "audio_split_known": false}));
    put(&engine, 1, &unsplit);
    let answer = engine.get(AUDIT, &path(1));
    // 1,000 at 4, 200 at 16.
    assert_eq!(answer.body["ai_sell_amount"], "0.0072");
    assert_eq!((&answer.body["tokens_audio"], &answer.body["audio_split_known"]), (&json!(0), &json!(false)));
}

#[test]
fn a_conversation_that_runs_has_no_end_no_amounts_and_no_flags() {
    let engine = Engine::start(records);
    let answer = put(&engine, 1, &with(report(1), json!({"ended_at": null})));
    assert_eq!(answer.status, 201);
    let location = format!("location: /api/v1/conversations/{}", id(1));
    assert!(answer.head.contains(&location), "{}", answer.head);
    let answer = engine.get(AUDIT, &path(1));
    for name in ["ended_at", "ai_cost_amount", "ai_sell_amount"] {
        assert!(answer.body.get(name).is_none(), "{name}");
    }
    assert_eq!(answer.body["flags"], json!([]));
}

/// The price of a conversation's AI is deducted from the credit once, as the price of a call is.
#[test]
fn the_price_of_the_ai_draws_on_the_credit() {
    let engine = Engine::start(records);
    put(&engine, 1, &with(report(1), json!({"ended_at": null})));
    assert_eq!(engine.credit_used(), "0.00", "it runs");
    for _ in 0..2 {
        put(&engine, 1, &report(1));
        assert_eq!(engine.credit_used(), "0.0288");
    }
    put(&engine, 2, &with(report(2), json!({"ai_billing_mode": "byo"})));
    assert_eq!(engine.credit_used(), "0.0288", "the tenant paid the provider");
}

/// The list has the conversations that the caller may read, newest first, without their turns.
#[test]
fn conversations_are_listed_newest_first() {
    let engine = Engine::start(records);
    for (number, minute) in [(11, "00"), (12, "01"), (13, "02")] {
        let started = format!("2026-01-01T00:{minute}:02.123Z");
        let ended = format!("2026-01-01T00:{minute}:52.123Z");
        let changes = json!({"started_at": started, "ended_at": ended, "turns": []});
        let answer = put(&engine, number, &with(report(number), changes));
        assert_eq!(answer.status, 201, "{}", answer.body);
    }
    let list = |who, query: &str| engine.get(who, &format!("/conversations{query}"));
    let all = list(AUDIT, "");
    assert_eq!((all.status, &all.body["total"]), (200, &json!(3)));
    assert_eq!(all.items("id"), [id(13), id(12), id(11)]);
    let mut one = engine.get(AUDIT, &path(13)).body;
    for words in ["turns", "assembled_context"] {
        assert!(one.as_object_mut().unwrap().remove(words).is_some(), "{words}");
    }
    assert_eq!(all.body["items"][0], one, "the list shows what the conversation does");
    let items =
        |query: &str| list(AUDIT, query).items("id").into_iter().map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(items("?limit=1&offset=1"), [id(12)]);
    assert_eq!(items("?from=2026-01-01T00:01:00Z&to=2026-01-01T00:02:00Z"), [id(12)]);
    assert_eq!(items(&format!("?agent_id={}", Uuid::from_u128(0xA6))).len(), 3);
    assert_eq!(items(&format!("?agent_id={}", Uuid::from_u128(0xA7))).len(), 0);
    assert_eq!(items("?running=true").len(), 0);
    assert!(list(CRM, "").body["items"][0].get("ai_sell_amount").is_none());
    // Another organisation has none, and may not query these.
    assert_eq!(engine.get("boltcrm00001", "/conversations").body["total"], 0);
    let asked = format!("/conversations?organisation_id={}", engine.ids.acme);
    assert_eq!(engine.get("boltcrm00001", &asked).status, 403);
    assert_eq!(engine.get("acmerooms001", "/conversations").status, 403);
}

#[test]
fn the_same_report_again_changes_nothing_and_answers_the_same() {
    let engine = Engine::start(records);
    let first = put(&engine, 1, &report(1));
    let again = put(&engine, 1, &report(1));
    assert_eq!((first.status, again.status), (201, 200));
    assert_eq!(first.body, again.body);
    assert_eq!(engine.events("conversation.completed").len(), 1);
}

#[test]
fn what_was_read_can_be_sent_back() {
    let engine = engine();
    let read = engine.get(AUDIT, &path(1));
    let answer = put(&engine, 1, &read.body);
    assert_eq!(answer.status, 200, "{}", answer.body);
    assert_eq!(engine.get(AUDIT, &path(1)).body, read.body);
}

#[test]
fn turns_are_appended_while_the_call_runs() {
    let engine = Engine::start(records);
    let all = turns();
    let running = with(report(1), json!({"ended_at": null, "turns": [all[0]]}));
    assert_eq!(put(&engine, 1, &running).body["turn_count"], 1);
    let more = with(running.clone(), json!({"turns": [all[0], all[1]], "tokens_output": 210}));
    assert_eq!(put(&engine, 1, &more).body["turn_count"], 2);
    // Only the new ones, out of order.
    let rest = with(more.clone(), json!({"turns": [all[3], all[2]]}));
    assert_eq!(put(&engine, 1, &rest).body["turns"], all);
    let other = json!({"seq": 2, "at": "2026-01-01T00:00:04.000Z", "role": "caller", "text": "Else."});
    let answer = put(&engine, 1, &with(rest.clone(), json!({"turns": [other]})));
    assert_eq!((answer.status, answer.code()), (409, "conflict"));
    assert_eq!(answer.body["error"]["message"], "turn 2 is stored with other content");
    let late = put(&engine, 1, &running);
    assert_eq!(late.status, 409, "an overtaken report does not turn the counters back");
    let done = put(&engine, 1, &with(rest, json!({"ended_at": "2026-01-01T00:01:02.123Z"})));
    assert_eq!((done.status, done.body["flags"].as_array().unwrap().len()), (200, 2));
}

#[test]
fn a_complete_conversation_is_frozen_but_for_its_summary_and_contact() {
    let engine = engine();
    let all = json!({"seq": 9, "at": "2026-01-01T00:00:09Z", "role": "agent", "text": "More."});
    for (change, names) in [
        (json!({"tokens_input": 1001}), "tokens_input"),
        (json!({"model": "talk-2", "ended_at": "2026-01-01T00:01:03Z"}), "ended_at, model"),
        (json!({"ai_billing_mode": "byo"}), "ai_billing_mode"),
        (json!({"turns": [all]}), "turns"),
        (json!({"ended_at": null}), "ended_at"),
    ] {
        let answer = put(&engine, 1, &with(report(1), change));
        assert_eq!((answer.status, answer.code()), (409, "conflict"), "{names}");
        let expected = format!("the conversation is complete, it cannot change {names}");
        assert_eq!(answer.body["error"]["message"], expected);
    }
    let later = with(report(1), json!({"summary": "Wants a call back.", "contact_id": null, "turns": null}));
    let answer = put(&engine, 1, &later);
    assert_eq!((answer.status, &answer.body["summary"]), (200, &json!("Wants a call back.")));
    assert!(answer.body.get("contact_id").is_none());
    assert_eq!(engine.events("conversation.completed").len(), 1);
}

#[test]
fn a_call_has_one_conversation() {
    let engine = engine();
    let answer = put(&engine, 2, &report(1));
    assert_eq!((answer.status, answer.code()), (409, "conflict"));
    assert_eq!(answer.body["error"]["message"], format!("the call already has the conversation {}", id(1)));
}

#[test]
fn conversation_completed_tells_of_the_conversation_without_amounts_or_words() {
    let engine = engine();
    let stored = engine.stored_events(Scope::Everything, Position::default());
    stored.iter().for_each(documented);
    assert!(stored.iter().any(|event| event.kind == EventKind::ConversationCompleted));
    let events = engine.events("conversation.completed");
    assert_eq!(
        events,
        [json!({
            "id": id(1),
            "call_uuid": ended(1).call_uuid,
            "direction": "inbound",
            "started_at": "2026-01-01T00:00:02.123Z",
            "ended_at": "2026-01-01T00:01:02.123Z",
            "agent_id": Uuid::from_u128(0xA6),
            "agent_kind": "virtual",
            "contact_id": Uuid::from_u128(0xC7),
            "turn_count": 4,
            "flags": [
                {"kind": "competitor", "seq": 4, "detail": "Bolt"},
                {"kind": "never_searched", "seq": 4, "detail": "answered without searching the knowledge base"},
            ],
        })]
    );
}

#[test]
fn ai_tokens_are_on_the_record_whichever_comes_first() {
    let engine = engine();
    let record = |number: u128| engine.get(CRM, &format!("/cdrs/{}", ended(number).call_uuid)).body;
    assert_eq!(record(1)["ai_tokens"], 1200, "audio is not added on top");
    assert!(record(2).get("ai_tokens").is_none());
    let running = with(report(2), json!({"ended_at": null, "ai_billing_mode": "byo"}));
    put(&engine, 2, &running);
    assert_eq!(record(2)["ai_tokens"], 1200);
    put(&engine, 2, &with(running, json!({"tokens_output": 300})));
    assert_eq!(record(2)["ai_tokens"], 1300);

    // The conversation of a call that has not ended yet.
    let answer = put(&engine, 8, &report(8));
    assert_eq!(answer.status, 201);
    engine.store(Cdr { organisation_id: engine.ids.acme, ..ended(8) });
    assert_eq!(record(8)["ai_tokens"], 1200);
    let ended_event = engine.events("call.ended").into_iter().find(|event| event["ai_tokens"] == 1200);
    assert_eq!(ended_event.unwrap()["call_uuid"], json!(ended(8).call_uuid));
    let list = engine.get(CRM, "/cdrs?sort=billsec");
    let shown: Vec<_> =
        list.body["items"].as_array().unwrap().iter().map(|item| &item["ai_tokens"]).collect();
    assert_eq!(shown.len(), 3);
    assert!(shown.iter().all(|tokens| tokens.is_number()));
    let (_, _, csv) = engine.text(CRM, "/cdrs/export");
    assert_eq!(csv.lines().next().unwrap().split(',').filter(|column| *column == "ai_tokens").count(), 1);
    assert!(csv.contains(",1300,"));
}

#[test]
fn who_may_not_read_it_is_told_apart_from_what_is_not_there() {
    let engine = engine();
    let call = ended(1).call_uuid;
    let foreign = ended(3).call_uuid;
    let cases = [
        (CRM, path(1), 200, ""),
        (CRM, path(9), 404, "not_found"),
        (CRM, "/conversations/abc".to_owned(), 400, "invalid_request"),
        ("boltcrm00001", path(1), 403, "forbidden"),
        ("acmerooms001", path(1), 403, "forbidden"),
        (CRM, format!("/cdrs/{call}/conversation"), 200, ""),
        (CRM, format!("/cdrs/{}/conversation", ended(2).call_uuid), 404, "not_found"),
        (CRM, format!("/cdrs/{}/conversation", ended(99).call_uuid), 404, "not_found"),
        (CRM, "/cdrs/abc/conversation".to_owned(), 400, "invalid_request"),
        (CRM, format!("/cdrs/{foreign}/conversation"), 403, "forbidden"),
        ("boltcrm00001", format!("/cdrs/{call}/conversation"), 403, "forbidden"),
        ("acmerooms001", format!("/cdrs/{call}/conversation"), 403, "forbidden"),
    ];
    for (key, path, status, code) in cases {
        let answer = engine.get(key, &path);
        assert_eq!(answer.status, status, "{key} {path}: {}", answer.body);
        if status != 200 {
            assert_eq!((answer.code(), answer.fields()), (code, vec!["error"]), "{key} {path}");
        }
    }
}

#[test]
fn a_report_stays_inside_its_organisation() {
    let engine = engine();
    let bolt = |number: u128, report: &Value| engine.call("PUT", "boltrobot001", &path(number), report);
    let answer = bolt(1, &report(1));
    assert_eq!((answer.status, answer.code()), (403, "forbidden"), "another's conversation");
    let answer = bolt(7, &report(1));
    assert_eq!((answer.status, answer.code()), (403, "forbidden"), "another's call");
    let acme = with(report(3), json!({"organisation_id": engine.ids.acme}));
    let answer = bolt(7, &acme);
    assert_eq!((answer.status, answer.code()), (403, "forbidden"), "another's organisation");
    let mine = bolt(7, &report(3));
    assert_eq!((mine.status, mine.code()), (400, "invalid_request"), "another's agent");
    assert_eq!(mine.body["error"]["message"], "agent_id: the organisation has no such agent");
    let answer = engine.call("PUT", CRM, &path(7), &report(7));
    assert_eq!((answer.status, answer.code()), (403, "forbidden"), "without conversations:write");

    // A report for a guessed call id of another organisation reveals nothing, and blocks nothing.
    assert_eq!(bolt(7, &with(report(7), json!({"agent_id": null}))).status, 201);
    assert_eq!(put(&engine, 8, &report(7)).status, 201);
    engine.store(Cdr { organisation_id: engine.ids.acme, ..ended(7) });
    let by_call = format!("/cdrs/{}/conversation", ended(7).call_uuid);
    assert_eq!(engine.get(CRM, &by_call).body["id"], id(8));
    assert_eq!(engine.get("boltcrm00001", &by_call).status, 403);
}

#[test]
fn the_message_names_every_wrong_field_of_a_report() {
    let engine = Engine::start(records);
    let wrong = json!({
        "id": id(2),
        "call_uuid": "abc",
        "direction": "internal",
        "started_at": "2026-01-01T00:00:02Z",
        "ended_at": "2026-01-01T00:00:01Z",
        "agent_kind": "virtual",
        "contact_e164": "020 7123",
        "provider": "",
        "ai_billing_mode": "free",
        "tokens_input": 5,
        "tokens_audio": 6,
        "turns": [
            {"seq": 1, "at": "2026-01-01T00:00:02Z", "role": "robot"},
            {"seq": -1, "at": "x", "role": "agent", "tool_args": []},
        ],
        "colour": "red",
    });
    let answer = put(&engine, 1, &wrong);
    assert_eq!((answer.status, answer.code()), (400, "invalid_request"));
    let message = answer.body["error"]["message"].as_str().unwrap();
    for part in [
        "id: must be the id in the path",
        "call_uuid: must be a UUID",
        "direction: must be one of inbound, outbound",
        "ended_at: must not be before started_at",
        "contact_e164: must be",
        "provider: must not be empty",
        "ai_billing_mode: must be one of byo, rated",
        "tokens_audio: must not be more than tokens_input, of which it is a part",
        "turns[0].role: must be one of agent, caller, system, tool",
        "turns[1].seq: must be between 0 and 1000000000",
        "turns[1].at: must be an RFC 3339 timestamp",
        "turns[1].tool_args: must be an object",
        "colour: is not a field here",
        "model: is required",
    ] {
        assert!(message.contains(part), "{part} in {message}");
    }
    let twice = json!([turns()[0], turns()[0]]);
    let answer = put(&engine, 1, &with(report(1), json!({"turns": twice})));
    assert_eq!(answer.body["error"]["message"], "turns: seq 1 is given more than once");
}

#[test]
fn a_report_is_bounded() {
    let engine = Engine::start(records);
    let turn = |seq: usize| json!({"seq": seq, "at": "2026-01-01T00:00:02Z", "role": "agent", "text": "x"});
    let large = with(report(1), json!({"assembled_context": "x".repeat(500_001)}));
    assert_eq!(put(&engine, 1, &large).code(), "invalid_request");
    let text = json!([{"seq": 0, "at": "2026-01-01T00:00:02Z", "role": "agent", "text": "x".repeat(20_001)}]);
    assert_eq!(put(&engine, 1, &with(report(1), json!({"turns": text}))).code(), "invalid_request");
    // Many turns in several reports.
    let part = |range: std::ops::Range<usize>| json!(range.map(turn).collect::<Vec<_>>());
    let running = json!({"ended_at": null, "profile": null});
    for range in [0..5000, 5000..10_000] {
        let report = with(with(report(1), running.clone()), json!({"turns": part(range)}));
        assert!(put(&engine, 1, &report).status < 300);
    }
    let over = with(with(report(1), running), json!({"turns": part(10_000..10_001)}));
    let answer = put(&engine, 1, &over);
    assert_eq!((answer.status, answer.code()), (409, "conflict"));
    assert_eq!(engine.get(CRM, &path(1)).body["turn_count"], 10_000);
}
