//! One thread of the relay: waits for its sockets, moves their packets and carries out commands in between.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use crossbeam_channel::Receiver;
use sidetone_wire::{BATCH, Event, Waker, Wire};

use super::clock::Readings;
use super::counters::Count;
use super::gather::Gather;
use super::handover::{Handover, Handovers, place_of};
use super::leg::{Forward, Leg, count_sent};
use super::legs::Legs;
use super::message::{Command, Notice, PortId};
use super::mixes::Mixes;
use super::monitor::Monitor;
use super::presence::Change;
use super::rtcp_tap::RtcpTap;
use super::shared::Shared;
use super::transcodings::{Transcodings, beep, transcode_by};
use super::worker_io::{At, WorkerIo};
use crate::mix::{MixCommand, MixId};
use crate::session::Output;
use crate::time::Micros;

/// A worker with its legs and its mixes; it owns the sockets that it reads.
pub(super) struct Worker {
    index: usize,
    io: WorkerIo,
    waker: Arc<Waker>,
    orders: Receiver<Order>,
    /// Messages from other workers.
    inbox: Receiver<Handover>,
    /// Whether orders or legs may be left from the last turn.
    orders_due: bool,
    legs: Legs,
    mixes: Mixes,
    transcodings: Transcodings,
    handovers: Handovers,
    readings: Readings,
    gather: Gather,
    /// The pause before the next wait.
    pause: Duration,
    next_sweep: Micros,
    sweep: usize,
}

/// How much to read from a socket.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Read {
    /// All waiting datagrams, [`BATCH`] at most.
    All,
    /// As many datagrams as are worth reading from a ready socket, see [`Wire::receive`].
    Ready { error: bool },
}

/// A command from the handle of the relay.
pub(super) enum Order {
    Command(PortId, Command),
    Mix(MixId, MixCommand),
    Open(Box<Leg>),
}

impl Worker {
    /// A worker without legs, created on the thread that runs it.
    pub(super) fn new(
        index: usize,
        shared: Arc<Shared>,
        waker: Arc<Waker>,
        orders: Receiver<Order>,
        inbox: Receiver<Handover>,
        wire: Wire,
    ) -> Worker {
        let ports = &shared.guard.ports;
        Worker {
            index,
            waker,
            orders,
            inbox,
            orders_due: false,
            legs: Legs::new(*ports.start(), *ports.end()),
            mixes: Mixes::default(),
            transcodings: Transcodings::default(),
            handovers: Handovers::new(shared.peers.len()),
            readings: Readings::new(shared.clock.sample()),
            gather: Gather::new(shared.clock.now()),
            pause: Duration::ZERO,
            next_sweep: shared.clock.now() + SWEEP_US,
            sweep: 0,
            io: WorkerIo::new(shared, wire),
        }
    }

    /// Runs until the relay is shut down.
    pub(super) fn run(mut self) {
        while !self.io.shared.stop.load(Ordering::SeqCst) {
            let mut outcome = catch_unwind(AssertUnwindSafe(|| self.turn()));
            // After a panic, closing the remaining legs may panic again.
            for _ in 0..RECOVERIES_MAX {
                if outcome.is_ok() {
                    break;
                }
                outcome = catch_unwind(AssertUnwindSafe(|| self.recover()));
            }
            self.publish();
        }
        if catch_unwind(AssertUnwindSafe(|| self.close_all())).is_err() {
            self.io.batch.add(Count::Panics, 1);
        }
        self.publish();
    }

