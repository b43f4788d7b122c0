//! The task of a member: writes its heartbeats, reads those of all members, and keeps the view for its readers.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use sidetone_model::time::Now;
use tokio::sync::watch;

use super::bucket::{Bucket, Change};
use super::connection::{Connection, chain};
use crate::membership::{BEAT_EVERY, Figures, Heartbeat, Identity, Input, Membership, Output, View};

/// A member of a cluster, before its task runs.
pub struct Member {
    connection: Connection,
    clock: fn() -> Now,
    figures: Box<dyn FnMut() -> Figures + Send>,
    machine: Membership,
    shared: Arc<Shared>,
    notices: Box<dyn FnMut(Notice) + Send>,
    work: Work,
}

/// The NATS operations in progress.
#[derive(Default)]
struct Work {
    bucket: Option<Bucket>,
    opening: Option<BoxFuture<'static, Result<Bucket, String>>>,
    writing: Option<BoxFuture<'static, Result<(), String>>>,
}

/// The reports of a member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Notice {
    /// A change of the view.
    Changed(Output),
    /// A heartbeat that cannot be read, with the key and the reason.
    Unreadable(String, String),
}

/// The counters of a member.
#[derive(Debug, Default)]
pub struct MemberCounters {
    /// Heartbeats written.
    pub written: AtomicU64,
    /// Heartbeats that NATS did not accept.
    pub failed: AtomicU64,
    /// Heartbeats read, including this node's.
    pub read: AtomicU64,
    /// Heartbeats that could not be read.
    pub unreadable: AtomicU64,
    /// How often this node was isolated.
    pub isolations: AtomicU64,
}

#[derive(Debug)]
struct Shared {
    view: watch::Sender<Arc<View>>,
    counters: MemberCounters,
}

/// The state of a member for other parts; clones share it.
#[derive(Clone, Debug)]
pub struct MemberHandle {
    shared: Arc<Shared>,
    connection: Connection,
    clock: fn() -> Now,
}

impl MemberHandle {
    /// The current view.
    pub fn view(&self) -> Arc<View> {
        self.shared.view.borrow().clone()
    }

    /// The clock of the view's times.
    pub fn now(&self) -> Now {
        (self.clock)()
    }

    /// The counters.
    pub fn counters(&self) -> &MemberCounters {
        &self.shared.counters
    }

    /// The connection.
    pub fn connection(&self) -> &Connection {
        &self.connection
    }
}

impl Member {
    /// A new member; `figures` is read before each heartbeat, `notices` is called for every change.
    pub fn new(
        connection: Connection,
        identity: Identity,
        clock: fn() -> Now,
        figures: impl FnMut() -> Figures + Send + 'static,
        notices: impl FnMut(Notice) + Send + 'static,
    ) -> (Member, MemberHandle) {
        let machine = Membership::new(identity, clock().instant);
        let (view, _) = watch::channel(Arc::new(machine.view(clock())));
        let shared = Arc::new(Shared { view, counters: MemberCounters::default() });
        let handle = MemberHandle { shared: Arc::clone(&shared), connection: connection.clone(), clock };
        let member = Member {
            connection,
            clock,
            figures: Box::new(figures),
            machine,
            shared,
            notices: Box::new(notices),
            work: Work::default(),
        };
        (member, handle)
    }

    /// Runs until `stop` turns true; then the node leaves the cluster.
    pub async fn run(&mut self, mut stop: watch::Receiver<bool>) {
        // Unfinished operations of an earlier run of the task are restarted.
        self.work = Work::default();
        self.open();
        loop {
            self.handle(Input::Timeout);
            let until = self.machine.next_timeout().unwrap_or_else(|| (self.clock)().instant + BEAT_EVERY);
            let done = {
                let work = &mut self.work;
                tokio::select! {
                    _ = stop.wait_for(|stop| *stop) => break,
                    opened = under_way(&mut work.opening) => Done::Opened(opened.map(Box::new)),
                    written = under_way(&mut work.writing) => Done::Written(written),
                    change = next_change(&mut work.bucket) => Done::Read(change),
                    () = tokio::time::sleep_until(until.into()) => continue,
                }
            };
            self.take(done);
        }
        self.leave().await;
    }

