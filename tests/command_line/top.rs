//! `sidetone top`: as text of a real engine, and on a terminal whose settings are restored.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use nix::pty::{Winsize, openpty};
use nix::sys::termios::{LocalFlags, tcgetattr};
use sidetone::tls::CertificateFiles;
use sidetone_phone::Answering;

use crate::common::receiver::Authority;
use crate::common::records::TempDir;
use crate::common::site::{KEY, PASSWORD, Site, answering, established, open_end, until, within};

const DIRECTORY: &str = r#"
[[organisations]]
name = "Acme"
sip_domain = "acme.test"
[[organisations.api_keys]]
name = "boss"
key = "tel_acmeboss0001_0123456789abcdefghijklmnopqrstuvwxyz"
preset = "full"
allow = ["127.0.0.1"]
rate_per_minute = 60000
"#;

async fn office() -> Site {
    let mut text = DIRECTORY.to_owned();
    for number in ["1001", "1002"] {
        text += &format!("[[organisations.extensions]]\nnumber = \"{number}\"\npassword = \"{PASSWORD}\"\n");
    }
    Site::with(&text).await
}

fn top(url: &str, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sidetone"));
    command.args(["top", "--url", url]).args(arguments).env_clear().env("TERM", "xterm").stdin(Stdio::null());
    command
}

async fn run(mut command: Command) -> (Output, String, String) {
    let output =
        within("the text", tokio::task::spawn_blocking(move || command.output().unwrap())).await.unwrap();
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    (output, out, err)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_live_call_is_printed_with_its_figures() {
    let site = office().await;
    let url = format!("http://{}", site.http);
    let caller = site.phone("1001", Answering::Ring).await;
    let callee = site.phone("1002", answering()).await;
    let call = async {
        established(&caller, &callee).await;
        let mut last = String::new();
        // The first figures appear after some packets.
        for _ in 0..200 {
            let mut command = top(&url, &["--once"]);
            command.env("SIDETONE_KEY", KEY);
            let (output, text, problem) = run(command).await;
            assert!(output.status.success(), "{problem}");
            last = text;
            let row = last.lines().find(|line| line.contains("1001") && line.contains("answered"));
            if row.is_some_and(|row| row.contains(" 4.") && row.contains("PCM")) {
                break;
            }
        }
        callee.hang_up().await.unwrap();
        last
    };
    let (outcome, text) = tokio::join!(caller.call(open_end("1002")), call);
    assert_eq!(outcome.unwrap().status, 200);
    // A stalled machine sends the audio at uneven intervals, which the verdict reports.
    let verdicts = ["ok ", "jittery inbound", "unpaced sender"];
    let is_judged = |line: &&str| verdicts.iter().any(|verdict| line.starts_with(verdict));
    let row = text.lines().find(is_judged).unwrap_or_else(|| panic!("{text}"));
    assert!(["4.", "1001", "1002", "answered"].iter().all(|part| row.contains(part)), "{text}");
    for part in ["Calls 1", "Registrations 2", "No room is live.", "There is no trunk."] {
        assert!(text.contains(part), "{part}:\n{text}");
    }
    assert!(!text.contains('\u{1b}'), "{text:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_wrong_is_named_with_what_to_do() {
    let site = office().await;
    let url = format!("http://{}", site.http);
    let cases: [(&str, &[&str], i32, &str); 5] = [
        (&url, &["--once"], 2, "no key: name a file with --key-file, or set SIDETONE_KEY"),
        (&url, &["--once", "--key", "tel_wrong_key"], 1, "check the key"),
        (&url, &["--once", "--key-file", "/nonexistent"], 2, "/nonexistent: cannot be read"),
        ("pbx.example.com", &["--key", KEY], 2, "give the URL of the server, such as https://"),
        ("http://127.0.0.1:9", &["--once", "--key", KEY], 1, "127.0.0.1 port 9: "),
    ];
    for (url, arguments, status, part) in cases {
        let (output, text, problem) = run(top(url, arguments)).await;
        assert_eq!(output.status.code(), Some(status), "{arguments:?}: {problem}");
        assert!(problem.contains(part) && text.is_empty(), "{arguments:?}: {problem}");
        assert!(!problem.contains(KEY), "{problem}");
    }
}

/// The program on a terminal of its own.
struct OnTerminal {
    process: Child,
    /// The other end of its terminal, and the terminal itself.
    user: File,
    terminal: OwnedFd,
    /// Everything that was written to the terminal.
    written: Arc<Mutex<Vec<u8>>>,
}

impl OnTerminal {
    fn start(mut command: Command) -> OnTerminal {
        let size = Winsize { ws_row: 30, ws_col: 120, ws_xpixel: 0, ws_ypixel: 0 };
        let pty = openpty(Some(&size), None).unwrap();
        let end = || Stdio::from(pty.slave.try_clone().unwrap());
        let process = command.stdin(end()).stdout(end()).stderr(end()).spawn().unwrap();
        let user: File = pty.master.into();
        let (written, mut reader) = (Arc::<Mutex<Vec<u8>>>::default(), user.try_clone().unwrap());
        let all = Arc::clone(&written);
        // The reader ends when the last program closes the terminal.
        std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(count @ 1..) = reader.read(&mut buffer) {
                all.lock().unwrap().extend_from_slice(&buffer[..count]);
            }
        });
        OnTerminal { process, user, terminal: pty.slave, written }
    }

    fn written(&self) -> String {
        String::from_utf8_lossy(&self.written.lock().unwrap()).into_owned()
    }

    /// Waits until the screen contains this.
    async fn shows(&self, part: &str) {
        until(part, || screen(&self.written()).contains(part)).await;
    }

    /// Whether the terminal echoes input, as before.
    fn echoes(&self) -> bool {
        tcgetattr(&self.terminal).unwrap().local_flags.contains(LocalFlags::ECHO | LocalFlags::ICANON)
    }

    async fn ends(&mut self) -> ExitStatus {
        let mut status = None;
        until("the program has ended", || {
            status = self.process.try_wait().unwrap();
            status.is_some()
        })
        .await;
        status.unwrap()
    }
}

