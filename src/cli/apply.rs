//! `sidetone apply FILE…`: declares organisations and all they own.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use rand::SeedableRng;
use rand::rngs::{StdRng, SysRng};
use sidetone_model::time::Timestamp;

use crate::config::{Config, parse_toml};
use crate::fields::Problem;
use crate::outbound_http::Policy;
use crate::provision::{self, Declaration, ProvisionError};
use crate::store::Store;

/// The arguments of `apply`.
#[derive(Debug, clap::Args)]
pub struct ApplyArgs {
    /// Files that declare organisations, extensions, keys, numbers and trunks.
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Print one JSON object instead of lines.
    #[arg(long)]
    json: bool,
    /// Say what would change and change nothing.
    #[arg(long)]
    dry_run: bool,
    /// The configuration, which says where the database is.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
}

/// Applies the files and prints what that did; secrets that were generated are shown once.
pub fn run(args: &ApplyArgs) -> ExitCode {
    match apply(args) {
        Ok(text) => match std::io::stdout().write_all(text.as_bytes()) {
            Ok(()) => ExitCode::SUCCESS,
            Err(_) => ExitCode::from(EXIT_FAILED),
        },
        Err(failure) => {
            eprintln!("sidetone: {}", failure.message);
            ExitCode::from(failure.exit)
        }
    }
}

struct Failure {
    exit: u8,
    message: String,
}

fn apply(args: &ApplyArgs) -> Result<String, Failure> {
    let config = Config::load(args.config.as_deref(), std::env::vars()).map_err(wrong)?;
    // This node's own addresses are not known here; they are refused when they are asked.
    let urls = Policy::new(&config.outbound_http, config.sip.external_address.into_iter().collect());
    let mut declarations = Vec::with_capacity(args.files.len());
    let mut wrong_files = Vec::new();
    for file in &args.files {
        let text = std::fs::read_to_string(file)
            .map_err(|error| wrong(format!("{}: cannot be read ({error})", file.display())))?;
        let table = parse_toml(file, &text).map_err(wrong)?;
        match Declaration::parse(table) {
            Ok(declaration) => {
                let refused = declaration.refused_urls(&urls);
                wrong_files.extend(refused.iter().map(|problem| located(file, problem)));
                declarations.push(declaration.with_default_pin(config.rooms.default_pin));
            }
            Err(problems) => wrong_files.extend(problems.iter().map(|problem| located(file, problem))),
        }
    }
    if !wrong_files.is_empty() {
        return Err(wrong(wrong_files.join("; ")));
    }
    let mut rng = StdRng::try_from_rng(&mut SysRng)
        .map_err(|error| failed(format!("the system gives no random numbers ({error})")))?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| failed(format!("cannot start the runtime ({error})")))?;
    let report = runtime.block_on(async {
        let store = Store::open(&config.database).await?;
        let report = provision::apply(&store, &declarations, args.dry_run, now(), &mut rng).await;
        store.close().await;
        report
    });
    match report {
        Ok(report) if args.json => {
            report.to_json().map(|json| json + "\n").map_err(|error| failed(error.to_string()))
        }
        Ok(report) => Ok(if args.dry_run {
            format!("{report}nothing was changed (dry run)\n")
        } else {
            report.to_string()
        }),
        Err(ProvisionError::Refused(problems)) => {
            let texts: Vec<String> = problems
                .iter()
                .filter_map(|(index, problem)| Some(located(args.files.get(*index)?, problem)))
                .collect();
            Err(wrong(texts.join("; ")))
        }
        Err(ProvisionError::Hash(error)) => Err(failed(format!("failed to {error}"))),
        Err(ProvisionError::Store(error)) => Err(failed(format!("failed to {error}"))),
    }
}

#[expect(clippy::disallowed_methods, reason = "a command line is a driver: it reads the clock")]
fn now() -> Timestamp {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    Timestamp::from_micros(i64::try_from(since.as_micros()).unwrap_or(i64::MAX))
}

fn located(file: &std::path::Path, problem: &Problem) -> String {
    format!("{}: {problem}", file.display())
}

fn wrong(message: impl ToString) -> Failure {
    Failure { exit: EXIT_WRONG, message: message.to_string() }
}

fn failed(message: impl ToString) -> Failure {
    Failure { exit: EXIT_FAILED, message: message.to_string() }
}

/// The work failed.
const EXIT_FAILED: u8 = 1;
/// The command line or a file that configures is wrong.
const EXIT_WRONG: u8 = 2;
