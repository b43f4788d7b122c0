//! The handle of the relay: starts the workers, opens ports, passes commands on, gives access to notices.

use std::io;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crossbeam_channel::{Receiver, Sender, TrySendError, bounded};
use sidetone_wire::{Io, Waker, Wire};

use super::counters::{Count, Counters, sum};
use super::handover::{Handover, Peer, worker_of};
use super::handshakes::Handshakes;
use super::job::{JOBS_MAX, Job};
use super::message::{
    Command, CommandError, CommandRefused, MixRefused, Notice, OpenError, Port, PortId, RelayConfig,
    RelayError, RelayIo,
};
use super::real_time;
use super::shared::{Shared, lock};
use super::worker::{Order, Worker};
use crate::mix::{MixCommand, MixId};
use crate::session::StrictSource;
use crate::time::Micros;
use crate::verdict::Thresholds;
use crate::webrtc::Certificate;

/// Receives, measures and relays the RTP and RTCP of all legs on its own threads.
///
/// Life of a leg: [`open`](Relay::open), [`Command::Describe`] with every SDP, [`Command::Bridge`] in both
/// directions, [`Command::Answered`], [`Command::Close`], and the final report in [`Notice::Closed`].
/// Dropping the relay stops and joins the threads.
pub struct Relay {
    shared: Arc<Shared>,
    workers: Vec<Handle>,
    threads: Mutex<Vec<JoinHandle<()>>>,
    notices: Receiver<Notice>,
    serial: AtomicU64,
    /// Clones of the workers' inboxes. At the end the handle closes the legs that are still in them.
    inboxes: Vec<Receiver<Handover>>,
    fingerprint: [u8; 32],
    io: Io,
}

/// The handle's access to one worker.
struct Handle {
    orders: Sender<Order>,
    waker: Arc<Waker>,
    /// Whether orders were queued since the worker was last woken.
    is_due: AtomicBool,
}

impl Handle {
    fn wake(&self) {
        if self.is_due.swap(false, Ordering::Relaxed) {
            self.waker.wake();
        }
    }
}

impl Relay {
    /// Starts the workers; `wake` is called from their threads after notices were queued and must not block.
    pub fn start(config: RelayConfig, wake: Arc<dyn Fn() + Send + Sync>) -> Result<Relay, RelayError> {
        let wanted = match config.workers {
            0 => thread::available_parallelism().map_or(1, usize::from),
            workers => workers,
        };
        let count = wanted.min(WORKERS_MAX);
        let (peers, inboxes): (Vec<_>, Vec<_>) = (0..count)
            .map(|_| Peer::new())
            .collect::<io::Result<Vec<_>>>()
            .map_err(RelayError::Worker)?
            .into_iter()
            .unzip();
        let io = io_of(config.io);
        let certificate = Certificate::self_signed().map_err(RelayError::Certificate)?;
        let (jobs, job_receiver) = bounded(JOBS_MAX);
        let (shared, notices) = Shared::new(config, peers, jobs, wake)?;
        let shared = Arc::new(shared);
        let mut relay = Relay {
            shared,
            workers: Vec::with_capacity(count),
            threads: Mutex::new(Vec::with_capacity(count)),
            notices,
            serial: AtomicU64::new(0),
            inboxes,
            fingerprint: certificate.fingerprint(),
            io,
        };
        // A worker that fails to start drops the relay, which stops the ones before it.
        (0..count).try_for_each(|index| relay.start_worker(index)).map_err(RelayError::Worker)?;
        relay.start_handshakes(certificate, job_receiver).map_err(RelayError::Worker)?;
        Ok(relay)
    }

    /// Binds a free pair of ports on `bind` and gives it to a worker.
    ///
    /// Legs of one group run in the same worker. Legs that will be bridged should have the same `group`; otherwise one
    /// of them moves to the worker of the other.
    ///
    /// # Errors
    /// See [`OpenError`]; after an error nothing stays bound.
    pub fn open(&self, group: u64, bind: IpAddr) -> Result<Port, OpenError> {
        self.open_later(group, bind).inspect(|_| self.wake())
    }