/// The characters on a terminal after this output: the program writes only changed cells, anywhere on the screen.
fn screen(written: &str) -> String {
    let mut cells = vec![vec![' '; 120]; 30];
    let (mut row, mut column) = (0, 0);
    let mut letters = written.chars();
    while let Some(letter) = letters.next() {
        if letter != '\u{1b}' {
            if let Some(cell) = cells.get_mut(row).and_then(|row: &mut Vec<char>| row.get_mut(column)) {
                *cell = letter;
            }
            column += 1;
            continue;
        }
        // CSI, parameters, and the letter of the command.
        letters.next();
        let mut place = String::new();
        let command = letters.by_ref().find(|letter| {
            let is_command = letter.is_ascii_alphabetic();
            place.extend((!is_command).then_some(*letter));
            is_command
        });
        if command == Some('H') {
            let mut numbers = place.split(';').map(|number| number.parse::<usize>().unwrap_or(1) - 1);
            (row, column) = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
        }
    }
    cells.into_iter().map(|row| row.into_iter().collect::<String>() + "\n").collect()
}

impl Drop for OnTerminal {
    fn drop(&mut self) {
        // It may have exited already.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn the_terminal_is_put_back_whatever_ends_it() {
    let site = office().await;
    let url = format!("http://{}", site.http);
    let _phone = site.phone("1001", Answering::Ring).await;
    for end in ["q", "\u{3}", "SIGTERM"] {
        let mut terminal = OnTerminal::start(top(&url, &["--key", KEY]));
        assert!(terminal.echoes());
        terminal.shows("No call is up.").await;
        assert!(terminal.written().contains("\u{1b}[?1049h"), "the alternate screen");
        assert!(!terminal.echoes(), "keys are read one by one");
        terminal.user.write_all(b"\t").unwrap();
        terminal.shows("1001").await;
        match end {
            "SIGTERM" => {
                let sent = Command::new("kill").arg(terminal.process.id().to_string()).status().unwrap();
                assert!(sent.success());
            }
            keys => terminal.user.write_all(keys.as_bytes()).unwrap(),
        }
        assert!(terminal.ends().await.success(), "{end:?}");
        until("the screen is given back", || terminal.written().contains("\u{1b}[?1049l")).await;
        assert!(terminal.echoes(), "{end:?}");
    }
    // A lost connection to the server is shown, and does not end the program.
    let mut terminal = OnTerminal::start(top(&url, &["--key", KEY]));
    terminal.shows("No call is up.").await;
    site.stop(Duration::ZERO).await;
    terminal.shows("the next attempt is in").await;
    terminal.user.write_all(b"q").unwrap();
    assert!(terminal.ends().await.success());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_with_tls_is_known_by_its_authority() {
    let dir = TempDir::new();
    let authority = Authority::new();
    let (certificate, key) = authority.issue(dir.path(), "site", &["127.0.0.1"], false);
    let site = Site::configured(DIRECTORY, |config| {
        config.tls.certificates = vec![CertificateFiles { certificate, key, domains: Vec::new() }];
        config.http.tls = true;
    })
    .await;
    let url = format!("https://{}", site.http);
    let file = authority.file_in(dir.path()).display().to_string();
    let (output, text, problem) = run(top(&url, &["--once", "--key", KEY, "--ca", &file])).await;
    assert!(output.status.success() && text.contains("No call is up."), "{text}{problem}");
    let (output, _, problem) = run(top(&url, &["--once", "--key", KEY])).await;
    assert_eq!(output.status.code(), Some(1), "{problem}");
    assert!(problem.contains("TLS failed") && problem.contains("--ca names"), "{problem}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_capture_is_browsed_on_a_terminal() {
    let dir = TempDir::new();
    let file = dir.path().join("calls.pcap").display().to_string();
    let sidetone = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_sidetone"));
        command.args(arguments).env_clear().env("TERM", "xterm").stdin(Stdio::null());
        command
    };
    let simulate = sidetone(&["simulate", "lossy duration=3s", "--calls", "2", "-o", &file]);
    assert!(run(simulate).await.0.status.success());
    let (output, _, problem) = run(sidetone(&["analyze", "-i", &file])).await;
    assert_eq!(output.status.code(), Some(2), "{problem}");
    assert!(problem.contains("-i needs a terminal"), "{problem}");
    for end in ["q", "SIGTERM"] {
        let mut terminal = OnTerminal::start(sidetone(&["analyze", "-i", &file]));
        terminal.shows("lossy inbound").await;
        terminal.user.write_all(b"\r").unwrap();
        terminal.shows("From the caller: lossy inbound").await;
        terminal.user.write_all(b"\x7f").unwrap();
        terminal.shows("Verdict").await;
        match end {
            "q" => terminal.user.write_all(b"q").unwrap(),
            _ => {
                let sent = Command::new("kill").arg(terminal.process.id().to_string()).status().unwrap();
                assert!(sent.success());
            }
        }
        assert!(terminal.ends().await.success(), "{end}");
        assert!(terminal.echoes(), "{end}");
    }
}
