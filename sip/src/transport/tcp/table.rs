//! The open connections, their number, and the queue of each.

use std::collections::{HashMap, HashSet, VecDeque};
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{Notify, mpsc};

use crate::flow::{Flow, source_of};
use crate::transport::error::SendError;
use crate::transport::tcp::limits::{TcpLimits, UNSENT_BYTES_MAX, UNSENT_MAX};

/// Totals of TCP since the start, and the current connections.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TcpCounters {
    /// Connections that are open now.
    pub open: usize,
    /// Incoming connections that were accepted.
    pub accepted: u64,
    /// Incoming connections that were refused for lack of space.
    pub refused: u64,
    /// Unauthenticated connections that were closed in favour of a later one.
    pub displaced: u64,
    /// How often the system failed to accept a pending connection.
    pub accept_errors: u64,
    /// Connections that exceeded a time limit and were ended.
    pub timeouts: u64,
    /// Connections that could not be secured, because the peer or its certificate was refused or refused ours.
    pub unsecured: u64,
    /// Messages lost because of a full queue or a closed connection.
    pub dropped: u64,
    /// Tasks of connections or listeners that panicked; anything but 0 is a bug.
    pub panics: u64,
}

/// The open connections of one element.
pub(super) struct Table {
    limits: TcpLimits,
    open: Mutex<Open>,
    pub(super) accepted: AtomicU64,
    pub(super) refused: AtomicU64,
    displaced: AtomicU64,
    pub(super) accept_errors: AtomicU64,
    pub(super) timeouts: AtomicU64,
    pub(super) unsecured: AtomicU64,
    pub(super) dropped: AtomicU64,
    pub(super) panics: AtomicU64,
}

#[derive(Default)]
struct Open {
    connections: HashMap<Flow, Entry>,
    /// Flows of calls; also those whose connection is not open now.
    held: HashSet<Flow>,
    per_source: HashMap<IpAddr, usize>,
    /// Incoming connections whose peers were unauthenticated at first, oldest first; ended ones may be among
    /// them.
    strangers: VecDeque<(u64, Flow)>,
    serial: u64,
}

struct Entry {
    serial: u64,
    outbox: Outbox,
    local: Option<SocketAddr>,
}

/// The send queue of a connection, and whether its peer is trusted.
#[derive(Clone)]
pub(super) struct Outbox {
    queue: mpsc::Sender<Bytes>,
    queued_bytes: Arc<AtomicUsize>,
    is_trusted: Arc<AtomicBool>,
    /// Whether the connection stays open while it is silent.
    is_held: Arc<AtomicBool>,
    /// Notified when the connection must end.
    ending: Arc<Notify>,
}

/// An entry in the table for the life of a connection.
pub(super) struct Seat {
    table: Arc<Table>,
    pub(super) flow: Flow,
    serial: u64,
    pub(super) outbox: Outbox,
}

impl Table {
    pub(super) fn new(limits: TcpLimits) -> Self {
        Table {
            limits,
            open: Mutex::default(),
            accepted: AtomicU64::new(0),
            refused: AtomicU64::new(0),
            displaced: AtomicU64::new(0),
            accept_errors: AtomicU64::new(0),
            timeouts: AtomicU64::new(0),
            unsecured: AtomicU64::new(0),
            dropped: AtomicU64::new(0),
            panics: AtomicU64::new(0),
        }
    }

    pub(super) fn limits(&self) -> &TcpLimits {
        &self.limits
    }

    /// An entry for a connection and its send queue; `None` when there is no space.
    ///
    /// When the table is full, the oldest unauthenticated connection is closed: so idle connections from any
    /// number of addresses cannot exclude phones.
    pub(super) fn seat(
        self: &Arc<Self>,
        flow: Flow,
        local: Option<SocketAddr>,
    ) -> Option<(Seat, mpsc::Receiver<Bytes>)> {
        let (queue, unsent) = mpsc::channel(UNSENT_MAX);
        let is_ours = flow.listener.is_outbound();
        let outbox = Outbox {
            queue,
            queued_bytes: Arc::default(),
            // Peers to which we connect are trusted.
            is_trusted: Arc::new(AtomicBool::new(is_ours)),
            is_held: Arc::default(),
            ending: Arc::default(),
        };
        let mut open = self.open();
        let source = source_of(flow.remote.ip());
        if !is_ours && open.per_source.get(&source).is_some_and(|here| *here >= self.limits.per_source_max) {
            return None;
        }
        if open.connections.len() >= self.limits.connections_max {
            if !open.displace_stranger() {
                return None;
            }
            self.displaced.fetch_add(1, Ordering::Relaxed);
        }
        outbox.is_held.store(open.held.contains(&flow), Ordering::Relaxed);
        open.serial += 1;
        let serial = open.serial;
        if !is_ours {
            *open.per_source.entry(source).or_default() += 1;
            open.strangers.push_back((serial, flow));
            open.forget_old_strangers(self.limits.connections_max);
        }
        open.connections.insert(flow, Entry { serial, outbox: outbox.clone(), local });
        Some((Seat { table: Arc::clone(self), flow, serial, outbox }, unsent))
    }

