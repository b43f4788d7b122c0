//! Runs tasks and threads, counts their panics, and starts them again or requests the end of the process.

use std::cell::Cell;
use std::future::{Future, poll_fn};
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::task::Waker;
use std::time::Duration;

use parking_lot::Mutex;
use sidetone_model::metrics::Family;
use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use crate::supervise::task::{Condition, Task};

/// A supervised task; completes once the task has ended and its state is dropped.
pub type Running = JoinHandle<()>;

/// A future that a task runs on its borrowed state.
type Run<'a, T = ()> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Owns the tasks of one engine; clones share one supervisor.
#[derive(Clone, Debug)]
pub struct Supervisor(Arc<Shared>);

/// A thread's link to its supervisor: the thread calls [`Beat::beat`] once in every turn.
#[derive(Clone, Debug)]
pub struct Beat {
    supervisor: Supervisor,
    task: Task,
}

#[derive(Debug)]
struct Shared {
    places: [Place; Task::ALL.len()],
    failed: watch::Sender<Option<Task>>,
    stopping: watch::Sender<bool>,
    /// The runtime of background tasks ([`Task::is_background`]); without one they run beside the others.
    background: Option<Handle>,
}

/// The state of one task.
#[derive(Debug, Default)]
struct Place {
    panics: AtomicU64,
    condition: AtomicU8,
    /// A test wants the task to panic; never set in a release build.
    due: AtomicBool,
    waker: Mutex<Option<Waker>>,
}

/// A panic that was caught.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Panicked;

impl Default for Supervisor {
    fn default() -> Self {
        Supervisor::new(None)
    }
}

impl Supervisor {
    /// A supervisor without tasks. Tasks that no call waits for (records, webhooks, HTTP) run on `background`, which
    /// must not end before the engine has stopped; without it they run beside the others.
    pub fn new(background: Option<Handle>) -> Self {
        Supervisor(Arc::new(Shared {
            places: std::array::from_fn(|_| Place::default()),
            failed: watch::Sender::new(None),
            stopping: watch::Sender::new(false),
            background,
        }))
    }

