//! `sidetone simulate SCENARIO`: generates impaired calls, as a capture or as live RTP.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io::{self, BufWriter, IsTerminal, Write};
use std::iter::Peekable;
use std::net::{SocketAddr, ToSocketAddrs, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::thread;
use std::time::{Duration, Instant};

use clap::Args;
use hdrhistogram::Histogram;
use indicatif::{ProgressBar, ProgressStyle};
use sidetone_capture as capture;
use sidetone_media::simulate::{CATALOGUE, KEYS, Scenario, Simulation};

use crate::cli::inputs::Inputs;
use crate::cli::{EXIT_WRONG, is_host_and_port};

/// The arguments of `simulate`.
#[derive(Args, Clone, Debug)]
#[command(after_help = "\
A scenario is a name, settings as key=value, or a name with settings that change it; --list shows all.
The same scenario and seed give the same packets, byte for byte.

Exit status: 0 done, 1 when writing or sending failed, 2 for a wrong scenario or command line.

Examples:
  sidetone simulate lossy -o lossy.pcap
  sidetone simulate clean jitter=normal:60:30 loss=1 duration=2m --seed 7 -o bad.pcap
  sidetone simulate unpaced --duration 10s --to 192.0.2.7:4000
  sidetone simulate lossy --calls 50 --duration 3m -o fifty.pcap
  sidetone simulate --golden golden/
  sidetone simulate --list")]
pub struct SimulateArgs {
    /// A scenario's name and settings, or a file that holds them.
    #[arg(required_unless_present_any = ["list", "golden"], value_name = "SCENARIO")]
    scenario: Vec<String>,
    /// Write a capture of the whole call here, SIP and both directions of RTP; - is the standard output.
    #[arg(short, long, value_name = "FILE.pcap", required_unless_present_any = ["to", "list", "golden"], conflicts_with = "to")]
    output: Option<PathBuf>,
    /// Send the caller's RTP to this address in real time.
    #[arg(long, value_name = "HOST:PORT", value_parser = receiver)]
    to: Option<String>,
    /// Use this seed for everything random.
    #[arg(long, value_name = "N", value_parser = |text: &str| super::whole::<u64>(text, 0, u64::MAX, 7), allow_negative_numbers = true)]
    seed: Option<u64>,
    /// Length of the call, such as 500ms, 30s, 2m or 3h; a bare number is seconds.
    #[arg(long, value_name = "TIME", value_parser = sidetone_model::duration::parse, allow_negative_numbers = true)]
    duration: Option<Duration>,
    /// Make this many calls, each with its own seed, Call-ID, number, SSRC and ports, 100 ms apart;
    /// with --to, call after call is sent to every second port from HOST:PORT on. Such as --calls 50.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = |text: &str| super::whole::<u32>(text, 1, capture::CALLS_MAX.into(), 50), allow_negative_numbers = true)]
    calls: u32,
    /// Write the golden captures into this folder: one per verdict, one for each way in which calls are misread,
    /// and golden.json, which has the right answers.
    #[arg(long, value_name = "DIR", conflicts_with_all = ["scenario", "output", "to", "seed", "duration", "calls", "list"])]
    golden: Option<PathBuf>,
    /// Print every named scenario and every setting.
    #[arg(long)]
    list: bool,
}

/// Generates the scenario.
pub fn run(args: &SimulateArgs) -> ExitCode {
    if args.list {
        return finish(io::stdout().write_all(list().as_bytes()), "the standard output");
    }
    if let Some(folder) = &args.golden {
        return finish(write_golden(folder), &written(folder));
    }
    let scenario = match scenario(args) {
        Ok(scenario) => scenario,
        Err(message) => {
            crate::cli::tell!("sidetone: {message}; sidetone simulate --list shows what there is");
            return ExitCode::from(EXIT_WRONG);
        }
    };
    match (&args.output, &args.to) {
        (Some(path), _) => finish(write_capture(args, &scenario, path), &written(path)),
        (None, Some(to)) => finish(send(&scenario, args.calls, to), to),
        // The command line requires one of the two.
        (None, None) => ExitCode::from(EXIT_WRONG),
    }
}

/// The address of `--to`.
fn receiver(text: &str) -> Result<String, String> {
    match is_host_and_port(text) {
        true => Ok(text.to_owned()),
        false => Err("write a host and a port, such as 192.0.2.7:4000 or [2001:db8::7]:4000".to_owned()),
    }
}

/// The message for a file or folder that cannot be written, before the reason.
fn written(path: &Path) -> String {
    format!("{}: cannot be written", path.display())
}

fn finish(done: io::Result<()>, place: &str) -> ExitCode {
    match done {
        Ok(()) => ExitCode::SUCCESS,
        // A closed pipe (`| head`) is not a failure.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(error) => {
            crate::cli::tell!("sidetone: {place}: {error}");
            ExitCode::FAILURE
        }
    }
}

