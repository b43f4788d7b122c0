//! `analyze` and `simulate` from a shell: their output, its stream, and their exit status.

use std::fs;
use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use serde_json::Value;

struct Run {
    status: i32,
    stdout: String,
    stderr: String,
}

fn sidetone(arguments: &[&str], input: &[u8]) -> Run {
    let mut child = Command::new(env!("CARGO_BIN_EXE_sidetone"))
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // A command that refuses its arguments closes its input early.
    let _ = child.stdin.take().unwrap().write_all(input);
    let output = child.wait_with_output().unwrap();
    Run {
        status: output.status.code().unwrap(),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

/// A folder of its own for one test.
fn folder(name: &str) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("captures_cli_{name}"));
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    folder
}

#[test]
fn a_simulated_call_is_analysed() {
    let folder = folder("round_trip");
    let file = folder.join("lossy.pcap").to_string_lossy().into_owned();
    let made = sidetone(&["simulate", "lossy", "--seed", "3", "--duration", "10s", "-o", &file], b"");
    assert_eq!((made.status, made.stdout.as_str()), (0, ""), "{}", made.stderr);

    let table = sidetone(&["analyze", &file], b"");
    assert_eq!((table.status, table.stderr.as_str()), (0, ""));
    assert!(
        table.stdout.contains("lossy_inbound") && table.stdout.contains("lost on the way"),
        "{}",
        table.stdout
    );

    let json = sidetone(&["analyze", "--format", "json", &file], b"");
    let report: Value = serde_json::from_str(&json.stdout).unwrap();
    assert_eq!(report["calls"][0]["media_verdict"], "lossy_inbound");
    assert_eq!(report["calls"][0]["evidence"]["rule"], "lossy_inbound");
    assert_eq!(report["calls"][0]["blame"], "network");
    assert!(report["streams"].as_array().unwrap().iter().any(|stream| stream["reason"] == "loss"));
    assert_eq!(report["calls"][0]["rules"].as_array().map(Vec::len), Some(19));
    assert!(report["streams"].as_array().unwrap().iter().all(|stream| stream["pace_ratio"].is_number()));

    let page = folder.join("page.html").to_string_lossy().into_owned();
    let written = sidetone(&["analyze", "--format", "html", "-o", &page, &file], b"");
    assert_eq!((written.status, written.stdout.as_str(), written.stderr.as_str()), (0, "", ""));
    assert!(fs::read_to_string(&page).unwrap().ends_with("</html>\n"));
    let rows = sidetone(&["analyze", "--format", "csv", &file], b"");
    assert_eq!((rows.status, rows.stdout.lines().count()), (0, 3), "{}", rows.stdout);
    let streams = report["streams"].as_array().unwrap();
    let caller = streams.iter().find(|stream| stream["direction"] == "from_caller").unwrap();
    assert_eq!((&caller["ssrc"], &caller["ptime_ms"]), (&"0x00001111".into(), &20.into()));
    assert_eq!(report["skipped"], serde_json::json!({"not_ip": 0, "truncated": 0}));

    let out = folder.join("report.json").to_string_lossy().into_owned();
    let two = sidetone(&["analyze", "--format", "json", "-o", &out, &file, &file], b"");
    assert_eq!((two.status, two.stdout.as_str()), (0, ""));
    let reports: Value = serde_json::from_str(&fs::read_to_string(&out).unwrap()).unwrap();
    assert_eq!(reports.as_array().map(Vec::len), Some(2));

    let piped = sidetone(&["analyze", "-"], &fs::read(&file).unwrap());
    assert_eq!(piped.status, 0);
    assert!(piped.stdout.starts_with("standard input: "), "{}", piped.stdout);

    // The same seed gives the same bytes, also on a pipe.
    let again = Command::new(env!("CARGO_BIN_EXE_sidetone"))
        .args(["simulate", "lossy", "--seed", "3", "--duration", "10s", "-o", "-"])
        .output()
        .unwrap();
    assert_eq!(again.stdout, fs::read(&file).unwrap());
}

#[test]
fn what_is_wrong_is_told_in_one_line() {
    let folder = folder("wrong");
    let path = |name: &str| folder.join(name).to_string_lossy().into_owned();
    sidetone(&["simulate", "short", "-o", &path("short.pcap")], b"");
    let whole = fs::read(path("short.pcap")).unwrap();
    fs::write(path("cut.pcap"), &whole[..whole.len() - 7]).unwrap();
    fs::write(path("text.pcap"), b"hello, world").unwrap();
    fs::write(path("empty.pcap"), b"").unwrap();
    fs::write(path("header.pcap"), &whole[..24]).unwrap();
    let cases: [(&str, Vec<String>, i32, &str); 8] = [
        ("no such file", vec![path("none.pcap")], 1, "none.pcap: cannot be read"),
        ("a folder", vec![folder.to_string_lossy().into_owned()], 1, "it is a directory"),
        ("text", vec![path("text.pcap")], 1, "text.pcap: not a pcap or pcapng capture"),
        ("empty", vec![path("empty.pcap")], 1, "the file is empty"),
        ("header alone", vec![path("header.pcap")], 1, "holds no packet"),
        ("cut off", vec![path("cut.pcap")], 0, "the last record is incomplete"),
        ("one of two", vec![path("short.pcap"), path("none.pcap")], 1, "none.pcap: cannot be read"),
        (
            "no output",
            vec![path("short.pcap"), "-o".into(), path("no/where")],
            1,
            "no/where: cannot be written",
        ),
    ];
    for (name, files, status, told) in cases {
        let arguments: Vec<&str> =
            std::iter::once("analyze").chain(files.iter().map(String::as_str)).collect();
        let run = sidetone(&arguments, b"");
        assert_eq!(run.status, status, "{name}: {}", run.stderr);
        assert!(run.stderr.contains(told) && run.stderr.lines().count() == 1, "{name}: {}", run.stderr);
    }
    let cut = sidetone(&["analyze", &path("cut.pcap")], b"");
    assert!(cut.stdout.contains("1 call"), "what was read is printed: {}", cut.stdout);
}