    /// Waits once and handles all due work.
    fn turn(&mut self) {
        let patience = self.patience();
        let ready = match self.io.wire.wait(patience, self.pause) {
            Ok(ready) => ready,
            Err(error) => {
                // Has never occurred; without this pause the loop would be busy without packets.
                tracing::error!(%error, "an RTP worker failed to wait for its sockets");
                std::thread::yield_now();
                0
            }
        };
        self.readings.expire();
        let mut packets = 0;
        for place in 0..ready {
            match self.io.wire.event(place) {
                None => break,
                Some(Event::Woken) => {
                    self.waker.reset();
                    self.orders_due = true;
                }
                Some(Event::Ready { token, error }) => {
                    let (id, rtcp) = PortId::from_token(token);
                    packets += self.visit(id, rtcp, Read::Ready { error });
                }
            }
            // A burst of packets does not delay the listeners of a mix.
            if self.mixes.is_due(self.readings.last().now) {
                self.tick_mixes();
            }
        }
        // Sends queued datagrams. The packets before a notice are counted when it is read.
        self.publish_counts();
        if self.orders_due {
            self.take_orders();
        }
        let now = self.io.shared.clock.now();
        if self.mixes.is_due(now) {
            self.tick_mixes();
        }
        if self.transcodings.is_due(now) {
            self.transcodings.tick(&mut self.io, &mut self.legs);
        }
        if now >= self.next_sweep {
            self.next_sweep = now + SWEEP_US;
            self.sweep(now);
        }
        self.pause = self.gather.after_turn(now, u32::try_from(packets).unwrap_or(u32::MAX));
        self.handovers.flush(&self.io.shared.peers);
        self.io.deliver_notices();
    }

    /// The packet path: receives a batch, measures it, sends it on. Returns the number of datagrams received.
    fn visit(&mut self, id: PortId, rtcp: bool, read: Read) -> usize {
        let Some(leg) = self.legs.get_mut(id) else {
            return 0;
        };
        self.io.current = Some(At::Leg(id));
        if read == (Read::Ready { error: true }) && !rtcp {
            leg.hear_unreachable(&mut self.io.wire, self.io.shared.clock.now(), &mut self.io.batch);
        }
        let endpoint = leg.endpoint_mut(rtcp);
        let count = match read {
            Read::All => self.io.wire.drain(endpoint),
            Read::Ready { .. } => self.io.wire.receive(endpoint),
        };
        if count == 0 {
            self.io.current = None;
            return 0;
        }
        let newest = count.checked_sub(1).and_then(|last| self.io.wire.datagram(last));
        let stamp_us = newest.and_then(|(arrival, _)| arrival.stamp_us);
        let sample = self.readings.after(stamp_us, &self.io.shared.clock);
        let datagrams = u32::try_from(count).unwrap_or(u32::MAX);
        self.io.batch.add(Count::Received, datagrams);
        let oldest_us = self.io.wire.datagram(0).and_then(|(arrival, _)| arrival.stamp_us);
        if sample.is_late_for(oldest_us) {
            self.io.batch.add(Count::Waited, datagrams);
        }
        let picked = leg.measure(&mut self.io.wire, rtcp, count, sample, &mut self.io.batch);
        if leg.has_moved() {
            leg.follow_path(sample.now, &self.io.shared.guard);
        }
        let (mix, peer) = (leg.seat, leg.forward.as_ref().map(|forward| forward.peer));
        let presence = leg.presence.look(sample.now);
        while let Some((digit, duration_ms)) = leg.take_key() {
            self.io.notify(Notice::Key { id, digit, duration_ms });
        }
        self.tell_presence(id, presence);
        self.take_outputs(id);
        if let (Some(mix), Some(listened)) = (mix, &picked.listened) {
            self.mixes.listen(&mut self.io, &mut self.legs, id, mix, listened, sample);
        }
        if let Some(mix) = mix.filter(|_| picked.listened.is_none()) {
            self.mixes.receive(&mut self.io, &mut self.legs, id, mix, &picked, sample);
        } else if let Some(peer) = peer {
            self.io.current = Some(At::Leg(peer));
            match self.legs.get_mut(peer) {
                // A leg that has joined a mix meanwhile hears only the mix.
                Some(leg) if leg.is_relayed() => {
                    leg.send(&mut self.io.wire, &picked, sample.now, &mut self.io.batch);
                }
                _ => self.io.batch.add(Count::Held, picked.len()),
            }
            if !picked.transcoded.as_slice().is_empty() {
                self.io.current = Some(At::Leg(id));
                self.transcodings.receive(&mut self.io, &mut self.legs, id, &picked, sample);
            }
        }
        self.io.current = None;
        count
    }

