//! A file in any order is read in the order of time.

use proptest::prelude::*;
use sidetone_media::pcap::{Damage, LinkType, Records, Writer};

use super::*;
use crate::kept_file::Kept;
use crate::read_ahead::ReadAhead;
use crate::source::read_file;
use crate::{Analysis, EngineOptions, PartsOutcome, Source, Times, compose, read_parts, read_with};

/// A file of these bytes, and the same opened.
fn opened(bytes: &[u8]) -> (Kept, File) {
    let kept = Kept::new(bytes);
    let file = kept.open();
    (kept, file)
}

/// Time and bytes of a frame.
type Frame = (i64, Vec<u8>);

fn frames(file: &[u8]) -> Vec<Frame> {
    Records::new(file).map(Result::unwrap).map(|record| (record.at.0, record.frame.to_vec())).collect()
}

fn call(text: &str) -> Vec<Frame> {
    let mut file = Vec::new();
    compose(&text.parse().unwrap(), &mut file).unwrap();
    frames(&file)
}

fn is_sip((_, frame): &Frame) -> bool {
    frame[42].is_ascii_uppercase()
}

/// The source address of a frame of IPv4.
fn source((_, frame): &Frame) -> u8 {
    frame[29]
}

/// A classic capture of these frames, in this order.
fn classic(frames: &[Frame]) -> Vec<u8> {
    let mut file = sidetone_media::pcap::file_header(LinkType::ETHERNET).to_vec();
    for (at, frame) in frames {
        let len = frame.len() as u32;
        file.extend(sidetone_media::pcap::record_header(Micros(*at), len, len).unwrap());
        file.extend(frame);
    }
    file
}

/// The same as pcapng, with a new section and two interfaces after every `per_section` frames, the second with
/// another resolution.
fn sections(frames: &[Frame], per_section: usize) -> Vec<u8> {
    let words = |words: &[u32]| words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<u8>>();
    let mut out = Vec::new();
    for (n, (at, frame)) in frames.iter().enumerate() {
        if n % per_section == 0 {
            out.extend(words(&[0x0a0d_0d0a, 28, 0x1a2b_3c4d, 1, u32::MAX, u32::MAX, 28]));
            out.extend(words(&[1, 20, 1, 0, 20]));
        }
        if n % per_section == 2 {
            // Nanoseconds.
            out.extend(words(&[1, 32, 1, 0, 0x0001_0009, 9, 0, 32]));
        }
        let is_second = n % per_section > 2 && n % 2 == 0;
        let ticks = if is_second { *at as u64 * 1_000 } else { *at as u64 };
        let len = frame.len().next_multiple_of(4) + 32;
        let kept = frame.len() as u32;
        out.extend(words(&[6, len as u32, is_second.into(), (ticks >> 32) as u32, ticks as u32, kept, kept]));
        out.extend(frame);
        out.resize(out.len().next_multiple_of(4), 0);
        out.extend(words(&[len as u32]));
    }
    out
}

/// The frames of a file, in the order of time.
fn in_order(bytes: &[u8]) -> (Vec<Frame>, End) {
    let (_kept, file) = opened(bytes);
    let order = TimeOrder::of(&file).unwrap();
    let (mut seen, mut last) = (Vec::new(), 0);
    let end = order.each(&file, |record, taken| {
        assert!(taken >= last && taken <= bytes.len() as u64);
        last = taken;
        seen.push((record.at.0, record.frame.to_vec()));
    });
    (seen, end)
}

/// The result for a file, which several numbers of threads give alike.
fn analysis(bytes: &[u8]) -> Analysis {
    let told = [(0, 1 << 12), (1, 977), (3, 4_099)].map(|(readers, block_len)| {
        let (_kept, file) = opened(bytes);
        let PartsOutcome { parts, broken } = read_file(
            EngineOptions::default(),
            ReadAhead { readers, block_len },
            "file",
            &file,
            &mut |_, _| {},
        );
        assert!(broken.is_none(), "{broken:?}");
        parts.into_analysis()
    });
    let json = told.each_ref().map(|analysis| serde_json::to_value(analysis).unwrap());
    assert!(json[0] == json[1] && json[0] == json[2]);
    let [analysis, ..] = told;
    analysis
}

