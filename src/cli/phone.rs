//! `sidetone phone`: a small phone on the command line, for people and for scripts.

use std::io::{self, IsTerminal};
use std::net::{Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, ValueEnum};
use sidetone_phone::softphone::{self, Console, Script, Session, View};
use sidetone_phone::{Answering, Carrier, Phone, PhoneConfig, PhoneError, Recorder, Voice};
use sidetone_sip::sdp::CodecPolicy;
use tokio::net::UdpSocket;

use crate::cli::signals::Signals;
use crate::cli::{EXIT_FAILED, EXIT_WRONG, is_host_and_port};

/// The arguments of `phone`.
#[derive(Args, Clone, Debug)]
#[command(after_help = "\
The password is read from --password-file, from SIDETONE_PHONE_PASSWORD, or asked for on the terminal; it never
stands on the command line, where every user of the machine could read it. On the terminal, help lists the commands.

A script is a file of such commands, one a line, with waits and expectations between them; a line that begins with #
is a comment.
  wait registered|ringing|up|idle [30s]     expect call STATUS     how the last call ended
  wait note [TITLE] [30s]                   expect note FIELD VALUE   fields inside of others by dots: owes.EUR
  wait heard PACKETS [30s], wait 500ms      expect ack STATUS, expect notes COUNT

Exit status: 0 done, 1 when the registration or a step of the script failed, 2 for a wrong command line or script.

Examples:
  sidetone phone --user 1001 --domain acme.test --server 127.0.0.1:5060
  sidetone phone --user 1002 --domain acme.test --server pbx.acme.test --transport tcp --auto-answer --wav heard.wav
  sidetone phone --user 1001 --domain acme.test --password-file ada.txt --script owes.phone --json")]
pub struct PhoneArgs {
    /// The extension.
    #[arg(long, value_name = "NUMBER", value_parser = word)]
    user: String,
    /// The organisation's SIP domain.
    #[arg(long, value_name = "DOMAIN", value_parser = word)]
    domain: String,
    /// The address of the switch; the port is 5060 by default.
    #[arg(long, value_name = "HOST[:PORT]", default_value = "127.0.0.1:5060", value_parser = switch)]
    server: String,
    /// The transport of SIP.
    #[arg(long, value_enum, default_value_t = Transport::Udp)]
    transport: Transport,
    /// Read the password from the first line of this file.
    #[arg(long, value_name = "FILE")]
    password_file: Option<PathBuf>,
    /// Run the commands in this file instead of reading the terminal; - is the standard input.
    #[arg(long, value_name = "FILE")]
    script: Option<PathBuf>,
    /// Print one JSON object per line for every event.
    #[arg(long)]
    json: bool,
    /// Write the received audio into this file; an existing file is replaced.
    #[arg(long, value_name = "FILE.wav")]
    wav: Option<PathBuf>,
    /// Answer every call at once.
    #[arg(long)]
    auto_answer: bool,
    /// Send a tone instead of silence.
    #[arg(long)]
    tone: bool,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Transport {
    Tcp,
    Udp,
}

/// An error, and the exit status for it.
struct Failure(u8, String);

/// Runs the phone until it is ended; an error is one line.
pub fn run(args: &PhoneArgs) -> ExitCode {
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return failed(Failure(EXIT_FAILED, format!("cannot start the runtime ({error})"))),
    };
    match runtime.block_on(phone(args)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failed(failure),
    }
}

fn failed(Failure(status, message): Failure) -> ExitCode {
    crate::cli::tell!("sidetone: phone: {}", softphone::clean(&message));
    ExitCode::from(status)
}

