//! `sidetone tap`: records of the calls on an interface, for any switch.

use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use sidetone_media::time::Micros;
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::app::wall_clock;
use crate::cli::{EXIT_FAILED, EXIT_WRONG, task_failed};
use crate::config::Config;
use crate::log::Log;
use crate::tap::cdr_writer::RecordedCall;
use crate::tap::counters::TapCounters;
use crate::tap::interfaces;
use crate::tap::ring::{RING_MIB_MAX, RING_MIB_MIN, RingOptions};
use crate::tap::thread::TapOptions;
use crate::tap_app::{TapNode, TapStart};

/// The arguments of `tap`.
#[derive(clap::Args, Clone, Debug)]
#[command(after_help = "\
Every call becomes a record of one organisation: [tap] organisation, or the only one. The HTTP API is served on
[http] listen, as by `sidetone serve`. Each call is printed when it is over. SIGTERM and Ctrl-C end the calls that are
up, store every record and exit with 0. SIGHUP, which a closed terminal also sends, reads the configuration again.

Examples:
  sudo setcap cap_net_raw+ep $(command -v sidetone)
  sidetone tap -i eth0
  sidetone tap -i eth0 -i eth1 --organisation Acme --quiet
  sidetone tap -i any

Thresholds of the verdicts are [tap] verdict in the configuration, such as verdict = { loss_pct = 3.0 }.")]
pub struct TapArgs {
    /// An interface to listen on, or any for all that are up; may be given several times.
    #[arg(short, long = "interface", required = true, value_name = "IFACE")]
    interfaces: Vec<String>,
    /// The configuration file; by default sidetone.toml if it exists, else the built-in defaults.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// The organisation that owns the records.
    #[arg(long, value_name = "NAME")]
    organisation: Option<String>,
    /// Bytes to keep of each frame: its headers, and SIP as a whole.
    #[arg(long, value_name = "BYTES", default_value_t = 2_048, value_parser = |text: &str| super::whole::<u32>(text, 128, 65_535, 2_048))]
    snaplen: u32,
    /// Capture only frames for this host (no promiscuous mode).
    #[arg(long)]
    no_promiscuous: bool,
    /// The size of each interface's ring in MiB.
    #[arg(long, value_name = "MIB", default_value_t = 64, value_parser = |text: &str| super::whole::<u32>(text, RING_MIB_MIN as u64, RING_MIB_MAX as u64, 64))]
    ring: u32,
    /// Do not serve HTTP, such as beside a `sidetone serve` on the same database.
    #[arg(long)]
    no_http: bool,
    /// Print neither calls nor the state.
    #[arg(short, long)]
    quiet: bool,
}

/// Captures until it is stopped, and reports the result.
pub fn run(args: &TapArgs, log: &Log) -> ExitCode {
    let config = match Config::load(args.config.as_deref(), std::env::vars()) {
        Ok(config) => config,
        Err(error) => {
            crate::cli::tell!("sidetone: {error}");
            return ExitCode::from(EXIT_WRONG);
        }
    };
    log.set_level(config.log.level.as_deref());
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            crate::cli::tell!("sidetone: cannot start the runtime ({error})");
            return ExitCode::from(EXIT_FAILED);
        }
    };
    runtime.block_on(tap(args, config, log))
}

async fn tap(args: &TapArgs, mut config: Config, log: &Log) -> ExitCode {
    // The signal handlers are installed first, so that a signal during the start is not lost.
    let Ok(Signals { mut stop, mut hangup }) = Signals::listen() else {
        crate::cli::tell!("sidetone: cannot listen for SIGTERM");
        return ExitCode::from(EXIT_FAILED);
    };
    let ring = RingOptions { promiscuous: !args.no_promiscuous, snap_len: args.snaplen, ring_mib: args.ring };
    let interfaces = chosen(&args.interfaces);
    if interfaces.is_empty() {
        crate::cli::tell!(
            "sidetone: cannot start: no interface that is up can be read; name one, such as with -i eth0"
        );
        return ExitCode::from(EXIT_FAILED);
    }
    let start = TapStart {
        tap: TapOptions { interfaces: interfaces.clone(), ring, now },
        organisation: args.organisation.clone(),
        http: !args.no_http,
        tell: if args.quiet { Box::new(|_| {}) } else { Box::new(print_call) },
    };
    let node = match TapNode::start(&config, start).await {
        Ok(node) => node,
        Err(error) => {
            crate::cli::tell!("sidetone: cannot start: {error}");
            return ExitCode::from(EXIT_FAILED);
        }
    };
    announce(&interfaces, &node, config.http.scheme());
    let mut state = State::new(&node.counters);
    loop {
        tokio::select! {
            () = stop.told() => break,
            _ = hangup.recv() => config = reload(args, config, &node, log),
            task = node.failed() => {
                crate::cli::tell!("{}", task_failed(task));
                return ExitCode::from(EXIT_FAILED);
            }
            () = tokio::time::sleep(STATE_EVERY) => {
                if !args.quiet {
                    state.print(&node.counters);
                }
            }
        }
    }
    let counters = std::sync::Arc::clone(&node.counters);
    tokio::select! {
        () = node.stop() => {
            if !args.quiet {
                print_summary(&counters);
            }
            ExitCode::SUCCESS
        }
        // A second signal: records that are not in the database yet stay in the journal.
        () = stop.told() => {
            tracing::warn!("second stop signal: the last records stay in the journal for the next start");
            ExitCode::from(EXIT_FAILED)
        }
    }
}

