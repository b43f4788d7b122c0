//! One sound at every rate that has listeners.

use super::rate::{ByRate, Frames, Rate};
use crate::audio::resample::Resampler;

/// A sound of one rate, and the resamplers to the others; a rate without listeners costs nothing.
#[derive(Debug)]
pub(super) struct Spread {
    native: Rate,
    frames: Frames,
    resamplers: ByRate<Option<Resampler>>,
}

impl Spread {
    /// A sound whose own rate is `native`.
    pub(super) fn new(native: Rate) -> Self {
        Spread { native, frames: Frames::default(), resamplers: ByRate::default() }
    }

    /// Starts another sound.
    pub(super) fn begin(&mut self, native: Rate) {
        if self.native == native {
            for rate in Rate::ALL {
                self.resamplers.get_mut(rate).as_mut().map(Resampler::reset);
            }
        } else {
            (self.native, self.resamplers) = (native, ByRate::default());
        }
    }

    pub(super) fn native(&self) -> Rate {
        self.native
    }

    /// The tick's samples at the sound's own rate, to write.
    pub(super) fn source(&mut self) -> &mut [i16] {
        self.frames.at_mut(self.native)
    }

    /// Resamples the tick's samples to `rate`.
    pub(super) fn make(&mut self, rate: Rate) {
        if rate == self.native {
            return;
        }
        let resampler = self.resamplers.get_mut(rate);
        if resampler.is_none() {
            *resampler = Resampler::new(self.native.hz(), rate.hz());
        }
        let (from, to) = self.frames.pair(self.native, rate);
        if let Some(resampler) = resampler {
            resampler.process(from, to);
        }
    }

    /// The tick's samples at `rate`: the sound's own, or one made with [`Spread::make`].
    pub(super) fn at(&self, rate: Rate) -> &[i16] {
        self.frames.at(rate)
    }

    /// Fades the sound out in this tick, at every rate.
    pub(super) fn fall(&mut self) {
        self.frames.fall();
    }
}
