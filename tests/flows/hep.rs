//! HEPv3 export, through a whole engine to a socket.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde_json::Value;
use sidetone::hep::{HepPassword, HepSettings};
use tokio::net::UdpSocket;

use crate::answered::is_uneven_at_most;
use crate::site::{PASSWORD, Site, answering, directory, talking, within};

/// The chunks of a packet by their types (HEP3 specification, revision 37).
fn chunks(packet: &[u8]) -> BTreeMap<u16, Vec<u8>> {
    let number = |bytes: &[u8]| u16::from_be_bytes([bytes[0], bytes[1]]);
    assert_eq!(&packet[..4], b"HEP3");
    assert_eq!(usize::from(number(&packet[4..])), packet.len());
    let (mut rest, mut chunks) = (&packet[6..], BTreeMap::new());
    while !rest.is_empty() {
        let (kind, len) = (number(&rest[2..]), usize::from(number(&rest[4..])));
        assert_eq!((number(rest), chunks.insert(kind, rest[6..len].to_vec())), (0, None));
        rest = &rest[len..];
    }
    chunks
}

const SECONDS: u16 = 9;
const MICROSECONDS: u16 = 10;
const PROTOCOL_TYPE: u16 = 11;
const CAPTURE_ID: u16 = 12;
const PASSWORD_CHUNK: u16 = 14;
const PAYLOAD: u16 = 15;
const CORRELATION: u16 = 17;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn messages_and_figures_of_a_call_are_exported_without_credentials() {
    let homer = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let server = homer.local_addr().unwrap().to_string();
    let password = HepPassword("homer's".to_owned());
    let site = Site::configured(&directory(), |config| {
        config.hep = Some(HepSettings { is_udp: true, server, capture_id: 42, password });
    })
    .await;
    let caller = site.phone("1001", answering()).await;
    let _callee = site.phone("1002", answering()).await;
    // Longer than the pause between two rounds of reports on live legs.
    let outcome = within("the call", caller.call(talking("1002", 12_000))).await.unwrap();
    assert_eq!(outcome.status, 200);
    let mut packets = Vec::new();
    let mut buffer = vec![0; 65_536];
    within("the last report", async {
        while packets.iter().filter(|one: &&BTreeMap<u16, Vec<u8>>| one[&PROTOCOL_TYPE] == [0x22]).count() < 2
        {
            let len = homer.recv(&mut buffer).await.unwrap();
            packets.push(chunks(&buffer[..len]));
        }
    })
    .await;
    for packet in &packets {
        assert_eq!(packet[&CAPTURE_ID], 42_u32.to_be_bytes());
        assert_eq!(packet[&PASSWORD_CHUNK], b"homer's");
    }
    let of_kind = |kind: u8| packets.iter().filter(move |packet| packet[&PROTOCOL_TYPE] == [kind]);
    let messages: Vec<String> =
        of_kind(1).map(|packet| String::from_utf8_lossy(&packet[&PAYLOAD]).into_owned()).collect();
    for begin in ["REGISTER ", "INVITE ", "SIP/2.0 401 ", "SIP/2.0 200 ", "ACK ", "BYE "] {
        assert!(messages.iter().any(|message| message.starts_with(begin)), "{begin}: {messages:#?}");
    }
    assert!(messages.iter().all(|message| !message.contains("response=") && !message.contains(PASSWORD)));
    let invites: BTreeSet<&String> =
        messages.iter().filter(|message| message.starts_with("INVITE ")).collect();
    assert_eq!(invites.len(), 3, "two of the caller, one to the callee");
    // A retransmission has a time of its own.
    let times = of_kind(1).map(|packet| (&packet[&SECONDS], &packet[&MICROSECONDS], &packet[&PAYLOAD]));
    assert_eq!(times.collect::<BTreeSet<_>>().len(), messages.len(), "none twice");

    let correlation =
        |packet: &BTreeMap<u16, Vec<u8>>| String::from_utf8(packet[&CORRELATION].clone()).unwrap();
    for kind in [0x22, 0x23] {
        let reports: Vec<(String, Value)> = of_kind(kind)
            .map(|packet| (correlation(packet), serde_json::from_slice(&packet[&PAYLOAD]).unwrap()))
            .collect();
        let of_leg = |leg: &str| reports.iter().any(|(_, report)| report["LEG"] == leg);
        assert!(of_leg("a") && of_leg("b"), "{kind}: {reports:#?}");
        for (call_id, report) in &reports {
            assert!(messages.iter().any(|message| message.contains(call_id.as_str())), "{call_id}");
            assert_eq!(report["CORRELATION_ID"], call_id.as_str());
            assert!(report["TOTAL_PK"].as_u64().unwrap() > 100, "{report:#}");
            assert!(is_uneven_at_most(&report["VERDICT"]), "{report:#}");
        }
    }
    site.stop(Duration::ZERO).await;
}
