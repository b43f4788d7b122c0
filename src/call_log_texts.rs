//! Adds the texts of old call records to the blocks that searches read, while the engine runs.
//!
//! This happens once, after the first start of a version that has these blocks. Until it is complete, searches are
//! correct but slower. The writer of records can use the database for half of the time.

use std::time::Duration;

use sidetone_store::{Filled, Store};
use tokio::sync::watch;
use tokio::time::Instant;

/// Fills the blocks until every record is in one, or the task is stopped.
pub async fn fill(store: &Store, mut stop: watch::Receiver<bool>) {
    let (mut records, mut log_at, mut is_failing) = (0, Instant::now(), false);
    loop {
        let began = Instant::now();
        let pause = match store.fill_text_blocks().await {
            Ok(Filled::All) => {
                if records > 0 {
                    tracing::info!(records, "the texts of all old call records are prepared for searches");
                }
                return;
            }
            Ok(Filled::Some(more)) => {
                records += more;
                is_failing = false;
                if log_at <= began {
                    log_at = began + LOG_EVERY;
                    tracing::info!(
                        records,
                        "the texts of old call records are being prepared; searches are slower until then"
                    );
                }
                began.elapsed().max(PAUSE_MIN)
            }
            Err(error) => {
                if !std::mem::replace(&mut is_failing, true) {
                    tracing::warn!(%error, "the texts of old call records cannot be prepared now; the next attempt follows");
                }
                RETRY_AFTER
            }
        };
        tokio::select! {
            _ = stop.wait_for(|stop| *stop) => return,
            () = tokio::time::sleep(pause) => {}
        }
    }
}

/// How often the progress is logged.
const LOG_EVERY: Duration = Duration::from_secs(5);
/// The shortest pause after each step, in which others can write.
const PAUSE_MIN: Duration = Duration::from_millis(10);
const RETRY_AFTER: Duration = Duration::from_secs(5);
