//! Calls that are parked and picked up over the API, on real sockets.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::common::site::{Site, answering, calls, established, found, open_end, post, until, within};

/// Waits until a phone has received another second of audio.
async fn hears(phone: &sidetone_phone::Phone) {
    let before = phone.heard();
    until("a second of audio", || phone.heard() > before + 50).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_program_parks_a_party_and_another_extension_picks_it_up() {
    let site = Site::start().await;
    let caller = Arc::new(site.phone("1001", answering()).await);
    let callee = site.phone("1002", answering()).await;
    let third = site.phone("1003", answering()).await;
    let phone = Arc::clone(&caller);
    let call = tokio::spawn(async move { phone.call(open_end("1002")).await.unwrap() });
    established(&caller, &callee).await;
    let uuid = found("the call", async || {
        let (_, page) = site.get("/calls?state=answered").await;
        Some(page["items"][0]["uuid"].as_str()?.to_owned())
    })
    .await;
    let operate = async |uuid: &str, operation: &str, body: Value| {
        post(site.http, &format!("/calls/{uuid}/{operation}"), "", &body.to_string()).await
    };
    for (operation, body, status, names) in [
        ("park", json!({"slot": 100}), 400, "slot: "),
        ("park", json!({"seconds": 9}), 400, "seconds: "),
        ("park", json!({"leg": uuid}), 422, "leg: "),
        ("park", json!({"leg": uuid, "slot": 100}), 422, "leg: "),
        ("park", json!({"leg": uuid, "slot": 100}), 422, "slot: "),
        ("hold", json!({"leg": uuid, "music": 1}), 422, "leg: "),
        ("hold", json!({"leg": uuid, "music": 1}), 422, "music: "),
        ("pickup", json!({"from": "1999", "to": 1}), 422, "from: "),
        ("pickup", json!({"from": "1999", "to": 1}), 422, "to: "),
        ("pickup", json!({}), 400, "from: "),
        ("pickup", json!({"from": "1999"}), 422, "from: "),
        ("pickup", json!({"from": "1003"}), 409, "neither parked nor ringing"),
    ] {
        let (answered, error) = operate(&uuid, operation, body.clone()).await;
        assert_eq!(answered, status, "{operation} {body}: {error}");
        assert!(error["error"]["message"].as_str().unwrap().contains(names), "{operation} {body}: {error}");
    }
    let (status, parked) = operate(&uuid, "park", json!({"slot": 7})).await;
    assert_eq!((status, &parked["slot"], &parked["call_uuid"]), (200, &json!(7), &json!(uuid)), "{parked}");
    within("the caller's end", call).await.unwrap();
    calls(&callee, 0, 1).await;
    // The switch plays the music.
    hears(&callee).await;
    let (_, page) = site.get("/calls?parked_slot=7").await;
    assert_eq!((&page["total"], &page["items"][0]["parked"]["slot"]), (&json!(1), &json!(7)), "{page}");
    assert_eq!(site.get("/calls?parked_slot=8").await.1["total"], 0);
    let (status, error) = operate(&uuid, "pickup", json!({"from": "1004"})).await;
    assert_eq!(status, 409, "1004 has no phone: {error}");
    let (status, begun) = operate(&uuid, "pickup", json!({"from": "1003"})).await;
    assert_eq!(status, 202, "{begun}");
    calls(&third, 0, 1).await;
    hears(&callee).await;
    hears(&third).await;
    found("no slot is taken", async || {
        (site.get("/calls?parked_slot=7").await.1["total"] == 0).then_some(())
    })
    .await;
    // The party is parked from the second call too: it belongs to the first call.
    let second = begun["call_uuid"].as_str().unwrap();
    let (_, live) = site.get(&format!("/calls/{second}")).await;
    let leg = &live["legs"][0]["uuid"];
    let (status, again) = operate(second, "park", json!({"leg": leg})).await;
    assert_eq!((status, &again["call_uuid"], &again["slot"]), (200, &json!(uuid), &json!(1)), "{again}");
    calls(&third, 0, 0).await;
    hears(&callee).await;
    let (status, begun) = operate(&uuid, "pickup", json!({"from": "1001"})).await;
    assert_eq!(status, 202, "{begun}");
    calls(&caller, 0, 1).await;
    hears(&callee).await;
    hears(&caller).await;
    callee.hang_up().await.unwrap();
    calls(&caller, 0, 0).await;
    let records = site.records(3).await;
    let of = |uuid: &str| records.iter().find(|record| record["call_uuid"] == uuid).unwrap();
    let last = begun["call_uuid"].as_str().unwrap();
    assert_eq!([&of(second)["transferred_from"], &of(last)["transferred_from"]], [uuid.as_str(); 2]);
    assert_eq!(of(&uuid)["transferred_to"], last);
    let (status, error) = operate(&uuid, "pickup", json!({"from": "1003"})).await;
    assert_eq!((status, &error["error"]["code"]), (409, &json!("conflict")), "{error}");
    site.idle().await;
}
