//! Follows the stored data. A running switch gets the changes of this process immediately, those of another node when
//! its message arrives, and all others, including those of `apply`, within two seconds.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use sidetone_model::metrics::Family;
use sidetone_model::rating::{Account, Drawn};
use sidetone_store::{Changed, Store, StoreError};
use sidetone_switch::machine::Input;
use sidetone_switch::rating::Tariffs;
use sidetone_switch::routing::Directory;
use tokio::sync::{mpsc, watch};

use crate::clock::instant;
use crate::driver::{Handle, Request};

/// The state that the switch has.
#[derive(Debug, Default)]
pub struct Heard {
    /// The revision of the directory.
    pub directory: i64,
    /// The revision of the rates.
    pub rates: i64,
    /// The accounts.
    pub accounts: Vec<Account>,
    /// How changes of the directory were detected.
    pub counts: Arc<DirectoryCounts>,
}

/// How changes of the directory were detected.
#[derive(Debug, Default)]
pub struct DirectoryCounts {
    /// By polling, once a second.
    polled: AtomicU64,
    /// By a commit of this process, or by the message of another node.
    notified: AtomicU64,
}

impl DirectoryCounts {
    /// The metric.
    pub fn family(&self) -> Family {
        Family::counter(
            "sidetone_directory_changes_total",
            "Readings of a changed directory, by how the change was found: the process that committed it has notified this one, or \
             this one has polled, once a second.",
        )
        .with([("found", "notified")], self.notified.load(Ordering::Relaxed))
        .with([("found", "polled")], self.polled.load(Ordering::Relaxed))
    }
}

/// Reads changed data again, until it is stopped; `away` states whether the last query failed.
pub async fn watch_stored(
    store: &Store,
    switch: &Handle,
    heard: &mut Heard,
    away: &AtomicBool,
    mut stop: watch::Receiver<bool>,
) {
    let mut changes = store.changes();
    let mut notices = store.event_bell().follow(Changed::Directory);
    let mut pause = PAUSE_MIN;
    loop {
        let is_notified = tokio::select! {
            _ = stop.wait_for(|stop| *stop) => return,
            () = tokio::time::sleep(LOOK_EVERY) => false,
            () = notices.news_after(pause) => true,
        };
        if !changes.may_have_come() && !is_notified {
            continue;
        }
        let began = instant();
        let before = heard.directory;
        let news = news(store, heard).await;
        // Reading a large directory takes only a fraction of the time.
        pause = (began.elapsed() * PAUSE_PARTS).clamp(PAUSE_MIN, LOOK_EVERY);
        if heard.directory != before {
            let found = if is_notified { &heard.counts.notified } else { &heard.counts.polled };
            found.fetch_add(1, Ordering::Relaxed);
        }
        away.store(news.is_err(), Ordering::Relaxed);
        match news {
            Ok(news) => {
                for request in news {
                    if !switch.send(request).await {
                        return;
                    }
                }
            }
            // Calls continue with the current data; the next read follows soon.
            Err(error) => {
                changes.forget();
                tracing::warn!(%error, "the directory cannot be read again");
            }
        }
    }
}

/// Returns the changes, in the order for the switch: the rates of a destination precede the directory that allows
/// calls to it.
async fn news(store: &Store, heard: &mut Heard) -> Result<Vec<Request>, StoreError> {
    let mut news = Vec::new();
    // The directory's revision is read first: everything written with it is then visible in the reads below.
    let directory = store.directory_revision().await?;
    if store.rate_revision().await? != heard.rates {
        let rates = store.rates().await?;
        heard.rates = rates.revision;
        news.push(Request::Billing(Input::Tariffs(Arc::new(Tariffs::new(rates)))));
    }
    // The costs of other nodes' calls change no revision.
    let accounts = store.accounts().await?;
    if accounts != heard.accounts {
        heard.accounts.clone_from(&accounts);
        news.push(Request::Billing(Input::Accounts(accounts)));
    }
    if directory != heard.directory {
        let snapshot = store.directory().await?;
        heard.directory = snapshot.revision;
        news.push(Request::Directory(Arc::new(Directory::new(snapshot))));
    }
    Ok(news)
}

/// Reports the writer's deductions from credits to the switch.
pub async fn pass_on_draws(drawn: &mut mpsc::Receiver<Vec<Drawn>>, switch: &Handle) {
    while let Some(drawn) = drawn.recv().await {
        if !switch.send(Request::Billing(Input::Drawn(drawn))).await {
            return;
        }
    }
}

/// How often the task checks for changes; one takes effect within two seconds.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// The shortest time between two reads after notifications.
const PAUSE_MIN: Duration = Duration::from_millis(50);
/// That time as a multiple of the duration of the last read.
const PAUSE_PARTS: u32 = 3;
/// Batches of the writer that wait to be reported.
pub const DRAWN_LEN_MAX: usize = 64;
