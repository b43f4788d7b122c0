//! RTP streams: numbered, time-stamped packets of G.711, and how they arrived at the far end of a relay.
//!
//! The payload of a packet has its leg, its number and its send time; a relay does not change it. SSRC,
//! sequence numbers and ports may differ when it arrives.

use std::collections::{HashMap, VecDeque};
use std::net::SocketAddrV4;

use crate::program::clock::{Nanos, SECOND};
use crate::program::latency::Latency;
use crate::program::outbox::Outbox;
use crate::program::report::Report;

/// RTP streams of a run.
pub(crate) struct Streams {
    legs: HashMap<u32, Leg>,
    /// The sending legs, in the order in which their packets are due: all have the same interval.
    ring: VecDeque<(Nanos, u32)>,
    interval: Nanos,
    counts: Counts,
    delay: Latency,
}

#[derive(Debug, Default)]
struct Counts {
    sent: u64,
    received: u64,
    duplicates: u64,
    reordered: u64,
    foreign: u64,
}

struct Leg {
    socket: usize,
    to: SocketAddrV4,
    sent: u32,
    until: Nanos,
    window: Window,
    /// Counted since the last reset of the figures.
    figures: LegFigures,
}

#[derive(Clone, Copy, Debug, Default)]
struct LegFigures {
    sent: u64,
    received: u64,
}

/// The numbers that arrived last, to distinguish reordered packets from duplicates.
#[derive(Clone, Copy, Debug, Default)]
struct Window {
    next: u32,
    seen: u64,
}

/// How a packet arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Arrival {
    Duplicate,
    InOrder,
    Late,
}

impl Streams {
    /// Each leg sends a packet every `interval`.
    pub(crate) fn new(interval: Nanos) -> Self {
        Streams {
            legs: HashMap::new(),
            ring: VecDeque::new(),
            interval: interval.max(1),
            counts: Counts::default(),
            delay: Latency::new(),
        }
    }

    /// Changes the packet interval of the legs; the next packet of a sending leg keeps its time.
    pub(crate) fn set_interval(&mut self, interval: Nanos) {
        self.interval = interval.max(1);
    }

    /// Starts or continues the packets of a leg. `first` is when the next one is due; it must not be before that of any
    /// other leg.
    pub(crate) fn begin(
        &mut self,
        leg: u32,
        (socket, to): (usize, SocketAddrV4),
        first: Nanos,
        until: Nanos,
    ) {
        let new =
            Leg { socket, to, sent: 0, until, window: Window::default(), figures: LegFigures::default() };
        self.legs.entry(leg).or_insert(new).until = until;
        self.ring.push_back((first, leg));
    }

    /// Resets the figures; the packet numbers of the legs continue.
    pub(crate) fn forget_figures(&mut self) {
        self.counts = Counts::default();
        self.delay = Latency::new();
        self.legs.values_mut().for_each(|leg| leg.figures = LegFigures::default());
    }

    /// Sends no more packets of a leg.
    pub(crate) fn end(&mut self, leg: u32) {
        if let Some(leg) = self.legs.get_mut(&leg) {
            leg.until = 0;
        }
    }

    /// Adds the packets that are due, at most `PACKETS_PER_TURN`.
    pub(crate) fn send_due(&mut self, now: Nanos, outbox: &mut Outbox) {
        for _ in 0..PACKETS_PER_TURN {
            let Some((due, number)) = self.ring.front().copied().filter(|(due, _)| *due <= now) else {
                break;
            };
            self.ring.pop_front();
            let Some(leg) = self.legs.get_mut(&number).filter(|leg| due < leg.until) else { continue };
            outbox.push(leg.socket, leg.to, |to| write_packet(to, number, leg.sent, now));
            leg.sent += 1;
            leg.figures.sent += 1;
            self.counts.sent += 1;
            self.ring.push_back((due + self.interval, number));
        }
    }

    /// Returns when a packet is due next.
    pub(crate) fn next_due(&self) -> Option<Nanos> {
        self.ring.front().map(|(due, _)| *due)
    }

