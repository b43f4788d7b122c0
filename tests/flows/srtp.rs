//! SRTP through a complete engine: with and without it on the other leg, new keys, wrong keys, and refusals by rule.

use serde_json::{Value, json};
use sidetone_phone::{CallOutcome, Phone, PhoneConfig};
use sidetone_sip::sdp::{Direction, SrtpRule};

use crate::common::site::{Site, answering, calls, directory, established, open_end, talking, until, within};
use crate::flows::answered::assert_whole;

/// An engine whose extensions 1001 and 1003 have optional SRTP, and whose 1004 requires it.
async fn site() -> Site {
    let mut text = directory();
    for (number, rule) in [("1001", "optional"), ("1003", "optional"), ("1004", "required")] {
        let line = format!("number = \"{number}\"\n");
        text = text.replace(&line, &format!("{line}srtp = \"{rule}\"\n"));
    }
    Site::with(&text).await
}

/// A phone with this SRTP rule.
async fn phone(site: &Site, number: &str, srtp: SrtpRule) -> Phone {
    let config = site.phone_config(number, answering());
    site.phone_of(PhoneConfig { srtp, ..config }).await
}

/// Waits for more RTP at `phone`; packets that fail authentication do not count.
async fn hears_more(phone: &Phone, packets: u64) {
    let before = phone.heard();
    until("more RTP", || phone.heard() >= before + packets).await;
}

/// Runs `script` while a call is up, then the caller hangs up.
async fn during_a_call<F>(caller: &Phone, callee: &Phone, dialled: &str, script: F) -> CallOutcome
where
    F: Future<Output = ()>,
{
    let (outcome, ()) = within("the call", async {
        tokio::join!(caller.call(open_end(dialled)), async {
            established(caller, callee).await;
            hears_more(callee, 40).await;
            hears_more(caller, 40).await;
            script.await;
            caller.hang_up().await.unwrap();
        })
    })
    .await;
    calls(callee, 0, 0).await;
    outcome.unwrap()
}

/// The sentences on the caller's and the callee's audio of a stored call.
async fn legs(site: &Site, record: &Value) -> Vec<Value> {
    let uuid = record["call_uuid"].as_str().unwrap();
    let (status, quality) = site.get(&format!("/cdrs/{uuid}/quality")).await;
    assert_eq!(status, 200, "{quality:#}");
    quality["legs"].as_array().unwrap().clone()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn srtp_meets_srtp_and_plain_rtp() {
    let site = site().await;
    let secure = phone(&site, "1001", SrtpRule::Required).await;
    let plain = phone(&site, "1002", SrtpRule::Off).await;
    let other = phone(&site, "1003", SrtpRule::Optional).await;
    let always = phone(&site, "1004", SrtpRule::Required).await;
    let mut records = 0;
    for (caller, callee, dialled) in [
        (&secure, &plain, "1002"),
        (&plain, &secure, "1001"),
        (&secure, &other, "1003"),
        (&other, &always, "1004"),
        (&always, &plain, "1002"),
        (&plain, &always, "1004"),
    ] {
        let outcome = during_a_call(caller, callee, dialled, async {}).await;
        assert_eq!(outcome.status, 200, "to {dialled}");
        records += 1;
        let record = &site.records(records).await[0];
        assert_whole(record);
        assert_eq!(record["hangup_cause"], json!("NORMAL_CLEARING"));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_phone_without_srtp_is_called_plainly_where_it_is_optional() {
    let site = site().await;
    let (caller, callee) =
        (phone(&site, "1001", SrtpRule::Off).await, phone(&site, "1003", SrtpRule::Off).await);
    let outcome = during_a_call(&caller, &callee, "1003", async {}).await;
    assert_eq!(outcome.status, 200);
    assert_whole(&site.record().await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn new_keys_and_holds_cost_no_audio() {
    let site = site().await;
    let (one, other) =
        (phone(&site, "1001", SrtpRule::Required).await, phone(&site, "1003", SrtpRule::Required).await);
    let outcome = during_a_call(&one, &other, "1003", async {
        // A phone that moves its media changes its key too; a hold keeps the key.
        for mover in [&one, &other, &one] {
            mover.move_media().await.unwrap();
            hears_more(&one, 40).await;
            hears_more(&other, 40).await;
        }
        one.offer(Direction::SendOnly).await.unwrap();
        one.offer(Direction::SendRecv).await.unwrap();
        hears_more(&one, 40).await;
        hears_more(&other, 40).await;
    })
    .await;
    assert_eq!(outcome.status, 200);
    assert_whole(&site.record().await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_wrong_key_is_heard_by_none_and_named() {
    let site = site().await;
    let config = site.phone_config("1001", answering());
    let config = PhoneConfig { srtp: SrtpRule::Required, srtp_wrong_key: true, ..config };
    let (caller, callee) = (site.phone_of(config).await, phone(&site, "1002", SrtpRule::Off).await);
    let outcome = within("the call", caller.call(talking("1002", 2_500))).await.unwrap();
    assert_eq!(outcome.status, 200);
    assert!(outcome.received > 40, "the other direction is right: {}", outcome.received);
    assert_eq!(callee.heard(), 0);
    let record = site.record().await;
    assert_eq!(record["media_verdict"], json!("no_inbound_media"), "{record:#}");
    let legs = legs(&site, &record).await;
    let text = legs[0].to_string();
    assert!(text.contains("none could be authenticated"), "{text}");
    assert!(text.contains("srtp_failed"), "{text}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn where_srtp_is_required_plain_rtp_is_refused() {
    let site = site().await;
    let plain = phone(&site, "1004", SrtpRule::Off).await;
    let secure = phone(&site, "1001", SrtpRule::Optional).await;
    // As a caller: its offer is refused before any phone rings.
    let outcome = within("the call", plain.call(talking("1001", 1_000))).await.unwrap();
    assert_eq!(outcome.status, 488);
    let record = site.record().await;
    assert_eq!(record["hangup_cause"], json!("INCOMPATIBLE_DESTINATION"), "{record:#}");
    // As a callee: it refuses the switch's offer.
    let outcome = within("the call", secure.call(talking("1004", 1_000))).await.unwrap();
    assert_eq!(outcome.status, 488);
    let record = &site.records(2).await[0];
    assert_eq!(record["hangup_cause"], json!("INCOMPATIBLE_DESTINATION"), "{record:#}");
    // Without the setting, a phone that requires SRTP is refused too.
    let other = phone(&site, "1002", SrtpRule::Required).await;
    let outcome = within("the call", other.call(talking("1001", 1_000))).await.unwrap();
    assert_eq!(outcome.status, 488);
}
