//! The subcommands, one file each: its arguments and what it does.

pub mod analyze;
pub mod apply;
pub mod check;
pub mod dead_letters;
pub mod demo;
mod inputs;
pub mod phone;
pub mod serve;
pub mod simulate;
pub mod tap;

/// Why the process ends without a request to stop.
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
