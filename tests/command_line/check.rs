//! `sidetone check`: its report on a machine, and its exit codes.

use std::net::{TcpListener, UdpSocket};
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

use sidetone_store::Store;

use crate::common::records::TempDir;

/// The exit code, stdout and stderr of `sidetone check` with this configuration.
fn check(dir: &Path, config: &str) -> (i32, String, String) {
    let file = dir.join("sidetone.toml");
    std::fs::write(&file, config).unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_sidetone"))
        .args(["check", "--config"])
        .arg(&file)
        .env_clear()
        .current_dir(dir)
        .output()
        .unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

/// An even port that was free a moment ago, together with the next one. Linux gives no port from 61,000 on to a socket that
/// asks for any port, so other tests and their connections leave it free.
fn port() -> u16 {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let is_free =
        |port| UdpSocket::bind(("0.0.0.0", port)).is_ok() && TcpListener::bind(("127.0.0.1", port)).is_ok();
    let mut ports = (0..PAIRS).map(|_| {
        let pair = (std::process::id() + COUNT.fetch_add(1, Ordering::Relaxed)) % PAIRS;
        61_000 + 2 * pair as u16
    });
    ports.find(|port| is_free(*port) && is_free(port + 1)).expect("two free ports from 61,000 on")
}

/// Even ports from 61,000 to 65,534.
const PAIRS: u32 = 2_268;

fn config(media: u16) -> String {
    format!(
        "[node]\ndata_dir = \"data\"\n[sip]\nlisten = [\"udp://127.0.0.1:0\"]\n[http]\nlisten = \"127.0.0.1:0\"\n\
         [media]\nports = \"{media}-{}\"\nreal_time = false\n",
        media + 1
    )
}

#[test]
fn a_machine_that_is_fit_is_said_to_be() {
    let dir = TempDir::new();
    // Another process may take the ports in between: then the check reports them, and others are tried.
    let found = (0..20).map(|_| check(dir.path(), &config(port()))).find(|(code, ..)| *code == 0);
    let (_, out, err) = found.unwrap();
    assert_eq!(err, "");
    let things: Vec<&str> = out.lines().map(|line| line.split(' ').next().unwrap()).collect();
    assert_eq!(things, ["data_dir", "database", "sip", "recordings", "http", "media", "open", "ok"], "{out}");
    assert!(out.contains("will be created at the first start"), "{out}");
    assert!(!dir.path().join("data").exists(), "nothing is made");
}

/// The child has the privileges of this process.
#[test]
fn real_time_priority_is_tried() {
    let dir = TempDir::new();
    let (_, out, err) = check(dir.path(), &config(port()).replace("real_time = false", "real_time = true"));
    let (granted, refused) =
        (out.contains("RTP threads get real-time priority"), err.contains("[media] real_time"));
    let is_granted = sidetone_media::net::try_real_time().is_ok();
    assert_eq!((granted, refused), (is_granted, !is_granted), "{out}{err}");
}

#[test]
fn every_problem_is_named_with_its_key() {
    let dir = TempDir::new();
    let held = [UdpSocket::bind("127.0.0.1:0").unwrap(), UdpSocket::bind("127.0.0.1:0").unwrap()];
    let [sip, rtp] = held.each_ref().map(|socket| socket.local_addr().unwrap());
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let web = listener.local_addr().unwrap();
    std::fs::write(dir.path().join("taken"), "a file").unwrap();
    std::fs::write(
        dir.path().join("junk.db"),
        "this is no database at all, however long it may be".repeat(50),
    )
    .unwrap();
    let first = rtp.port() & !1;
    let config = format!(
        "[node]\ndata_dir = \"taken\"\n[database]\nurl = \"sqlite://junk.db\"\n[sip]\nlisten = [\"udp://{sip}\"]\n\
         [http]\nlisten = \"{web}\"\n[media]\nports = \"{first}-{}\"\n\
         [outbound_http]\nextra_ca = \"taken\"\n",
        first + 1
    );
    let (code, _, err) = check(dir.path(), &config);
    assert_eq!(code, 1, "{err}");
    for said in [
        "[node] data_dir",
        "[database] url",
        "[sip] listen",
        "[http] listen",
        "warning: [media] ports",
        "[outbound_http] extra_ca taken",
    ] {
        assert!(err.lines().any(|line| line.starts_with(&format!("sidetone: {said}"))), "{said}: {err}");
    }
    assert_eq!(err.lines().count(), 6, "{err}");
    // The report names the process that holds the sockets, which has to be stopped.
    let holder = format!("(process {}); stop that program", std::process::id());
    assert_eq!(err.matches(&holder).count(), 2, "{err}");
}

#[test]
fn a_wrong_configuration_is_another_exit_code() {
    let dir = TempDir::new();
    let (code, out, err) = check(dir.path(), "[http]\nlisten = \"everywhere\"\n[nodes]\n");
    assert_eq!((code, out.as_str(), err.lines().count()), (2, "", 2), "one line each: {err}");
    assert!(err.lines().all(|line| line.starts_with("sidetone: ")), "{err}");
    assert!(err.contains("http.listen") && err.contains("nodes"), "{err}");
}

#[test]
fn a_port_of_ours_among_the_media_ports_is_a_warning() {
    let dir = TempDir::new();
    let port = port();
    let config = config(port).replace("udp://127.0.0.1:0", &format!("udp://127.0.0.1:{port}"));
    let (code, _, err) = check(dir.path(), &config);
    assert_eq!(code, 0, "the engine starts: {err}");
    assert!(err.contains("warning: ") && err.contains("of [sip] listen is one of them"), "{err}");
}

#[test]
fn a_database_is_looked_at_and_left_alone() {
    let dir = TempDir::new();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let file = dir.path().join("data/sidetone.db");
    runtime.block_on(async { Store::open(&file).await.unwrap().close().await });
    let files = || {
        let entries = std::fs::read_dir(dir.path().join("data")).unwrap();
        entries.map(|entry| entry.unwrap().file_name()).collect::<Vec<_>>()
    };
    let (before, bytes) = (files(), std::fs::read(&file).unwrap());
    let (_, out, _) = check(dir.path(), &config(port()));
    assert!(out.contains("database data/sidetone.db\n"), "{out}");
    assert_eq!(files(), before, "not even a log beside it");
    assert_eq!(std::fs::read(&file).unwrap(), bytes);
}

/// SRTP keys in SDP without TLS cause a warning, and none where TLS carries them.
#[test]
fn keys_without_tls_are_a_warning() {
    let dir = TempDir::new();
    let declared = |srtp: &str, transport: &str| {
        let file = dir.path().join("acme.toml");
        let text = format!(
            "[[organisations]]\nname = \"Acme\"\nsip_domain = \"acme.test\"\n[[organisations.extensions]]\n\
             number = \"1001\"\nsrtp = \"{srtp}\"\n[[trunks]]\nname = \"carrier\"\nsrtp = \"{srtp}\"\n\
             address = \"sip:carrier.example{transport}\"\n"
        );
        std::fs::write(&file, text).unwrap();
        let output = Command::new(env!("CARGO_BIN_EXE_sidetone"))
            .args(["apply", "--config", "sidetone.toml", "acme.toml"])
            .env_clear()
            .current_dir(dir.path())
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    };
    let config = config(port());
    let warnings = |config: &str| {
        let (code, _, err) = check(dir.path(), config);
        let warnings = err.lines().filter(|line| line.contains("their keys travel in SDP"));
        (code, warnings.map(|line| line.split(' ').nth(2).unwrap().to_owned()).collect::<Vec<_>>())
    };
    std::fs::write(dir.path().join("sidetone.toml"), &config).unwrap();
    declared("required", "");
    assert_eq!(warnings(&config), (0, vec!["extensions".to_owned(), "trunks".to_owned()]));
    declared("optional", ";transport=tls");
    assert_eq!(warnings(&config), (0, vec!["extensions".to_owned()]));
    declared("off", "");
    assert_eq!(warnings(&config), (0, vec![]));
}

/// An engine with known listeners, and the configuration that names them.
struct Running {
    process: std::process::Child,
    config: String,
}

impl Running {
    fn start(dir: &Path) -> Running {
        let listening = |udp: &str, tcp: &str, http: &str| {
            let media = port();
            format!(
                "[node]\ndata_dir = \"data\"\n[sip]\nlisten = [\"udp://{udp}\", \"tcp://{tcp}\"]\n\
                 [http]\nlisten = \"{http}\"\n[media]\nports = \"{media}-{}\"\n",
                media + 1
            )
        };
        let any = "127.0.0.1:0";
        std::fs::write(dir.join("serve.toml"), listening(any, any, any)).unwrap();
        let mut process = Command::new(env!("CARGO_BIN_EXE_sidetone"))
            .args(["serve", "--config", "serve.toml"])
            .env_clear()
            .current_dir(dir)
            .stdout(std::process::Stdio::piped())
            .stderr(std::process::Stdio::null())
            .spawn()
            .unwrap();
        let lines = std::io::BufRead::lines(std::io::BufReader::new(process.stdout.take().unwrap()));
        let lines: Vec<String> = lines.map(Result::unwrap).take_while(|line| line != "ready").collect();
        let address =
            |prefix: &str| lines.iter().find_map(|line| line.strip_prefix(prefix)).unwrap().to_owned();
        let config = listening(&address("sip udp://"), &address("sip tcp://"), &address("http http://"));
        Running { process, config }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }
}

#[test]
fn an_engine_that_runs_with_the_configuration_is_no_problem() {
    let dir = TempDir::new();
    let running = Running::start(dir.path());
    let (code, out, err) = check(dir.path(), &running.config);
    assert_eq!((code, err.as_str()), (0, ""), "{out}");
    assert_eq!(out.matches("in use by the running engine").count(), 3, "{out}");
    assert!(out.contains(&format!("an engine runs with it: process {}", running.process.id())), "{out}");
    // An address held by another program is still a problem.
    let other = TcpListener::bind("127.0.0.1:0").unwrap();
    let http = format!("listen = \"{}\"\n[media]", other.local_addr().unwrap());
    let (before, after) = running.config.split_once("[http]\n").unwrap();
    let config = format!("{before}[http]\n{http}{}", after.split_once("[media]").unwrap().1);
    let (code, _, err) = check(dir.path(), &config);
    assert_eq!((code, err.lines().count()), (1, 1), "{err}");
    assert!(err.contains("[http] listen") && err.contains("stop that program"), "{err}");
}

#[test]
fn an_address_of_no_interface_is_not_said_to_be_in_use() {
    let dir = TempDir::new();
    // TEST-NET-1: no machine has it.
    let (code, _, err) =
        check(dir.path(), &config(port()).replace("listen = \"127.0.0.1:0\"", "listen = \"192.0.2.1:80\""));
    assert_eq!(code, 1, "{err}");
    assert!(err.contains("no interface of this machine") && !err.contains("stop"), "{err}");
}

#[test]
fn what_the_database_refused_is_a_warning_and_a_command_lists_it() {
    let dir = TempDir::new();
    let letters = dir.path().join("data/dead-letters");
    std::fs::create_dir_all(&letters).unwrap();
    let letter = r#"{"kind": "note", "reason": "too long", "content": "a note"}"#;
    std::fs::write(letters.join("1-note.json"), letter).unwrap();
    let (code, _, err) = check(dir.path(), &config(port()));
    assert_eq!(code, 0, "the engine starts: {err}");
    assert!(err.contains("warning: 1 dead letters lie in") && err.contains("--replay"), "{err}");
    let run = |more: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_sidetone"))
            .arg("dead-letters")
            .args(more)
            .current_dir(dir.path())
            .output()
            .unwrap();
        (output.status.code(), String::from_utf8(output.stdout).unwrap())
    };
    let (code, out) = run(&[]);
    assert_eq!(code, Some(0), "{out}");
    assert!(out.starts_with("note data/dead-letters/1-note.json: too long"), "{out}");
    let (code, out) = run(&["--replay"]);
    assert_eq!(code, Some(1), "a letter is left");
    assert!(out.contains("is not stored again"), "{out}");
}