    /// Holds the connection of a flow open, even one that is opened later, or stops holding it.
    pub(super) fn hold(&self, flow: &Flow, is_held: bool) {
        let mut open = self.open();
        if is_held {
            open.held.insert(*flow);
        } else {
            open.held.remove(flow);
        }
        if let Some(entry) = open.connections.get(flow) {
            entry.outbox.is_held.store(is_held, Ordering::Relaxed);
        }
    }

    /// The queue of an open connection.
    pub(super) fn outbox(&self, flow: &Flow) -> Option<Outbox> {
        self.open().connections.get(flow).map(|entry| entry.outbox.clone())
    }

    /// Our address of an open connection.
    pub(super) fn local(&self, flow: &Flow) -> Option<SocketAddr> {
        self.open().connections.get(flow)?.local
    }

    pub(super) fn set_local(&self, flow: &Flow, local: Option<SocketAddr>) {
        if let Some(entry) = self.open().connections.get_mut(flow) {
            entry.local = local;
        }
    }

    pub(super) fn counters(&self) -> TcpCounters {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        TcpCounters {
            open: self.open().connections.len(),
            accepted: read(&self.accepted),
            refused: read(&self.refused),
            displaced: read(&self.displaced),
            accept_errors: read(&self.accept_errors),
            timeouts: read(&self.timeouts),
            unsecured: read(&self.unsecured),
            dropped: read(&self.dropped),
            panics: read(&self.panics),
        }
    }

    /// Code under the lock does not panic; if it did, the table would still be consistent at every step.
    fn open(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Open {
    /// Ends the oldest unauthenticated connection; false when there is none.
    fn displace_stranger(&mut self) -> bool {
        while let Some((serial, flow)) = self.strangers.pop_front() {
            if self.is_stranger(serial, &flow)
                && let Some(entry) = self.connections.remove(&flow)
            {
                entry.outbox.ending.notify_one();
                return true;
            }
        }
        false
    }

    /// Removes ended connections from the list of unauthenticated ones, so that it does not grow.
    fn forget_old_strangers(&mut self, connections_max: usize) {
        if self.strangers.len() > connections_max.saturating_mul(2) {
            let strangers = std::mem::take(&mut self.strangers);
            self.strangers =
                strangers.into_iter().filter(|(serial, flow)| self.is_stranger(*serial, flow)).collect();
        }
    }

    fn is_stranger(&self, serial: u64, flow: &Flow) -> bool {
        self.connections.get(flow).is_some_and(|entry| entry.serial == serial && !entry.outbox.is_trusted())
    }
}

impl Outbox {
    /// Queues a message. When there is no space, the connection ends: on a stream nothing is retransmitted,
    /// and a peer that does not read cannot use the message.
    pub(super) fn push(&self, bytes: Bytes) -> Result<(), SendError> {
        let len = bytes.len();
        let waiting = self.queued_bytes.fetch_add(len, Ordering::Relaxed);
        let outcome = match waiting.saturating_add(len) <= UNSENT_BYTES_MAX {
            true => self.queue.try_send(bytes).map_err(|error| match error {
                TrySendError::Closed(_) => SendError::Closed,
                TrySendError::Full(_) => SendError::Full,
            }),
            false => Err(SendError::Full),
        };
        if outcome.is_err() {
            self.sent(len);
            self.ending.notify_one();
        }
        outcome
    }

    /// Subtracts sent bytes from the queue's size.
    pub(super) fn sent(&self, len: usize) {
        self.queued_bytes.fetch_sub(len, Ordering::Relaxed);
    }

    /// Ends the connection.
    pub(super) fn end(&self) {
        self.ending.notify_one();
    }

    /// Waits until the connection must end.
    pub(super) async fn ending(&self) {
        self.ending.notified().await;
    }

    pub(super) fn trust(&self) {
        self.is_trusted.store(true, Ordering::Relaxed);
    }

    pub(super) fn is_held(&self) -> bool {
        self.is_held.load(Ordering::Relaxed)
    }

    pub(super) fn is_trusted(&self) -> bool {
        self.is_trusted.load(Ordering::Relaxed)
    }
}

impl Seat {
    pub(super) fn table(&self) -> &Arc<Table> {
        &self.table
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let mut open = self.table.open();
        // The same remote address may have connected again before this connection was removed.
        if open.connections.get(&self.flow).is_some_and(|entry| entry.serial == self.serial) {
            open.connections.remove(&self.flow);
        }
        if self.flow.listener.is_outbound() {
            return;
        }
        let source = source_of(self.flow.remote.ip());
        if let Some(here) = open.per_source.get_mut(&source) {
            *here = here.saturating_sub(1);
            if *here == 0 {
                open.per_source.remove(&source);
            }
        }
    }
}
