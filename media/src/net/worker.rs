//! One thread of the relay: waits for its sockets, moves their packets, does what it is told in between.

use std::collections::VecDeque;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use crossbeam_channel::{Receiver, TrySendError};
use nix::errno::Errno;
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};

use super::alarm::Alarm;
use super::beep::Beep;
use super::counters::{Batch, Count};
use super::leg::{Forward, Leg};
use super::message::{Command, Notice, PortId};
use super::relay::{Order, Shared};
use super::wire::{BATCH, Wire};
use crate::session::{Input, Output};
use crate::time::Micros;

/// A worker with its legs; it owns every socket it reads.
pub(super) struct Worker {
    index: usize,
    shared: Arc<Shared>,
    alarm: Arc<Alarm>,
    orders: Receiver<Order>,
    /// There may be orders left from the last turn.
    orders_due: bool,
    epoll: Epoll,
    events: Box<[EpollEvent]>,
    wire: Wire,
    batch: Batch,
    /// Legs by their place in the port range.
    legs: Vec<Option<Box<Leg>>>,
    open: usize,
    /// Reports that found the channel full. Bounded: while many wait, no port is opened.
    waiting: VecDeque<Notice>,
    /// Something was queued for the reader in this turn.
    queued: bool,
    next_sweep: Micros,
    sweep: usize,
    /// The leg at work: the one that a panic costs.
    current: Option<PortId>,
}

impl Worker {
    /// A worker without legs, to be made on the thread it runs on; `epoll` is from [`listen`].
    pub(super) fn new(
        index: usize,
        shared: Arc<Shared>,
        alarm: Arc<Alarm>,
        orders: Receiver<Order>,
        epoll: Epoll,
    ) -> Worker {
        let ports = &shared.guard.ports;
        let places = usize::from(ports.end().saturating_sub(*ports.start())) / 2 + 1;
        Worker {
            index,
            alarm,
            orders,
            orders_due: false,
            epoll,
            events: vec![EpollEvent::empty(); EVENTS_MAX].into_boxed_slice(),
            wire: Wire::new(),
            batch: Batch::new(),
            legs: std::iter::repeat_with(|| None).take(places).collect(),
            open: 0,
            waiting: VecDeque::new(),
            queued: false,
            next_sweep: shared.clock.now() + SWEEP_US,
            sweep: 0,
            current: None,
            shared,
        }
    }

    /// Works until the relay is shut down.
    pub(super) fn run(mut self) {
        while !self.shared.stop.load(Ordering::SeqCst) {
            if catch_unwind(AssertUnwindSafe(|| self.turn())).is_err() {
                self.recover();
            }
            self.publish();
        }
        if catch_unwind(AssertUnwindSafe(|| self.close_all())).is_err() {
            self.batch.add(Count::Panics, 1);
        }
        self.publish();
    }

    /// Waits once and does what is due.
    fn turn(&mut self) {
        let patience = self.patience();
        let ready = match self.epoll.wait(&mut self.events, patience) {
            Ok(ready) => ready,
            Err(Errno::EINTR) => 0,
            Err(errno) => {
                // Never seen; without a pause it would be a busy loop without packets.
                tracing::error!(%errno, "an RTP worker failed to wait for its sockets");
                std::thread::yield_now();
                0
            }
        };
        for place in 0..ready {
            let Some(event) = self.events.get(place).copied() else { break };
            if event.data() == ALARM_TOKEN {
                self.alarm.silence();
                self.orders_due = true;
            } else {
                let (id, rtcp) = PortId::from_token(event.data());
                let _ = self.visit(id, rtcp, event.events());
            }
        }
        if self.orders_due {
            self.take_orders();
        }
        let now = self.shared.clock.now();
        if now >= self.next_sweep {
            self.next_sweep = now + SWEEP_US;
            self.sweep(now);
        }
        self.deliver_waiting();
    }

    /// The packet path: receive a batch, measure it, send it on. Answers how many datagrams came.
    fn visit(&mut self, id: PortId, rtcp: bool, flags: EpollFlags) -> usize {
        let Some(place) = self.place(id) else { return 0 };
        let Some(leg) = find(&mut self.legs, place, id) else { return 0 };
        self.current = Some(id);
        if flags.contains(EpollFlags::EPOLLERR) && !rtcp {
            leg.hear_unreachable(&mut self.wire, self.shared.clock.now(), &mut self.batch);
        }
        // An error here says that nothing is there; an ICMP error is told by the queue above.
        let Ok(count) = self.wire.receive(leg.endpoint_mut(rtcp)) else {
            self.current = None;
            return 0;
        };
        let sample = self.shared.clock.sample();
        self.batch.add(Count::Received, u32::try_from(count).unwrap_or(u32::MAX));
        let picked = leg.measure(&mut self.wire, rtcp, count, sample, &mut self.batch);
        let peer = leg.forward.as_ref().map(|forward| forward.peer);
        self.take_outputs(id);
        if let Some(peer) = peer {
            self.current = Some(peer);
            match self.place(peer).and_then(|place| find(&mut self.legs, place, peer)) {
                Some(leg) => leg.send(&mut self.wire, &picked, sample.now, &mut self.batch),
                None => self.batch.add(Count::Held, picked.len()),
            }
        }
        self.current = None;
        self.publish();
        count
    }

