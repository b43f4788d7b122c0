//! The transcoded bridges of one worker: when each has its next tick, and the exchange with its legs.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::clock::Sample;
use super::counters::Count;
use super::leg::{Leg, Picked};
use super::message::PortId;
use super::reports::Reports;
use super::worker::{At, Worker, find, place};
use crate::rtp::RtpPacket;
use crate::time::Micros;
use crate::transcode::{TranscodePlan, Transcoder};

/// Future ticks, earliest first, by the leg whose packets are transcoded.
#[derive(Default)]
pub(super) struct Transcodings {
    due: BinaryHeap<Reverse<(Micros, PortId)>>,
}

/// The transcoder of one leg's packets, and when its next tick is due.
pub(super) struct Transcoding {
    transcoder: Transcoder,
    due: Option<Micros>,
}

impl Transcoding {
    /// Whether there was audio to transcode within the last second.
    pub(super) fn is_active(&self) -> bool {
        self.due.is_some()
    }
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

    fn take_due(&mut self, now: Micros) -> Option<(Micros, PortId)> {
        let Reverse(first) = self.due.peek().copied().filter(|Reverse((due, _))| *due <= now)?;
        self.due.pop();
        Some(first)
    }

    fn settle(&mut self, id: PortId, transcoding: &mut Transcoding) {
        let next = transcoding.transcoder.next_tick();
        if next != transcoding.due {
            transcoding.due = next;
            self.due.extend(next.map(|due| Reverse((due, id))));
        }
    }
}

impl Worker {
    /// Sets or ends the transcoding of a leg's packets for its peer; one with the same plan continues.
    pub(super) fn transcode_by(&mut self, id: PortId, plan: Option<TranscodePlan>, seed: u64) {
        let Some(forward) = self.leg(id).and_then(|leg| leg.forward.as_mut()) else { return };
        let peer = forward.peer;
        let before = forward.transcoding.as_ref().map(|transcoding| transcoding.transcoder.plan());
        if before == plan.as_ref() {
            return;
        }
        let reports = plan.as_ref().map(|plan| plan.send.1.rtp_clock());
        forward.transcoding = plan.and_then(|plan| match Transcoder::new(plan, seed) {
            Ok(transcoder) => Some(Box::new(Transcoding { transcoder, due: None })),
            Err(error) => {
                tracing::error!(%error, port = id.port(), "a leg cannot be transcoded");
                None
            }
        });
        // The peer's party now receives our own stream with our reports, or again a relayed stream with
        // relayed reports.
        let now = self.shared.clock.now();
        if let Some(leg) = self.leg(peer).filter(|leg| leg.seat.is_none()) {
            leg.reports = reports.map(|clock| Reports::new(seed, clock, now));
        }
    }

    /// Feeds the transcoder with the leg's packets that the peer's party does not understand.
    pub(super) fn transcode(&mut self, id: PortId, picked: &Picked, sample: Sample) {
        let Some((peer, mut transcoding)) = self.take_transcoding(id) else { return };
        for index in picked.transcoded.as_slice() {
            let Some((arrival, datagram)) = self.wire.datagram(usize::from(*index)) else { break };
            if let Ok(packet) = RtpPacket::parse(datagram) {
                transcoding.transcoder.receive(sample.mono(arrival.stamp_us), &packet);
            }
            self.batch.add(Count::Mixed, 1);
            self.send_transcoded(peer, &mut transcoding, sample.now);
        }
        self.put_back(id, transcoding);
    }

    /// Runs the due ticks of all transcodings and sends their packets.
    pub(super) fn tick_transcodings(&mut self) {
        for _ in 0..TICKS_PER_TURN {
            let now = self.shared.clock.now();
            let Some((due, id)) = self.transcodings.take_due(now) else { return };
            let Some((peer, mut transcoding)) = self.take_transcoding(id) else { continue };
            // An entry whose time differs from its transcoder's is obsolete.
            if transcoding.due == Some(due) {
                self.current = Some(At::Leg(id));
                transcoding.due = None;
                transcoding.transcoder.tick(now);
                self.send_transcoded(peer, &mut transcoding, now);
                self.current = None;
            }
            self.put_back(id, transcoding);
        }
    }

    /// Plays the party of a leg a beep: in the audio transcoded for it, or in the audio that is sent to it
    /// anyway.
    pub(super) fn beep(&mut self, id: PortId) {
        let peer = self.leg(id).and_then(|leg| leg.forward.as_ref()).map(|forward| forward.peer);
        let towards = peer.and_then(|peer| self.leg(peer)).and_then(|leg| leg.forward.as_mut());
        let towards = towards.filter(|forward| forward.peer == id);
        match towards.and_then(|forward| forward.transcoding.as_mut()) {
            Some(transcoding) => transcoding.transcoder.beep(),
            None => self.leg(id).into_iter().for_each(Leg::begin_beep),
        }
    }

    fn send_transcoded(&mut self, peer: PortId, transcoding: &mut Transcoding, now: Micros) {
        while let Some(datagram) = transcoding.transcoder.poll_packet() {
            let Worker { legs, wire, batch, shared, .. } = self;
            let leg = place(shared, peer).and_then(|place| find(legs, place, peer));
            // A leg that has joined a mix meanwhile hears only the mix.
            match leg.filter(|leg| leg.seat.is_none()) {
                Some(leg) => leg.send_own(wire, datagram, now, batch),
                None => batch.add(Count::Held, 1),
            }
        }
    }

    /// Takes a leg's transcoding out so that its peer can be borrowed; see [`Worker::put_back`].
    fn take_transcoding(&mut self, id: PortId) -> Option<(PortId, Box<Transcoding>)> {
        let forward = self.leg(id)?.forward.as_mut()?;
        forward.transcoding.take().map(|transcoding| (forward.peer, transcoding))
    }

    fn put_back(&mut self, id: PortId, mut transcoding: Box<Transcoding>) {
        self.transcodings.settle(id, &mut transcoding);
        if let Some(forward) = self.leg(id).and_then(|leg| leg.forward.as_mut()) {
            forward.transcoding = Some(transcoding);
        }
    }

    fn leg(&mut self, id: PortId) -> Option<&mut Leg> {
        place(&self.shared, id).and_then(|place| find(&mut self.legs, place, id))
    }
}

/// Ticks in a row before the sockets are read again.
const TICKS_PER_TURN: usize = 64;
