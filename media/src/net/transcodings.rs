//! The transcoded bridges of one worker: when each has its next tick, and the exchange with its legs.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::clock::Sample;
use super::counters::Count;
use super::leg::{Leg, Picked};
use super::legs::Legs;
use super::message::PortId;
use super::reports::Reports;
use super::transcoding::Transcoding;
use super::worker_io::{At, WorkerIo};
use crate::rtp::RtpPacket;
use crate::time::Micros;
use crate::transcode::TranscodePlan;

/// Future ticks, earliest first, by the leg whose packets are transcoded.
#[derive(Default)]
pub(super) struct Transcodings {
    due: BinaryHeap<Reverse<(Micros, PortId)>>,
}

impl Transcodings {
    /// Whether a tick is due by `now`.
    pub(super) fn is_due(&self, now: Micros) -> bool {
        self.next_tick().is_some_and(|due| due <= now)
    }

    /// When the next tick is due; `None` while there is nothing to transcode.
    pub(super) fn next_tick(&self) -> Option<Micros> {
        self.due.peek().map(|Reverse((due, _))| *due)
    }

    /// Feeds the transcoder with the leg's packets that the peer's party does not understand.
    pub(super) fn receive(
        &mut self,
        io: &mut WorkerIo,
        legs: &mut Legs,
        id: PortId,
        picked: &Picked,
        sample: Sample,
    ) {
        let Some((peer, mut transcoding)) = take(legs, id) else { return };
        for index in picked.transcoded.as_slice() {
            let Some((arrival, datagram)) = io.wire.datagram(usize::from(*index)) else { break };
            if let Ok(packet) = RtpPacket::parse(datagram) {
                transcoding.receive(sample.mono(arrival.stamp_us), &packet);
            }
            io.batch.add(Count::Mixed, 1);
            send(io, legs, peer, &mut transcoding, sample.now);
        }
        self.put_back(legs, id, transcoding);
    }

    /// Runs the due ticks of all transcodings and sends their packets.
    pub(super) fn tick(&mut self, io: &mut WorkerIo, legs: &mut Legs) {
        for _ in 0..TICKS_PER_TURN {
            let now = io.shared.clock.now();
            let Some((due, id)) = self.take_due(now) else { return };
            let Some((peer, mut transcoding)) = take(legs, id) else { continue };
            io.current = Some(At::Leg(id));
            if transcoding.tick(due, now) {
                send(io, legs, peer, &mut transcoding, now);
            }
            io.current = None;
            self.put_back(legs, id, transcoding);
        }
    }

    fn take_due(&mut self, now: Micros) -> Option<(Micros, PortId)> {
        let Reverse(first) = self.due.peek().copied().filter(|Reverse((due, _))| *due <= now)?;
        self.due.pop();
        Some(first)
    }

    /// Puts back a transcoding that [`take`] removed.
    fn put_back(&mut self, legs: &mut Legs, id: PortId, mut transcoding: Box<Transcoding>) {
        self.due.extend(transcoding.changed_due().map(|due| Reverse((due, id))));
        if let Some(forward) = legs.get_mut(id).and_then(|leg| leg.forward.as_mut()) {
            forward.transcoding = Some(transcoding);
        }
    }
}

/// Sets or ends the transcoding of a leg's packets for its peer; one with the same plan continues.
pub(super) fn transcode_by(
    io: &WorkerIo,
    legs: &mut Legs,
    id: PortId,
    plan: Option<TranscodePlan>,
    seed: u64,
) {
    let Some(forward) = legs.get_mut(id).and_then(|leg| leg.forward.as_mut()) else { return };
    let peer = forward.peer;
    if forward.transcoding.as_ref().map(|transcoding| transcoding.plan()) == plan.as_ref() {
        return;
    }
    let reports = plan.as_ref().map(|plan| plan.send.1.rtp_clock());
    forward.transcoding = plan.and_then(|plan| match Transcoding::new(plan, seed) {
        Ok(transcoding) => Some(Box::new(transcoding)),
        Err(error) => {
            tracing::error!(%error, port = id.port(), "a leg cannot be transcoded");
            None
        }
    });
    // The peer's party now receives our own stream with our reports, or again a relayed stream with relayed reports.
    let now = io.shared.clock.now();
    if let Some(leg) = legs.get_mut(peer).filter(|leg| leg.is_relayed()) {
        leg.reports = reports.map(|clock| Reports::new(seed, clock, now));
    }
}

/// Plays the party of a leg a beep: in the audio transcoded for it, or in the audio that is sent to it in any case.
pub(super) fn beep(legs: &mut Legs, id: PortId) {
    let peer = legs.get_mut(id).and_then(|leg| leg.forward.as_ref()).map(|forward| forward.peer);
    let towards = peer.and_then(|peer| legs.get_mut(peer)).and_then(|leg| leg.forward.as_mut());
    let towards = towards.filter(|forward| forward.peer == id);
    match towards.and_then(|forward| forward.transcoding.as_mut()) {
        Some(transcoding) => transcoding.beep(),
        None => legs.get_mut(id).into_iter().for_each(Leg::begin_beep),
    }
}

/// Removes a leg's transcoding, so that its peer can be borrowed; see [`Transcodings::put_back`].
fn take(legs: &mut Legs, id: PortId) -> Option<(PortId, Box<Transcoding>)> {
    let forward = legs.get_mut(id)?.forward.as_mut()?;
    forward.transcoding.take().map(|transcoding| (forward.peer, transcoding))
}

/// Sends the output of a transcoding to the party of `peer`.
fn send(io: &mut WorkerIo, legs: &mut Legs, peer: PortId, transcoding: &mut Transcoding, now: Micros) {
    while let Some(datagram) = transcoding.poll_packet() {
        // A leg that has joined a mix meanwhile hears only the mix.
        match legs.get_mut(peer).filter(|leg| leg.is_relayed()) {
            Some(leg) => leg.send_own(&mut io.wire, datagram, now, &mut io.batch),
            None => io.batch.add(Count::Held, 1),
        }
    }
}

/// Ticks in a row before the sockets are read again.
const TICKS_PER_TURN: usize = 64;