    /// The future is boxed, so that tokio's task is compiled once for each result, not once for each future.
    fn spawn<T: Send + 'static>(&self, task: Task, future: Run<'static, T>) -> JoinHandle<T> {
        match &self.0.background {
            Some(background) if task.is_background() => background.spawn(future),
            _ => tokio::spawn(future),
        }
    }

    /// Runs a step on the background threads, so that threads started by it have their priority. Without a background
    /// runtime it runs in place. A panic is propagated to the caller.
    pub async fn in_background<T: Send + 'static>(
        &self,
        step: impl Future<Output = T> + Send + 'static,
    ) -> T {
        let Some(background) = &self.0.background else { return step.await };
        match background.spawn(step).await {
            Ok(value) => value,
            Err(error) => match error.try_into_panic() {
                Ok(panic) => std::panic::resume_unwind(panic),
                // Its runtime has ended, and with it the process.
                Err(_) => std::future::pending().await,
            },
        }
    }

    /// Runs a task that is restarted after a panic, with the state that survived. `run` must leave `state` usable at
    /// every await: unfinished work stays in `state` until it is done.
    pub fn keep<S, F>(&self, task: Task, state: S, run: F) -> Running
    where
        S: Send + 'static,
        F: for<'a> Fn(&'a mut S) -> Run<'a> + Send + 'static,
    {
        let supervisor = self.clone();
        self.spawn(task, Box::pin(async move { drop(supervisor.kept(task, state, run).await) }))
    }

    /// Like [`Supervisor::keep`]; completes with the final state of the task.
    pub fn keep_state<S, F>(&self, task: Task, state: S, run: F) -> JoinHandle<S>
    where
        S: Send + 'static,
        F: for<'a> Fn(&'a mut S) -> Run<'a> + Send + 'static,
    {
        let supervisor = self.clone();
        self.spawn(task, Box::pin(async move { supervisor.kept(task, state, run).await }))
    }

    async fn kept<S, F>(self, task: Task, mut state: S, run: F) -> S
    where
        F: for<'a> Fn(&'a mut S) -> Run<'a>,
    {
        let mut pauses = Pauses::default();
        loop {
            self.set(task, Condition::Running);
            let began = Instant::now();
            if self.caught(task, Waked::Always, run(&mut state)).await.is_ok() {
                self.set(task, Condition::Ended);
                return state;
            }
            self.set(task, Condition::Restarting);
            let Some(pause) = pauses.next(began.elapsed(), self.is_stopping()) else {
                tracing::error!(task = task.as_str(), "the task panics at the end and is given up");
                return state;
            };
            tracing::error!(task = task.as_str(), pause_ms = pause.as_millis(), "the task starts again");
            self.pause(pause).await;
        }
    }

    /// Runs a task that is essential for the process. After a panic `save` saves as much as possible, and then the
    /// end of the process is requested ([`Supervisor::failed`]).
    pub fn vital<S, F, G>(&self, task: Task, mut state: S, run: F, save: G) -> Running
    where
        S: Send + 'static,
        F: for<'a> FnOnce(&'a mut S) -> Run<'a> + Send + 'static,
        G: for<'a> FnOnce(&'a mut S) -> Run<'a> + Send + 'static,
    {
        let supervisor = self.clone();
        let future: Run<'static> = Box::pin(async move {
            supervisor.set(task, Condition::Running);
            if supervisor.caught(task, Waked::Always, run(&mut state)).await.is_ok() {
                supervisor.set(task, Condition::Ended);
                return;
            }
            let saved =
                tokio::time::timeout(SAVE_MAX, supervisor.caught(task, Waked::Always, save(&mut state)))
                    .await;
            if !matches!(saved, Ok(Ok(()))) {
                tracing::error!(task = task.as_str(), "the pending work of the task could not be saved");
            }
            supervisor.fail(task);
        });
        tokio::spawn(future)
    }

    /// Runs one unit of work beside the others of its kind; `None` after a panic.
    pub fn once<T, F>(&self, task: Task, work: F) -> JoinHandle<Option<T>>
    where
        T: Send + 'static,
        F: Future<Output = T> + Send + 'static,
    {
        let supervisor = self.clone();
        let future: Run<'static, Option<T>> = Box::pin(async move { supervisor.attempt(task, work).await });
        tokio::spawn(future)
    }

    /// Runs one unit of work in the task of the caller; `None` after a panic.
    pub async fn attempt<T>(&self, task: Task, work: impl Future<Output = T>) -> Option<T> {
        self.caught(task, Waked::IfAlone, work).await.ok()
    }

    /// Runs a thread that is restarted after a panic, with the state that survived.
    ///
    /// # Errors
    /// When the system cannot start a thread.
    pub fn keep_thread<S, F>(&self, task: Task, state: S, run: F) -> io::Result<std::thread::JoinHandle<S>>
    where
        S: Send + 'static,
        F: Fn(&mut S, &Beat) + Send + 'static,
    {
        let (supervisor, mut state) = (self.clone(), state);
        let beat = Beat { supervisor: self.clone(), task };
        std::thread::Builder::new().name(task.as_str().to_owned()).spawn(move || {
            let mut pauses = Pauses::default();
            loop {
                supervisor.set(task, Condition::Running);
                let began = Instant::now();
                if supervisor.caught_here(task, || run(&mut state, &beat)).is_ok() {
                    supervisor.set(task, Condition::Ended);
                    return state;
                }
                supervisor.set(task, Condition::Restarting);
                let Some(pause) = pauses.next(began.elapsed(), supervisor.is_stopping()) else {
                    return state;
                };
                tracing::error!(
                    task = task.as_str(),
                    pause_ms = pause.as_millis(),
                    "the thread starts again"
                );
                std::thread::sleep(pause);
            }
        })
    }

    /// Like [`Supervisor::vital`], for a thread.
    ///
    /// # Errors
    /// When the system cannot start a thread.
    pub fn vital_thread<S, F, G>(
        &self,
        task: Task,
        state: S,
        run: F,
        save: G,
    ) -> io::Result<std::thread::JoinHandle<S>>
    where
        S: Send + 'static,
        F: FnOnce(&mut S, &Beat) + Send + 'static,
        G: FnOnce(&mut S) + Send + 'static,
    {
        let (supervisor, mut state) = (self.clone(), state);
        let beat = Beat { supervisor: self.clone(), task };
        std::thread::Builder::new().name(task.as_str().to_owned()).spawn(move || {
            supervisor.set(task, Condition::Running);
            if supervisor.caught_here(task, || run(&mut state, &beat)).is_ok() {
                supervisor.set(task, Condition::Ended);
                return state;
            }
            if supervisor.caught_here(task, || save(&mut state)).is_err() {
                tracing::error!(task = task.as_str(), "the pending work of the thread could not be saved");
            }
            supervisor.fail(task);
            state
        })
    }

    /// Requests the end of the process because of `task`; only the first call has an effect.
    pub fn fail(&self, task: Task) {
        self.set(task, Condition::Failed);
        tracing::error!(task = task.as_str(), "the process needs this task and ends");
        self.0.failed.send_if_modified(|failed| {
            let is_first = failed.is_none();
            failed.get_or_insert(task);
            is_first
        });
    }

    /// Completes with the task whose failure ends the process.
    pub async fn failed(&self) -> Task {
        let mut failed = self.0.failed.subscribe();
        let found = failed.wait_for(Option::is_some).await.map(|failed| *failed);
        match found {
            Ok(Some(task)) => task,
            // The sender lives in `self`.
            _ => std::future::pending().await,
        }
    }

    /// Changes the reaction to panics: from now on such a task is restarted immediately a few times and then
    /// abandoned, so that the end of the engine does not wait for it.
    pub fn stopping(&self) {
        self.0.stopping.send_replace(true);
    }

    /// Counts a panic that the task's own code caught.
    pub fn note(&self, task: Task) {
        self.place(task).panics.fetch_add(1, Ordering::Relaxed);
    }

    /// Panics of a task since the start.
    pub fn panics(&self, task: Task) -> u64 {
        self.place(task).panics.load(Ordering::Relaxed)
    }

    /// Returns the condition of a task.
    pub fn condition(&self, task: Task) -> Condition {
        match self.place(task).condition.load(Ordering::Relaxed) {
            1 => Condition::Running,
            2 => Condition::Restarting,
            3 => Condition::Failed,
            _ => Condition::Ended,
        }
    }

    /// The tasks with problems, as `/readyz` reports them.
    pub fn troubles(&self) -> Vec<String> {
        let trouble = |task: Task| match self.condition(task) {
            Condition::Ended | Condition::Running => None,
            Condition::Failed => Some(format!("{}: failed after a panic, the process ends", task.as_str())),
            Condition::Restarting => Some(format!("{}: starts again after a panic", task.as_str())),
        };
        Task::ALL.into_iter().filter_map(trouble).collect()
    }

    /// `sidetone_panics_total` by task; `more` are panics that other modules count themselves.
    pub fn family(&self, more: &[(Task, u64)]) -> Family {
        let family = Family::counter("sidetone_panics_total", "Panics by task; anything but 0 is a bug.");
        Task::ALL.into_iter().fold(family, |family, task| {
            let others = more.iter().filter(|(other, _)| *other == task).map(|(_, panics)| panics);
            family.with([("task", task.as_str())], self.panics(task) + others.sum::<u64>())
        })
    }

    /// Makes a task panic at its next turn. Only debug builds have this function.
    #[cfg(debug_assertions)]
    pub fn inject(&self, task: Task) {
        let place = self.place(task);
        place.due.store(true, Ordering::SeqCst);
        let waker = place.waker.lock().take();
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// The link of a thread that the supervisor does not start.
    pub fn beat_of(&self, task: Task) -> Beat {
        Beat { supervisor: self.clone(), task }
    }

    fn place(&self, task: Task) -> &Place {
        let first = &self.0.places[0];
        self.0.places.get(task as usize).unwrap_or(first)
    }

    fn set(&self, task: Task, condition: Condition) {
        let code = match condition {
            Condition::Ended => 0,
            Condition::Running => 1,
            Condition::Restarting => 2,
            Condition::Failed => 3,
        };
        self.place(task).condition.store(code, Ordering::Relaxed);
    }

    fn is_stopping(&self) -> bool {
        *self.0.stopping.borrow()
    }

    async fn pause(&self, pause: Duration) {
        let mut stopping = self.0.stopping.subscribe();
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            _ = stopping.wait_for(|stopping| *stopping) => {}
        }
    }

    /// Runs a future under the name of its task.
    async fn caught<T>(
        &self,
        task: Task,
        waked: Waked,
        work: impl Future<Output = T>,
    ) -> Result<T, Panicked> {
        let mut work = pin!(work);
        poll_fn(|context| {
            if cfg!(debug_assertions) {
                let mut waker = self.place(task).waker.lock();
                if waked == Waked::Always || waker.is_none() {
                    *waker = Some(context.waker().clone());
                }
            }
            let polled = self.caught_here(task, || {
                self.panic_if_due(task);
                work.as_mut().poll(context)
            });
            match polled {
                Ok(poll) => poll.map(Ok),
                Err(panicked) => std::task::Poll::Ready(Err(panicked)),
            }
        })
        .await
    }

    /// Runs code under the name of its task.
    fn caught_here<T>(&self, task: Task, work: impl FnOnce() -> T) -> Result<T, Panicked> {
        let before = CURRENT.replace(Some(task));
        let outcome = catch_unwind(AssertUnwindSafe(work));
        CURRENT.set(before);
        outcome.map_err(|payload| {
            // Its text may contain the task's data; the hook has logged the location.
            std::mem::forget(payload);
            self.note(task);
            Panicked
        })
    }

    #[expect(
        clippy::panic,
        reason = "a test asked for it; a build without debug assertions has no such place"
    )]
    fn panic_if_due(&self, task: Task) {
        if cfg!(debug_assertions) && self.place(task).due.swap(false, Ordering::SeqCst) {
            std::panic::panic_any(INJECTED);
        }
    }
}

