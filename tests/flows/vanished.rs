//! Phones that vanish during a call, and phones that only appear to.

use std::time::Duration;

use serde_json::json;
use sidetone_phone::{Answering, CallPlan};

use crate::common::site::{Site, answering, calls, directory, open_end, talking, until, within};

/// An engine that ends a call after this many seconds without audio.
async fn impatient(seconds: u64) -> Site {
    let room = "[[organisations.rooms]]\nname = \"Stand-up\"\nnumber = \"200\"\nparticipant_pin = \"\"\n";
    Site::configured(&format!("{}{room}", directory()), |config| {
        config.media.timeout = Some(Duration::from_secs(seconds));
        config.media.hold_timeout = Some(Duration::from_secs(seconds));
    })
    .await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_whose_phones_vanish_ends_by_itself() {
    let site = impatient(2).await;
    let (caller, callee) = (site.phone("1001", answering()).await, site.phone("1002", answering()).await);
    // The abort drops the phone: no BYE is sent.
    let call = tokio::spawn(async move { caller.call(open_end("1002")).await });
    calls(&callee, 0, 1).await;
    until("RTP", || callee.heard() > 50).await;
    call.abort();
    drop(callee);
    let record = site.record().await;
    assert_eq!(record["hangup_cause"], json!("MEDIA_TIMEOUT"), "{record}");
    assert!(record["billsec"].as_u64().unwrap() >= 2, "{record}");
    site.idle().await;
}

/// One party talks and the other sends nothing: an announcement, or a muted party.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_in_which_one_party_talks_goes_on() {
    let site = impatient(6).await;
    let caller = site.phone("1001", answering()).await;
    let _callee = site.phone("1002", Answering::Answer { after: Duration::ZERO, talk: None }).await;
    within("the call", caller.call(talking("1002", 14_000))).await.unwrap();
    assert_eq!(site.record().await["hangup_cause"], json!("NORMAL_CLEARING"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_silent_phone_in_a_room_that_is_there_stays() {
    let site = impatient(2).await;
    let caller = site.phone("1001", answering()).await;
    let silent = CallPlan { talk: None, talk_time: Some(Duration::from_secs(7)), ..CallPlan::to("200") };
    within("the call", caller.call(silent)).await.unwrap();
    let record = site.record().await;
    assert_eq!(record["hangup_cause"], json!("NORMAL_CLEARING"), "it is there: {record}");
}