/// Packets of a classic capture, with their headers.
fn packets(file: &[u8]) -> Vec<&[u8]> {
    let (mut rest, mut packets) = (&file[24..], Vec::new());
    while !rest.is_empty() {
        let len = 16 + u32::from_le_bytes(rest[8..12].try_into().unwrap()) as usize;
        packets.push(&rest[..len]);
        rest = &rest[len..];
    }
    packets
}

#[test]
fn a_capture_whose_times_are_not_sound_is_told() {
    let folder = folder("times");
    let path = |name: &str| folder.join(name).to_string_lossy().into_owned();
    sidetone(&["simulate", "clean", "--duration", "5s", "-o", &path("sorted.pcap")], b"");
    let sorted = fs::read(path("sorted.pcap")).unwrap();
    // As mergecap -a appends a capture of the audio to one of the signalling.
    let (sip, rtp): (Vec<&[u8]>, Vec<&[u8]>) =
        packets(&sorted).into_iter().partition(|packet| packet[16 + 42].is_ascii_uppercase());
    let from = sip.len() + 1;
    let appended = [&[&sorted[..24]][..], &sip, &rtp].concat().concat();
    fs::write(path("appended.pcap"), &appended).unwrap();

    let json = |run: &Run| serde_json::from_str::<Value>(&run.stdout).unwrap();
    let file = sidetone(&["analyze", "--format", "json", &path("appended.pcap")], b"");
    assert_eq!((file.status, file.stderr.as_str()), (0, ""), "a file is read in the order of time");
    let whole = sidetone(&["analyze", "--format", "json", &path("sorted.pcap")], b"");
    assert_eq!(json(&file)["calls"], json(&whole)["calls"]);
    assert_eq!(json(&file)["calls"][0]["media_verdict"], "ok");

    let piped = sidetone(&["analyze", "--format", "json", "-"], &appended);
    let told = format!("not in the order of time from packet {from} on");
    assert!(piped.stderr.contains(&told) && piped.stderr.lines().count() == 1, "{}", piped.stderr);
    let report = json(&piped);
    assert_eq!((piped.status, &report["times"]["out_of_order_from"]), (0, &from.into()));
    assert_eq!(report["calls"][0].get("media_verdict"), None);

    let words = |words: &[u32]| words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<u8>>();
    let mut untimed = words(&[0x0a0d_0d0a, 28, 0x1a2b_3c4d, 1, u32::MAX, u32::MAX, 28, 1, 20, 1, 0, 20]);
    for packet in packets(&sorted) {
        let frame = &packet[16..];
        let len = frame.len().next_multiple_of(4) + 16;
        untimed.extend(words(&[3, len as u32, frame.len() as u32]));
        untimed.extend(frame);
        untimed.resize(untimed.len().next_multiple_of(4), 0);
        untimed.extend(words(&[len as u32]));
    }
    let run = sidetone(&["analyze", "--format", "json", "-"], &untimed);
    assert!(run.stderr.contains("packets have no time") && run.stderr.lines().count() == 1, "{}", run.stderr);
    let report = json(&run);
    assert_eq!((run.status, &report["times"]["untimed"]), (0, &report["packets"]));
    for name in ["media_verdict", "mos", "jitter_ms", "mean_interval_ms"] {
        assert_eq!(report["calls"][0].get(name), None, "{name}");
    }
}

#[test]
fn a_wrong_command_line_is_status_2() {
    let cases: [&[&str]; 6] = [
        &["analyze"],
        &["analyze", "--format", "xml", "x.pcap"],
        &["simulate"],
        &["simulate", "clean"],
        &["simulate", "lousy", "-o", "x.pcap"],
        &["simulate", "clean", "loss=many", "-o", "x.pcap"],
    ];
    for arguments in cases {
        let run = sidetone(arguments, b"");
        assert_eq!(run.status, 2, "{arguments:?}: {}", run.stderr);
        assert!(!run.stderr.is_empty(), "{arguments:?}");
    }
    let list = sidetone(&["simulate", "--list"], b"");
    assert_eq!(list.status, 0);
    assert!(list.stdout.contains("wrong-ptime") && list.stdout.contains("ssrc_change"));
}
