//! Shares of the connections: one organisation gets only a part of them, however many requests it has.
//!
//! An organisation that holds as many connections as are free has to wait. For example, of eight connections one
//! organisation gets four, the next one two, and one is left for the third. Waiting organisations are served in turn,
//! each in the order of its requests.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use sidetone_model::ids::OrganisationId;
use tokio::sync::oneshot;

tokio::task_local! {
    static TENANT: OrganisationId;
}

/// Runs `work` for an organisation.
pub(super) fn acting_for(organisation: OrganisationId, work: &mut dyn FnMut()) {
    TENANT.sync_scope(organisation, work);
}

/// The organisation that work is done for; `None` for the engine's own work and during authentication.
pub(super) fn tenant() -> Option<OrganisationId> {
    TENANT.try_with(|organisation| *organisation).ok()
}

/// The connections that organisations share; all clones share one state.
#[derive(Debug, Clone)]
pub(super) struct Shares(Arc<Mutex<State>>);

/// *Bounds*: an organisation has an entry while it holds or awaits a connection, with at most [`WAITING_MAX`]
/// waiting requests.
#[derive(Debug)]
struct State {
    free: usize,
    seats: HashMap<OrganisationId, Seat>,
    /// Organisations that wait, the next one first.
    round: VecDeque<OrganisationId>,
}

#[derive(Debug, Default)]
struct Seat {
    held: usize,
    waiting: VecDeque<oneshot::Sender<Share>>,
}

/// The right to use one connection; returned when dropped.
#[derive(Debug)]
pub(super) struct Share {
    shares: Shares,
    organisation: OrganisationId,
}

impl Shares {
    /// Returns the shares of `connections`.
    pub(super) fn new(connections: u32) -> Self {
        let free = usize::try_from(connections).unwrap_or(usize::MAX).max(1);
        Self(Arc::new(Mutex::new(State { free, seats: HashMap::new(), round: VecDeque::new() })))
    }

    /// Returns a share for `organisation`, within [`SHARE_TIME`].
    ///
    /// # Errors
    /// [`sqlx::Error::PoolTimedOut`] when none is free in time, or too many wait already.
    pub(super) async fn take(&self, organisation: OrganisationId) -> Result<Share, sqlx::Error> {
        let awaited = {
            let mut state = self.0.lock();
            let free = state.free;
            let seat = state.seats.entry(organisation).or_default();
            if seat.waiting.is_empty() && may_take(seat.held, free) {
                seat.held += 1;
                state.free -= 1;
                return Ok(Share { shares: self.clone(), organisation });
            }
            // Requests that no longer wait do not count.
            seat.waiting.retain(|waiting| !waiting.is_closed());
            if seat.waiting.len() >= WAITING_MAX {
                return Err(sqlx::Error::PoolTimedOut);
            }
            let (granted, awaited) = oneshot::channel();
            seat.waiting.push_back(granted);
            if !state.round.contains(&organisation) {
                state.round.push_back(organisation);
            }
            awaited
        };
        // A connection may be free for an organisation whose earlier requests no longer wait.
        self.grant();
        match tokio::time::timeout(SHARE_TIME, awaited).await {
            Ok(Ok(share)) => Ok(share),
            Ok(Err(_)) | Err(_) => Err(sqlx::Error::PoolTimedOut),
        }
    }

    fn give_back(&self, organisation: OrganisationId) {
        {
            let mut state = self.0.lock();
            state.free += 1;
            if let Some(seat) = state.seats.get_mut(&organisation) {
                seat.held = seat.held.saturating_sub(1);
            }
        }
        self.grant();
    }

    /// Gives free connections to waiting requests.
    fn grant(&self) {
        while let Some((granted, organisation)) = self.next() {
            // If the request no longer waits, the send fails and the share is dropped here, which returns it.
            let _ = granted.send(Share { shares: self.clone(), organisation });
        }
    }

    /// The next request that may continue. The lock is released before its share is sent: a share that is returned
    /// immediately, because the request has just stopped waiting, takes the lock again.
    fn next(&self) -> Option<(oneshot::Sender<Share>, OrganisationId)> {
        self.0.lock().next()
    }
}

impl State {
    /// Returns the next request that may continue; its connection counts as held.
    fn next(&mut self) -> Option<(oneshot::Sender<Share>, OrganisationId)> {
        for _ in 0..self.round.len() {
            let organisation = self.round.pop_front()?;
            let free = self.free;
            let Some(seat) = self.seats.get_mut(&organisation) else { continue };
            seat.waiting.retain(|waiting| !waiting.is_closed());
            if seat.waiting.is_empty() {
                if seat.held == 0 {
                    self.seats.remove(&organisation);
                }
                continue;
            }
            self.round.push_back(organisation);
            if !may_take(seat.held, free) {
                continue;
            }
            let granted = seat.waiting.pop_front()?;
            seat.held += 1;
            self.free -= 1;
            return Some((granted, organisation));
        }
        self.seats.retain(|_, seat| seat.held > 0 || !seat.waiting.is_empty());
        None
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.shares.give_back(self.organisation);
    }
}

