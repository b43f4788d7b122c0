//! `analyze` and `simulate` as scripts and support staff use them: choose, refuse, extract, and never overwrite input.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use serde_json::Value;

struct Run {
    status: i32,
    stdout: String,
    stderr: String,
}

fn sidetone(arguments: &[&str]) -> Run {
    let output = Command::new(env!("CARGO_BIN_EXE_sidetone"))
        .args(arguments)
        .stdin(Stdio::null())
        .env_remove("NO_COLOR")
        .output()
        .unwrap();
    Run {
        status: output.status.code().unwrap(),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

/// A folder of its own for one test.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("analyze_cli_{name}"));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).unwrap();
        Folder(folder)
    }

    fn path(&self, name: &str) -> String {
        self.0.join(name).to_string_lossy().into_owned()
    }

    /// Makes a capture.
    fn simulate(&self, name: &str, arguments: &[&str]) -> String {
        let path = self.path(name);
        let made = sidetone(&[&["simulate"], arguments, &["-o", &path]].concat());
        assert_eq!(made.status, 0, "{}", made.stderr);
        path
    }

    fn names(&self, folder: &str) -> Vec<String> {
        let entries = fs::read_dir(self.0.join(folder)).unwrap();
        let mut names: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect();
        names.sort_unstable();
        names
    }
}

fn json(arguments: &[&str]) -> Value {
    let run = sidetone(&[&["analyze", "--format", "json"], arguments].concat());
    assert_eq!(run.status, 0, "{}", run.stderr);
    serde_json::from_str(&run.stdout).unwrap()
}

#[test]
fn no_capture_is_ever_overwritten() {
    let folder = Folder::new("overwrite");
    let capture = folder.simulate("call.pcap", &["lossy", "--duration", "2s"]);
    let bytes = fs::read(&capture).unwrap();
    fs::hard_link(&capture, folder.path("hard.pcap")).unwrap();
    std::os::unix::fs::symlink(&capture, folder.path("soft.pcap")).unwrap();
    for name in ["call.pcap", "hard.pcap", "soft.pcap", "./call.pcap"] {
        for format in ["table", "csv", "json", "html"] {
            let target = folder.path(name);
            let run = sidetone(&["analyze", "--format", format, "-o", &target, &capture]);
            assert_eq!((run.status, run.stdout.as_str()), (2, ""), "{name} {format}: {}", run.stderr);
            assert!(run.stderr.contains("would be overwritten; choose another name"), "{}", run.stderr);
            assert_eq!(fs::read(&capture).unwrap(), bytes, "{name} {format}");
        }
    }
    // The standard input and the standard output are files as well.
    let input = fs::File::open(&capture).unwrap();
    let piped = Command::new(env!("CARGO_BIN_EXE_sidetone"))
        .args(["analyze", "-o", &capture, "-"])
        .stdin(input)
        .output()
        .unwrap();
    assert_eq!(piped.status.code(), Some(2));
    let appended = fs::OpenOptions::new().append(true).open(&capture).unwrap();
    let run = Command::new(env!("CARGO_BIN_EXE_sidetone"))
        .args(["analyze", &capture])
        .stdout(appended)
        .output()
        .unwrap();
    assert_eq!(run.status.code(), Some(2));
    // An extracted call may have the same name as a capture.
    fs::rename(&capture, folder.path("call-1.pcap")).unwrap();
    let run = sidetone(&["analyze", "--split", &folder.path(""), &folder.path("call-1.pcap")]);
    assert_eq!(run.status, 1, "{}", run.stderr);
    assert_eq!(fs::read(folder.path("call-1.pcap")).unwrap(), bytes);
    let scenario = folder.path("scenario.txt");
    fs::write(&scenario, "clean\nduration=2s\n").unwrap();
    let run = sidetone(&["simulate", &scenario, "-o", &scenario]);
    assert_eq!(run.status, 1, "{}", run.stderr);
    assert_eq!(fs::read_to_string(&scenario).unwrap(), "clean\nduration=2s\n");
    // An older report is overwritten.
    fs::write(folder.path("report.txt"), "an older and much longer report".repeat(1_000)).unwrap();
    let run = sidetone(&["analyze", "-o", &folder.path("report.txt"), &folder.path("call-1.pcap")]);
    assert_eq!(run.status, 0, "{}", run.stderr);
    assert!(!fs::read_to_string(folder.path("report.txt")).unwrap().contains("older"));
}

