//! Audio evidence of a leg: which packets count, from which time on, and the content of the report.

#![allow(clippy::unwrap_used, reason = "a test may stop where it fails")]

use sidetone_media::rtp::Packet;
use sidetone_media::session::{AudioSample, Hundredths, Report, Session, SessionConfig};
use sidetone_media::time::Micros;
use sidetone_media::verdict::{Party, explain};

use crate::support;

/// A leg with audio evidence, answered immediately.
fn listening() -> Session {
    let mut session = Session::new(SessionConfig { audio_evidence: true, ..SessionConfig::default() });
    session.describe(Micros(0), support::pcmu());
    session.answer(Micros(0));
    session
}

fn packet(n: u32) -> Packet {
    let [_, _, high, low] = n.to_be_bytes();
    let sequence = u16::from_be_bytes([high, low]);
    Packet { ssrc: 1, timestamp: n * 160, payload_len: 160, sequence, ..Packet::default() }
}

/// A datagram whose payload is `byte` at even positions and `second` at odd ones.
fn datagram(packet: &Packet, byte: u8, second: u8) -> Vec<u8> {
    let mut datagram = Vec::new();
    support::write_rtp(packet, &mut datagram);
    let payload = datagram.iter_mut().skip(12);
    payload.zip([byte, second].into_iter().cycle()).for_each(|(place, byte)| *place = byte);
    datagram
}

fn receive(session: &mut Session, n: u32, datagram: &[u8]) {
    session.receive(at(n), support::party(), datagram);
}

fn at(n: u32) -> Micros {
    Micros(i64::from(n) * 20_000)
}

/// Fifteen seconds of packets with the payload that `sound` returns for each.
fn played(sound: impl Fn(u32) -> (u8, u8)) -> Report {
    let mut session = listening();
    for n in 0..750 {
        let (byte, second) = sound(n);
        receive(&mut session, n, &datagram(&packet(n), byte, second));
        session.sent(at(n), 1, support::party());
    }
    session.close(at(750))
}

/// Two alternating bytes of PCMU: loud, at full scale, and silent.
const LOUD: (u8, u8) = (0x20, 0xa0);
const FULL_SCALE: (u8, u8) = (0x00, 0x80);
const SILENT: (u8, u8) = (0xff, 0x7f);

#[test]
fn flags_and_sentences_say_what_is_heard() {
    let silent = explain(&played(|_| SILENT), Party::Caller);
    assert_eq!(silent.flags, ["silent_audio"]);
    assert_eq!(silent.verdict.unwrap().as_str(), "ok");
    let words = "The packets carry silence: nothing can be heard in any of them (15 seconds of audio were \
                 listened to, one packet in four). Either the caller's microphone is muted or broken, or the \
                 equipment that sends the packets gets no audio itself.";
    assert!(silent.sentence.ends_with(words), "{}", silent.sentence);
    let clipped = explain(&played(|n| if n % 20 < 4 { FULL_SCALE } else { LOUD }), Party::Called);
    assert_eq!(clipped.flags, ["clipped_audio"]);
    let words =
        "The called party's audio is overdriven: its loudest parts are cut off in 20.21 % of the packets";
    assert!(clipped.sentence.contains(words), "{}", clipped.sentence);
    // An occasional word: a party that mostly listens.
    let listens = explain(&played(|n| if n % 10 == 0 { LOUD } else { SILENT }), Party::Caller);
    assert!(listens.flags.is_empty(), "{:?}", listens.flags);
}

/// The level of each row of the timeline up to the last one with packets.
fn levels(report: &Report) -> Vec<Option<i8>> {
    let seconds = &report.timeline.seconds;
    let heard = seconds.iter().rposition(|second| second.received > 0).unwrap();
    seconds.iter().take(heard + 1).map(|second| second.level_dbov()).collect()
}

#[test]
fn each_second_has_its_level() {
    let loud = played(|_| LOUD);
    let level = i8::try_from((loud.audio.unwrap().level_dbov.0 as f64 / 100.0).round() as i64).unwrap();
    assert!((-20..0).contains(&level), "{level}");
    assert_eq!(levels(&loud), [Some(level); 15]);
    // Every other second is silent.
    let turns = played(|n| if n / 50 % 2 == 0 { LOUD } else { SILENT });
    let wanted: Vec<_> = (0..15).map(|n| Some(if n % 2 == 0 { level } else { -127 })).collect();
    assert_eq!(levels(&turns), wanted);
    // A second of which half is loud has half the power.
    let halves = played(|n| if n / 8 % 2 == 0 { LOUD } else { SILENT });
    assert!(
        levels(&halves).iter().all(|found| found.unwrap().abs_diff(level - 3) <= 1),
        "{:?}",
        levels(&halves)
    );
}

#[test]
fn a_second_without_decoded_audio_has_no_level() {
    let mut session = listening();
    for n in (0..50).chain(100..150) {
        receive(&mut session, n, &datagram(&packet(n), SILENT.0, SILENT.1));
    }
    // G.722, which is not decoded here.
    for n in 150..200 {
        receive(&mut session, n, &datagram(&Packet { payload_type: 9, ..packet(n) }, 0x20, 0xa0));
    }
    let report = session.close(at(200));
    assert_eq!(levels(&report).get(..3).unwrap(), [Some(-127), None, Some(-127)]);
    assert!(levels(&report).get(3..).unwrap().iter().all(Option::is_none));
    let mut deaf = Session::new(SessionConfig::default());
    deaf.describe(Micros(0), support::pcmu());
    deaf.answer(Micros(0));
    (0..100).for_each(|n| receive(&mut deaf, n, &datagram(&packet(n), LOUD.0, LOUD.1)));
    assert!(levels(&deaf.close(at(100))).iter().all(Option::is_none));
}

