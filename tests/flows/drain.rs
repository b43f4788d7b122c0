//! The shutdown of an engine: live calls get their records, new ones are refused.

use std::time::Duration;

use serde_json::json;
use sidetone_phone::{Answering, CallPlan};

use crate::common::site::{Site, answering, calls, established, open_end, until, within};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_live_call_gets_its_record_when_the_engine_stops() {
    let site = Site::start().await;
    let (caller, callee) = (site.phone("1001", answering()).await, site.phone("1002", answering()).await);
    let (outcome, dir) = within("the call", async {
        tokio::join!(caller.call(open_end("1002")), async {
            calls(&caller, 0, 1).await;
            until("RTP", || callee.heard() > 120).await;
            site.stop(Duration::from_millis(100)).await
        })
    })
    .await;
    let outcome = outcome.unwrap();
    assert_eq!((outcome.status, outcome.ended_by_peer), (200, true));
    let site = Site::reopen(dir).await;
    let record = site.record().await;
    assert_eq!(record["hangup_cause"], json!("NORMAL_CLEARING"));
    assert_eq!(record["loss_pct"], json!(0.0));
    assert!(record["answered_at"].is_string());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_engine_that_drains_takes_no_call_and_waits_for_the_last() {
    let site = Site::start().await;
    let (caller, callee) = (site.phone("1001", answering()).await, site.phone("1002", answering()).await);
    let other = site.phone("1003", answering()).await;
    let (outcome, refused, dir) = within("the call", async {
        tokio::join!(
            caller.call(open_end("1002")),
            async {
                established(&caller, &callee).await;
                // Calls are accepted until the drain request takes effect.
                let mut status = 200;
                while status == 200 {
                    let plan = CallPlan { talk_time: Some(Duration::ZERO), ..CallPlan::to("1002") };
                    status = other.call(plan).await.unwrap().status;
                }
                callee.hang_up().await.unwrap();
                status
            },
            async {
                calls(&caller, 0, 1).await;
                site.stop(Duration::from_secs(60)).await
            }
        )
    })
    .await;
    assert_eq!((refused, outcome.unwrap().ended_by_peer), (503, true));
    let site = Site::reopen(dir).await;
    let (_, page) = site.get("/cdrs").await;
    let oldest = page["items"].as_array().unwrap().last().unwrap();
    assert_eq!(
        (&oldest["hangup_cause"], &oldest["caller_number"]),
        (&json!("NORMAL_CLEARING"), &json!("1001"))
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_ringing_call_is_given_up_when_the_engine_stops() {
    let site = Site::start().await;
    let caller = site.phone("1001", answering()).await;
    let callee = site.phone("1002", Answering::Ring).await;
    let (outcome, dir) = within("the call", async {
        tokio::join!(caller.call(open_end("1002")), async {
            calls(&callee, 1, 0).await;
            site.stop(Duration::ZERO).await
        })
    })
    .await;
    assert_eq!(outcome.unwrap().status, 503);
    calls(&callee, 0, 0).await;
    let site = Site::reopen(dir).await;
    let record = site.record().await;
    assert_eq!((&record["media_verdict"], &record["billsec"]), (&json!("unanswered"), &json!(0)));
    assert!(record["answered_at"].is_null());
}
