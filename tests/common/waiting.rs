//! Waits for conditions, with a deadline that only a failure reaches.
#![allow(clippy::panic, dead_code, unreachable_pub, reason = "benches use a part")]

use std::future::Future;
use std::time::Duration;

/// The interval at which a condition is checked.
pub const POLL_EVERY: Duration = Duration::from_millis(20);
/// Longer than any wait on a busy machine.
pub const PATIENCE: Duration = Duration::from_secs(300);

/// Waits for `future`, for as long as a slow machine may need.
pub async fn within<T>(what: &str, future: impl Future<Output = T>) -> T {
    match tokio::time::timeout(PATIENCE, future).await {
        Ok(value) => value,
        Err(_) => panic!("{what}: not within {PATIENCE:?}"),
    }
}

/// Waits until `holds`.
pub async fn until(what: &str, mut holds: impl FnMut() -> bool) {
    within(what, async {
        while !holds() {
            tokio::time::sleep(POLL_EVERY).await;
        }
    })
    .await;
}

/// Polls until there is a value, and returns it.
pub async fn found<T>(what: &str, mut look: impl AsyncFnMut() -> Option<T>) -> T {
    within(what, async {
        loop {
            if let Some(found) = look().await {
                return found;
            }
            tokio::time::sleep(POLL_EVERY).await;
        }
    })
    .await
}
