//! The three rates of a mix, and frames of 20 ms at each of them.

use super::ramp;

/// How long a tick is.
pub(super) const TICK_US: i64 = 20_000;
/// Samples of a frame at the highest rate.
pub(super) const FRAME_MAX: usize = 960;

/// 20 ms of PCM; a rate uses the first [`Rate::samples`] of it.
pub(super) type Frame = [i16; FRAME_MAX];

/// A rate of PCM in a mix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rate {
    /// 8 kHz: G.711.
    Narrow,
    /// 16 kHz: G.722, clips, recordings.
    Wide,
    /// 48 kHz: Opus.
    Full,
}

impl Rate {
    pub(super) const ALL: [Rate; 3] = [Rate::Narrow, Rate::Wide, Rate::Full];

    /// The rate of `hz` samples a second; `None` when a mix has no such rate.
    pub(super) fn of(hz: u32) -> Option<Rate> {
        Rate::ALL.into_iter().find(|rate| rate.hz() == hz)
    }

    /// Samples a second.
    pub(super) const fn hz(self) -> u32 {
        match self {
            Rate::Narrow => 8_000,
            Rate::Wide => 16_000,
            Rate::Full => 48_000,
        }
    }

    /// Samples of a tick.
    pub(super) const fn samples(self) -> usize {
        match self {
            Rate::Narrow => 160,
            Rate::Wide => 320,
            Rate::Full => 960,
        }
    }

    /// Samples of the 5 ms in which a sound fades in or out, so that it does not click.
    pub(super) const fn ramp(self) -> usize {
        self.samples() / 4
    }
}

/// One value for each rate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ByRate<T> {
    narrow: T,
    wide: T,
    full: T,
}

impl<T> ByRate<T> {
    pub(super) fn get(&self, rate: Rate) -> &T {
        match rate {
            Rate::Narrow => &self.narrow,
            Rate::Wide => &self.wide,
            Rate::Full => &self.full,
        }
    }

    pub(super) fn get_mut(&mut self, rate: Rate) -> &mut T {
        match rate {
            Rate::Narrow => &mut self.narrow,
            Rate::Wide => &mut self.wide,
            Rate::Full => &mut self.full,
        }
    }
}

/// The 20 ms of one sound at every rate.
#[derive(Clone, Debug, Default)]
pub(super) struct Frames(Box<ByRate<FrameBox>>);

/// A frame that starts silent (arrays of this length have no `Default`).
#[derive(Clone, Debug)]
struct FrameBox(Frame);

impl Default for FrameBox {
    fn default() -> Self {
        FrameBox([0; FRAME_MAX])
    }
}

impl Frames {
    /// The samples at `rate`.
    pub(super) fn at(&self, rate: Rate) -> &[i16] {
        self.0.get(rate).0.get(..rate.samples()).unwrap_or_default()
    }

    /// The samples at `rate`, to write.
    pub(super) fn at_mut(&mut self, rate: Rate) -> &mut [i16] {
        self.0.get_mut(rate).0.get_mut(..rate.samples()).unwrap_or_default()
    }

    /// The samples at one rate, and those at another rate to write.
    pub(super) fn pair(&mut self, from: Rate, to: Rate) -> (&[i16], &mut [i16]) {
        let ByRate { narrow, wide, full } = &mut *self.0;
        let (source, target) = match (from, to) {
            (Rate::Narrow, Rate::Full) => (narrow, full),
            (Rate::Narrow, _) => (narrow, wide),
            (Rate::Wide, Rate::Full) => (wide, full),
            (Rate::Wide, _) => (wide, narrow),
            (Rate::Full, Rate::Wide) => (full, wide),
            (Rate::Full, _) => (full, narrow),
        };
        (
            source.0.get(..from.samples()).unwrap_or_default(),
            target.0.get_mut(..to.samples()).unwrap_or_default(),
        )
    }

    /// Fades the sound out, at every rate.
    pub(super) fn fall(&mut self) {
        for rate in Rate::ALL {
            let pcm = self.at_mut(rate);
            let ramp = rate.ramp();
            let mut last: Frame = [0; FRAME_MAX];
            let Some(last) = last.get_mut(..pcm.len()) else { continue };
            last.copy_from_slice(pcm);
            ramp::fall(last, pcm, ramp);
        }
    }
}
