//! Legs on their way between workers.
//!
//! A port's *home* is the worker that opened it: every command enters there, and the ports of one call share it.
//! A seat in a mix of another worker takes the leg there, with its sockets and its session; its home remembers
//! where it is and passes commands on, in order. Leaving the mix, or joining one elsewhere, calls it back first:
//! what is ordered meanwhile waits at home and is obeyed when the leg has come. Nothing is read from its sockets
//! on the way; packets wait there with the time they came.

use std::collections::{HashMap, VecDeque};

use crossbeam_channel::TrySendError;
use nix::sys::epoll::Epoll;

use super::leg::Leg;
use super::message::{Command, Notice, PortId};
use super::relay::Shared;
use super::worker::Worker;
use crate::mix::{MixId, Seat};

/// What one worker hands to another.
pub(super) enum Handover {
    /// From its home: what the leg is told.
    Command(PortId, Command),
    /// To its home: the leg is over.
    Gone(PortId),
    /// The leg itself, to the worker of its mix or back home.
    Leg(Box<Leg>),
    /// From its home: send the leg back.
    Recall(PortId),
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
    pub(super) fn flush(&mut self, shared: &Shared) {
        if self.queued == 0 {
            return;
        }
        for (outbox, peer) in self.outboxes.iter_mut().zip(&shared.peers) {
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

    fn push(&mut self, to: usize, handover: Handover) {
        if let Some(outbox) = self.outboxes.get_mut(to) {
            outbox.push_back(handover);
            self.queued += 1;
        }
    }

    /// Routes what a leg elsewhere is told.
    fn pass_on(&mut self, id: PortId, command: Command, workers: usize) {
        let Some(away) = self.away.get_mut(&id) else { return };
        let at = away.at;
        if away.recalled {
            away.held.push_back(command);
            self.queued += 1;
            return;
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
    }

    /// What was held for a leg that is back, or over.
    fn release(&mut self, id: PortId) -> VecDeque<Command> {
        let held = self.away.remove(&id).map(|away| away.held).unwrap_or_default();
        self.queued = self.queued.saturating_sub(held.len());
        held
    }
}

impl Worker {
    /// Obeys a command to a port that has its home here, or passes it on to where the leg is.
    pub(super) fn command(&mut self, id: PortId, command: Command) {
        let workers = self.shared.peers.len();
        if self.handovers.away.contains_key(&id) {
            return self.handovers.pass_on(id, command, workers);
        }
        match command {
            Command::Join { mix, seat } if worker_of(mix, workers) != self.index => self.lend(id, mix, seat),
            command => self.obey(id, command),
        }
    }

    /// Takes in what another worker handed over.
    pub(super) fn take_over(&mut self, handover: Handover) {
        match handover {
            Handover::Command(id, command) => self.obey(id, command),
            Handover::Gone(id) => drop(self.handovers.release(id)),
            Handover::Leg(leg) => self.take_in(leg),
            Handover::Recall(id) => {
                if let Some(leg) = self.detach(id) {
                    self.handovers.push(id.worker(), Handover::Leg(leg));
                }
            }
        }
    }

    /// Tells a leg's home that it is over.
    pub(super) fn tell_home(&mut self, id: PortId) {
        if id.worker() != self.index {
            self.handovers.push(id.worker(), Handover::Gone(id));
        }
    }

    /// Hands a leg to the worker of the mix that it is to join.
    fn lend(&mut self, id: PortId, mix: MixId, seat: Box<Seat>) {
        let Some(leg) = self.detach(id) else { return };
        let at = worker_of(mix, self.shared.peers.len());
        self.handovers.away.insert(id, Away { at, recalled: false, held: VecDeque::new() });
        self.handovers.push(at, Handover::Leg(leg));
        self.handovers.push(at, Handover::Command(id, Command::Join { mix, seat }));
    }

    /// Takes a leg out of everything here; what came before counts as come before.
    fn detach(&mut self, id: PortId) -> Option<Box<Leg>> {
        self.drain_described(id);
        self.unseat(id);
        let mut leg = self.remove(id)?;
        leg.forward = None;
        leg.untold = self.notices.take_untold(id);
        if leg.described {
            unwatch(&self.epoll, &leg);
        }
        Some(leg)
    }

    /// A leg came: to its mix, or back home.
    fn take_in(&mut self, mut leg: Box<Leg>) {
        let (id, described, untold) = (leg.id, leg.described, leg.untold.take());
        self.admit(leg);
        if described {
            self.watch(id);
        }
        if let Some(talking) = untold {
            self.notify(Notice::Talking { id, talking });
        }
        for command in self.handovers.release(id) {
            self.command(id, command);
        }
    }
}

/// Which of `workers` a mix lives in.
pub(super) fn worker_of(mix: MixId, workers: usize) -> usize {
    usize::try_from(mix.0 % workers.max(1) as u64).unwrap_or(0)
}

/// Ceases to read a leg's sockets. The kernel can refuse only what it does not watch.
fn unwatch(epoll: &Epoll, leg: &Leg) {
    for endpoint in [&leg.rtp, &leg.rtcp] {
        if let Err(errno) = epoll.delete(&endpoint.socket) {
            tracing::error!(%errno, port = leg.id.port(), "failed to cease watching a leg's socket");
        }
    }
}

/// What waits on its way between workers before no further orders are taken.
const QUEUED_MAX: usize = 8_192;
