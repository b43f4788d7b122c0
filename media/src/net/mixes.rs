//! The mixes of one worker: when each is due, and the exchange between mixes and legs.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

use super::clock::{Clock, Sample};
use super::counters::{Count, MixingCounts};
use super::leg::{Listened, Picked};
use super::legs::Legs;
use super::message::{Notice, PortId};
use super::reports::Reports;
use super::worker_io::{At, WorkerIo};
use crate::mix::{Hears, Mix, MixCommand, MixEvent, MixFigures, MixId, Seat, SeatCommand};
use crate::rtp::RtpPacket;
use crate::time::Micros;

/// The mixes of a worker by id, and when each has its next tick.
#[derive(Default)]
pub(super) struct Mixes {
    mixes: HashMap<MixId, Entry>,
    /// Future ticks, earliest first. An entry whose time differs from its mix's `due` is obsolete.
    due: BinaryHeap<Reverse<(Micros, u64)>>,
    seats: usize,
    /// Number of mixes and seats reported last.
    reported: (usize, usize),
    /// Totals of the mixes that have ended.
    ended: MixingCounts,
}

struct Entry {
    mix: Mix,
    seats: usize,
    /// The mix stays without seats while it records; a command ends the recording.
    recording: bool,
    /// Whether the mix had work to do at the last check.
    active: bool,
    due: Option<Micros>,
}

impl Mixes {
    /// The mix with this id; it exists while it has seats or records.
    fn get_mut(&mut self, id: MixId) -> Option<&mut Mix> {
        self.mixes.get_mut(&id).map(|entry| &mut entry.mix)
    }

    /// Whether a mix has a tick due by `now`.
    pub(super) fn is_due(&self, now: Micros) -> bool {
        self.due.peek().is_some_and(|Reverse((due, _))| *due <= now)
    }

    /// When the next tick is due; `None` while all mixes are idle.
    pub(super) fn next_tick(&self) -> Option<Micros> {
        self.due.peek().map(|Reverse((due, _))| *due)
    }

    /// The number of mixes and of their seats, when either has changed.
    pub(super) fn changed_size(&mut self) -> Option<(usize, usize)> {
        let size = (self.mixes.len(), self.seats);
        (std::mem::replace(&mut self.reported, size) != size).then_some(size)
    }

    /// Totals of all mixes, including those that have ended.
    pub(super) fn counts(&self) -> MixingCounts {
        self.mixes.values().fold(self.ended, |counts, entry| counts.with(&entry.mix.figures()))
    }

    /// Takes the next tick that is due by `now`: its mix and its due time.
    fn take_due(&mut self, now: Micros) -> Option<(MixId, Micros)> {
        while let Some(Reverse((due, id))) = self.due.peek().copied().filter(|Reverse((due, _))| *due <= now)
        {
            self.due.pop();
            let Some(entry) = self.mixes.get_mut(&MixId(id)) else { continue };
            if entry.due == Some(due) {
                entry.due = None;
                return Some((MixId(id), due));
            }
        }
        None
    }

    /// Updates when the mix has its next tick, and removes a mix that is no longer used.
    fn reschedule(&mut self, id: MixId, clock: &Clock) {
        let Some(entry) = self.mixes.get_mut(&id) else { return };
        if entry.seats == 0 && !entry.recording {
            let figures = MixFigures { speakers: 0, ..entry.mix.figures() };
            self.ended = self.ended.with(&figures);
            self.mixes.remove(&id);
            return;
        }
        let mut next = entry.mix.next_tick();
        if !std::mem::replace(&mut entry.active, next.is_some()) {
            // The first tick is due immediately, so it cannot be late.
            next = next.map(|due| due.max(clock.now()));
        }
        if next != entry.due {
            entry.due = next;
            self.due.extend(next.map(|due| Reverse((due, id.0))));
        }
    }

    /// The mix with this id, created when there is none; `None` when there are too many.
    fn open(&mut self, id: MixId) -> Option<&mut Entry> {
        if self.mixes.len() >= MIXES_MAX && !self.mixes.contains_key(&id) {
            return None;
        }
        Some(self.mixes.entry(id).or_insert_with(|| Entry {
            mix: Mix::new(),
            seats: 0,
            recording: false,
            active: false,
            due: None,
        }))
    }

