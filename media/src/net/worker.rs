//! One thread of the relay: waits for its sockets, moves packets, and runs commands in between.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use crossbeam_channel::Receiver;
use nix::errno::Errno;
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};

use super::alarm::Alarm;
use super::counters::{Batch, Count};
use super::leg::{Forward, Leg};
use super::message::{Command, Notice, PortId};
use super::mixes::Mixes;
use super::moves::{Handover, Moves};
use super::outlet::Outlet;
use super::presence::Change;
use super::relay::{Order, Shared};
use super::transcodings::Transcodings;
use super::wire::{BATCH, Wire};
use crate::mix::MixId;
use crate::session::{Input, Output};
use crate::time::Micros;

/// A worker with its legs and its mixes; it owns the sockets that it reads.
pub(super) struct Worker {
    pub(super) index: usize,
    pub(super) shared: Arc<Shared>,
    alarm: Arc<Alarm>,
    orders: Receiver<Order>,
    /// Messages from other workers.
    inbox: Receiver<Handover>,
    /// Whether orders or legs may be left from the last turn.
    orders_due: bool,
    pub(super) epoll: Epoll,
    events: Box<[EpollEvent]>,
    pub(super) wire: Wire,
    pub(super) batch: Batch,
    /// Legs by their position in the port range.
    pub(super) legs: Vec<Option<Box<Leg>>>,
    open: usize,
    pub(super) mixes: Mixes,
    pub(super) transcodings: Transcodings,
    pub(super) moves: Moves,
    pub(super) outlet: Outlet,
    /// The clock's last reading.
    seen: Micros,
    next_sweep: Micros,
    sweep: usize,
    /// The leg or mix being processed: it ends when a panic occurs.
    pub(super) current: Option<At>,
}

/// What a worker is processing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum At {
    /// One leg.
    Leg(PortId),
    /// A mix, with all legs in it.
    Mix(MixId),
}

impl Worker {
    /// A worker without legs, created on the thread that runs it; `epoll` is from [`listen`].
    pub(super) fn new(
        index: usize,
        shared: Arc<Shared>,
        alarm: Arc<Alarm>,
        orders: Receiver<Order>,
        inbox: Receiver<Handover>,
        epoll: Epoll,
    ) -> Worker {
        let ports = &shared.guard.ports;
        let places = usize::from(ports.end().saturating_sub(*ports.start())) / 2 + 1;
        Worker {
            index,
            alarm,
            orders,
            inbox,
            orders_due: false,
            epoll,
            events: vec![EpollEvent::empty(); EVENTS_MAX].into_boxed_slice(),
            wire: Wire::new(),
            batch: Batch::new(),
            legs: std::iter::repeat_with(|| None).take(places).collect(),
            open: 0,
            mixes: Mixes::default(),
            transcodings: Transcodings::default(),
            moves: Moves::new(shared.peers.len()),
            outlet: Outlet::default(),
            seen: shared.clock.now(),
            next_sweep: shared.clock.now() + SWEEP_US,
            sweep: 0,
            current: None,
            shared,
        }
    }

    /// Runs until the relay is shut down.
    pub(super) fn run(mut self) {
        while !self.shared.stop.load(Ordering::SeqCst) {
            let mut outcome = catch_unwind(AssertUnwindSafe(|| self.turn()));
            // After a panic, closing what is left may panic again.
            for _ in 0..RECOVERIES_MAX {
                if outcome.is_ok() {
                    break;
                }
                outcome = catch_unwind(AssertUnwindSafe(|| self.recover()));
            }
            self.publish();
        }
        if catch_unwind(AssertUnwindSafe(|| self.close_all())).is_err() {
            self.batch.add(Count::Panics, 1);
        }
        self.publish();
    }

