//! The engine as a whole: frames that were read ahead, calls that begin and end for hours, and the ladder.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::{LazyLock, Mutex};

use proptest::prelude::*;
use sidetone_media::pcap::{Content, LinkType, Records, Writer, dissect};

use super::*;
use crate::compose;
use crate::feed::Feed;

/// Time, source, destination and payload of one datagram.
type Frame = (Micros, SocketAddr, SocketAddr, Vec<u8>);

/// A composed call between parties of its own, `start_us` later.
fn call(text: &str, number: u16, start_us: i64) -> Vec<Frame> {
    let mut file = Vec::new();
    compose(&format!("{text} seed={}", number + 1).parse().unwrap(), &mut file).unwrap();
    // As many digits as 192.0.2. has, so that no length changes.
    let net = format!("1{:02}.0.{}.", number / 10, number % 10);
    let moved = |mut address: SocketAddr| {
        if let IpAddr::V4(ip) = address.ip()
            && ip.octets()[0] == 192
        {
            address.set_ip(format!("{net}{}", ip.octets()[3]).parse().unwrap());
        }
        address
    };
    let frames = Records::new(&file).map(|record| {
        let record = record.unwrap();
        let Content::Udp(datagram) = dissect(record.link, record.frame) else { panic!("all of it is UDP") };
        let payload = if datagram.payload[0].is_ascii_uppercase() {
            String::from_utf8(datagram.payload.to_vec()).unwrap().replace("192.0.2.", &net).into_bytes()
        } else {
            datagram.payload.to_vec()
        };
        (record.at + start_us, moved(datagram.source), moved(datagram.destination), payload)
    });
    frames.collect()
}

fn is_sip(frame: &Frame) -> bool {
    frame.3[0].is_ascii_uppercase()
}

fn file(mut frames: Vec<Frame>) -> Vec<u8> {
    frames.sort_by_key(|frame| frame.0);
    let mut writer = Writer::new(Vec::new(), LinkType::ETHERNET).unwrap();
    for (at, source, destination, payload) in &frames {
        writer.write_udp(*at, *source, *destination, payload).unwrap();
    }
    writer.finish().unwrap()
}

fn analyze(file: &[u8], options: EngineOptions) -> Analysis {
    let mut engine = Engine::new(options);
    for record in Records::new(file) {
        engine.record(&record.unwrap());
    }
    engine.finish("test")
}

/// The same, cut into frames block by block first.
fn analyze_ahead(file: &[u8], block_len: usize, options: EngineOptions) -> Analysis {
    let mut engine = Engine::new(options);
    let (mut feed, mut frames) = (Feed::default(), Frames::default());
    for block in file.chunks(block_len) {
        feed.take(block, |record| frames.push(record, engine.listens())).unwrap();
        engine.frames(&frames);
        frames.clear();
    }
    engine.finish("test")
}

fn json<T: serde::Serialize>(value: &T) -> serde_json::Value {
    serde_json::to_value(value).unwrap()
}

const TEXTS: [&str; 8] = [
    "clean duration=4s",
    "lossy duration=5s",
    "jittery duration=4s",
    "unanswered",
    "no-inbound duration=8s",
    "wrong-address duration=4s",
    "ssrc-change duration=6s",
    "codec-switch duration=5s",
];

/// A call of [`TEXTS`] that begins at `start_us`; it is composed once for all cases.
fn composed(text: usize, number: u16, start_us: i64) -> Vec<Frame> {
    type Calls = HashMap<(usize, u16), Vec<Frame>>;
    static CALLS: LazyLock<Mutex<Calls>> = LazyLock::new(Mutex::default);
    let mut calls = CALLS.lock().unwrap();
    let frames = calls.entry((text, number)).or_insert_with(|| call(TEXTS[text], number, 0));
    frames
        .iter()
        .map(|(at, source, destination, payload)| (*at + start_us, *source, *destination, payload.clone()))
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(debug_assertions) { 12 } else { 256 }))]

    #[test]
    fn frames_that_were_read_ahead_give_the_same_result(
        calls in prop::collection::vec((0..TEXTS.len(), 0_i64..8_000_000, 0_u16..6), 1..8),
        dropped in prop::collection::vec(0.0..1.0_f64, 0..40),
        block_len in 1_usize..20_000,
        audio: bool,
        early in prop::collection::vec((0.0..1.0_f64, -40_000_i64..40_000), 0..40),
    ) {
        // A repeated number is a call with the same ports, later or at the same time.
        let mut frames: Vec<Frame> =
            calls.iter().flat_map(|(text, start_us, number)| composed(*text, *number, *start_us)).collect();
        for place in dropped {
            frames.swap_remove((place * frames.len() as f64) as usize % frames.len());
        }
        for (place, by_us) in early {
            let place = (place * frames.len() as f64) as usize % frames.len();
            frames[place].0 = frames[place].0 + by_us;
        }
        let file = file(frames);
        let options = EngineOptions { audio, ..EngineOptions::default() };
        let one = analyze(&file, options);
        let several = analyze_ahead(&file, block_len, options);
        prop_assert_eq!(serde_json::to_string(&one).unwrap(), serde_json::to_string(&several).unwrap());
        for (one, other) in one.calls.iter().zip(&several.calls) {
            prop_assert_eq!(&one.leg, &other.leg);
        }
        for (one, other) in one.streams.iter().zip(&several.streams) {
            prop_assert_eq!(&one.report, &other.report);
        }
    }
}

