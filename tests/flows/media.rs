//! Offers inside a call: hold, resume, and another media address.

use serde_json::json;
use sidetone_phone::{CallOutcome, Phone};
use sidetone_sip::sdp::Direction;

use crate::common::site::{Site, answering, established, open_end, until, within};
use crate::flows::answered::assert_whole;

/// More RTP reaches `phone`.
async fn hears_more(phone: &Phone, packets: u64) {
    let before = phone.heard();
    until("more RTP", || phone.heard() >= before + packets).await;
}

/// Runs `script` while a call is up, then the caller hangs up.
async fn during_a_call<F>(caller: &Phone, callee: &Phone, script: F) -> CallOutcome
where
    F: Future<Output = ()>,
{
    let (outcome, ()) = within("the call", async {
        tokio::join!(caller.call(open_end("1002")), async {
            established(caller, callee).await;
            hears_more(callee, 40).await;
            hears_more(caller, 40).await;
            script.await;
            caller.hang_up().await.unwrap();
        })
    })
    .await;
    outcome.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hold_and_its_end_cost_no_loss() {
    for held in [Direction::SendOnly, Direction::Inactive] {
        let site = Site::start().await;
        let caller = site.phone("1001", answering()).await;
        let callee = site.phone("1002", answering()).await;
        let outcome = during_a_call(&caller, &callee, async {
            caller.offer(held).await.unwrap();
            // The callee was notified: it stops sending, so the caller receives nothing.
            quiet(&caller).await;
            caller.offer(Direction::SendRecv).await.unwrap();
            hears_more(&caller, 40).await;
            hears_more(&callee, 40).await;
        })
        .await;
        assert_eq!((outcome.status, outcome.reinvites), (200, vec![200, 200]), "{held:?}");
        let record = site.record().await;
        assert_whole(&record);
        assert_eq!(record["hangup_cause"], json!("NORMAL_CLEARING"));
    }
}

/// No RTP reaches `phone` for the duration of twenty packets.
async fn quiet(phone: &Phone) {
    within("silence", async {
        loop {
            let before = phone.heard();
            tokio::time::sleep(std::time::Duration::from_millis(400)).await;
            if phone.heard() == before {
                return;
            }
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_callee_may_hold() {
    let site = Site::start().await;
    let (caller, callee) = (site.phone("1001", answering()).await, site.phone("1002", answering()).await);
    let outcome = during_a_call(&caller, &callee, async {
        callee.offer(Direction::SendOnly).await.unwrap();
        quiet(&callee).await;
        callee.offer(Direction::SendRecv).await.unwrap();
        hears_more(&caller, 40).await;
        hears_more(&callee, 40).await;
    })
    .await;
    assert_eq!(outcome.status, 200);
    assert_whole(&site.record().await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn both_parties_may_move_their_media() {
    let site = Site::start().await;
    let (caller, callee) = (site.phone("1001", answering()).await, site.phone("1002", answering()).await);
    let outcome = during_a_call(&caller, &callee, async {
        for mover in [&caller, &callee, &caller] {
            mover.move_media().await.unwrap();
            hears_more(&caller, 40).await;
            hears_more(&callee, 40).await;
        }
    })
    .await;
    assert_eq!((outcome.status, outcome.reinvites), (200, vec![200, 200]));
    assert_whole(&site.record().await);
}

/// RFC 3261 §14.1: when two offers cross, one gets a 491 and is repeated later.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn offers_that_cross_are_both_heard_in_the_end() {
    let site = Site::start().await;
    let (caller, callee) = (site.phone("1001", answering()).await, site.phone("1002", answering()).await);
    let outcome = during_a_call(&caller, &callee, async {
        for _ in 0..3 {
            let (one, other) = tokio::join!(caller.move_media(), callee.move_media());
            one.and(other).unwrap();
            hears_more(&caller, 40).await;
            hears_more(&callee, 40).await;
        }
    })
    .await;
    assert_eq!(outcome.status, 200);
    assert!(outcome.reinvites.iter().all(|status| matches!(status, 200 | 491)), "{:?}", outcome.reinvites);
    assert!(outcome.reinvites.contains(&200), "{:?}", outcome.reinvites);
    assert_whole(&site.record().await);
}
