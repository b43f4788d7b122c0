//! Notes that a program sends over HTTP, and a script reads and acknowledges on the phone.

use std::net::SocketAddr;

use serde_json::{Value, json};
use sidetone_phone::Noting;

use super::handset::{Run, run};
use crate::common::site::{Site, answering, calls, found, post, until, within};

/// A note on the customer's debt, with nested data.
fn debt() -> Value {
    json!({
        "title": "Customer owes 900 euros", "body": "Two reminders were sent.", "level": "critical", "ack": true,
        "customer": "Jane Roe", "invoices": [{"no": 17, "EUR": 400.5}, {"no": 21, "EUR": 499.5}],
        "evil": "a\u{1b}[2Jb"
    })
}

/// Polls a list until its newest note is acknowledged.
async fn acknowledged(site: &Site, list: &str) -> Value {
    found("the acknowledgement", async || {
        let (status, page) = site.get(list).await;
        assert_eq!(status, 200, "{page}");
        (page["items"][0]["status"] == "acked").then(|| page["items"][0].clone())
    })
    .await
}

async fn note_in_a_call(site: &Site, switch: SocketAddr, arguments: &[&str]) -> (Run, Value) {
    let callee = site.phone("1002", answering()).await;
    // Two phones are on the call; this one shows the note and does not acknowledge it.
    callee.treat_notes(Noting::Show).await.unwrap();
    let script = "call 1002\nwait up\nwait note owes\nexpect note level alert\nexpect note invoices.1.EUR 400.5\n\
                  open 1 invoices\nack\nexpect ack 200\nwait idle\nexpect call 200\nexpect notes 1\n";
    let run = run(switch, "1001", script, arguments);
    let integrator = async {
        calls(&callee, 0, 1).await;
        let call = within("the call", async {
            loop {
                let (_, live) = site.get("/calls").await;
                let call = &live["items"][0];
                if call["state"] == "answered" || call["state"] == "bridged" {
                    return call["uuid"].as_str().unwrap().to_owned();
                }
            }
        })
        .await;
        let (status, sent) = post(site.http, &format!("/calls/{call}/info"), "", &debt().to_string()).await;
        assert_eq!(status, 202, "{sent}");
        let record = acknowledged(site, &format!("/calls/{call}/infos")).await;
        callee.hang_up().await.unwrap();
        record
    };
    within("the call", async { tokio::join!(run, integrator) }).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_note_in_a_call_is_seen_unfolded_and_acknowledged() {
    let site = Site::start().await;
    let (run, record) = note_in_a_call(&site, site.sip, &[]).await;
    run.assert_done();
    assert_eq!((&record["acked_count"], &record["recipient_count"]), (&json!(1), &json!(2)));
    let card = "\
┃ [ALERT] Customer owes 900 euros
┃ Two reminders were sent.
┃ customer  Jane Roe
┃ invoices  ▸ [2]
┃ evil      a␛[2Jb
┃ note 1, in the call · a 1 acknowledges · o 1 unfolds
";
    assert!(run.out.contains(card), "{}", run.out);
    assert!(run.out.contains("┃     EUR  400.5\n"), "{}", run.out);
    assert!(run.out.contains("note 1 acknowledged\n"), "{}", run.out);
    assert!(!run.out.contains('\u{1b}'), "neither colours nor the network's own: {}", run.out);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_same_over_tcp_for_a_program() {
    let site = Site::start().await;
    let tcp = site.tcp();
    let (run, record) = note_in_a_call(&site, tcp, &["--transport", "tcp", "--json"]).await;
    run.assert_done();
    let note = run.all("note").remove(0);
    assert_eq!((&note["channel"], &note["note"]["title"]), (&json!("info"), &debt()["title"]));
    assert_eq!(note["note"]["id"], record["id"]);
    assert_eq!(run.all("acknowledged")[0]["id"], record["id"]);
    assert!(!run.out.contains('\u{1b}'));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_note_without_a_call_comes_by_message_and_goes_back_so() {
    let site = Site::start().await;
    let script = "wait note\nexpect note title Fire\nexpect note level warning\nack 1\nexpect ack 200\n";
    for (switch, transport) in [(site.sip, "udp"), (site.tcp(), "tcp")] {
        let id = extension(&site, "1003").await;
        let arguments = ["--json", "--transport", transport];
        let run = run(switch, "1003", script, &arguments);
        let integrator = async {
            until("the phone is registered", || site.engine().bindings() == 1).await;
            // Larger than a datagram should be: over TCP it uses the phone's own connection.
            let note =
                json!({"title": "Fire", "level": "warn", "ack": true, "plan": "x".repeat(2_000)}).to_string();
            let (status, sent) = post(site.http, &format!("/extensions/{id}/message"), "", &note).await;
            assert_eq!(status, 202, "{sent}");
            acknowledged(&site, &format!("/extensions/{id}/messages")).await
        };
        let (run, record) = within("the note", async { tokio::join!(run, integrator) }).await;
        run.assert_done();
        assert_eq!((&record["channel"], &record["status"]), (&json!("message"), &json!("acked")));
        assert_eq!(run.all("note")[0]["from"], "sip:events@acme.test");
        until("no binding is left", || site.engine().bindings() == 0).await;
    }
}

/// The id of the extension of that number.
async fn extension(site: &Site, number: &str) -> String {
    let snapshot = site.engine().store.directory().await.unwrap();
    snapshot.extensions.iter().find(|extension| extension.number == number).unwrap().id.to_string()
}
