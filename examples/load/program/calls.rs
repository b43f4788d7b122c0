//! The mode `calls`: calls over the trunk to registered phones, at a fixed rate.

use crate::program::clock::{MILLISECOND, Nanos, SECOND, nanos};
use crate::program::error::LoadError;
use crate::program::options::CallsOptions;
use crate::program::pace::Pace;
use crate::program::process::{Per, Watch};
use crate::program::report::Report;
use crate::program::site::CALLS_PER_CARRIER;
use crate::program::switchboard::{Layout, SET_UP_MAX, Switchboard};

/// Runs the mode.
///
/// # Errors
/// Sockets cannot be opened, or phones cannot be registered.
pub(crate) fn run(options: &CallsOptions) -> Result<Report, LoadError> {
    let watch = options.watched.watch()?;
    let mut board = Switchboard::open(&options.target, &options.layout())?;
    if !options.skip_registration {
        board.register_all(options.register_rate)?;
    }
    let before = watch.usage();
    let mut peak = Peak::default();
    let began = board.clock.now();
    let mut pace = Pace::new(began, options.rate, nanos(options.seconds));
    let hold = nanos(options.hold);
    // A call takes its ring, its hold, and the longest time of its last transaction.
    let deadline = pace.end() + nanos(options.ring) + hold + SET_UP_MAX;
    let mut sample = began;
    loop {
        let now = board.clock.now();
        while let Some(number) = pace.release(now) {
            board.place(number);
        }
        if now >= sample {
            sample = now + SAMPLE_EVERY;
            peak.look(&watch, &board, (now - began) as f64 / (pace.end() - began).max(1) as f64);
        }
        if now > deadline || (pace.is_done() && board.carrier.live() == 0 && board.phones.live() == 0) {
            break;
        }
        board.turn(pace.next_due().unwrap_or(deadline).min(sample))?;
    }
    let ended = board.clock.now();
    board.idle_until(ended + SETTLE)?;
    let after = watch.usage();

    let mut report = Report::new("calls");
    report.number("calls per second, asked", options.rate, "1/s");
    board.carrier.report(&mut report);
    report.failed("calls without an end", u64::try_from(board.carrier.live()).unwrap_or(u64::MAX));
    board.phones.report(&mut report);
    report.count("datagrams refused by the system", board.refused());
    if options.rtp {
        board.streams.report(&mut report, ended - began);
    }
    if !watch.is_empty() {
        let per = Per { unit: "call", count: board.carrier.done(), scale: 1.0, shown: "ms" };
        after.report_since(&before, &mut report, &per);
        peak.report(before.rss_kib(), &mut report);
    }
    Ok(report)
}

impl CallsOptions {
    fn layout(&self) -> Layout {
        let hold = nanos(self.hold);
        Layout {
            carriers: self.trunk_addresses.unwrap_or_else(|| carriers(self.rate)),
            phones: self.phone_sockets,
            media: self.media_sockets,
            extensions: self.phones,
            hold: Some(hold),
            ring: nanos(self.ring),
            trying: !self.no_trying,
            reuse_nonce: false,
            interval: PACKET_EVERY,
            // Neither side sends when the other may have hung up: such packets would count as lost.
            numbers_callers: false,
            talk: self.rtp.then(|| hold.saturating_sub(SILENCE_BEFORE_BYE)),
        }
    }
}

/// The largest memory, the number of calls that were up then, and the memory over the run.
#[derive(Clone, Debug, Default)]
struct Peak {
    rss_kib: f64,
    up: u64,
    /// After each fifth of the time in which calls are placed.
    fifths: Vec<f64>,
}

impl Peak {
    /// Reads the memory when `share` of the time has passed.
    fn look(&mut self, watch: &Watch, board: &Switchboard, share: f64) {
        let up = board.carrier.up();
        if up > self.up {
            (self.rss_kib, self.up) = (watch.rss_kib(), up);
        }
        if share * 5.0 >= (self.fifths.len() + 1) as f64 && self.fifths.len() < 5 {
            self.fifths.push(watch.rss_kib());
        }
    }

    fn report(&self, before_kib: f64, report: &mut Report) {
        if self.up > 0 {
            report.number("resident memory with most calls up", self.rss_kib / 1_024.0, "MiB");
            let each = (self.rss_kib - before_kib) / self.up as f64;
            report.number("resident memory per standing call", each, "KiB");
            for (fifth, kib) in (1..).zip(&self.fifths) {
                report.number(&format!("resident memory after {fifth} of 5 parts"), kib / 1_024.0, "MiB");
            }
        }
    }
}

/// The number of carrier addresses that a rate of calls needs.
pub(crate) fn carriers(rate: f64) -> usize {
    // Between one and the addresses of a network; the rate is validated when it is parsed.
    (rate / CALLS_PER_CARRIER).ceil().clamp(1.0, 250.0) as usize
}

const PACKET_EVERY: Nanos = 20 * MILLISECOND;
const SILENCE_BEFORE_BYE: Nanos = 200 * MILLISECOND;
const SAMPLE_EVERY: Nanos = SECOND / 2;
/// Time for the work after the last calls, such as writing their records.
const SETTLE: Nanos = SECOND / 2;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_carrier_has_an_address_for_250_calls_a_second() {
        for (rate, expected) in [(0.5, 1), (250.0, 1), (251.0, 2), (1_000.0, 4), (1e9, 250)] {
            assert_eq!(carriers(rate), expected, "{rate}");
        }
    }
}
