//! A session with any inputs in any order and at any time; its trace gives the same report.

use std::sync::{Arc, Mutex};

use sidetone_media::rtp::Packet;
use sidetone_media::session::{
    Description, Disposition, Figures, Hundredths, Input, Payload, PayloadKind, Reason, Report, Second,
    Session, SessionConfig, StrictSource, Timeline, XrReports,
};
use sidetone_media::time::{ClockRate, Micros};
use sidetone_media::trace::{BLOCK_BYTES, Replay, TraceHead, TraceSink, TracedSession};
use sidetone_media::verdict::{Party, explain};

use super::choices::Choices;

/// A trace in memory.
#[derive(Debug, Default)]
struct Memory(Mutex<Vec<u8>>);

impl TraceSink for Memory {
    fn append(&self, bytes: Vec<u8>) -> Option<Vec<u8>> {
        self.0.lock().unwrap().extend(bytes);
        Some(Vec::with_capacity(BLOCK_BYTES))
    }

    fn name(&self) -> &str {
        "memory"
    }
}

/// Figures stay within their bounds for all inputs. Folding packets one by one, and replaying the trace, give the same
/// report.
pub fn media_session(data: &[u8]) {
    let (live, file) = play(data, false);
    assert_eq!(play(data, true), (live.clone(), file.clone()));
    let mut replay = Replay::new();
    let used = replay.feed(&file).unwrap();
    let replayed = replay.finish(file.len() - used).unwrap();
    assert_eq!((replayed.missing, replayed.closed, replayed.damage), (Some(0), true, None));
    assert_eq!(replayed.report, live);
}

/// The report of a leg and its trace; `one_by_one` folds each packet when it arrives.
fn play(data: &[u8], one_by_one: bool) -> (Report, Vec<u8>) {
    let mut choices = Choices::new(data);
    let config = config(&mut choices);
    let memory = Arc::new(Memory::default());
    let mut leg = TracedSession::new(Session::new(config));
    leg.trace(TraceHead::default(), memory.clone());
    let mut phone = Phone { one_by_one, ..Phone::default() };
    while !choices.is_over() {
        phone.act(&mut leg, &mut choices);
        while leg.poll_output().is_some() {}
        let _ = (leg.destination(), leg.rtcp_destination());
    }
    let closed = leg.close(phone.now);
    let written = closed.trace.clone().unwrap();
    let live = Report { trace: None, ..closed };
    check_report(&live);
    assert_eq!(
        leg.report(phone.now + 1_000_000),
        leg.close(phone.now + 5),
        "a closed leg says the same always"
    );
    let after = leg.receive(phone.now, ([10, 0, 0, 1], 4000).into(), &[0x80; 40]);
    assert_eq!(after, Disposition::Discard(Reason::Closed));
    let file = memory.0.lock().unwrap();
    assert_eq!((written.bytes, written.missing), (file.len() as u64, 0));
    (live, file.clone())
}

/// Checks that hold for the report of every session.
pub fn check_report(report: &Report) {
    let figures = &report.figures;
    check_figures(figures);
    assert!(figures.received <= report.counters.datagrams);
    assert!(report.counters.received_after_answer <= figures.received);
    assert!(report.counters.sent_after_answer <= report.counters.sent);
    assert_eq!(report.verdict, report.evidence.rule);
    check_timeline(report);
    let explained = explain(report, Party::Caller);
    assert_eq!(explained.verdict, report.verdict);
    assert!(report.verdict.is_none() || !explained.sentence.is_empty());
}

fn check_timeline(report: &Report) {
    let (figures, timeline) = (&report.figures, &report.timeline);
    assert!(timeline.seconds.len() <= Timeline::ROWS_MAX && timeline.step_s.is_power_of_two());
    let sum =
        |count: fn(&Second) -> u16| timeline.seconds.iter().map(|row| u64::from(count(row))).sum::<u64>();
    assert!(sum(|row| row.received) <= figures.received);
    assert!(sum(|row| row.duplicates) <= figures.duplicates);
    assert!(sum(|row| row.lost) <= figures.lost + figures.local_drop);
    assert!(figures.longest_loss_packets as u64 <= figures.lost + figures.local_drop);
}

fn check_figures(figures: &Figures) {
    assert_eq!(figures.lost + figures.local_drop + figures.received, figures.expected);
    assert!(figures.audio + figures.comfort_noise + figures.events <= figures.received);
    assert!(figures.others <= figures.events);
    assert_eq!(figures.loss_pct.is_some(), figures.enough);
    let is_scored = figures.enough && !figures.is_mostly_other();
    assert!([figures.quality_pct, figures.mos].iter().all(|figure| figure.is_some() == is_scored));
    assert_eq!(figures.jitter_ms.is_some(), figures.sums.jitter_count >= 20);
    assert_eq!(figures.mean_interval_ms.is_some(), figures.sums.gap_count >= 20);
    let within = |figure: Option<Hundredths>, least: i64, most: i64| {
        figure.is_none_or(|figure| (least..=most).contains(&figure.0))
    };
    assert!(within(figures.loss_pct, 0, 10_000) && within(figures.quality_pct, 0, 10_000));
    assert!(within(figures.mos, 100, 450) && within(figures.mos_e_model, 100, 450));
    assert!(within(figures.burst_share, 0, 10_000));
}