/// Addresses that cannot be bound beside each other, where each one alone can.
#[test]
fn addresses_that_exclude_each_other_are_a_problem() {
    let dir = TempDir::new();
    let port = port();
    let (v4, any) = (format!("127.0.0.1:{port}"), format!("0.0.0.0:{port}"));
    let cases = [
        (vec![format!("udp://{v4}"), format!("udp://{v4}")], "127.0.0.1:0", "[sip] listen udp"),
        (vec![format!("udp://{v4}"), format!("udp://{any}")], "127.0.0.1:0", "[sip] listen udp"),
        (vec![format!("tcp://{v4}"), format!("ws://{v4}")], "127.0.0.1:0", "[sip] listen ws"),
        (vec![format!("tcp://{v4}")], v4.as_str(), "[http] listen"),
    ];
    for (listen, http, key) in &cases {
        let config = config(crate::command_line::check::port())
            .replace("listen = \"127.0.0.1:0\"", &format!("listen = \"{http}\""))
            .replace("[\"udp://127.0.0.1:0\"]", &format!("{listen:?}"));
        let (code, _, err) = check(dir.path(), &config);
        assert_eq!((code, err.lines().count()), (1, 1), "{listen:?}: {err}");
        assert!(err.contains(key) && err.contains("has this port already"), "{listen:?}: {err}");
    }
    // UDP and TCP have ports of their own, and IPv6 those beside an IPv4 listener.
    let beside = [
        format!("udp://{v4}"),
        format!("tcp://{v4}"),
        format!("udp://[::]:{port}"),
        format!("tcp://[::]:{port}"),
    ];
    let config =
        config(crate::command_line::check::port()).replace("[\"udp://127.0.0.1:0\"]", &format!("{beside:?}"));
    let (_, _, err) = check(dir.path(), &config);
    assert!(!err.contains("has this port already"), "{err}");
}

