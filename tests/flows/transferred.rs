//! Transfers by phones on real sockets: the remaining parties' audio continues, and both records are right.

use std::sync::Arc;

use serde_json::{Value, json};
use sidetone_phone::{Answering, CallOutcome, Phone, PhoneConfig, Voice};
use tokio::task::JoinHandle;

use crate::common::site::{Site, answering, calls, established, open_end, until, within};
use crate::flows::answered::is_uneven_at_most;

/// A caller whose call is up.
struct Caller {
    phone: Arc<Phone>,
    call: JoinHandle<CallOutcome>,
}

impl Caller {
    async fn call(site: &Site, from: &str, to: &'static str, callee: &Phone) -> Caller {
        let phone = Arc::new(site.phone(from, answering()).await);
        let call = place(&phone, to);
        established(&phone, callee).await;
        Caller { phone, call }
    }

    async fn hang_up(self) -> CallOutcome {
        self.phone.hang_up().await.unwrap();
        self.over().await
    }

    async fn over(self) -> CallOutcome {
        within("the caller's end", self.call).await.unwrap()
    }
}

fn place(phone: &Arc<Phone>, to: &'static str) -> JoinHandle<CallOutcome> {
    let phone = Arc::clone(phone);
    tokio::spawn(async move { phone.call(open_end(to)).await.unwrap() })
}

/// Waits until a phone has received another second of audio.
async fn hears(phone: &Phone) {
    let before = phone.heard();
    until("a second of audio", || phone.heard() > before + 50).await;
}

fn to<'a>(records: &'a [Value], number: &str) -> &'a Value {
    records.iter().find(|record| record["destination_number"] == number).unwrap()
}

/// The fields of both records of a transfer that do not depend on who hung up.
fn assert_linked(first: &Value, second: &Value) {
    assert_eq!(first["transferred_to"], second["call_uuid"], "{first:#} {second:#}");
    assert_eq!(second["transferred_from"], first["call_uuid"], "{first:#} {second:#}");
    for record in [first, second] {
        assert_eq!(
            (&record["hangup_cause"], &record["loss_pct"]),
            (&json!("NORMAL_CLEARING"), &json!(0.0)),
            "{record:#}"
        );
        assert!(is_uneven_at_most(&record["media_verdict"]), "{record:#}");
    }
}

/// 1001 calls 1002, who transfers it to 1003.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_called_phone_transfers_its_caller_blindly() {
    let site = Site::start().await;
    let (second, third) = (site.phone("1002", answering()).await, site.phone("1003", answering()).await);
    let caller = Caller::call(&site, "1001", "1002", &second).await;
    hears(&caller.phone).await;
    assert_eq!(within("the result", second.refer("1003")).await.unwrap(), 200);
    calls(&third, 0, 1).await;
    calls(&second, 0, 0).await;
    calls(&caller.phone, 0, 1).await;
    hears(&caller.phone).await;
    hears(&third).await;
    caller.hang_up().await;
    calls(&third, 0, 0).await;
    let records = site.records(2).await;
    let (first, onward) = (to(&records, "1002"), to(&records, "1003"));
    assert_linked(first, onward);
    assert_eq!([&first["ended_by"], &onward["ended_by"]], ["caller", "caller"]);
    assert_eq!([&first["caller_number"], &onward["caller_number"]], ["1001", "1001"]);
    site.idle().await;
}

/// 1001 transfers its callee, and hangs up immediately.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_caller_transfers_and_leaves_at_once() {
    let site = Site::start().await;
    let ringing = PhoneConfig { voice: Some(Voice::Tone), ..site.phone_config("1003", Answering::Ring) };
    let (second, third) = (site.phone("1002", answering()).await, site.phone_of(ringing).await);
    let caller = Caller::call(&site, "1001", "1002", &second).await;
    hears(&second).await;
    let phone = Arc::clone(&caller.phone);
    let refer = tokio::spawn(async move { phone.refer("1003").await });
    calls(&third, 1, 0).await;
    caller.hang_up().await;
    assert!(within("the end of the leg", refer).await.unwrap().is_err(), "no result after its BYE");
    third.answer().await.unwrap();
    calls(&third, 0, 1).await;
    hears(&second).await;
    hears(&third).await;
    third.hang_up().await.unwrap();
    calls(&second, 0, 0).await;
    let records = site.records(2).await;
    assert_linked(to(&records, "1002"), to(&records, "1003"));
    site.idle().await;
}

