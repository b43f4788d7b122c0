//! The mode `relay`: sets up calls, then sends packets through them at a fixed rate.

use crate::program::clock::{MILLISECOND, Nanos, SECOND, nanos};
use crate::program::drops::dropped_datagrams;
use crate::program::error::LoadError;
use crate::program::ng::Control;
use crate::program::options::{RelayOptions, Through};
use crate::program::pace::Pace;
use crate::program::process::{Per, Usage, Watch};
use crate::program::report::Report;
use crate::program::switchboard::{AudioPath, Layout, SET_UP_MAX, Switchboard};

/// Runs the mode.
///
/// # Errors
/// Sockets cannot be opened, or the calls cannot be set up.
pub(crate) fn run(options: &RelayOptions) -> Result<Report, LoadError> {
    let watch = options.watched.watch()?;
    let calls = options.calls.unwrap_or_else(|| calls_for(options.rate));
    // Every call has two legs, and all legs send at the same rate.
    let interval = interval(options.rate, calls);
    let mut board = Switchboard::open(&options.target, &options.layout(calls, interval))?;
    let before = watch.usage();
    let control = match options.through {
        Through::Ng => Some(Control::open(options.ng, calls)?),
        Through::Bare | Through::Sip => None,
    };
    let paths = match &control {
        Some(control) => control.set_up(&board)?,
        None if options.through == Through::Bare => bare(&mut board, options, calls)?,
        None => sip(&mut board, options, calls)?,
    };
    let standing = watch.usage();
    let own = [std::process::id()];
    let dropped = dropped_datagrams(&own);
    let measured = measure(&mut board, &paths, options, (&watch, interval));
    let dropped = dropped_datagrams(&own).saturating_sub(dropped);
    match &control {
        Some(control) => control.tear_down()?,
        None => hang_up(&mut board)?,
    }
    let (lasted, started, after) = measured?;

    let mut report = Report::new("relay");
    report.count("calls up", u64::from(calls));
    report.number("packets per second, asked", options.rate, "1/s");
    board.streams.report(&mut report, lasted);
    report.failed("no packet arrived", u64::from(board.streams.received() == 0));
    report.count("datagrams refused by the system", board.refused());
    report.count("datagrams dropped at sockets of this program", dropped);
    if !watch.is_empty() {
        let per = Per { unit: "packet", count: board.streams.sent(), scale: 1_000.0, shown: "µs" };
        after.report_since(&started, &mut report, &per);
        let kib = (standing.rss_kib() - before.rss_kib()) / f64::from(calls.max(1));
        report.number("resident memory per standing call", kib, "KiB");
    }
    Ok(report)
}

impl RelayOptions {
    fn layout(&self, calls: u32, interval: Nanos) -> Layout {
        let media = Layout::media_only(self.media_sockets, interval);
        match self.through {
            Through::Bare | Through::Ng => media,
            // One carrier address may have 500 new calls a second; the set-up stays below that.
            Through::Sip => Layout { carriers: 1, phones: 8, extensions: calls.min(self.phones), ..media },
        }
    }
}

/// Sends the packets of the warm-up, then the measured ones. Returns how long the latter took, and the usage of the
/// process before and after them.
fn measure(
    board: &mut Switchboard,
    paths: &[AudioPath],
    options: &RelayOptions,
    (watch, interval): (&Watch, Nanos),
) -> Result<(Nanos, Usage, Usage), LoadError> {
    board.streams.set_interval(interval);
    let warm_up = nanos(options.warm_up);
    if warm_up > 0 {
        talk(board, paths, interval, warm_up)?;
        board.streams.forget_figures();
    }
    let started = watch.usage();
    let lasts = nanos(options.seconds);
    talk(board, paths, interval, lasts)?;
    Ok((lasts, started, watch.usage()))
}

