//! Stores rows however long the database is unavailable: the same retries for every task that writes.
//!
//! A temporary failure (no connection, a lock, a full disk) is retried for as long as it lasts. A row that the
//! database refuses three times on its own becomes a dead letter (`dead_letters.rs`) and does not delay others.

use std::time::Duration;

use sidetone_model::ports::PortFuture;
use sidetone_model::problem::Problem;

use crate::dead_letters::{DeadLetters, Letter};

/// Rows that are stored in one transaction. The default has no row; a group of one row is a letter.
pub trait Group: Letter + Default + Sync {
    /// Each row as a group of its own, in order.
    fn each(&self) -> Vec<Self>;
}

/// Stores groups.
pub trait Storing<G, R>: Sync {
    /// Stores all rows of `group` or none.
    fn store<'a>(&'a self, group: &'a G) -> PortFuture<'a, R>;
}

/// How a task handles failures of the database.
#[derive(Debug, Clone)]
pub struct Retries {
    /// The pause before the next attempt.
    pub pause: Duration,
    /// Rows that the database refuses permanently.
    pub letters: DeadLetters,
    /// The kind of the waiting rows, for the log.
    waiting: &'static str,
}

impl Retries {
    /// The usual pause, without dead letters; `waiting` names the rows in the log.
    pub fn new(waiting: &'static str) -> Self {
        Self { pause: RETRY_AFTER, letters: DeadLetters::default(), waiting }
    }

    /// Stores `group` however long the database is unavailable. Rows that it refuses permanently become dead letters;
    /// the results of the others are returned.
    pub async fn store_all<G: Group, R>(&self, storing: &impl Storing<G, R>, group: &G) -> Vec<R> {
        let waiting = self.waiting;
        let mut failing = false;
        loop {
            let error = match storing.store(group).await {
                Ok(result) => {
                    if failing {
                        tracing::info!("the database is back: {waiting} are stored");
                    }
                    return vec![result];
                }
                Err(error) => error,
            };
            if failing {
                tracing::debug!(%error, "{waiting} still wait for the database");
            } else {
                tracing::error!(%error, "{waiting} wait for the database");
            }
            failing = true;
            tokio::time::sleep(self.pause).await;
            if Fault::of(&error) != Fault::Passing {
                return self.one_by_one(storing, group).await;
            }
        }
    }

    /// Stores each row of `group` separately.
    async fn one_by_one<G: Group, R>(&self, storing: &impl Storing<G, R>, group: &G) -> Vec<R> {
        let mut results = Vec::new();
        let mut pending: Vec<(G, u32)> = group.each().into_iter().map(|row| (row, 0)).collect();
        // Whether the database stores anything at all: if not, a refusal is not the fault of a row.
        let mut works = false;
        let mut rounds = 0_u32;
        while !pending.is_empty() {
            let mut left = Vec::new();
            for (row, tries) in pending {
                let error = match self.patiently(storing, &row).await {
                    Ok(result) => {
                        works = true;
                        results.push(result);
                        continue;
                    }
                    Err(error) => error,
                };
                let tries = if works || Fault::of(&error) == Fault::Refused { tries + 1 } else { tries };
                if tries < TRIES_MAX || !self.letters.bury(&row, &error) {
                    left.push((row, tries));
                }
            }
            pending = left;
            if !pending.is_empty() {
                rounds = rounds.saturating_add(1);
                works = works || rounds >= ROUNDS_MAX && self.patiently(storing, &G::default()).await.is_ok();
                tokio::time::sleep(self.pause).await;
            }
        }
        results
    }

    /// Stores `group` as soon as the database is available; returns its result.
    async fn patiently<G, R>(&self, storing: &impl Storing<G, R>, group: &G) -> Result<R, Problem> {
        loop {
            match storing.store(group).await {
                Err(error) if Fault::of(&error) == Fault::Passing => tokio::time::sleep(self.pause).await,
                outcome => return outcome,
            }
        }
    }
}

/// The cause of a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    /// The database, temporarily.
    Passing,
    /// The item.
    Refused,
    /// Unknown.
    Unknown,
}

impl Fault {
    /// Returns the cause of `problem`.
    pub(crate) fn of(problem: &Problem) -> Self {
        match problem {
            Problem::Busy { .. } | Problem::Draining { .. } | Problem::Unavailable { .. } => Fault::Passing,
            Problem::Internal(_) => Fault::Unknown,
            Problem::Conflict(_)
            | Problem::Forbidden(_)
            | Problem::InvalidRequest(_)
            | Problem::NotFound(_)
            | Problem::Refused(_)
            | Problem::PreconditionFailed(_)
            | Problem::Unprocessable(_) => Fault::Refused,
        }
    }
}

