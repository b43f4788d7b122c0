//! Combines talker and network: packets in order of arrival.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

use super::packet::Packet;
use super::path::Network;
use super::scenario::Scenario;
use super::talker::Sender;
use crate::time::Micros;

/// The packets of a [`Scenario`], in the order in which they arrive.
#[derive(Debug)]
pub struct Simulation {
    sender: Sender,
    network: Network,
    /// Packets that were sent and have not arrived.
    under_way: BinaryHeap<Reverse<UnderWay>>,
    /// A packet produced ahead: packets that are not under way arrive after its sending time.
    ahead: Option<Packet>,
    serial: u64,
}

impl Simulation {
    /// Starts `scenario` from its beginning.
    pub fn new(scenario: &Scenario) -> Self {
        let mut sender = Sender::new(scenario);
        Simulation {
            ahead: sender.next(),
            sender,
            network: Network::new(scenario),
            under_way: BinaryHeap::new(),
            serial: 0,
        }
    }

    /// When the next packet arrives; `None` when there is none.
    pub fn next_due(&mut self) -> Option<Micros> {
        self.send_until_one_is_sure();
        self.under_way.peek().map(|Reverse(first)| first.at)
    }

    fn send_until_one_is_sure(&mut self) {
        while let Some(packet) = self.ahead {
            let sure = self.under_way.peek().is_some_and(|Reverse(first)| first.at <= packet.at);
            // A talker that sends without pause could fill memory; then the earliest packet is returned.
            if sure || self.under_way.len() >= UNDER_WAY_MAX {
                return;
            }
            let arrival = self.network.carry(&packet);
            for at in [arrival.at, arrival.again].into_iter().flatten() {
                self.serial += 1;
                self.under_way.push(Reverse(UnderWay {
                    at,
                    serial: self.serial,
                    packet: Packet { at, ..packet },
                }));
            }
            self.ahead = self.sender.next();
        }
    }
}

impl Iterator for Simulation {
    type Item = Packet;

    fn next(&mut self) -> Option<Packet> {
        self.send_until_one_is_sure();
        self.under_way.pop().map(|Reverse(first)| first.packet)
    }
}

/// A packet in the network, ordered by arrival and then by sending.
#[derive(Clone, Copy, Debug)]
struct UnderWay {
    at: Micros,
    serial: u64,
    packet: Packet,
}

impl Ord for UnderWay {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.at, self.serial).cmp(&(other.at, other.serial))
    }
}

impl PartialOrd for UnderWay {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for UnderWay {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for UnderWay {}

/// Packets under way at the same time; the longest delay at the highest rate needs fewer.
const UNDER_WAY_MAX: usize = 65_536;

#[cfg(test)]
mod tests {
    use super::super::packet::Content;
    use super::*;

    fn packets(text: &str) -> Vec<Packet> {
        Simulation::new(&text.parse().unwrap()).collect()
    }

    /// Milliseconds between arrivals, rounded.
    fn gaps_ms(packets: &[Packet]) -> Vec<i64> {
        packets.windows(2).map(|pair| (pair[1].at.since(pair[0].at) + 500) / 1_000).collect()
    }

    #[test]
    fn a_clean_stream_is_regular() {
        let packets = packets("clean duration=1s noise=0");
        assert_eq!(packets.len(), 50);
        for (n, packet) in packets.iter().enumerate() {
            assert_eq!(packet.at, Micros(n as i64 * 20_000));
            assert_eq!(packet.sequence, 1_000 + n as u16);
            assert_eq!(packet.timestamp, 5_000 + n as u32 * 160);
            assert_eq!(packet.marker, n == 0);
        }
    }

    #[test]
    fn one_seed_one_stream() {
        let text = "clean loss=5 jitter=0..60 order=any duplicate=3 swap=2 duration=5s";
        assert_eq!(packets(text), packets(text));
        assert_ne!(packets(text), packets(&format!("{text} seed=2")));
    }

    #[test]
    fn arrivals_are_in_order_and_due_when_they_say() {
        let scenario = "clean jitter=0..120 order=any overtaken=20:1s duration=10s".parse().unwrap();
        let mut simulation = Simulation::new(&scenario);
        let mut last = Micros(i64::MIN);
        while let Some(due) = simulation.next_due() {
            let packet = simulation.next().unwrap();
            assert_eq!(packet.at, due);
            assert!(packet.at >= last);
            last = packet.at;
        }
        assert!(simulation.next().is_none());
    }

