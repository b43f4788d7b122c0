//! Registrations after a kill and after a stop: a phone over UDP can be called without registering again.

use serde_json::Value;

use crate::common::killed::Engine;
use crate::common::records::TempDir;
use crate::common::site::{PASSWORD, declare, directory, found, get};
use crate::common::wire::Wire;

/// The contacts of the registrations.
async fn contacts(engine: &Engine) -> Vec<String> {
    let (status, page) = get(engine.http, "/registrations").await;
    assert_eq!(status, 200, "{page}");
    let contact = |item: &Value| item["contact"].as_str().unwrap().to_owned();
    page["items"].as_array().unwrap().iter().map(contact).collect()
}

async fn register(wire: &mut Wire, user: &str, headers: &[&str]) {
    let mut ask = wire.register(user, None);
    ask.headers = headers.iter().map(|line| (*line).to_owned()).collect();
    assert_eq!(wire.authorized(&ask, user, PASSWORD).await.status().as_u16(), 200);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_phone_is_called_after_kill_9_without_registering_again() {
    let dir = TempDir::new();
    let directory = directory().replace("\"margin:read\"", "\"margin:read\", \"directory:read\"");
    declare(dir.path(), &directory).await;
    let engine = Engine::serve(dir.path()).await;
    let (mut stays, mut leaves) = (Wire::open(engine.sip).await, Wire::open(engine.sip).await);
    let (contact, other) = (format!("sip:1002@{}", stays.local), format!("sip:1003@{}", leaves.local));
    register(&mut stays, "1002", &[&format!("Contact: <{contact}>;expires=600")]).await;
    register(&mut leaves, "1003", &[&format!("Contact: <{other}>;expires=600")]).await;
    let file = dir.path().join("registrations.jsonl");
    let written = async |text: &str| {
        let text = text.to_owned();
        found("the registration is written", async || {
            let lines = std::fs::read_to_string(&file).unwrap_or_default();
            lines.lines().any(|line| line.contains(&text)).then_some(())
        })
        .await;
    };
    written(&contact).await;
    written(&other).await;
    register(&mut leaves, "1003", &["Contact: *", "Expires: 0"]).await;
    written("\"aor\":\"1003@acme.test\",\"credential\"").await;
    found("the removal is written", async || {
        let lines = std::fs::read_to_string(&file).unwrap_or_default();
        let last = lines.lines().rfind(|line| line.contains("1003@acme.test"))?;
        last.contains("\"bindings\":[]").then_some(())
    })
    .await;
    engine.kill();

    let engine = Engine::serve(dir.path()).await;
    let restored = found("registrations", async || {
        let contacts = contacts(&engine).await;
        (!contacts.is_empty()).then_some(contacts)
    })
    .await;
    assert_eq!(restored, [contact.as_str()]);
    let mut caller = Wire::open(engine.sip).await;
    let invite = caller.invite("1001", "1002");
    let answer = caller.authorize(&invite, "1001", PASSWORD).await;
    caller.send(&answer).await;
    let invited = stays.request("the call", "INVITE").await;
    assert!(invited.starts_with(&format!("INVITE {contact} SIP/2.0\r\n")), "{invited}");
    engine.kill();
}

/// A stop in order loses nothing, not even the changes of the last second.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn registrations_of_the_last_second_are_there_after_a_stop() {
    let dir = TempDir::new();
    let directory = directory().replace("\"margin:read\"", "\"margin:read\", \"directory:read\"");
    declare(dir.path(), &directory).await;
    let engine = Engine::serve(dir.path()).await;
    let mut wire = Wire::open(engine.sip).await;
    let contact = format!("sip:1002@{}", wire.local);
    register(&mut wire, "1002", &[&format!("Contact: <{contact}>;expires=600")]).await;
    engine.stop().await;

    let engine = Engine::serve(dir.path()).await;
    let restored = found("the registration", async || {
        let contacts = contacts(&engine).await;
        (!contacts.is_empty()).then_some(contacts)
    })
    .await;
    assert_eq!(restored, [contact.as_str()]);
    let mut wire = Wire::open(engine.sip).await;
    register(&mut wire, "1002", &["Contact: *", "Expires: 0"]).await;
    engine.stop().await;

    let lines = std::fs::read_to_string(dir.path().join("registrations.jsonl")).unwrap();
    assert!(lines.lines().last().unwrap().contains("\"bindings\":[]"), "the removal counts: {lines}");
}
