//! Which encoding a seat is sent: one that it shares with all who hear the same, or one of its own.
//!
//! A seat has an encoding of its own while it hears what nobody else hears: while it is heard itself, so that it does
//! not hear itself, and while clips play for it alone. Such an encoding begins as a copy of the shared one, encoder and
//! waiting PCM and all: the party's decoder goes on with the encoder that it knows. It ends between two packets, and
//! for codecs with memory (G.722, Opus) only after 200 ms in which both encoded the same, when their states have grown
//! alike. A seat that comes to hear something else altogether (music, then the room) has an encoding of its own for
//! that time too, in which the one sound fades and the other rises.

use super::ramp;
use super::rate::FRAME_MAX;
use super::stream::{Coding, Source, Stream};
use super::words::SeatError;

/// What a seat is to be sent in this tick.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Want {
    /// No packet.
    Nothing,
    /// What nobody else hears, made from this.
    Own(Source),
    /// What everybody hears who hears this.
    Shared(Source),
}

/// The encoding that a seat is sent.
#[derive(Debug)]
pub(super) enum Line {
    /// No packet.
    Idle,
    /// One of its own.
    Own(Box<Own>),
    /// One of the mix's shared ones.
    Shared(usize),
}

/// An encoding that one seat alone is sent.
#[derive(Debug)]
pub(super) struct Own {
    pub(super) stream: Stream,
    pub(super) source: Source,
    /// The last 5 ms that were sent.
    last: [i16; FRAME_MAX / 4],
    /// Whether the last 5 ms are still to fade.
    fades: bool,
    /// For how many ticks it was the same as the shared one.
    settled: u8,
}

impl Own {
    /// Begins with nothing before it.
    ///
    /// # Errors
    /// When the codec refuses its parameters.
    pub(super) fn new(coding: Coding, phase: u64, source: Source) -> Result<Box<Own>, SeatError> {
        let stream = Stream::new(coding, phase)?;
        Ok(Box::new(Own { stream, source, last: [0; FRAME_MAX / 4], fades: true, settled: 0 }))
    }

    /// Goes on from a shared encoding, in which `heard` was heard last.
    ///
    /// # Errors
    /// When the codec refuses its parameters.
    pub(super) fn branch(shared: &Stream, source: Source, heard: &[i16]) -> Result<Box<Own>, SeatError> {
        let stream = shared.branch()?;
        let mut own = Own { stream, source, last: [0; FRAME_MAX / 4], fades: false, settled: 0 };
        own.keep(heard);
        Ok(Box::new(own))
    }

    /// Hears something else from now on.
    pub(super) fn turn_to(&mut self, source: Source) {
        if self.source != source {
            self.source = source;
            self.cut();
        }
    }

    /// Lets what was heard fade, as when a clip was stopped.
    pub(super) fn cut(&mut self) {
        (self.fades, self.settled) = (true, 0);
    }

    /// Whether the seat may go back to the shared encoding with this tick.
    pub(super) fn is_settled(&self) -> bool {
        let needed = if self.stream.coding().has_memory() { SETTLED_TICKS } else { 1 };
        self.settled >= needed && self.stream.is_between_packets()
    }

    /// Encodes a tick; `alike` when the shared encoding has the same. How many packets it filled.
    pub(super) fn feed(&mut self, pcm: &mut [i16], alike: bool) -> usize {
        let ramp = self.stream.coding().rate.ramp();
        self.settled = if alike && !self.fades { self.settled.saturating_add(1) } else { 0 };
        if std::mem::take(&mut self.fades) {
            let last = self.last;
            ramp::cross(last.get(..ramp).unwrap_or_default(), pcm, ramp);
        }
        self.keep(pcm);
        self.stream.feed(pcm)
    }

    fn keep(&mut self, pcm: &[i16]) {
        let ramp = self.stream.coding().rate.ramp();
        let tail = pcm.get(pcm.len().saturating_sub(ramp)..).unwrap_or_default();
        self.last.iter_mut().zip(tail).for_each(|(kept, sample)| *kept = *sample);
    }
}

/// 200 ms.
const SETTLED_TICKS: u8 = 10;