/// The scenario of the command line.
fn scenario(args: &SimulateArgs) -> Result<Scenario, String> {
    let mut text = args.scenario.join(" ");
    if let [one] = &args.scenario[..]
        && Path::new(one).is_file()
    {
        let len = std::fs::metadata(one).map_or(0, |metadata| metadata.len());
        if len > SCENARIO_LEN_MAX {
            return Err(format!("{one}: a scenario is a few lines of text, this file has {len} bytes"));
        }
        text = std::fs::read_to_string(one).map_err(|error| format!("{one}: cannot be read: {error}"))?;
    }
    if let Some(duration) = &args.duration {
        text.push_str(&format!("\nduration={}ms", duration.as_millis()));
    }
    let scenario: Scenario = text.parse().map_err(|error| format!("simulate: {error}"))?;
    Ok(match args.seed {
        Some(seed) => scenario.with_seed(seed),
        None => scenario,
    })
}

fn write_capture(args: &SimulateArgs, scenario: &Scenario, path: &Path) -> io::Result<()> {
    let packets = if path == Path::new("-") {
        capture::compose_calls(scenario, args.calls, io::stdout().lock())?
    } else {
        let inputs: Vec<PathBuf> = args.scenario.iter().map(PathBuf::from).collect();
        let file = Inputs::of(&inputs).create(path)?;
        capture::compose_calls(scenario, args.calls, BufWriter::new(file))?
    };
    let verdict = scenario.expected.map_or_else(String::new, |verdict| format!("; its verdict is {verdict}"));
    let calls = if args.calls > 1 { format!("{} calls, ", args.calls) } else { String::new() };
    crate::cli::tell!(
        "{}: {calls}{packets} packets of \"{}\", seed {}{verdict}",
        path.display(),
        scenario.name,
        scenario.seed
    );
    Ok(())
}

/// Writes the golden captures, and lists them.
fn write_golden(folder: &Path) -> io::Result<()> {
    let mut out = io::stderr().lock();
    let (mut files, mut bytes) = (0_u32, 0);
    let mut said = Ok(());
    capture::golden::write(folder, &mut |name, len| {
        (files, bytes) = (files + 1, bytes + len);
        if said.is_ok() {
            said = writeln!(out, "{:>8} bytes  {name}", len);
        }
    })?;
    // A closed pipe does not affect the written files.
    let _ = said;
    writeln!(
        out,
        "{files} captures, {} kB, and {} with the right answers in {}",
        bytes / 1_000,
        capture::golden::INDEX,
        folder.display()
    )
}

/// One call being sent to its port.
struct Sending {
    packets: Peekable<Simulation>,
    socket: UdpSocket,
    /// How long after the first call it starts.
    offset: Duration,
}

impl Sending {
    /// The call with that number, counted from 0, from its own port to its own port.
    fn new(scenario: &Scenario, number: u32, to: SocketAddr) -> io::Result<Self> {
        let invalid =
            || io::Error::new(io::ErrorKind::InvalidInput, "there are not so many ports from there on");
        let port = u16::try_from(2 * number).ok().and_then(|ahead| to.port().checked_add(ahead));
        let to = SocketAddr::new(to.ip(), port.ok_or_else(invalid)?);
        let local: SocketAddr =
            if to.is_ipv4() { ([0, 0, 0, 0], 0).into() } else { (std::net::Ipv6Addr::UNSPECIFIED, 0).into() };
        let socket = UdpSocket::bind(local)?;
        socket.connect(to)?;
        let packets = Simulation::new(&capture::scenario_of_call(scenario, number)).peekable();
        let offset = Duration::from_millis(u64::from(capture::STAGGER_MS) * u64::from(number));
        Ok(Sending { packets, socket, offset })
    }