/// The target is busy: the call returns to the first parties, and continues without loss.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_returns_when_its_transfer_fails() {
    let site = Site::start().await;
    let second = site.phone("1002", answering()).await;
    let _busy = site.phone("1003", Answering::Refuse(486)).await;
    let caller = Caller::call(&site, "1001", "1002", &second).await;
    for (number, status) in [("1003", 486), ("1004", 480), ("nobody", 404)] {
        assert_eq!(within("the result", second.refer(number)).await.unwrap(), status, "{number}");
    }
    calls(&second, 0, 1).await;
    hears(&caller.phone).await;
    caller.hang_up().await;
    let records = site.records(4).await;
    let first = to(&records, "1002");
    assert!(first.get("transferred_to").is_none(), "{first:#}");
    assert_eq!(first["loss_pct"], 0.0, "{first:#}");
    assert!(is_uneven_at_most(&first["media_verdict"]), "{first:#}");
    let busy = to(&records, "1003");
    assert_eq!([&busy["hangup_cause"], &busy["ended_by"]], ["USER_BUSY", "callee"]);
    assert_eq!(busy["transferred_from"], first["call_uuid"]);
    site.idle().await;
}

/// 1002 has a call from 1001, consults 1003, and joins both.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_phone_joins_its_two_calls() {
    let site = Site::start().await;
    let (second, third) =
        (Arc::new(site.phone("1002", answering()).await), site.phone("1003", answering()).await);
    let caller = Caller::call(&site, "1001", "1002", &second).await;
    let consultation = place(&second, "1003");
    calls(&third, 0, 1).await;
    calls(&second, 0, 2).await;
    hears(&third).await;
    assert_eq!(within("the result", second.refer_to_call()).await.unwrap(), 200);
    within("the consultation", consultation).await.unwrap();
    calls(&second, 0, 0).await;
    hears(&caller.phone).await;
    hears(&third).await;
    third.hang_up().await.unwrap();
    assert!(caller.over().await.ended_by_peer);
    let records = site.records(2).await;
    assert_linked(to(&records, "1002"), to(&records, "1003"));
    site.idle().await;
}

/// The transferred party transfers again, attended and blind.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn transfers_follow_each_other() {
    let site = Site::start().await;
    let (second, third) =
        (site.phone("1002", answering()).await, Arc::new(site.phone("1003", answering()).await));
    let (fourth, fifth) =
        (Arc::new(site.phone("1004", answering()).await), site.phone("1005", answering()).await);
    let caller = Caller::call(&site, "1001", "1002", &second).await;
    assert_eq!(within("the first", second.refer("1003")).await.unwrap(), 200);
    calls(&third, 0, 1).await;
    assert_eq!(within("the second", third.refer("1004")).await.unwrap(), 200);
    calls(&fourth, 0, 1).await;
    calls(&third, 0, 0).await;
    let consultation = place(&fourth, "1005");
    calls(&fifth, 0, 1).await;
    calls(&fourth, 0, 2).await;
    assert_eq!(within("the third", fourth.refer_to_call()).await.unwrap(), 200);
    within("the consultation", consultation).await.unwrap();
    calls(&fourth, 0, 0).await;
    hears(&caller.phone).await;
    hears(&fifth).await;
    caller.hang_up().await;
    calls(&fifth, 0, 0).await;
    let records = site.records(4).await;
    let (first, last) = (to(&records, "1002"), to(&records, "1005"));
    assert_eq!(first["transferred_to"], last["call_uuid"]);
    for number in ["1003", "1004", "1005"] {
        assert_eq!(to(&records, number)["transferred_from"], first["call_uuid"], "{number}");
    }
    site.idle().await;
}
