//! `sidetone dead-letters`: lists the records that the database refused to store, and stores them again.

use std::fmt::Write as _;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use sidetone_store::Store;

use crate::cli::{EXIT_FAILED, prepare};
use crate::config::Config;
use crate::dead_letters::{DeadLetter, DeadLetters, replay};

/// The arguments of `dead-letters`.
#[derive(Debug, clap::Args)]
pub struct DeadLettersArgs {
    /// Store the records again and remove the file of each stored one.
    #[arg(long)]
    replay: bool,
    /// The configuration file, which names the data directory and the database.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
}

/// Lists the letters, one line each, or stores them again. Fails if any letter remains after that, or cannot be read.
pub fn run(args: &DeadLettersArgs) -> ExitCode {
    let (config, runtime) = match prepare(args.config.as_deref()) {
        Ok(prepared) => prepared,
        Err(exit) => return exit,
    };
    match runtime.block_on(work(&config, args.replay)) {
        Ok((text, left)) => {
            // A closed stdout does not change the result.
            let _ = std::io::stdout().write_all(text.as_bytes());
            if left == 0 { ExitCode::SUCCESS } else { ExitCode::from(EXIT_FAILED) }
        }
        Err(error) => {
            crate::cli::tell!("sidetone: {error}");
            ExitCode::from(EXIT_FAILED)
        }
    }
}

/// Returns the output and the number of letters that remain or cannot be read.
async fn work(config: &Config, again: bool) -> Result<(String, usize), String> {
    let letters = DeadLetters::below(&config.node.data_dir);
    let found =
        letters.list().map_err(|error| format!("dead letters cannot be read: {error}; check its owner"))?;
    let (mut text, mut left) = (String::new(), 0);
    if found.is_empty() {
        return Ok(("no dead letters\n".to_owned(), 0));
    }
    let store = if again {
        let opened = Store::open(&config.database).await;
        Some(opened.map_err(|error| format!("[database] url: failed to {error}"))?)
    } else {
        None
    };
    for (path, letter) in found {
        let (kind, outcome) = match letter {
            Ok(letter) => {
                let outcome = match &store {
                    None => Ok(letter.reason.clone()),
                    Some(store) => store_again(store, &path, &letter).await,
                };
                (letter.kind, outcome)
            }
            Err(error) => ("unreadable".to_owned(), Err(unreadable(&error))),
        };
        left += usize::from(outcome.is_err());
        let outcome = outcome.unwrap_or_else(|outcome| outcome);
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{kind} {}: {outcome}", path.display());
    }
    if let Some(store) = store {
        store.close().await;
    }
    Ok((text, left))
}

/// Stores a letter again and removes its file; an error when the file is left.
async fn store_again(store: &Store, path: &Path, letter: &DeadLetter) -> Result<String, String> {
    match replay(store, letter).await {
        Ok(true) => match std::fs::remove_file(path) {
            Ok(()) => Ok("stored".to_owned()),
            Err(error) => Err(format!("stored; remove the file by hand ({error})")),
        },
        Ok(false) => Err("is not stored again; read it and remove the file".to_owned()),
        Err(problem) => Err(format!("still refused: {problem}")),
    }
}

fn unreadable(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::InvalidData => {
            format!("is damaged ({error}); repair it, or read it and remove the file")
        }
        _ => format!("cannot be read ({error}); check its owner"),
    }
}
