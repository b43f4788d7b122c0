//! The folder: the statistics of all streams and legs.
//!
//! Most packets are the next of their stream, as it was due, and concern the leg of its call as well. Such a packet is
//! only noted, in the run of its stream's session; the leg takes in the whole run when it is folded. Before anything
//! else happens to the leg the runs that wait for it are, so that it takes in everything in order.

use std::sync::Arc;

use sidetone_media::rtp::{Header, Packet};
use sidetone_media::session::{AudioSample, SessionConfig};
use sidetone_media::time::Micros;

use super::leg::Leg;
use super::signal::{Ends, LegEnd, LegSignal, StreamSignal};
use super::stream::{Outline, Stream};

/// The streams and legs by their numbers.
#[derive(Debug, Default)]
pub(super) struct Folder {
    streams: Vec<Option<Stream>>,
    legs: Vec<Option<Leg>>,
    /// How legs are judged, where it is by thresholds of their own.
    pub(super) config: Option<Arc<SessionConfig>>,
}

impl Folder {
    /// A packet of a stream that comes between the same ends and for the same leg as the one before it, if it is the one
    /// that is due; false, and nothing has changed, if it is another.
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

    /// A packet of a stream that has begun, between those `ends`, and what was heard in it.
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

    /// Something that concerns a leg.
    pub(super) fn leg(&mut self, at: Micros, leg: LegEnd, signal: LegSignal) {
        let Some(number) = leg.number() else { return };
        self.settle_leg(number);
        if let Some(known) = self.leg_mut(leg) {
            known.signal(at, signal);
        }
    }

    /// Something that concerns a stream.
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

    /// Ends a stream that no call announced, before it is taken; `None`, and it is forgotten, when it turns out to be
    /// none.
    pub(super) fn conclude(&mut self, number: u32, announced: bool) -> Option<Outline> {
        self.settle(number);
        let slot = self.streams.get_mut(number as usize)?;
        let outline = slot.as_mut()?.conclude(announced);
        if outline.is_none() {
            *slot = None;
        }
        outline
    }

    /// Takes a stream out.
    pub(super) fn take_stream(&mut self, number: u32) -> Option<Stream> {
        self.settle(number);
        self.streams.get_mut(number as usize)?.take()
    }

    /// Takes the leg of a call out; one of which nothing was told when there is none.
    pub(super) fn take_leg(&mut self, number: u32) -> Leg {
        self.settle_leg(number);
        let leg = self.legs.get_mut(number as usize).and_then(Option::take);
        let leg = leg.unwrap_or_else(|| Leg::new(self.config.clone()));
        for stream in leg.feeds.into_iter().flatten() {
            self.detach(stream, number);
        }
        leg
    }

    /// Folds the runs that a leg takes in.
    fn settle_leg(&mut self, number: u32) {
        let Some(Some(leg)) = self.legs.get(number as usize) else { return };
        for stream in leg.feeds.into_iter().flatten() {
            self.settle(stream);
        }
    }

    /// Folds the run of a stream, into its leg too.
    fn settle(&mut self, number: u32) {
        let Some(Some(stream)) = self.streams.get_mut(number as usize) else { return };
        if stream.run().is_empty() {
            return;
        }
        let leg = stream.leg;
        if let Some(Some(known)) = leg.number().and_then(|number| self.legs.get_mut(number as usize)) {
            known.run(leg, stream.ends(), stream.run());
        }
        stream.go_on();
    }

    /// From now on the runs of a stream are those of a direction of that leg, or of none, and no other stream's are.
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

    /// The leg of a call that is gone is fed no more; another call may get its number.
    fn detach(&mut self, stream: u32, call: u32) {
        if let Some(Some(stream)) = self.streams.get_mut(stream as usize)
            && stream.leg.number() == Some(call)
        {
            stream.leg = LegEnd::NOBODY;
        }
    }

    /// A leg, which begins where it has not.
    fn leg_mut(&mut self, leg: LegEnd) -> Option<&mut Leg> {
        let slot = reach(&mut self.legs, leg.number()?)?;
        Some(slot.get_or_insert_with(|| Leg::new(self.config.clone())))
    }
}

/// The slot of a number, made where there is none yet.
fn reach<T>(slots: &mut Vec<Option<T>>, number: u32) -> Option<&mut Option<T>> {
    let place = number as usize;
    if slots.len() <= place {
        slots.resize_with(place + 1, || None);
    }
    slots.get_mut(place)
}

#[cfg(test)]
#[path = "folder_tests.rs"]
mod tests;