    /// Reads the datagrams that wait in a leg's sockets, so that they count as received before the command.
    fn drain(&mut self, id: PortId) {
        self.readings.expire();
        for rtcp in [false, true] {
            for _ in 0..DRAINS_MAX {
                if self.visit(id, rtcp, Read::All) < BATCH {
                    break;
                }
            }
        }
        self.publish_counts();
    }

    /// Passes on the outputs of a session.
    fn take_outputs(&mut self, id: PortId) {
        loop {
            let Some(leg) = self.legs.get_mut(id) else { return };
            let Some(output) = leg.session.poll_output() else { return };
            match output {
                Output::Latched { remote, foreign_sent } => {
                    self.io.batch.add(Count::ForeignSent, foreign_sent);
                    leg.retarget(&self.io.shared.guard);
                    self.io.notify(Notice::Latched { id, remote });
                }
            }
        }
    }

    /// Handles a bounded number of orders, so that packets and mixes never wait long.
    fn take_orders(&mut self) {
        for _ in 0..ORDERS_PER_TURN {
            // Legs of other workers are always accepted, see [`Handovers::is_full`].
            if let Ok(handover) = self.inbox.try_recv() {
                self.take_over(handover);
            } else if self.handovers.is_full() {
                return;
            } else {
                match self.orders.try_recv() {
                    Ok(Order::Command(id, command)) => self.command(id, command),
                    Ok(Order::Mix(id, command)) => {
                        self.mixes.command_mix(&mut self.io, &mut self.legs, id, command)
                    }
                    Ok(Order::Open(leg)) => self.legs.insert(leg),
                    Err(_) => {
                        self.orders_due = false;
                        return;
                    }
                }
            }
            if self.mixes.is_due(self.io.shared.clock.now()) {
                self.tick_mixes();
            }
        }
    }

    /// Reads packets that arrived before a command that is about to run.
    fn drain_described(&mut self, id: PortId) {
        let leg = self.legs.get_mut(id);
        if leg.is_some_and(|leg| leg.described) {
            self.drain(id);
        }
    }

    /// Carries out a command to a leg that is here.
    fn obey(&mut self, id: PortId, command: Command) {
        if matches!(command, Command::Close) {
            self.drain(id);
        } else {
            self.drain_described(id);
        }
        let now = self.io.shared.clock.now();
        let Some(leg) = self.legs.get_mut(id) else { return };
        self.io.current = Some(At::Leg(id));
        match command {
            Command::Answered => leg.session.answer(now),
            Command::Bridge { peer, payload_map } => {
                let before = leg.forward.take().filter(|forward| forward.peer == peer);
                let transcoding = before.and_then(|forward| forward.transcoding);
                leg.forward = Some(Forward { peer, payload_map, transcoding });
                // For video, the reports of the two parties suffice.
                if !leg.session.carries_video() {
                    leg.monitor.get_or_insert_with(|| Box::new(Monitor::new(id, now)));
                }
            }
            Command::Close => self.close(id),
            Command::Join { mix, seat } => self.mixes.seat(&mut self.io, &mut self.legs, id, mix, *seat),
            Command::Leave => self.unseat(id),
            Command::Listen { mix, seat } => {
                self.mixes.seat_listener(&mut self.io, &mut self.legs, id, mix, *seat);
            }
            Command::PlayKey(key) => leg.keys().play(key, now),
            Command::Press(key) => leg.keys().press(key, now),
            Command::Secure(to) => leg.secure(now, to.map(|to| *to), &self.io.shared.jobs),
            Command::Shaken(shaken) => {
                leg.take_shaken(&mut self.io.wire, now, *shaken, &self.io.shared.guard);
            }
            Command::Seat(command) => self.mixes.command_seat(&mut self.io, &mut self.legs, id, command),
            Command::Describe(description) => {
                leg.describe(now, *description, &self.io.shared.guard);
                if !std::mem::replace(&mut leg.described, true) {
                    self.watch(id);
                }
            }
            Command::Snapshot => {
                let report = Box::new(leg.session.report(now));
                self.io.notify(Notice::Snapshot { id, report });
            }
            Command::TapRtcp(sink) => {
                leg.rtcp_tap = Some(Box::new(RtcpTap::new(sink, self.io.shared.clock.sample())));
            }
            Command::Tone => beep(&mut self.legs, id),
            Command::Trace { mut head, sink } => {
                let sample = self.io.shared.clock.sample();
                head.zero_us = sample.wall_us.saturating_sub(sample.now.0);
                leg.session.trace(*head, sink);
            }
            Command::Transcode { plan, seed } => {
                transcode_by(&self.io, &mut self.legs, id, plan.map(|plan| *plan), seed)
            }
            Command::Unbridge => leg.forward = None,
            Command::WatchKeys(source) => leg.watch_keys(source),
        }
        self.take_outputs(id);
        self.io.current = None;
    }

