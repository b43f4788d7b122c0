//! A load generator for SIP and RTP: it plays carriers and phones at a fixed rate, and shows what that costs a process.
//!
//! `cargo run --release --example load -- --help` lists the commands; `docs/load-program.md` describes them.

mod program;

use std::io::Write;
use std::process::ExitCode;

use clap::Parser;

use crate::program::{Arguments, run};

fn main() -> ExitCode {
    match run(Arguments::parse()) {
        Ok(Some(report)) => {
            // A closed stdout is no failure of the run.
            let _ = writeln!(std::io::stdout(), "{}", report.text().trim_end());
            if report.is_whole() { ExitCode::SUCCESS } else { ExitCode::from(2) }
        }
        Ok(None) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "load: {error}");
            ExitCode::FAILURE
        }
    }
}
