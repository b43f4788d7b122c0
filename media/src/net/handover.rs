//! Moves legs between workers.
//!
//! A port's *home* is the worker that opened it: every command arrives there, and the ports of one call have
//! the same home. When a leg joins a mix of another worker, it moves there with its sockets and its session;
//! its home stores where it is and forwards commands in order. A bridge between legs of two homes runs in the
//! home with the lower number: the other leg moves there. When the leg leaves the mix, or must be in another
//! worker, its home recalls it first: commands that arrive meanwhile wait at home and run when the leg is
//! back. During a move its sockets are not read; packets wait in them with their receive times.

use std::collections::{HashMap, VecDeque};
use std::io;
use std::sync::Arc;

use crossbeam_channel::{Receiver, Sender, TrySendError, bounded};
use sidetone_wire::Waker;

use super::leg::Leg;
use super::message::{Command, PortId};
use crate::mix::MixId;

/// A message between two workers.
pub(super) enum Handover {
    /// From its home: a command to the leg.
    Command(PortId, Command),
    /// To its home: the leg has ended.
    Gone(PortId),
    /// The leg itself, to the worker of its mix or back home.
    Leg(Box<Leg>),
    /// From its home: send the leg back.
    Recall(PortId),
}

/// How the other workers reach one worker.
pub(super) struct Peer {
    pub(super) inbox: Sender<Handover>,
    pub(super) waker: Arc<Waker>,
}

impl Peer {
    /// An inbox with its alarm: the half for the other workers, and the receiving end.
    pub(super) fn new() -> io::Result<(Peer, Receiver<Handover>)> {
        let (inbox, handed) = bounded(HANDOVERS_MAX);
        Ok((Peer { inbox, waker: Arc::new(Waker::new()?) }, handed))
    }
}

/// Legs of this worker that are elsewhere, and messages to other workers.
pub(super) struct Handovers {
    away: HashMap<PortId, Away>,
    /// Messages to each worker, oldest first.
    outboxes: Vec<VecDeque<Handover>>,
    /// Number of entries in `outboxes` and of commands held for recalled legs.
    queued: usize,
}

/// A leg that is not at home.
struct Away {
    at: usize,
    /// The leg was recalled; commands are held until it is back.
    recalled: bool,
    held: VecDeque<Command>,
}

impl Handovers {
    /// No leg elsewhere; outboxes for this number of workers.
    pub(super) fn new(workers: usize) -> Handovers {
        let outboxes = std::iter::repeat_with(VecDeque::new).take(workers).collect();
        Handovers { away: HashMap::new(), outboxes, queued: 0 }
    }

    /// Whether so many messages are queued that no further orders are accepted. Messages of other workers are always
    /// accepted, so that workers cannot block each other.
    pub(super) fn is_full(&self) -> bool {
        self.queued >= QUEUED_MAX
    }

    /// Whether a message waits because another worker's inbox is full.
    pub(super) fn is_waiting(&self) -> bool {
        self.outboxes.iter().any(|outbox| !outbox.is_empty())
    }

    /// Sends messages as far as the other workers have room.
    pub(super) fn flush(&mut self, peers: &[Peer]) {
        if self.queued == 0 {
            return;
        }
        for (outbox, peer) in self.outboxes.iter_mut().zip(peers) {
            let waiting = outbox.len();
            while let Some(handover) = outbox.pop_front() {
                // The relay keeps every inbox open for its whole life.
                if let Err(TrySendError::Full(handover) | TrySendError::Disconnected(handover)) =
                    peer.inbox.try_send(handover)
                {
                    outbox.push_front(handover);
                    break;
                }
            }
            let sent = waiting - outbox.len();
            self.queued = self.queued.saturating_sub(sent);
            if sent > 0 {
                peer.waker.wake();
            }
        }
    }

    /// A leg that has not left this worker yet; used when the relay ends.
    pub(super) fn take_leg(&mut self) -> Option<Box<Leg>> {
        let mut handovers =
            self.outboxes.iter_mut().flat_map(|outbox| std::iter::from_fn(|| outbox.pop_front()));
        handovers.find_map(|handover| if let Handover::Leg(leg) = handover { Some(leg) } else { None })
    }

    /// Routes a command to a leg that may be elsewhere; returns the command when the leg is here.
    pub(super) fn route(&mut self, id: PortId, command: Command) -> Option<Command> {
        let workers = self.outboxes.len();
        let Some(away) = self.away.get_mut(&id) else { return Some(command) };
        let at = away.at;
        if away.recalled {
            away.held.push_back(command);
            self.queued += 1;
            return None;
        }
        match command {
            Command::Close => {
                self.away.remove(&id);
                self.push(at, Handover::Command(id, Command::Close));
            }
            command if place_of(id, &command, workers).is_some_and(|place| place != at) => {
                away.recalled = true;
                away.held.push_back(command);
                self.queued += 1;
                self.push(at, Handover::Recall(id));
            }
            Command::Leave => {
                away.recalled = true;
                self.push(at, Handover::Recall(id));
            }
            command => self.push(at, Handover::Command(id, command)),
        }
        None
    }

    /// Hands a leg of this worker to worker `at`, where this command for the leg runs.
    pub(super) fn lend(&mut self, leg: Box<Leg>, at: usize, command: Command) {
        let id = leg.id;
        self.away.insert(id, Away { at, recalled: false, held: VecDeque::new() });
        self.push(at, Handover::Leg(leg));
        self.push(at, Handover::Command(id, command));
    }

    /// Hands a recalled leg to its home.
    pub(super) fn return_home(&mut self, leg: Box<Leg>) {
        self.push(leg.id.worker(), Handover::Leg(leg));
    }

    /// Reports the end of a leg to its home.
    pub(super) fn report_end(&mut self, id: PortId) {
        self.push(id.worker(), Handover::Gone(id));
    }

    /// Returns the commands held for a leg that is back or has ended.
    pub(super) fn release(&mut self, id: PortId) -> VecDeque<Command> {
        let held = self.away.remove(&id).map(|away| away.held).unwrap_or_default();
        self.queued = self.queued.saturating_sub(held.len());
        held
    }

    fn push(&mut self, to: usize, handover: Handover) {
        if let Some(outbox) = self.outboxes.get_mut(to) {
            outbox.push_back(handover);
            self.queued += 1;
        }
    }
}

/// The worker in which a leg must be for this command; `None` when the command runs wherever the leg is.
pub(super) fn place_of(id: PortId, command: &Command, workers: usize) -> Option<usize> {
    match command {
        Command::Bridge { peer, .. } => Some(id.worker().min(peer.worker())),
        Command::Join { mix, .. } | Command::Listen { mix, .. } => Some(worker_of(*mix, workers)),
        _ => None,
    }
}

/// Which of `workers` worker threads owns a mix.
pub(super) fn worker_of(mix: MixId, workers: usize) -> usize {
    usize::try_from(mix.0 % workers.max(1) as u64).unwrap_or(0)
}

/// Messages from other workers that wait for one worker.
const HANDOVERS_MAX: usize = 8_192;
/// Messages and held commands from which on no further orders are accepted.
const QUEUED_MAX: usize = 8_192;