    /// Waits once and handles what is due.
    fn turn(&mut self) {
        let patience = self.patience();
        let ready = match self.epoll.wait(&mut self.events, patience) {
            Ok(ready) => ready,
            Err(Errno::EINTR) => 0,
            Err(errno) => {
                // Has never occurred; without this pause the loop would be busy without packets.
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
            // A burst of packets must not delay the ticks of mixes.
            if self.mixes.is_due(self.seen) {
                self.tick_mixes();
            }
        }
        if self.orders_due {
            self.take_orders();
        }
        let now = self.shared.clock.now();
        if self.mixes.is_due(now) {
            self.tick_mixes();
        }
        if self.transcodings.is_due(now) {
            self.tick_transcodings();
        }
        if now >= self.next_sweep {
            self.next_sweep = now + SWEEP_US;
            self.sweep(now);
        }
        self.moves.flush(&self.shared);
        self.outlet.deliver(&self.shared, &mut self.batch);
    }

    /// The packet path: receives a batch, measures it, sends it on. Returns the number of datagrams received.
    fn visit(&mut self, id: PortId, rtcp: bool, flags: EpollFlags) -> usize {
        let Some(leg) = place(&self.shared, id).and_then(|place| find(&mut self.legs, place, id)) else {
            return 0;
        };
        self.current = Some(At::Leg(id));
        if flags.contains(EpollFlags::EPOLLERR) && !rtcp {
            leg.hear_unreachable(&mut self.wire, self.shared.clock.now(), &mut self.batch);
        }
        // An error here means that there is no datagram; ICMP errors arrive through the error queue above.
        let Ok(count) = self.wire.receive(leg.endpoint_mut(rtcp)) else {
            self.current = None;
            return 0;
        };
        let sample = self.shared.clock.sample();
        self.seen = sample.now;
        self.batch.add(Count::Received, u32::try_from(count).unwrap_or(u32::MAX));
        let picked = leg.measure(&mut self.wire, rtcp, count, sample, &mut self.batch);
        let (mix, peer) = (leg.seat, leg.forward.as_ref().map(|forward| forward.peer));
        let presence = leg.presence.look(sample.now);
        self.tell_presence(id, presence);
        self.take_outputs(id);
        if let Some(mix) = mix {
            self.hear(id, mix, &picked, sample);
        } else if let Some(peer) = peer {
            self.current = Some(At::Leg(peer));
            match place(&self.shared, peer).and_then(|place| find(&mut self.legs, place, peer)) {
                // A leg that has joined a mix meanwhile hears only the mix.
                Some(leg) if leg.seat.is_none() => {
                    leg.send(&mut self.wire, &picked, sample.now, &mut self.batch);
                }
                _ => self.batch.add(Count::Held, picked.len()),
            }
            if !picked.transcoded.as_slice().is_empty() {
                self.current = Some(At::Leg(id));
                self.transcode(id, &picked, sample);
            }
        }
        self.current = None;
        self.publish();
        count
    }

    /// Reads the datagrams that wait in a leg's sockets, so that they count as received before the command.
    fn drain(&mut self, id: PortId) {
        for rtcp in [false, true] {
            for _ in 0..DRAINS_MAX {
                if self.visit(id, rtcp, EpollFlags::empty()) < BATCH {
                    break;
                }
            }
        }
    }

    /// Handles a session's outputs.
    fn take_outputs(&mut self, id: PortId) {
        let Some(place) = place(&self.shared, id) else { return };
        loop {
            let Some(leg) = find(&mut self.legs, place, id) else { return };
            let Some(output) = leg.session.poll_output() else { return };
            match output {
                Output::Latched { remote, foreign_sent } => {
                    self.batch.add(Count::ForeignSent, foreign_sent);
                    leg.retarget(&self.shared.guard);
                    self.notify(Notice::Latched { id, remote });
                }
            }
        }
    }

    /// Handles a bounded number of orders, so that packets and mixes never wait long.
    fn take_orders(&mut self) {
        for _ in 0..ORDERS_PER_TURN {
            // Legs of other workers are always taken, see [`Moves::is_full`].
            if let Ok(handover) = self.inbox.try_recv() {
                self.take_over(handover);
            } else if self.moves.is_full() {
                return;
            } else {
                match self.orders.try_recv() {
                    Ok(Order::Command(id, command)) => self.command(id, command),
                    Ok(Order::Mix(id, command)) => self.command_mix(id, command),
                    Ok(Order::Open(leg)) => self.admit(leg),
                    Err(_) => {
                        self.orders_due = false;
                        return;
                    }
                }
            }
            if self.mixes.is_due(self.shared.clock.now()) {
                self.tick_mixes();
            }
        }
    }

    pub(super) fn admit(&mut self, leg: Box<Leg>) {
        if let Some(slot) = place(&self.shared, leg.id).and_then(|place| self.legs.get_mut(place)) {
            debug_assert!(slot.is_none(), "a pair of ports was opened twice");
            *slot = Some(leg);
            self.open += 1;
        }
    }

    /// Reads packets that arrived before a command that is about to run.
    pub(super) fn drain_described(&mut self, id: PortId) {
        let leg = place(&self.shared, id).and_then(|place| find(&mut self.legs, place, id));
        if leg.is_some_and(|leg| leg.described) {
            self.drain(id);
        }
    }

    /// Runs a command for a leg that is in this worker.
    pub(super) fn obey(&mut self, id: PortId, command: Command) {
        let Some(place) = place(&self.shared, id) else { return };
        if matches!(command, Command::Close) {
            self.drain(id);
        } else {
            self.drain_described(id);
        }
        let now = self.shared.clock.now();
        let Some(leg) = find(&mut self.legs, place, id) else { return };
        self.current = Some(At::Leg(id));
        match command {
            Command::Answered => leg.session.answer(now),
            Command::Bridge { peer, payload_map } => {
                let before = leg.forward.take().filter(|forward| forward.peer == peer);
                let transcoding = before.and_then(|forward| forward.transcoding);
                leg.forward = Some(Forward { peer, payload_map, transcoding });
            }
            Command::Close => self.close(id),
            Command::Join { mix, seat } => self.seat(id, mix, *seat),
            Command::Leave => self.unseat(id),
            Command::Seat(command) => self.command_seat(id, command),
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
            Command::Tone => self.beep(id),
            Command::Trace { mut head, sink } => {
                let sample = self.shared.clock.sample();
                head.zero_us = sample.wall_us.saturating_sub(sample.now.0);
                leg.session.trace(*head, sink);
            }
            Command::Transcode { plan, seed } => self.transcode_by(id, plan.map(|plan| *plan), seed),
            Command::Unbridge => leg.forward = None,
        }
        self.take_outputs(id);
        self.current = None;
    }

    /// Starts reading a leg's sockets. When epoll refuses them, the leg is closed and [`Notice::Closed`]
    /// informs the switch.
    pub(super) fn watch(&mut self, id: PortId) {
        let Some(leg) = place(&self.shared, id).and_then(|place| find(&mut self.legs, place, id)) else {
            return;
        };
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

    /// Visits a tenth of the legs: session timeouts, snapshots and reports that are due.
    fn sweep(&mut self, now: Micros) {
        self.sweep = (self.sweep + 1) % SWEEPS;
        if let Some(tally) = self.shared.tallies.get(self.index) {
            tally.set_mixing(self.mixes.counts());
        }
        let every_us = self.shared.snapshot_us.load(Ordering::Relaxed);
        let warns = self.shared.warns.load(Ordering::Relaxed);
        for place in (self.sweep..self.legs.len()).step_by(SWEEPS) {
            let Some(leg) = self.legs.get_mut(place).and_then(Option::as_deref_mut) else { continue };
            let id = leg.id;
            self.current = Some(At::Leg(id));
            if leg.session.next_timeout().is_some_and(|due| due <= now) {
                leg.session.handle_input(now, Input::Timeout);
                leg.retarget(&self.shared.guard);
            }
            leg.session.flush_trace(now, TRACE_AGE_US);
            if leg.reports.is_some() {
                leg.send_report(&mut self.wire, &self.shared.clock, &mut self.batch);
            }
            let presence = leg.presence.look(now);
            let warning = if warns { leg.watch.look(now, &leg.session) } else { None };
            if every_us > 0 && leg.next_snapshot <= now {
                leg.next_snapshot = now + every_us;
                let report = Box::new(leg.session.report(now));
                self.notify(Notice::Snapshot { id, report });
            }
            self.tell_presence(id, presence);
            if let Some(warning) = warning {
                self.notify(Notice::Warning { id, warning: Box::new(warning) });
            }
            self.take_outputs(id);
            self.current = None;
        }
    }

    /// Closes a leg's sockets, releases its ports and reports its end.
    pub(super) fn close(&mut self, id: PortId) {
        let now = self.shared.clock.now();
        self.unseat(id);
        let Some(mut leg) = self.remove(id) else { return };
        let report = Box::new(leg.session.close(now));
        self.bury(leg);
        self.outlet.take_untold(id);
        self.notify(Notice::Closed { id, report });
    }

    fn close_all(&mut self) {
        // Orders queued before the end still run, because a leg that was never opened here could not report.
        for _ in 0..self.orders.len() + self.inbox.len() {
            self.take_orders();
        }
        while let Some(leg) = self.moves.take_leg() {
            self.admit(leg);
        }
        let open: Vec<PortId> = self.legs.iter().flatten().map(|leg| leg.id).collect();
        for id in open {
            self.obey(id, Command::Close);
        }
        self.moves.flush(&self.shared);
        self.outlet.deliver(&self.shared, &mut self.batch);
    }

    pub(super) fn remove(&mut self, id: PortId) -> Option<Box<Leg>> {
        let place = place(&self.shared, id)?;
        let leg = self.legs.get_mut(place)?.take_if(|leg| leg.id == id)?;
        self.open -= 1;
        Some(leg)
    }

    fn bury(&mut self, leg: Box<Leg>) {
        let id = leg.id;
        // Closing a socket also removes it from epoll; events that epoll has already reported find no leg.
        drop(leg);
        self.shared.release(id.port());
        self.tell_home(id);
    }

    /// After a panic: ends the leg being processed with an empty report, or the mix with its legs; all others
    /// continue.
    fn recover(&mut self) {
        self.batch.add(Count::Panics, 1);
        match self.current.take() {
            Some(At::Leg(id)) => {
                tracing::error!(port = id.port(), "a panic ended a leg");
                self.unseat(id);
                self.current = None;
                if let Some(leg) = self.remove(id) {
                    self.bury(leg);
                    self.outlet.take_untold(id);
                    self.notify(Notice::Closed { id, report: Box::default() });
                }
            }
            Some(At::Mix(id)) => {
                tracing::error!(mix = id.0, "a panic ended a mix and the legs in it");
                self.give_up_mix(id);
                self.current = None;
            }
            None => {}
        }
    }

    /// Notifies the switch when the party falls silent or is heard again.
    fn tell_presence(&mut self, id: PortId, change: Option<Change>) {
        match change {
            Some(Change::Heard) => self.notify(Notice::Silent { id, since_us: None }),
            Some(Change::Silent(since_us)) => self.notify(Notice::Silent { id, since_us: Some(since_us) }),
            None => {}
        }
    }

    /// Sends a notice to the switch.
    pub(super) fn notify(&mut self, notice: Notice) {
        self.outlet.notify(notice, &self.shared, &mut self.batch);
    }

    /// How long the worker may sleep.
    fn patience(&self) -> EpollTimeout {
        if self.orders_due && !self.moves.is_full() {
            return EpollTimeout::ZERO;
        }
        let idle = self.open == 0 && self.outlet.is_empty();
        let sweep = (!idle).then_some(self.next_sweep);
        let now = self.shared.clock.now();
        let handing = self.moves.is_waiting().then(|| now + HAND_OVER_US);
        let Some(next) = [sweep, self.mixes.next_tick(), self.transcodings.next_tick(), handing]
            .into_iter()
            .flatten()
            .min()
        else {
            return EpollTimeout::NONE;
        };
        // Rounded up, so that it does not wake too early.
        let left_ms = (next.since(now).clamp(0, SWEEP_US) + 999) / 1_000;
        u16::try_from(left_ms).map_or(EpollTimeout::ZERO, EpollTimeout::from)
    }

    fn publish(&mut self) {
        if let Some(tally) = self.shared.tallies.get(self.index) {
            tally.publish(&mut self.batch);
            if let Some((mixes, seats)) = self.mixes.changed_size() {
                tally.set_mixes(mixes, seats);
                // A worker without legs does not sweep.
                tally.set_mixing(self.mixes.counts());
            }
        }
    }
}

/// An epoll that watches the alarm.
pub(super) fn listen(alarm: &Alarm) -> io::Result<Epoll> {
    let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?;
    epoll.add(alarm, EpollEvent::new(EpollFlags::EPOLLIN, ALARM_TOKEN))?;
    Ok(epoll)
}

/// The position of a port's leg.
pub(super) fn place(shared: &Shared, id: PortId) -> Option<usize> {
    id.port().checked_sub(*shared.guard.ports.start()).map(|offset| usize::from(offset / 2))
}

/// The leg at a position, if its id still matches.
pub(super) fn find(legs: &mut [Option<Box<Leg>>], place: usize, id: PortId) -> Option<&mut Leg> {
    legs.get_mut(place)?.as_deref_mut().filter(|leg| leg.id == id)
}

/// No leg has this token: its serial number would need the top bit.
const ALARM_TOKEN: u64 = u64::MAX;
/// Batches read from a socket before a command; more than a default receive buffer holds.
const DRAINS_MAX: usize = 64;
/// Sockets handled in one turn.
const EVENTS_MAX: usize = 256;
/// After this time a worker whose inbox was full is tried again.
const HAND_OVER_US: i64 = 1_000;
/// Orders handled in one turn.
const ORDERS_PER_TURN: usize = 256;
/// How often cleaning up after a panic is tried.
const RECOVERIES_MAX: usize = 4;
/// The most of a trace that a crash loses, plus a second.
const TRACE_AGE_US: i64 = 10_000_000;
/// Without packets a leg is visited once in `SWEEPS` sweeps, that is once a second.
const SWEEPS: usize = 10;
/// Time between two sweeps.
const SWEEP_US: i64 = 100_000;

#[cfg(test)]
#[path = "worker_tests.rs"]
mod tests;
