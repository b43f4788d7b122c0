//! The organisation's own machine hears of an answered call, and the phone shows what it answers.

use serde_json::json;
use sidetone::call_info::signature;
use sidetone::phone::Channel;
use sidetone_model::directory::Secret;

use crate::receiver::{Receiver, Reply};
use crate::site::{Site, answering, calls, directory, open_end, until, within};

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
        calls(&callee, 0, 1).await;
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
