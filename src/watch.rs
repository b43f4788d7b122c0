//! Follows what is stored: a running switch hears within two seconds of what `apply`, the API or another node changed.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use sidetone_model::rating::{Account, Drawn};
use sidetone_store::{Store, StoreError};
use tokio::sync::{mpsc, watch};

use crate::rating::Tariffs;
use crate::routing::Directory;
use crate::switch::driver::{Handle, Request};
use crate::switch::machine::Input;

/// What the switch has heard so far.
#[derive(Debug, Default)]
pub struct Heard {
    /// The revision of the directory.
    pub directory: i64,
    /// The revision of the rates.
    pub rates: i64,
    /// The accounts.
    pub accounts: Vec<Account>,
}

/// Reads again what changed, until told to stop; `away` says whether the database answered last time.
pub async fn watch_stored(
    store: &Store,
    switch: &Handle,
    heard: &mut Heard,
    away: &AtomicBool,
    mut stop: watch::Receiver<bool>,
) {
    loop {
        tokio::select! {
            _ = stop.wait_for(|stop| *stop) => return,
            () = tokio::time::sleep(LOOK_EVERY) => {}
        }
        let news = news(store, heard).await;
        away.store(news.is_err(), Ordering::Relaxed);
        match news {
            Ok(news) => {
                for request in news {
                    if !switch.send(request).await {
                        return;
                    }
                }
            }
            // Calls go on with what is known; the next reading comes soon.
            Err(error) => tracing::warn!(%error, "the directory cannot be read again"),
        }
    }
}

/// What changed, in the order that the switch shall hear it: nobody is called before it is known what that costs.
async fn news(store: &Store, heard: &mut Heard) -> Result<Vec<Request>, StoreError> {
    let mut news = Vec::new();
    // The directory's revision first: whatever was written with it is then seen below.
    let directory = store.directory_revision().await?;
    if store.rate_revision().await? != heard.rates {
        let rates = store.rates().await?;
        heard.rates = rates.revision;
        news.push(Request::Billing(Input::Tariffs(Arc::new(Tariffs::new(rates)))));
    }
    // What calls of other nodes cost raises no revision.
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

/// Passes on what the writer took from credits.
pub async fn pass_on_draws(drawn: &mut mpsc::Receiver<Vec<Drawn>>, switch: &Handle) {
    while let Some(drawn) = drawn.recv().await {
        if !switch.send(Request::Billing(Input::Drawn(drawn))).await {
            return;
        }
    }
}

/// How often the stored revisions are asked for; a change is known within two seconds.
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// Batches of the writer that wait to be passed on.
pub const DRAWN_LEN_MAX: usize = 64;
