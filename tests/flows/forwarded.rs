//! Calls that extensions forward, by their phones, their settings and star codes, on real sockets.

use std::sync::Arc;

use serde_json::{Value, json};
use sidetone_phone::{Answering, CallPlan};

use crate::common::site::{Site, answering, calls, established, found, open_end, until, within};

/// 1002 sends its calls to 1003, which sends them to 1004.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_follows_its_redirections() {
    let site = Site::start().await;
    let caller = Arc::new(site.phone("1001", answering()).await);
    let _second = site.phone("1002", Answering::Redirect("1003".to_owned())).await;
    let _third = site.phone("1003", Answering::Redirect("1004".to_owned())).await;
    let fourth = site.phone("1004", answering()).await;
    let phone = Arc::clone(&caller);
    let call = tokio::spawn(async move { phone.call(open_end("1002")).await.unwrap() });
    established(&caller, &fourth).await;
    until("audio both ways", || caller.heard() > 50 && fourth.heard() > 50).await;
    caller.hang_up().await.unwrap();
    assert_eq!(within("the call", call).await.unwrap().status, 200);
    let record = site.record().await;
    let names =
        ["caller_number", "destination_number", "dialled_number", "direction", "hangup_cause", "loss_pct"];
    let fields: Vec<_> = names.iter().map(|name| record[name].clone()).collect();
    assert_eq!(
        json!(fields),
        json!(["1001", "1004", "1002", "internal", "NORMAL_CLEARING", 0.0]),
        "{record:#}"
    );
    site.idle().await;
}

/// Two phones that redirect to each other, and one to itself.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn redirections_in_circles_end() {
    let site = Site::start().await;
    let caller = site.phone("1001", answering()).await;
    let second = site.phone("1002", Answering::Redirect("1003".to_owned())).await;
    let _third = site.phone("1003", Answering::Redirect("1002".to_owned())).await;
    let _fourth = site.phone("1004", Answering::Redirect("1004".to_owned())).await;
    for (place, number) in ["1002", "1003", "1004"].into_iter().enumerate() {
        let outcome = within("the call", caller.call(CallPlan::to(number))).await.unwrap();
        assert_eq!(outcome.status, 480, "{number}");
        let record = site.records(place + 1).await.remove(0);
        assert_eq!(record["hangup_cause"], "REDIRECTION_TO_NEW_DESTINATION", "{record:#}");
        assert_eq!(record["ended_by"], "callee");
    }
    calls(&second, 0, 0).await;
    site.idle().await;
}

/// 1002 forwards its calls by star codes and stops it again; the codes are answered with a chime.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn star_codes_forward_calls_and_refuse_them() {
    let site = Site::start().await;
    let caller = Arc::new(site.phone("1001", answering()).await);
    let second = site.phone("1002", Answering::Refuse(486)).await;
    let fourth = site.phone("1004", answering()).await;
    let dial = async |code: &str| {
        let outcome = within("the code", second.call(open_end(code))).await.unwrap();
        assert_eq!((outcome.status, outcome.ended_by_peer), (200, true), "{code}");
        assert!(outcome.received > 5, "{code}: a chime of {} packets", outcome.received);
    };
    let status = async || within("the call", caller.call(CallPlan::to("1002"))).await.unwrap().status;
    dial("*901004").await;
    let stored = site.engine().store.directory().await.unwrap();
    let line = stored.extensions.iter().find(|line| line.number == "1002").unwrap();
    assert_eq!(line.forwarding.busy.as_deref(), Some("1004"));
    // The switch reads the change a moment later.
    found("a forwarded call", async || (status().await == 200).then_some(())).await;
    calls(&fourth, 0, 0).await;
    let record = found("its record", async || {
        let (_, page) = site.get("/cdrs").await;
        let forwarded = |record: &&Value| record["forwarded_by"] == "1002";
        page["items"].as_array()?.iter().find(forwarded).cloned()
    })
    .await;
    assert_eq!(
        (
            &record["forwarded_by"],
            &record["forward_reason"],
            &record["dialled_number"],
            &record["destination_number"]
        ),
        (&json!("1002"), &json!("busy"), &json!("1002"), &json!("1004")),
        "{record:#}"
    );
    dial("*91").await;
    dial("*78").await;
    found("do not disturb", async || (status().await == 480).then_some(())).await;
    dial("*79").await;
    found("no do not disturb", async || (status().await == 486).then_some(())).await;
    let outcome = within("the code", second.call(CallPlan::to("*724711"))).await.unwrap();
    assert_eq!(outcome.status, 404, "a number that leads nowhere");
    site.idle().await;
}
