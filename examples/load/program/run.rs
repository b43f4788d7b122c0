//! Runs the command of a command line.

use nix::sys::resource::{Resource, getrlimit, setrlimit};

use crate::program::error::LoadError;
use crate::program::options::{Arguments, Command};
use crate::program::report::Report;
use crate::program::{bare, calls, crash, provision, register, relay};

/// Runs the command; those that measure return a report.
///
/// # Errors
/// Why there is no report.
pub(crate) fn run(arguments: Arguments) -> Result<Option<Report>, LoadError> {
    // Every source and every pair of ports needs descriptors.
    let (_, most) = getrlimit(Resource::RLIMIT_NOFILE)?;
    setrlimit(Resource::RLIMIT_NOFILE, most, most)?;
    let is_json = arguments.wants_json();
    let report = match arguments.command {
        Command::Bare(options) => return bare::run(&options).map(|()| None),
        Command::Calls(options) => calls::run(&options)?,
        Command::Crash(options) => crash::run(&options)?,
        Command::Provision(options) => return provision::run(&options).map(|()| None),
        Command::Register(options) => register::run(&options)?,
        Command::Relay(options) => relay::run(&options)?,
    };
    Ok(Some(if is_json { report.shown_as_json() } else { report }))
}
