//! The folder: the statistics of its share of the streams and legs, fed with batches of orders.
//!
//! A batch holds the packets of many streams in turn. Each lane, a stream or a leg, takes in its own one after the
//! other, so that its figures are fetched from memory once per batch and not once per packet; what one lane does
//! never depends on another, so the result is that of the order of time.

use super::leg::{Leg, LegReport};
use super::order::{Batch, ENDS_ONLY, Ends, NONE, Order, Signal, StreamSignal, What};
use super::stream::{Finished, Outline, Stream};

/// The streams and legs whose number, divided by the number of folders, leaves its place among them.
#[derive(Debug)]
pub(super) struct Folder {
    place: u32,
    folders: u32,
    streams: Vec<Option<Box<Stream>>>,
    legs: Vec<Option<Leg>>,
    /// Between whom every stream goes, those of other folders too.
    ends: Vec<Option<Ends>>,
    by_stream: Lanes,
    by_leg: Lanes,
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
    /// The folder in `place` of `folders`.
    pub(super) fn new(place: u32, folders: u32) -> Self {
        Folder {
            place,
            folders: folders.max(1),
            streams: Vec::new(),
            legs: Vec::new(),
            ends: Vec::new(),
            by_stream: Lanes::default(),
            by_leg: Lanes::default(),
            taken: Taken::default(),
        }
    }

    /// Takes in a batch and empties it.
    pub(super) fn fold(&mut self, batch: &mut Batch) {
        let (orders, signals) = batch.parts();
        self.sort(orders, signals);
        self.fold_legs(orders, signals);
        self.fold_streams(orders, signals);
        batch.clear();
    }

    /// Everything that was reported since the last time.
    pub(super) fn take(&mut self) -> Taken {
        std::mem::take(&mut self.taken)
    }

    /// Puts each order behind the one before it in its lanes.
    fn sort(&mut self, orders: &[Order], signals: &[Signal]) {
        self.by_leg.begin(orders.len());
        self.by_stream.begin(orders.len());
        for (place, order) in orders.iter().enumerate() {
            if let Some(number) = order.leg.number() {
                self.by_leg.append(lane(number, self.folders), place as u32);
            }
            if order.stream & ENDS_ONLY == 0 {
                self.by_stream.append(lane(order.stream, self.folders), place as u32);
            }
            if let What::Signal(signal) = order.what
                && let Some(Signal::Stream(StreamSignal::Opened { source, destination, .. })) =
                    signals.get(signal as usize)
            {
                let number = (order.stream & !ENDS_ONLY) as usize;
                if self.ends.len() <= number {
                    self.ends.resize(number + 1, None);
                }
                if let Some(ends) = self.ends.get_mut(number) {
                    *ends = Some((*source, *destination));
                }
            }
        }
    }

    fn fold_legs(&mut self, orders: &[Order], signals: &mut [Signal]) {
        let touched = std::mem::take(&mut self.by_leg.touched);
        for lane in touched.iter().copied() {
            let Some(slot) = reach(&mut self.legs, lane) else { continue };
            let mut heard = None;
            let mut order = self.by_leg.first(lane);
            // Orders are read where they lie: a copy costs more than all that is read of most of them.
            while let Some(Order { at, what, stream, leg: end }) = orders.get(order as usize) {
                order = self.by_leg.next(order);
                let leg = slot.get_or_insert_default();
                let at = *at;
                match what {
                    What::Heard(sample) => heard = Some(*sample),
                    What::Packet(packet) => {
                        let heard = heard.take();
                        let ends = self.ends.get((stream & !ENDS_ONLY) as usize).copied().flatten();
                        let Some(ends) = ends else { continue };
                        if end.is_from_caller() {
                            leg.received(at, ends, packet, heard.as_ref());
                        } else {
                            leg.sent(at, ends, packet, heard.as_ref());
                        }
                    }
                    What::Signal(signal) => {
                        let Some(Signal::Leg(signal)) = take(signals, *signal) else { continue };
                        if let Some(report) = leg.signal(at, signal) {
                            self.taken.legs.push((lane * self.folders + self.place, report));
                            *slot = None;
                        }
                    }
                }
            }
        }
        self.by_leg.touched = touched;
    }

