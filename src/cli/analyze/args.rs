//! The arguments of `analyze`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use crate::cli::whole;

use super::choice::{Choice, Wanted};

/// The arguments of `analyze`.
#[derive(Args, Clone, Debug)]
#[command(after_help = "\
Each call is judged by the audio of its caller, as its record would be; each stream by itself.
A capture that is damaged is read as far as it goes. The header-only trace of a leg (*.trace,
see docs/trace.md) is read like a capture and judged as the leg was.

Exit status: 0 when packets were read from every file, 1 when not, 2 for a wrong command line,
3 when everything was read and --fail-on found its verdict.

Examples:
  sidetone analyze call.pcap
  sidetone analyze --format html -o report.html call.pcap
  sidetone analyze --worst 10 *.pcapng
  sidetone analyze -i monday.pcap
  sidetone analyze --from 1001 --verdict bad --split out/ monday.pcap
  sidetone analyze --call 3 --wav out/ monday.pcap
  sidetone analyze --fail-on no_inbound_media,lossy_inbound nightly.pcap
  tcpdump -w - udp | sidetone analyze -

docs/analyze.md says more.")]
pub struct AnalyzeArgs {
    /// Captures to read, pcap or pcapng, or traces of legs; - is the standard input.
    #[arg(required = true, value_name = "FILE")]
    pub(super) files: Vec<PathBuf>,
    /// Browse the calls on the terminal, the worst first: Enter shows the figures of both
    /// directions and the SIP messages, / filters.
    #[arg(short, long, conflicts_with_all = ["format", "output", "worst", "fail_on", "wav", "split"])]
    pub(super) interactive: bool,
    /// How the result is written; of several captures json writes an array, html one page.
    #[arg(long, value_enum, default_value_t = Format::Table)]
    pub(super) format: Format,
    /// Write the result here instead of the standard output; never over a file that is read.
    #[arg(short, long, value_name = "OUT")]
    pub(super) output: Option<PathBuf>,
    /// Show this call alone: its Call-ID, or its number in the table, such as --call 3. May be given several times.
    #[arg(long, value_name = "ID", help_heading = CHOOSING)]
    pub(super) call: Vec<String>,
    /// Show the calls of this caller alone; * stands for any digits, such as --from 1001 or --from '*41632960001'.
    /// May be given several times.
    #[arg(long, value_name = "NUMBER", help_heading = CHOOSING)]
    pub(super) from: Vec<String>,
    /// Show what has one of these verdicts alone: bad is every verdict but ok and unanswered, none is no verdict, such
    /// as --verdict bad or --verdict lossy_inbound,jittery_inbound.
    #[arg(long, value_name = "VERDICT", value_delimiter = ',', value_parser = Wanted::parse, help_heading = CHOOSING)]
    pub(super) verdict: Vec<Wanted>,
    /// Show the N worst calls, and streams without signalling, of all captures alone, the worst first in each capture,
    /// such as --worst 10.
    #[arg(long, value_name = "N", value_parser = |text: &str| whole::<u32>(text, 1, 100_000, 10), allow_negative_numbers = true, help_heading = CHOOSING)]
    pub(super) worst: Option<u32>,
    /// End with status 3 when a call or stream that is shown has one of these verdicts, such as --fail-on bad.
    #[arg(long, value_name = "VERDICT", value_delimiter = ',', value_parser = Wanted::parse, help_heading = CHOOSING)]
    pub(super) fail_on: Vec<Wanted>,
    /// Write the audio of what is shown into this folder, a WAV file for each stream, such as --wav out/. PCMU, PCMA,
    /// G.722 and Opus are decoded; what is not decoded is named.
    #[arg(long, value_name = "DIR", help_heading = EXTRACTING)]
    pub(super) wav: Option<PathBuf>,
    /// Write a capture of each call that is shown into this folder, by its addresses, time and Call-ID, such as
    /// --split out/.
    #[arg(long, value_name = "DIR", help_heading = EXTRACTING)]
    pub(super) split: Option<PathBuf>,
    /// Look at some samples of G.711 too, and say where packets carry silence or clipped sound.
    #[arg(long)]
    pub(super) audio: bool,
    /// Whether verdicts in the table have colours; NO_COLOR=1 in the environment is the same as never.
    #[arg(long, value_enum, value_name = "WHEN", default_value_t = Colour::Auto)]
    pub(super) color: Colour,
    /// Threads that read one file: one analyses it, up to seven read ahead [default: 2, or 1 where there is one core]
    #[arg(long, value_name = "N", value_parser = |text: &str| whole::<u8>(text, 1, 16, 2), allow_negative_numbers = true)]
    pub(super) threads: Option<u8>,
}

impl AnalyzeArgs {
    /// The calls and streams to show, and the verdicts that make the command fail.
    pub(super) fn choice(&self) -> Choice {
        Choice {
            calls: self.call.clone(),
            from: self.from.clone(),
            verdicts: self.verdict.clone(),
            fail_on: self.fail_on.clone(),
        }
    }
}

/// How the result is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Format {
    /// A row for each stream, each call without one and each registration, for spreadsheets.
    Csv,
    /// One page that needs nothing else: calls, their messages, plots over time.
    Html,
    /// One JSON object per capture, for programs.
    Json,
    /// Aligned text for people, as wide as the terminal.
    Table,
}

/// When verdicts have colours.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Colour {
    /// Always, also in files and pipes.
    Always,
    /// On a terminal.
    Auto,
    /// Never.
    Never,
}

const CHOOSING: &str = "Choosing calls";
const EXTRACTING: &str = "Extracting calls";