/// One call, in every order that tools write it in: as mergecap -a appends captures, as two interfaces are
/// written.
fn disordered() -> Vec<(&'static str, Vec<Frame>)> {
    let call = call("clean duration=5s");
    let (sip, rtp): (Vec<_>, Vec<_>) = call.iter().cloned().partition(is_sip);
    let lagging = |lag: i64, is_late: fn(&Frame) -> bool| {
        let mut frames = call.clone();
        frames.sort_by_key(|frame| frame.0 + if is_late(frame) { lag } else { 0 });
        frames
    };
    let from_caller: fn(&Frame) -> bool = |frame| source(frame) == 10;
    vec![
        ("signalling first", [sip.clone(), rtp.clone()].concat()),
        ("audio first", [rtp, sip].concat()),
        ("a direction is 10 s late", lagging(10_000_000, from_caller)),
        ("a direction is 2 s late", lagging(2_000_000, from_caller)),
        ("signalling is 2 s late", lagging(2_000_000, is_sip)),
        ("backwards", call.iter().rev().cloned().collect()),
    ]
}

#[test]
fn a_call_in_any_order_is_judged_as_in_the_order_of_time() {
    let sorted = call("clean duration=5s");
    for (per_section, name) in [(0, "pcap"), (usize::MAX, "pcapng"), (7, "pcapng of many sections")] {
        let write = |frames: &[Frame]| match per_section {
            0 => classic(frames),
            many => sections(frames, many),
        };
        let expected = analysis(&write(&sorted));
        assert_eq!(expected.calls[0].media_verdict, Some("ok"));
        for (order, frames) in disordered() {
            let told = analysis(&write(&frames));
            assert!(told.times.are_sound(), "{name}, {order}");
            let calls = |analysis: &Analysis| serde_json::to_value(&analysis.calls).unwrap();
            let streams = |analysis: &Analysis| serde_json::to_value(&analysis.streams).unwrap();
            assert!(calls(&told) == calls(&expected), "{name}, {order}: {:?}", told.calls[0].media_verdict);
            assert!(streams(&told) == streams(&expected), "{name}, {order}");
        }
    }
}

#[test]
fn a_stream_of_bytes_in_another_order_is_not_judged() {
    for (order, frames) in disordered() {
        let mut latest = i64::MIN;
        let step = frames.iter().position(|(at, _)| {
            latest = latest.max(*at);
            *at < latest - 1_000_000
        });
        let from = step.map(|place| place as u64 + 1);
        let file = classic(&frames);
        let analysis = read_with(EngineOptions::default(), "x", &mut &file[..], &mut |_, _| {}).analysis;
        assert_eq!(analysis.times, Times { untimed: 0, out_of_order_from: from }, "{order}");
        for call in &analysis.calls {
            assert_eq!(
                (call.media_verdict, call.media_verdict_worse, call.mos),
                (None, None, None),
                "{order}"
            );
            assert!(call.quality().sentence.contains("reordercap"), "{order}");
            assert!(call.failure.is_none());
        }
        for stream in &analysis.streams {
            assert_eq!((stream.verdict, stream.mos, stream.jitter_ms), (None, None, None), "{order}");
        }
    }
}

#[test]
fn packets_that_are_a_little_late_are_no_step() {
    let call = call("clean duration=5s");
    for lag in [50_000, 900_000] {
        let mut frames = call.clone();
        let is_late = |frame: &Frame| source(frame) == 10 && !is_sip(frame);
        frames.sort_by_key(|frame| frame.0 + if is_late(frame) { lag } else { 0 });
        let file = classic(&frames);
        let analysis = read_with(EngineOptions::default(), "x", &mut &file[..], &mut |_, _| {}).analysis;
        assert!(analysis.times.are_sound() && analysis.calls[0].media_verdict.is_some(), "{lag}");
    }
}

#[test]
fn damage_is_told_behind_the_packets_before_it() {
    let mut frames = call("clean duration=5s");
    frames.reverse();
    let mut expected = frames.clone();
    for (whole, is_classic) in [(classic(&frames), true), (sections(&frames, 40), false)] {
        let (seen, end) = in_order(&whole[..whole.len() - 3]);
        expected.truncate(frames.len() - 1);
        expected.sort_by_key(|frame| frame.0);
        assert!(seen == expected, "{is_classic}");
        assert!(matches!(end, Err(Broken::Damage(Damage::CutOff { .. }))), "{end:?}");
        let mut wrong = whole.clone();
        let len = wrong.len();
        wrong.extend([0xff; 64]);
        let (seen, end) = in_order(&wrong);
        assert_eq!(seen.len(), frames.len());
        assert!(
            matches!(end, Err(Broken::Damage(Damage::Malformed { offset, .. })) if offset == len as u64),
            "{end:?}"
        );
    }
}

