//! Runs `analyze`: reads every capture, writes the result, extracts calls.

use std::io;
use std::path::Path;
use std::process::ExitCode;

use sidetone_capture::{EngineOptions, Groups};

use crate::cli::inputs::Inputs;
use crate::cli::{EXIT_FAILED, EXIT_WRONG, terminal};

use super::args::{AnalyzeArgs, Format};
use super::browse::Browsed;
use super::excerpts;
use super::reading::analyze;
use super::report::Report;

/// Reads every capture and prints its content.
pub fn run(args: &AnalyzeArgs) -> ExitCode {
    let inputs = Inputs::of(&args.files);
    if let Err(message) = check(args, &inputs) {
        crate::cli::tell!("sidetone: {message}");
        return ExitCode::from(EXIT_WRONG);
    }
    if args.interactive {
        return browse(args);
    }
    let mut whole = true;
    let mut report = Report::new(args, &inputs);
    let options = EngineOptions {
        threads: threads(args.threads),
        ladder: args.format == Format::Html || args.split.is_some(),
        audio: args.audio,
        ..EngineOptions::default()
    };
    let mut written = Ok(());
    for (file, path) in args.files.iter().enumerate() {
        match analyze(path, options) {
            Ok(parts) => {
                whole &= parts.head.packets > 0;
                written = report.add(file, parts);
            }
            Err(error) => {
                crate::cli::tell!("sidetone: {}: cannot be read: {error}", path.display());
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
        // A closed pipe (`| head`) is not a failure.
        if error.kind() != io::ErrorKind::BrokenPipe {
            crate::cli::tell!("sidetone: {place}: cannot be written: {error}");
            whole = false;
        }
    }
    if whole && report.has_chosen_nothing() {
        crate::cli::tell!(
            "sidetone: nothing was chosen: no call and no stream has what --call, --from and --verdict ask for"
        );
    }
    if let Err(message) = excerpts::extract(args, &inputs, &report.excerpts) {
        crate::cli::tell!("sidetone: {message}");
        whole = false;
    }
    if !whole {
        return ExitCode::from(EXIT_FAILED);
    }
    if report.failures > 0 {
        let count = report.failures;
        let (noun, have) = if count == 1 { ("call or stream", "has") } else { ("calls or streams", "have") };
        crate::cli::tell!("sidetone: {count} {noun} {have} a verdict of --fail-on");
        return ExitCode::from(EXIT_FOUND);
    }
    ExitCode::SUCCESS
}

/// Reads every capture, and shows the calls on the terminal.
fn browse(args: &AnalyzeArgs) -> ExitCode {
    if !terminal::is_there() {
        crate::cli::tell!("sidetone: -i needs a terminal; without it a table is written");
        return ExitCode::from(EXIT_WRONG);
    }
    let mut browsed = Browsed::new(args);
    let options = EngineOptions {
        threads: threads(args.threads),
        ladder: true,
        audio: args.audio,
        ..EngineOptions::default()
    };
    for (file, path) in args.files.iter().enumerate() {
        match analyze(path, options) {
            Ok(parts) => browsed.add(file, Groups::from(parts)),
            Err(error) => {
                crate::cli::tell!("sidetone: {}: cannot be read: {error}", path.display());
                return ExitCode::from(EXIT_FAILED);
            }
        }
    }
    browsed.show()
}

/// Refuses arguments that would overwrite a capture, or are not possible, before anything is read.
fn check(args: &AnalyzeArgs, inputs: &Inputs) -> Result<(), String> {
    let refused = |place: &str, error: io::Error| format!("{place}: cannot be written: {error}");
    match &args.output {
        Some(path) => inputs.check(path).map_err(|error| refused(&path.to_string_lossy(), error))?,
        None => inputs.check_stdout().map_err(|error| refused("the standard output", error))?,
    }
    let again = if args.wav.is_some() { "--wav" } else { "--split" };
    if (args.wav.is_some() || args.split.is_some()) && args.files.iter().any(|file| file == Path::new("-")) {
        return Err(format!(
            "{again} reads a capture twice, which the standard input cannot be: write it to a file first, such as \
             with tcpdump -w call.pcap"
        ));
    }
    Ok(())
}

/// How many threads share the work: all of them read, the first one also analyses.
fn threads(asked: Option<u8>) -> usize {
    let has_more = || std::thread::available_parallelism().is_ok_and(|cores| cores.get() > 1);
    asked.map_or_else(|| if has_more() { 2 } else { 1 }, usize::from)
}

/// Everything was read, and `--fail-on` matched.
const EXIT_FOUND: u8 = 3;
