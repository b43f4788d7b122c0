//! The mode `register`: registrations with digest at a fixed rate.

use crate::program::clock::{MILLISECOND, Nanos, SECOND, nanos};
use crate::program::error::LoadError;
use crate::program::options::RegisterOptions;
use crate::program::pace::Pace;
use crate::program::process::Per;
use crate::program::report::Report;
use crate::program::switchboard::{Layout, Switchboard};

/// Runs the mode. Every phone registers once before the measurement, so the measurement covers refreshes.
///
/// # Errors
/// Sockets cannot be opened, or phones cannot be registered.
pub(crate) fn run(options: &RegisterOptions) -> Result<Report, LoadError> {
    let watch = options.watched.watch()?;
    let mut board = Switchboard::open(&options.target, &options.layout())?;
    board.register_all(options.register_rate.unwrap_or(options.rate))?;
    board.registrations.forget_figures();
    let before = watch.usage();
    let mut pace = Pace::new(board.clock.now(), options.rate, nanos(options.seconds));
    let deadline = pace.end() + ANSWERS_MAX;
    loop {
        let now = board.clock.now();
        while let Some(number) = pace.release(now) {
            board.register(number);
        }
        if now > deadline || (pace.is_done() && board.registrations.waiting() == 0) {
            break;
        }
        board.turn(pace.next_due().unwrap_or(deadline))?;
    }
    let now = board.clock.now();
    board.idle_until(now + SETTLE)?;
    let after = watch.usage();

    let mut report = Report::new("register");
    report.number("registrations per second, asked", options.rate, "1/s");
    board.registrations.report(&mut report);
    report.failed("registrations without an end", board.registrations.waiting());
    report.count("datagrams refused by the system", board.refused());
    if !watch.is_empty() {
        let answered = board.registrations.answers();
        let per = Per { unit: "REGISTER request", count: answered, scale: 1_000.0, shown: "µs" };
        after.report_since(&before, &mut report, &per);
    }
    Ok(report)
}

impl RegisterOptions {
    fn layout(&self) -> Layout {
        Layout {
            phones: self.sources,
            extensions: self.extensions,
            reuse_nonce: self.reuse_nonce,
            ..Layout::media_only(0, SECOND)
        }
    }
}

/// A little more than 64 × T1, after which every registration has ended.
const ANSWERS_MAX: Nanos = 34 * SECOND;
const SETTLE: Nanos = 200 * MILLISECOND;
