//! The state that all threads of a relay share: its clock, its ports, its switches and its counters.

use std::io;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, AtomicI64};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crossbeam_channel::{Receiver, Sender};

use super::clock::Clock;
use super::counters::Tally;
use super::guard::Guard;
use super::handover::Peer;
use super::job::Job;
use super::leg::Leg;
use super::message::{Notice, OpenError, PortId, RelayConfig, RelayError};
use super::notice_queue::NoticeChannel;
use super::pair::Pair;
use super::ports::Ports;
use crate::session::{Session, SessionConfig};

/// The state that the relay's handle and every worker share.
pub(super) struct Shared {
    pub(super) clock: Clock,
    pub(super) guard: Guard,
    /// Microseconds between two snapshots of a leg; 0 for none.
    pub(super) snapshot_us: AtomicI64,
    /// Whether legs are watched for media faults.
    pub(super) warns: AtomicBool,
    pub(super) stop: AtomicBool,
    /// Whether a worker ended without a stop command.
    pub(super) lost: AtomicBool,
    pub(super) tallies: Vec<Tally>,
    pub(super) notices: NoticeChannel,
    /// The inbox and alarm of each worker.
    pub(super) peers: Vec<Peer>,
    /// Orders for the thread of the DTLS handshakes.
    pub(super) jobs: Sender<Job>,
    /// Read when a leg opens, never on the packet path.
    session: Mutex<SessionConfig>,
    ports: Mutex<Ports>,
}

impl Shared {
    /// The state shared by the workers `peers`, and the receiving end of their notices.
    pub(super) fn new(
        config: RelayConfig,
        peers: Vec<Peer>,
        jobs: Sender<Job>,
        wake: Arc<dyn Fn() + Send + Sync>,
    ) -> Result<(Shared, Receiver<Notice>), RelayError> {
        let ports = Ports::new(&config.ports, config.seed);
        if ports.pairs() == 0 {
            return Err(RelayError::NoPorts(config.ports));
        }
        let (channel, notices) = NoticeChannel::new(wake);
        let own = config.session.own_addresses.clone();
        let shared = Shared {
            clock: Clock::start(),
            guard: Guard::new(config.ports, config.bind, own),
            snapshot_us: AtomicI64::new(0),
            warns: AtomicBool::new(false),
            stop: AtomicBool::new(false),
            lost: AtomicBool::new(false),
            tallies: std::iter::repeat_with(Tally::default).take(peers.len()).collect(),
            notices: channel,
            peers,
            jobs,
            session: Mutex::new(config.session),
            ports: Mutex::new(ports),
        };
        Ok((shared, notices))
    }

    /// A bound pair. Ports that another program holds rest like used ones, so that the next attempt takes
    /// others.
    pub(super) fn bind_pair(&self, ip: IpAddr) -> Result<Pair, OpenError> {
        for _ in 0..BIND_TRIES_MAX {
            let taken = {
                let mut ports = lock(&self.ports);
                ports.take(self.clock.now()).ok_or(OpenError::Exhausted { pairs: ports.pairs() })
            };
            let port = taken?;
            match Pair::bind(ip, port) {
                Ok(pair) => {
                    self.guard.opened(ip, port);
                    return Ok(pair);
                }
                Err(source) => {
                    self.release(port);
                    if source.kind() != io::ErrorKind::AddrInUse {
                        return Err(OpenError::Bind { ip, source });
                    }
                }
            }
        }
        Err(OpenError::Exhausted { pairs: lock(&self.ports).pairs() })
    }

    /// The configuration of sessions that open from now on.
    pub(super) fn session(&self) -> MutexGuard<'_, SessionConfig> {
        lock(&self.session)
    }

    /// A leg that waits for its description.
    pub(super) fn leg(&self, id: PortId, pair: Pair) -> Box<Leg> {
        Box::new(Leg::new(id, Session::new(self.session().clone()), pair, self.clock.now()))
    }

    /// Returns a pair to rest. Its sockets must be closed.
    pub(super) fn release(&self, port: u16) {
        self.guard.closed(port);
        lock(&self.ports).release(self.clock.now(), port);
    }
}

/// A panic while the lock was held leaves the data consistent: every change is one push or pop.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// How many pairs are tried for one leg when other programs use the range.
const BIND_TRIES_MAX: usize = 64;
