//! RTP from a foreign address to all media ports, before, during and after calls.

use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use serde_json::Value;
use sidetone_model::access::Scope;
use sidetone_model::event::Position;
use sidetone_phone::CallPlan;

use crate::common::site::{Site, answering, directory, found, talking, within};

/// Sends RTP to every media port in turn, and RTCP to every second, from an address of its own.
struct Spray {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<(u64, u64)>,
}

impl Spray {
    fn begin(ports: std::ops::RangeInclusive<u16>) -> Spray {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = std::thread::spawn(move || {
            let socket = UdpSocket::bind((Ipv4Addr::new(127, 0, 0, 2), 0)).unwrap();
            socket.set_nonblocking(true).unwrap();
            let (mut sent, mut received, mut round) = (0, 0, 0_u16);
            let mut buffer = [0; 2_000];
            while !stopped.load(Ordering::SeqCst) {
                for port in ports.clone() {
                    let datagram =
                        if port % 2 == 0 { rtp(round) } else { vec![0x80, 201, 0, 1, 0, 0, 2, 154] };
                    // A port that is not open responds by ICMP, which fails the next send.
                    let to = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
                    sent += u64::from(socket.send_to(&datagram, to).is_ok());
                    while socket.recv_from(&mut buffer).is_ok() {
                        received += 1;
                    }
                }
                round = round.wrapping_add(1);
                std::thread::sleep(Duration::from_millis(50));
            }
            // By now everything in flight has arrived.
            std::thread::sleep(Duration::from_millis(200));
            while socket.recv_from(&mut buffer).is_ok() {
                received += 1;
            }
            (sent, received)
        });
        Spray { stop, thread }
    }

    /// Datagrams that were sent, and those that came back.
    fn end(self) -> (u64, u64) {
        self.stop.store(true, Ordering::SeqCst);
        self.thread.join().unwrap()
    }
}

fn rtp(sequence: u16) -> Vec<u8> {
    let mut packet = vec![0x80, 0];
    packet.extend(sequence.to_be_bytes());
    packet.extend((u32::from(sequence) * 160).to_be_bytes());
    packet.extend([0, 0, 2, 154]);
    packet.extend([0xd5; 160]);
    packet
}

/// The sum of a count over the legs of a call.
fn foreign(quality: &Value, name: &str) -> u64 {
    let legs = quality["legs"].as_array().unwrap();
    legs.iter().map(|leg| leg["foreign"][name].as_u64().unwrap_or_default()).sum()
}

/// Catalogue M2: `count` calls, every second of them from a phone whose SDP has a wrong address, while all media ports
/// are sprayed. Returns the number of sprayed datagrams, and of those that came back.
async fn calls_under_a_spray(count: usize) -> (u64, u64) {
    // Below the ports of the other engines, and different from those of a test run beside this one.
    let first = 8_000 + u16::try_from(std::process::id() % 8).unwrap() * 480;
    let ports = first..=first + 479;
    let media_ports = ports.clone();
    let site = Site::configured(&directory(), |config| config.media.ports = media_ports).await;
    let caller = site.phone("1001", answering()).await;
    let callee = site.phone("1002", answering()).await;
    let spray = Spray::begin(ports);
    let plan = |place: usize| {
        let elsewhere = (place % 2 == 1).then(|| Ipv4Addr::new(127, 0, 0, 9).into());
        CallPlan { advertised: elsewhere, ..talking("1002", 4_000) }
    };
    let mut calls = tokio::task::JoinSet::new();
    let caller = Arc::new(caller);
    for place in 0..count {
        let (caller, plan) = (Arc::clone(&caller), plan(place));
        calls.spawn(async move { caller.call(plan).await.unwrap() });
    }
    let outcomes = within("the calls", calls.join_all()).await;
    let records = site.records(count).await;
    let (sent, received) = spray.end();
    assert!(callee.heard() > 0);
    for outcome in &outcomes {
        assert_eq!(outcome.status, 200);
        assert!(outcome.received > 20, "{outcome:?}");
    }
    for record in &records {
        let (status, quality) =
            site.get(&format!("/cdrs/{}/quality", record["call_uuid"].as_str().unwrap())).await;
        assert_eq!(status, 200, "{quality:#}");
        assert!(foreign(&quality, "rejected_packets") > 0, "{quality:#}");
        assert_eq!((foreign(&quality, "accepted_packets"), foreign(&quality, "sent_packets")), (0, 0));
        for leg in quality["legs"].as_array().unwrap() {
            assert!(leg["foreign"]["last_source"].as_str().unwrap().starts_with("127.0.0.2:"), "{leg:#}");
            assert!(leg["inbound"]["packets"].as_u64().unwrap() > 20, "{leg:#}");
        }
    }
    let warned = found("a warning of foreign packets", async || {
        let batch = site.engine().store.events_after(Scope::Everything, Position(0), 500).await.unwrap();
        let mut events = batch.events.into_iter().map(|placed| placed.event);
        events.find(|event| {
            event.kind.as_str() == "call.media_warning" && event.data["state"] == "foreign_source"
        })
    })
    .await;
    let sentence = warned.data["sentence"].as_str().unwrap();
    assert!(sentence.contains("Packets came from 127.0.0.2:"), "{sentence}");
    (sent, received)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_spray_over_all_media_ports_hears_nothing_of_twenty_calls() {
    let (sent, received) = calls_under_a_spray(20).await;
    assert!(sent > 1_000, "{sent}");
    assert_eq!(received, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "long: a hundred calls"]
async fn long_a_spray_over_all_media_ports_hears_nothing_of_a_hundred_calls() {
    let (sent, received) = calls_under_a_spray(100).await;
    println!("M2: 100 calls under a spray of {sent} datagrams; {received} packets came back to it");
    assert_eq!(received, 0);
}
