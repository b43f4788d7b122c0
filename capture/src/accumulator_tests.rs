use proptest::prelude::*;
use sidetone_media::session::Description;

use super::*;
use crate::payloads;

/// The next event.
#[derive(Clone, Debug)]
enum Event {
    /// A packet of a stream, `gap_us` after the previous event; before it `lost` packets were lost, and some
    /// packets are irregular.
    Packet { stream: u32, gap_us: i64, lost: u16, is_odd: bool },
    /// This many packets of a stream, each on time.
    Talk { stream: u32, packets: u16 },
    /// An event of the leg of a call.
    Leg { call: u32, kind: u8 },
    /// From now on the stream counts for the leg of that call, or for no leg.
    Moves { stream: u32, to: Option<u32> },
    /// The leg of a call is removed; a later call gets its number.
    Taken { call: u32 },
}

/// A stream as its sender sends it.
#[derive(Clone, Copy)]
struct Sender {
    sequence: u16,
    timestamp: u32,
    leg: LegEnd,
    /// Whether the accumulator has been notified of the current leg.
    is_told: bool,
}

fn event() -> impl Strategy<Value = Event> {
    let packet = (0_u32..4, 0_i64..70_000, 0_u16..3, any::<u8>()).prop_map(|(stream, gap_us, lost, odd)| {
        Event::Packet { stream, gap_us, lost: if odd > 200 { lost } else { 0 }, is_odd: odd < 8 }
    });
    prop_oneof![
        8 => packet,
        6 => (0_u32..4, 1_u16..150).prop_map(|(stream, packets)| Event::Talk { stream, packets }),
        2 => (0_u32..2, 0_u8..5).prop_map(|(call, kind)| Event::Leg { call, kind }),
        1 => (0_u32..3, prop::option::of(0_u32..2)).prop_map(|(stream, to)| Event::Moves { stream, to }),
        1 => (0_u32..2).prop_map(|call| Event::Taken { call }),
    ]
}

/// Streams 0 and 1 are sent by the caller of call 0, stream 2 is sent to that caller, and stream 3 belongs to
/// no call.
struct World {
    accumulator: Accumulator,
    senders: [Sender; 4],
    now: Micros,
    /// Whether packets that arrive on time may wait.
    may_wait: bool,
    waited: u32,
    told: Vec<String>,
}

fn ends(stream: u32) -> Ends {
    let phone = ([192, 0, 2, 1], 4_000 + stream as u16).into();
    let switch = ([192, 0, 2, 9], 6_000).into();
    if stream == 2 { (switch, phone) } else { (phone, switch) }
}

impl World {
    fn new(may_wait: bool) -> Self {
        let leg = |stream| if stream == 3 { LegEnd::NONE } else { LegEnd::new(0, stream != 2) };
        let senders =
            [0, 1, 2, 3].map(|stream| Sender { sequence: 0, timestamp: 0, leg: leg(stream), is_told: false });
        let mut world = World {
            accumulator: Accumulator::default(),
            senders,
            now: Micros(1_000_000),
            may_wait,
            waited: 0,
            told: Vec::new(),
        };
        for stream in 0..4 {
            let opened = StreamSignal::Opened { ends: ends(stream), payloads: payloads::meanings(&[]) };
            world.accumulator.stream(world.now, stream, opened);
        }
        for call in 0..2 {
            world.leg(call, 0);
            world.leg(call, 1);
        }
        world
    }