    /// Gives a leg a seat by which a mix only listens; its bridge continues, and its seat in another mix ends.
    pub(super) fn seat_listener(
        &mut self,
        io: &mut WorkerIo,
        legs: &mut Legs,
        id: PortId,
        mix: MixId,
        seat: Seat,
    ) {
        self.unseat(io, legs, id);
        // A party that receives transcoded audio already has reports generated here.
        let (forward, reports) =
            legs.get_mut(id).map_or((None, None), |leg| (leg.forward.take(), leg.reports.take()));
        self.seat(io, legs, id, mix, Seat { hears: Hears::Nothing, ..seat });
        if let Some(leg) = legs.get_mut(id) {
            (leg.forward, leg.reports) = (forward, reports);
            leg.listens = leg.seat.is_some();
        }
    }

    /// Gives a leg a seat; its bridge and its seat in another mix end.
    pub(super) fn seat(&mut self, io: &mut WorkerIo, legs: &mut Legs, id: PortId, mix: MixId, seat: Seat) {
        self.unseat(io, legs, id);
        let now = io.shared.clock.now();
        let Some(leg) = legs.get_mut(id) else {
            return;
        };
        leg.forward = None;
        let Some(entry) = self.open(mix) else {
            tracing::error!(port = id.port(), "too many mixes in one worker, a leg has no seat");
            return;
        };
        let reports = Reports::new(seat.seed, seat.formats.send.1.rtp_clock(), now);
        io.current = Some(At::Mix(mix));
        match entry.mix.seat(id.seat(), seat) {
            Ok(()) => {
                entry.seats += 1;
                self.seats += 1;
                leg.seat = Some(mix);
                leg.reports = Some(reports);
            }
            Err(error) => tracing::error!(%error, port = id.port(), mix = mix.0, "a leg has no seat"),
        }
        self.settle(io, legs, mix);
        io.current = Some(At::Leg(id));
    }

    /// Removes a leg's seat, if it has one.
    pub(super) fn unseat(&mut self, io: &mut WorkerIo, legs: &mut Legs, id: PortId) {
        let Some(leg) = legs.get_mut(id) else {
            return;
        };
        let Some(mix) = leg.seat else { return };
        io.current = Some(At::Mix(mix));
        if let Some(entry) = self.mixes.get_mut(&mix) {
            entry.mix.unseat(id.seat());
            entry.seats = entry.seats.saturating_sub(1);
            self.seats = self.seats.saturating_sub(1);
        }
        leg.seat = None;
        if !std::mem::take(&mut leg.listens) {
            leg.reports = None;
        }
        let talked = std::mem::take(&mut leg.talking);
        self.settle(io, legs, mix);
        io.current = Some(At::Leg(id));
        if talked {
            io.notify(Notice::Talking { id, talking: false });
        }
    }

    /// Passes a command to a leg's seat.
    pub(super) fn command_seat(
        &mut self,
        io: &mut WorkerIo,
        legs: &mut Legs,
        id: PortId,
        command: SeatCommand,
    ) {
        let Some(leg) = legs.get_mut(id) else {
            return;
        };
        let Some(mix) = leg.seat else { return };
        if let (SeatCommand::Format(formats), Some(reports)) = (&command, &mut leg.reports) {
            reports.set_clock(formats.send.1.rtp_clock());
        }
        io.current = Some(At::Mix(mix));
        if let Some(entry) = self.mixes.get_mut(&mix)
            && let Err(error) = entry.mix.command(id.seat(), command)
        {
            tracing::error!(%error, port = id.port(), mix = mix.0, "an order to a seat was not carried out");
        }
        self.settle(io, legs, mix);
        io.current = Some(At::Leg(id));
    }

    /// Passes a command to a mix; one without seats takes the command to record only.
    pub(super) fn command_mix(&mut self, io: &mut WorkerIo, legs: &mut Legs, id: MixId, command: MixCommand) {
        io.current = Some(At::Mix(id));
        match command {
            command @ (MixCommand::Record(_)
            | MixCommand::RecordChannels(_)
            | MixCommand::RecordSides { .. }) => match self.open(id) {
                Some(entry) => {
                    entry.recording = true;
                    entry.mix.mix_command(command);
                }
                None => io.notify(Notice::RecordingEnded { mix: id }),
            },
            command => {
                if let Some(entry) = self.mixes.get_mut(&id) {
                    entry.recording &= !matches!(command, MixCommand::StopRecording);
                    entry.mix.mix_command(command);
                }
            }
        }
        self.settle(io, legs, id);
        io.current = None;
    }