/// The pause before the database is tried again.
pub const RETRY_AFTER: Duration = Duration::from_millis(500);
/// How often a row is tried separately before it becomes a dead letter.
const TRIES_MAX: u32 = 3;
/// Rounds without a success after which the database is checked for whether it stores anything at all.
const ROUNDS_MAX: u32 = 10;

#[cfg(test)]
mod tests {
    use std::fs;

    use parking_lot::Mutex;
    use serde_json::Value;
    use uuid::Uuid;

    use super::*;

    #[derive(Default)]
    struct Numbers(Vec<u32>);

    impl Letter for Numbers {
        fn kind(&self) -> &'static str {
            "number"
        }

        fn content(&self) -> Result<Value, serde_json::Error> {
            Ok(self.0[0].into())
        }
    }

    impl Group for Numbers {
        fn each(&self) -> Vec<Self> {
            self.0.iter().map(|number| Numbers(vec![*number])).collect()
        }
    }

    /// A database with a result for each number, by the index of the attempt; every other attempt succeeds.
    struct Sink {
        refuses: fn(number: u32, tries: usize) -> Option<Problem>,
        tries: Mutex<Vec<u32>>,
        stored: Mutex<Vec<u32>>,
    }

    impl Storing<Numbers, usize> for Sink {
        fn store<'a>(&'a self, Numbers(numbers): &'a Numbers) -> PortFuture<'a, usize> {
            Box::pin(async move {
                for number in numbers {
                    let mut tries = self.tries.lock();
                    tries.push(*number);
                    let count = tries.iter().filter(|tried| *tried == number).count();
                    if let Some(problem) = (self.refuses)(*number, count) {
                        return Err(problem);
                    }
                }
                self.stored.lock().extend(numbers);
                Ok(numbers.len())
            })
        }
    }

    /// Stores 0 to 9; returns the stored numbers, and those of the dead letters.
    fn store(refuses: fn(u32, usize) -> Option<Problem>) -> (Vec<u32>, Vec<Value>) {
        let dir = std::env::temp_dir().join(format!("sidetone-letters-{}", Uuid::new_v4()));
        let letters = DeadLetters::below(&dir);
        let sink = Sink { refuses, tries: Mutex::default(), stored: Mutex::default() };
        let retries = Retries { pause: Duration::ZERO, letters: letters.clone(), ..Retries::new("numbers") };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(retries.store_all(&sink, &Numbers((0..10).collect())));
        let dead = letters.list().unwrap();
        assert_eq!(letters.written(), dead.len() as u64);
        let _ = fs::remove_dir_all(&dir);
        let mut stored = sink.stored.into_inner();
        stored.sort_unstable();
        (stored, dead.into_iter().map(|(_, letter)| letter.unwrap().content).collect())
    }

    fn refused() -> Option<Problem> {
        Some(Problem::Refused("too long".to_owned()))
    }

    fn unavailable() -> Option<Problem> {
        Some(Problem::Unavailable { reason: "away".to_owned(), retry_after_s: 1 })
    }

    #[test]
    fn what_is_refused_for_good_becomes_a_letter_and_the_rest_is_stored() {
        let all: Vec<u32> = (0..10).collect();
        let but_3: Vec<u32> = all.iter().copied().filter(|number| *number != 3).collect();
        let none: [Value; 0] = [];
        assert_eq!(store(|_, _| None), (all.clone(), none.to_vec()), "no fault");
        assert_eq!(
            store(|number, _| if number == 3 { refused() } else { None }),
            (but_3.clone(), vec![3.into()])
        );
        let unknown = |number, _| (number == 3).then(|| Problem::Internal("corrupt".to_owned()));
        assert_eq!(store(unknown), (but_3, vec![3.into()]), "the others are stored: it is its own fault");
        let passing = |number, tries| if number == 3 && tries < 50 { unavailable() } else { None };
        assert_eq!(store(passing), (all.clone(), none.to_vec()), "however long it takes");
        let twice = |number, tries| if number == 3 && tries < 3 { refused() } else { None };
        assert_eq!(store(twice), (all, none.to_vec()), "refused once by itself, then taken");
        let every = |_, _| refused();
        assert_eq!(store(every).1.len(), 10);
    }
}
