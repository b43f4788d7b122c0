//! Moves legs between workers.
//!
//! A port's *home* is the worker that opened it: every command arrives there, and the ports of one call have
//! the same home. When a leg joins a mix of another worker, it moves there with its sockets and its session;
//! its home stores where it is and forwards commands in order. When the leg leaves the mix, or joins one in
//! another worker, its home recalls it first: commands that arrive meanwhile wait at home and run when the
//! leg is back. During a move its sockets are not read; packets wait in them with their receive times.

use std::collections::{HashMap, VecDeque};

use crossbeam_channel::TrySendError;
use nix::sys::epoll::Epoll;

use super::leg::Leg;
use super::message::{Command, Notice, PortId};
use super::relay::Shared;
use super::worker::Worker;
use crate::mix::{MixId, Seat};

/// A message between two workers.
pub(super) enum Handover {
    /// From its home: a command for the leg.
    Command(PortId, Command),
    /// To its home: the leg has ended.
    Gone(PortId),
    /// The leg itself, to the worker of its mix or back home.
    Leg(Box<Leg>),
    /// From its home: send the leg back.
    Recall(PortId),
}

/// Legs of this worker that are elsewhere, and messages to other workers.
pub(super) struct Moves {
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

impl Moves {
    /// No leg elsewhere; outboxes for this number of workers.
    pub(super) fn new(workers: usize) -> Moves {
        let outboxes = std::iter::repeat_with(VecDeque::new).take(workers).collect();
        Moves { away: HashMap::new(), outboxes, queued: 0 }
    }

    /// Whether so many messages are queued that no further orders are taken. Messages of other workers are
    /// always taken, so that workers cannot block each other.
    pub(super) fn is_full(&self) -> bool {
        self.queued >= QUEUED_MAX
    }

    /// Whether a message waits because another worker's inbox is full.
    pub(super) fn is_waiting(&self) -> bool {
        self.outboxes.iter().any(|outbox| !outbox.is_empty())
    }

    /// Sends messages as far as the other workers have room.
    pub(super) fn flush(&mut self, shared: &Shared) {
        if self.queued == 0 {
            return;
        }
        for (outbox, peer) in self.outboxes.iter_mut().zip(&shared.peers) {
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
                peer.alarm.ring();
            }
        }
    }

    /// A leg that has not left this worker yet; used when the relay ends.
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

    /// Forwards a command for a leg that is elsewhere.
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

    /// Returns the commands held for a leg that is back or has ended.
    fn release(&mut self, id: PortId) -> VecDeque<Command> {
        let held = self.away.remove(&id).map(|away| away.held).unwrap_or_default();
        self.queued = self.queued.saturating_sub(held.len());
        held
    }
}

impl Worker {
    /// Runs a command for a port whose home is here, or forwards it to the worker that has the leg.
    pub(super) fn command(&mut self, id: PortId, command: Command) {
        let workers = self.shared.peers.len();
        if self.moves.away.contains_key(&id) {
            return self.moves.pass_on(id, command, workers);
        }
        match command {
            Command::Join { mix, seat } if worker_of(mix, workers) != self.index => self.lend(id, mix, seat),
            command => self.obey(id, command),
        }
    }

    /// Processes a message from another worker.
    pub(super) fn take_over(&mut self, handover: Handover) {
        match handover {
            Handover::Command(id, command) => self.obey(id, command),
            Handover::Gone(id) => drop(self.moves.release(id)),
            Handover::Leg(leg) => self.take_in(leg),
            Handover::Recall(id) => {
                if let Some(leg) = self.detach(id) {
                    self.moves.push(id.worker(), Handover::Leg(leg));
                }
            }
        }
    }

    /// Reports the end of a leg to its home.
    pub(super) fn tell_home(&mut self, id: PortId) {
        if id.worker() != self.index {
            self.moves.push(id.worker(), Handover::Gone(id));
        }
    }

    /// Sends a leg to the worker of the mix that it joins.
    fn lend(&mut self, id: PortId, mix: MixId, seat: Box<Seat>) {
        let Some(leg) = self.detach(id) else { return };
        let at = worker_of(mix, self.shared.peers.len());
        self.moves.away.insert(id, Away { at, recalled: false, held: VecDeque::new() });
        self.moves.push(at, Handover::Leg(leg));
        self.moves.push(at, Handover::Command(id, Command::Join { mix, seat }));
    }

    /// Removes a leg from this worker; packets received before are processed first.
    fn detach(&mut self, id: PortId) -> Option<Box<Leg>> {
        self.drain_described(id);
        self.unseat(id);
        let mut leg = self.remove(id)?;
        leg.forward = None;
        leg.untold = self.outlet.take_untold(id);
        if leg.described {
            unwatch(&self.epoll, &leg);
        }
        Some(leg)
    }

    /// Takes a leg that arrived: into its mix, or back home.
    fn take_in(&mut self, mut leg: Box<Leg>) {
        let (id, described, untold) = (leg.id, leg.described, leg.untold.take());
        self.admit(leg);
        if described {
            self.watch(id);
        }
        if let Some(talking) = untold {
            self.notify(Notice::Talking { id, talking });
        }
        for command in self.moves.release(id) {
            self.command(id, command);
        }
    }
}

/// Which of `workers` worker threads owns a mix.
pub(super) fn worker_of(mix: MixId, workers: usize) -> usize {
    usize::try_from(mix.0 % workers.max(1) as u64).unwrap_or(0)
}

/// Stops reading a leg's sockets. The kernel refuses this only for sockets that it does not watch.
fn unwatch(epoll: &Epoll, leg: &Leg) {
    for endpoint in [&leg.rtp, &leg.rtcp] {
        if let Err(errno) = epoll.delete(&endpoint.socket) {
            tracing::error!(%errno, port = leg.id.port(), "failed to cease watching a leg's socket");
        }
    }
}

/// Messages and held commands before no further orders are taken.
const QUEUED_MAX: usize = 8_192;