#[test]
fn calls_are_chosen() {
    let folder = Folder::new("choose");
    let lossy = folder.simulate("lossy.pcap", &["lossy", "--duration", "3s", "--calls", "4"]);
    let silent = folder.simulate("silent.pcap", &["no-inbound", "--duration", "5s", "--calls", "2"]);
    let clean = folder.simulate("clean.pcap", &["clean", "--duration", "3s"]);
    let froms = |report: &Value| -> Vec<String> {
        report["calls"].as_array().unwrap().iter().map(|call| call["from"].as_str().unwrap().into()).collect()
    };
    assert_eq!(froms(&json(&[&lossy])), ["1000", "1001", "1002", "1003"]);
    let one = json(&["--from", "1002", &lossy]);
    assert_eq!(froms(&one), ["1002"]);
    assert_eq!(one["calls"][0]["streams"], serde_json::json!([0, 1]));
    assert_eq!(one["streams"].as_array().map(Vec::len), Some(2));
    assert_eq!(one["packets"], json(&[&lossy])["packets"], "the facts are those of the capture");
    let id = one["calls"][0]["call_id"].as_str().unwrap();
    assert_eq!(froms(&json(&["--call", id, &lossy])), ["1002"]);
    assert_eq!(froms(&json(&["--call", "2", "--call", "4", &lossy])), ["1001", "1003"]);
    assert_eq!(froms(&json(&["--verdict", "bad", &lossy])).len(), 4);
    assert_eq!(froms(&json(&["--verdict", "ok,no-inbound-media", &lossy])).len(), 0);

    // The worst calls of all captures: those without audio, then a lossy one.
    let worst = json(&["--worst", "3", &clean, &lossy, &silent]);
    let files: Vec<(&str, usize)> = worst
        .as_array()
        .unwrap()
        .iter()
        .map(|report| (report["file"].as_str().unwrap(), report["calls"].as_array().unwrap().len()))
        .collect();
    assert_eq!(files, [(lossy.as_str(), 1), (silent.as_str(), 2)]);
    for format in ["table", "csv", "html"] {
        let run = sidetone(&["analyze", "--format", format, "--from", "1002", &lossy]);
        assert_eq!(run.status, 0, "{}", run.stderr);
        assert!(run.stdout.contains("1002") && !run.stdout.contains("1001"), "{format}: {}", run.stdout);
    }
    let table = sidetone(&["analyze", "--from", "1002", &lossy]).stdout;
    assert!(table.contains("1 of 4 calls, 2 of 8 RTP streams"), "{table}");
    let none = sidetone(&["analyze", "--from", "7", &lossy]);
    assert!(none.stdout.contains("0 of 4 calls") && none.status == 0, "{}", none.stdout);
}

#[test]
fn a_verdict_fails_a_script() {
    let folder = Folder::new("fail_on");
    let lossy = folder.simulate("lossy.pcap", &["lossy", "--duration", "3s"]);
    let clean = folder.simulate("clean.pcap", &["clean", "--duration", "3s"]);
    let missing = folder.path("none.pcap");
    let cases: [(&[&str], i32); 9] = [
        (&["--fail-on", "bad", &lossy], 3),
        (&["--fail-on", "bad", "--format", "json", &lossy], 3),
        (&["--fail-on", "no_inbound_media,lossy-inbound", "--format", "csv", &clean, &lossy], 3),
        (&["--fail-on", "no_inbound_media", &lossy], 0),
        (&["--fail-on", "bad", &clean], 0),
        (&["--fail-on", "bad", "--from", "7", &lossy], 0),
        (&["--fail-on", "bad", "--worst", "1", &clean, &lossy], 3),
        (&["--fail-on", "bad", &lossy, &missing], 1),
        (&["--fail-on", "awful", &lossy], 2),
    ];
    for (arguments, status) in cases {
        let run = sidetone(&[&["analyze"], arguments].concat());
        assert_eq!(run.status, status, "{arguments:?}: {}", run.stderr);
        if status == 3 {
            assert!(run.stderr.contains("--fail-on") && !run.stdout.is_empty(), "{}", run.stderr);
        }
    }
    let wrong = sidetone(&["analyze", "--fail-on", "awful", &lossy]).stderr;
    assert!(wrong.contains("lossy_inbound") && wrong.contains("bad"), "{wrong}");
}

