//! `sidetone analyze FILE…`: calls and RTP streams of captures, with the figures and verdicts of a live call.

use std::fs::File;
use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, ValueEnum};
use indicatif::{ProgressBar, ProgressStyle};

use crate::capture::{self, Analysis, EngineOptions, Parts, Source};
use crate::report::{self, Json};

/// The arguments of `analyze`.
#[derive(Args, Clone, Debug)]
#[command(after_help = "\
Each call is judged by the audio of its caller, as its record would be; each stream by itself.
A capture that is damaged is read as far as it goes. The header-only trace of a leg (*.trace,
see docs/trace.md) is read like a capture and judged as the leg was.

Exit status: 0 when packets were read from every file, 1 when not, 2 for a wrong command line.

Examples:
  sidetone analyze call.pcap
  sidetone analyze --format html -o report.html call.pcap
  sidetone analyze --format json -o report.json *.pcapng
  tcpdump -w - udp | sidetone analyze -")]
pub struct AnalyzeArgs {
    /// Captures to read, pcap or pcapng, or traces of legs; - is the standard input.
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// How the result is written; of several captures json writes an array, html one page.
    #[arg(long, value_enum, default_value_t = Format::Table)]
    format: Format,
    /// Look at some samples of G.711 too, and say where packets carry silence or clipped sound.
    #[arg(long)]
    audio: bool,
    /// Threads that read one file: one analyses it, up to seven read ahead [default: 2, or 1 where there is one core]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..=16))]
    threads: Option<u8>,
    /// Write the result here instead of the standard output.
    #[arg(short, long, value_name = "OUT")]
    output: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    /// A row for each stream, for spreadsheets.
    Csv,
    /// One page that needs nothing else: calls, their messages, plots over time.
    Html,
    /// One JSON object per capture, for programs.
    Json,
    /// Aligned text for people.
    Table,
}

