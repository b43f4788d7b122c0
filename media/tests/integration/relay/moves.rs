//! Legs that move between workers because of mixes: no leg, no command and no packet is lost.

use std::collections::HashMap;

use proptest::prelude::*;
use sidetone_media::codec::Codec;
use sidetone_media::mix::{Formats, Hears, MixId, Seat, SeatCommand};

use super::*;

/// An event of one of the legs.
#[derive(Clone, Copy, Debug)]
enum Step {
    Close,
    Join(u64),
    Leave,
    Mute(bool),
    Send,
    Snapshot,
}

const LEGS: usize = 6;
const WORKERS: usize = 3;

/// A relay whose ports no other test uses: what it has closed stays free.
fn start_alone() -> Relay {
    let ports = if io() == RelayIo::IoUring { 14_500..=14_999 } else { 14_000..=14_499 };
    start_as(ports, WORKERS)
}

fn step() -> impl Strategy<Value = (usize, Step)> {
    let step = prop_oneof![
        1 => Just(Step::Close),
        6 => (0..5_u64).prop_map(Step::Join),
        3 => Just(Step::Leave),
        2 => any::<bool>().prop_map(Step::Mute),
        6 => Just(Step::Send),
        4 => Just(Step::Snapshot),
    ];
    (0..LEGS, step)
}

pub(crate) fn pcmu_seat(seed: u64) -> Box<Seat> {
    let formats = Formats {
        receive: vec![(0, Codec::Pcmu)],
        send: (0, Codec::Pcmu),
        event_receive: Some(101),
        event_send: Some(101),
        noise_receive: Vec::new(),
        ptime_ms: 20,
        hears: true,
        speaks: true,
    };
    Box::new(Seat { formats, muted: false, hears: Hears::Mix, seed })
}

#[derive(Default)]
struct Notices {
    snapshots: usize,
    closed: Vec<u64>,
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_leg_no_order_and_no_packet_is_lost(steps in prop::collection::vec(step(), 1..200)) {
        let relay = start_alone();
        let mut phones: Vec<Phone> = (0..LEGS).map(|leg| Phone::new(leg as u32 + 1)).collect();
        let ports: Vec<Port> = phones.iter().enumerate().map(|(leg, phone)| {
            let port = relay.open(leg as u64, V4).unwrap();
            describe(&relay, port, description(phone));
            relay.command(port.id, Command::Answered).unwrap();
            port
        }).collect();
        let (mut closed, mut snapshots, mut sent) = ([false; LEGS], [0; LEGS], [0_u64; LEGS]);
        let ends = (0..LEGS).map(|leg| (leg, Step::Close));
        for (leg, step) in steps.into_iter().chain(ends) {
            let port = ports[leg];
            let command = match step {
                Step::Close => Command::Close,
                Step::Join(mix) => Command::Join { mix: MixId(mix), seat: pcmu_seat(leg as u64) },
                Step::Leave => Command::Leave,
                Step::Mute(muted) => Command::Seat(SeatCommand::Mute(muted)),
                Step::Send => {
                    if !closed[leg] {
                        phones[leg].send(port.rtp);
                        sent[leg] += 1;
                    }
                    continue;
                }
                Step::Snapshot => Command::Snapshot,
            };
            match command {
                Command::Snapshot if !closed[leg] => snapshots[leg] += 1,
                Command::Close => closed[leg] = true,
                _ => {}
            }
            relay.command(port.id, command).unwrap();
        }
        let mut notices: HashMap<PortId, Notices> = HashMap::new();
        let complete = |notices: &HashMap<PortId, Notices>| {
            notices.values().filter(|notices| !notices.closed.is_empty()).count() == LEGS
        };
        while !complete(&notices) {
            match notice(&relay) {
                Notice::Closed { id, report } => {
                    notices.entry(id).or_default().closed.push(report.counters.datagrams);
                }
                Notice::Snapshot { id, .. } => notices.entry(id).or_default().snapshots += 1,
                _ => {}
            }
        }
        for leg in 0..LEGS {
            let notices = &notices[&ports[leg].id];
            prop_assert_eq!(&notices.closed, &[sent[leg]], "the packets of leg {}", leg);
            prop_assert_eq!(notices.snapshots, snapshots[leg], "what leg {} was asked", leg);
        }
        // The sockets close before the reports arrive: another socket can bind the ports.
        for port in &ports {
            prop_assert!(UdpSocket::bind(port.rtp).is_ok() && UdpSocket::bind(port.rtcp).is_ok());
        }
        relay.shutdown();
        let twice = relay.notices().try_iter().any(|notice| matches!(notice, Notice::Closed { .. }));
        prop_assert!(!twice);
        let counters = relay.counters();
        prop_assert_eq!((counters.mixes, counters.seats, counters.panics), (0, 0, 0));
    }

    #[test]
    fn a_relay_that_stops_reports_every_leg_wherever_it_is(
        joins in prop::collection::vec((0..LEGS, 0..5_u64), 0..40)
    ) {
        let relay = start_with(WORKERS);
        let phones: Vec<Phone> = (0..LEGS).map(|leg| Phone::new(leg as u32 + 1)).collect();
        let ports: Vec<Port> = phones.iter().enumerate().map(|(leg, phone)| {
            let port = relay.open(leg as u64, V4).unwrap();
            describe(&relay, port, description(phone));
            port
        }).collect();
        for (leg, mix) in joins {
            relay.command(ports[leg].id, Command::Join { mix: MixId(mix), seat: pcmu_seat(0) }).unwrap();
        }
        relay.shutdown();
        let mut closed: Vec<PortId> = relay.notices().try_iter().filter_map(|notice| match notice {
            Notice::Closed { id, .. } => Some(id),
            _ => None,
        }).collect();
        closed.sort_unstable();
        let mut opened: Vec<PortId> = ports.iter().map(|port| port.id).collect();
        opened.sort_unstable();
        prop_assert_eq!(closed, opened);
    }
}

/// A transfer: legs of two calls that different workers carry are relayed to each other, and one of them to a third.
#[test]
fn legs_of_two_workers_are_bridged_and_lose_nothing() {
    let relay = start();
    let mut phones: Vec<Phone> = (1..=6).map(Phone::new).collect();
    let (a, b) = call(&relay, 0, &phones[0], &phones[1]);
    let (c, d) = call(&relay, 1, &phones[2], &phones[3]);
    let (e, f) = call(&relay, 1, &phones[4], &phones[5]);
    let mut talk = |one: (usize, Port), other: (usize, Port)| {
        bridge(&relay, one.1, other.1);
        snapshot(&relay, one.1.id);
        snapshot(&relay, other.1.id);
        for _ in 0..50 {
            let packet = phones[one.0].send(one.1.rtp);
            assert_eq!(phones[other.0].receive(), (packet, other.1.rtp));
            let packet = phones[other.0].send(other.1.rtp);
            assert_eq!(phones[one.0].receive(), (packet, one.1.rtp));
        }
    };
    talk((0, a), (1, b));
    talk((0, a), (3, d));
    // The second leg returns home, and then the first one follows to another worker and back.
    talk((3, d), (4, e));
    talk((5, f), (0, a));
    talk((0, a), (1, b));
    for (port, received) in [(a, 200), (b, 100), (c, 0), (d, 100), (e, 50), (f, 50)] {
        let report = close(&relay, port.id);
        assert_eq!((report.figures.received, report.figures.lost), (received, 0), "{port:?}");
    }
    assert_eq!(relay.counters().panics, 0);
}