/// Whether [`Supervisor::inject`] wakes a future.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Waked {
    /// The task itself: it is woken, whatever units of work run beside it.
    Always,
    /// A unit of work: it must not replace its task, because it may have ended when the task is to be woken.
    IfAlone,
}

impl Beat {
    /// Marks an iteration of the thread.
    pub fn beat(&self) {
        self.supervisor.panic_if_due(self.task);
    }
}

/// The task that this thread currently works for.
pub(crate) fn current_task() -> Option<Task> {
    CURRENT.get()
}

/// The pauses between the starts of a task that panics.
#[derive(Debug, Default)]
struct Pauses {
    in_a_row: u32,
    while_stopping: u32,
}

impl Pauses {
    /// Returns the next pause after a run of this length; `None` if the task is abandoned.
    fn next(&mut self, ran: Duration, stopping: bool) -> Option<Duration> {
        if stopping {
            self.while_stopping += 1;
            return (self.while_stopping <= STARTS_WHILE_STOPPING).then_some(Duration::ZERO);
        }
        self.in_a_row = if ran >= CALM { 0 } else { self.in_a_row.saturating_add(1) };
        let doubled = PAUSE_MIN.saturating_mul(1 << self.in_a_row.saturating_sub(1).min(PAUSE_DOUBLINGS));
        Some(doubled.min(PAUSE_MAX))
    }
}