#[test]
fn places_where_nothing_can_be_created_are_a_problem() {
    let dir = TempDir::new();
    std::fs::write(dir.path().join("afile"), "").unwrap();
    let place = |data: &str, more: &str| {
        let config = config(port()).replace("data_dir = \"data\"", &format!("data_dir = \"{data}\""));
        check(dir.path(), &format!("{config}{more}"))
    };
    for data in ["afile", "afile/sub", "/proc/x", "/proc/x/y"] {
        let (code, _, err) = place(data, "");
        assert_eq!(code, 1, "{data}: {err}");
        assert!(err.contains(&format!("[node] data_dir {data}: ")), "{data}: {err}");
    }
    let (code, _, err) = place("data", "[database]\nurl = \"sqlite://afile/sidetone.db\"\n");
    assert_eq!((code, err.lines().count()), (1, 1), "{err}");
    assert!(err.contains("[database] url afile/sidetone.db: afile is not a directory"), "{err}");
    let (code, _, err) = place("data", "[database]\nurl = \"sqlite://:memory:\"\n");
    assert_eq!(code, 2, "{err}");
    assert!(err.contains("database.url: must name a file, such as sqlite://data/sidetone.db"), "{err}");
    let left: Vec<_> =
        std::fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left.len(), 2, "the file and the configuration: {left:?}");
}

