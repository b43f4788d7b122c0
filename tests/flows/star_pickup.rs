//! Star codes by which phones park a party and pick up a parked one, on real sockets.

use std::sync::Arc;

use sidetone_phone::{Answering, CallOutcome, Phone};
use tokio::task::JoinHandle;

use crate::common::site::{Site, answering, calls, established, found, open_end, until, within};

fn place(phone: &Arc<Phone>, to: &'static str) -> JoinHandle<CallOutcome> {
    let phone = Arc::clone(phone);
    tokio::spawn(async move { phone.call(open_end(to)).await.unwrap() })
}

/// Waits until a phone has received another second of audio.
async fn hears(phone: &Phone) {
    let before = phone.heard();
    until("a second of audio", || phone.heard() > before + 50).await;
}

/// 1002 parks 1001 by a blind transfer to `*6807`, and 1003 dials `*6907`.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_phone_parks_a_party_and_another_takes_it() {
    let site = Site::start().await;
    let caller = Arc::new(site.phone("1001", answering()).await);
    let second = site.phone("1002", answering()).await;
    let call = place(&caller, "1002");
    established(&caller, &second).await;
    assert_eq!(within("the result", second.refer("*6807")).await.unwrap(), 200);
    calls(&second, 0, 0).await;
    found("the parked party", async || {
        let (_, page) = site.get("/calls?parked_slot=7").await;
        (page["total"] == 1).then_some(())
    })
    .await;
    // The switch plays the music.
    hears(&caller).await;
    let third = Arc::new(site.phone("1003", answering()).await);
    let empty = within("an empty slot", place(&third, "*6908")).await.unwrap();
    assert_eq!(empty.status, 404);
    let idle = within("a code for transfers alone", place(&third, "*68")).await.unwrap();
    assert_eq!(idle.status, 403);
    let taken = place(&third, "*6907");
    calls(&third, 0, 1).await;
    hears(&caller).await;
    hears(&third).await;
    assert_eq!(site.get("/calls?parked_slot=7").await.1["total"], 0);
    third.hang_up().await.unwrap();
    assert_eq!(within("the third", taken).await.unwrap().status, 200);
    within("the caller", call).await.unwrap();
    let records = site.records(4).await;
    let linked = |field: &str| records.iter().filter(|record| record[field].is_string()).count();
    assert_eq!((linked("transferred_to"), linked("transferred_from")), (1, 1), "{records:#?}");
    site.idle().await;
}

/// 1001 calls 1002, whose phone rings; 1003 picks up that call with the number, and then one without.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_phone_takes_a_call_that_rings_elsewhere() {
    for code in ["*81002", "*8"] {
        let site = Site::start().await;
        let caller = Arc::new(site.phone("1001", answering()).await);
        let second = site.phone("1002", Answering::Ring).await;
        let third = Arc::new(site.phone("1003", answering()).await);
        let call = place(&caller, "1002");
        calls(&second, 1, 0).await;
        let taken = place(&third, code);
        calls(&third, 0, 1).await;
        calls(&second, 0, 0).await;
        hears(&caller).await;
        hears(&third).await;
        caller.hang_up().await.unwrap();
        assert_eq!(within("the caller", call).await.unwrap().status, 200);
        within("the third", taken).await.unwrap();
        site.idle().await;
    }
}
