//! Monitors whether the database answers: a time limit for every answer, a heartbeat to a server, and a count of
//! failures.
//!
//! A server that is stopped or unreachable accepts statements and does not answer. The heartbeat queries the server
//! twice a second on a separate connection. A statement without an answer fails after [`PATIENCE`] if the heartbeat
//! has no answer either; a slow statement on a server that answers has its full time.

use std::future::{Future, pending};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use sqlx::Connection as _;
use sqlx::postgres::{PgConnectOptions, PgConnection};
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout};

use crate::failure::Failure;

/// The time limits of answers over one pool; clones share them.
#[derive(Debug, Clone)]
pub(super) struct Vitals {
    /// How long an answer may take; `None` where the database is a file.
    limit: Option<Duration>,
    heartbeat: Option<Heartbeat>,
    trouble: Arc<Trouble>,
}

/// Whether the server is known to be unresponsive; clones share the task.
#[derive(Debug, Clone)]
pub(super) struct Heartbeat(watch::Receiver<bool>);

/// Counts failures by class, and logs passing ones at most once in [`LOG_EVERY`].
#[derive(Debug, Default)]
pub(super) struct Trouble {
    failures: [AtomicU64; Failure::ALL.len()],
    logged_at: Mutex<Option<Instant>>,
}

impl Vitals {
    /// The limits for a file.
    pub(super) fn of_file(trouble: Arc<Trouble>) -> Self {
        Self { limit: None, heartbeat: None, trouble }
    }

    /// The limits for a server whose answers may take `limit`.
    pub(super) fn of_server(limit: Duration, heartbeat: Option<Heartbeat>, trouble: Arc<Trouble>) -> Self {
        Self { limit: Some(limit), heartbeat, trouble }
    }

    /// Returns the result of the work if the database answers in time.
    pub(super) async fn answered<T>(
        &self,
        answer: impl Future<Output = Result<T, sqlx::Error>>,
    ) -> Result<T, sqlx::Error> {
        let answer = tokio::select! {
            biased;
            answer = answer => answer,
            () = self.given_up() => Err(timed_out("PostgreSQL does not answer".to_owned())),
            limit = self.limit_over() => Err(timed_out(format!("PostgreSQL has not answered for {limit:?}"))),
        };
        if let Err(error) = &answer {
            self.trouble.note(error);
        }
        answer
    }

    /// Counts the failures over this pool.
    pub(super) fn trouble(&self) -> &Trouble {
        &self.trouble
    }

    async fn given_up(&self) {
        match &self.heartbeat {
            Some(heartbeat) => heartbeat.given_up().await,
            None => pending().await,
        }
    }

    async fn limit_over(&self) -> Duration {
        let Some(limit) = self.limit else { return pending().await };
        sleep(limit).await;
        limit
    }
}

impl Heartbeat {
    /// Starts to query the server. The task ends with the last clone.
    pub(super) fn start(options: PgConnectOptions) -> Self {
        let (away, heard) = watch::channel(false);
        tokio::spawn(async move {
            tokio::select! {
                () = away.closed() => {}
                () = beat(&options, &away) => {}
            }
        });
        Self(heard)
    }

    /// Completes when an answer has taken too long and the server does not answer the heartbeat either.
    pub(super) async fn given_up(&self) {
        let mut away = self.0.clone();
        let patience = if *away.borrow() { SHORT_PATIENCE } else { PATIENCE };
        sleep(patience).await;
        if away.wait_for(|away| *away).await.is_err() {
            pending::<()>().await;
        }
    }

    /// Returns the result of `work`, unless the server stops answering for `patience`.
    pub(super) async fn unless_away<T>(
        &self,
        patience: Duration,
        work: impl Future<Output = T>,
    ) -> Option<T> {
        let silent = async {
            let mut away = self.0.clone();
            loop {
                if away.wait_for(|away| *away).await.is_err() {
                    pending::<()>().await;
                }
                if timeout(patience, away.wait_for(|away| !*away)).await.is_err() {
                    return;
                }
            }
        };
        tokio::select! {
            biased;
            done = work => Some(done),
            () = silent => None,
        }
    }
}

/// Queries repeatedly, and reports whether there was an answer.
async fn beat(options: &PgConnectOptions, away: &watch::Sender<bool>) {
    loop {
        let connected = timeout(BEAT_TIME, PgConnection::connect_with(options)).await;
        if let Ok(Ok(mut connection)) = connected {
            while matches!(timeout(BEAT_TIME, connection.ping()).await, Ok(Ok(()))) {
                away.send_replace(false);
                sleep(BEAT_EVERY).await;
            }
        }
        away.send_replace(true);
        sleep(BEAT_EVERY).await;
    }
}

impl Trouble {
    /// Failures since the start, by class.
    pub(super) fn failures(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let counts = self.failures.iter().map(|count| count.load(Ordering::Relaxed));
        Failure::ALL.into_iter().map(Failure::as_str).zip(counts)
    }

    fn note(&self, error: &sqlx::Error) {
        let failure = Failure::of(error);
        if let Some(count) = self.failures.get(failure as usize) {
            count.fetch_add(1, Ordering::Relaxed);
        }
        if failure != Failure::Passing {
            return;
        }
        let now = Instant::now();
        let mut logged_at = self.logged_at.lock();
        if logged_at.is_none_or(|at| now.duration_since(at) >= LOG_EVERY) {
            *logged_at = Some(now);
            tracing::error!(
                %error,
                "the database does not answer: requests that need it are answered 503, call records wait on the disk; \
                 check the database and its disk"
            );
        }
    }
}

fn timed_out(what: String) -> sqlx::Error {
    sqlx::Error::Io(io::Error::new(io::ErrorKind::TimedOut, what))
}

/// How often a server is queried.
const BEAT_EVERY: Duration = Duration::from_millis(500);
/// How long its answer may take.
const BEAT_TIME: Duration = Duration::from_secs(1);
/// How often passing failures are logged.
const LOG_EVERY: Duration = Duration::from_secs(10);
/// How long an answer may take before the heartbeat is consulted.
const PATIENCE: Duration = Duration::from_millis(1_200);
/// The same if the heartbeat already has no answer.
const SHORT_PATIENCE: Duration = Duration::from_millis(250);
