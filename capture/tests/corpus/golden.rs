//! The golden captures: reading each gives the result in its index.
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test may stop at the first surprise"
)]

use std::collections::BTreeMap;
use std::fs;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use sidetone_call::media_plan;
use sidetone_capture::golden::{self, Golden, Is};
use sidetone_capture::{self as capture, Analysis, EngineOptions, StreamReport};
use sidetone_media::pcap::{Content, Datagram, Records, dissect};
use sidetone_media::rtp::RtpPacket;
use sidetone_media::session::{Description, Report, Session, SessionConfig};
use sidetone_media::time::Micros;
use sidetone_sip::sdp::{Negotiated, Role, SessionDescription};

fn bytes(golden: &Golden) -> Vec<u8> {
    let mut file = Vec::new();
    golden.write(&mut file).unwrap();
    file
}

fn analysis(golden: &Golden) -> Analysis {
    let file = bytes(golden);
    let options = EngineOptions { audio: true, ..EngineOptions::default() };
    let outcome = capture::read_with(options, golden.name, &mut &file[..], &mut |_, _| {});
    assert!(outcome.broken.is_none(), "{}: {:?}", golden.name, outcome.broken);
    outcome.analysis
}

fn holds(is: Is, found: Option<&Value>) -> bool {
    match (is, found) {
        (Is::Absent, found) => found.is_none(),
        (_, None) => false,
        (Is::Between(from, to), Some(found)) => {
            found.as_f64().is_some_and(|value| (from..=to).contains(&value))
        }
        (Is::Flag(flag), Some(found)) => found.as_bool() == Some(flag),
        (Is::Number(number), Some(found)) => {
            found.as_f64().is_some_and(|value| (value - number).abs() < 0.000_001)
        }
        (Is::Text(text), Some(found)) => found.as_str() == Some(text),
    }
}

#[test]
fn every_golden_capture_has_its_right_answer() {
    let mut problems = Vec::new();
    for golden in golden::all() {
        let analysis = analysis(golden);
        let json = serde_json::to_value(&analysis).unwrap();
        let verdict = json.pointer("/calls/0/media_verdict").and_then(Value::as_str);
        let expected = Some(golden.verdict).filter(|verdict| !verdict.is_empty());
        let calls = if analysis.registrations.is_empty() { 1 } else { 0 };
        if verdict != expected || analysis.calls.len() != calls {
            let evidence = analysis.calls.first().map(|call| &call.evidence);
            problems.push(format!("{}: {verdict:?}, not {}: {evidence:?}", golden.name, golden.verdict));
        }
        for expected in golden.figures {
            let found = json.pointer(expected.at);
            if !holds(expected.is, found) {
                problems
                    .push(format!("{}: {} is {found:?}, not {:?}", golden.name, expected.at, expected.is));
            }
        }
    }
    assert!(problems.is_empty(), "{problems:#?}");
}

#[test]
fn golden_captures_are_small_and_the_same_every_time() {
    let mut names: Vec<_> = golden::all().map(|golden| golden.name).collect();
    for golden in golden::all() {
        let file = bytes(golden);
        assert!(file.len() <= 300_000, "{} has {} bytes", golden.name, file.len());
        assert_eq!(file, bytes(golden), "{}", golden.name);
    }
    let count = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), count, "each has a name of its own");
    for (verdict, name) in sidetone_model::quality::MediaVerdict::ALL {
        assert!(golden::all().any(|golden| golden.verdict == name), "{verdict:?}");
    }
}

#[test]
fn the_page_about_them_names_every_golden_capture() {
    let page = include_str!("../../../docs/golden.md");
    for golden in golden::all() {
        assert!(page.contains(&format!("`{}`", golden.file())), "{}", golden.name);
        assert!(page.contains(golden.misread), "{}", golden.name);
    }
}

/// The caller's leg of a capture, fed like a live leg: datagram by datagram, with the settled SDP.
struct Live {
    session: Session,
    offer: Option<SessionDescription>,
    settled: Option<Description>,
    report: Option<Report>,
}

impl Live {
    fn sip(&mut self, at: Micros, source: SocketAddr, text: &str) {
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        if head.starts_with("SIP/2.0 200") && head.contains("CSeq: 1 INVITE") {
            self.session.answer(at);
        }
        if head.starts_with("BYE") || (head.starts_with("CANCEL") && self.report.is_none()) {
            self.report.get_or_insert_with(|| self.session.close(at));
        }
        let Ok(sdp) = SessionDescription::parse(body.as_bytes()) else { return };
        if head.starts_with("INVITE") {
            self.offer = Some(sdp);
            return;
        }
        let Some(offer) = &self.offer else { panic!("an answer without an offer from {source}") };
        let negotiated = Negotiated::new(offer, &sdp, Role::Answerer).unwrap();
        let description = media_plan::description(&negotiated, Some([192, 0, 2, 10].into()));
        if self.settled.as_ref() != Some(&description) {
            self.session.describe(at, description.clone());
            self.settled = Some(description);
        }
    }