    /// Reads what waits in a leg's sockets, so that what came before a command counts as before it.
    fn drain(&mut self, id: PortId) {
        for rtcp in [false, true] {
            for _ in 0..DRAINS_MAX {
                if self.visit(id, rtcp, EpollFlags::empty()) < BATCH {
                    break;
                }
            }
        }
    }

    /// Hands on what a session said.
    fn take_outputs(&mut self, id: PortId) {
        let Some(place) = self.place(id) else { return };
        loop {
            let Some(leg) = find(&mut self.legs, place, id) else { return };
            let Some(output) = leg.session.poll_output() else { return };
            match output {
                Output::Latched { remote } => {
                    leg.retarget(&self.shared.guard);
                    self.notify(Notice::Latched { id, remote });
                }
            }
        }
    }

    /// Does a bounded part of what was ordered, so that packets never wait long.
    fn take_orders(&mut self) {
        for _ in 0..ORDERS_PER_TURN {
            match self.orders.try_recv() {
                Ok(Order::Command(id, command)) => self.obey(id, command),
                Ok(Order::Open(leg)) => self.admit(leg),
                Err(_) => {
                    self.orders_due = false;
                    return;
                }
            }
        }
    }

    fn admit(&mut self, leg: Box<Leg>) {
        if let Some(slot) = self.place(leg.id).and_then(|place| self.legs.get_mut(place)) {
            debug_assert!(slot.is_none(), "a pair of ports was opened twice");
            *slot = Some(leg);
            self.open += 1;
        }
    }

    fn obey(&mut self, id: PortId, command: Command) {
        let Some(place) = self.place(id) else { return };
        let Some(leg) = find(&mut self.legs, place, id) else { return };
        if leg.described || matches!(command, Command::Close) {
            self.drain(id);
        }
        let now = self.shared.clock.now();
        let Some(leg) = find(&mut self.legs, place, id) else { return };
        self.current = Some(id);
        match command {
            Command::Answered => leg.session.answer(now),
            Command::Bridge { peer, payload_map } => leg.forward = Some(Forward { peer, payload_map }),
            Command::Close => self.close(id),
            Command::Describe(description) => {
                leg.rtcp_mux = description.rtcp_mux;
                leg.party = description.signalling;
                leg.session.describe(now, *description);
                leg.retarget(&self.shared.guard);
                if !std::mem::replace(&mut leg.described, true) {
                    self.watch(id);
                }
            }
            Command::Snapshot => {
                let report = Box::new(leg.session.report(now));
                self.notify(Notice::Snapshot { id, report });
            }
            Command::Tone => leg.beep = Some(Beep::new()),
            Command::Unbridge => leg.forward = None,
        }
        self.take_outputs(id);
        self.current = None;
    }

    /// Begins to read a leg's sockets. A leg that cannot be heard is closed: its owner learns of it by the notice.
    fn watch(&mut self, id: PortId) {
        let Some(leg) = self.place(id).and_then(|place| find(&mut self.legs, place, id)) else { return };
        let event = |rtcp| EpollEvent::new(EpollFlags::EPOLLIN, id.token(rtcp));
        let watched = self
            .epoll
            .add(&leg.rtp.socket, event(false))
            .and_then(|()| self.epoll.add(&leg.rtcp.socket, event(true)));
        if let Err(errno) = watched {
            tracing::error!(%errno, port = id.port(), "failed to watch a leg's sockets");
            self.close(id);
        }
    }

    /// Visits a tenth of the places: sessions whose time has come, snapshots that are due.
    fn sweep(&mut self, now: Micros) {
        self.sweep = (self.sweep + 1) % SWEEPS;
        let every_us = self.shared.snapshot_us.load(Ordering::Relaxed);
        for place in (self.sweep..self.legs.len()).step_by(SWEEPS) {
            let Some(leg) = self.legs.get_mut(place).and_then(Option::as_deref_mut) else { continue };
            let id = leg.id;
            self.current = Some(id);
            if leg.session.next_timeout().is_some_and(|due| due <= now) {
                leg.session.handle_input(now, Input::Timeout);
                leg.retarget(&self.shared.guard);
            }
            if every_us > 0 && leg.next_snapshot <= now {
                leg.next_snapshot = now + every_us;
                let report = Box::new(leg.session.report(now));
                self.notify(Notice::Snapshot { id, report });
            }
            self.take_outputs(id);
            self.current = None;
        }
    }

    /// Closes a leg's sockets, gives its ports back and reports its end.
    fn close(&mut self, id: PortId) {
        let now = self.shared.clock.now();
        let Some(mut leg) = self.remove(id) else { return };
        let report = Box::new(leg.session.close(now));
        self.bury(leg);
        self.notify(Notice::Closed { id, report });
    }