#[test]
fn a_range_without_a_free_pair_of_ports_says_that_no_call_gets_audio() {
    let dir = TempDir::new();
    let port = port();
    let _held = UdpSocket::bind(("127.0.0.1", port)).unwrap();
    let (code, _, err) = check(dir.path(), &config(port));
    assert_eq!(code, 0, "the engine starts: {err}");
    assert!(err.contains("warning: [media] ports") && err.contains("no call gets audio"), "{err}");
}

/// A damaged dead letter has a line of its own, and the others are listed.
#[test]
fn a_damaged_dead_letter_does_not_hide_the_others() {
    let dir = TempDir::new();
    let letters = dir.path().join("data/dead-letters");
    std::fs::create_dir_all(&letters).unwrap();
    let letter = |kind: &str| format!(r#"{{"kind": "{kind}", "reason": "too long", "content": "a note"}}"#);
    std::fs::write(letters.join("1.json"), letter("note")).unwrap();
    std::fs::write(letters.join("2.json"), "junk").unwrap();
    std::fs::write(letters.join("3.json"), letter("room_history")).unwrap();
    for more in [&[][..], &["--replay"]] {
        let output = Command::new(env!("CARGO_BIN_EXE_sidetone"))
            .arg("dead-letters")
            .args(more)
            .current_dir(dir.path())
            .output()
            .unwrap();
        let out = String::from_utf8(output.stdout).unwrap();
        assert_eq!(output.status.code(), Some(1), "{out}");
        let kinds: Vec<&str> = out.lines().map(|line| line.split(' ').next().unwrap()).collect();
        assert_eq!(kinds, ["note", "unreadable", "room_history"], "{out}");
        assert!(out.contains("2.json: is damaged (expected value at line 1 column 1)"), "{out}");
    }
}

/// A variable is named where it is wrong, not the file.
#[test]
fn a_wrong_variable_is_named() {
    let output = |name: &str, value: &str| {
        let command =
            Command::new(env!("CARGO_BIN_EXE_sidetone")).arg("check").env_clear().env(name, value).output();
        let output = command.unwrap();
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    let (code, err) = output("SIDETONE_LOG__LEVEL", "wran");
    assert_eq!(code, Some(2), "{err}");
    let expected = "sidetone: environment variable SIDETONE_LOG__LEVEL: \"wran\" is not a level: write off, error, warn, ";
    assert!(err.starts_with(expected), "{err}");
    let (_, err) = output("SIDETONE_SIP__LISTEN", "[\"udp://127.0.0.1:0\", \"tcp:127.0.0.1:0\"]");
    assert!(
        err.starts_with("sidetone: environment variable SIDETONE_SIP__LISTEN: \"tcp:127.0.0.1:0\" must be"),
        "{err}"
    );
    let (_, err) = output("RUST_LOG", "loud");
    assert!(err.contains("RUST_LOG is ignored: \"loud\" is not a level"), "{err}");
}
