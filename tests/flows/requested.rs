//! Calls that are requested over HTTP, on real sockets: the phone of `from` rings first, then `to`.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use sidetone::call_info::signature;
use sidetone::clock::instant;
use sidetone::config::LoadLimits;
use sidetone::load::Window;
use sidetone_model::call_request::{CallRequest, RequestState};
use sidetone_model::directory::Secret;
use sidetone_model::ids::{CallId, CallRequestId};
use sidetone_model::time::Timestamp;
use sidetone_phone::Answering;
use uuid::Uuid;

use crate::common::receiver::{Received, Receiver, Reply};
use crate::common::site::{Site, answering, calls, directory, found, post, post_with_head, send};
use crate::flows::answered::assert_whole;

/// The request with that id, once it is in one of these states.
async fn request_in(site: &Site, id: &Value, states: &[&str]) -> Value {
    let path = format!("/call-requests/{}", id.as_str().unwrap());
    found(&format!("a request that is {states:?}"), async || {
        let (status, request) = site.get(&path).await;
        assert_eq!(status, 200, "{request}");
        states.contains(&request["state"].as_str().unwrap()).then_some(request)
    })
    .await
}

const SECRET: &str = "a secret of sixteen and more";

async fn place(site: &Site, call: Value) -> Value {
    let (status, placed) = post(site.http, "/calls", "", &call.to_string()).await;
    assert_eq!(status, 202, "{placed}");
    assert_eq!(placed["state"], "queued");
    placed
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_program_connects_two_phones_that_hear_each_other() {
    let site = Site::start().await;
    let (caller, callee) = (site.phone("1001", answering()).await, site.phone("1002", answering()).await);
    let call = json!({"from": "1001", "to": "1002", "reference": "ticket-4711", "auto_answer": true,
        "variables": {"customer": "4711"}});
    let placed = place(&site, call).await;
    let id = &placed["call_request_id"];
    let request = request_in(&site, id, &["answered"]).await;
    assert_eq!([&request["from"], &request["to"]], [&json!("1001"), &json!("1002")]);
    assert_eq!(
        [&request["call_uuid"], &request["variables"]["customer"]],
        [&placed["call_uuid"], &json!("4711")]
    );
    assert!(request["from_answered_at"].as_str() <= request["to_answered_at"].as_str(), "{request:#}");
    calls(&caller, 0, 1).await;
    calls(&callee, 0, 1).await;
    let uuid = placed["call_uuid"].as_str().unwrap();
    let (_, live) = site.get(&format!("/calls/{uuid}")).await;
    assert_eq!([&live["reference"], &live["variables"]["customer"]], ["ticket-4711", "4711"], "{live:#}");
    let legs: Vec<_> = live["legs"].as_array().unwrap().iter().map(|leg| &leg["role"]).collect();
    assert_eq!(legs, ["caller", "callee"], "{live:#}");
    let (status, refused) =
        send(site.http, "DELETE", &format!("/call-requests/{}", id.as_str().unwrap()), &Value::Null).await;
    assert_eq!(status, 409, "both have answered: {refused}");
    // Long enough for a verdict on the audio.
    found("audio both ways", async || {
        let (_, quality) = site.get(&format!("/calls/{uuid}/quality")).await;
        let legs = quality["legs"].as_array()?;
        let heard = |leg: &Value| leg["inbound"]["packets"].as_u64().unwrap_or(0) > 75;
        (legs.len() == 2 && legs.iter().all(heard)).then_some(())
    })
    .await;
    let (status, _) = send(site.http, "DELETE", &format!("/calls/{uuid}"), &Value::Null).await;
    assert_eq!(status, 204);
    let record = site.record().await;
    assert_eq!([&record["call_uuid"], &record["reference"]], [&placed["call_uuid"], &json!("ticket-4711")]);
    assert_eq!([&record["direction"], &record["caller_number"]], [&json!("internal"), &json!("1001")]);
    assert_whole(&record);
    let request = request_in(&site, id, &["completed"]).await;
    assert_eq!(request["cdr"], placed["call_uuid"], "{request:#}");
    for (query, total) in [("ticket-4711", 1), ("ticket", 0)] {
        let (_, page) = site.get(&format!("/cdrs?reference={query}")).await;
        assert_eq!(page["total"], total, "{query}");
        let (_, page) = site.get(&format!("/call-requests?state=completed&reference={query}")).await;
        assert_eq!(page["total"], total, "{query}");
    }
    let (status, _) = send(site.http, "DELETE", &format!("/calls/{uuid}"), &Value::Null).await;
    assert_eq!(status, 404, "it is over");
    site.idle().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_that_fails_says_why() {
    let site = Site::start().await;
    let _caller = site.phone("1001", answering()).await;
    let _silent = site.phone("1002", Answering::Ring).await;
    let _busy = site.phone("1003", Answering::Refuse(486)).await;
    let cases = [
        ("1002", "1001", "no_answer", false),
        ("1003", "1001", "busy", false),
        ("1001", "1003", "busy", true),
        ("1001", "1004", "unregistered", true),
    ];
    for (from, to, reason, answered) in cases {
        let placed = place(&site, json!({"from": from, "to": to, "ring_seconds": 5})).await;
        let request = request_in(&site, &placed["call_request_id"], &["failed"]).await;
        assert_eq!(request["reason"], reason, "{from} to {to}: {request:#}");
        assert_eq!(request.get("from_answered_at").is_some(), answered, "{from} to {to}: {request:#}");
        assert!(request.get("to_answered_at").is_none() && request.get("ended_at").is_some(), "{request:#}");
    }
    let records = site.records(cases.len()).await;
    assert!(records.iter().all(|record| record["billsec"] == 0), "{records:#?}");
    for (number, said) in [("1002", "did not answer in time"), ("1003", "was busy")] {
        let record = records.iter().find(|record| record["caller_number"] == number).unwrap();
        assert_eq!(record["ended_by"], "caller", "{record:#}");
        assert!(record.get("bridge_cause").is_none() && record.get("sip_status").is_none(), "{record:#}");
        let path = format!("/cdrs/{}/quality", record["call_uuid"].as_str().unwrap());
        let (_, quality) = site.get(&path).await;
        let sentence = quality["sentence"].as_str().unwrap();
        assert!(sentence.contains(&format!("the phone of `from`, which rings first, {said}")), "{sentence}");
    }
    site.idle().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_is_cancelled_while_a_phone_rings() {
    let site = Site::start().await;
    let caller = Arc::new(site.phone("1001", answering()).await);
    let silent = site.phone("1002", Answering::Ring).await;
    for (from, to, state) in [("1002", "1001", "ringing"), ("1001", "1002", "calling")] {
        let placed = place(&site, json!({"from": from, "to": to})).await;
        let id = placed["call_request_id"].as_str().unwrap();
        request_in(&site, &placed["call_request_id"], &[state]).await;
        calls(&silent, 1, 0).await;
        let (status, body) = send(site.http, "DELETE", &format!("/call-requests/{id}"), &Value::Null).await;
        assert_eq!(status, 204, "{body}");
        let request = request_in(&site, &placed["call_request_id"], &["cancelled"]).await;
        assert_eq!(request["reason"], "cancelled");
        calls(&silent, 0, 0).await;
        calls(&caller, 0, 0).await;
    }
    site.records(2).await;
    site.idle().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_wrong_is_named_and_nothing_rings() {
    let text = directory()
        + "[[organisations]]\nname = \"Bolt\"\nsip_domain = \"bolt.test\"\n\
           [[organisations.extensions]]\nnumber = \"2001\"\npassword = \"correct horse battery\"\n\
           [[organisations.rooms]]\nname = \"Theirs\"\nnumber = \"300\"\n";
    let site = Site::with(&text).await;
    let bolt = site.engine().store.directory().await.unwrap();
    let foreign = bolt.extensions.iter().find(|line| line.number == "2001").unwrap().id;
    let theirs = bolt.rooms.iter().find(|room| room.number == "300").unwrap().id;
    let _caller = site.phone("1001", answering()).await;
    for (call, status, names) in [
        (json!({"from": "1001"}), 422, "to: is required"),
        (json!({"from": "1001", "to": "1002", "ring_seconds": 4, "max_seconds": 0}), 422, "ring_seconds: "),
        (json!({"from": "9999", "to": "1002"}), 422, "from: "),
        (json!({"from": "1001", "to": "8"}), 422, "to: "),
        (json!({"from": "1001", "to": "8", "caller_id": "+331"}), 422, "caller_id: "),
        (json!({"from": "1001", "to": "1002", "callback_url": "http://x.test/"}), 422, "callback_url: must"),
        (json!({"from": "1001", "to": "1002", "callback_url": "https://127.0.0.1/"}), 422, "callback_url: "),
        (
            json!({"from": "1001", "to": "8", "callback_url": "https://x.test/"}),
            422,
            "callback_url: needs the organisation's callback_secret",
        ),
        (json!({"from": "1001", "to": "1002", "variables": {"n": 1}}), 422, "variables: "),
        (json!({"from": foreign.to_string(), "to": "1002"}), 403, "from: "),
        (json!({"from": "1002", "to": "1001"}), 409, "from: "),
        (
            json!({"from": "1001", "to": format!("svc-room-{theirs}")}),
            403,
            "to: the conference room is outside",
        ),
        (json!({"from": "1001", "to": format!("SVC-ROOM-{theirs}").to_uppercase()}), 403, "to: "),
        (
            json!({"from": "1001", "to": "svc-room-00000000-0000-4000-8000-000000000001"}),
            422,
            "to: there is no such",
        ),
    ] {
        for path in ["/calls", "/calls?dry_run=true"] {
            let (answered, error) = post(site.http, path, "", &call.to_string()).await;
            assert_eq!(answered, status, "{call}: {error}");
            assert!(error["error"]["message"].as_str().unwrap().contains(names), "{call}: {error}");
            if status == 422 {
                assert_eq!(error["error"]["code"], "unprocessable");
            }
        }
    }
    every_wrong_field_is_named(&site).await;
    let call = json!({"from": "1001", "to": "1002"}).to_string();
    let (status, dry) = post(site.http, "/calls?dry_run=true", "", &call).await;
    assert_eq!((status, &dry["would"]["route"]), (200, &json!("extension")), "{dry}");
    assert_eq!(
        [&dry["would"]["from"]["number"], &dry["would"]["to"]["number"]],
        [&json!("1001"), &json!("1002")]
    );
    assert_eq!(dry["warnings"].as_array().unwrap().len(), 1, "1002 has no phone: {dry}");
    let price = |dry: &Value| [dry["would"]["sell_per_minute"].clone(), dry["would"]["currency"].clone()];
    assert_eq!(price(&dry), [json!("0.00"), json!("EUR")], "{dry}");
    let (_, page) = site.get("/call-requests").await;
    assert_eq!(page["total"], 0, "{page}");
    site.idle().await;
}

/// The fields named in a 422 response, in order.
fn named(error: &Value) -> Vec<&str> {
    let fields = error["error"]["fields"].as_array().unwrap_or_else(|| panic!("{error}"));
    fields.iter().map(|field| field["field"].as_str().unwrap()).collect()
}

/// Invalid by itself, in the directory, or both: one response names all fields.
async fn every_wrong_field_is_named(site: &Site) {
    let none = "00000000-0000-4000-8000-000000000001";
    let cases: [(Value, &[&str]); 8] = [
        (json!({"from": "9999", "to": "8", "ring_seconds": 4}), &["from", "to", "ring_seconds"]),
        (json!({"ring_seconds": 4, "from": "1001", "to": "8"}), &["ring_seconds", "to"]),
        (json!({"from": "1001", "to": 7, "caller_id": "+331"}), &["to", "caller_id"]),
        (json!({"from": "9999"}), &["from", "to"]),
        (json!({"to": "8", "callback_url": "https://x.test/"}), &["to", "callback_url", "from"]),
        (json!({"from": "1001", "to": "1002", "max_seconds": 0}), &["max_seconds"]),
        (json!({"from": "9999", "to": "8", "caller_id": "+331"}), &["from", "caller_id", "to"]),
        // With an invalid organisation, nothing is looked up.
        (json!({"from": "9999", "to": "8", "organisation_id": "acme"}), &["organisation_id"]),
    ];
    for (call, wrong) in cases {
        let (status, error) = post(site.http, "/calls", "", &call.to_string()).await;
        assert_eq!((status, named(&error)), (422, wrong.to_vec()), "{call}: {error}");
    }
    // For another organisation the response reveals nothing.
    let call = json!({"from": "1001", "to": "8", "ring_seconds": 4, "organisation_id": none});
    let (status, error) = post(site.http, "/calls", "", &call.to_string()).await;
    assert_eq!((status, named(&error)), (422, vec!["ring_seconds"]), "{error}");
}

/// The progress is reported to the callback URL: in order, signed, and repeated after a response without success.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_progress_is_reported_to_the_callback_url() {
    let failed = AtomicBool::new(false);
    let receiver = Receiver::start(move |request| {
        let fails = request.json()["type"] == "ringing" && !failed.swap(true, Ordering::SeqCst);
        Reply::status(if fails { 500 } else { 204 })
    })
    .await;
    let acme = format!("name = \"Acme\"\ncallback_secret = \"{SECRET}\"\n");
    let site = Site::configured(&directory().replacen("name = \"Acme\"\n", &acme, 1), |config| {
        config.outbound_http = receiver.settings(&config.node.data_dir);
    })
    .await;
    let (_caller, callee) = (site.phone("1001", answering()).await, site.phone("1002", answering()).await);
    let call = json!({"from": "1001", "to": "1002", "reference": "ticket-4711", "variables": {"customer": "4711"},
        "callback_url": receiver.url("/calls")});
    let placed = place(&site, call).await;
    request_in(&site, &placed["call_request_id"], &["answered"]).await;
    calls(&callee, 0, 1).await;
    callee.hang_up().await.unwrap();
    let seen = receiver.seen.count(4).await;
    let reports: Vec<Value> = seen.iter().map(Received::json).collect();
    let kinds: Vec<_> = reports.iter().map(|report| report["type"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["ringing", "ringing", "answered", "completed"]);
    assert_eq!(seen[0].body, seen[1].body, "the same report again");
    assert_eq!(seen[0].header("webhook-id"), seen[1].header("webhook-id"));
    for (request, report) in seen.iter().zip(&reports) {
        assert_eq!(request.line, "POST /calls HTTP/1.1");
        assert_eq!(
            request.header("x-service-signature"),
            signature(&Secret(SECRET.to_owned()), &request.body)
        );
        assert_eq!(report["id"], request.header("webhook-id"));
        assert_eq!(report["type"], request.header("x-service-event"));
        let data = &report["data"];
        assert_eq!([&data["id"], &data["call_uuid"]], [&placed["call_request_id"], &placed["call_uuid"]]);
        assert_eq!([&data["reference"], &data["variables"]["customer"]], ["ticket-4711", "4711"]);
    }
    assert_eq!(reports[2]["data"]["state"], "answered");
    assert_eq!([&reports[3]["data"]["state"], &reports[3]["data"]["to"]], ["completed", "1002"]);
    let request = request_in(&site, &placed["call_request_id"], &["completed"]).await;
    assert_eq!(request["callback_url"], receiver.url("/calls"));
    site.idle().await;
}

/// Asserts that no call is placed now, and that the response says when to retry.
async fn assert_busy(site: &Site) {
    let call = json!({"from": "1001", "to": "1002"}).to_string();
    for path in ["/calls", "/calls?dry_run=true"] {
        let (head, body) = post_with_head(site.http, path, &call).await;
        assert!(head.starts_with("http/1.1 503 "), "{path}: {head}");
        assert!(head.contains("\r\nretry-after: 30\r\n"), "{path}: {head}");
        assert_eq!(body["error"]["code"], "node_busy", "{path}: {body}");
    }
    let (_, page) = site.get("/call-requests").await;
    assert!(page["items"].as_array().unwrap().iter().all(|request| request["to"] != "1002"), "{page}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_without_free_ports_answers_node_busy() {
    let site = Site::narrow().await;
    let (caller, callee) = (site.phone("1001", answering()).await, site.phone("1003", answering()).await);
    let placed = place(&site, json!({"from": "1001", "to": "1003"})).await;
    request_in(&site, &placed["call_request_id"], &["answered"]).await;
    calls(&caller, 0, 1).await;
    calls(&callee, 0, 1).await;
    assert_busy(&site).await;
    callee.hang_up().await.unwrap();
    request_in(&site, &placed["call_request_id"], &["completed"]).await;
    site.idle().await;
}

/// The load measurement gets the values of a loaded node's relay and processors.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_whose_packets_wait_answers_node_busy() {
    let site = Site::configured(&directory(), |config| config.node.busy = LoadLimits::default()).await;
    let _caller = site.phone("1001", answering()).await;
    let second = Duration::from_secs(1);
    let late = Window { length: second, received: 1_000, waited: 20, ..Window::default() };
    let used = Window { length: second, cpu: second * 2, processors: 2, ..Window::default() };
    for window in [late, used] {
        // Far enough in the future for any machine.
        site.engine().load.note(instant() + Duration::from_secs(300), &window);
        assert_busy(&site).await;
    }
}

/// The same Idempotency-Key rings once; a minute has 60 calls.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_repeated_request_rings_once_and_a_key_places_60_calls_a_minute() {
    let site = Site::start().await;
    let _caller = site.phone("1003", Answering::Refuse(486)).await;
    let call = json!({"from": "1003", "to": "1001"}).to_string();
    let key = "Idempotency-Key: once\r\n";
    let (status, first) = post(site.http, "/calls", key, &call).await;
    assert_eq!(status, 202, "{first}");
    assert_eq!(post(site.http, "/calls", key, &call).await, (202, first.clone()));
    request_in(&site, &first["call_request_id"], &["failed"]).await;
    let (_, page) = site.get("/call-requests").await;
    assert_eq!(page["total"], 1, "{page}");
    // Refused requests are not counted: 1001 has no phone.
    let refused = json!({"from": "1001", "to": "1003"}).to_string();
    for _ in 0..70 {
        let (status, answer) = post(site.http, "/calls", "", &refused).await;
        assert_eq!(status, 409, "{answer}");
    }
    let mut limited = 0;
    for _ in 0..120 {
        let (status, answer) = post(site.http, "/calls", "", &call).await;
        if status == 429 {
            limited += 1;
            assert_eq!(answer["error"]["code"], "rate_limited");
        }
    }
    // Two minutes may have begun in the meantime.
    assert!(limited >= 1, "no request was refused");
    let (status, _) = post(site.http, "/calls?dry_run=true", "", &call).await;
    assert_eq!(status, 200, "a dry run is not counted");
    site.idle().await;
}

/// A request whose call was still up when its node crashed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_that_a_crash_interrupted_reads_as_failed() {
    let site = Site::start().await;
    let (node, store) = (site.engine().node, site.engine().store.clone());
    let directory = store.directory().await.unwrap();
    let line = &directory.extensions[0];
    let request = CallRequest {
        id: CallRequestId(Uuid::from_u128(1)),
        call_uuid: CallId(Uuid::from_u128(2)),
        organisation_id: line.organisation_id,
        team_id: None,
        state: RequestState::Queued,
        reason: None,
        from: "1001".to_owned(),
        extension_id: line.id,
        to: "1002".to_owned(),
        reference: None,
        variables: Default::default(),
        callback_url: None,
        created_at: Timestamp::from_micros(1_767_225_600_000_000),
        from_answered_at: None,
        to_answered_at: None,
        ended_at: None,
        cdr: None,
    };
    store.insert_request(node, &request, Box::new(|| {})).await.unwrap();
    let (_, stored) = site.get(&format!("/call-requests/{}", request.id)).await;
    assert_eq!(stored["state"], "queued", "{stored}");
    let dir = site.stop(Duration::ZERO).await;
    let site = Site::reopen(dir).await;
    let (_, failed) = site.get(&format!("/call-requests/{}", request.id)).await;
    assert_eq!(
        [&failed["state"], &failed["reason"]],
        [&json!("failed"), &json!("node_restarted")],
        "{failed}"
    );
}

/// The counterpart of `http contract_limits`, which covers the lists of a process without a switch.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lists_of_the_switch_have_the_limits_of_the_others() {
    let readable = directory().replace("\"margin:read\"", "\"margin:read\", \"directory:read\"");
    let site = Site::with(&readable).await;
    for list in ["/call-requests", "/registrations"] {
        let (status, page) = site.get(list).await;
        assert_eq!((status, &page["limit"], &page["offset"]), (200, &json!(50), &json!(0)), "{list}: {page}");
        let (status, page) = site.get(&format!("{list}?limit=500&offset=9223372036854775807")).await;
        assert_eq!(
            (status, &page["limit"], &page["items"]),
            (200, &json!(500), &json!([])),
            "{list}: {page}"
        );
        for wrong in ["limit=0", "limit=501", "limit=x", "limit=", "offset=-1", "offset=x"] {
            let (status, answer) = site.get(&format!("{list}?{wrong}")).await;
            assert_eq!(
                (status, &answer["error"]["code"]),
                (400, &json!("invalid_request")),
                "{list} {wrong}"
            );
        }
    }
}