async fn phone(args: &PhoneArgs) -> Result<(), Failure> {
    let script = args.script.as_deref().map(script).transpose()?;
    let password = password(args)?;
    let server = resolve(&args.server).await?;
    let mut signals = Signals::listen()
        .map_err(|error| Failure(EXIT_FAILED, format!("cannot listen for Ctrl-C ({error})")))?;
    let recorder = args.wav.as_deref().map(|path| {
        Recorder::create(path)
            .map_err(|error| Failure(EXIT_FAILED, format!("{}: cannot be written ({error})", path.display())))
    });
    let recorder = recorder.transpose()?;
    if matches!(args.transport, Transport::Udp) {
        listens(server).await?;
    }
    let config = PhoneConfig {
        codecs: CodecPolicy::new(["PCMA", "PCMU"]),
        answering: if args.auto_answer {
            Answering::Answer { after: Duration::ZERO, talk: None }
        } else {
            Answering::Ring
        },
        carrier: match args.transport {
            Transport::Tcp => Carrier::Tcp,
            Transport::Udp => Carrier::Udp,
        },
        voice: Some(if args.tone { Voice::Tone } else { Voice::Silence }),
        recorder: recorder.clone(),
        only_the_switch: true,
        calls_len_max: 1,
        ..PhoneConfig::new(server, args.domain.clone(), args.user.clone(), password)
    };
    let phone = Phone::start(config).await.map_err(|error| unreachable(server, args, &error))?;
    let mut session = Session::new(phone, &args.user, console(args, script.is_some()), recorder);
    let done = tokio::select! {
        done = work(&mut session, script.as_ref(), server, args) => done,
        () = signals.any() => Ok(()),
    };
    session.end().await;
    done
}

async fn work(
    session: &mut Session,
    script: Option<&Script>,
    server: SocketAddr,
    args: &PhoneArgs,
) -> Result<(), Failure> {
    session.register().await.map_err(|error| refused(server, args, &error))?;
    match script {
        None => {
            session.serve(softphone::lines()).await;
            Ok(())
        }
        Some(script) => {
            let name = args.script.as_deref().map(|path| path.display().to_string()).unwrap_or_default();
            session.play(script).await.map_err(|failed| Failure(EXIT_FAILED, format!("{name}: {failed}")))
        }
    }
}

fn script(path: &Path) -> Result<Script, Failure> {
    let read = if path == Path::new("-") {
        io::read_to_string(io::Read::take(io::stdin().lock(), SCRIPT_BYTES_MAX))
    } else {
        std::fs::File::open(path).and_then(|file| io::read_to_string(io::Read::take(file, SCRIPT_BYTES_MAX)))
    };
    let text =
        read.map_err(|error| Failure(EXIT_WRONG, format!("{}: cannot be read ({error})", path.display())))?;
    Script::parse(&text).map_err(|error| Failure(EXIT_WRONG, format!("{}: {error}", path.display())))
}

fn password(args: &PhoneArgs) -> Result<String, Failure> {
    let wrong = |error: softphone::SecretError| Failure(EXIT_WRONG, error.to_string());
    if let Some(path) = &args.password_file {
        return softphone::read(path).map_err(wrong);
    }
    if let Some(password) =
        std::env::var("SIDETONE_PHONE_PASSWORD").ok().filter(|password| !password.is_empty())
    {
        return Ok(password);
    }
    softphone::ask(&format!("password of {}@{}: ", args.user, args.domain)).map_err(wrong)
}

/// The address of `HOST[:PORT]`.
async fn resolve(server: &str) -> Result<SocketAddr, Failure> {
    let has_port = server.parse::<SocketAddr>().is_ok()
        || server
            .rsplit_once(':')
            .is_some_and(|(host, port)| !host.contains(':') && port.parse::<u16>().is_ok());
    let bare = server.trim_start_matches('[').trim_end_matches(']');
    let named = match bare {
        _ if has_port => server.to_owned(),
        v6 if v6.contains(':') => format!("[{v6}]:{SIP_PORT}"),
        host => format!("{host}:{SIP_PORT}"),
    };
    let found = tokio::net::lookup_host(named).await;
    let unknown = |why: String| {
        Failure(
            EXIT_FAILED,
            format!("{server}: no such host ({why}); --server takes HOST, HOST:PORT or [IPV6]:PORT"),
        )
    };
    let mut addresses = found.map_err(|error| unknown(error.to_string()))?;
    addresses.next().ok_or_else(|| unknown("it has no address".to_owned()))
}

