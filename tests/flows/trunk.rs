//! Calls from a carrier, identified by its address.

use serde_json::json;
use sidetone_phone::{CallPlan, Phone};

use crate::common::site::{Site, answering, directory, talking, within};
use crate::flows::answered::assert_whole;

fn with_trunk(organisation: &str) -> String {
    let number =
        "[[organisations.numbers]]\nnumber = \"+442071230000\"\ndestination = { extension = \"1002\" }\n";
    let trunk = "[[trunks]]\nname = \"carrier\"\naccept_from = [\"127.0.0.1\"]\n";
    format!("{}{number}{trunk}{organisation}", directory())
}

/// A carrier: neither extension nor password.
async fn carrier(site: &Site) -> Phone {
    let mut config = site.phone_config("+447700900123", answering());
    config.domain = "carrier.example".into();
    config.password = String::new();
    Phone::start(config).await.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_number_rings_its_extension() {
    let site = Site::with(&with_trunk("")).await;
    let (carrier, _callee) = (carrier(&site).await, site.phone("1002", answering()).await);
    for (place, dialled) in ["+442071230000", "442071230000"].into_iter().enumerate() {
        let outcome = within("the call", carrier.call(talking(dialled, 2_000))).await.unwrap();
        assert_eq!(outcome.status, 200, "{dialled}");
        let record = site.records(place + 1).await.remove(0);
        assert_whole(&record);
        assert_eq!(
            [&record["direction"], &record["caller_number"], &record["destination_number"]],
            [&json!("inbound"), &json!("+447700900123"), &json!("+442071230000")]
        );
        // Present only when routing normalised the dialled digits.
        assert_eq!(record.get("dialled_number"), (place == 1).then_some(&json!("442071230000")));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_unknown_number_is_404_and_a_record_of_whom_the_trunk_belongs_to() {
    for (organisation, count) in [("organisation = \"Acme\"\n", 2), ("", 1)] {
        let site = Site::with(&with_trunk(organisation)).await;
        let (carrier, _callee) = (carrier(&site).await, site.phone("1002", answering()).await);
        // A number that is not assigned.
        let outcome = within("the call", carrier.call(CallPlan::to("+442079999999"))).await.unwrap();
        assert_eq!(outcome.status, 404);
        let outcome = within("the call", carrier.call(talking("+442071230000", 200))).await.unwrap();
        assert_eq!(outcome.status, 200);
        let records = site.records(count).await;
        if let Some(refused) = records.get(1) {
            assert_eq!(
                [&refused["hangup_cause"], &refused["destination_number"], &refused["direction"]],
                [&json!("UNALLOCATED_NUMBER"), &json!("+442079999999"), &json!("inbound")]
            );
        }
    }
}

/// A carrier may only call numbers: it cannot register, and cannot dial an extension.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_carrier_reaches_numbers_only() {
    let site = Site::with(&with_trunk("organisation = \"Acme\"\n")).await;
    let (carrier, _callee) = (carrier(&site).await, site.phone("1002", answering()).await);
    let outcome = within("the call", carrier.call(CallPlan::to("1002"))).await.unwrap();
    assert_eq!(outcome.status, 404);
    assert!(carrier.register("+447700900123").await.is_err());
}

/// A phone with an address in the trunk's network is still a phone.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn phones_beside_a_trunk_call_each_other() {
    let site = Site::with(&with_trunk("")).await;
    let (caller, _callee) = (site.phone("1001", answering()).await, site.phone("1002", answering()).await);
    let outcome = within("the call", caller.call(talking("1002", 300))).await.unwrap();
    assert_eq!(outcome.status, 200);
    assert_eq!(site.record().await["direction"], json!("internal"));
}
