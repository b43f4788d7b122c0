//! Calls to the world: carriers on loopback, played by phones of our own.

use std::net::SocketAddr;
use std::time::Duration;

use serde_json::{Value, json};
use sidetone::phone::{Answering, CallPlan, Phone};

use crate::answered::assert_whole;
use crate::site::{Site, answering, calls, directory, open_end, phone_config, talking, within};

/// A carrier that answers calls in its own way; nobody registers with it.
async fn carrier(answering: Answering) -> Phone {
    let nobody: SocketAddr = ([127, 0, 0, 1], 9).into();
    let mut config = phone_config(nobody, "carrier", answering);
    config.domain = "carrier.example".into();
    Phone::start(config).await.unwrap()
}

/// Acme in Britain, with a number for 1001 and these trunks, the first to be tried first.
async fn site(carriers: &[&Phone]) -> Site {
    let mut text =
        directory().replacen("currency = \"EUR\"\n", "currency = \"EUR\"\ncountry_code = \"44\"\n", 1);
    text += "[[organisations.numbers]]\nnumber = \"+442071230000\"\ndestination = { extension = \"1001\" }\n";
    for (priority, carrier) in carriers.iter().enumerate() {
        let local = carrier.local();
        text += &format!(
            "[[trunks]]\nname = \"carrier-{priority}\"\naddress = \"sip:{local}\"\npriority = {priority}\n"
        );
    }
    Site::with(&text).await
}

fn fields(record: &Value, names: &[&str]) -> Value {
    names.iter().map(|name| record[*name].clone()).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_extension_calls_the_world() {
    let carrier = carrier(answering()).await;
    let site = site(&[&carrier]).await;
    let caller = site.phone("1001", answering()).await;
    for (place, dialled) in ["+447700900123", "07700-900123"].into_iter().enumerate() {
        let outcome = within("the call", caller.call(talking(dialled, 1_500))).await.unwrap();
        assert_eq!(outcome.status, 200, "{dialled}");
        let record = site.records(place + 1).await.remove(0);
        assert_whole(&record);
        assert_eq!(
            fields(&record, &["direction", "caller_number", "destination_number", "hangup_cause"]),
            json!(["outbound", "+442071230000", "+447700900123", "NORMAL_CLEARING"])
        );
        assert_eq!(record.get("dialled_number"), (place == 1).then_some(&json!("07700-900123")));
    }
}

/// 503 of the first, and the second has it; the record tells of the second.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_next_trunk_takes_what_the_first_refuses() {
    let (busy, good) = (carrier(Answering::Refuse(503)).await, carrier(answering()).await);
    let site = site(&[&busy, &good]).await;
    let caller = site.phone("1001", answering()).await;
    let outcome = within("the call", caller.call(talking("+447700900123", 1_200))).await.unwrap();
    assert_eq!(outcome.status, 200);
    let record = site.record().await;
    assert_whole(&record);
    assert_eq!(fields(&record, &["sip_status", "bridge_cause"]), json!([200, "NORMAL_CLEARING"]));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_the_world_says_reaches_the_caller() {
    for (status, cause) in [(486, "USER_BUSY"), (404, "UNALLOCATED_NUMBER"), (603, "CALL_REJECTED")] {
        let (first, second) = (carrier(Answering::Refuse(status)).await, carrier(answering()).await);
        let site = site(&[&first, &second]).await;
        let caller = site.phone("1001", answering()).await;
        let outcome = within("the call", caller.call(CallPlan::to("+447700900123"))).await.unwrap();
        assert_eq!(outcome.status, status);
        let record = site.record().await;
        let names = ["direction", "hangup_cause", "bridge_cause", "sip_status", "billsec", "media_verdict"];
        assert_eq!(fields(&record, &names), json!(["outbound", cause, cause, status, 0, "unanswered"]));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_caller_gives_up_while_the_world_rings() {
    let carrier = carrier(Answering::Ring).await;
    let site = site(&[&carrier]).await;
    let caller = site.phone("1001", answering()).await;
    let plan = CallPlan { patience: Some(Duration::from_millis(300)), ..open_end("+447700900123") };
    let outcome = within("the call", caller.call(plan)).await.unwrap();
    assert_eq!(outcome.status, 487);
    calls(&carrier, 0, 0).await;
    let record = site.record().await;
    assert_eq!(record["hangup_cause"], json!("ORIGINATOR_CANCEL"));
}