    fn datagram(&mut self, at: Micros, datagram: &Datagram<'_>) {
        let payload = datagram.payload;
        let from_switch = datagram.source.ip() == IpAddr::from([192, 0, 2, 20]);
        match (datagram.source.port() % 2, from_switch) {
            _ if datagram.source.port() == 5060 => {
                self.sip(at, datagram.source, std::str::from_utf8(payload).unwrap());
            }
            (0, true) => {
                self.session.sends(RtpPacket::parse(payload).unwrap().header.ssrc);
                self.session.sent(at, 1, datagram.destination);
            }
            (0, false) => {
                self.session.receive(at, datagram.source, payload);
            }
            (_, true) => self.session.sent_rtcp(at, payload),
            (_, false) => {
                self.session.receive_rtcp(at, datagram.source, payload);
            }
        }
    }
}

#[test]
fn a_live_leg_gives_the_same_answer() {
    for golden in golden::all().filter(|golden| golden.has_media()) {
        let file = bytes(golden);
        let session = Session::new(SessionConfig { audio_evidence: true, ..SessionConfig::default() });
        let mut live = Live { session, offer: None, settled: None, report: None };
        for record in Records::new(&file) {
            let record = record.unwrap();
            let Content::Udp(datagram) = dissect(record.link, record.frame) else { panic!("no datagram") };
            live.datagram(record.at, &datagram);
        }
        let report = live.report.unwrap();
        let analysis = analysis(golden);
        let offline = &analysis.calls[0].leg;
        assert_eq!(report.verdict, offline.verdict, "{}", golden.name);
        assert_eq!(report.figures, offline.figures, "{}", golden.name);
        assert_eq!(report.rtcp, offline.rtcp, "{}", golden.name);
        assert_eq!(report.audio, offline.audio, "{}", golden.name);
    }
}

/// A call's leg counts the packets that SDP settled, its stream counts all packets: here both counts are equal.
#[test]
fn a_call_loses_what_its_only_stream_loses() {
    let mut compared = 0;
    for golden in golden::all() {
        let analysis = analysis(golden);
        let Some(call) = analysis.calls.first() else { continue };
        let streams = call.streams.iter().map(|place| &analysis.streams[*place]);
        let streams: Vec<_> = streams.filter(|stream| stream.direction == Some("from_caller")).collect();
        let [stream] = streams[..] else { continue };
        compared += 1;
        let counted = |report: &Report| {
            let figures = &report.figures;
            (figures.received, figures.expected, figures.lost, figures.duplicates, figures.loss_pct)
        };
        assert_eq!(counted(&call.leg), counted(&stream.report), "{}", golden.name);
        assert_eq!((call.loss_pct, call.mos), (stream.loss_pct, stream.mos), "{}", golden.name);
    }
    assert!(compared >= 25, "only {compared} calls have one stream of the caller");
}

/// TShark's figures of a stream.
struct Theirs {
    packets: u64,
    /// The mean time between packets, which releases before 4 do not report, and the peak jitter.
    mean_delta_ms: Option<f64>,
    max_jitter_ms: f64,
}

/// The streams of a capture by source, destination and SSRC; `None` where TShark is missing and not required.
fn seen_by_tshark(path: &Path) -> Option<BTreeMap<(SocketAddr, SocketAddr, String), Theirs>> {
    let run = Command::new("tshark")
        .args(["--enable-heuristic", "rtp_udp", "-q", "-z", "rtp,streams", "-r"])
        .arg(path)
        .output();
    let output = match run {
        Ok(output) => output,
        Err(error) => {
            assert!(std::env::var_os("CI").is_none(), "tshark must be here in CI: {error}");
            return None;
        }
    };
    let (told, grief) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "tshark: {grief}");
    // A row: start, end, two addresses with their ports, SSRC, payloads, packets, lost, its share, times, remarks.
    let row = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let share = words.iter().position(|word| word.ends_with("%)"))?;
        let times: Vec<f64> = words[share + 1..].iter().map_while(|word| word.parse().ok()).collect();
        let (mean_delta_ms, max_jitter_ms) = match times[..] {
            [_, mean_delta, _, _, _, max_jitter] => (Some(mean_delta), max_jitter),
            [_, max_jitter, _] => (None, max_jitter),
            _ => panic!("this tshark writes another table: {line}"),
        };
        let address =
            |word: usize| SocketAddr::new(words[word].parse().unwrap(), words[word + 1].parse().unwrap());
        let packets = words[share - 2].parse().unwrap();
        let theirs = Theirs { packets, mean_delta_ms, max_jitter_ms };
        Some(((address(2), address(4), words[6].to_lowercase()), theirs))
    };
    Some(told.lines().filter_map(row).collect())
}