/// Beyond an hour rows are merged, and their levels as powers.
#[test]
fn rows_that_are_merged_have_the_mean_of_their_powers() {
    let mut session = listening();
    for n in 0..4_000 * 50 {
        let (byte, second) = if n / 50 % 2 == 0 { LOUD } else { SILENT };
        receive(&mut session, n, &datagram(&packet(n), byte, second));
    }
    let loud = levels(&played(|_| LOUD))[0].unwrap();
    let report = session.close(at(4_000 * 50));
    assert_eq!(report.timeline.step_s, 2);
    let found = levels(&report);
    assert!(found.iter().all(|level| level.unwrap().abs_diff(loud - 3) <= 1), "{:?}", found.first());
}

/// A driver that keeps headers and samples, as the analysis of a capture does, finds the same levels.
#[test]
fn headers_with_samples_give_the_levels_of_datagrams() {
    let (mut live, mut offline) = (listening(), listening());
    for n in 0..500 {
        let (byte, second) = if n / 70 % 2 == 0 { LOUD } else { SILENT };
        let (packet, whole) = (packet(n), datagram(&packet(n), byte, second));
        receive(&mut live, n, &whole);
        let sample = AudioSample::is_due(&packet).then(|| AudioSample::of(&whole[12..])).flatten();
        offline.receive_heard(at(n), support::party(), &packet, sample.as_ref());
    }
    assert_eq!(live.close(at(500)), offline.close(at(500)));
}

#[test]
fn announced_silence_and_a_short_call_are_nothing_to_flag() {
    let mut session = listening();
    for n in 0..750 {
        let payload_type = if n % 100 == 50 { 13 } else { 0 };
        receive(&mut session, n, &datagram(&Packet { payload_type, ..packet(n) }, 0xff, 0xff));
    }
    let report = session.close(at(750));
    assert_eq!(report.audio.unwrap().silent_share_pct, Hundredths::from_integer(100));
    assert!(explain(&report, Party::Caller).flags.is_empty());
    let mut session = listening();
    (0..400).for_each(|n| receive(&mut session, n, &datagram(&packet(n), 0xff, 0xff)));
    assert!(explain(&session.close(at(400)), Party::Caller).flags.is_empty());
}

#[test]
fn a_session_that_was_not_asked_to_listen_heard_nothing() {
    let mut session = Session::new(SessionConfig::default());
    session.describe(Micros(0), support::pcmu());
    session.answer(Micros(0));
    (0..100).for_each(|n| receive(&mut session, n, &datagram(&packet(n), 0xff, 0xff)));
    assert_eq!(session.close(at(100)).audio, None);
}

#[test]
fn only_the_conversation_counts_and_only_the_party_in_it() {
    let mut session = Session::new(SessionConfig { audio_evidence: true, ..SessionConfig::default() });
    session.describe(Micros(0), support::pcmu());
    let (tone, silence) = (LOUD, SILENT);
    for n in 0..200 {
        receive(&mut session, n, &datagram(&packet(n), tone.0, tone.1));
    }
    session.answer(at(200));
    for n in 200..400 {
        receive(&mut session, n, &datagram(&packet(n), silence.0, silence.1));
        // A foreign source, and another SSRC at the party's own address.
        session.receive(at(n), support::addr_v4(66), &datagram(&packet(n), tone.0, tone.1));
        if n % 8 == 0 {
            receive(&mut session, n, &datagram(&Packet { ssrc: n, ..packet(n) }, tone.0, tone.1));
        }
    }
    let audio = session.close(at(400)).audio.unwrap();
    assert_eq!((audio.looked_at_packets, audio.looked_at_ms), (50, 4_000));
    assert_eq!(audio.silent_share_pct, Hundredths::from_integer(100));
    assert_eq!(audio.longest_silence_ms, 4_000);
}

#[test]
fn csrcs_extension_and_padding_are_not_heard() {
    let mut session = listening();
    for n in 0..100 {
        let plain = datagram(&packet(n), 0xff, 0x7f);
        let (header, payload) = plain.split_at(12);
        // Two CSRCs, an extension of ten words and forty octets of padding, all of them loud.
        let mut full = header.to_vec();
        full.splice(..1, [0xb2]);
        full.extend([0x20, 0xa0, 0x20, 0xa0, 0x20, 0xa0, 0x20, 0xa0]);
        full.extend([0xbe, 0xde, 0, 10]);
        full.extend([0x20, 0xa0].repeat(20));
        full.extend(payload);
        full.extend([0x20, 0xa0].repeat(19));
        full.extend([0x20, 40]);
        receive(&mut session, n, &full);
    }
    let report = session.close(at(100));
    assert_eq!(report.figures.received, 100);
    let audio = report.audio.unwrap();
    assert_eq!((audio.looked_at_packets, audio.looked_at_ms), (25, 2_000));
    assert_eq!(audio.silent_share_pct, Hundredths::from_integer(100));
}

#[test]
fn of_a_payload_that_was_cut_off_what_is_left_is_heard() {
    let (whole, header) = (datagram(&packet(4), 0x20, 0xa0), packet(4));
    for (kept, is_heard) in [(172, true), (60, true), (28, true), (27, false), (12, false), (0, false)] {
        let payload = header.payload_in(whole.get(..kept).unwrap(), whole.len());
        assert_eq!(payload.len(), kept.saturating_sub(12), "{kept} bytes");
        assert_eq!(AudioSample::of(payload).is_some(), is_heard, "{kept} bytes");
    }
    let mut session = listening();
    session.receive_heard(at(4), support::party(), &header, AudioSample::of(&whole[12..28]).as_ref());
    session.receive_heard(at(5), support::party(), &packet(5), None);
    assert_eq!(session.close(at(6)).audio.unwrap().looked_at_packets, 1);
}
