//! `sidetone man DIR`: a manual page for the program and one for each subcommand.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Command;

use crate::cli::EXIT_FAILED;

/// The arguments of `man`.
#[derive(Debug, clap::Args)]
#[command(after_help = "The pages are sidetone.1, sidetone-serve.1 and so on; read one with `man -l FILE`.")]
pub struct ManArgs {
    /// The directory for the pages; it is created if missing.
    #[arg(value_name = "DIR")]
    dir: PathBuf,
}

/// Writes the pages of `command`.
pub fn run(args: &ManArgs, command: Command) -> ExitCode {
    let written = std::fs::create_dir_all(&args.dir)
        .and_then(|()| clap_mangen::generate_to(command.disable_help_subcommand(true), &args.dir));
    match written {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            crate::cli::tell!(
                "sidetone: {}: cannot be written ({error}); choose another directory",
                args.dir.display()
            );
            ExitCode::from(EXIT_FAILED)
        }
    }
}
