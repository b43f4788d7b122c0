//! Calls to external numbers: carriers on loopback, played by built-in phones.

use std::net::SocketAddr;
use std::time::Duration;

use serde_json::{Value, json};
use sidetone::dns::Resolver;
use sidetone_model::trunk_address::TrunkTransport;
use sidetone_phone::{Answering, CallPlan, Phone};
use sidetone_sip::sdp::Direction;

use crate::common::site::{
    DOMAIN, PASSWORD, Site, answering, calls, directory, established, open_end, phone_config, talk, talking,
    until, within,
};
use crate::flows::answered::assert_whole;
use crate::flows::name_server::{NameServer, Record};

/// A carrier that answers calls as configured; no phone registers with it.
async fn carrier(answering: Answering) -> Phone {
    let nobody: SocketAddr = ([127, 0, 0, 1], 9).into();
    let mut config = phone_config(nobody, "carrier", answering);
    config.domain = "carrier.example".into();
    Phone::start(config).await.unwrap()
}

/// Acme in Britain, with a number for 1001 and these trunks, tried in this order.
async fn site(carriers: &[&Phone]) -> Site {
    let addresses: Vec<String> = carriers.iter().map(|carrier| carrier.local().to_string()).collect();
    Site::with(&declared(&addresses)).await
}

fn declared(addresses: &[String]) -> String {
    let mut text =
        directory().replacen("currency = \"EUR\"\n", "currency = \"EUR\"\ncountry_code = \"44\"\n", 1);
    text += "[[organisations.numbers]]\nnumber = \"+442071230000\"\ndestination = { extension = \"1001\" }\n";
    for (priority, address) in addresses.iter().enumerate() {
        text += &format!(
            "[[trunks]]\nname = \"carrier-{priority}\"\naddress = \"sip:{address}\"\npriority = {priority}\n"
        );
    }
    text
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
        let outcome = within("the call", caller.call(talking(dialled, 2_000))).await.unwrap();
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

/// The first trunk answers 503, and the second takes the call; the record names the second.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_next_trunk_takes_what_the_first_refuses() {
    let (busy, good) = (carrier(Answering::Refuse(503)).await, carrier(answering()).await);
    let site = site(&[&busy, &good]).await;
    let caller = site.phone("1001", answering()).await;
    let outcome = within("the call", caller.call(talking("+447700900123", 2_000))).await.unwrap();
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

/// Hold, new offers and hang-ups cross a trunk in both directions, and every sent packet arrives.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_with_the_world_is_a_call_like_any() {
    let carrier = carrier(answering()).await;
    let site = site(&[&carrier]).await;
    let caller = site.phone("1001", answering()).await;
    let (half, second) = (Duration::from_millis(500), Duration::from_secs(1));
    let plan = CallPlan { hold: Some((half, half)), ..talking("+447700900123", 4_000) };
    let outcome = within("the call", caller.call(plan)).await.unwrap();
    assert_eq!((outcome.status, outcome.reinvites.as_slice()), (200, [200, 200].as_slice()));

    // The carrier's phone holds, moves its media and hangs up.
    let far = async {
        established(&caller, &carrier).await;
        carrier.offer(Direction::SendOnly).await.unwrap();
        carrier.offer(Direction::SendRecv).await.unwrap();
        let before = carrier.heard();
        carrier.move_media().await.unwrap();
        until("the far end hears the caller where it moved to", || carrier.heard() > before + 60).await;
        carrier.hang_up().await.unwrap();
    };
    let (outcome, ()) =
        within("the call", async { tokio::join!(caller.call(open_end("+447700900123")), far) }).await;
    assert!(outcome.unwrap().ended_by_peer);
    let records = site.records(2).await;
    for record in &records {
        assert_whole(record);
        assert_eq!(fields(record, &["direction", "hangup_cause"]), json!(["outbound", "NORMAL_CLEARING"]));
    }
    assert!(records[1]["billsec"].as_u64().unwrap() >= second.as_secs());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_announcement_of_the_world_is_heard_before_the_answer() {
    let talk = talk("clean").unwrap();
    let carrier = carrier(Answering::Early { after: Duration::from_secs(3), talk }).await;
    let site = site(&[&carrier]).await;
    let caller = site.phone("1001", answering()).await;
    let outcome = within("the call", caller.call(talking("+447700900123", 300))).await.unwrap();
    assert_eq!(outcome.status, 200);
    assert!(outcome.received > 40, "{} packets, of which 15 came after the answer", outcome.received);
}

/// One engine is the carrier of another: the second registers there as an extension, is called there, and places
/// external calls through it, with digest authentication.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_engine_may_be_the_carrier_of_another() {
    let world = carrier(answering()).await;
    let upper = site(&[&world]).await;
    let lower = declared(&[upper.sip.to_string()]);
    let account = format!(
        "organisation = \"Acme\"\nusername = \"1002\"\npassword = \"{PASSWORD}\"\nrealm = \"{DOMAIN}\"\nregister = true\n"
    );
    let lower = Site::with(&format!("{lower}{account}")).await;
    until("the lower engine is registered", || upper.engine().bindings() == 1).await;

    let below = lower.phone("1001", answering()).await;
    let above = upper.phone("1003", answering()).await;
    let outcome = within("the call down", above.call(talking("1002", 2_000))).await.unwrap();
    assert_eq!((outcome.status, below.heard() > 20), (200, true));
    let record = lower.record().await;
    assert_whole(&record);
    assert_eq!(
        fields(&record, &["direction", "caller_number", "destination_number"]),
        json!(["inbound", "1003", "+442071230000"])
    );

    let outcome = within("the call up", below.call(talking("07700-900123", 2_000))).await.unwrap();
    assert_eq!((outcome.status, world.heard() > 20), (200, true));
    for (site, count, trunk) in [(&lower, 2, "07700-900123"), (&upper, 2, "+447700900123")] {
        let record = site.records(count).await.remove(0);
        assert_whole(&record);
        let dialled = record.get("dialled_number").unwrap_or(&record["destination_number"]);
        assert_eq!((dialled, &record["destination_number"]), (&json!(trunk), &json!("+447700900123")));
        assert_eq!(record["direction"], json!("outbound"));
    }

    // An engine that stops removes its registration.
    lower.stop(Duration::from_secs(5)).await;
    until("the account's binding is gone", || upper.engine().bindings() == 1).await;
}