    /// When its next packet is due, counted from the start of the first call.
    fn next_at(&mut self) -> Option<Duration> {
        let packet = self.packets.peek()?;
        Some(self.offset + Duration::from_micros(u64::try_from(packet.at.0).unwrap_or(0)))
    }
}

/// Sends the callers' packets when they are due.
#[expect(clippy::disallowed_methods, reason = "this is the driver: it sends in real time")]
fn send(scenario: &Scenario, calls: u32, to: &str) -> io::Result<()> {
    let invalid = |what: String| io::Error::new(io::ErrorKind::InvalidInput, what);
    let to: SocketAddr = to
        .to_socket_addrs()
        .map_err(|error| invalid(format!("is no address such as 192.0.2.7:4000: {error}")))?
        .next()
        .ok_or_else(|| invalid("has no address".to_owned()))?;
    let mut sendings = Vec::new();
    for number in 0..calls {
        sendings.push(Sending::new(scenario, number, to)?);
    }
    announce(scenario, &sendings, to)?;
    let mut queue: BinaryHeap<Reverse<(Duration, usize)>> = BinaryHeap::new();
    for (place, sending) in sendings.iter_mut().enumerate() {
        queue.extend(sending.next_at().map(|at| Reverse((at, place))));
    }
    let bar = progress_bar(scenario, calls);
    let start = Instant::now();
    let (mut datagram, mut sent, mut refused) = (Vec::new(), 0_u64, 0_u64);
    let mut lateness_us =
        Histogram::<u64>::new_with_bounds(1, LATENESS_US_MAX, 3).map_err(io::Error::other)?;
    // Each iteration sends a packet, and every call has a bounded number of packets.
    while let Some(Reverse((at, place))) = queue.pop() {
        let Some(sending) = sendings.get_mut(place) else { break };
        let Some(packet) = sending.packets.next() else { break };
        let due = start + at;
        thread::sleep(due.saturating_duration_since(Instant::now()));
        packet.write(&mut datagram);
        let late_us = u64::try_from(due.elapsed().as_micros()).unwrap_or(u64::MAX);
        lateness_us.saturating_record(late_us.max(1));
        match sending.socket.send(&datagram) {
            Ok(_) => sent += 1,
            // The port is not open yet; RTP is sent anyway.
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => refused += 1,
            Err(error) => return Err(error),
        }
        bar.set_position(u64::try_from(at.as_millis()).unwrap_or(u64::MAX));
        queue.extend(sending.next_at().map(|at| Reverse((at, place))));
    }
    bar.finish_and_clear();
    let unheard = if refused > 0 { format!("; {refused} more found no listener") } else { String::new() };
    crate::cli::tell!("{sent} packets sent{unheard}; {}", punctuality(&lateness_us));
    Ok(())
}

/// Prints what is sent, with its source and destination.
fn announce(scenario: &Scenario, sendings: &[Sending], to: SocketAddr) -> io::Result<()> {
    let (name, seed) = (&scenario.name, scenario.seed);
    match sendings {
        [one] => {
            let port = one.socket.local_addr()?.port();
            crate::cli::tell!("sending \"{name}\", seed {seed}, from port {port} to {to}");
        }
        several => {
            let last = several.last().map(|last| last.socket.peer_addr()).transpose()?;
            let last = last.map_or(to.port(), |last| last.port());
            let count = several.len();
            crate::cli::tell!(
                "sending {count} calls of \"{name}\", seed {seed}, to every second port from {to} to {last}"
            );
        }
    }
    Ok(())
}

/// How late this machine sent its packets: any delay that the remote end measures beyond this is from the network.
fn punctuality(lateness_us: &Histogram<u64>) -> String {
    let ms = |us: u64| us as f64 / 1_000.0;
    format!(
        "behind schedule by {:.2} ms at the median, {:.2} ms at the 99th percentile, {:.2} ms at most",
        ms(lateness_us.value_at_quantile(0.5)),
        ms(lateness_us.value_at_quantile(0.99)),
        ms(lateness_us.max())
    )
}

/// More than a minute counts as a minute.
const LATENESS_US_MAX: u64 = 60_000_000;