    /// Like [`Relay::open`]; the worker receives the port after [`Relay::wake`] at the latest.
    ///
    /// # Errors
    /// As [`Relay::open`].
    pub fn open_later(&self, group: u64, bind: IpAddr) -> Result<Port, OpenError> {
        if self.shared.stop.load(Ordering::Relaxed) {
            return Err(OpenError::Stopped);
        }
        let worker = usize::try_from(group % self.workers.len().max(1) as u64).unwrap_or(0);
        let (Some(handle), Ok(number)) = (self.workers.get(worker), u8::try_from(worker)) else {
            return Err(OpenError::Stopped);
        };
        if self.shared.notices.is_behind() || handle.orders.is_full() {
            return Err(OpenError::Busy);
        }
        let pair = self.shared.bind_pair(bind)?;
        let (rtp, rtcp) = (pair.rtp.local(), pair.rtcp.local());
        let id = PortId::new(self.serial.fetch_add(1, Ordering::Relaxed), number, rtp.port());
        let leg = self.shared.leg(id, pair);
        match handle.orders.try_send(Order::Open(leg)) {
            Ok(()) => {
                handle.is_due.store(true, Ordering::Relaxed);
                Ok(Port { id, rtp, rtcp })
            }
            Err(refused) => {
                let stopped = matches!(refused, TrySendError::Disconnected(_));
                // The sockets close before their ports may be given to another leg.
                drop(refused);
                self.shared.release(rtp.port());
                Err(if stopped { OpenError::Stopped } else { OpenError::Busy })
            }
        }
    }

    /// Wakes the workers that have orders to take. A worker with real-time priority interrupts the caller immediately,
    /// so a caller with several orders queues all of them first.
    pub fn wake(&self) {
        self.workers.iter().for_each(Handle::wake);
    }

    /// Passes a command to a port's worker. Never blocks.
    ///
    /// A command to a port that is already closed does nothing.
    ///
    /// # Errors
    /// [`CommandError::Busy`] is counted and may be tried again: a port that gets no [`Command::Close`] stays open.
    pub fn command(&self, id: PortId, command: Command) -> Result<(), CommandError> {
        self.command_later(id, command).map_err(|refused| refused.error)?;
        self.wake();
        Ok(())
    }

    /// Like [`Relay::command`]; the worker takes it after [`Relay::wake`] at the latest.
    ///
    /// # Errors
    /// As [`Relay::command`], with the command.
    pub fn command_later(&self, id: PortId, command: Command) -> Result<(), CommandRefused> {
        let refused = |error, command| Err(CommandRefused { error, command: Box::new(command) });
        let Some(handle) = self.workers.get(id.worker()) else {
            return refused(CommandError::Stopped, command);
        };
        let (error, order) = match handle.orders.try_send(Order::Command(id, command)) {
            Ok(()) => {
                handle.is_due.store(true, Ordering::Relaxed);
                return Ok(());
            }
            Err(TrySendError::Disconnected(order)) => (CommandError::Stopped, order),
            Err(TrySendError::Full(order)) => {
                if let Some(tally) = self.shared.tallies.get(id.worker()) {
                    tally.add(Count::CommandsRefused);
                }
                (CommandError::Busy, order)
            }
        };
        match order {
            Order::Command(_, command) => refused(error, command),
            // The order was a command to a port; no other order can be returned.
            Order::Mix(..) | Order::Open(_) => Ok(()),
        }
    }

    /// Passes a command to a mix's worker. Never blocks.
    ///
    /// A mix without seats takes the command to record and ignores all others. Commands to a mix and commands to ports
    /// may overtake each other; commands to the same mix stay in order.
    ///
    /// # Errors
    /// Returns the command; with [`CommandError::Busy`] the caller may try again.
    pub fn mix(&self, id: MixId, command: MixCommand) -> Result<(), MixRefused> {
        self.mix_later(id, command).inspect(|()| self.wake())
    }