/// A trunk by its name: an SRV record gives the port, an address record the host, and both are queried once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_named_trunk_is_found_by_its_records() {
    let (first, second) = (carrier(answering()).await, carrier(answering()).await);
    let dns = NameServer::start(vec![
        (
            "_sip._udp.carrier.test",
            Record::Service { priority: 20, port: second.local().port(), target: "b.carrier.test" },
        ),
        (
            "_sip._udp.carrier.test",
            Record::Service { priority: 10, port: first.local().port(), target: "a.carrier.test" },
        ),
        ("a.carrier.test", Record::Address([127, 0, 0, 1])),
        ("b.carrier.test", Record::Address([127, 0, 0, 1])),
    ])
    .await;
    let server = dns.local;
    let text = declared(&["carrier.test".to_owned()]);
    let site = Site::configured(&text, |config| config.sip.dns = vec![server]).await;
    let caller = site.phone("1001", answering()).await;
    for _ in 0..2 {
        let outcome = within("the call", caller.call(talking("+447700900123", 300))).await.unwrap();
        assert_eq!(outcome.status, 200);
    }
    assert!(first.heard() > 0 && second.heard() == 0, "the lower priority takes the calls");
    assert_eq!(dns.asked.lock().unwrap().iter().filter(|name| *name == "_sip._udp.carrier.test").count(), 1);

    // A name that does not resolve causes no delay.
    let site =
        Site::configured(&declared(&["nobody.test".to_owned()]), |config| config.sip.dns = vec![server])
            .await;
    let caller = site.phone("1001", answering()).await;
    let outcome = within("the call", caller.call(CallPlan::to("+447700900123"))).await.unwrap();
    assert_eq!(outcome.status, 503);
    assert_eq!(site.record().await["hangup_cause"], json!("NETWORK_OUT_OF_ORDER"));
}

/// The server that the NAPTR and SRV records of a name select (RFC 3263 §4.1).
#[tokio::test]
async fn a_name_chooses_its_transport() {
    let pointer =
        |order, preference, service, replacement| Record::Pointer { order, preference, service, replacement };
    let service = |port, target| Record::Service { priority: 10, port, target };
    let dns = NameServer::start(vec![
        ("carrier.test", pointer(20, 1, "SIP+D2U", "_sip._udp.carrier.test")),
        ("carrier.test", pointer(10, 20, "SIP+D2T", "_sip._tcp.carrier.test")),
        ("carrier.test", pointer(10, 10, "SIPS+D2T", "_sips._tcp.gone.test")),
        ("carrier.test", pointer(1, 1, "SIP+D2S", "_sip._sctp.carrier.test")),
        ("_sip._udp.carrier.test", service(5_070, "a.carrier.test")),
        ("_sip._tcp.carrier.test", service(5_071, "a.carrier.test")),
        ("a.carrier.test", Record::Address([192, 0, 2, 1])),
        ("secure.test", pointer(1, 1, "sips+d2t", "_sips._tcp.secure.test")),
        ("_sips._tcp.secure.test", service(5_072, "a.carrier.test")),
        ("_sip._tcp.connected.test", service(5_073, "a.carrier.test")),
        ("plain.test", Record::Address([192, 0, 2, 2])),
    ])
    .await;
    let resolver = Resolver::new(&[dns.local]);
    for (address, transport, found) in [
        // A transport that the node lacks and one without a server are skipped.
        ("sip:carrier.test", Some(TrunkTransport::Tcp), "192.0.2.1:5071"),
        ("sip:carrier.test;transport=udp", None, "192.0.2.1:5070"),
        ("sip:secure.test", Some(TrunkTransport::Tls), "192.0.2.1:5072"),
        ("sip:connected.test", Some(TrunkTransport::Tcp), "192.0.2.1:5073"),
        ("sip:plain.test", None, "192.0.2.2:5060"),
        ("sip:plain.test;transport=tls", None, "192.0.2.2:5061"),
    ] {
        let answer = within("the answer", resolver.lookup(&address.parse().unwrap())).await;
        let addresses: Vec<SocketAddr> =
            answer.servers.iter().flat_map(|server| server.addresses.clone()).collect();
        assert_eq!((answer.transport, addresses), (transport, vec![found.parse().unwrap()]), "{address}");
        assert_eq!(answer.ttl, Duration::from_secs(60), "{address}");
    }
    let nothing = within("the answer", resolver.lookup(&"sip:nobody.test".parse().unwrap())).await;
    assert!(nothing.servers.is_empty());
}
