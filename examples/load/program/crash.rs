//! The mode `crash`: kills an engine in the middle of calls, starts it again, and looks for the record of each call.
//!
//! A caller that has its 200 has exactly one record afterwards, whatever the kill interrupted (the engine's journal).
//! Each call has its own caller number, by which its record is found over the API.

use std::collections::HashMap;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

use crate::program::call_log::{Read, read_call_log};
use crate::program::carrier::caller_number;
use crate::program::clock::{Clock, MILLISECOND, Nanos, SECOND, nanos};
use crate::program::error::LoadError;
use crate::program::options::{CrashOptions, ProvisionOptions, Target};
use crate::program::pace::Pace;
use crate::program::provision::write_site;
use crate::program::report::Report;
use crate::program::switchboard::{Layout, SET_UP_MAX, Switchboard};

/// Runs the mode.
///
/// # Errors
/// The engine cannot be provisioned or started, sockets cannot be opened, or the call log cannot be read.
pub(crate) fn run(options: &CrashOptions) -> Result<Report, LoadError> {
    write_site(&options.site())?;
    apply(options)?;
    let clock = Clock::start();
    let mut engine = Engine::start(options)?;
    engine.wait(&clock)?;
    let target = Target::of(options.sip);
    let mut board = Switchboard::open(&target, &options.layout())?;
    board.register_all(f64::from(options.phones))?;
    let killed = place_calls(options, &mut board, &mut engine)?;

    let answered = board.carrier.answered_numbers().to_vec();
    let mut found = Tally::default();
    let deadline = clock.now() + RECORDS_MAX;
    while clock.now() < deadline {
        found = Tally::of(&answered, &read_call_log(options.http)?);
        if found.missing == 0 {
            break;
        }
        thread::sleep(Duration::from_millis(500));
    }
    let mut report = Report::new("crash");
    report.number("calls per second, asked", options.rate, "1/s");
    board.carrier.report_calls(&mut report);
    report.count("calls up when it was killed", killed.up);
    report.count("calls answered before", killed.answered);
    report.number("ready again after", killed.away as f64 / MILLISECOND as f64, "ms");
    report.count("records of calls", found.records);
    report.count("records that end with CRASH", found.crashed);
    report.failed("answered calls without a record", found.missing);
    report.failed("calls with several records", found.doubled);
    Ok(report)
}

/// The calls at the time of the kill, and how long the engine was down.
struct Killed {
    up: u64,
    answered: u64,
    away: Nanos,
}

/// Places calls by the clock, before the kill, while the engine is down, and afterwards, until all of them are over.
fn place_calls(
    options: &CrashOptions,
    board: &mut Switchboard,
    engine: &mut Engine,
) -> Result<Killed, LoadError> {
    let began = board.clock.now();
    let mut pace = Pace::new(began, options.rate, nanos(options.seconds));
    let due = began + nanos(options.kill_after);
    let deadline = pace.end() + nanos(options.hold) + SET_UP_MAX;
    let mut killed: Option<Killed> = None;
    // The time of the kill, while the engine is down.
    let mut away: Option<Nanos> = None;
    loop {
        let now = board.clock.now();
        while let Some(number) = pace.release(now) {
            board.place(number);
        }
        match (&mut killed, away) {
            (None, _) if now >= due => {
                let (up, answered) = (board.carrier.up(), board.carrier.answered_numbers().len() as u64);
                engine.kill_and_restart(options)?;
                (killed, away) = (Some(Killed { up, answered, away: 0 }), Some(now));
            }
            (Some(killed), Some(since)) if engine.is_ready()? => {
                (killed.away, away) = (now - since, None);
                // A binding that was not stored before the kill is registered again.
                (0..u64::from(options.phones)).for_each(|phone| board.register(phone));
            }
            (_, Some(since)) if now - since > START_MAX => {
                return Err(LoadError::SetUp("the engine is not ready again in time".to_owned()));
            }
            _ => {}
        }
        let is_over = pace.is_done() && board.carrier.live() == 0 && board.phones.live() == 0;
        if now > deadline || (is_over && away.is_none() && killed.is_some()) {
            break;
        }
        board.turn((now + 5 * MILLISECOND).min(deadline))?;
    }
    killed.ok_or_else(|| LoadError::Usage("--kill-after must be less than --seconds".to_owned()))
}

/// The records compared with the calls that were answered.
#[derive(Debug, Default, PartialEq, Eq)]
struct Tally {
    records: u64,
    crashed: u64,
    missing: u64,
    doubled: u64,
}

