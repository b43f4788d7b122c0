//! Real captures, compared with TShark's results; skipped with a message where the captures are missing.
//!
//! The captures belong to others and are not in the repository (`SIDETONE_SHARED`, or `../shared`). [`EXCEPTIONS`]
//! lists where TShark measures by other rules, each with its reason, and each reason is verified.
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test may stop at the first surprise"
)]

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use sidetone_capture::{self as capture, Analysis, Outcome, StreamReport};
use sidetone_media::pcap::{Content, Records, dissect};
use sidetone_media::rtp::Packet;

/// Streams that differ from TShark's result, with the rule that explains the difference.
const EXCEPTIONS: [(&str, &str, Rule); 10] = [
    ("fs_milliwatt_long_pcmu", "0x61dff08b", Rule::PeakAtTheStart),
    ("nd_rtp", "0x00001646", Rule::TooShort),
    ("nd_rtp", "0x001a7e73", Rule::TooShort),
    ("nd_rtp", "0x001a759f", Rule::TooShort),
    ("nd_rtp", "0x001a757d", Rule::TooShort),
    ("nd_rtp", "0xb80974d8", Rule::TooShort),
    ("nd_stun_dtls_rtp", "0x6d1c3cfa", Rule::TooShort),
    ("nd_stun_dtls_rtp", "0x321d28bb", Rule::TooShort),
    ("nd_stun_dtls_rtp", "0x2f696c70", Rule::TooShort),
    ("wsh_SIP_DTMF2", "0x5711bf84", Rule::Gaps),
];

/// The reason why a result may differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rule {
    /// Digits or comfort noise interrupt the audio; TShark's next sample spans the interruption (media.md §2).
    Gaps,
    /// The peak is among the first ten jitter samples, which are excluded (media.md §4.4).
    PeakAtTheStart,
    /// No SDP announces it, and it is too short to be judged (media.md §4.6): other traffic looks the same.
    TooShort,
}

#[test]
fn streams_are_counted_as_tshark_counts_them() {
    let Some(corpus) = Corpus::open() else { return };
    let (mut compared, mut problems) = (0, Vec::new());
    for row in corpus.table("streams_rfc3550.tsv") {
        let (file, ssrc) = (row["file"].as_str(), row["ssrc"].as_str());
        if !corpus.is_sound(file) {
            continue;
        }
        let analysis = corpus.analysis(file);
        let found = find(&analysis, &row);
        match (found, exception(file, ssrc)) {
            (None, Some(Rule::TooShort)) => {
                let (expected, span_s) =
                    (number(&row["expected"]), seconds(&row["last_ts"]) - seconds(&row["first_ts"]));
                assert!(expected < 50.0 && (expected < 20.0 || span_s < 1.0), "{file} {ssrc} is long enough");
            }
            (None, _) => problems.push(format!("{file} {ssrc}: not found")),
            (Some(stream), _) => {
                compared += 1;
                let loss = stream
                    .loss_pct
                    .map_or_else(|| row["lost_pct"].clone(), |loss| format!("{:.2}", loss.as_f64()));
                let ours = (stream.packets.to_string(), stream.lost.to_string(), loss);
                let truth = (row["unique"].clone(), row["lost"].clone(), row["lost_pct"].clone());
                if ours != truth {
                    problems.push(format!("{file} {ssrc}: {ours:?}, TShark {truth:?}"));
                }
            }
        }
    }
    assert!(problems.is_empty(), "{problems:#?}");
    assert!(compared >= 50, "only {compared} streams were compared");
    eprintln!("{compared} streams have TShark's packets, lost and loss_pct");
}