fn config(choices: &mut Choices<'_>) -> SessionConfig {
    let choice = choices.byte();
    let mut config = SessionConfig { symmetric: choice & 1 == 0, ..SessionConfig::default() };
    config.thresholds.strict_address = choice & 2 != 0;
    if choice & 4 != 0 {
        config.own_addresses.push([127, 0, 0, 1].into());
    }
    config
}

/// The source address of our packets.
const OURS: u32 = 99;

/// The state of the party while it continues its stream.
struct Phone {
    now: Micros,
    packet: Packet,
    step: u32,
    source: std::net::SocketAddr,
    mux: bool,
    one_by_one: bool,
}

impl Default for Phone {
    fn default() -> Self {
        let packet = Packet { ssrc: 7, payload_len: 160, ..Packet::default() };
        Phone {
            now: Micros(0),
            packet,
            step: 160,
            source: ([10, 0, 0, 1], 4000).into(),
            mux: false,
            one_by_one: false,
        }
    }
}

impl Phone {
    fn act(&mut self, leg: &mut TracedSession, choices: &mut Choices<'_>) {
        let choice = choices.byte();
        match choice & 0x1f {
            0..=4 => self.talk(leg, 1 + u32::from(choice >> 5)),
            5 => self.talk(leg, 60 + 16 * u32::from(choice >> 5)),
            6 => self.skip(u32::from(choices.byte())),
            7 => self.now = self.now + 250 * i64::from(choices.u16().cast_signed()),
            8 => self.now = self.now + i64::from(choices.u32().cast_signed()) * 16,
            9 => self.now = Micros(choices.u64().cast_signed()),
            10 => self.packet.sequence = self.packet.sequence.wrapping_add(choices.u16()),
            11 => self.packet.timestamp = self.packet.timestamp.wrapping_add(choices.u32()),
            12 => self.packet.ssrc = u32::from(choices.byte()),
            13 => self.packet.payload_type = [0, 8, 9, 13, 101, 111, 96, 127][usize::from(choice >> 5)],
            14 => self.packet.payload_len = u32::from(choices.u16()) % 1_500,
            15 => self.packet.marker = !self.packet.marker,
            16 => self.source = choices.address(),
            17 => self.step = [80, 160, 240, 480, 960, 0, 1, 320][usize::from(choice >> 5)],
            18 => self.packet.sequence = self.packet.sequence.wrapping_sub(1 + u16::from(choice >> 5)),
            19 => leg.answer(self.now),
            20 => self.describe(leg, choices),
            21 => leg.sent(self.now, u32::from(choice >> 5), choices.address()),
            22 => leg.handle_input(self.now, Input::LocalDrop { packets: u32::from(choices.byte()) }),
            23 if choice >> 5 == 7 => {
                leg.handle_input(self.now, Input::Unauthenticated { packets: u32::from(choices.byte()) });
            }
            23 => leg.handle_input(self.now, Input::Unreachable),
            24 => drop(leg.receive(self.now, self.source, choices.bytes())),
            25 => drop(leg.receive_rtcp(self.now, self.source, choices.bytes())),
            26 => self.report_by_rtcp(leg, choices),
            27 => check_report(&leg.report(self.now)),
            28 => self.control(leg, choice >> 5, choices),
            29 => leg.sent_rtcp(self.now, &self.rtcp_report(OURS, 77, choices)),
            30 => self.listen(leg, 1 + u32::from(choice >> 5)),
            _ => drop(self.arrive(leg)),
        }
    }

    /// Packets in order and on time.
    fn talk(&mut self, leg: &mut TracedSession, packets: u32) {
        for _ in 0..packets {
            self.arrive(leg);
            self.skip(1);
            self.now = self.now + i64::from(self.step) * 125;
        }
    }

    fn skip(&mut self, packets: u32) {
        self.packet.sequence = self.packet.sequence.wrapping_add(packets as u16);
        self.packet.timestamp = self.packet.timestamp.wrapping_add(self.step.wrapping_mul(packets));
    }

    /// We send audio.
    fn listen(&mut self, leg: &mut TracedSession, packets: u32) {
        for _ in 0..packets {
            if let Some(to) = leg.destination() {
                leg.sends(self.now, OURS);
                leg.sent(self.now, 1, to);
            }
            self.now = self.now + 20_000;
        }
    }

