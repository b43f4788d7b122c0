//! Hashing for request handlers: on blocking threads, a few at a time, with a bounded queue.

use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;
use rand::distr::{Alphanumeric, SampleString};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use sidetone_model::directory::Secret;
use sidetone_model::problem::Problem;
use tokio::sync::Semaphore;

use crate::accounts::hash::{SALT_LEN, hash, verify};

/// Hashes and verifies passwords.
#[derive(Debug)]
pub struct Passwords {
    running: Semaphore,
    waiting: AtomicUsize,
    rng: Mutex<StdRng>,
}

impl Passwords {
    /// Takes salts from a generator seeded by `rng`.
    pub fn new(rng: &mut StdRng) -> Self {
        Self {
            running: Semaphore::new(RUNNING_MAX),
            waiting: AtomicUsize::new(0),
            rng: Mutex::new(StdRng::from_rng(rng)),
        }
    }

    /// Returns the hash of a new password.
    pub(super) async fn hash(&self, password: &Secret) -> Result<String, Problem> {
        let mut salt = [0; SALT_LEN];
        self.rng.lock().fill_bytes(&mut salt);
        let password = password.clone();
        let hashed = self.run(move || hash(&password.0, &salt)).await?;
        hashed.map_err(|error| Problem::Internal(format!("failed to {error}")))
    }

    /// Returns whether `password` has the hash `stored`. Without a hash the same work is done, so that the time does
    /// not reveal whether an account exists.
    pub(super) async fn verify(&self, password: &Secret, stored: Option<String>) -> Result<bool, Problem> {
        let password = password.clone();
        self.run(move || match stored {
            Some(stored) => verify(&password.0, &stored),
            None => {
                let _ = verify(&password.0, HASH_OF_NO_ACCOUNT);
                false
            }
        })
        .await
    }

    async fn run<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> Result<T, Problem> {
        let _place = Place::take(&self.waiting).ok_or(Problem::Busy { retry_after_s: BUSY_RETRY_S })?;
        let failed = |what: &dyn std::fmt::Display| Problem::Internal(format!("failed to hash: {what}"));
        let _permit = self.running.acquire().await.map_err(|error| failed(&error))?;
        tokio::task::spawn_blocking(work).await.map_err(|error| failed(&error))
    }

    /// A new password with 119 bits, still short enough to type.
    pub(super) fn generate(&self) -> Secret {
        Secret(Alphanumeric.sample_string(&mut *self.rng.lock(), PASSWORD_LEN))
    }

    /// A new key's text.
    pub(super) fn generate_key(&self) -> String {
        crate::accounts::generate_key(&mut *self.rng.lock())
    }
}

/// A place in the queue, released when dropped.
struct Place<'q>(&'q AtomicUsize);

impl<'q> Place<'q> {
    fn take(waiting: &'q AtomicUsize) -> Option<Self> {
        let before = waiting.fetch_add(1, Ordering::Relaxed);
        let place = Self(waiting);
        (before < QUEUE_LEN_MAX).then_some(place)
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A hash with the parameters of [`hash()`], to compare with if there is no account.
const HASH_OF_NO_ACCOUNT: &str =
    "$argon2id$v=19$m=19456,t=2,p=1$BwcHBwcHBwcHBwcHBwcHBw$gwBQpUwlYrNRAhABcJSQ1l2FeD3BV8iVUT0ObhMjLuc";
/// Characters of a generated password.
const PASSWORD_LEN: usize = 20;
/// Hashes computed at the same time: each uses 19 MiB and a core.
const RUNNING_MAX: usize = 2;
/// Requests that wait or run: about a second of work.
const QUEUE_LEN_MAX: usize = 64;
const BUSY_RETRY_S: u64 = 2;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_an_account_the_same_work_is_done() {
        assert_eq!(hash("", &[7; SALT_LEN]).unwrap(), HASH_OF_NO_ACCOUNT);
    }

    #[tokio::test]
    async fn nobody_has_no_password_and_a_full_queue_says_so() {
        let passwords = Passwords::new(&mut StdRng::seed_from_u64(1));
        let stored = passwords.hash(&Secret("correct horse".to_owned())).await.unwrap();
        assert_eq!(passwords.verify(&Secret("correct horse".to_owned()), Some(stored)).await, Ok(true));
        assert_eq!(passwords.verify(&Secret("".to_owned()), None).await, Ok(false));
        let places: Vec<_> = (0..QUEUE_LEN_MAX).map(|_| Place::take(&passwords.waiting).unwrap()).collect();
        let busy = passwords.verify(&Secret("x".to_owned()), None).await;
        assert_eq!(busy, Err(Problem::Busy { retry_after_s: BUSY_RETRY_S }));
        drop(places);
        assert_eq!(passwords.verify(&Secret("x".to_owned()), None).await, Ok(false));
    }
}