/// Lets every leg send for a time, and waits for the last packets to arrive.
fn talk(
    board: &mut Switchboard,
    paths: &[AudioPath],
    interval: Nanos,
    lasts: Nanos,
) -> Result<(), LoadError> {
    let start = board.clock.now() + LEAD;
    let count = u64::try_from(paths.len()).unwrap_or(u64::MAX).max(1);
    for (place, path) in (0_u64..).zip(paths) {
        let first = start + interval * place / count;
        board.streams.begin(u32::try_from(place).unwrap_or(u32::MAX), *path, first, start + lasts);
    }
    board.idle_until(start + lasts + DRAIN)
}

/// Sets up calls over SIP, and returns the paths of both sides.
fn sip(board: &mut Switchboard, options: &RelayOptions, calls: u32) -> Result<Vec<AudioPath>, LoadError> {
    board.register_all(options.set_up_rate)?;
    let mut pace = Pace::counted(board.clock.now(), options.set_up_rate, u64::from(calls));
    let deadline = pace.end() + SET_UP_MAX;
    let legs = usize::try_from(calls).unwrap_or(usize::MAX).saturating_mul(2);
    while board.answered().len() < legs {
        let now = board.clock.now();
        if now > deadline || board.carrier.failures() > 0 {
            let up = board.carrier.up();
            hang_up(board)?;
            let mut report = Report::new("set-up");
            board.carrier.report(&mut report);
            return Err(LoadError::SetUp(format!("{up} of {calls} calls are up\n{}", report.table())));
        }
        while let Some(number) = pace.release(now) {
            board.place(number);
        }
        board.turn(pace.next_due().unwrap_or(deadline))?;
    }
    Ok(board.answered().to_vec())
}

/// Teaches a bare relay the address of each leg: it sends to the source of a port's first datagram.
fn bare(board: &mut Switchboard, options: &RelayOptions, calls: u32) -> Result<Vec<AudioPath>, LoadError> {
    let mut paths = Vec::new();
    let mut port = options.bare.port();
    for number in 0..calls {
        for socket in board.media_sockets(number) {
            let mut to = options.bare;
            to.set_port(port);
            let path = (socket, to);
            board.send(path, b"hello");
            paths.push(path);
            port = port
                .checked_add(1)
                .ok_or_else(|| LoadError::Usage("too many calls for its ports".to_owned()))?;
        }
        // In small steps, so that no buffer overflows.
        let now = board.clock.now();
        board.turn(now)?;
    }
    let now = board.clock.now();
    board.idle_until(now + LEAD)?;
    Ok(paths)
}

fn hang_up(board: &mut Switchboard) -> Result<(), LoadError> {
    board.hang_up_all();
    let deadline = board.clock.now() + SET_UP_MAX;
    while board.carrier.live() + board.phones.live() > 0 && board.clock.now() < deadline {
        board.turn(deadline)?;
    }
    Ok(())
}

/// The number of calls that carry a rate at 50 packets a second and leg.
fn calls_for(rate: f64) -> u32 {
    // The rate is positive; it is validated when it is parsed.
    (rate / 100.0).ceil().clamp(1.0, 20_000.0) as u32
}

/// The packet interval of each leg.
fn interval(rate: f64, calls: u32) -> Nanos {
    (f64::from(calls) * 2.0 / rate * SECOND as f64) as Nanos
}

/// The time between the start of a stream and its first packet.
const LEAD: Nanos = 200 * MILLISECOND;
/// A packet that takes longer counts as lost.
const DRAIN: Nanos = SECOND / 2;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_and_intervals_give_the_rate() {
        for (rate, calls, ms) in
            [(25_000.0, 250, 20.0), (100_000.0, 1_000, 20.0), (50.0, 1, 40.0), (150.0, 2, 26.666)]
        {
            assert_eq!(calls_for(rate), calls, "{rate}");
            let found = interval(rate, calls) as f64 / MILLISECOND as f64;
            assert!((found - ms).abs() < 0.001, "{rate}: {found}");
        }
    }
}