    fn arrive(&self, leg: &mut TracedSession) -> Disposition {
        let packet = &self.packet;
        let mut datagram = vec![0x80, u8::from(packet.marker) << 7 | packet.payload_type];
        datagram.extend(packet.sequence.to_be_bytes());
        datagram.extend(packet.timestamp.to_be_bytes());
        datagram.extend(packet.ssrc.to_be_bytes());
        datagram.resize(12 + packet.payload_len as usize, 0xd5);
        let disposition = leg.receive(self.now, self.source, &datagram);
        if self.one_by_one {
            // A report contains all packets, including those not folded yet.
            let _ = leg.report_block(self.now);
        }
        disposition
    }

    /// Rare inputs.
    fn control(&mut self, leg: &mut TracedSession, choice: u8, choices: &mut Choices<'_>) {
        match choice {
            0 => leg.flush_trace(self.now, 1_000_000),
            1 => leg.handle_input(self.now, Input::LocalDrop { packets: u32::from(choices.byte()) }),
            2 => drop(leg.report_block(self.now)),
            3 => leg.sends(self.now, u32::from(choices.byte())),
            _ => leg.sent_rtcp(self.now, choices.bytes()),
        }
    }

    /// A sender or receiver report about our stream, on either port.
    fn report_by_rtcp(&self, leg: &mut TracedSession, choices: &mut Choices<'_>) {
        let datagram = self.rtcp_report(self.packet.ssrc, OURS, choices);
        if choices.flag() {
            leg.receive(self.now, self.source, &datagram);
        } else {
            leg.receive_rtcp(self.now, self.source, &datagram);
        }
    }

    fn rtcp_report(&self, from: u32, about: u32, choices: &mut Choices<'_>) -> Vec<u8> {
        let sender = choices.flag();
        let mut datagram = vec![0x81, if sender { 200 } else { 201 }, 0, if sender { 12 } else { 7 }];
        datagram.extend(from.to_be_bytes());
        if sender {
            let seconds = self.now.0.div_euclid(1_000_000) as u32;
            datagram.extend(seconds.to_be_bytes());
            datagram.extend([0; 4]);
            datagram.extend(self.packet.timestamp.to_be_bytes());
            datagram.extend(choices.u32().to_be_bytes());
            datagram.extend(choices.u32().to_be_bytes());
        }
        datagram.extend(about.to_be_bytes());
        for _ in 0..5 {
            datagram.extend(choices.u32().to_be_bytes());
        }
        datagram
    }

    fn describe(&mut self, leg: &mut TracedSession, choices: &mut Choices<'_>) {
        let flags = choices.byte();
        self.mux = flags & 1 != 0;
        let remote = choices.address();
        let payload = |number, name: &str, kind, hz| Payload {
            number,
            kind,
            clock: ClockRate::new(hz).unwrap(),
            bytes_per_ms: (hz == 8_000).then_some(8),
            default_ptime_ms: None,
            name: name.to_owned(),
        };
        let mut payloads = vec![
            payload(0, "PCMU", PayloadKind::Audio, 8_000),
            payload(8, "PCMA", PayloadKind::Audio, 8_000),
            payload(13, "CN", PayloadKind::ComfortNoise, 8_000),
            payload(101, "telephone-event", PayloadKind::Event, 8_000),
        ];
        if flags & 2 != 0 {
            payloads.push(payload(111, "opus", PayloadKind::Audio, 48_000));
            payloads.push(payload(96, "x-other", PayloadKind::Other, 90_000));
        }
        let ptime = |choice: u8| [None, Some(10), Some(20), Some(30)][usize::from(choice & 3)];
        let rules = [StrictSource::Any, StrictSource::Observed, StrictSource::Sdp, StrictSource::Signalling];
        let remote_rtcp = (flags & 8 != 0).then(|| choices.address());
        let own_ptime = choices.byte();
        let description = Description {
            remote: (flags & 4 == 0).then_some(remote),
            unresolved: flags & 6 == 6,
            remote_rtcp,
            rtcp_mux: self.mux,
            receive: flags & 16 == 0,
            send: flags & 32 == 0,
            payloads,
            ptime_ms: ptime(flags >> 6),
            own_ptime_ms: ptime(own_ptime),
            own_maxptime_ms: ptime(choices.byte()),
            signalling: Some(choices.address().ip()),
            own_advertised: Some(choices.address().ip()),
            strict_source: (own_ptime & 16 == 0).then_some(rules[usize::from(own_ptime >> 2 & 3)]),
            xr: XrReports {
                round_trip: own_ptime & 32 != 0,
                summary: own_ptime & 64 != 0,
                voip: own_ptime & 128 != 0,
            },
            udptl: own_ptime >> 5 == 7,
            protected: own_ptime >> 5 == 5,
            video: own_ptime >> 5 == 6,
        };
        leg.describe(self.now, description);
    }
}