thread_local! {
    static CURRENT: Cell<Option<Task>> = const { Cell::new(None) };
}

/// After running this long without a panic, a task starts with the shortest pause again.
const CALM: Duration = Duration::from_secs(60);
const INJECTED: &str = "a test asked for this panic";
const PAUSE_DOUBLINGS: u32 = 16;
const PAUSE_MAX: Duration = Duration::from_secs(5);
const PAUSE_MIN: Duration = Duration::from_millis(50);
/// How long a failed task may take to save its state.
const SAVE_MAX: Duration = Duration::from_secs(5);
/// How often a task is started again while the engine stops.
const STARTS_WHILE_STOPPING: u32 = 3;

#[cfg(test)]
mod pause_tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_a_bound_and_end_while_stopping() {
        let mut pauses = Pauses::default();
        let found: Vec<u128> =
            (0..10).map(|_| pauses.next(Duration::ZERO, false).unwrap().as_millis()).collect();
        assert_eq!(found, [50, 100, 200, 400, 800, 1_600, 3_200, 5_000, 5_000, 5_000]);
        assert_eq!(pauses.next(CALM, false), Some(PAUSE_MIN));
        for _ in 0..STARTS_WHILE_STOPPING {
            assert_eq!(pauses.next(Duration::ZERO, true), Some(Duration::ZERO));
        }
        assert_eq!(pauses.next(Duration::ZERO, true), None);
    }
}