#[test]
fn calls_are_extracted() {
    let folder = Folder::new("extract");
    let capture =
        folder.simulate("calls.pcap", &["lossy", "--duration", "3s", "--calls", "3", "hold=1s..2s"]);
    let (split, wav) = (folder.path("split"), folder.path("wav"));
    let run = sidetone(&["analyze", "--from", "100*", "--split", &split, "--wav", &wav, &capture]);
    assert_eq!(run.status, 0, "{}", run.stderr);
    assert_eq!(folder.names("split"), ["call-1.pcap", "call-2.pcap", "call-3.pcap"]);
    let whole = json(&[&capture]);
    for number in 1..=3 {
        let alone = json(&[&folder.path(&format!("split/call-{number}.pcap"))]);
        let (mut one, mut other) = (alone["calls"][0].clone(), whole["calls"][number - 1].clone());
        for call in [&mut one, &mut other] {
            call.as_object_mut().unwrap().remove("streams");
        }
        assert_eq!(one, other, "call {number} is judged as before");
        assert_eq!(alone["streams"].as_array().map(Vec::len), Some(2));
    }
    let names = folder.names("wav");
    assert_eq!(names.len(), 6, "{names:?}");
    assert!(names[0].starts_with("call-1-from-caller-"), "{names:?}");
    for name in names {
        let file = fs::read(folder.path(&format!("wav/{name}"))).unwrap();
        let wav = sidetone_media::audio::wav::Wav::parse(&file).unwrap();
        assert_eq!(wav.rate_hz(), 8_000);
        assert!((3 * 8_000..4 * 8_000).contains(&wav.frames()), "{name}: {}", wav.frames());
        assert!(wav.mono().iter().any(|sample| sample.abs() > 500), "{name} is silent");
    }
    // Again over files extracted earlier, and from two captures.
    let run = sidetone(&["analyze", "--split", &split, "--call", "1", &capture, &capture]);
    assert_eq!(run.status, 0, "{}", run.stderr);
    assert!(folder.names("split").contains(&"2-calls-call-1.pcap".to_owned()));
    let run = sidetone(&["analyze", "--split", &split, "-"]);
    assert_eq!(run.status, 2);
    assert!(run.stderr.contains("tcpdump -w call.pcap"), "{}", run.stderr);
}

/// The rows of a CSV text as cells by the names of their columns; a comma within quotes is text.
fn rows(text: &str) -> Vec<std::collections::HashMap<String, String>> {
    let cells = |line: &str| {
        let mut cells = vec![String::new()];
        let mut quoted = false;
        for letter in line.chars() {
            match letter {
                '"' => quoted = !quoted,
                ',' if !quoted => cells.push(String::new()),
                letter => cells.last_mut().unwrap().push(letter),
            }
        }
        cells
    };
    let mut lines = text.lines().map(cells);
    let names = lines.next().unwrap();
    lines
        .map(|cells| {
            assert_eq!(cells.len(), names.len(), "{cells:?}");
            names.iter().cloned().zip(cells).collect()
        })
        .collect()
}