    fn close_all(&mut self) {
        // What was ordered before the end is still done: a leg that never came here could not report.
        for _ in 0..self.orders.len() {
            self.take_orders();
        }
        let open: Vec<PortId> = self.legs.iter().flatten().map(|leg| leg.id).collect();
        for id in open {
            self.obey(id, Command::Close);
        }
        self.deliver_waiting();
    }

    fn remove(&mut self, id: PortId) -> Option<Box<Leg>> {
        let place = self.place(id)?;
        let leg = self.legs.get_mut(place)?.take_if(|leg| leg.id == id)?;
        self.open -= 1;
        Some(leg)
    }

    fn bury(&mut self, leg: Box<Leg>) {
        let port = leg.id.port();
        // Closing a socket takes it out of epoll as well; what epoll has reported already finds no leg.
        drop(leg);
        self.shared.release(port);
    }

    /// After a panic: the leg at work is given up, its report is empty, everybody else goes on.
    fn recover(&mut self) {
        self.batch.add(Count::Panics, 1);
        let Some(id) = self.current.take() else { return };
        tracing::error!(port = id.port(), "a panic ended a leg");
        if let Some(leg) = self.remove(id) {
            self.bury(leg);
            self.notify(Notice::Closed { id, report: Box::default() });
        }
    }

    /// Queues a notice. Reports of closed legs wait for room, everything else is dropped and counted.
    fn notify(&mut self, notice: Notice) {
        let closed = matches!(notice, Notice::Closed { .. });
        // Nothing overtakes a waiting report.
        if !self.waiting.is_empty() && closed {
            self.wait(notice);
            return;
        }
        match self.shared.notices.try_send(notice) {
            Ok(()) => self.queued = true,
            Err(TrySendError::Full(notice)) if closed => {
                self.wait(notice);
            }
            Err(_) => self.batch.add(Count::NoticesDropped, 1),
        }
    }

    fn wait(&mut self, notice: Notice) {
        self.waiting.push_back(notice);
        self.shared.backlog.fetch_add(1, Ordering::Relaxed);
    }

    fn deliver_waiting(&mut self) {
        while let Some(notice) = self.waiting.pop_front() {
            match self.shared.notices.try_send(notice) {
                Ok(()) => {
                    self.shared.backlog.fetch_sub(1, Ordering::Relaxed);
                    self.queued = true;
                }
                Err(TrySendError::Full(notice)) => {
                    self.waiting.push_front(notice);
                    break;
                }
                Err(TrySendError::Disconnected(_)) => {
                    self.shared.backlog.fetch_sub(1, Ordering::Relaxed);
                    self.batch.add(Count::NoticesDropped, 1);
                }
            }
        }
        if std::mem::take(&mut self.queued) {
            (self.shared.wake)();
        }
    }

    /// How long the worker may sleep.
    fn patience(&self) -> EpollTimeout {
        if self.orders_due {
            return EpollTimeout::ZERO;
        }
        if self.open == 0 && self.waiting.is_empty() {
            return EpollTimeout::NONE;
        }
        let left_us = self.next_sweep.since(self.shared.clock.now()).clamp(0, SWEEP_US);
        // Up, so that it does not wake a moment too early.
        u16::try_from(left_us / 1_000 + 1).map_or(EpollTimeout::ZERO, EpollTimeout::from)
    }

    fn publish(&mut self) {
        if let Some(tally) = self.shared.tallies.get(self.index) {
            tally.publish(&mut self.batch);
        }
    }

    /// Where a port's leg stands.
    fn place(&self, id: PortId) -> Option<usize> {
        id.port().checked_sub(*self.shared.guard.ports.start()).map(|offset| usize::from(offset / 2))
    }
}

/// An epoll that hears the alarm.
pub(super) fn listen(alarm: &Alarm) -> io::Result<Epoll> {
    let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?;
    epoll.add(alarm, EpollEvent::new(EpollFlags::EPOLLIN, ALARM_TOKEN))?;
    Ok(epoll)
}

/// The leg at a place, if it is still the one that is meant.
fn find(legs: &mut [Option<Box<Leg>>], place: usize, id: PortId) -> Option<&mut Leg> {
    legs.get_mut(place)?.as_deref_mut().filter(|leg| leg.id == id)
}

/// No leg has it: its serial number would need the top bit.
const ALARM_TOKEN: u64 = u64::MAX;
/// Batches that are read from a socket before a command; more than a receive buffer holds by default.
const DRAINS_MAX: usize = 64;
/// Sockets that one turn serves.
const EVENTS_MAX: usize = 256;
/// Orders that one turn takes.
const ORDERS_PER_TURN: usize = 256;
/// A leg is looked at without packets once in `SWEEPS` sweeps: once a second.
const SWEEPS: usize = 10;
/// Time between two sweeps.
const SWEEP_US: i64 = 100_000;

#[cfg(test)]
#[path = "worker_tests.rs"]
mod tests;
