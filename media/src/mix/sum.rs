//! The sum of all speakers, the sum without one of them, and the limiter from a sum to 16 bits.
//!
//! Sums have 32 bits, so that subtracting one voice is exact. The limiter is a curve without memory: the same
//! sum always gives the same samples, and a loud frame does not change the next one. Below [`KNEE`] (-2.5 dB
//! of full scale) it changes nothing; above, it approaches full scale without reaching it.

use super::rate::{ByRate, FRAME_MAX, Frames, Rate};

/// The complete mix of one tick.
#[derive(Debug, Default)]
pub(super) struct Sum {
    totals: Box<ByRate<Total>>,
    /// The audio for a party that does not speak.
    heard: Frames,
}

#[derive(Clone, Copy, Debug)]
struct Total([i32; FRAME_MAX]);

impl Default for Total {
    fn default() -> Self {
        Total([0; FRAME_MAX])
    }
}

impl Sum {
    /// Starts a tick's sum at `rate`.
    pub(super) fn clear(&mut self, rate: Rate) {
        self.totals.get_mut(rate).0.fill(0);
    }

    /// Adds one sound.
    pub(super) fn add(&mut self, rate: Rate, sound: &[i16]) {
        for (total, sample) in self.totals.get_mut(rate).0.iter_mut().zip(sound) {
            *total += i32::from(*sample);
        }
    }

    /// Completes a tick's sum.
    pub(super) fn finish(&mut self, rate: Rate) {
        limit(&self.totals.get(rate).0, self.heard.at_mut(rate));
    }

    /// The audio for a party that does not speak; more can be added to it after [`Sum::finish`].
    pub(super) fn heard_mut(&mut self, rate: Rate) -> &mut [i16] {
        self.heard.at_mut(rate)
    }

    /// The audio for a party that does not speak; before [`Sum::finish`] that of the previous tick.
    pub(super) fn heard(&self, rate: Rate) -> &[i16] {
        self.heard.at(rate)
    }

    /// Writes the audio for the party whose samples are `own`.
    pub(super) fn without(&self, rate: Rate, own: &[i16], pcm: &mut [i16]) {
        self.without_all(rate, std::iter::once(own), pcm);
    }

    /// The sum without all of these sounds.
    pub(super) fn without_all<'a>(
        &self,
        rate: Rate,
        sounds: impl Iterator<Item = &'a [i16]>,
        pcm: &mut [i16],
    ) {
        let mut rest = self.totals.get(rate).0;
        for sound in sounds {
            for (total, sample) in rest.iter_mut().zip(sound) {
                *total -= i32::from(*sample);
            }
        }
        limit(&rest, pcm);
    }
}

/// Writes the sum as 16 bits.
fn limit(sum: &[i32; FRAME_MAX], pcm: &mut [i16]) {
    let Some(sum) = sum.get(..pcm.len()) else { return };
    let peak = sum.iter().fold(0, |peak, total| peak.max(total.abs()));
    if peak <= KNEE {
        for (sample, total) in pcm.iter_mut().zip(sum) {
            *sample = *total as i16;
        }
        return;
    }
    for (sample, total) in pcm.iter_mut().zip(sum) {
        *sample = bend(*total);
    }
}

/// The limiter's curve: a straight line up to the knee, then a hyperbola with the same slope there.
fn bend(total: i32) -> i16 {
    let magnitude = total.abs();
    if magnitude <= KNEE {
        return total as i16;
    }
    let over = i64::from(magnitude - KNEE);
    let room = i64::from(i32::from(i16::MAX) - KNEE);
    let bent = i64::from(KNEE) + room * over / (room + over);
    let bent = i16::try_from(bent).unwrap_or(i16::MAX);
    if total < 0 { -bent } else { bent }
}

/// Up to this value a sum is unchanged.
const KNEE: i32 = 24_576;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limiter_never_wraps_never_steps_and_never_falls() {
        let (mut last, top) = (bend(0), 64 * i32::from(i16::MAX));
        for total in 1..=top {
            let bent = bend(total);
            assert_eq!(bend(-total), -bent, "{total}");
            assert!(bent >= last && bent - last <= 1, "{total}: {last} {bent}");
            assert!(total > KNEE || i32::from(bent) == total, "{total}");
            last = bent;
        }
        assert!(last > 32_600, "{last}");
    }

    #[test]
    fn one_voice_is_taken_out_exactly() {
        let mut sum = Sum::default();
        let (one, other) = ([1_000_i16, -2_000, 30_000, i16::MIN], [5, 6, 30_000, i16::MIN]);
        sum.clear(Rate::Narrow);
        sum.add(Rate::Narrow, &one);
        sum.add(Rate::Narrow, &other);
        sum.finish(Rate::Narrow);
        assert_eq!(sum.heard(Rate::Narrow).get(..2), Some(&[1_005, -1_994][..]));
        assert!(sum.heard(Rate::Narrow)[2] > 31_000 && sum.heard(Rate::Narrow)[3] < -31_000);
        let mut pcm = [0; 160];
        sum.without(Rate::Narrow, &one, &mut pcm);
        assert_eq!(pcm[..4], [5, 6, bend(30_000), bend(-32_768)]);
    }
}