    /// Counts a datagram that arrived from the relay.
    pub(crate) fn receive(&mut self, now: Nanos, datagram: &[u8]) {
        let Some(packet) = Packet::read(datagram) else {
            self.counts.foreign += 1;
            return;
        };
        let Some(leg) = self.legs.get_mut(&packet.leg).filter(|leg| packet.number < leg.sent) else {
            self.counts.foreign += 1;
            return;
        };
        match leg.window.add(packet.number) {
            Arrival::Duplicate => {
                self.counts.duplicates += 1;
                return;
            }
            Arrival::Late => self.counts.reordered += 1,
            Arrival::InOrder => {}
        }
        self.counts.received += 1;
        leg.figures.received += 1;
        self.delay.add(now.saturating_sub(packet.sent));
    }

    /// Returns the number of packets that were sent.
    pub(crate) fn sent(&self) -> u64 {
        self.counts.sent
    }

    /// Returns the number of packets that arrived, each once.
    pub(crate) fn received(&self) -> u64 {
        self.counts.received
    }

    /// Writes counts and percentiles into a report; `lasted` is how long packets were sent.
    pub(crate) fn report(&self, report: &mut Report, lasted: Nanos) {
        let counts = &self.counts;
        report.count("packets sent", counts.sent);
        report.count("packets received", counts.received);
        report.count("packets lost", counts.sent.saturating_sub(counts.received));
        let figures = || self.legs.values().map(|leg| leg.figures).filter(|leg| leg.sent > 0);
        report.count(
            "streams with lost packets",
            figures().filter(|leg| leg.received < leg.sent).count() as u64,
        );
        report.count(
            "streams of which nothing arrived",
            figures().filter(|leg| leg.received == 0).count() as u64,
        );
        report.count("packets received twice", counts.duplicates);
        report.count("packets overtaken", counts.reordered);
        report.count("datagrams of others", counts.foreign);
        if counts.sent > 0 && lasted > 0 {
            report.number("packets per second", ratio(counts.sent, lasted) * ratio(SECOND, 1), "1/s");
            let lost = counts.sent.saturating_sub(counts.received);
            report.number("loss", 100.0 * ratio(lost, counts.sent), "%");
        }
        self.delay.report(report, "delay");
    }
}

impl Window {
    fn add(&mut self, number: u32) -> Arrival {
        if number >= self.next {
            let ahead = number - self.next + 1;
            self.seen = self.seen.checked_shl(ahead).unwrap_or(0) | 1;
            self.next = number + 1;
            return Arrival::InOrder;
        }
        let bit = 1_u64.checked_shl(self.next - 1 - number).unwrap_or(0);
        // A packet older than the window cannot be distinguished from a duplicate; it counts as one.
        if bit == 0 || self.seen & bit != 0 {
            return Arrival::Duplicate;
        }
        self.seen |= bit;
        Arrival::Late
    }
}

/// The fields in the payload of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Packet {
    leg: u32,
    number: u32,
    sent: Nanos,
}

impl Packet {
    fn read(datagram: &[u8]) -> Option<Packet> {
        let (magic, rest) = datagram.get(RTP_HEADER_BYTES..)?.split_first_chunk::<4>()?;
        let (leg, rest) = rest.split_first_chunk()?;
        let (number, rest) = rest.split_first_chunk()?;
        let (sent, _) = rest.split_first_chunk()?;
        let packet = Packet {
            leg: u32::from_be_bytes(*leg),
            number: u32::from_be_bytes(*number),
            sent: u64::from_be_bytes(*sent),
        };
        (magic == MAGIC).then_some(packet)
    }
}

fn write_packet(to: &mut Vec<u8>, leg: u32, number: u32, now: Nanos) {
    // RFC 3550 §5.1: version 2, payload type 0 (PCMU).
    let [.., high, low] = number.to_be_bytes();
    to.extend_from_slice(&[0x80, 0x00, high, low]);
    to.extend_from_slice(&number.wrapping_mul(SAMPLES).to_be_bytes());
    to.extend_from_slice(&leg.wrapping_mul(0x9e37_79b9).wrapping_add(1).to_be_bytes());
    to.extend_from_slice(MAGIC);
    to.extend_from_slice(&leg.to_be_bytes());
    to.extend_from_slice(&number.to_be_bytes());
    to.extend_from_slice(&now.to_be_bytes());
    to.extend_from_slice(&[0x55; FILLER_BYTES]);
}