/// Everything that an engine reports before the end, polled after every frame, and the largest size of its
/// tables.
fn live(file: &[u8]) -> (Vec<FinishedCall>, [usize; 3]) {
    let mut engine = Engine::new(EngineOptions { evict: true, ..EngineOptions::default() });
    let (mut finished, mut most) = (Vec::new(), [0; 3]);
    for record in Records::new(file) {
        let record = record.unwrap();
        engine.record(&record);
        while let Some(call) = engine.poll_finished(record.at) {
            finished.push(call);
        }
        let router = &engine.router;
        let held = [router.calls.held(), router.streams.held(), router.flows.held()];
        most = std::array::from_fn(|n| most[n].max(held[n]));
    }
    let rest = engine.finish("rest");
    assert!(rest.calls.is_empty() && rest.streams.is_empty(), "all of it was over");
    (finished, most)
}

/// Calls one minute after another, every fifth without its SIP, and finally silence.
fn hours(calls: u16) -> (Vec<Vec<Frame>>, Vec<u8>) {
    let every: Vec<Vec<Frame>> = (0..calls)
        .map(|number| {
            let text = if number % 2 == 0 { "clean duration=4s" } else { "lossy duration=6s" };
            let mut frames = call(text, number, i64::from(number) * 60_000_000);
            frames.retain(|frame| number % 5 != 4 || !is_sip(frame));
            frames
        })
        .collect();
    let mut frames = every.concat();
    let (last, from, to, _) = frames.last().unwrap().clone();
    // Packets that are neither SIP nor RTP let time pass.
    frames.extend((0..200).map(|n| (last + n * 1_000_000, from, to, vec![0])));
    (every, file(frames))
}

#[test]
fn calls_come_and_go_for_hours_in_constant_memory() {
    let (every, whole) = hours(240);
    let (finished, most) = live(&whole);
    assert!(most.iter().all(|held| *held < 40), "{most:?}");
    let (_, short) = hours(40);
    assert_eq!(most, live(&short).1, "six times as many calls take no more");
    let calls: Vec<&FinishedCall> = finished.iter().filter(|call| call.call.is_some()).collect();
    assert_eq!(calls.len(), 240 / 5 * 4);
    // Each report equals the analysis of that call alone.
    let alone = every.iter().enumerate().filter(|(number, _)| number % 5 != 4).map(|(_, frames)| frames);
    for (handed_out, frames) in calls.into_iter().zip(alone).step_by(7) {
        let alone = analyze(&file(frames.clone()), EngineOptions::default());
        assert_eq!(json(&handed_out.call), json(&alone.calls[0]));
        assert_eq!(json(&handed_out.streams), json(&alone.streams));
        assert_eq!(handed_out.call.as_ref().unwrap().leg, alone.calls[0].leg);
    }
    let lone = finished.iter().filter(|call| call.call.is_none());
    assert!(lone.clone().all(|call| call.streams.len() == 1 && call.streams[0].direction.is_none()));
    assert_eq!(lone.count(), 240 / 5 * 2, "two streams of every call without SIP");
}

#[test]
fn what_is_over_comes_in_the_same_order_every_time() {
    let (_, whole) = hours(25);
    let told = || -> Vec<serde_json::Value> {
        live(&whole).0.iter().map(|call| json(&(&call.call, &call.streams))).collect()
    };
    assert_eq!(told(), told());
}

#[test]
fn a_call_whose_end_was_missed_is_given_up_after_an_hour() {
    let mut frames = call("clean duration=4s", 1, 0);
    frames.retain(|frame| !frame.3.starts_with(b"BYE"));
    let last = frames.last().unwrap().0;
    let mut engine = Engine::new(EngineOptions { evict: true, ..EngineOptions::default() });
    for record in Records::new(&file(frames)) {
        engine.record(&record.unwrap());
    }
    assert!(engine.poll_finished(last + 3_599_000_000).is_none());
    let call = engine.poll_finished(last + 3_620_000_000).and_then(|finished| finished.call).unwrap();
    assert_eq!((call.ended_at, call.streams.len(), call.media_verdict), (None, 2, Some("ok")));
    assert!(engine.poll_finished(last + 4_000_000_000).is_none());
}

