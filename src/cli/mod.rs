//! The subcommands, one file each: the arguments and the function.

pub mod analyze;
pub mod apply;
pub mod check;
pub mod completions;
pub mod dead_letters;
pub mod demo;
mod holders;
mod inputs;
pub mod man;
pub mod phone;
pub mod serve;
pub mod simulate;
pub mod tap;

use std::path::Path;
use std::process::ExitCode;

use tokio::runtime::Runtime;

use crate::config::{Config, ConfigError};

/// Loads the configuration from `file`, the environment or the current directory; errors are printed.
pub(crate) fn load_config(file: Option<&Path>) -> Result<Config, ExitCode> {
    Config::load(file, std::env::vars()).map_err(|error| wrong_config(&error))
}

/// Prints the errors of the configuration, one line for each.
pub(crate) fn wrong_config(error: &ConfigError) -> ExitCode {
    report_problems(&error.lines());
    ExitCode::from(EXIT_WRONG)
}

/// Prints problems, one line each.
pub(crate) fn report_problems(problems: &[String]) {
    for problem in problems {
        eprintln!("sidetone: {problem}");
    }
}

/// Returns the configuration, and a runtime for a command with sequential work; errors are printed.
pub(crate) fn prepare(file: Option<&Path>) -> Result<(Config, Runtime), ExitCode> {
    let config = load_config(file)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| {
        eprintln!("sidetone: cannot start the runtime ({error})");
        ExitCode::from(EXIT_FAILED)
    })?;
    Ok((config, runtime))
}

/// The message when the process ends because a task failed.
pub(crate) fn task_failed(task: crate::supervise::Task) -> String {
    format!(
        "sidetone: the task {} panicked and the process cannot go on; the call journal is complete, start it again \
         and report the bug with the log",
        task.as_str()
    )
}

/// The command line or the configuration is wrong.
pub(crate) const EXIT_WRONG: u8 = 2;
/// The work failed.
pub(crate) const EXIT_FAILED: u8 = 1;