/// A ratio of two counts.
pub(crate) fn ratio(of: u64, to: u64) -> f64 {
    of as f64 / to as f64
}

const MAGIC: &[u8; 4] = b"load";
const RTP_HEADER_BYTES: usize = 12;
/// 20 ms at 8 kHz, one octet each.
const SAMPLES: u32 = 160;
const FILLER_BYTES: usize = 140;
/// After this many packets the sockets are read again.
const PACKETS_PER_TURN: usize = 256;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::program::clock::MILLISECOND;

    const TO: (usize, SocketAddrV4) = (0, SocketAddrV4::new(std::net::Ipv4Addr::LOCALHOST, 20_000));

    fn drain(outbox: &mut Outbox) -> Vec<Vec<u8>> {
        let packets = outbox.datagrams().map(|packet| packet.bytes.to_vec()).collect();
        outbox.clear();
        packets
    }

    #[test]
    fn packets_are_due_by_time_and_stop() {
        let (mut streams, mut outbox) = (Streams::new(20 * MILLISECOND), Outbox::default());
        streams.begin(1, TO, 0, 60 * MILLISECOND);
        streams.begin(2, TO, 10 * MILLISECOND, SECOND);
        streams.send_due(49 * MILLISECOND, &mut outbox);
        let packets = drain(&mut outbox);
        let sent: Vec<_> = packets.iter().map(|bytes| Packet::read(bytes).unwrap()).collect();
        assert_eq!(
            sent.iter().map(|p| (p.leg, p.number)).collect::<Vec<_>>(),
            [(1, 0), (2, 0), (1, 1), (2, 1), (1, 2)]
        );
        assert!(packets.iter().all(|packet| packet.len() == RTP_HEADER_BYTES + SAMPLES as usize));
        streams.end(2);
        streams.send_due(SECOND, &mut outbox);
        assert_eq!((outbox.len(), streams.next_due(), streams.sent()), (0, None, 5));
    }

    #[test]
    fn loss_order_copies_and_delay_are_counted() {
        let (mut streams, mut outbox) = (Streams::new(20 * MILLISECOND), Outbox::default());
        streams.begin(7, TO, 0, SECOND);
        let mut packets = Vec::new();
        for tick in 0..5 {
            streams.send_due(tick * 20 * MILLISECOND, &mut outbox);
            packets.extend(drain(&mut outbox));
        }
        // A relay may write another RTP header.
        packets[0][1..12].fill(0xee);
        for (index, ms) in [(0, 3), (2, 43), (1, 44), (1, 45), (4, 83)] {
            streams.receive(ms * MILLISECOND, &packets[index]);
        }
        streams.receive(0, &[0; 172]);
        streams.receive(0, b"short");
        let mut report = Report::new("relay");
        streams.report(&mut report, 100 * MILLISECOND);
        for (name, expected) in [
            ("packets sent", 5),
            ("packets received", 4),
            ("packets lost", 1),
            ("packets received twice", 1),
            ("packets overtaken", 1),
            ("datagrams of others", 2),
        ] {
            assert_eq!(report.value(name), Some(&expected.into()), "{name}");
        }
        assert_eq!(report.value("loss [%]").and_then(serde_json::Value::as_f64), Some(20.0));
        assert_eq!(report.value("delay max [ms]").unwrap().as_f64().map(f64::round), Some(24.0));
    }

    #[test]
    fn a_window_tells_late_from_twice() {
        let mut window = Window::default();
        let order =
            [(0, Arrival::InOrder), (3, Arrival::InOrder), (1, Arrival::Late), (1, Arrival::Duplicate)];
        for (number, expected) in order {
            assert_eq!(window.add(number), expected, "{number}");
        }
        assert_eq!(window.add(200), Arrival::InOrder);
        assert_eq!(
            (window.add(2), window.add(137), window.add(200)),
            (Arrival::Duplicate, Arrival::Late, Arrival::Duplicate)
        );
    }
}