#[test]
fn a_call_keeps_its_messages() {
    let whole = file(call("clean duration=2s answer=1s", 7, 0));
    assert!(analyze(&whole, EngineOptions::default()).calls[0].ladder.messages.is_empty());
    let analysis = analyze(&whole, EngineOptions { ladder: true, ..EngineOptions::default() });
    let ladder = &analysis.calls[0].ladder;
    let told: Vec<(String, &str, Option<&str>)> = ladder
        .messages
        .iter()
        .map(|message| (message.from.to_string(), message.summary.as_str(), message.sdp.as_deref()))
        .collect();
    let (caller, switch) = ("100.0.7.10:5060".to_owned(), "100.0.7.20:5060".to_owned());
    let offer = Some("audio 100.0.7.10:4000 PCMU telephone-event CN sendrecv");
    let answer = Some("audio 100.0.7.20:20000 PCMU telephone-event CN sendrecv");
    let expected = [
        (caller.clone(), "INVITE sip:2000@100.0.7.20:5060", offer),
        (switch.clone(), "100 Trying (INVITE)", None),
        (switch.clone(), "183 Session Progress (INVITE)", answer),
        (switch.clone(), "200 OK (INVITE)", answer),
        (caller.clone(), "ACK sip:2000@100.0.7.20:5060", None),
        (caller.clone(), "BYE sip:2000@100.0.7.20:5060", None),
        (switch.clone(), "200 OK (BYE)", None),
    ];
    assert_eq!(told, expected);
    assert_eq!(ladder.more, 0);
    let invite = call("clean duration=1s", 7, 0).swap_remove(0);
    let again = (0..300).map(|n| (invite.0 + n, invite.1, invite.2, invite.3.clone())).collect();
    let analysis = analyze(&file(again), EngineOptions { ladder: true, ..EngineOptions::default() });
    assert_eq!((analysis.calls[0].ladder.messages.len(), analysis.calls[0].ladder.more), (200, 100));
}

/// The signalling of one call, and the packets of another one between other addresses at the same time.
fn sent_elsewhere() -> Vec<Frame> {
    let mut frames = call("clean duration=5s", 1, 0);
    frames.retain(is_sip);
    frames.extend(call("clean duration=5s", 2, 0).into_iter().filter(|frame| !is_sip(frame)));
    frames
}

#[test]
fn audio_of_no_call_is_audio_of_the_capture() {
    let analysis = analyze(&file(sent_elsewhere()), EngineOptions::default());
    let call = &analysis.calls[0];
    assert_eq!((call.media_verdict, call.streams.len()), (Some("no_inbound_media"), 0));
    assert!(analysis.streams.iter().all(|stream| stream.direction.is_none()));
    assert_eq!(analysis.streams.len(), 2);

    let signalling = sent_elsewhere().into_iter().filter(is_sip).collect();
    let analysis = analyze(&file(signalling), EngineOptions::default());
    assert_eq!(analysis.calls[0].media_verdict, None);
    assert!(analysis.calls[0].quality().sentence.contains("no audio in this capture"));
}

#[test]
fn audio_of_no_call_is_audio_for_calls_that_are_over_before_it() {
    let mut frames = sent_elsewhere();
    let (last, from, to, _) = frames.iter().max_by_key(|frame| frame.0).unwrap().clone();
    frames.extend((0..90).map(|n| (last + n * 1_000_000, from, to, vec![0])));
    let (finished, _) = live(&file(frames));
    let verdicts: Vec<_> =
        finished.iter().map(|it| it.call.as_ref().map(|call| call.media_verdict)).collect();
    assert_eq!(verdicts, [Some(Some("no_inbound_media")), None, None]);
}

/// The two calls of a B2BUA whose RTP bypasses it: each is judged by the same packets, whose streams are handed out
/// once.
#[test]
fn packets_of_two_calls_at_once_count_for_both_when_calls_are_evicted() {
    let one = call("lossy duration=5s", 1, 0);
    let other = one.iter().filter(|frame| is_sip(frame)).map(|(at, from, to, text)| {
        let text = String::from_utf8(text.clone()).unwrap().replace("Call-ID: ", "Call-ID: x");
        (*at + 2_000, *from, *to, text.into_bytes())
    });
    let mut frames = [other.collect(), one.clone()].concat();
    let (last, from, to, _) = frames.iter().max_by_key(|frame| frame.0).unwrap().clone();
    frames.extend((0..90).map(|n| (last + n * 1_000_000, from, to, vec![0])));
    let (finished, _) = live(&file(frames));
    let calls = finished.iter().filter_map(|finished| finished.call.as_ref());
    let verdicts: Vec<_> = calls.map(|call| call.media_verdict).collect();
    assert_eq!(verdicts, [Some("lossy_inbound"); 2]);
    assert_eq!(finished.iter().map(|finished| finished.streams.len()).sum::<usize>(), 2);
}