    /// Runs a command for a port whose home is here, or forwards it to the worker that has the leg.
    fn command(&mut self, id: PortId, command: Command) {
        let Some(command) = self.handovers.route(id, command) else { return };
        match place_of(id, &command, self.io.shared.peers.len()) {
            Some(place) if place != self.index => self.lend(id, place, command),
            _ => self.obey(id, command),
        }
    }

    /// Processes a message from another worker.
    fn take_over(&mut self, handover: Handover) {
        match handover {
            Handover::Command(id, command) => self.obey(id, command),
            Handover::Gone(id) => drop(self.handovers.release(id)),
            Handover::Leg(leg) => self.take_in(leg),
            Handover::Recall(id) => {
                if let Some(leg) = self.detach(id) {
                    self.handovers.return_home(leg);
                }
            }
        }
    }

    /// Sends a leg to worker `place`, where this command for the leg runs.
    fn lend(&mut self, id: PortId, place: usize, command: Command) {
        if let Some(leg) = self.detach(id) {
            self.handovers.lend(leg, place, command);
        }
    }

    /// Removes a leg from this worker; packets received before are processed first.
    fn detach(&mut self, id: PortId) -> Option<Box<Leg>> {
        // First, so that all packets that this worker received are processed, and none is received afterwards.
        self.unwatch(id);
        self.drain_described(id);
        self.unseat(id);
        let mut leg = self.legs.remove(id)?;
        leg.forward = None;
        leg.untold = self.io.notices.take_untold(id);
        Some(leg)
    }

    /// Takes a leg that arrived: to its mix or its peer, or back home.
    fn take_in(&mut self, mut leg: Box<Leg>) {
        let (id, described, untold) = (leg.id, leg.described, leg.untold.take());
        self.legs.insert(leg);
        if described {
            self.watch(id);
        }
        if let Some(talking) = untold {
            self.io.notify(Notice::Talking { id, talking });
        }
        for command in self.handovers.release(id) {
            self.command(id, command);
        }
    }

    fn unseat(&mut self, id: PortId) {
        self.mixes.unseat(&mut self.io, &mut self.legs, id);
    }

    fn tick_mixes(&mut self) {
        self.mixes.tick(&mut self.io, &mut self.legs);
    }

    /// Starts reading a leg's sockets. When the system refuses them, the leg is closed and [`Notice::Closed`]
    /// informs the switch.
    fn watch(&mut self, id: PortId) {
        let Some(leg) = self.legs.get_mut(id) else {
            return;
        };
        let wire = &mut self.io.wire;
        let watched =
            wire.watch(&leg.rtp, id.token(false)).and_then(|()| wire.watch(&leg.rtcp, id.token(true)));
        if let Err(error) = watched {
            tracing::error!(%error, port = id.port(), "failed to watch a leg's sockets");
            self.close(id);
        }
    }

