//! Selects the encoding that a seat is sent: one shared by all seats with the same audio, or its own.
//!
//! A seat has its own encoding while its audio differs from that of all others: while it is heard itself (it
//! must not hear itself), and while clips play for this seat only. Its own encoding starts as a copy of the
//! shared one, with encoder state and waiting PCM, so that the party's decoder continues without a break. It
//! ends between two packets. For codecs with memory (G.722, Opus) it ends only after 200 ms in which both
//! encoded the same samples, because their states have converged by then. A seat whose source changes
//! completely (music, then the room) also has its own encoding for that time; in it the old sound fades out
//! and the new one fades in.

use super::ramp;
use super::rate::FRAME_MAX;
use super::stream::{Coding, Source, Stream};
use super::words::SeatError;

/// The audio that a seat is sent in this tick.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Want {
    /// No packet.
    Nothing,
    /// Audio that no other seat hears, made from this source.
    Own(Source),
    /// The audio of all listeners of this source.
    Shared(Source),
}

/// The encoding that is sent to a seat.
#[derive(Debug)]
pub(super) enum Line {
    /// No packet.
    Idle,
    /// The seat's own encoding.
    Own(Box<Own>),
    /// One of the mix's shared encodings.
    Shared(usize),
}

/// An encoding that is sent to one seat only.
#[derive(Debug)]
pub(super) struct Own {
    pub(super) stream: Stream,
    pub(super) source: Source,
    /// The last 5 ms that were sent.
    last: [i16; FRAME_MAX / 4],
    /// Whether the last 5 ms still have to fade out.
    fades: bool,
    /// For how many ticks its audio was the same as the shared one.
    settled: u8,
}

impl Own {
    /// A new encoding with no audio before it.
    ///
    /// # Errors
    /// Fails when the codec refuses its parameters.
    pub(super) fn new(coding: Coding, phase: u64, source: Source) -> Result<Box<Own>, SeatError> {
        let stream = Stream::new(coding, phase)?;
        Ok(Box::new(Own { stream, source, last: [0; FRAME_MAX / 4], fades: true, settled: 0 }))
    }

    /// Branches off a shared encoding whose last audio was `heard`.
    ///
    /// # Errors
    /// Fails when the codec refuses its parameters.
    pub(super) fn branch(shared: &Stream, source: Source, heard: &[i16]) -> Result<Box<Own>, SeatError> {
        let stream = shared.branch()?;
        let mut own = Own { stream, source, last: [0; FRAME_MAX / 4], fades: false, settled: 0 };
        own.keep(heard);
        Ok(Box::new(own))
    }

    /// Changes the source from now on.
    pub(super) fn turn_to(&mut self, source: Source) {
        if self.source != source {
            self.source = source;
            self.cut();
        }
    }

    /// Fades the current audio out, as when a clip was stopped.
    pub(super) fn cut(&mut self) {
        (self.fades, self.settled) = (true, 0);
    }

    /// Whether the seat may return to the shared encoding in this tick.
    pub(super) fn is_settled(&self) -> bool {
        let needed = if self.stream.coding().has_memory() { SETTLED_TICKS } else { 1 };
        self.settled >= needed && self.stream.is_between_packets()
    }

    /// Encodes a tick; `alike` is true when the shared encoding has the same audio. Returns the number of
    /// packets completed.
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