    fn fold_streams(&mut self, orders: &[Order], signals: &mut [Signal]) {
        let touched = std::mem::take(&mut self.by_stream.touched);
        for lane in touched.iter().copied() {
            let Some(slot) = reach(&mut self.streams, lane) else { continue };
            let mut heard = None;
            let mut order = self.by_stream.first(lane);
            while let Some(Order { at, what, .. }) = orders.get(order as usize) {
                order = self.by_stream.next(order);
                let at = *at;
                match what {
                    What::Heard(sample) => heard = Some(*sample),
                    What::Packet(packet) => {
                        let heard = heard.take();
                        if let Some(stream) = slot {
                            stream.receive(at, packet, heard.as_ref());
                        }
                    }
                    What::Signal(signal) => {
                        let Some(Signal::Stream(signal)) = take(signals, *signal) else { continue };
                        match signal {
                            StreamSignal::Opened { source, payloads, .. } => {
                                *slot = Some(Box::new(Stream::new(at, source, payloads)));
                            }
                            StreamSignal::Described(payloads) => {
                                if let Some(stream) = slot {
                                    stream.describe(at, payloads);
                                }
                            }
                            StreamSignal::Rtcp { about, datagram } => {
                                if let Some(stream) = slot {
                                    stream.rtcp(at, about, &datagram);
                                }
                            }
                            StreamSignal::Concluded { announced } => {
                                let outline = slot.as_mut().and_then(|stream| stream.conclude(announced));
                                if outline.is_none() {
                                    *slot = None;
                                }
                                let number = lane * self.folders + self.place;
                                self.taken.outlines.push((number, outline));
                            }
                            StreamSignal::Taken { announced, ptime_ms } => {
                                let finished =
                                    slot.take().and_then(|stream| stream.finish(announced, ptime_ms));
                                let number = lane * self.folders + self.place;
                                self.taken.streams.push((number, finished));
                            }
                        }
                    }
                }
            }
        }
        self.by_stream.touched = touched;
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
    let place = lane as usize;
    if slots.len() <= place {
        slots.resize_with(place + 1, || None);
    }
    slots.get_mut(place)
}

fn take(signals: &mut [Signal], place: u32) -> Option<Signal> {
    signals.get_mut(place as usize).map(|signal| std::mem::replace(signal, Signal::Done))
}

/// The orders of a batch by lane, each lane in order of time.
#[derive(Debug, Default)]
struct Lanes {
    /// First and last order of each lane; [`NONE`] for those that have none.
    spans: Vec<(u32, u32)>,
    /// The order behind each order in its lane.
    next: Vec<u32>,
    /// The lanes that have orders.
    touched: Vec<u32>,
}

impl Lanes {
    /// Forgets the last batch and makes room for `len` orders.
    fn begin(&mut self, len: usize) {
        for lane in self.touched.drain(..) {
            if let Some(span) = self.spans.get_mut(lane as usize) {
                *span = (NONE, NONE);
            }
        }
        self.next.clear();
        self.next.resize(len, NONE);
    }

    /// Puts the order in `place` behind all others of its lane.
    #[inline]
    fn append(&mut self, lane: u32, place: u32) {
        if self.spans.len() <= lane as usize {
            self.spans.resize(lane as usize + 1, (NONE, NONE));
        }
        let Some((first, last)) = self.spans.get_mut(lane as usize) else { return };
        if *first == NONE {
            *first = place;
            self.touched.push(lane);
        } else if let Some(next) = self.next.get_mut(*last as usize) {
            *next = place;
        }
        *last = place;
    }

    fn first(&self, lane: u32) -> u32 {
        self.spans.get(lane as usize).map_or(NONE, |(first, _)| *first)
    }

    #[inline]
    fn next(&self, order: u32) -> u32 {
        self.next.get(order as usize).copied().unwrap_or(NONE)
    }
}
