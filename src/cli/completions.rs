//! `sidetone completions SHELL`: completion scripts for shells.

use std::process::ExitCode;

use clap::Command;
use clap_complete::{Shell, generate};

use crate::cli::{EXIT_FAILED, print_out};

/// The arguments of `completions`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
For bash: sidetone completions bash > ~/.local/share/bash-completion/completions/sidetone
For zsh, in a directory of $fpath: sidetone completions zsh > _sidetone
For fish: sidetone completions fish > ~/.config/fish/completions/sidetone.fish")]
pub struct CompletionsArgs {
    /// The shell to write the script for.
    #[arg(value_enum)]
    shell: Shell,
}

/// Prints the script for `command`.
pub fn run(args: &CompletionsArgs, mut command: Command) -> ExitCode {
    let mut script = Vec::new();
    generate(args.shell, &mut command, "sidetone", &mut script);
    match print_out(&script) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            crate::cli::tell!("sidetone: the standard output cannot be written ({error})");
            ExitCode::from(EXIT_FAILED)
        }
    }
}