impl Tally {
    fn of(answered: &[u32], read: &[Read]) -> Tally {
        let mut found: HashMap<&str, u64> = HashMap::with_capacity(read.len());
        for record in read {
            *found.entry(&record.caller).or_default() += 1;
        }
        let missing = answered.iter().filter(|number| !found.contains_key(caller_number(**number).as_str()));
        Tally {
            records: read.len() as u64,
            crashed: read.iter().filter(|record| record.crashed).count() as u64,
            missing: missing.count() as u64,
            doubled: found.values().filter(|count| **count > 1).count() as u64,
        }
    }
}

/// A running engine; killed when dropped.
struct Engine {
    process: Child,
    lines: Receiver<String>,
}

impl Engine {
    fn start(options: &CrashOptions) -> Result<Engine, LoadError> {
        let log = options.dir.join("engine.log");
        let errors = File::options().create(true).append(true).open(&log);
        let errors = errors.map_err(|source| LoadError::File { path: log, source })?;
        let mut command = Command::new(&options.sidetone);
        command.arg("serve").arg("--config").arg(options.dir.join("sidetone.toml"));
        let mut process = command
            .stdout(Stdio::piped())
            .stderr(errors)
            .spawn()
            .map_err(|error| program_failed(&options.sidetone, &error.to_string()))?;
        let (send, lines) = channel();
        if let Some(stdout) = process.stdout.take() {
            thread::spawn(move || {
                for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                    // The receiver is dropped when the engine is no longer watched.
                    let _ = send.send(line);
                }
            });
        }
        Ok(Engine { process, lines })
    }

    /// Waits until it is ready.
    fn wait(&mut self, clock: &Clock) -> Result<(), LoadError> {
        let deadline = clock.now() + START_MAX;
        while !self.is_ready()? {
            if clock.now() > deadline {
                return Err(LoadError::SetUp("the engine is not ready in time".to_owned()));
            }
            thread::sleep(Duration::from_millis(10));
        }
        Ok(())
    }

    fn is_ready(&mut self) -> Result<bool, LoadError> {
        if let Some(status) = self.process.try_wait()? {
            return Err(LoadError::SetUp(format!("the engine ended by itself, {status}; see engine.log")));
        }
        Ok(self.lines.try_iter().any(|line| line == "ready"))
    }

    /// SIGKILL: the process has no chance to clean up.
    fn kill_and_restart(&mut self, options: &CrashOptions) -> Result<(), LoadError> {
        self.process.kill()?;
        self.process.wait()?;
        *self = Engine::start(options)?;
        Ok(())
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        // It may have exited already.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn apply(options: &CrashOptions) -> Result<(), LoadError> {
    let mut command = Command::new(&options.sidetone);
    command
        .arg("apply")
        .arg(options.dir.join("site.toml"))
        .arg("--config")
        .arg(options.dir.join("sidetone.toml"));
    let output = command.output().map_err(|error| program_failed(&options.sidetone, &error.to_string()))?;
    if output.status.success() {
        return Ok(());
    }
    Err(program_failed(&options.sidetone, String::from_utf8_lossy(&output.stderr).trim()))
}

fn program_failed(program: &Path, why: &str) -> LoadError {
    LoadError::SetUp(format!("{}: {why}", program.display()))
}

impl CrashOptions {
    fn site(&self) -> ProvisionOptions {
        // Ports of ended calls stay reserved for some seconds.
        let seconds = self.hold.as_secs_f64() + 10.0;
        let calls = (self.rate * seconds).clamp(100.0, f64::from(CALLS_MAX));
        ProvisionOptions {
            dir: self.dir.clone(),
            extensions: self.phones,
            calls: calls as u16,
            first_port: FIRST_PORT,
            workers: 1,
            sip: self.sip,
            http: self.http,
            database_url: self.database_url.clone(),
        }
    }

    fn layout(&self) -> Layout {
        Layout {
            carriers: crate::program::calls::carriers(self.rate),
            phones: 8,
            media: 8,
            extensions: self.phones,
            hold: Some(nanos(self.hold)),
            ring: 0,
            trying: true,
            reuse_nonce: false,
            interval: 20 * MILLISECOND,
            talk: None,
            numbers_callers: true,
        }
    }
}

/// The longest start, including the replay of the journal.
const START_MAX: Nanos = 60 * SECOND;
/// How long the records of the last calls may take.
const RECORDS_MAX: Nanos = 60 * SECOND;
const FIRST_PORT: u16 = 12_000;
/// Four ports each, from the first one on.
const CALLS_MAX: u16 = 12_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lost_and_doubled_records_are_counted() {
        let read = |number: u32, crashed| Read { caller: caller_number(number), crashed };
        let records = [read(1, false), read(2, true), read(2, false), read(9, true)];
        let expected = Tally { records: 4, crashed: 2, missing: 1, doubled: 1 };
        assert_eq!(Tally::of(&[1, 2, 3], &records), expected);
    }
}