    /// Like [`Relay::mix`]; the worker takes it after [`Relay::wake`] at the latest.
    ///
    /// # Errors
    /// As [`Relay::mix`].
    pub fn mix_later(&self, id: MixId, command: MixCommand) -> Result<(), MixRefused> {
        let refused = |error, order| match order {
            Order::Mix(_, command) => Err(MixRefused { error, command }),
            // The order was a command to a mix; no other order can be returned.
            Order::Command(..) | Order::Open(_) => Ok(()),
        };
        let worker = worker_of(id, self.workers.len());
        let Some(handle) = self.workers.get(worker) else {
            return Err(MixRefused { error: CommandError::Stopped, command });
        };
        match handle.orders.try_send(Order::Mix(id, command)) {
            Ok(()) => {
                handle.is_due.store(true, Ordering::Relaxed);
                Ok(())
            }
            Err(TrySendError::Disconnected(order)) => refused(CommandError::Stopped, order),
            Err(TrySendError::Full(order)) => {
                if let Some(tally) = self.shared.tallies.get(worker) {
                    tally.add(Count::CommandsRefused);
                }
                refused(CommandError::Busy, order)
            }
        }
    }

    /// The interface between the workers and the kernel.
    pub fn io(&self) -> Io {
        self.io
    }

    /// How many worker threads there are.
    pub fn workers(&self) -> usize {
        self.workers.len()
    }

    /// The workers' notices; `wake` is called when there are new ones.
    pub fn notices(&self) -> &Receiver<Notice> {
        &self.notices
    }

    /// Makes every leg send a [`Notice::Snapshot`] without a request, at most once per `interval`; at best
    /// about once a second.
    ///
    /// Off at the start: a report costs an allocation, so it is made only while it is read.
    pub fn snapshot_every(&self, interval: Option<Duration>) {
        let interval_us =
            interval.map_or(0, |interval| i64::try_from(interval.as_micros()).unwrap_or(i64::MAX).max(1));
        self.shared.snapshot_us.store(interval_us, Ordering::Relaxed);
    }

    /// Whether every leg is watched and sends a [`Notice::Warning`] on a media fault; off at the start.
    pub fn warn(&self, warns: bool) {
        self.shared.warns.store(warns, Ordering::Relaxed);
    }

    /// Sets the thresholds for legs that open from now on; open legs keep theirs.
    pub fn set_thresholds(&self, thresholds: Thresholds) {
        self.shared.session().thresholds = thresholds;
    }

    /// Sets the rule by which legs that open from now on accept sources, unless their description has one.
    pub fn set_strict_source(&self, rule: StrictSource) {
        self.shared.session().strict_source = rule;
    }

    /// The relay's clock: monotonic, from 0 at the start. All times of its reports are on it.
    pub fn now(&self) -> Micros {
        self.shared.clock.now()
    }

    /// The SHA-256 digest of the certificate that the relay presents in DTLS, for `a=fingerprint` of SDP.
    pub fn fingerprint(&self) -> [u8; 32] {
        self.fingerprint
    }

    /// Gives the workers real-time priority, so that other programs do not delay packets and ticks.
    ///
    /// # Errors
    /// The system's error; the workers continue without it. See [`try_real_time`](super::try_real_time).
    pub fn run_in_real_time(&self) -> io::Result<()> {
        // The thread of the handshakes is the last one: its computations are long, and no audio waits for it.
        lock(&self.threads).iter().take(self.workers.len()).try_for_each(real_time::prefer)
    }

    /// Totals since the start.
    pub fn counters(&self) -> Counters {
        sum(&self.shared.tallies)
    }

    /// Whether a worker ended before the relay was shut down. That is a bug, and its legs no longer work.
    pub fn has_lost_a_worker(&self) -> bool {
        self.shared.lost.load(Ordering::SeqCst)
    }

