//! The subcommands, one file each: the arguments and the function.

pub mod analyze;
mod api_client;
pub mod apply;
pub mod check;
pub mod completions;
pub mod dead_letters;
pub mod demo;
pub mod drain;
mod holders;
mod inputs;
pub mod man;
pub mod nodes;
pub mod phone;
mod self_test;
pub mod serve;
mod service_manager;
mod signals;
pub mod simulate;
pub mod tap;
mod temporary;
mod terminal;
pub mod top;

use std::io::{self, Write as _};
use std::net::Ipv6Addr;
use std::path::Path;
use std::process::ExitCode;

use tokio::runtime::Runtime;

use crate::config::{Config, ConfigError};

/// Prints a line on the standard error, as `eprintln!` does. If its reader has exited (`2>&1 | head`), the command
/// continues.
macro_rules! tell {
    ($($text:tt)*) => {{
        use std::io::Write as _;
        // There is no other place to report this.
        let _ = writeln!(std::io::stderr(), $($text)*);
    }};
}
pub(crate) use tell;

/// Parses an integer between two others, both inclusive; the message for any other text contains an example.
pub(crate) fn whole<T: TryFrom<u64>>(text: &str, least: u64, most: u64, example: u64) -> Result<T, String> {
    let number = text.parse().ok().filter(|number| (least..=most).contains(number));
    number.and_then(|number: u64| T::try_from(number).ok()).ok_or_else(|| {
        let bounds =
            if most == u64::MAX { format!("from {least} on") } else { format!("from {least} to {most}") };
        format!("it must be a whole number {bounds}, such as {example}")
    })
}

/// Whether a text is `HOST:PORT`, where an IPv6 address is in brackets.
pub(crate) fn is_host_and_port(text: &str) -> bool {
    let Some((host, port)) = text.rsplit_once(':') else { return false };
    let is_host = match host.strip_prefix('[').and_then(|host| host.strip_suffix(']')) {
        Some(v6) => v6.parse::<Ipv6Addr>().is_ok(),
        None => !host.is_empty() && !host.contains(':'),
    };
    is_host && port.parse::<u16>().is_ok_and(|port| port > 0)
}

/// Loads the configuration that `file`, the environment or the current directory specifies; errors are printed.
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
        tell!("sidetone: {problem}");
    }
}

/// Writes the output of a command to the standard output.
pub(crate) fn print_out(text: &[u8]) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text)?;
    out.flush()
}

/// Returns the configuration, and a runtime for a command with sequential work; errors are printed.
pub(crate) fn prepare(file: Option<&Path>) -> Result<(Config, Runtime), ExitCode> {
    let config = load_config(file)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| {
        tell!("sidetone: cannot start the runtime ({error})");
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_has_a_port() {
        for text in ["127.0.0.1:4000", "localhost:1", "[::1]:65535"] {
            assert!(is_host_and_port(text), "{text}");
        }
        for text in
            ["", "127.0.0.1", ":4000", "127.0.0.1:", "h:0", "h:65536", "::1:4000", "[::1]", "[h]:1", "a:b:1"]
        {
            assert!(!is_host_and_port(text), "{text}");
        }
    }

    #[test]
    fn a_wrong_number_is_answered_with_an_example() {
        let calls = |text: &str| whole::<u32>(text, 1, 20_000, 50);
        assert_eq!((calls("1"), calls("20000")), (Ok(1), Ok(20_000)));
        for text in ["0", "20001", "-1", "x", "1e3", "", "1.5"] {
            let expected = "it must be a whole number from 1 to 20000, such as 50";
            assert_eq!(calls(text), Err(expected.to_owned()), "{text}");
        }
        let seed = whole::<u64>("x", 0, u64::MAX, 7);
        assert_eq!(seed, Err("it must be a whole number from 0 on, such as 7".to_owned()));
    }
}