fn progress_bar(scenario: &Scenario, calls: u32) -> ProgressBar {
    if !io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::new(
        u64::from(scenario.duration_ms) + u64::from(calls - 1) * u64::from(capture::STAGGER_MS),
    );
    bar.set_message(scenario.name.clone());
    match ProgressStyle::with_template("{msg} {wide_bar} {eta}") {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
}

/// The scenarios and the settings, aligned.
fn list() -> String {
    let mut out = String::from("Scenarios:\n");
    let width = |of: fn(usize) -> usize, count: usize| (0..count).map(of).max().unwrap_or(0);
    let names = width(|n| CATALOGUE.get(n).map_or(0, |entry| entry.name.len()), CATALOGUE.len());
    for entry in &CATALOGUE {
        out.push_str(&format!(
            "  {:<names$}  {:<24}  {}\n",
            entry.name,
            entry.expected.as_str(),
            entry.about
        ));
    }
    out.push_str("\nSettings:\n");
    let keys = width(|n| KEYS.get(n).map_or(0, |key| key.0.len()), KEYS.len());
    let forms = width(|n| KEYS.get(n).map_or(0, |key| key.1.len()), KEYS.len());
    for (key, form, meaning) in KEYS {
        out.push_str(&format!("  {key:<keys$}  {form:<forms$}  {meaning}\n"));
    }
    out
}

/// The text of a scenario is short; a longer file is not a scenario.
const SCENARIO_LEN_MAX: u64 = 65_536;

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        args: SimulateArgs,
    }

    fn parse(line: &str) -> Result<Scenario, String> {
        let words = std::iter::once("simulate").chain(line.split(' '));
        let line = Line::try_parse_from(words).map_err(|error| error.kind().to_string())?;
        scenario(&line.args)
    }

    #[test]
    fn command_lines() {
        let lossy = parse("lossy --seed 9 -o x.pcap").unwrap();
        assert_eq!((lossy.seed, lossy.expected.map(|verdict| verdict.as_str())), (9, Some("lossy_inbound")));
        let long = parse("clean loss=1 jitter=0..40 --duration 2m --to 192.0.2.1:4000").unwrap();
        assert_eq!((long.duration_ms, long.path.losses.len()), (120_000, 1));
        let times = [("5", 5_000), ("500ms", 500), ("3h", 10_800_000), ("1h30m", 5_400_000)];
        for (text, ms) in times {
            let scenario = parse(&format!("clean --duration {text} -o x.pcap")).unwrap();
            assert_eq!(scenario.duration_ms, ms, "{text}");
        }
        for wrong in
            ["lousy -o x.pcap", "clean -o x.pcap --duration long", "clean -o x.pcap duration=5", "clean"]
        {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
        assert!(parse("clean -o x.pcap --to 192.0.2.1:4000").is_err(), "one of both");
    }

    #[test]
    fn the_list_names_everything() {
        let list = list();
        assert!(CATALOGUE.iter().all(|entry| list.contains(entry.name)));
        assert!(KEYS.iter().all(|(key, ..)| list.contains(key)));
    }

    #[test]
    fn punctuality_is_told_in_milliseconds() {
        let mut lateness_us = Histogram::<u64>::new_with_bounds(1, LATENESS_US_MAX, 3).unwrap();
        (1..=100).for_each(|n| lateness_us.saturating_record(n * 100));
        lateness_us.saturating_record(u64::MAX);
        let told = punctuality(&lateness_us);
        assert!(told.starts_with("behind schedule by 5.1"), "{told}");
        assert!(told.contains("10.01 ms at the 99th") && told.contains("60030.97 ms at most"), "{told}");
    }

    #[test]
    fn live_packets_arrive_at_their_address() {
        let receiver = UdpSocket::bind("127.0.0.1:0").unwrap();
        let to = receiver.local_addr().unwrap().to_string();
        let scenario: Scenario = "clean duration=200ms".parse().unwrap();
        send(&scenario, 1, &to).unwrap();
        let mut buffer = [0; 256];
        for n in 0..10_u16 {
            let len = receiver.recv(&mut buffer).unwrap();
            assert_eq!((len, u16::from_be_bytes([buffer[2], buffer[3]])), (172, 1_000 + n));
        }
    }
}