    /// Stops and joins the workers; all ports close.
    ///
    /// Legs that were still open report as far as the notice channel has room.
    pub fn shutdown(&self) {
        self.shared.stop.store(true, Ordering::SeqCst);
        // When the queue is full, the thread is awake.
        let _ = self.shared.jobs.try_send(Job::Stop);
        for handle in &self.workers {
            handle.waker.wake();
        }
        let threads = std::mem::take(&mut *lock(&self.threads));
        for thread in threads {
            if thread.join().is_err() {
                tracing::error!("an RTP worker had panicked outside of its legs");
            }
        }
        self.close_stranded();
    }

    /// Closes the legs that were moving between two workers when both ended.
    fn close_stranded(&self) {
        for handover in self.inboxes.iter().flat_map(Receiver::try_iter) {
            let Handover::Leg(mut leg) = handover else { continue };
            let (id, report) = (leg.id, Box::new(leg.session.close(self.shared.clock.now())));
            drop(leg);
            self.shared.release(id.port());
            self.shared.notices.offer(Notice::Closed { id, report });
        }
    }

    fn start_worker(&mut self, index: usize) -> io::Result<()> {
        let (orders, order_receiver) = bounded(ORDERS_MAX);
        let shared = Arc::clone(&self.shared);
        let peer = shared.peers.get(index).zip(self.inboxes.get(index));
        let Some((waker, inbox)) = peer.map(|(peer, inbox)| (Arc::clone(&peer.waker), inbox.clone())) else {
            return Ok(());
        };
        let wire = Wire::open(&waker, self.io)?;
        let own_waker = Arc::clone(&waker);
        let work = move || {
            let watched = Watched(Arc::clone(&shared));
            Worker::new(index, shared, own_waker, order_receiver, inbox, wire).run();
            drop(watched);
        };
        let thread = thread::Builder::new().name(format!("rtp-{index}")).spawn(work)?;
        self.workers.push(Handle { orders, waker, is_due: AtomicBool::new(false) });
        lock(&self.threads).push(thread);
        Ok(())
    }

    /// Starts the thread of the DTLS handshakes, after the workers.
    fn start_handshakes(&mut self, certificate: Certificate, jobs: Receiver<Job>) -> io::Result<()> {
        let inbox = |handle: &Handle| (handle.orders.clone(), Arc::clone(&handle.waker));
        let handshakes = Handshakes::new(certificate, self.workers.iter().map(inbox).collect());
        let shared = Arc::clone(&self.shared);
        let work = move || {
            // Without this thread no browser has audio, so its end counts as that of a worker.
            let watched = Watched(Arc::clone(&shared));
            handshakes.run(&jobs, &shared);
            drop(watched);
        };
        let thread = thread::Builder::new().name("dtls".to_owned()).spawn(work)?;
        lock(&self.threads).push(thread);
        Ok(())
    }
}

/// The interface that `wanted` selects on this system.
fn io_of(wanted: RelayIo) -> Io {
    if wanted == RelayIo::Epoll {
        return Io::Epoll;
    }
    match Wire::try_io_uring() {
        Ok(()) => Io::IoUring,
        Err(error) if wanted == RelayIo::IoUring => {
            tracing::warn!(%error, "the relay uses epoll: this system does not offer io_uring, which [media] io asks for");
            Io::Epoll
        }
        Err(error) => {
            tracing::info!(%error, "the relay uses epoll: this system does not offer io_uring");
            Io::Epoll
        }
    }
}

/// Records the end of a worker's thread, also after a panic.
pub(super) struct Watched(pub(super) Arc<Shared>);

impl Drop for Watched {
    fn drop(&mut self) {
        if !self.0.stop.load(Ordering::SeqCst) {
            self.0.lost.store(true, Ordering::SeqCst);
            tracing::error!("an RTP worker ended: its legs are dead");
        }
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.shutdown();
    }
}

/// Commands and new legs that wait for one worker.
const ORDERS_MAX: usize = 8_192;
/// A worker's number is eight bits of a [`PortId`].
const WORKERS_MAX: usize = 256;