    fn take(&mut self, done: Done) {
        match done {
            Done::Opened(Ok(bucket)) => {
                self.work.opening = None;
                self.work.bucket = Some(*bucket);
            }
            Done::Opened(Err(reason)) => {
                // The machine requests the next attempt.
                self.work.opening = None;
                self.handle(Input::Failed(reason));
            }
            Done::Written(result) => {
                self.work.writing = None;
                match result {
                    Ok(()) => self.count(|counters| &counters.written),
                    Err(reason) => {
                        self.count(|counters| &counters.failed);
                        self.handle(Input::Failed(reason));
                        // The servers may have restarted without the bucket.
                        self.open();
                    }
                }
            }
            Done::Read(Ok(change)) => self.read(&change),
            Done::Read(Err(reason)) => {
                self.work.bucket = None;
                self.handle(Input::Failed(reason));
                self.open();
            }
        }
    }

    fn read(&mut self, change: &Change) {
        if change.value.is_empty() {
            // An operator deleted the entry; its node writes it again.
            return;
        }
        match Heartbeat::read(&change.value) {
            Ok(heartbeat) if heartbeat.identity.node.to_string() == change.key => {
                self.count(|counters| &counters.read);
                self.handle(Input::Heard(heartbeat));
            }
            Ok(_) => self.refuse(change, "it names another node than its key".to_owned()),
            Err(error) => self.refuse(change, error.to_string()),
        }
    }

    fn refuse(&mut self, change: &Change, reason: String) {
        self.count(|counters| &counters.unreadable);
        (self.notices)(Notice::Unreadable(change.key.clone(), reason));
    }

    fn handle(&mut self, input: Input) {
        let now = (self.clock)();
        if matches!(input, Input::Timeout) {
            let figures = (self.figures)();
            self.machine.handle_input(now, Input::Figures(figures));
        }
        self.machine.handle_input(now, input);
        while let Some(output) = self.machine.poll_output() {
            match output {
                Output::Publish(heartbeat) => self.write(&heartbeat),
                Output::Reopen => self.open(),
                change => {
                    if matches!(change, Output::Isolated(_)) {
                        self.count(|counters| &counters.isolations);
                    }
                    (self.notices)(Notice::Changed(change));
                }
            }
        }
        self.shared.view.send_replace(Arc::new(self.machine.view(now)));
    }

    /// Opens the bucket and its reader, unless that is in progress.
    fn open(&mut self) {
        self.work.bucket = None;
        if self.work.opening.is_none() {
            let connection = self.connection.clone();
            self.work.opening =
                Some(async move { Bucket::open(&connection, NODES, ENTRY_AGE_MAX).await }.boxed());
        }
    }

    /// Writes a heartbeat; it cancels and replaces a write in progress.
    fn write(&mut self, heartbeat: &Heartbeat) {
        if self.work.writing.take().is_some() {
            self.count(|counters| &counters.failed);
            let reason = "NATS took no heartbeat within a second".to_owned();
            self.machine.handle_input((self.clock)(), Input::Failed(reason));
        }
        let Some(bucket) = &self.work.bucket else { return };
        let store = bucket.store.clone();
        let (key, value) = (heartbeat.identity.node.to_string(), Bytes::from(heartbeat.write()));
        let put = async move {
            match tokio::time::timeout(WRITE_MAX, store.put(key, value)).await {
                Ok(Ok(_)) => Ok(()),
                Ok(Err(error)) => Err(chain(&error)),
                Err(_) => Err("NATS does not answer".to_owned()),
            }
        };
        self.work.writing = Some(put.boxed());
    }

    /// Writes the last heartbeat, which reports that the node has left.
    async fn leave(&mut self) {
        self.handle(Input::Leave);
        if let Some(writing) = self.work.writing.take() {
            // If it is lost, the others notice after three seconds.
            let _ = writing.await;
        }
        self.connection.flush().await;
    }

    fn count(&self, counter: impl FnOnce(&MemberCounters) -> &AtomicU64) {
        counter(&self.shared.counters).fetch_add(1, Ordering::Relaxed);
    }
}

/// An operation that has ended.
enum Done {
    Opened(Result<Box<Bucket>, String>),
    Read(Result<Change, String>),
    Written(Result<(), String>),
}

/// Waits for the operation in progress; forever if there is none.
async fn under_way<T>(work: &mut Option<BoxFuture<'static, T>>) -> T {
    match work {
        Some(work) => work.await,
        None => std::future::pending().await,
    }
}

async fn next_change(bucket: &mut Option<Bucket>) -> Result<Change, String> {
    match bucket {
        Some(bucket) => bucket.next().await,
        None => std::future::pending().await,
    }
}

/// The bucket of the members.
pub(super) const NODES: &str = "nodes";
/// How long the heartbeat of a node that is down is kept.
pub(super) const ENTRY_AGE_MAX: Duration = Duration::from_secs(86_400);
/// The timeout of a write; the next heartbeat replaces it.
const WRITE_MAX: Duration = Duration::from_secs(2);