#[test]
fn a_file_with_too_many_packets_is_not_sorted() {
    let frames = call("clean duration=1s");
    let (_kept, file) = opened(&classic(&frames));
    assert!(TimeOrder::within(&file, frames.len()).is_some());
    assert!(TimeOrder::within(&file, frames.len() - 1).is_none());
}

#[test]
fn a_file_that_shrinks_is_told() {
    let (kept, file) = opened(&classic(&call("clean duration=5s")));
    let order = TimeOrder::of(&file).unwrap();
    File::options().write(true).open(&kept.0).unwrap().set_len(6_000).unwrap();
    let mut packets = 0;
    let end = order.each(&file, |_, _| packets += 1);
    assert!(packets > 0 && matches!(end, Err(Broken::Io(_))), "{packets}: {end:?}");
}

#[test]
fn packets_without_a_time_are_counted_and_not_judged() {
    let words = |words: &[u32]| words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<u8>>();
    let mut file = words(&[0x0a0d_0d0a, 28, 0x1a2b_3c4d, 1, u32::MAX, u32::MAX, 28, 1, 20, 1, 0, 20]);
    let frames = call("clean duration=5s");
    for (_, frame) in &frames {
        let len = frame.len().next_multiple_of(4) + 16;
        file.extend(words(&[3, len as u32, frame.len() as u32]));
        file.extend(frame);
        file.resize(file.len().next_multiple_of(4), 0);
        file.extend(words(&[len as u32]));
    }
    let (_kept, opened) = opened(&file);
    let threads = EngineOptions { threads: 2, ..EngineOptions::default() };
    let told = [
        read_parts(EngineOptions::default(), "x", Source::Stream(&mut &file[..]), &mut |_, _| {}),
        read_parts(threads, "x", Source::File(opened), &mut |_, _| {}),
    ];
    for outcome in told {
        let analysis = outcome.parts.into_analysis();
        assert_eq!(analysis.times, Times { untimed: frames.len() as u64, out_of_order_from: None });
        let call = &analysis.calls[0];
        let quality = serde_json::to_value(call.quality()).unwrap();
        assert_eq!(
            (call.media_verdict, call.mos, call.jitter_ms, call.quality_pct),
            (None, None, None, None)
        );
        assert!(call.quality().sentence.contains("no time"), "{}", call.quality().sentence);
        assert_eq!(analysis.streams.len(), 2);
        for stream in &analysis.streams {
            let json = serde_json::to_value(stream).unwrap();
            assert_eq!((stream.packets, stream.lost, stream.verdict), (250, 0, None));
            for legs in [&json, &quality["inbound"]] {
                for name in ["mos", "jitter_ms", "mean_interval_ms", "timeline", "late_80", "pace_ratio"] {
                    assert_eq!(legs.get(name), None, "{name}");
                }
            }
        }
    }
}

proptest! {
    #[test]
    fn every_packet_comes_once_in_the_order_of_time(
        times in prop::collection::vec((0_i64..40, 0_usize..3_000), 1..200),
        large in prop::option::of(any::<prop::sample::Index>()),
        per_section in 0_usize..12,
    ) {
        let mut frames: Vec<Frame> = Vec::new();
        for (n, (second, len)) in times.iter().enumerate() {
            let mut frame = vec![n as u8; 14 + len];
            frame[0] = second.to_le_bytes()[0];
            frames.push((second * 1_000_000, frame));
        }
        if let Some(large) = large {
            let place = large.index(frames.len());
            frames[place].1.resize(200_000, 1);
        }
        let bytes = if per_section == 0 { classic(&frames) } else { sections(&frames, per_section) };
        let (seen, end) = in_order(&bytes);
        // A stable sort: those of the same time in the order of the file.
        frames.sort_by_key(|frame| frame.0);
        prop_assert!(end.is_ok());
        prop_assert!(seen == frames);
    }
}

#[test]
fn the_writer_writes_what_these_tests_read() {
    let mut writer = Writer::new(Vec::new(), LinkType::ETHERNET).unwrap();
    writer
        .write_udp(Micros(7), "192.0.2.1:1".parse().unwrap(), "192.0.2.2:2".parse().unwrap(), b"x")
        .unwrap();
    let file = writer.finish().unwrap();
    assert_eq!(classic(&frames(&file)), file);
}
