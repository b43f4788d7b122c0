//! Warnings about a leg while it is up, in simulated time: checked once a second, as the relay does.

#![allow(clippy::unwrap_used, reason = "a test may stop where it fails")]

use crate::support;
use crate::support::leg::{Leg, default_leg};
use sidetone_media::rtp::PayloadKind;
use sidetone_media::session::{Change, Payload, Verdict, Watch};
use sidetone_media::time::{ClockRate, Micros};

/// A watched leg, and its warnings as `second what`.
struct Watched {
    leg: Leg,
    watch: Watch,
    told: Vec<String>,
    /// When it is checked next.
    next_ms: i64,
}

impl Watched {
    /// A leg that is described and answered, and checked every second from then on.
    fn connected() -> Watched {
        let mut leg = default_leg();
        leg.connect();
        Watched { leg, watch: Watch::default(), told: Vec::new(), next_ms: 1_000 }
    }

    /// Plays `step` until the leg is `seconds` old.
    fn until(&mut self, seconds: f64, mut step: impl FnMut(&mut Leg)) -> &mut Self {
        let end_ms = (seconds * 1_000.0) as i64;
        while self.leg.at_ms < end_ms {
            while self.next_ms <= self.leg.at_ms {
                self.look();
            }
            step(&mut self.leg);
        }
        self
    }

    fn look(&mut self) {
        let at_ms = self.next_ms;
        self.next_ms += 1_000;
        let Some(warning) = self.watch.look(Micros::from_millis(at_ms), &self.leg.session) else { return };
        let what = match warning.change {
            Change::AudioBack => "audio back".to_owned(),
            Change::ForeignSource => "foreign source".to_owned(),
            Change::NoAudio => "no audio".to_owned(),
            Change::Verdict => {
                assert_eq!(warning.report.at, Micros::from_millis(at_ms));
                format!("{} to {}", warning.previous, warning.report.verdict.unwrap())
            }
        };
        let since_ms = warning.since.0 / 1_000;
        self.told.push(format!(
            "{} {what} since {}.{}",
            at_ms / 1_000,
            since_ms / 1_000,
            since_ms % 1_000 / 100
        ));
    }

    fn told(&self, expected: &[&str]) {
        assert_eq!(self.told, expected);
    }
}

fn talk(leg: &mut Leg) {
    leg.reply(1);
    leg.talk(1);
}

/// The party sends nothing, and its numbers do not advance.
fn rest(leg: &mut Leg) {
    leg.reply(1);
    leg.wait(20);
}

#[test]
fn three_seconds_without_audio_are_told_once_and_so_is_its_return() {
    let mut leg = Watched::connected();
    // The last packet arrives at 10.1, and at 13 three seconds have not passed.
    leg.until(10.12, talk).until(13.02, rest).until(20.0, talk);
    leg.told(&[]);
    // Checked on the second: a silence from 20.1 on is three seconds old at 24.
    let mut leg = Watched::connected();
    leg.until(20.1, talk).until(30.0, rest).until(60.0, talk);
    leg.told(&["24 no audio since 20.0", "31 audio back since 20.0"]);
}

#[test]
fn a_party_that_is_never_heard_is_told_of() {
    let mut leg = Watched::connected();
    leg.until(60.0, rest);
    leg.told(&["3 no audio since 0.0"]);
}

#[test]
fn silence_that_is_announced_or_agreed_is_none() {
    // On hold, and after it.
    let mut held = Watched::connected();
    held.until(10.0, talk);
    held.leg.describe(|sdp| sdp.send = false);
    held.until(30.0, rest);
    held.leg.describe(|sdp| sdp.send = true);
    held.until(32.0, rest).until(40.0, talk);
    held.told(&[]);

    // Comfort noise is the last packet (RFC 3389).
    let mut noise = Watched::connected();
    noise.leg.describe(|sdp| {
        sdp.payloads.push(Payload {
            number: 13,
            kind: PayloadKind::ComfortNoise,
            clock: ClockRate::HZ_8000,
            bytes_per_ms: None,
            default_ptime_ms: None,
            name: "CN".to_owned(),
        });
    });
    noise.until(10.0, talk);
    noise.leg.packet.payload_type = 13;
    noise.until(10.02, talk).until(30.0, rest);
    noise.told(&[]);

    // A sender that pauses while its timestamps advance (DTX) does so again.
    let mut pausing = Watched::connected();
    pausing.until(10.0, talk);
    pausing.until(11.0, rest);
    pausing.leg.packet.timestamp += 8_000;
    pausing.until(20.0, talk).until(30.0, rest);
    pausing.told(&[]);

    // A muted phone that sends silence still sends packets.
    let mut muted = Watched::connected();
    muted.until(60.0, talk);
    muted.told(&[]);
}