/// The CSV output also lists the registrations of a capture, in their own rows.
#[test]
fn registrations_are_rows() {
    let folder = Folder::new("registrations");
    let golden = folder.path("golden");
    assert_eq!(sidetone(&["simulate", "--golden", &golden]).status, 0);
    let of = |name: &str| format!("{golden}/{name}.pcap");
    let run = sidetone(&[
        "analyze",
        "--format",
        "csv",
        &of("registration_refused"),
        &of("registration_accepted"),
        &of("lossy_towards_the_caller"),
    ]);
    assert_eq!(run.status, 0, "{}", run.stderr);
    let rows = rows(&run.stdout);
    let kinds: Vec<&str> = rows.iter().map(|row| row["kind"].as_str()).collect();
    assert_eq!(kinds, ["registration", "registration", "stream", "stream"], "{}", run.stdout);
    let told = json(&[&of("registration_refused")]);
    let (row, told) = (&rows[0], &told["registrations"][0]);
    for (column, key) in [
        ("aor", "aor"),
        ("src", "from"),
        ("dst", "registrar"),
        ("first_at", "first_at"),
        ("last_at", "last_at"),
        ("result", "result"),
        ("sentence", "sentence"),
    ] {
        assert_eq!(row[column], told[key].as_str().unwrap(), "{column}");
    }
    assert_eq!(row["tries"], told["tries"].to_string());
    assert_eq!(row["sip_status"], told["sip_status"].to_string());
    assert_eq!((row["call"].as_str(), row["stream"].as_str(), row["verdict"].as_str()), ("", "", ""));
    assert!(row["file"].ends_with("registration_refused.pcap"), "{row:?}");
    assert_eq!((rows[1]["result"].as_str(), rows[1]["accepted"].as_str()), ("registered", "1"));
    assert!(rows[1]["expires_s"].parse::<u32>().is_ok(), "{:?}", rows[1]);
    // Columns that scripts address by position stay where they were.
    let header = run.stdout.lines().next().unwrap();
    assert!(header.starts_with("file,call,call_id,call_from,"), "{header}");
    assert!(header.contains(",flags,sentence,kind,"), "{header}");
    // The table of contents of a page counts them, and a sentence is below the row of each.
    let (refused, accepted) = (of("registration_refused"), of("registration_accepted"));
    let page = sidetone(&["analyze", "--format", "html", &refused, &accepted]).stdout;
    assert!(page.contains("2 registrations, 1 of them not accepted."), "{page}");
    assert!(page.contains(">registration not accepted</span> <b>1</b>"), "{page}");
    assert!(
        page.contains("<tr class=\"words\"><td colspan=\"9\"><p>The registration was not accepted: "),
        "{page}"
    );
    // A call without a stream is a row of its own kind.
    let run = sidetone(&["analyze", "--format", "csv", &of("refused_busy")]);
    assert!(run.stdout.contains(",call,"), "{}", run.stdout);
}

/// An error on the command line is reported with an example of a valid value.
#[test]
fn wrong_numbers_and_empty_choices_are_explained() {
    let folder = Folder::new("wrong");
    let capture = folder.simulate("call.pcap", &["lossy", "--duration", "2s"]);
    for (arguments, expected) in [
        (["analyze", "--worst", "0", &capture], "from 1 to 100000, such as 10"),
        (["analyze", "--worst", "x", &capture], "from 1 to 100000, such as 10"),
        (["analyze", "--threads", "17", &capture], "from 1 to 16, such as 2"),
        (["simulate", "--calls", "1e9", "lossy"], "from 1 to 20000, such as 50"),
        (["simulate", "--seed", "abc", "lossy"], "from 0 on, such as 7"),
        (["simulate", "--duration", "-1", "lossy"], "such as 500ms, 30s, 2m or 1h30m"),
        (["simulate", "lossy", "--to", "192.0.2.7"], "write a host and a port, such as 192.0.2.7:4000"),
        (["tap", "-ilo", "--ring", "0"], "from 1 to 4096, such as 64"),
    ] {
        let run = sidetone(&arguments);
        assert_eq!(run.status, 2, "{arguments:?}: {}", run.stderr);
        assert!(run.stderr.contains(expected), "{arguments:?}: {}", run.stderr);
    }
    let run = sidetone(&["simulate", "lossy", "-o", "/nonexistent/x.pcap"]);
    assert!(
        run.status == 1 && run.stderr.contains("/nonexistent/x.pcap: cannot be written: "),
        "{}",
        run.stderr
    );
    let run = sidetone(&["analyze", "--call", "9", &capture]);
    assert_eq!(run.status, 0, "{}", run.stderr);
    assert!(run.stderr.contains("nothing was chosen"), "{}", run.stderr);
    assert!(!sidetone(&["analyze", "--call", "1", &capture]).stderr.contains("nothing was chosen"));
}

/// A reader that closes both outputs early causes no failure.
#[test]
fn outputs_that_are_closed_are_no_failure() {
    let folder = Folder::new("closed");
    let capture = folder.simulate("call.pcap", &["lossy", "--duration", "2s"]);
    let wav = folder.path("wav");
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let status = Command::new(env!("CARGO_BIN_EXE_sidetone"))
        .args(["analyze", "--call", "9", "--call", "1", "--wav", &wav, &capture])
        .stdin(Stdio::null())
        .stdout(writer.try_clone().unwrap())
        .stderr(writer)
        .status()
        .unwrap();
    assert_eq!(status.code(), Some(0));
    assert_eq!(folder.names("wav").len(), 2);
}

