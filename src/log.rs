//! The log: its output, its level, and panic messages without data.

use std::io::IsTerminal;
use std::panic::PanicHookInfo;

use tracing_subscriber::EnvFilter;

use crate::config::log_filter;
use crate::supervise::{Task, current_task};

/// The format of log lines on stderr.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// One JSON object a line.
    Json,
    /// For people.
    Text,
}

/// The log of this process; its level can change while it runs.
pub struct Log {
    replace: Box<dyn Fn(EnvFilter) -> bool + Send + Sync>,
    level: &'static str,
    by_environment: bool,
}

impl Log {
    /// Starts the log: `RUST_LOG` sets the level, otherwise `level`. Once in a process.
    pub fn start(format: Format, level: &'static str) -> Log {
        let own = std::env::var(EnvFilter::DEFAULT_ENV).ok().filter(|levels| !levels.is_empty());
        let (own, refused) = match own.map(|levels| log_filter(&levels)).transpose() {
            Ok(own) => (own, None),
            Err(refused) => (None, Some(refused)),
        };
        let by_environment = own.is_some();
        let builder = tracing_subscriber::fmt()
            .with_env_filter(own.unwrap_or_else(|| EnvFilter::new(level)))
            .with_writer(std::io::stderr)
            // They would be printed on stderr, too, which panics when its reader or its terminal is gone.
            .log_internal_errors(false)
            .with_ansi(std::io::stderr().is_terminal());
        let replace: Box<dyn Fn(EnvFilter) -> bool + Send + Sync> = match format {
            Format::Json => {
                let builder = builder.json().with_filter_reloading();
                let handle = builder.reload_handle();
                builder.init();
                Box::new(move |filter| handle.reload(filter).is_ok())
            }
            Format::Text => {
                let builder = builder.with_filter_reloading();
                let handle = builder.reload_handle();
                builder.init();
                Box::new(move |filter| handle.reload(filter).is_ok())
            }
        };
        std::panic::set_hook(Box::new(note_panic));
        if let Some(refused) = refused {
            tracing::error!("{} is ignored: {refused}", EnvFilter::DEFAULT_ENV);
        }
        Log { replace, level, by_environment }
    }

    /// Sets the level of `[log] level`, or the initial one without it; `RUST_LOG` takes precedence.
    pub fn set_level(&self, level: Option<&str>) {
        if self.by_environment {
            return;
        }
        let level = level.unwrap_or(self.level);
        if !log_filter(level).is_ok_and(|filter| (self.replace)(filter)) {
            tracing::warn!(level, "the log level stays as it is");
        }
    }
}

/// A panic's text may contain data such as a number or a password; the location is enough to find the cause.
fn note_panic(panic: &PanicHookInfo<'_>) {
    let place = panic.location().map(ToString::to_string).unwrap_or_default();
    let thread = std::thread::current();
    tracing::error!(
        place,
        thread = thread.name().unwrap_or("unnamed"),
        task = current_task().map(Task::as_str),
        "a panic: this is a bug, please report it"
    );
}