#[test]
fn a_bad_judgement_is_told_once_it_lasts_and_taken_back_once_it_is_over_for_good() {
    let mut leg = Watched::connected();
    leg.until(20.0, talk);
    let mut nth = 0;
    let mut lossy = |leg: &mut Leg| {
        nth += 1;
        if nth % 10 == 0 { leg.lose(1) } else { talk(leg) }
    };
    leg.until(60.0, &mut lossy);
    assert_eq!(leg.told.len(), 1, "{:?}", leg.told);
    assert!(leg.told[0].contains("ok to lossy_inbound"), "{:?}", leg.told);
    // Of 3,000 packets 200 are lost; below two percent the verdict is ok again, and is reported after half a
    // minute.
    leg.until(400.0, talk);
    assert_eq!(leg.told.len(), 2, "{:?}", leg.told);
    assert!(leg.told[1].contains("lossy_inbound to ok"), "{:?}", leg.told);
}

#[test]
fn packets_from_a_foreign_address_are_told_once() {
    let mut leg = Watched::connected();
    leg.until(10.0, talk);
    let mut both = |leg: &mut Leg| {
        let party = std::mem::replace(&mut leg.source, support::addr("192.0.2.66:4000"));
        leg.send_one();
        leg.source = party;
        leg.packet.sequence = leg.packet.sequence.wrapping_sub(1);
        leg.packet.timestamp = leg.packet.timestamp.wrapping_sub(160);
        talk(leg);
    };
    // Nine packets are strays.
    leg.until(10.18, &mut both).until(15.0, talk);
    leg.told(&[]);
    leg.until(20.0, &mut both).until(60.0, talk);
    leg.told(&["16 foreign source since 10.0"]);
    let report = leg.leg.close();
    assert_eq!(report.verdict, Some(Verdict::Ok));
    let said = sidetone_media::verdict::explain(&report, Default::default()).sentence;
    let expected = "Packets came from 192.0.2.66:4000, which is not this party's address for audio. 259 packets from \
                    there were refused.";
    assert!(said.ends_with(expected), "{said}");
}

#[test]
fn what_is_no_trouble_is_not_told() {
    // Another SSRC, another number: a transfer.
    let mut leg = Watched::connected();
    leg.until(10.0, talk);
    leg.leg.packet.ssrc = 0x2222;
    leg.leg.packet.sequence = 9_000;
    leg.until(20.0, talk);
    leg.told(&[]);
}

/// For any events, a leg reports at most one change in five seconds.
#[test]
fn a_storm_of_changes_is_bounded() {
    let mut leg = Watched::connected();
    leg.until(10.0, talk);
    for round in 0..20 {
        let began = 10.0 + f64::from(round) * 8.0;
        // The network drops four seconds of packets, so that the sender does not count as one that pauses.
        leg.until(began + 4.0, |leg| leg.lose(1)).until(began + 8.0, talk);
    }
    let seconds: Vec<i64> =
        leg.told.iter().map(|line| line.split_once(' ').unwrap().0.parse().unwrap()).collect();
    assert!(seconds.len() > 10, "{:?}", leg.told);
    assert!(seconds.windows(2).all(|pair| pair[1] - pair[0] >= 5), "{:?}", leg.told);
    let repeated = leg.told.windows(2).filter(|pair| {
        let what = |line: &str| line.split(' ').nth(1).map(str::to_owned);
        what(&pair[0]) == what(&pair[1])
    });
    assert_eq!(repeated.count(), 0, "{:?}", leg.told);
    assert_eq!(leg.leg.close().verdict, Some(Verdict::LossyInbound));
}
