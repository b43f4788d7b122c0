//! Several phones of one extension.

use std::time::Duration;

use serde_json::json;
use sidetone_phone::{Answering, CallPlan};

use crate::common::site::{Site, answering, calls, talk, talking, until, within};
use crate::flows::answered::assert_whole;

fn answers_after(millis: u64) -> Answering {
    Answering::Answer { after: Duration::from_millis(millis), talk: talk("clean") }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_ring_the_first_answer_wins_and_the_other_is_cancelled() {
    let site = Site::start().await;
    let caller = site.phone("1001", answering()).await;
    let desk = site.phone("1002", Answering::Ring).await;
    let mobile = site.phone("1002", answers_after(700)).await;
    until("three bindings", || site.engine().bindings() == 3).await;
    let mut rang = desk.calls();
    let (outcome, ()) = within("the call", async {
        tokio::join!(caller.call(talking("1002", 2_000)), async {
            rang.wait_for(|calls| calls.ringing == 1).await.unwrap();
            calls(&mobile, 0, 1).await;
            calls(&desk, 0, 0).await;
        })
    })
    .await;
    assert_eq!(outcome.unwrap().status, 200);
    assert!(mobile.heard() > 50 && desk.heard() == 0);
    let record = site.record().await;
    assert_whole(&record);
    assert_eq!((&record["hangup_cause"], &record["sip_status"]), (&json!("NORMAL_CLEARING"), &json!(200)));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_busy_phone_does_not_stop_another_from_answering() {
    let site = Site::start().await;
    let caller = site.phone("1001", answering()).await;
    let _busy = site.phone("1002", Answering::Refuse(486)).await;
    let _free = site.phone("1002", answers_after(300)).await;
    let outcome = within("the call", caller.call(talking("1002", 500))).await.unwrap();
    assert_eq!(outcome.status, 200);
    let record = site.record().await;
    assert_eq!((&record["hangup_cause"], &record["sip_status"]), (&json!("NORMAL_CLEARING"), &json!(200)));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_busy_is_busy() {
    let site = Site::start().await;
    let caller = site.phone("1001", answering()).await;
    let _one = site.phone("1002", Answering::Refuse(486)).await;
    let _two = site.phone("1002", Answering::Refuse(480)).await;
    let outcome = within("the call", caller.call(CallPlan::to("1002"))).await.unwrap();
    assert_eq!(outcome.status, 486);
    let record = site.record().await;
    assert_eq!((&record["bridge_cause"], &record["sip_status"]), (&json!("USER_BUSY"), &json!(486)));
}

/// RFC 3261 §16.7 step 5: a 6xx ends all branches.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_decline_ends_the_call_for_every_phone() {
    let site = Site::start().await;
    let caller = site.phone("1001", answering()).await;
    let desk = site.phone("1002", Answering::Ring).await;
    let _mobile = site.phone("1002", Answering::Refuse(603)).await;
    let outcome = within("the call", caller.call(CallPlan::to("1002"))).await.unwrap();
    assert_eq!(outcome.status, 603);
    until("the other phone is quiet", || *desk.calls().borrow() == sidetone_phone::Calls::default()).await;
    let record = site.record().await;
    assert_eq!((&record["bridge_cause"], &record["sip_status"]), (&json!("CALL_REJECTED"), &json!(603)));
    site.idle().await;
}

/// Both answer at the same instant: one talks, the other is hung up, and there is one record.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_answers_at_once_make_one_call() {
    let site = Site::start().await;
    let caller = site.phone("1001", answering()).await;
    let one = site.phone("1002", answers_after(0)).await;
    let two = site.phone("1002", answers_after(0)).await;
    let outcome = within("the call", caller.call(talking("1002", 2_000))).await.unwrap();
    assert_eq!(outcome.status, 200);
    calls(&one, 0, 0).await;
    calls(&two, 0, 0).await;
    assert!((one.heard() > 20) ^ (two.heard() > 20), "{} {}", one.heard(), two.heard());
    assert_whole(&site.record().await);
}