    #[test]
    fn losses_and_copies_are_counted() {
        let cases = [
            ("loss_every=10 duration=10s", 450..=450),
            ("loss=10 duration=100s", 4_350..=4_650),
            ("burst=10:5 duration=100s", 4_200..=4_800),
            ("hole=2s..3s duration=10s", 450..=450),
            ("lose=0,1,499 duration=10s", 497..=497),
            ("alternate=1s:10 duration=10s", 490..=490),
            ("duplicate=100 duration=10s", 1_000..=1_000),
            ("packets=12 duration=10s", 12..=12),
            ("start=4s duration=10s", 300..=300),
            ("stop=4s duration=10s", 200..=200),
            ("stray=1s duration=10s", 509..=509),
            ("hold=2s..4s duration=10s", 400..=400),
            ("pace=25 duration=10s", 400..=400),
            ("pace=blast duration=10s", 500..=500),
            ("ptime=30 duration=9s", 300..=300),
            ("dtx=2s/3s:marker duration=10s", 200..=200),
            ("dtx=2s/3s:cn duration=10s", 202..=202),
            ("digits=13:alone duration=16s", 104..=104),
        ];
        for (text, expected) in cases {
            let count = packets(text).len();
            assert!(expected.contains(&count), "{text}: {count}");
        }
    }

    #[test]
    fn paces() {
        let cases: [(&str, &[i64]); 6] = [
            ("clump=3 noise=0", &[0, 0, 60, 0, 0, 60]),
            ("pace=20/40 ptime=30 noise=0", &[20, 40, 20, 40]),
            ("pace=timer:15 noise=0", &[30, 15, 15, 30]),
            ("flush=3 noise=0", &[0, 0, 0, 20, 20]),
            ("delivery=100ms noise=0 start=1ms", &[0, 0, 0, 0, 100, 0]),
            ("stall=30ms..90ms noise=0", &[20, 70, 0, 0, 10, 20]),
        ];
        for (text, expected) in cases {
            let gaps = gaps_ms(&packets(text));
            assert_eq!(gaps[..expected.len()], *expected, "{text}");
        }
    }

    #[test]
    fn digits_share_the_sequence_and_repeat_their_timestamp() {
        let packets = packets("clean digits=1 duration=2s");
        let events: Vec<_> = packets
            .iter()
            .filter_map(|packet| match packet.content {
                Content::Event { end, duration, .. } => {
                    Some((packet.timestamp, packet.marker, end, duration))
                }
                _ => None,
            })
            .collect();
        assert_eq!(events.len(), 8);
        assert!(events.iter().all(|event| event.0 == events[0].0));
        assert_eq!(events.iter().filter(|event| event.1).count(), 1, "one marker");
        assert_eq!(events.iter().filter(|event| event.2).count(), 3, "the end three times");
        assert!(events[5..].iter().all(|event| event.3 == events[5].3), "with one duration");
        assert!(packets.windows(2).all(|pair| pair[1].sequence == pair[0].sequence + 1));
        // The audio after the digit counts the time of the digit.
        let last = packets.last().unwrap();
        assert_eq!(last.timestamp, 5_000 + 99 * 160);
    }

    #[test]
    fn numbering_changes() {
        let changes = |text: &str, field: fn(&Packet) -> u32| {
            packets(text).windows(2).filter(|pair| field(&pair[0]) != field(&pair[1])).count()
        };
        assert_eq!(changes("ssrc_change=1s,2s duration=3s", |packet| packet.ssrc), 2);
        assert_eq!(changes("restart=1s duration=3s", |packet| packet.ssrc), 0);
        assert_eq!(changes("codec_switch=1s:pcma duration=3s", |packet| packet.payload_type.into()), 1);
        let jumps = |text: &str| {
            packets(text)
                .windows(2)
                .filter(|pair| pair[1].sequence != pair[0].sequence.wrapping_add(1))
                .count()
        };
        assert_eq!((jumps("restart=1s duration=3s"), jumps("stamp_reset=1s duration=3s")), (1, 0));
        assert_eq!(jumps("sequence=65500 duration=3s"), 0);
    }
}
