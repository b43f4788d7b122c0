//! Calls that are up, as the API shows them from the first ring to the end.

use serde_json::{Value, json};
use sidetone_phone::{Answering, Phone};

use crate::common::site::{Site, answering, calls, directory, established, found, open_end, until, within};

/// The items of a list of live calls.
async fn live(site: &Site, query: &str) -> Vec<Value> {
    let (status, page) = site.get(&format!("/calls{query}")).await;
    assert_eq!(status, 200, "{page}");
    page["items"].as_array().unwrap().clone()
}

/// The one live call, once it is in that state.
async fn in_state(site: &Site, state: &str) -> Value {
    found(state, async || {
        let mut items = live(site, "").await;
        (items.len() == 1 && items[0]["state"] == state).then(|| items.remove(0))
    })
    .await
}

fn texts<'a>(items: &'a [Value], field: &str) -> Vec<&'a str> {
    items.iter().map(|item| item[field].as_str().unwrap_or_default()).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_is_seen_from_its_first_ring_to_its_end() {
    let site = Site::start().await;
    let caller = site.phone("1001", answering()).await;
    let desk = site.phone("1002", Answering::Ring).await;
    let mobile = site.phone("1002", Answering::Ring).await;
    let call = async { within("the call", caller.call(open_end("1002"))).await.unwrap() };
    let watched = async {
        calls(&desk, 1, 0).await;
        let ringing = in_state(&site, "ringing").await;
        let uuid = ringing["uuid"].as_str().unwrap().to_owned();
        assert_eq!(
            [&ringing["direction"], &ringing["caller"], &ringing["destination"], &ringing["answered_at"]],
            [&json!("internal"), &json!("1001"), &json!("1002"), &Value::Null]
        );
        assert!(ringing["ringing_at"].is_string() && ringing["extension_id"].is_string(), "{ringing:#}");
        assert!(ringing.get("trunk_id").is_none() && ringing.get("team_id").is_none(), "{ringing:#}");
        let legs = ringing["legs"].as_array().unwrap().clone();
        assert_eq!(texts(&legs, "role"), ["caller", "callee", "callee"]);
        assert_eq!(texts(&legs, "number"), ["1001", "1002", "1002"]);
        assert!(legs.iter().all(|leg| leg["codec"].is_null() && leg["answered_at"].is_null()));

        mobile.answer().await.unwrap();
        established(&caller, &mobile).await;
        let up = in_state(&site, "answered").await;
        assert_eq!((&up["uuid"], &up["ringing_at"]), (&ringing["uuid"], &ringing["ringing_at"]));
        assert!(up["answered_at"].is_string());
        let left = up["legs"].as_array().unwrap().clone();
        assert_eq!(texts(&left, "role"), ["caller", "callee"], "the desk phone rings no more");
        assert_eq!(left[0]["uuid"], legs[0]["uuid"]);
        assert_eq!(left[0]["extension_id"], up["extension_id"]);
        assert!(legs[1..].iter().any(|leg| leg["uuid"] == left[1]["uuid"]), "a leg keeps its id");
        assert_eq!(texts(&left, "codec"), ["PCMU", "PCMU"]);
        assert!(left.iter().all(|leg| leg["state"] == "answered" && leg["answered_at"].is_string()));
        assert_eq!(site.get(&format!("/calls/{uuid}")).await, (200, up));
        caller.hang_up().await.unwrap();
        uuid
    };
    let (outcome, uuid) = tokio::join!(call, watched);
    assert_eq!(outcome.status, 200);
    assert_eq!(site.record().await["call_uuid"].as_str(), Some(uuid.as_str()));
    let (status, body) = site.get(&format!("/calls/{uuid}")).await;
    assert_eq!((status, &body["error"]["code"]), (404, &json!("not_found")));
    assert_eq!(live(&site, "").await, Vec::<Value>::new());
}

/// Hangs up all these phones.
async fn end(phones: &[&Phone]) {
    for phone in phones {
        phone.hang_up().await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn filters_and_pages_of_several_calls() {
    let site = Site::start().await;
    let (one, two) = (site.phone("1001", answering()).await, site.phone("1002", answering()).await);
    let (three, four) = (site.phone("1003", answering()).await, site.phone("1004", Answering::Ring).await);
    let watched = async {
        calls(&two, 0, 1).await;
        calls(&one, 0, 1).await;
        let first = in_state(&site, "answered").await;
        let second = async { within("the second", three.call(open_end("1004"))).await.unwrap().status };
        let looked = async {
            calls(&four, 1, 0).await;
            until("it rings for the caller", || three.calls().borrow().ringing == 1).await;
            let all = live(&site, "").await;
            assert_eq!(texts(&all, "caller"), ["1003", "1001"], "newest first");
            for (query, callers) in [
                ("?state=ringing", vec!["1003"]),
                ("?state=answered", vec!["1001"]),
                ("?state=queued", vec![]),
                ("?direction=internal", vec!["1003", "1001"]),
                ("?direction=inbound", vec![]),
                ("?limit=1", vec!["1003"]),
                ("?limit=1&offset=1", vec!["1001"]),
                ("?offset=2", vec![]),
            ] {
                assert_eq!(texts(&live(&site, query).await, "caller"), callers, "{query}");
            }
            let (_, page) = site.get("/calls?limit=1&offset=1").await;
            assert_eq!([&page["total"], &page["limit"], &page["offset"]], [&json!(2), &json!(1), &json!(1)]);
            // Whichever party the extension is.
            for leg in first["legs"].as_array().unwrap() {
                let query = format!("?extension_id={}", leg["extension_id"].as_str().unwrap());
                assert_eq!(texts(&live(&site, &query).await, "caller"), ["1001"], "{query}");
            }
            end(&[&three, &one]).await;
        };
        tokio::join!(second, looked).0
    };
    let (outcome, second) =
        tokio::join!(async { within("the first", one.call(open_end("1002"))).await.unwrap() }, watched);
    assert_eq!((outcome.status, second), (200, 487));
    site.idle().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_from_a_carrier_has_one_phone() {
    let number =
        "[[organisations.numbers]]\nnumber = \"+442071230000\"\ndestination = { extension = \"1006\" }\n";
    let trunk = "[[trunks]]\nname = \"carrier\"\naccept_from = [\"127.0.0.1\"]\n";
    let site = Site::with(&format!("{}{number}{trunk}", directory())).await;
    let mut config = site.phone_config("+447700900123", answering());
    config.domain = "carrier.example".into();
    config.password = String::new();
    let (carrier, callee) = (Phone::start(config).await.unwrap(), site.phone("1006", answering()).await);
    let watched = async {
        calls(&callee, 0, 1).await;
        let up = in_state(&site, "answered").await;
        assert_eq!(
            [&up["direction"], &up["caller"], &up["destination"]],
            [&json!("inbound"), &json!("+447700900123"), &json!("+442071230000")]
        );
        assert!(up["trunk_id"].is_string() && up["team_id"].is_string(), "{up:#}");
        let legs = up["legs"].as_array().unwrap();
        assert!(legs[0].get("extension_id").is_none(), "{up:#}");
        assert_eq!((&legs[1]["extension_id"], &legs[1]["number"]), (&up["extension_id"], &json!("1006")));
        callee.hang_up().await.unwrap();
    };
    let (outcome, ()) = tokio::join!(within("the call", carrier.call(open_end("+442071230000"))), watched);
    assert!(outcome.unwrap().ended_by_peer);
    site.idle().await;
}
