//! `sidetone apply FILE…`: declares organisations and all their resources.

use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use rand::SeedableRng;
use rand::rngs::{StdRng, SysRng};
use sidetone_model::time::Timestamp;
use sidetone_store::Store;

use crate::cli::{EXIT_FAILED, EXIT_WRONG, load_config, print_out, report_problems};
use crate::config::{Config, parse_toml};
use crate::fields::Problem;
use crate::outbound_http::Policy;
use crate::provision::{self, Declaration, ProvisionError, Report};

/// The arguments of `apply`.
#[derive(Debug, clap::Args)]
pub struct ApplyArgs {
    /// Files that declare organisations, extensions, keys, numbers and trunks; - reads the standard input.
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Print one JSON object instead of lines.
    #[arg(long)]
    json: bool,
    /// Print what would change; write nothing and create no file.
    #[arg(long)]
    dry_run: bool,
    /// The configuration file, which names the database.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
}

/// Applies the files and prints the result; generated secrets are shown once.
pub fn run(args: &ApplyArgs) -> ExitCode {
    let config = match load_config(args.config.as_deref()) {
        Ok(config) => config,
        Err(exit) => return exit,
    };
    match apply(args, &config) {
        Ok(done) => match print_out(done.text.as_bytes()) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                let output = format!("the standard output cannot be written ({error})");
                report_problems(&[done.unseen(args.dry_run, &output)]);
                ExitCode::from(EXIT_FAILED)
            }
        },
        Err(failure) => {
            report_problems(&failure.messages);
            ExitCode::from(failure.exit)
        }
    }
}

/// The output of `--json`.
#[derive(serde::Serialize)]
struct Applied<'a> {
    /// The database, without a password.
    database: &'a str,
    #[serde(flatten)]
    report: &'a Report,
}

/// The result of applying.
struct Done {
    text: String,
    /// The extensions, keys and users with a generated secret, which only `text` contains.
    generated: Vec<String>,
}

impl Done {
    /// The message when the text cannot be shown.
    fn unseen(&self, dry_run: bool, output: &str) -> String {
        match &self.generated[..] {
            _ if dry_run => format!("{output}; nothing was changed (dry run)"),
            [] => format!("{output}; the changes are stored, and no secret was generated"),
            lost => format!(
                "{output}; the changes are stored, but the generated secrets of these are lost; set new ones, or delete \
                 them and apply again: {}",
                lost.join(", ")
            ),
        }
    }
}

/// Why nothing was applied.
struct Failure {
    exit: u8,
    /// One line for each problem.
    messages: Vec<String>,
}

fn apply(args: &ApplyArgs, config: &Config) -> Result<Done, Failure> {
    let declarations = declarations(args, config)?;
    let mut rng = StdRng::try_from_rng(&mut SysRng)
        .map_err(|error| failed(format!("the system provides no random numbers ({error})")))?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| failed(format!("cannot start the runtime ({error})")))?;
    let report = runtime.block_on(async {
        let store = if args.dry_run {
            Store::open_for_trial(&config.database).await?
        } else {
            Store::open(&config.database).await?
        };
        let report = provision::apply(&store, &declarations, args.dry_run, now(), &mut rng).await;
        store.close().await;
        report
    });
    let database = config.database.location.to_string();
    match report {
        Ok(report) => {
            let text = if args.json {
                let applied = Applied { database: &database, report: &report };
                serde_json::to_string_pretty(&applied).map(|json| json + "\n").map_err(failed)?
            } else {
                let end = if args.dry_run { "nothing was changed (dry run)\n" } else { "" };
                format!("database {database}\n{report}{end}")
            };
            Ok(Done { text, generated: report.generated().to_vec() })
        }
        Err(ProvisionError::Refused(problems)) => Err(wrong(
            problems
                .iter()
                .filter_map(|(index, problem)| Some(located(args.files.get(*index)?, problem)))
                .collect(),
        )),
        Err(ProvisionError::Hash(error)) => Err(failed(format!("failed to {error}"))),
        Err(ProvisionError::Store(error)) => Err(failed(format!("failed to {error}"))),
    }
}

/// Returns the declarations of the files, or all their errors.
fn declarations(args: &ApplyArgs, config: &Config) -> Result<Vec<Declaration>, Failure> {
    // This node's own addresses are not available here; they are refused when a request is made.
    let urls = Policy::new(&config.outbound_http, config.sip.external_address.into_iter().collect());
    if args.files.iter().filter(|file| is_stdin(file)).count() > 1 {
        return Err(wrong(vec![
            "- stands for the standard input, which is read once: give it once".to_owned(),
        ]));
    }
    let mut declarations = Vec::with_capacity(args.files.len());
    let mut problems = Vec::new();
    for file in &args.files {
        let table = match text_of(file)
            .and_then(|text| parse_toml(&shown(file), &text).map_err(|error| error.to_string()))
        {
            Ok(table) => table,
            Err(problem) => {
                problems.push(problem);
                continue;
            }
        };
        match Declaration::parse(table) {
            Ok(declaration) => {
                let refused = declaration.refused_urls(&urls);
                problems.extend(refused.iter().map(|problem| located(file, problem)));
                declarations.push(declaration.with_default_pin(config.rooms.default_pin));
            }
            Err(found) => problems.extend(found.iter().map(|problem| located(file, problem))),
        }
    }
    if problems.is_empty() { Ok(declarations) } else { Err(wrong(problems)) }
}

fn text_of(file: &Path) -> Result<String, String> {
    let mut text = String::new();
    let read = if is_stdin(file) {
        io::stdin().lock().read_to_string(&mut text).map(|_| text)
    } else {
        std::fs::read_to_string(file)
    };
    read.map_err(|error| format!("{}: cannot be read ({error})", shown(file).display()))
}

fn is_stdin(file: &Path) -> bool {
    file == Path::new("-")
}

/// The name of a file for messages.
fn shown(file: &Path) -> PathBuf {
    if is_stdin(file) { PathBuf::from("standard input") } else { file.to_path_buf() }
}

#[expect(clippy::disallowed_methods, reason = "a command line is a driver: it reads the clock")]
fn now() -> Timestamp {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    Timestamp::from_micros(i64::try_from(since.as_micros()).unwrap_or(i64::MAX))
}

fn located(file: &Path, problem: &Problem) -> String {
    format!("{}: {problem}", shown(file).display())
}

fn wrong(messages: Vec<String>) -> Failure {
    Failure { exit: EXIT_WRONG, messages }
}

fn failed(message: impl ToString) -> Failure {
    Failure { exit: EXIT_FAILED, messages: vec![message.to_string()] }
}