    /// Stops reading a leg's sockets, if they are read. The kernel refuses this only for sockets that it does not
    /// watch.
    fn unwatch(&mut self, id: PortId) {
        let Some(leg) = self.legs.get_mut(id).filter(|leg| leg.described) else { return };
        for endpoint in [&leg.rtp, &leg.rtcp] {
            if let Err(error) = self.io.wire.unwatch(endpoint) {
                tracing::error!(%error, port = leg.id.port(), "failed to cease watching a leg's socket");
            }
        }
    }

    /// Visits a tenth of the legs: snapshots and reports that are due.
    fn sweep(&mut self, now: Micros) {
        self.sweep = (self.sweep + 1) % SWEEPS;
        if let Some(tally) = self.io.shared.tallies.get(self.index) {
            tally.set_mixing(self.mixes.counts());
        }
        let every_us = self.io.shared.snapshot_us.load(Ordering::Relaxed);
        let warns = self.io.shared.warns.load(Ordering::Relaxed);
        for place in (self.sweep..self.legs.places()).step_by(SWEEPS) {
            let Some(leg) = self.legs.at_mut(place) else { continue };
            let id = leg.id;
            self.io.current = Some(At::Leg(id));
            leg.session.flush_trace(now, TRACE_AGE_US);
            leg.look_after_path(now, &self.io.shared.guard);
            if leg.reports.is_some() || leg.monitor.is_some() {
                leg.send_report(&mut self.io.wire, &self.io.shared.clock, &mut self.io.batch);
            }
            let presence = leg.presence.look(now);
            let warning = if warns { leg.watch.look(now, &leg.session) } else { None };
            if every_us > 0 && leg.next_snapshot <= now {
                leg.next_snapshot = now + every_us;
                let report = Box::new(leg.session.report(now));
                self.io.notify(Notice::Snapshot { id, report });
            }
            self.tell_presence(id, presence);
            if let Some(warning) = warning {
                self.io.notify(Notice::Warning { id, warning: Box::new(warning) });
            }
            self.take_outputs(id);
            self.io.current = None;
        }
    }

    /// Closes a leg's sockets, releases its ports and reports its end.
    fn close(&mut self, id: PortId) {
        let now = self.io.shared.clock.now();
        // Before the seat is removed, because its reports go with it.
        if let Some(leg) = self.legs.get_mut(id) {
            leg.end_reports(&mut self.io.wire, now, &mut self.io.batch);
        }
        self.unseat(id);
        let Some(mut leg) = self.legs.remove(id) else { return };
        let report = Box::new(leg.session.close(now));
        self.bury(leg);
        self.io.notices.take_untold(id);
        self.io.notify(Notice::Closed { id, report });
    }

    fn close_all(&mut self) {
        // Orders queued before the end still run, because a leg that was never opened here could not report.
        for _ in 0..self.orders.len() + self.inbox.len() {
            self.take_orders();
        }
        while let Some(leg) = self.handovers.take_leg() {
            self.legs.insert(leg);
        }
        let open: Vec<PortId> = self.legs.iter().map(|leg| leg.id).collect();
        for id in open {
            self.obey(id, Command::Close);
        }
        self.handovers.flush(&self.io.shared.peers);
        self.io.deliver_notices();
    }

    fn bury(&mut self, leg: Box<Leg>) {
        let id = leg.id;
        // Events already reported for its sockets find no leg.
        self.io.wire.forget([&leg.rtp, &leg.rtcp]);
        drop(leg);
        self.io.shared.release(id.port());
        if id.worker() != self.index {
            self.handovers.report_end(id);
        }
    }