#[test]
fn peak_jitter_is_tsharks() {
    let Some(corpus) = Corpus::open() else { return };
    let (mut compared, mut problems) = (0, Vec::new());
    for row in corpus.table("streams.tsv") {
        let (file, ssrc) = (row["file"].as_str(), row["ssrc"].to_lowercase());
        let payloads = ["g711A", "g711U", "g722", "g729", "gsm"];
        if !corpus.is_sound(file) || !payloads.iter().any(|payload| row["payload"].contains(payload)) {
            continue;
        }
        let analysis = corpus.analysis(file);
        let Some(stream) = find(&analysis, &row) else { continue };
        // Fewer than 20 samples are not judged, so such a stream reports no jitter.
        let Some(ours) = stream.jitter_ms.map(|jitter| jitter.as_f64()) else {
            assert!(stream.packets < 40, "{file} {ssrc}: no jitter");
            continue;
        };
        let truth = number(&row["max_jitter"]);
        match exception(file, &ssrc) {
            Some(Rule::Gaps) => assert!(row["payload"].contains("telephone-event"), "{file} {ssrc}"),
            Some(Rule::PeakAtTheStart) => {
                let (whole, later) = oracle(&corpus.path(file), &ssrc);
                assert!(
                    (whole - truth).abs() < 0.05,
                    "{file} {ssrc}: the oracle says {whole}, TShark {truth}"
                );
                assert!((later - ours).abs() < 0.05, "{file} {ssrc}: {ours}, the oracle says {later}");
            }
            _ => {
                compared += 1;
                if (ours - truth).abs() > 0.05 {
                    problems.push(format!("{file} {ssrc}: {ours}, TShark {truth}"));
                }
            }
        }
    }
    assert!(problems.is_empty(), "{problems:#?}");
    assert!(compared >= 20, "only {compared} streams were compared");
    eprintln!("{compared} streams have TShark's peak jitter within 0.05 ms");
}

#[test]
fn other_traffic_holds_no_call_and_no_stream() {
    let Some(corpus) = Corpus::open() else { return };
    for (file, category) in &corpus.categories {
        if category == "negative" || category == "other-voip" {
            let Outcome { analysis, broken } = corpus.read(file);
            assert!(broken.is_none(), "{file}: {broken:?}");
            assert!(analysis.packets > 0, "{file}");
            assert!(analysis.calls.is_empty() && analysis.streams.is_empty(), "{file}: {analysis:#?}");
        }
    }
}

/// With a filter such as `port 5060` no audio can be missing.
#[test]
fn no_call_is_accused_by_a_capture_of_signalling_alone() {
    let Some(corpus) = Corpus::open() else { return };
    let (mut answered, mut refused) = (0, 0);
    for file in corpus.categories.keys() {
        let Outcome { analysis, .. } = corpus.read(file);
        for call in analysis.calls.iter().filter(|_| analysis.streams.is_empty()) {
            assert!(
                matches!(call.media_verdict, None | Some("unanswered")),
                "{file}: {:?}",
                call.media_verdict
            );
            let quality = call.quality();
            assert_eq!(quality.blame, None, "{file}");
            match &call.failure {
                None => {
                    answered += 1;
                    let words = "There is no audio in this capture, so none is judged.";
                    assert_eq!(quality.sentence, words, "{file} {}", call.call_id);
                }
                Some(failure) => {
                    refused += 1;
                    assert!(quality.sentence.contains("not answered"), "{file}: {}", quality.sentence);
                    let known = failure.status.is_none_or(|status| Some(status) == call.sip_status);
                    assert!(known, "{file}: {failure:?}");
                }
            }
        }
        let own = analysis.calls.iter().any(|call| call.leg.evidence.reason == "own_unreachable");
        assert!(!own, "{file}: no address of a foreign capture is ours");
    }
    assert!(answered >= 95 && refused >= 1_000, "{answered} answered, {refused} not");
}

/// A capture that contains only registrations lists their results.
#[test]
fn registrations_are_listed_with_their_final_status() {
    let Some(corpus) = Corpus::open() else { return };
    let cases = [
        ("sn_sip_register", "201@10.33.6.101", "registered", Some(200)),
        ("sn_sip_auth_failure", "telephone1@172.16.98.101", "refused", Some(403)),
        ("hp_ipip0", "1154@157.161.10.73", "challenged", Some(401)),
        ("sv_sip_tcp_method", "987654@192.168.43.100", "registered", Some(200)),
    ];
    for (file, aor, result, status) in cases {
        let Outcome { analysis, .. } = corpus.read(file);
        let found = analysis.registrations.iter().find(|one| one.aor == aor);
        let found = found.unwrap_or_else(|| panic!("{file}: {:?}", analysis.registrations));
        assert_eq!((found.result, found.sip_status), (result, status), "{file}: {}", found.sentence);
    }
}

