//! SIP messages stored with their calls, through a complete engine.

use std::time::Duration;

use serde_json::Value;
use sidetone_model::signalling::CallSignalling;
use sidetone_phone::{Answering, CallPlan};

use crate::common::site::{
    PASSWORD, Site, answering, calls, directory, found, get, open_end, talking, until, within,
};

async fn keeping() -> Site {
    Site::configured(&directory(), |config| config.signalling.keep_days = 1).await
}

async fn kept(site: &Site, path: &str) -> CallSignalling {
    let (status, body) = get(site.http, path).await;
    assert_eq!(status, 200, "{body}");
    serde_json::from_value(body).unwrap()
}

/// `received INVITE`, `sent 200 INVITE`, in order; messages to and from one host.
fn ladder<'k>(kept: &'k CallSignalling, remote: &'k str) -> Vec<String> {
    let of_remote = kept.messages.iter().filter(|message| message.remote == remote);
    let words = of_remote.map(|message| {
        let direction = serde_json::to_value(message.direction).unwrap();
        let status = message.status.map(|status| format!("{status} ")).unwrap_or_default();
        format!("{} {status}{}", direction.as_str().unwrap(), message.method)
    });
    words.collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_messages_of_both_legs_are_kept_with_the_call_over_a_restart() {
    let site = keeping().await;
    let caller = site.phone("1001", answering()).await;
    let _busy = site.phone("1002", Answering::Refuse(486)).await;
    let after = Duration::from_millis(300);
    let _callee = site.phone("1002", Answering::Answer { after, talk: None }).await;
    until("three bindings", || site.engine().bindings() == 3).await;
    let outcome = within("the call", caller.call(talking("1002", 500))).await.unwrap();
    assert_eq!(outcome.status, 200);
    let record = site.record().await;
    let path = format!("/cdrs/{}/signalling", record["call_uuid"].as_str().unwrap());
    // The response to the last BYE may still be in flight.
    let call = found("the last message", async || {
        let call = kept(&site, &path).await;
        let answered = call.messages.iter().filter(|one| one.method == "BYE" && one.status == Some(200));
        (answered.count() == 2).then_some(call)
    })
    .await;
    let remotes = call.remotes();
    assert_eq!(remotes.len(), 3, "the caller and two phones: {remotes:?}");
    let caller = ladder(&call, remotes[0]);
    let begin = ["received INVITE", "sent 401 INVITE", "received ACK", "received INVITE"];
    assert_eq!(caller[..4], begin, "{caller:?}");
    for expected in ["sent 200 INVITE", "received BYE", "sent 200 BYE"] {
        assert!(caller.iter().any(|one| one == expected), "{expected}: {caller:?}");
    }
    let phones = [ladder(&call, remotes[1]), ladder(&call, remotes[2])];
    let has = |expected: &[&str]| {
        phones.iter().any(|phone| expected.iter().all(|one| phone.iter().any(|known| known == one)))
    };
    assert!(has(&["sent INVITE", "received 486 INVITE", "sent ACK"]), "the busy branch: {phones:?}");
    assert!(has(&["sent INVITE", "received 200 INVITE", "sent ACK", "sent BYE"]), "{phones:?}");
    let times: Vec<i64> = call.messages.iter().map(|message| message.at_us).collect();
    assert!(times.is_sorted(), "{times:?}");
    for message in &call.messages {
        assert!(message.local.as_deref() == Some(&site.sip.to_string()), "{message:?}");
        assert!(!message.text.contains("response=") && !message.text.contains(PASSWORD), "{}", message.text);
    }
    assert!(call.messages.iter().any(|message| message.text.contains("Authorization: Digest [removed]")));
    assert!(call.messages.iter().any(|message| message.text.contains("\r\nm=audio ")), "SDP is kept");

    // The next engine stores no messages, and still shows those stored before.
    let dir = site.stop(Duration::from_secs(5)).await;
    let site = Site::reopen(dir).await;
    assert_eq!(kept(&site, &path).await, call);
    let (status, body) = get(site.http, &format!("{path}?format=xml")).await;
    assert_eq!(status, 400, "{body}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_refused_call_and_a_live_call_have_theirs_and_without_the_setting_no_call_has() {
    let site = keeping().await;
    let caller = site.phone("1001", answering()).await;
    let _callee = site.phone("1002", answering()).await;
    let outcome = within("the call", caller.call(CallPlan::to("1999"))).await.unwrap();
    assert_eq!(outcome.status, 404);
    let record = site.record().await;
    let path = format!("/cdrs/{}/signalling", record["call_uuid"].as_str().unwrap());
    let refused = found("the ACK", async || {
        let call = kept(&site, &path).await;
        let acks = call.messages.iter().filter(|one| one.method == "ACK");
        (acks.count() == 2).then_some(call)
    })
    .await;
    let expected =
        ["received INVITE", "sent 401 INVITE", "received ACK", "received INVITE", "sent 404 INVITE"];
    assert_eq!(ladder(&refused, refused.remotes()[0])[..5], expected);
    let (live, ()) = tokio::join!(within("the live call", caller.call(open_end("1002"))), async {
        let call = found("the live call", async || {
            let (_, page) = site.get("/calls").await;
            page["items"].get(0).filter(|call| call["state"] == "answered").cloned()
        })
        .await;
        let path = format!("/calls/{}/signalling", call["uuid"].as_str().unwrap());
        let call = found("the messages of both legs", async || {
            let call = kept(&site, &path).await;
            (call.remotes().len() >= 2).then_some(call)
        })
        .await;
        assert!(call.messages.iter().all(|message| message.method != "BYE"));
        assert_eq!(call.remotes().len(), 2);
        calls(&caller, 0, 1).await;
        caller.hang_up().await.unwrap();
    });
    assert_eq!(live.unwrap().status, 200);

    let site = Site::start().await;
    let caller = site.phone("1001", answering()).await;
    let outcome = within("the call", caller.call(CallPlan::to("1999"))).await.unwrap();
    assert_eq!(outcome.status, 404);
    let record = site.record().await;
    let path = format!("/cdrs/{}/signalling", record["call_uuid"].as_str().unwrap());
    let (status, body): (u16, Value) = get(site.http, &path).await;
    assert_eq!(status, 404, "{body}");
    assert!(body.to_string().contains("signalling.keep_days"), "{body}");
}
