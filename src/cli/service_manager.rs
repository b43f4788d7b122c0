//! Messages to the service manager (sd_notify(3)): when the engine is ready, reloads and stops, and watchdog
//! notifications, which are sent only while the switch answers. Without `NOTIFY_SOCKET` nothing is sent.

use std::time::Duration;

use sd_notify::{NotifyState, notify, watchdog_enabled};

use crate::app::Engine;

/// Reports that the engine accepts calls: after the start and after a reload.
pub(super) fn ready() {
    send(&[NotifyState::Ready]);
}

/// Reports that the configuration is being reloaded; [`ready`] reports the end.
pub(super) fn reloading() {
    match NotifyState::monotonic_usec_now() {
        Ok(now) => send(&[NotifyState::Reloading, now]),
        Err(error) => tracing::warn!(%error, "the reload was not reported to the service manager"),
    }
}

/// Reports that the engine stops, and requests the time that its calls may take.
pub(super) fn stopping(drain: Duration) {
    let limit_us = (drain + STOP_EXTRA).as_micros();
    // The library supports 71 minutes at most; a longer drain depends on the unit's TimeoutStopSec=.
    let limit = u32::try_from(limit_us).unwrap_or(u32::MAX);
    send(&[NotifyState::Stopping, NotifyState::ExtendTimeoutUsec(limit)]);
}

/// Notifies the watchdog of the service manager while the switch answers; never completes. A process whose switch
/// hangs is killed and restarted by the service manager (`WatchdogSec=`).
pub(super) async fn feed_watchdog(engine: &Engine) {
    match watchdog_enabled() {
        Some(limit) => feed(limit, async || engine.answers().await, || send(&[NotifyState::Watchdog])).await,
        None => std::future::pending().await,
    }
}

/// Calls `ping` three times per `limit` while `answers` is true, but every 10 ms at most. One late answer does not
/// end the process.
async fn feed(limit: Duration, answers: impl AsyncFn() -> bool, ping: impl Fn()) {
    let mut clock = tokio::time::interval((limit / PINGS_PER_LIMIT).max(SHORTEST_PING));
    clock.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        clock.tick().await;
        if answers().await {
            ping();
        } else {
            tracing::error!("the switch does not answer: the watchdog is not fed");
        }
    }
}

fn send(state: &[NotifyState<'_>]) {
    if std::env::var_os("NOTIFY_SOCKET").is_none() {
        return;
    }
    if let Err(error) = notify(state) {
        tracing::warn!(%error, "the service manager was not reached (NOTIFY_SOCKET)");
    }
}

const PINGS_PER_LIMIT: u32 = 3;
/// A `WATCHDOG_USEC` of nearly 0 must not stop the engine (an interval of 0 panics) or occupy the switch.
const SHORTEST_PING: Duration = Duration::from_millis(10);
/// Time for the last records and requests, after the calls.
const STOP_EXTRA: Duration = Duration::from_secs(45);

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn the_watchdog_is_fed_while_the_switch_answers() {
        let (answers, pings) = (Cell::new(true), Cell::new(0));
        let feeding = feed(Duration::from_secs(30), async || answers.get(), || pings.set(pings.get() + 1));
        let run = async |seconds: u64| tokio::time::sleep(Duration::from_secs(seconds)).await;
        let script = async {
            run(29).await;
            assert_eq!(pings.get(), 3);
            answers.set(false);
            run(60).await;
            assert_eq!(pings.get(), 3, "a switch that hangs is noticed");
            answers.set(true);
            run(10).await;
            assert_eq!(pings.get(), 4);
        };
        tokio::select! {
            () = feeding => unreachable!("it never completes"),
            () = script => {}
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_watchdog_of_no_time_is_fed_a_hundred_times_a_second() {
        let pings = Cell::new(0);
        let feeding = feed(Duration::ZERO, async || true, || pings.set(pings.get() + 1));
        let _ = tokio::time::timeout(Duration::from_millis(995), feeding).await;
        assert_eq!(pings.get(), 100);
    }
}