/// Whether an organisation that holds `held` may have another one while `free` are free: one is left for the
/// next organisation.
fn may_take(held: usize, free: usize) -> bool {
    free > held
}

/// How long a request waits for a connection.
const SHARE_TIME: Duration = Duration::from_millis(1_500);
/// Requests of one organisation that wait for a connection; any further request fails immediately.
const WAITING_MAX: usize = 64;

#[cfg(test)]
mod tests {
    use std::future::Future;
    use std::task::{Context, Wake, Waker};

    use uuid::Uuid;

    use super::*;

    fn organisation(number: u128) -> OrganisationId {
        OrganisationId(Uuid::from_u128(number))
    }

    /// How many connections each organisation gets when each requests all of them.
    async fn shares(connections: u32, organisations: u128) -> Vec<usize> {
        let all = Shares::new(connections);
        let mut held = Vec::new();
        let mut shares = Vec::new();
        for number in 0..organisations {
            let before = held.len();
            while let Ok(share) = all.take(organisation(number)).await {
                held.push(share);
            }
            shares.push(held.len() - before);
        }
        shares
    }

    #[tokio::test(start_paused = true)]
    async fn an_organisation_never_has_them_all() {
        assert_eq!(shares(1, 1).await, [1]);
        assert_eq!(shares(2, 2).await, [1, 1]);
        assert_eq!(shares(4, 3).await, [2, 1, 1]);
        assert_eq!(shares(8, 4).await, [4, 2, 1, 1]);
        assert_eq!(shares(16, 3).await, [8, 4, 2]);
    }

    /// Whether the shares were locked when a waiting request was woken.
    struct Woken {
        shares: Shares,
        was_locked: Mutex<Option<bool>>,
    }

    impl Wake for Woken {
        fn wake(self: Arc<Self>) {
            *self.was_locked.lock() = Some(self.shares.0.try_lock().is_none());
        }
    }

    /// A request that stops waiting while it is served returns its share from within the send.
    #[tokio::test(start_paused = true)]
    async fn a_share_is_granted_with_nothing_locked() {
        let shares = Shares::new(1);
        let held = shares.take(organisation(1)).await.unwrap();
        let woken = Arc::new(Woken { shares: shares.clone(), was_locked: Mutex::new(None) });
        let mut waiting = Box::pin(shares.take(organisation(1)));
        let waker = Waker::from(Arc::clone(&woken));
        assert!(waiting.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
        drop(held);
        assert_eq!(*woken.was_locked.lock(), Some(false));
        drop(waiting);
        assert_eq!(shares.0.lock().free, 1);
    }

    #[tokio::test(start_paused = true)]
    async fn those_that_wait_are_served_in_turn() {
        let shares = Shares::new(1);
        let first = shares.take(organisation(1)).await.unwrap();
        let mut tasks = Vec::new();
        let order = Arc::new(Mutex::new(Vec::new()));
        for number in [1, 1, 1, 2] {
            let (shares, order) = (shares.clone(), Arc::clone(&order));
            tasks.push(tokio::spawn(async move {
                let _share = shares.take(organisation(number)).await.unwrap();
                order.lock().push(number);
            }));
            tokio::task::yield_now().await;
        }
        drop(first);
        for task in tasks {
            task.await.unwrap();
        }
        // Organisation 2 waits for only one request of organisation 1, although three were queued before its own.
        assert_eq!(*order.lock(), [1, 2, 1, 1]);
        assert!(shares.0.lock().seats.is_empty());
        assert_eq!(shares.0.lock().free, 1);
    }

    #[tokio::test(start_paused = true)]
    async fn waiting_is_bounded_in_time_and_number_and_leaves_nothing() {
        let shares = Shares::new(2);
        let held = shares.take(organisation(1)).await.unwrap();
        let waiting: Vec<_> = (0..WAITING_MAX)
            .map(|_| {
                let shares = shares.clone();
                tokio::spawn(async move { shares.take(organisation(1)).await.is_err() })
            })
            .collect();
        while shares.0.lock().seats.values().map(|seat| seat.waiting.len()).sum::<usize>() < WAITING_MAX {
            tokio::task::yield_now().await;
        }
        let began = tokio::time::Instant::now();
        assert!(shares.take(organisation(1)).await.is_err(), "one too many");
        assert_eq!(began.elapsed(), Duration::ZERO);
        assert!(shares.take(organisation(2)).await.is_ok(), "another organisation goes on");
        for task in waiting {
            assert!(task.await.unwrap(), "the time is over");
        }
        drop(held);
        assert!(shares.take(organisation(1)).await.is_ok());
        let state = shares.0.lock();
        assert_eq!((state.free, state.seats.len(), state.round.len()), (2, 0, 0));
    }
}
