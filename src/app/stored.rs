//! The first reads from the database.

use std::sync::Arc;

use sidetone_model::rating::Account;
use sidetone_store::{Store, StoreError};
use sidetone_switch::rating::Tariffs;
use sidetone_switch::routing::Directory;

use crate::watch::Heard;

/// The data that the switch reads from the database at the start.
pub(super) struct Stored {
    pub(super) directory: Directory,
    pub(super) tariffs: Arc<Tariffs>,
    pub(super) accounts: Vec<Account>,
    pub(super) revisions: Heard,
}

impl Stored {
    /// Reads the directory, the rates and the accounts.
    ///
    /// # Errors
    /// When the database refuses a read, or is too busy for it ten times; each time it has at most 1.5 seconds.
    pub(super) async fn read(store: &Store) -> Result<Self, StoreError> {
        patiently(async || Self::read_once(store).await, StoreError::is_passing).await
    }

    async fn read_once(store: &Store) -> Result<Self, StoreError> {
        let directory = Directory::new(store.directory().await?);
        let (accounts, rates) = (store.accounts().await?, store.rates().await?);
        let revisions = Heard {
            directory: directory.revision(),
            rates: rates.revision,
            accounts: accounts.clone(),
            ..Heard::default()
        };
        Ok(Self { directory, tariffs: Arc::new(Tariffs::new(rates)), accounts, revisions })
    }
}

/// Repeats a read whose failure passes: a node starts beside others that use the same server.
async fn patiently<T, E>(
    read: impl AsyncFn() -> Result<T, E>,
    is_passing: impl Fn(&E) -> bool,
) -> Result<T, E> {
    for _ in 1..READ_TRIES {
        match read().await {
            Err(failure) if is_passing(&failure) => {}
            done => return done,
        }
    }
    read().await
}

const READ_TRIES: u32 = 10;

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[tokio::test]
    async fn a_read_is_repeated_while_its_failure_passes() {
        const BUSY: &str = "busy";
        for (failure, failures, reads, is_read) in [
            (BUSY, 0, 1, true),
            (BUSY, 2, 3, true),
            (BUSY, 9, 10, true),
            (BUSY, 10, 10, false),
            ("refused", 1, 1, false),
        ] {
            let tries = Cell::new(0);
            let read = async || {
                tries.set(tries.get() + 1);
                if tries.get() > failures { Ok(()) } else { Err(failure) }
            };
            let done = patiently(read, |failure| *failure == BUSY).await;
            assert_eq!((done.is_ok(), tries.get()), (is_read, reads), "{failures} times {failure}");
        }
    }
}