#[test]
fn no_stream_is_invented_where_tshark_looked_for_them() {
    let Some(corpus) = Corpus::open() else { return };
    let rows = corpus.table("streams_rfc3550.tsv");
    for (file, category) in &corpus.categories {
        // For captures with SIP, TShark was queried for announced streams only.
        if category == "rtp-only" || category == "srtp-webrtc" {
            let known: BTreeSet<&str> =
                rows.iter().filter(|row| row["file"] == *file).map(|row| row["ssrc"].as_str()).collect();
            for stream in &corpus.analysis(file).streams {
                assert!(known.contains(stream.ssrc.as_str()), "{file}: {} is unknown to TShark", stream.ssrc);
            }
        }
    }
}

#[test]
fn damaged_captures_are_read_as_far_as_they_go() {
    let Some(corpus) = Corpus::open() else { return };
    for (file, category) in &corpus.categories {
        if category == "corrupt" || file.contains("fuzz") || file.contains("trunc") {
            let Outcome { analysis, broken } = corpus.read(file);
            assert!(broken.is_some() || analysis.packets > 0, "{file}");
            for stream in &analysis.streams {
                assert!(stream.lost <= stream.expected, "{file}: {stream:?}");
                assert!(
                    stream.loss_pct.is_none_or(|loss| (0..=10_000).contains(&loss.0)),
                    "{file}: {stream:?}"
                );
            }
        }
    }
    let netmon = corpus.read("sn_c07_sip_r2_netmon");
    assert!(netmon.broken.is_some_and(|broken| broken.to_string().contains("Network Monitor")));
    let cut = corpus.read("dv_trunc_midrecord_dtmf2");
    assert!(cut.broken.is_some_and(|broken| broken.to_string().contains("cut off at byte")));
    assert_eq!(cut.analysis.packets, 973);
}

#[test]
fn calls_end_as_tshark_saw_them_end() {
    let Some(corpus) = Corpus::open() else { return };
    let (mut compared, mut problems) = (0, Vec::new());
    for row in corpus.table("calls.tsv") {
        let (file, call_id) = (row["file"].as_str(), row["call_id"].as_str());
        let invited = row["invites"].parse().is_ok_and(|invites: u32| invites > 0);
        if !invited || !corpus.is_sound(file) {
            continue;
        }
        let analysis = corpus.analysis(file);
        let Some(call) = analysis.calls.iter().find(|call| call.call_id == call_id) else {
            problems.push(format!("{file} {call_id}: not found"));
            continue;
        };
        compared += 1;
        let status = call.sip_status.map_or_else(|| "-".to_owned(), |status| status.to_string());
        if status != row["invite_last_final"] {
            problems.push(format!("{file} {call_id}: {status}, TShark {}", row["invite_last_final"]));
        }
        // TShark takes the users from the first message of the Call-ID, whatever its method.
        if row["requests"].starts_with("INVITE") && !row["to_user"].is_empty() {
            assert_eq!(call.to, row["to_user"], "{file} {call_id}");
        }
    }
    assert!(problems.is_empty(), "{problems:#?}");
    assert!(compared >= 1_000, "only {compared} calls were compared");
    eprintln!("{compared} calls end with TShark's final status");
}

#[test]
fn digits_are_counted_as_tshark_counts_them() {
    let Some(corpus) = Corpus::open() else { return };
    let mut events: BTreeMap<(String, String), BTreeSet<(String, String)>> = BTreeMap::new();
    for row in corpus.table("dtmf_events.tsv") {
        let event = (row["rtp_timestamp"].clone(), row["event_id"].clone());
        events.entry((row["file"].clone(), row["ssrc"].to_lowercase())).or_default().insert(event);
    }
    let mut compared = 0;
    for ((file, ssrc), events) in events {
        let analysis = corpus.analysis(&file);
        // Without an announcement a dynamic type has no meaning.
        let announced = |stream: &&StreamReport| stream.ssrc == ssrc && stream.direction.is_some();
        let Some(stream) = analysis.streams.iter().find(announced) else { continue };
        compared += 1;
        assert_eq!(stream.report.figures.dtmf_events, events.len() as u64, "{file} {ssrc}");
    }
    assert!(compared >= 2, "only {compared} streams with digits were compared");
}