/// The requested interfaces, each once; `any` means all that are up.
fn chosen(asked: &[String]) -> Vec<String> {
    let mut interfaces: Vec<String> = asked
        .iter()
        .flat_map(|name| if name == "any" { interfaces::all_up() } else { vec![name.clone()] })
        .collect();
    interfaces.sort_unstable();
    interfaces.dedup();
    interfaces
}

/// Reads the configuration again and applies what is possible during calls; an invalid one changes nothing.
fn reload(args: &TapArgs, config: Config, node: &TapNode, log: &Log) -> Config {
    let new = match Config::load(args.config.as_deref(), std::env::vars()) {
        Ok(new) => new,
        Err(error) => {
            tracing::error!(%error, "the configuration was not reloaded and nothing has changed");
            return config;
        }
    };
    let (config, waiting) = config.reloaded_by_tap(&new);
    log.set_level(config.log.level.as_deref());
    node.reload(&config);
    tracing::info!("the configuration was reloaded");
    for key in waiting {
        tracing::warn!("needs a restart: {key}");
    }
    config
}

/// The signals of a tap.
struct Signals {
    stop: Stop,
    /// Reads the configuration again. It is also sent when the terminal of the tap is closed, and does not end it.
    hangup: Signal,
}

impl Signals {
    fn listen() -> io::Result<Self> {
        Ok(Self { stop: Stop::listen()?, hangup: signal(SignalKind::hangup())? })
    }
}

/// The signals that end a tap.
struct Stop {
    interrupt: Signal,
    terminate: Signal,
}

impl Stop {
    fn listen() -> io::Result<Self> {
        Ok(Self { interrupt: signal(SignalKind::interrupt())?, terminate: signal(SignalKind::terminate())? })
    }

    async fn told(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}

/// The captured interfaces, one line each, then `ready`, which scripts wait for.
fn announce(interfaces: &[String], node: &TapNode, scheme: &str) {
    let mut lines: Vec<String> = interfaces.iter().map(|name| format!("tap {name}")).collect();
    lines.push(format!("organisation {}", node.organisation));
    lines.extend(node.http.map(|address| format!("http {scheme}://{address}")));
    lines.push("ready".to_owned());
    print(&lines.join("\n"));
}

/// Prints one finished call.
fn print_call(told: &RecordedCall) {
    print(&told.line(io::stdout().is_terminal()));
}

fn print(text: &str) {
    let mut out = io::stdout().lock();
    // A closed stdout does not stop the capture.
    let _ = writeln!(out, "{text}");
    let _ = out.flush();
}

/// The counters when the state was last printed.
struct State {
    packets: u64,
    dropped: u64,
}

impl State {
    fn new(counters: &TapCounters) -> Self {
        State { packets: TapCounters::read(&counters.packets), dropped: TapCounters::read(&counters.dropped) }
    }

    fn print(&mut self, counters: &TapCounters) {
        let now = State::new(counters);
        let packets = now.packets.saturating_sub(self.packets) / STATE_EVERY.as_secs();
        let dropped = now.dropped.saturating_sub(self.dropped);
        crate::cli::tell!(
            "{packets} packets/s, {} calls up, {} calls over, {} packets dropped{}",
            TapCounters::read(&counters.live_calls),
            TapCounters::read(&counters.calls),
            now.dropped,
            if dropped > 0 { format!(" ({dropped} of them now)") } else { String::new() },
        );
        *self = now;
    }
}

fn print_summary(counters: &TapCounters) {
    let read = |count| TapCounters::read(count);
    crate::cli::tell!(
        "{} calls, {} of them with something wrong; {} packets read, {} dropped",
        read(&counters.calls),
        read(&counters.faulty_calls),
        read(&counters.packets),
        read(&counters.dropped),
    );
}

/// The clock of the kernel's packet timestamps.
fn now() -> Micros {
    Micros(wall_clock().as_micros())
}

/// How often the state is printed.
const STATE_EVERY: Duration = Duration::from_secs(10);
