//! The accumulator keeps the statistics of all streams and legs.
//!
//! Most packets are the next packet of their stream, on time, and concern the leg of its call as well. Such a
//! packet is only noted in the run of its stream's session; the leg processes the whole run later. Before any
//! other event of the leg the waiting runs are processed, so that the leg sees everything in order.

use std::sync::Arc;

use sidetone_media::rtp::{Header, Packet};
use sidetone_media::session::{AudioSample, SessionConfig};
use sidetone_media::time::Micros;

use super::leg::Leg;
use super::signal::{Ends, LegEnd, LegSignal, StreamSignal};
use super::stream::{AdvertisedPtime, Outline, Stream};

/// The streams and legs by their numbers.
#[derive(Debug, Default)]
pub(super) struct Accumulator {
    streams: Vec<Option<Stream>>,
    legs: Vec<Option<Leg>>,
    /// How legs are judged, when the thresholds differ from the defaults.
    pub(super) config: Option<Arc<SessionConfig>>,
}

impl Accumulator {
    /// Notes a packet between the same ends and for the same leg as the one before it, if it is the next one
    /// of its stream. Otherwise returns false and changes nothing.
    #[inline(always)]
    pub(super) fn continues(&mut self, at: Micros, header: Header, payload_len: usize, number: u32) -> bool {
        let Some(Some(stream)) = self.streams.get_mut(number as usize) else { return false };
        if !stream.take_next(at, header, payload_len) {
            return false;
        }
        if stream.is_full() {
            self.settle(number);
        }
        true
    }

    /// Takes a packet of a known stream between those `ends`, and its audio sample.
    pub(super) fn packet(
        &mut self,
        at: Micros,
        packet: &Packet,
        ends: Ends,
        heard: Option<&AudioSample>,
        number: u32,
        leg: LegEnd,
    ) {
        self.settle(number);
        self.feed(number, leg);
        if let Some(known) = self.leg_mut(leg) {
            known.packet(at, leg, ends, packet, heard);
        }
        if let Some(Some(stream)) = self.streams.get_mut(number as usize) {
            stream.receive(at, packet, heard);
        }
    }

    /// Takes an event of a leg.
    pub(super) fn leg(&mut self, at: Micros, leg: LegEnd, signal: LegSignal) {
        let Some(number) = leg.number() else { return };
        self.settle_leg(number);
        if let Some(known) = self.leg_mut(leg) {
            known.signal(at, signal);
        }
    }

    /// Takes an event of a stream.
    pub(super) fn stream(&mut self, at: Micros, number: u32, signal: StreamSignal) {
        self.settle(number);
        let Some(slot) = reach(&mut self.streams, number) else { return };
        match (signal, slot.as_mut()) {
            (StreamSignal::Opened { ends, payloads }, _) => {
                *slot = Some(Stream::new(at, ends, payloads));
            }
            (StreamSignal::Described(payloads), Some(stream)) => stream.describe(at, payloads),
            (StreamSignal::Rtcp { about, datagram }, Some(stream)) => stream.rtcp(at, about, &datagram),
            (StreamSignal::Described(_) | StreamSignal::Rtcp { .. }, None) => {}
        }
    }

    /// Ends a stream that no call announced, before it is removed. Returns `None`, and removes it, when it is
    /// not a stream.
    pub(super) fn conclude(
        &mut self,
        number: u32,
        announced: bool,
        ptime_ms: AdvertisedPtime,
    ) -> Option<Outline> {
        self.settle(number);
        let slot = self.streams.get_mut(number as usize)?;
        let outline = slot.as_mut()?.conclude(announced, ptime_ms);
        if outline.is_none() {
            *slot = None;
        }
        outline
    }

    /// Whether the packets of a stream that no call announced are enough to be one.
    pub(super) fn is_confirmed(&mut self, number: u32) -> bool {
        self.settle(number);
        self.streams.get(number as usize).and_then(Option::as_ref).is_some_and(Stream::is_confirmed)
    }

    /// Removes a stream and returns it.
    pub(super) fn take_stream(&mut self, number: u32) -> Option<Stream> {
        self.settle(number);
        self.streams.get_mut(number as usize)?.take()
    }

    /// Removes the leg of a call and returns it; a new leg when there is none.
    pub(super) fn take_leg(&mut self, number: u32) -> Leg {
        self.settle_leg(number);
        let leg = self.legs.get_mut(number as usize).and_then(Option::take);
        let leg = leg.unwrap_or_else(|| Leg::new(self.config.clone()));
        for stream in leg.feeds.into_iter().flatten() {
            self.detach(stream, number);
        }
        leg
    }

    /// Processes the runs that wait for a leg.
    fn settle_leg(&mut self, number: u32) {
        let Some(Some(leg)) = self.legs.get(number as usize) else { return };
        for stream in leg.feeds.into_iter().flatten() {
            self.settle(stream);
        }
    }

    /// Processes the run of a stream, for its leg too.
    fn settle(&mut self, number: u32) {
        let Some(Some(stream)) = self.streams.get_mut(number as usize) else { return };
        if stream.run().is_empty() {
            return;
        }
        let leg = stream.leg;
        match leg.number().and_then(|number| self.legs.get_mut(number as usize)) {
            Some(Some(known)) => known.run(leg, stream),
            _ => stream.go_on(),
        }
    }

    /// From now on the runs of this stream, and of no other, count for one direction of that leg; or for no
    /// leg.
    fn feed(&mut self, number: u32, leg: LegEnd) {
        if let Some(Some(stream)) = self.streams.get_mut(number as usize) {
            stream.leg = leg;
        }
        let Some(known) = self.leg_mut(leg) else { return };
        let feeds = known.feeds;
        if let Some(slot) = known.feeds.get_mut(usize::from(leg.is_from_caller())) {
            *slot = Some(number);
        }
        for (from_caller, other) in feeds.into_iter().enumerate() {
            let Some(other) = other.filter(|other| *other != number) else { continue };
            self.settle(other);
            if from_caller == usize::from(leg.is_from_caller())
                && let Some(Some(stream)) = self.streams.get_mut(other as usize)
            {
                stream.expect_nothing();
            }
        }
    }

    /// The leg of a removed call gets no more runs; another call may reuse its number.
    fn detach(&mut self, stream: u32, call: u32) {
        if let Some(Some(stream)) = self.streams.get_mut(stream as usize)
            && stream.leg.number() == Some(call)
        {
            stream.leg = LegEnd::NONE;
        }
    }

    /// Returns a leg, which is created if it does not exist.
    fn leg_mut(&mut self, leg: LegEnd) -> Option<&mut Leg> {
        let slot = reach(&mut self.legs, leg.number()?)?;
        Some(slot.get_or_insert_with(|| Leg::new(self.config.clone())))
    }
}

/// Returns the slot of a number, which is created if it does not exist.
fn reach<T>(slots: &mut Vec<Option<T>>, number: u32) -> Option<&mut Option<T>> {
    let place = number as usize;
    if slots.len() <= place {
        slots.resize_with(place + 1, || None);
    }
    slots.get_mut(place)
}

#[cfg(test)]
#[path = "accumulator_tests.rs"]
mod tests;
