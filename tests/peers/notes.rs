//! Notes to third-party phones: whatever they answer, the call continues and the receipt has the result.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::common::process::Process;
use crate::peers::baresip;
use crate::peers::engine::Engine;
use crate::peers::linphone;
use crate::peers::sound;
use crate::peers::tell;
use crate::peers::turn;

#[test]
fn baresip_and_its_call_survive_notes() {
    let Some(_turn) = turn() else { return };
    let mut engine = Engine::start(8);
    sound::write_wave(&engine.dir().join("tone.wav"), 180);
    let mut callee = baresip::phone(&engine, "1002", "the-second-secret", "auto");
    let mut caller = baresip::phone(&engine, "1001", "the-first-secret", "manual");
    for phone in [&mut callee, &mut caller] {
        phone.wait_for("registered successfully");
    }
    caller.type_line("/dial sip:1002@acme.test");
    for phone in [&mut caller, &mut callee] {
        phone.wait_for("Call established");
    }
    notes_do_no_harm("baresip", &mut engine, &mut callee);
    caller.type_line("/hangup");
    ended_well(&mut engine);
}

#[test]
fn linphone_and_its_call_survive_notes() {
    let Some(_turn) = turn() else { return };
    if !linphone::is_there() {
        return tell("NOTICE: linphone is SKIPPED: there is no linphonec (linphone-cli)");
    }
    let mut engine = Engine::start(8);
    sound::write_wave(&engine.dir().join("tone.wav"), 180);
    let mut callee = linphone::phone(&engine, "1002", "the-second-secret");
    let mut caller = baresip::phone(&engine, "1001", "the-first-secret", "manual");
    caller.wait_for("registered successfully");
    linphone::wait_until_registered(&mut callee);
    caller.type_line("/dial sip:1002@acme.test");
    caller.wait_for("Call established");
    notes_do_no_harm("linphone", &mut engine, &mut callee);
    caller.type_line("/hangup");
    ended_well(&mut engine);
}

/// Sends a note by INFO and one by MESSAGE into the current call, and prints the results.
fn notes_do_no_harm(name: &str, engine: &mut Engine, phone: &mut Process) {
    let up = phone.wait("a call that is up", |_| {
        let page = engine.get("/api/v1/calls?state=answered");
        page["items"].get(0).cloned()
    });
    let call = up["uuid"].as_str().unwrap().to_owned();
    let callee = up["legs"][1]["extension_id"].as_str().unwrap().to_owned();
    let note =
        json!({"title": "Please call back", "body": "Ada has rung twice", "ack": true, "level": "warn"});
    let (status, sent) = engine.post(&format!("/api/v1/calls/{call}/info"), &note);
    assert_eq!((status, &sent["channel"]), (202, &json!("info")), "{sent}");
    assert_eq!(sent["legs"].as_array().unwrap().len(), 2, "both are phones: {sent}");
    let (status, sent) = engine.post(&format!("/api/v1/extensions/{callee}/message"), &note);
    assert_eq!((status, &sent["channel"]), (202, &json!("message")), "{sent}");
    for list in [format!("/api/v1/calls/{call}/infos"), format!("/api/v1/extensions/{callee}/messages")] {
        let kept = phone.wait("what the phones answered", |_| {
            let page = engine.get(&list);
            let kept = page["items"].get(0).cloned().unwrap();
            let is_answered = |receipt: &Value| receipt["sip_status"].is_u64();
            let all = kept["recipients"].as_array().unwrap().iter().all(is_answered);
            (kept["status"] != "pending" && all).then_some(kept)
        });
        assert!(["sent", "failed"].contains(&kept["status"].as_str().unwrap()), "{kept:#}");
        assert_eq!((&kept["level"], &kept["acked_count"]), (&json!("warning"), &json!(0)));
        tell(&format!(
            "{name}: a note by {} is {}{}; receipts {}",
            kept["channel"],
            kept["status"],
            kept["error"].as_str().map(|error| format!(" ({error})")).unwrap_or_default(),
            kept["recipients"],
        ));
    }
    // The call is unchanged, and the parties continue to talk.
    let sent_at = Instant::now();
    phone.wait("the end of the talk", |_| (sent_at.elapsed() >= TALK).then_some(()));
    let live = engine.get(&format!("/api/v1/calls/{call}"));
    // The first verdict may appear in the meantime, and depends on how much the phone could send.
    let legs = |call: &Value| {
        let mut legs = call["legs"].as_array().unwrap().clone();
        for leg in &mut legs {
            leg.as_object_mut().unwrap().remove("media_verdict");
        }
        legs
    };
    assert_eq!((&live["state"], legs(&live)), (&up["state"], legs(&up)));
}

fn ended_well(engine: &mut Engine) {
    let record: Value = engine.records(1).remove(0);
    assert_eq!(record["hangup_cause"], "NORMAL_CLEARING", "{record:#}");
    assert!(record["billsec"].as_u64() >= Some(1), "{record:#}");
}

const TALK: Duration = Duration::from_secs(2);