    /// Feeds the packets of a leg that its session accepted to a mix.
    pub(super) fn receive(
        &mut self,
        io: &mut WorkerIo,
        legs: &mut Legs,
        id: PortId,
        mix: MixId,
        picked: &Picked,
        sample: Sample,
    ) {
        io.batch.add(Count::Mixed, picked.len());
        let Some(hearing) = self.get_mut(mix) else { return };
        io.current = Some(At::Mix(mix));
        for index in picked.rtp.as_slice() {
            let Some((arrival, datagram)) = io.wire.datagram(usize::from(*index)) else { break };
            if let Ok(packet) = RtpPacket::parse(datagram) {
                hearing.receive(sample.mono(arrival.stamp_us), id.seat(), &packet);
            }
        }
        self.settle(io, legs, mix);
        io.current = None;
    }

    /// Feeds packets of a leg to a mix that listens, as received, before they are forwarded.
    pub(super) fn listen(
        &mut self,
        io: &mut WorkerIo,
        legs: &mut Legs,
        id: PortId,
        mix: MixId,
        listened: &Listened,
        sample: Sample,
    ) {
        let Some(hearing) = self.get_mut(mix) else { return };
        io.current = Some(At::Mix(mix));
        for (index, octet) in listened.rtp.as_slice().iter().zip(&listened.octets) {
            let Some((arrival, datagram)) = io.wire.datagram(usize::from(*index)) else { break };
            let Some(place) = datagram.get_mut(1) else { continue };
            let renumbered = std::mem::replace(place, *octet);
            if let Ok(packet) = RtpPacket::parse(datagram) {
                hearing.receive(sample.mono(arrival.stamp_us), id.seat(), &packet);
            }
            datagram.get_mut(1).into_iter().for_each(|place| *place = renumbered);
        }
        self.settle(io, legs, mix);
        io.current = None;
    }

    /// Runs the due ticks of all mixes and sends their packets.
    pub(super) fn tick(&mut self, io: &mut WorkerIo, legs: &mut Legs) {
        for _ in 0..TICKS_PER_TURN {
            let now = io.shared.clock.now();
            let Some((id, due)) = self.take_due(now) else { return };
            io.batch.tick(now.since(due));
            io.current = Some(At::Mix(id));
            if let Some(mix) = self.get_mut(id) {
                mix.tick(now);
                while let Some((seat, datagram)) = mix.poll_packet() {
                    if let Some(leg) = legs.get_mut(PortId::of_seat(seat)) {
                        leg.send_own(&mut io.wire, datagram, now, &mut io.batch);
                    }
                }
            }
            self.settle(io, legs, id);
            io.current = None;
        }
    }

    /// Removes a mix in which a panic happened. Returns the legs seated in it, which are to be closed.
    pub(super) fn give_up(&mut self, io: &mut WorkerIo, legs: &Legs, mix: MixId) -> Vec<PortId> {
        let entry = self.mixes.remove(&mix);
        self.seats = self.seats.saturating_sub(entry.as_ref().map_or(0, |entry| entry.seats));
        if entry.is_some_and(|entry| entry.recording) {
            io.notify(Notice::RecordingEnded { mix });
        }
        legs.iter().filter(|leg| leg.seat == Some(mix)).map(|leg| leg.id).collect()
    }

    /// Passes on the events of a mix, and schedules its next tick.
    fn settle(&mut self, io: &mut WorkerIo, legs: &mut Legs, id: MixId) {
        while let Some(event) = self.get_mut(id).and_then(Mix::poll_event) {
            match event {
                MixEvent::Digit { seat, digit } => {
                    io.notify(Notice::Digit { id: PortId::of_seat(seat), digit });
                }
                MixEvent::Played { seat, token } => {
                    io.notify(Notice::Played { id: PortId::of_seat(seat), token });
                }
                MixEvent::RecordingEnded => {
                    if let Some(entry) = self.mixes.get_mut(&id) {
                        entry.recording = false;
                    }
                    io.notify(Notice::RecordingEnded { mix: id });
                }
                MixEvent::Talking { seat, talking } => {
                    let id = PortId::of_seat(seat);
                    if let Some(leg) = legs.get_mut(id) {
                        leg.talking = talking;
                        io.notify(Notice::Talking { id, talking });
                    }
                }
            }
        }
        self.reschedule(id, &io.shared.clock);
    }
}

/// Mixes of one worker; enough for every leg of the largest port range in its own mix.
const MIXES_MAX: usize = 32_768;
/// Ticks in a row before the sockets are read again.
const TICKS_PER_TURN: usize = 64;
