//! Legs on their way between workers.
//!
//! A port's *home* is the worker that opened it: every command enters there, and the ports of one call share it.
//! A seat in a mix of another worker takes the leg there, with its sockets and its session; its home remembers
//! where it is and passes commands on, in order. Leaving the mix, or joining one elsewhere, calls it back first:
//! what is ordered meanwhile waits at home and is obeyed when the leg has come. Nothing is read from its sockets
//! on the way; packets wait there with the time they came.

use std::collections::{HashMap, VecDeque};
use std::io;
use std::sync::Arc;

use crossbeam_channel::{Receiver, Sender, TrySendError, bounded};

use super::leg::Leg;
use super::message::{Command, PortId};
use super::waker::Waker;
use crate::mix::{MixId, Seat};

/// What one worker hands to another.
pub(super) enum Handover {
    /// From its home: a command to the leg.
    Command(PortId, Command),
    /// To its home: the leg is over.
    Gone(PortId),
    /// The leg itself, to the worker of its mix or back home.
    Leg(Box<Leg>),
    /// From its home: send the leg back.
    Recall(PortId),
}

/// How one worker is reached by the others.
pub(super) struct Peer {
    pub(super) inbox: Sender<Handover>,
    pub(super) waker: Arc<Waker>,
}

impl Peer {
    /// How a worker is reached, and where it finds what it is handed.
    pub(super) fn new() -> io::Result<(Peer, Receiver<Handover>)> {
        let (inbox, handed) = bounded(HANDOVERS_MAX);
        Ok((Peer { inbox, waker: Arc::new(Waker::new()?) }, handed))
    }
}

/// The legs of a worker that are elsewhere, and what is on its way to the other workers.
pub(super) struct Handovers {
    away: HashMap<PortId, Away>,
    /// What each worker is to be handed, oldest first.
    outboxes: Vec<VecDeque<Handover>>,
    /// Everything in `outboxes` and everything held for legs that come back.
    queued: usize,
}

/// A leg that is not at home.
struct Away {
    at: usize,
    /// It was called back; what is ordered until it comes is held.
    recalled: bool,
    held: VecDeque<Command>,
}

impl Handovers {
    /// Nothing on its way between `workers`.
    pub(super) fn new(workers: usize) -> Handovers {
        let outboxes = std::iter::repeat_with(VecDeque::new).take(workers).collect();
        Handovers { away: HashMap::new(), outboxes, queued: 0 }
    }

    /// So much is under way that no further orders are taken. What other workers hand over is always taken, so
    /// none of them waits for another for ever.
    pub(super) fn is_full(&self) -> bool {
        self.queued >= QUEUED_MAX
    }

    /// Whether something waits for room with another worker.
    pub(super) fn is_waiting(&self) -> bool {
        self.outboxes.iter().any(|outbox| !outbox.is_empty())
    }

    /// Hands over what the other workers have room for.
    pub(super) fn flush(&mut self, peers: &[Peer]) {
        if self.queued == 0 {
            return;
        }
        for (outbox, peer) in self.outboxes.iter_mut().zip(peers) {
            let waiting = outbox.len();
            while let Some(handover) = outbox.pop_front() {
                // The relay keeps every inbox open for as long as it lives.
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

    /// One of the legs that have not left yet, when the relay ends.
    pub(super) fn take_leg(&mut self) -> Option<Box<Leg>> {
        let mut handovers =
            self.outboxes.iter_mut().flat_map(|outbox| std::iter::from_fn(|| outbox.pop_front()));
        handovers.find_map(|handover| if let Handover::Leg(leg) = handover { Some(leg) } else { None })
    }

    /// Routes a command to a leg that may be elsewhere; gives it back when the leg is here.
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
            Command::Join { mix, seat } if worker_of(mix, workers) != at => {
                away.recalled = true;
                away.held.push_back(Command::Join { mix, seat });
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

    /// Hands a leg of this worker to the worker of the mix that it is to join.
    pub(super) fn lend(&mut self, leg: Box<Leg>, mix: MixId, seat: Box<Seat>) {
        let (id, at) = (leg.id, worker_of(mix, self.outboxes.len()));
        self.away.insert(id, Away { at, recalled: false, held: VecDeque::new() });
        self.push(at, Handover::Leg(leg));
        self.push(at, Handover::Command(id, Command::Join { mix, seat }));
    }

    /// Hands a leg that was called back to its home.
    pub(super) fn return_home(&mut self, leg: Box<Leg>) {
        self.push(leg.id.worker(), Handover::Leg(leg));
    }

    /// Informs the home of a leg that the leg is over.
    pub(super) fn report_end(&mut self, id: PortId) {
        self.push(id.worker(), Handover::Gone(id));
    }

    /// What was held for a leg that is back, or over.
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

/// Which of `workers` a mix lives in.
pub(super) fn worker_of(mix: MixId, workers: usize) -> usize {
    usize::try_from(mix.0 % workers.max(1) as u64).unwrap_or(0)
}

/// What waits for one worker to take it over from the others.
const HANDOVERS_MAX: usize = 8_192;
/// What waits on its way between workers before no further orders are taken.
const QUEUED_MAX: usize = 8_192;
