//! The charges of external calls, through a complete engine: rates, records, credit.

use std::net::SocketAddr;
use std::time::Duration;

use serde_json::{Value, json};
use sidetone_model::money::Amount;
use sidetone_phone::{Answering, CallPlan, Phone};

use crate::common::site::{Site, answering, declare, directory, open_end, phone_config, talking, within};
use crate::flows::answered::assert_whole;

const WORLD: &str = "+447700900123";

const RATES: &str = r#"
[[sell_rates]]
organisation = "Acme"
prefix = "+44"
per_minute = "0.0120"
currency = "EUR"
increments = [60, 1]
[[cost_rates]]
trunk = "carrier"
prefix = "+44"
per_minute = "0.0080"
currency = "USD"
increments = [1, 1]
[[fx_rates]]
from = "USD"
to = "EUR"
rate = "0.9200"
from_time = "2026-01-01T00:00:00Z"
"#;

async fn carrier(answering: Answering) -> Phone {
    let nobody: SocketAddr = ([127, 0, 0, 1], 9).into();
    let mut config = phone_config(nobody, "carrier", answering);
    config.domain = "carrier.example".into();
    Phone::start(config).await.unwrap()
}

/// Acme with that credit, a trunk to `carrier`, and `rates`; its key cannot read the margin.
fn declaration(carrier: &Phone, credit: &str, rates: &str) -> String {
    let money = format!("currency = \"EUR\"\ncredit = \"{credit}\"\n");
    let mut text = directory().replacen("currency = \"EUR\"\n", &money, 1);
    text += "[[organisations.numbers]]\nnumber = \"+442071230000\"\ndestination = { extension = \"1001\" }\n";
    let local = carrier.local();
    text += &format!("[[trunks]]\nname = \"carrier\"\naddress = \"sip:{local}\"\n");
    text + rates
}

fn amount(value: &Value) -> Amount {
    value.as_str().unwrap().parse().unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_to_the_world_is_rated_and_no_rate_changes_that() {
    let carrier = carrier(answering()).await;
    let site = Site::with(&declaration(&carrier, "25.00", RATES)).await;
    let caller = site.phone("1001", answering()).await;
    let outcome = within("the call", caller.call(talking(WORLD, 2_000))).await.unwrap();
    assert_eq!(outcome.status, 200);
    let record = site.record().await;
    assert_whole(&record);
    assert_eq!(
        (&record["billing_mode"], &record["sell_amount"], &record["currency"]),
        (&json!("rated"), &json!("0.012"), &json!("EUR"))
    );
    let seconds = record["billsec"].as_u64().unwrap().max(1);
    let original = "0.0080".parse::<Amount>().unwrap().times(seconds, 60).unwrap();
    let cost = original.converted("0.92".parse().unwrap()).unwrap();
    assert_eq!(record["cost_currency"], json!("USD"));
    assert_eq!((amount(&record["cost_amount_original"]), amount(&record["cost_amount"])), (original, cost));
    assert_eq!(record["fx_rate"], json!("0.92"));
    assert_eq!(record.get("cost_unconverted"), None);
    let margin = "0.012".parse::<Amount>().unwrap().checked_sub(cost).unwrap();
    assert_eq!(amount(&record["margin"]), margin);

    let (status, totals) = site.get("/cdrs/totals?direction=outbound").await;
    assert_eq!(status, 200, "{totals}");
    let by_currency = &totals["by_currency"][0];
    for field in ["currency", "sell_amount", "cost_amount", "margin"] {
        assert_eq!(by_currency[field], record[field], "{field}");
    }
    assert_eq!(totals["count"], json!(1));
    // A settled record stays: new rates apply to later calls.
    let dearer = RATES.replace("0.0120", "1.20").replace("0.9200", "2");
    declare(site.dir.path(), &declaration(&carrier, "25.00", &dearer)).await;
    assert_eq!(site.record().await, record);
    let (_, refused) = site.get("/cdrs/totals?limit=1").await;
    assert!(refused["error"]["message"].as_str().unwrap().starts_with("limit: "));
}

/// A running engine follows its rates and credit: refused without a rate, then by a price, then for lack of credit.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rates_and_credit_are_followed_while_the_engine_runs() {
    let carrier = carrier(answering()).await;
    let elsewhere = RATES.replace("prefix = \"+44\"", "prefix = \"+33\"");
    let site = Site::with(&declaration(&carrier, "0.0120", &elsewhere)).await;
    let caller = site.phone("1001", answering()).await;
    let outcome = within("the call", caller.call(CallPlan::to(WORLD))).await.unwrap();
    assert_eq!(outcome.status, 403);
    assert_eq!(site.record().await["hangup_cause"], json!("OUTGOING_CALL_BARRED"));

    declare(site.dir.path(), &declaration(&carrier, "0.0120", RATES)).await;
    let mut calls = 1;
    // A pause between the calls: each refused one leaves a record too, and a list has at most 500.
    let mut pause = tokio::time::interval(Duration::from_millis(250));
    within("a rate that is followed", async {
        loop {
            pause.tick().await;
            calls += 1;
            if caller.call(talking(WORLD, 300)).await.unwrap().status == 200 {
                break;
            }
        }
    })
    .await;
    let record = site.records(calls).await.remove(0);
    assert_eq!(record["sell_amount"], json!("0.012"));
    let outcome = within("the call", caller.call(CallPlan::to(WORLD))).await.unwrap();
    assert_eq!(outcome.status, 402);
    let record = site.records(calls + 1).await.remove(0);
    assert_eq!((&record["hangup_cause"], &record["sell_amount"]), (&json!("CALL_REJECTED"), &json!("0.00")));

    // Used credit stays used after a restart.
    let site = Site::reopen(site.stop(Duration::from_secs(5)).await).await;
    let caller = site.phone("1001", answering()).await;
    let outcome = within("the call", caller.call(CallPlan::to(WORLD))).await.unwrap();
    assert_eq!(outcome.status, 402);
}

/// A cent a second and a credit of three cents: the call is hung up on both legs after three seconds.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_ends_when_its_credit_is_used_up() {
    let carrier = carrier(answering()).await;
    let rates = RATES.replace("0.0120", "0.60").replace("[60, 1]", "[1, 1]");
    let site = Site::with(&declaration(&carrier, "0.03", &rates)).await;
    let caller = site.phone("1001", answering()).await;
    let outcome = within("the call", caller.call(open_end(WORLD))).await.unwrap();
    assert_eq!(outcome.status, 200);
    let record = site.record().await;
    assert_eq!(
        [&record["hangup_cause"], &record["sell_amount"], &record["billsec"]],
        [&json!("ALLOTTED_TIMEOUT"), &json!("0.03"), &json!(3)]
    );
    crate::common::site::calls(&carrier, 0, 0).await;
}