/// A clock that no SDP names was inferred: every format reports that.
#[test]
fn an_inferred_clock_is_named_in_every_format() {
    let folder = Folder::new("inferred");
    let golden = folder.path("golden");
    assert_eq!(sidetone(&["simulate", "--golden", &golden]).status, 0);
    let capture = format!("{golden}/late_opus_without_sdp.pcap");
    let written = |format: &str| {
        let run = sidetone(&["analyze", "--format", format, &capture]);
        assert_eq!(run.status, 0, "{}", run.stderr);
        run.stdout
    };
    let rows = rows(&written("csv"));
    let inferred: Vec<&str> = rows.iter().map(|row| row["clock_rate_inferred"].as_str()).collect();
    assert_eq!(inferred, ["false", "false", "true"]);
    assert_eq!(rows[2]["clock_rate"], "48000");
    assert!(written("table").contains("type 124 (48000 Hz inferred)"));
    let page = written("html");
    assert!(page.contains("type 124 (48000 Hz inferred)"), "the codec of the stream");
    assert_eq!(page.matches("by its timestamps it is audio at 48,000 Hz").count(), 1, "the sentence");
}

#[test]
fn colours_are_wanted_or_not() {
    let folder = Folder::new("colour");
    let capture = folder.simulate("call.pcap", &["lossy", "--duration", "10s"]);
    let always = sidetone(&["analyze", "--color", "always", &capture]).stdout;
    assert!(always.contains("\u{1b}[33mlossy_inbound\u{1b}[0m"), "{always}");
    for arguments in [&["analyze"][..], &["analyze", "--color", "never"]] {
        let run = sidetone(&[arguments, &[&capture]].concat());
        assert!(!run.stdout.contains('\u{1b}'), "{}", run.stdout);
    }
}

#[test]
fn a_duration_has_a_unit_or_is_seconds() {
    let folder = Folder::new("duration");
    for (text, seconds) in [("5", 5), ("2500ms", 2), ("1m", 60)] {
        let capture = folder.simulate("call.pcap", &["clean", "--duration", text]);
        assert_eq!(json(&[&capture])["calls"][0]["billsec"], seconds, "{text}");
    }
    let path = folder.path("x.pcap");
    for arguments in [
        &["simulate", "clean", "--duration", "soon", "-o", &path][..],
        &["simulate", "clean", "duration=5", "-o", &path],
        &["simulate", "clean", "--duration", "25h", "-o", &path],
    ] {
        let run = sidetone(arguments);
        assert_eq!(run.status, 2, "{arguments:?}");
        assert!(run.stderr.contains("30s, 2m"), "an example: {}", run.stderr);
    }
    let hours = sidetone(&["simulate", "clean", "packets=5", "--duration", "3h", "-o", &path]);
    assert_eq!(hours.status, 0, "{}", hours.stderr);
}

/// Linux attributes the peak memory of a process to its parent.
#[test]
fn rows_and_pages_of_many_calls_take_the_memory_of_a_few() {
    let folder = Folder::new("memory");
    let many = folder.simulate("many.pcap", &["lossy", "--duration", "3s", "--calls", "3000"]);
    let peak_kb = |arguments: &[&str]| -> u64 {
        let out = folder.path("out");
        let status = folder.path("status");
        // The shell reads the child's `/proc` status before the child has exited.
        let script = format!(
            "\"$@\" & child=$!; while kill -0 $child 2>/dev/null; do grep VmHWM /proc/$child/status > '{status}.new' \
             2>/dev/null && mv '{status}.new' '{status}'; done; wait $child"
        );
        let done = Command::new("sh")
            .args(["-c", &script, "sh", env!("CARGO_BIN_EXE_sidetone"), "analyze", "-o", &out])
            .args(arguments)
            .output()
            .unwrap();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        let text = fs::read_to_string(&status).unwrap();
        text.split_whitespace().nth(1).unwrap().parse().unwrap()
    };
    let json = peak_kb(&["--format", "json", &many]);
    for format in ["csv", "html"] {
        let peak = peak_kb(&["--format", format, &many]);
        // A page keeps the sections that it will show, 1,500 of them.
        assert!(peak < json + 80_000, "{format}: {peak} kB, json {json} kB");
    }
}