fn key(stream: &StreamReport) -> (SocketAddr, SocketAddr, String) {
    (stream.src.parse().unwrap(), stream.dst.parse().unwrap(), stream.ssrc.to_lowercase())
}

/// Whether TShark's figures must equal ours. It counts all packets alike, so they must be of one kind, each captured
/// once, without a pause or a gap in their sequence numbers.
fn is_plain(stream: &StreamReport) -> bool {
    let figures = &stream.report.figures;
    let counters = &stream.report.counters;
    // TShark knows no inferred clock, and it times packets without payload.
    let unknown = u64::from(stream.clock_rate_inferred) + counters.empty + counters.payload_type;
    let others =
        unknown + figures.comfort_noise + figures.events + figures.duplicates + figures.timestamp_resets;
    let breaks = figures.ssrc_changes + figures.sequence_jumps + figures.pauses + figures.interruptions;
    // A dynamic type beside a static one may be named by no SDP, and is timed with an inferred clock then.
    let is_mixed = stream.payload_types.iter().any(|number| *number >= 96) && stream.payload_types.len() > 1;
    others + breaks == 0 && !is_mixed
}

#[test]
fn tshark_sees_the_same_packets_and_plain_streams_as_we_do() {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("golden_tshark");
    fs::create_dir_all(&folder).unwrap();
    let mut compared = 0;
    for golden in golden::all() {
        let path = folder.join(golden.file());
        fs::write(&path, bytes(golden)).unwrap();
        let Some(theirs) = seen_by_tshark(&path) else {
            eprintln!("SKIPPED: there is no tshark here");
            return;
        };
        for stream in analysis(golden).streams {
            let name = format!("{} {}", golden.name, stream.ssrc);
            let Some(theirs) = theirs.get(&key(&stream)) else {
                panic!("{name}: unknown to TShark");
            };
            let (figures, counters) = (&stream.report.figures, &stream.report.counters);
            // TShark counts copies, packets without payload, and the first of two packets that confirm a jump.
            let others = figures.duplicates + counters.empty + figures.sequence_jumps;
            assert_eq!(theirs.packets, stream.packets + others, "{name}");
            let (Some(jitter), Some(interval)) = (stream.jitter_ms, stream.mean_interval_ms) else {
                continue;
            };
            if !is_plain(&stream) {
                continue;
            }
            compared += 1;
            let jitter = jitter.as_f64();
            assert!(
                (jitter - theirs.max_jitter_ms).abs() < 0.02,
                "{name}: {jitter}, {}",
                theirs.max_jitter_ms
            );
            if let Some(delta) = theirs.mean_delta_ms {
                assert!((interval.as_f64() - delta).abs() < 0.02, "{name}: {}, {delta}", interval.as_f64());
            }
        }
    }
    assert!(compared >= 20, "only {compared} streams are plain");
}

#[test]
fn a_folder_is_filled_and_filled_again_but_nothing_of_others_is_written_over() {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("golden");
    let _ = fs::remove_dir_all(&folder);
    let mut told = Vec::new();
    golden::write(&folder, &mut |name, len| told.push((name.to_owned(), len))).unwrap();
    assert_eq!(told.len(), golden::all().count());
    let index: Value = serde_json::from_slice(&fs::read(folder.join(golden::INDEX)).unwrap()).unwrap();
    for (entry, (name, len)) in index["captures"].as_array().unwrap().iter().zip(&told) {
        assert_eq!(entry["file"], name.as_str());
        assert_eq!(fs::metadata(folder.join(name)).unwrap().len(), *len);
    }
    golden::write(&folder, &mut |_, _| {}).expect("a corpus may be written anew");
    fs::write(folder.join(golden::INDEX), "{}").unwrap();
    let refused = golden::write(&folder, &mut |_, _| {}).unwrap_err().to_string();
    assert!(refused.contains("is there already"), "{refused}");
    fs::remove_dir_all(&folder).unwrap();
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("ok.pcap"), "mine").unwrap();
    let refused = golden::write(&folder, &mut |_, _| {}).unwrap_err().to_string();
    assert!(refused.contains("ok.pcap is there already"), "{refused}");
    assert_eq!(fs::read(folder.join("ok.pcap")).unwrap(), b"mine");
}