    fn happen(&mut self, event: &Event) {
        self.now.0 += 200;
        match *event {
            Event::Packet { stream, gap_us, lost, is_odd } => {
                self.now.0 += gap_us;
                self.packet(stream, lost, is_odd);
            }
            Event::Talk { stream, packets } => {
                for _ in 0..packets {
                    self.now.0 += 20_000;
                    self.packet(stream, 0, false);
                }
            }
            Event::Leg { call, kind } => self.leg(call, kind),
            Event::Moves { stream, to } => {
                if let Some(sender) = self.senders.get_mut(stream as usize) {
                    sender.leg = to.map_or(LegEnd::NONE, |call| LegEnd::new(call, stream != 2));
                    sender.is_told = false;
                }
            }
            Event::Taken { call } => {
                let last = self.now;
                self.told.push(format!("{:#?}", self.accumulator.take_leg(call).finish(None, last)));
                for sender in &mut self.senders {
                    sender.is_told &= sender.leg.number() != Some(call);
                }
            }
        }
    }

    fn packet(&mut self, stream: u32, lost: u16, is_odd: bool) {
        let Some(sender) = self.senders.get_mut(stream as usize) else { return };
        sender.sequence = sender.sequence.wrapping_add(1 + lost);
        sender.timestamp = sender.timestamp.wrapping_add(160 * (1 + u32::from(lost)));
        let packet = Packet {
            ssrc: 7 + stream,
            timestamp: sender.timestamp,
            payload_len: if is_odd { 80 } else { 160 },
            sequence: sender.sequence,
            payload_type: 0,
            marker: is_odd,
        };
        let (leg, len) = (sender.leg, packet.payload_len as usize);
        if self.may_wait
            && sender.is_told
            && self.accumulator.continues(self.now, packet.header(), len, stream)
        {
            self.waited += 1;
            return;
        }
        sender.is_told = true;
        self.accumulator.packet(self.now, &packet, ends(stream), None, stream, leg);
    }

    fn leg(&mut self, call: u32, kind: u8) {
        let description = || {
            let (remote, own) = ends(0);
            Box::new(Description {
                remote: Some(remote),
                own_advertised: Some(own.ip()),
                send: true,
                receive: true,
                signalling: Some(remote.ip()),
                ..Description::default()
            })
        };
        let signal = match kind {
            0 => LegSignal::Described(description(), payloads::meanings(&[])),
            1 => LegSignal::Answered,
            2 => LegSignal::Ended,
            3 => LegSignal::Resumed,
            _ => LegSignal::FarDescribed(description(), payloads::meanings(&[])),
        };
        self.accumulator.leg(self.now, LegEnd::new(call, true), signal);
    }

    /// The complete result, as text.
    fn finish(mut self) -> String {
        let last = self.now;
        for call in 0..2 {
            self.told.push(format!("{:#?}", self.accumulator.take_leg(call).finish(None, last)));
        }
        for stream in 0..4 {
            let finished = self
                .accumulator
                .take_stream(stream)
                .and_then(|stream| stream.finish(true, Some((Some(20), None))));
            self.told.push(format!("{finished:#?}"));
        }
        self.told.concat()
    }
}

fn run(may_wait: bool, events: &[Event]) -> (String, u32) {
    let mut world = World::new(may_wait);
    for event in events {
        world.happen(event);
    }
    let waited = world.waited;
    (world.finish(), waited)
}

proptest! {
    #[test]
    fn what_waits_changes_nothing(events in prop::collection::vec(event(), 0..60)) {
        let (found, _) = run(true, &events);
        let (expected, waited) = run(false, &events);
        prop_assert_eq!(waited, 0);
        prop_assert_eq!(found, expected);
    }
}

#[test]
fn in_the_middle_of_talk_every_packet_waits() {
    let events = [Event::Talk { stream: 0, packets: 500 }, Event::Talk { stream: 2, packets: 500 }];
    let (_, waited) = run(true, &events);
    assert!(waited > 980, "{waited} of 1,000");
    let mixed: Vec<Event> = (0..500)
        .flat_map(|_| [0, 2].map(|stream| Event::Packet { stream, gap_us: 9_800, lost: 0, is_odd: false }))
        .collect();
    let (_, waited) = run(true, &mixed);
    assert!(waited > 980, "{waited} of 1,000 in both directions");
}
