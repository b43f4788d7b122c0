//! Real-time priority of the workers, so that other programs do not delay packets and ticks (sched(7)).

use std::io;
use std::thread::JoinHandle;

use std::os::unix::thread::JoinHandleExt as _;
use thread_priority::{
    Error, RealtimeThreadSchedulePolicy, ThreadPriority, ThreadSchedulePolicy, set_thread_priority_and_policy,
};

/// Gives a thread the lowest real-time priority: it runs before every thread without one, and after those of the
/// system.
///
/// # Errors
/// The system's error; `EPERM` unless the process has `CAP_SYS_NICE` or a limit `RLIMIT_RTPRIO` of 1 or more.
pub(super) fn prefer(thread: &JoinHandle<()>) -> io::Result<()> {
    let policy = ThreadSchedulePolicy::Realtime(RealtimeThreadSchedulePolicy::RoundRobin);
    set_thread_priority_and_policy(thread.as_pthread_t(), ThreadPriority::Min, policy).map_err(|error| {
        match error {
            Error::OS(code) => io::Error::from_raw_os_error(code),
            other => io::Error::other(format!("{other:?}")),
        }
    })
}

/// Whether the system would grant real-time priority: tried on a thread that ends immediately.
///
/// # Errors
/// As for the workers, and when no thread can be started.
pub fn try_real_time() -> io::Result<()> {
    let (end, ended) = std::sync::mpsc::channel::<()>();
    // It lives until `end` is dropped.
    let thread = std::thread::Builder::new().spawn(move || ended.recv().unwrap_or_default())?;
    let result = prefer(&thread);
    drop(end);
    // It cannot panic.
    let _ = thread.join();
    result
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;

    /// The scheduling policy of this thread: field 41 of `stat` (proc_pid_stat(5)).
    fn policy() -> u32 {
        let stat = std::fs::read_to_string("/proc/thread-self/stat").unwrap();
        let behind_the_name = stat.rsplit(')').next().unwrap();
        behind_the_name.split_whitespace().nth(41 - 3).unwrap().parse().unwrap()
    }

    #[test]
    fn a_thread_runs_in_real_time_or_gets_eperm() {
        const ROUND_ROBIN: u32 = 2;
        let (go, gone) = channel::<()>();
        let (policies, reported) = channel();
        let thread = std::thread::spawn(move || {
            gone.recv().unwrap();
            policies.send(policy()).unwrap();
        });
        let preferred = prefer(&thread);
        go.send(()).unwrap();
        let policy = reported.recv().unwrap();
        thread.join().unwrap();
        match preferred {
            Ok(()) => assert_eq!(policy, ROUND_ROBIN),
            Err(error) => {
                assert_eq!(
                    (error.raw_os_error(), policy),
                    (Some(1), 0),
                    "{error}: EPERM, and nothing changed"
                );
            }
        }
    }
}