/// Checks that the server is listening: a datagram to a closed port of a nearby host returns an error.
async fn listens(server: SocketAddr) -> Result<(), Failure> {
    let any: SocketAddr =
        if server.is_ipv4() { ([0, 0, 0, 0], 0).into() } else { (Ipv6Addr::UNSPECIFIED, 0).into() };
    let probe = async {
        let socket = UdpSocket::bind(any).await?;
        socket.connect(server).await?;
        // A keep-alive, which switches ignore (RFC 5626 §3.5.1).
        socket.send(b"\r\n\r\n").await?;
        socket.recv(&mut [0; 16]).await
    };
    match tokio::time::timeout(PROBE_TIME, probe).await {
        Ok(Err(error)) => Err(Failure(EXIT_FAILED, nobody(server, "udp", &error))),
        Ok(Ok(_)) | Err(_) => Ok(()),
    }
}

fn nobody(server: SocketAddr, transport: &str, error: &io::Error) -> String {
    format!(
        "{server}: no process listens there over {transport} ({error}); is the switch running, and --server right?"
    )
}

fn unreachable(server: SocketAddr, args: &PhoneArgs, error: &PhoneError) -> Failure {
    let transport = if matches!(args.transport, Transport::Tcp) { "tcp" } else { "udp" };
    match error {
        PhoneError::Io(error) => Failure(EXIT_FAILED, nobody(server, transport, error)),
        other => Failure(EXIT_FAILED, format!("failed to {other}")),
    }
}

fn refused(server: SocketAddr, args: &PhoneArgs, error: &PhoneError) -> Failure {
    let PhoneArgs { user, domain, .. } = args;
    let message = match error {
        PhoneError::Refused { status: 401 | 403 | 407, .. } => {
            format!(
                "{user}@{domain}: the switch does not take this user with this password ({error}); check --user, --domain and the password"
            )
        }
        PhoneError::Refused { status: 404, .. } => {
            format!("{user}@{domain}: the switch does not know this user; check --user and --domain")
        }
        PhoneError::Refused { status: 408, .. } => {
            format!("{server}: no answer; is the switch running, --server right and the way to it open?")
        }
        other => format!("failed to {other}"),
    };
    Failure(EXIT_FAILED, message)
}

fn console(args: &PhoneArgs, is_script: bool) -> Console {
    let out = Box::new(io::stdout());
    if args.json {
        return Console::json(out);
    }
    // <https://no-color.org>.
    let unwanted = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    let is_terminal = io::stdout().is_terminal();
    let colour = is_terminal && !unwanted && std::env::var_os("TERM").is_none_or(|term| term != "dumb");
    let view = View { colour, width: columns() };
    let prompt = (is_terminal && io::stdin().is_terminal() && !is_script).then(|| format!("{}> ", args.user));
    Console::text(out, view, prompt)
}

/// The columns of the terminal, if the shell sets them.
fn columns() -> usize {
    let columns = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
    columns.filter(|columns| (40..=500).contains(columns)).unwrap_or(COLUMNS)
}

/// The address of `--server`.
fn switch(text: &str) -> Result<String, String> {
    let bare = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')).unwrap_or(text);
    let is_host = !text.is_empty() && !text.contains([':', '[', ']']);
    if is_host || is_host_and_port(text) || bare.parse::<Ipv6Addr>().is_ok() {
        return Ok(text.to_owned());
    }
    Err("write HOST, HOST:PORT or [IPV6]:PORT, such as 192.0.2.10:5060".to_owned())
}

/// A user or a domain that is valid in a SIP URI.
fn word(text: &str) -> Result<String, String> {
    let is_fit = |c: char| c.is_ascii_alphanumeric() || "-_.+*".contains(c);
    if !text.is_empty() && text.len() <= 253 && text.chars().all(is_fit) {
        return Ok(text.to_owned());
    }
    Err("only letters, digits and - _ . + * can stand here".to_owned())
}

const SIP_PORT: u16 = 5060;
/// How long to wait for the system's error.
const PROBE_TIME: Duration = Duration::from_millis(150);
/// The default width of a terminal.
const COLUMNS: usize = 80;
/// A script is a few lines of text.
const SCRIPT_BYTES_MAX: u64 = 1 << 20;