/// RFC 3550 §A.8 in floating point over all packets of an SSRC: the peak, and the peak after ten samples.
fn oracle(path: &Path, ssrc: &str) -> (f64, f64) {
    let wanted = u32::from_str_radix(ssrc.trim_start_matches("0x"), 16).unwrap();
    let bytes = fs::read(path).unwrap();
    let (mut last, mut jitter, mut peaks, mut samples) = (None, 0.0_f64, (0.0_f64, 0.0_f64), 0);
    for record in Records::new(&bytes).map_while(Result::ok) {
        let Content::Udp(datagram) = dissect(record.link, record.frame) else { continue };
        let Ok(packet) = Packet::parse(datagram.payload) else { continue };
        if packet.ssrc != wanted {
            continue;
        }
        let transit = record.at.0 as f64 / 1e3 - f64::from(packet.timestamp) / 8.0;
        if let Some(previous) = last.replace(transit) {
            let step: f64 = transit - previous;
            jitter += (step.abs() - jitter) / 16.0;
            samples += 1;
            peaks.0 = peaks.0.max(jitter);
            if samples > 10 {
                peaks.1 = peaks.1.max(jitter);
            }
        }
    }
    peaks
}

fn exception(file: &str, ssrc: &str) -> Option<Rule> {
    // A derived capture keeps the exceptions of its original.
    let origin = if file == "dv_trunc_midrecord_dtmf2" { "wsh_SIP_DTMF2" } else { file };
    EXCEPTIONS.iter().find(|(name, known, _)| *name == origin && *known == ssrc).map(|(_, _, rule)| *rule)
}

fn find<'a>(analysis: &'a Analysis, row: &Row) -> Option<&'a StreamReport> {
    let end = |ip: &str, port: &str| {
        if ip.contains(':') { format!("[{ip}]:{port}") } else { format!("{ip}:{port}") }
    };
    let (src, dst) = (end(&row["src_ip"], &row["sport"]), end(&row["dst_ip"], &row["dport"]));
    let ssrc = row["ssrc"].to_lowercase();
    analysis.streams.iter().find(|stream| stream.src == src && stream.dst == dst && stream.ssrc == ssrc)
}

fn number(text: &str) -> f64 {
    text.parse().unwrap_or(0.0)
}

fn seconds(text: &str) -> f64 {
    number(text)
}

type Row = BTreeMap<String, String>;

/// The captures and the expected data about them.
struct Corpus {
    folder: PathBuf,
    categories: BTreeMap<String, String>,
    /// The file that was read last; tables name one file in many rows.
    last: RefCell<Option<(String, Rc<Analysis>)>>,
}

impl Corpus {
    fn open() -> Option<Self> {
        let shared = std::env::var_os("SIDETONE_SHARED")
            .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared"), PathBuf::from);
        let folder = shared.join("captures");
        if !folder.join("INDEX.tsv").is_file() {
            eprintln!("SKIPPED: no captures at {}; SIDETONE_SHARED names their folder", folder.display());
            return None;
        }
        let corpus = Corpus { folder, categories: BTreeMap::new(), last: RefCell::default() };
        let categories =
            corpus.rows("INDEX.tsv").into_iter().map(|row| (row["name"].clone(), row["category"].clone()));
        Some(Corpus { categories: categories.collect(), ..corpus })
    }

    /// Whether the file is neither damaged nor other traffic, so that TShark's result can be compared.
    fn is_sound(&self, file: &str) -> bool {
        let category = self.categories.get(file).map_or("", String::as_str);
        !matches!(category, "corrupt" | "negative") && !file.contains("fuzz")
    }

    fn path(&self, file: &str) -> PathBuf {
        self.folder.join(format!("{file}.pcap"))
    }

    fn read(&self, file: &str) -> Outcome {
        let mut input = fs::File::open(self.path(file)).unwrap();
        capture::read(file, &mut input, &mut |_| {})
    }

    fn analysis(&self, file: &str) -> Rc<Analysis> {
        let mut last = self.last.borrow_mut();
        if let Some((_, analysis)) = last.as_ref().filter(|(name, _)| name == file) {
            return Rc::clone(analysis);
        }
        let analysis = Rc::new(self.read(file).analysis);
        *last = Some((file.to_owned(), Rc::clone(&analysis)));
        analysis
    }

    fn table(&self, name: &str) -> Vec<Row> {
        self.rows(&format!("truth/{name}"))
    }

    fn rows(&self, name: &str) -> Vec<Row> {
        let text = fs::read_to_string(self.folder.join(name)).unwrap();
        let mut lines = text.lines().map(|line| line.split('\t').map(str::to_owned));
        let header: Vec<String> = lines.next().unwrap().collect();
        lines.map(|cells| header.iter().cloned().zip(cells).collect()).collect()
    }
}
