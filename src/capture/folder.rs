//! The folder: the statistics of its share of the streams and legs.
//!
//! What happens to one stream or leg never depends on another, so the result is the same however they are shared.

use sidetone_media::rtp::Packet;
use sidetone_media::session::AudioSample;
use sidetone_media::time::Micros;

use super::leg::{Leg, LegReport};
use super::order::{Batch, ENDS_ONLY, Ends, LegEnd, LegSignal, Order, Signal, StreamSignal, What};
use super::stream::{Finished, Outline, Stream};

/// The streams and legs whose number, divided by the number of folders, leaves its place among them.
#[derive(Debug)]
pub(super) struct Folder {
    folders: u32,
    streams: Vec<Option<Stream>>,
    legs: Vec<Option<Leg>>,
    /// Between whom every stream goes, those of other folders too; for orders, which have no room for it.
    ends: Vec<Option<Ends>>,
    taken: Taken,
}

/// What was reported and forgotten, in the order of the requests.
#[derive(Debug, Default)]
pub(super) struct Taken {
    /// Streams that are over; `None` for what turned out to be none.
    pub(super) outlines: Vec<(u32, Option<Outline>)>,
    pub(super) streams: Vec<(u32, Option<Finished>)>,
    pub(super) legs: Vec<(u32, LegReport)>,
}

impl Folder {
    /// One of so many folders.
    pub(super) fn new(folders: u32) -> Self {
        Folder {
            folders: folders.max(1),
            streams: Vec::new(),
            legs: Vec::new(),
            ends: Vec::new(),
            taken: Taken::default(),
        }
    }

    /// Carries out a batch and empties it.
    pub(super) fn fold(&mut self, batch: &mut Batch) {
        let (orders, signals) = batch.parts();
        let mut heard = None;
        // Orders are read where they lie: a copy costs more than all that is read of most of them.
        for Order { at, what, stream, leg } in orders {
            match what {
                What::Heard(sample) => heard = Some(*sample),
                What::Packet(packet) => {
                    let heard = heard.take();
                    let ends = self.ends.get((stream & !ENDS_ONLY) as usize).copied().flatten();
                    if let Some(ends) = ends {
                        self.packet(*at, packet, ends, heard.as_ref(), *stream, *leg);
                    }
                }
                What::Signal(signal) => match take(signals, *signal) {
                    Some(Signal::Leg(signal)) => self.leg(*at, *leg, signal),
                    Some(Signal::Stream(signal)) => {
                        self.learn_ends(*stream, &signal);
                        if stream & ENDS_ONLY == 0 {
                            self.stream(*at, *stream, signal);
                        }
                    }
                    Some(Signal::Done) | None => {}
                },
            }
        }
        batch.clear();
    }

    /// Everything that was reported since the last time.
    pub(super) fn take(&mut self) -> Taken {
        std::mem::take(&mut self.taken)
    }

    /// Between whom the packets of a stream go, of which its orders do not speak.
    fn learn_ends(&mut self, stream: u32, signal: &StreamSignal) {
        if let StreamSignal::Opened { source, destination, .. } = signal
            && let Some(ends) = reach(&mut self.ends, stream & !ENDS_ONLY)
        {
            *ends = Some((*source, *destination));
        }
    }

    /// A packet of a stream that has begun, between those `ends`, and what was heard in it.
    ///
    /// `stream` has [`ENDS_ONLY`] set when another folder folds it.
    #[inline(always)]
    pub(super) fn packet(
        &mut self,
        at: Micros,
        packet: &Packet,
        ends: Ends,
        heard: Option<&AudioSample>,
        stream: u32,
        leg: LegEnd,
    ) {
        if let Some(number) = leg.number() {
            let lane = lane(number, self.folders) as usize;
            match self.legs.get_mut(lane) {
                Some(Some(known)) if leg.is_from_caller() => known.received(at, ends, packet, heard),
                Some(Some(known)) => known.sent(at, ends, packet, heard),
                _ => self.leg(at, leg, LegSignal::packet(leg, ends, *packet, heard.copied())),
            }
        }
        if stream & ENDS_ONLY == 0
            && let Some(Some(stream)) = self.streams.get_mut(lane(stream, self.folders) as usize)
        {
            stream.receive(at, packet, heard);
        }
    }

    /// Something that concerns a leg.
    pub(super) fn leg(&mut self, at: Micros, leg: LegEnd, signal: LegSignal) {
        let Some(number) = leg.number() else { return };
        let Some(slot) = reach(&mut self.legs, lane(number, self.folders)) else { return };
        if let Some(report) = slot.get_or_insert_default().signal(at, signal) {
            self.taken.legs.push((number, report));
            *slot = None;
        }
    }

    /// Something that concerns a stream.
    pub(super) fn stream(&mut self, at: Micros, number: u32, signal: StreamSignal) {
        let Some(slot) = reach(&mut self.streams, lane(number, self.folders)) else { return };
        match (signal, slot.as_mut()) {
            (StreamSignal::Opened { source, payloads, .. }, _) => {
                *slot = Some(Stream::new(at, source, payloads));
            }
            (StreamSignal::Described(payloads), Some(stream)) => stream.describe(at, payloads),
            (StreamSignal::Rtcp { about, datagram }, Some(stream)) => stream.rtcp(at, about, &datagram),
            (StreamSignal::Concluded { announced }, stream) => {
                let outline = stream.and_then(|stream| stream.conclude(announced));
                if outline.is_none() {
                    *slot = None;
                }
                self.taken.outlines.push((number, outline));
            }
            (StreamSignal::Taken { announced, ptime_ms }, _) => {
                let finished = slot.take().and_then(|stream| stream.finish(announced, ptime_ms));
                self.taken.streams.push((number, finished));
            }
            (StreamSignal::Described(_) | StreamSignal::Rtcp { .. }, None) => {}
        }
    }
}

/// The lane of a stream or a leg among those of one folder.
#[inline]
fn lane(number: u32, folders: u32) -> u32 {
    // One folder is the rule, and a division costs as much as all the rest of finding the lane.
    if folders == 1 { number } else { number / folders }
}

/// The slot of a lane, made where there is none yet.
fn reach<T>(slots: &mut Vec<Option<T>>, lane: u32) -> Option<&mut Option<T>> {
    let lane = lane as usize;
    if slots.len() <= lane {
        slots.resize_with(lane + 1, || None);
    }
    slots.get_mut(lane)
}

fn take(signals: &mut [Signal], place: u32) -> Option<Signal> {
    signals.get_mut(place as usize).map(|signal| std::mem::replace(signal, Signal::Done))
}