/// Reads every capture and prints what it holds.
pub fn run(args: &AnalyzeArgs) -> ExitCode {
    let mut whole = true;
    let mut report = Report::new(args);
    let options = EngineOptions {
        threads: threads(args.threads),
        ladder: args.format == Format::Html,
        audio: args.audio,
        ..EngineOptions::default()
    };
    let mut written = Ok(());
    for path in &args.files {
        match analyze(path, options) {
            Ok(parts) => {
                whole &= parts.head.packets > 0;
                written = report.add(parts);
            }
            Err(error) => {
                eprintln!("sidetone: {}: cannot be read: {error}", path.display());
                whole = false;
            }
        }
        if written.is_err() {
            break;
        }
    }
    if let Err(error) = written.and_then(|()| report.finish()) {
        let place =
            args.output.as_deref().map_or_else(|| "the standard output".into(), Path::to_string_lossy);
        // A reader that has seen enough (`| head`) is no failure.
        if error.kind() != io::ErrorKind::BrokenPipe {
            eprintln!("sidetone: {place}: cannot be written: {error}");
            whole = false;
        }
    }
    if whole { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// How many threads share the work: all of them read, the first one looks up and counts as well.
fn threads(asked: Option<u8>) -> usize {
    let has_more = || std::thread::available_parallelism().is_ok_and(|cores| cores.get() > 1);
    asked.map_or_else(|| if has_more() { 2 } else { 1 }, usize::from)
}

/// Reads one capture as far as it goes; what is wrong with it is told on stderr.
fn analyze(path: &Path, options: EngineOptions) -> io::Result<Parts> {
    let name = if path == Path::new("-") { "standard input".into() } else { path.to_string_lossy() };
    let mut stdin;
    let (source, len) = if path == Path::new("-") {
        stdin = io::stdin().lock();
        (Source::Stream(&mut stdin), None)
    } else {
        let file = File::open(path)?;
        let metadata = file.metadata()?;
        if metadata.is_dir() {
            return Err(io::Error::new(io::ErrorKind::IsADirectory, "it is a directory"));
        }
        (Source::File(file), metadata.is_file().then_some(metadata.len()))
    };
    let bar = progress_bar(len, &name);
    let outcome = capture::read_parts(options, &name, source, &mut |bytes, packets| {
        bar.set_position(bytes);
        if !bar.is_hidden() {
            bar.set_message(format!("{name}: {}", speed(packets, bar.elapsed())));
        }
    });
    bar.finish_and_clear();
    if let Some(broken) = &outcome.broken {
        match outcome.parts.head.packets {
            0 => eprintln!("sidetone: {name}: {broken}"),
            packets => eprintln!("sidetone: {name}: {broken}; {packets} packets were read before it"),
        }
    } else if outcome.parts.head.packets == 0 {
        eprintln!("sidetone: {name}: the capture holds no packet");
    }
    Ok(outcome.parts)
}

/// A bar on a terminal; nothing else is ever written in its place.
fn progress_bar(len: Option<u64>, name: &str) -> ProgressBar {
    if !io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let (bar, template) = match len {
        Some(len) => (
            ProgressBar::new(len),
            "{wide_bar} {bytes}/{total_bytes} {decimal_bytes_per_sec}, {eta} left\n{msg}",
        ),
        None => (ProgressBar::new_spinner(), "{spinner} {bytes} {decimal_bytes_per_sec}\n{msg}"),
    };
    bar.enable_steady_tick(Duration::from_millis(200));
    bar.set_message(name.to_owned());
    // The template is a constant; were it wrong, the library's own would do.
    match ProgressStyle::with_template(template) {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
}

/// "1.2 million packets/s", over the whole time.
fn speed(packets: u64, elapsed: Duration) -> String {
    let rate = packets as f64 / elapsed.as_secs_f64().max(0.001);
    match rate {
        1e6.. => format!("{:.1} million packets/s", rate / 1e6),
        1e3.. => format!("{:.0} thousand packets/s", rate / 1e3),
        _ => format!("{rate:.0} packets/s"),
    }
}

/// The result under way.
struct Report<'a> {
    args: &'a AnalyzeArgs,
    /// JSON is written as it is made, since that of a large capture is larger than its file.
    json: Option<Json<Box<dyn Write>>>,
    /// A table needs the widest cell of each column, and nothing but cells.
    tables: Vec<String>,
    /// What the other formats need at once.
    analyses: Vec<Analysis>,
}

impl<'a> Report<'a> {
    fn new(args: &'a AnalyzeArgs) -> Self {
        Report { args, json: None, tables: Vec::new(), analyses: Vec::new() }
    }

    /// Takes a capture that was read.
    fn add(&mut self, parts: Parts) -> io::Result<()> {
        match self.args.format {
            Format::Csv | Format::Html => self.analyses.push(parts.into_analysis()),
            Format::Json => self.write_json(parts)?,
            Format::Table => self.tables.push(capture::table(parts)),
        }
        Ok(())
    }

    fn write_json(&mut self, parts: Parts) -> io::Result<()> {
        let json = match &mut self.json {
            Some(json) => json,
            None => {
                let out = self.out()?;
                let is_list = self.args.files.len() > 1;
                self.json.insert(if is_list { Json::list(out) } else { Json::object(out) })
            }
        };
        json.parts(parts)
    }

    /// Writes what is left; nothing where nothing was read.
    fn finish(self) -> io::Result<()> {
        if let Some(json) = self.json {
            let mut out = json.finish()?;
            out.write_all(b"\n")?;
            return out.flush();
        }
        let text = match self.args.format {
            Format::Csv if !self.analyses.is_empty() => report::csv(&self.analyses),
            Format::Html if !self.analyses.is_empty() => report::html(&self.analyses),
            Format::Table if !self.tables.is_empty() => self.tables.join("\n"),
            _ => return Ok(()),
        };
        let mut out = self.out()?;
        out.write_all(text.as_bytes())?;
        out.flush()
    }

    fn out(&self) -> io::Result<Box<dyn Write>> {
        Ok(match &self.args.output {
            Some(path) => Box::new(File::create(path)?),
            None => Box::new(io::stdout().lock()),
        })
    }
}