    /// After a panic: ends the leg being processed with an empty report, or the mix with its legs; all others
    /// continue.
    fn recover(&mut self) {
        self.io.batch.add(Count::Panics, 1);
        match self.io.current.take() {
            Some(At::Leg(id)) => {
                tracing::error!(port = id.port(), "a panic ended a leg");
                self.unseat(id);
                self.io.current = None;
                if let Some(leg) = self.legs.remove(id) {
                    self.bury(leg);
                    self.io.notices.take_untold(id);
                    self.io.notify(Notice::Closed { id, report: Box::default() });
                }
            }
            Some(At::Mix(id)) => {
                tracing::error!(mix = id.0, "a panic ended a mix and the legs in it");
                for leg in self.mixes.give_up(&mut self.io, &self.legs, id) {
                    self.close(leg);
                }
                self.io.current = None;
            }
            None => {}
        }
    }

    /// Notifies the switch when the party becomes silent or is heard again.
    fn tell_presence(&mut self, id: PortId, change: Option<Change>) {
        match change {
            Some(Change::Heard) => self.io.notify(Notice::Silent { id, since_us: None }),
            Some(Change::Silent(since_us)) => self.io.notify(Notice::Silent { id, since_us: Some(since_us) }),
            None => {}
        }
    }

    /// How long the worker may sleep.
    fn patience(&self) -> Option<Duration> {
        if self.orders_due && !self.handovers.is_full() {
            return Some(Duration::ZERO);
        }
        let idle = self.legs.open() == 0 && self.io.notices.is_empty();
        let sweep = (!idle).then_some(self.next_sweep);
        let now = self.io.shared.clock.now();
        let handing = self.handovers.is_waiting().then(|| now + HAND_OVER_US);
        let next = [sweep, self.mixes.next_tick(), self.transcodings.next_tick(), handing]
            .into_iter()
            .flatten()
            .min()?;
        let left_us = next.since(now).clamp(0, SWEEP_US);
        Some(Duration::from_micros(left_us.unsigned_abs()))
    }

    fn publish(&mut self) {
        self.publish_counts();
        let tally = self.io.shared.tallies.get(self.index);
        if let Some((tally, (mixes, seats))) = tally.zip(self.mixes.changed_size()) {
            tally.set_mixes(mixes, seats);
            // A worker without legs does not sweep.
            tally.set_mixing(self.mixes.counts());
        }
    }

    fn publish_counts(&mut self) {
        let sent = self.io.wire.flush();
        count_sent(sent, &mut self.io.batch);
        let calls = self.io.wire.take_calls().total();
        self.io.batch.add(Count::SystemCalls, u32::try_from(calls).unwrap_or(u32::MAX));
        if let Some(tally) = self.io.shared.tallies.get(self.index) {
            tally.publish(&mut self.io.batch);
        }
    }
}

/// Batches read from a socket before a command; more than a default receive buffer holds.
const DRAINS_MAX: usize = 64;
/// Interval at which a worker whose inbox was full is tried again.
const HAND_OVER_US: i64 = 1_000;
/// Orders handled in one turn.
const ORDERS_PER_TURN: usize = 256;
/// How often cleaning up after a panic is tried.
const RECOVERIES_MAX: usize = 4;
/// A crash loses at most this much of a trace, plus a second.
const TRACE_AGE_US: i64 = 10_000_000;
/// Without packets a leg is visited once in `SWEEPS` sweeps, that is once a second.
const SWEEPS: usize = 10;
/// Time between two sweeps.
const SWEEP_US: i64 = 100_000;

#[cfg(test)]
#[allow(clippy::duplicate_mod, reason = "the same tests with both ways to the kernel")]
#[path = "worker_tests.rs"]
mod epoll_tests;

#[cfg(test)]
#[allow(clippy::duplicate_mod, reason = "the same tests with both ways to the kernel")]
#[path = "worker_tests.rs"]
mod io_uring_tests;
