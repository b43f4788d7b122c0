//! The organisation's call-info URL is requested on an answered call, and the phone shows the response.

use std::io::Write;
use std::process::{Command, Stdio};

use serde_json::json;
use sidetone::call_info::signature;
use sidetone_model::directory::Secret;
use sidetone_phone::Channel;

use crate::common::receiver::{Received, Receiver, Reply};
use crate::common::site::{Site, answering, directory, established, found, open_end, until, within};

const SECRET: &str = "a secret of sixteen and more";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answered_call_is_asked_about_and_the_answer_shown_on_its_phones() {
    let note = json!({"title": "Ada Lovelace", "body": "owes 900 euros", "level": "alert"}).to_string();
    let receiver = Receiver::start(move |_| Reply::new(200, "application/json", &note)).await;
    let acme = format!(
        "name = \"Acme\"\ncall_info_url = \"{}\"\ncall_info_secret = \"{SECRET}\"\n",
        receiver.url("/answered")
    );
    let directory = directory().replacen("name = \"Acme\"\n", &acme, 1);
    let site = Site::configured(&directory, |config| {
        config.outbound_http = receiver.settings(&config.node.data_dir);
    })
    .await;
    let (caller, callee) = (site.phone("1001", answering()).await, site.phone("1006", answering()).await);
    let shown = async {
        established(&caller, &callee).await;
        until("the note is shown on both phones", || caller.notes().len() == 1 && callee.notes().len() == 1)
            .await;
        let (_, page) = site.get("/calls").await;
        let call = page["items"][0].clone();
        let (_, kept) = site.get(&format!("/calls/{}/infos", call["uuid"].as_str().unwrap())).await;
        callee.hang_up().await.unwrap();
        (call, kept["items"][0].clone())
    };
    let (outcome, (call, kept)) = tokio::join!(within("the call", caller.call(open_end("1006"))), shown);
    assert_eq!(outcome.unwrap().status, 200);

    let request = receiver.seen.now().remove(0);
    assert_eq!(request.line, "POST /answered HTTP/1.1");
    let signed = signature(&Secret(SECRET.to_owned()), &request.body);
    assert_eq!(request.header("x-service-signature"), signed);
    python_agrees(SECRET, &request);
    let payload = request.json();
    assert_eq!(payload["call_uuid"], call["uuid"]);
    for name in ["direction", "caller", "destination", "organisation_id", "extension_id", "answered_at"] {
        assert_eq!(payload[name], call[name], "{name}");
    }
    let note = callee.notes().remove(0);
    assert_eq!((note.title.as_str(), note.channel), ("Ada Lovelace", Channel::Info));
    assert_eq!((&kept["id"], &kept["source"]), (&json!(note.id), &json!("url")));
    assert_eq!((&kept["level"], &kept["recipient_count"]), (&json!("alert"), &json!(2)));
    assert_eq!(receiver.seen.now().len(), 1, "asked once");
}

/// A URL that never responds, or responds with something invalid: the call continues as without a URL, and its list of
/// notes has the reason.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_bad_answer_is_a_failed_note_and_a_slow_one_delays_no_call() {
    // The first response is immediate, the second never arrives.
    let receiver = Receiver::start(|request| {
        let slow = request.json()["destination"] == "1003";
        let html = Reply::new(200, "text/html", "<h1>Hello</h1>");
        if slow { Reply::never() } else { html }
    })
    .await;
    let acme = format!(
        "name = \"Acme\"\ncall_info_url = \"{}\"\ncall_info_secret = \"{SECRET}\"\n",
        receiver.url("/answered")
    );
    let directory = directory().replacen("name = \"Acme\"\n", &acme, 1);
    let site = Site::configured(&directory, |config| {
        config.outbound_http = receiver.settings(&config.node.data_dir);
    })
    .await;
    let caller = site.phone("1001", answering()).await;
    let (html, slow) = (site.phone("1002", answering()).await, site.phone("1003", answering()).await);
    for (asked, (callee, number)) in [(1, (&slow, "1003")), (2, (&html, "1002"))] {
        let talked = async {
            established(&caller, callee).await;
            // Both parties talk while the response is pending.
            receiver.seen.count(asked).await;
            callee.hang_up().await.unwrap();
        };
        let (outcome, ()) = tokio::join!(within("the call", caller.call(open_end(number))), talked);
        assert_eq!(outcome.unwrap().status, 200);
    }
    let records = site.records(2).await;
    for (record, reason) in records.iter().zip([
        "the answer is text/html: a note is JSON (application/json)",
        "no answer within 5 s (waiting for the answer)",
    ]) {
        let path = format!("/calls/{}/infos", record["call_uuid"].as_str().unwrap());
        let kept = found("the failed note", async || {
            let (_, page) = site.get(&path).await;
            (page["total"] == 1).then(|| page["items"][0].clone())
        })
        .await;
        assert_eq!((&kept["status"], &kept["source"]), (&json!("failed"), &json!("url")));
        assert_eq!(kept["error"], reason);
        assert_eq!(kept["recipient_count"], 0);
    }
    assert!(caller.notes().is_empty() && html.notes().is_empty() && slow.notes().is_empty());
}

/// The verifier of `docs/integrators.md`, as printed there, accepts the signature and no other.
fn python_agrees(secret: &str, request: &Received) {
    if Command::new("python3").arg("--version").output().is_err() {
        eprintln!("\nNOTICE: the signature is NOT verified by Python: there is no python3\n");
        return;
    }
    let guide = std::fs::read_to_string("docs/integrators.md").unwrap();
    let (_, verifier) = guide.split_once("```python\nimport hashlib, hmac\n\ndef genuine(").unwrap();
    let (verifier, _) = verifier.split_once("```").unwrap();
    let script = format!(
        "import hashlib, hmac, sys\ndef genuine({verifier}\nbody = sys.stdin.buffer.read()\n\
         print(genuine(sys.argv[1], body, sys.argv[2]), genuine(sys.argv[1], body + b' ', sys.argv[2]), \
         genuine(sys.argv[1] + 'x', body, sys.argv[2]))"
    );
    let signature = request.header("x-service-signature");
    let mut python = Command::new("python3")
        .args(["-c", &script, secret, signature])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    python.stdin.take().unwrap().write_all(&request.body).unwrap();
    let printed = python.wait_with_output().unwrap();
    assert_eq!(String::from_utf8(printed.stdout).unwrap().trim(), "True False False");
}
