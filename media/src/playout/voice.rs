//! Decodes payloads: a decoder for every payload type, and the PCM from which the next frames are taken.

use crate::audio::level;
use crate::audio::resample::Resampler;
use crate::codec::{Codec, Decoder, Meter};
use crate::playout::formats::PlayoutFormats;
use crate::playout::stretch;

/// One payload type; its decoder is created with its first packet.
#[derive(Debug)]
struct Lane {
    number: u8,
    codec: Codec,
    decoder: Option<Decoder>,
    /// Converts from the codec's rate to the output rate.
    resampler: Option<Resampler>,
    meter: Meter,
    /// Whether packets were skipped since the last decoded one.
    is_stale: bool,
}

/// PCM that was decoded and not yet played.
#[derive(Debug)]
pub(super) struct Voice {
    lanes: Vec<Lane>,
    /// The rate of every frame; `None` uses the codec's rate.
    fixed_hz: Option<u32>,
    rate_hz: u32,
    pcm: Box<[i16]>,
    filled: usize,
    /// Buffer for PCM whose codec rate differs from the output rate.
    scratch: Box<[i16]>,
    /// The lane that decoded last; it conceals a loss after its packet.
    last: Option<usize>,
}

impl Voice {
    pub(super) fn new(formats: &PlayoutFormats) -> Self {
        let mut voice = Voice {
            lanes: Vec::new(),
            fixed_hz: formats.rate_hz,
            rate_hz: formats.rate_hz.unwrap_or(8_000),
            pcm: Box::default(),
            filled: 0,
            scratch: Box::default(),
            last: None,
        };
        voice.set_formats(formats);
        voice
    }

    /// Replaces the payload types; lanes whose type stays keep their decoder.
    pub(super) fn set_formats(&mut self, formats: &PlayoutFormats) {
        let mut before = std::mem::take(&mut self.lanes);
        for &(number, codec) in &formats.audio {
            let kept = before.iter().position(|lane| (lane.number, lane.codec) == (number, codec));
            let lane = kept.map(|at| before.swap_remove(at));
            self.lanes.push(lane.unwrap_or_else(|| Lane {
                number,
                codec,
                decoder: None,
                resampler: formats.rate_hz.and_then(|hz| Resampler::new(codec.sample_rate_hz(), hz)),
                meter: Meter::default(),
                is_stale: false,
            }));
        }
        let fastest = self.lanes.iter().map(|lane| lane.codec.sample_rate_hz()).max().unwrap_or(8_000);
        let heard = formats.rate_hz.unwrap_or(fastest);
        self.pcm = vec![0; samples(PCM_US, heard)].into_boxed_slice();
        self.scratch = match formats.rate_hz {
            Some(_) => vec![0; samples(LONGEST_US, fastest)].into_boxed_slice(),
            None => Box::default(),
        };
        self.filled = 0;
        self.last = None;
    }

    pub(super) fn lane(&self, number: u8) -> Option<usize> {
        // Of two types with the same number the later one is valid, as in the session.
        self.lanes.iter().rposition(|lane| lane.number == number)
    }

    pub(super) fn codec(&self, lane: usize) -> Option<Codec> {
        self.lanes.get(lane).map(|lane| lane.codec)
    }

    /// The output rate of this lane.
    pub(super) fn rate_of(&self, lane: usize) -> u32 {
        self.fixed_hz.or_else(|| self.codec(lane).map(Codec::sample_rate_hz)).unwrap_or(self.rate_hz)
    }

    pub(super) fn rate_hz(&self) -> u32 {
        self.rate_hz
    }

    /// Changes to another rate; remaining PCM at the old rate is dropped.
    pub(super) fn set_rate(&mut self, rate_hz: u32) {
        if rate_hz != self.rate_hz {
            self.rate_hz = rate_hz;
            self.filled = 0;
        }
    }

    pub(super) fn filled(&self) -> usize {
        self.filled
    }

    /// Duration of the remaining PCM.
    pub(super) fn filled_us(&self) -> i64 {
        self.filled as i64 * 1_000_000 / i64::from(self.rate_hz.max(1))
    }

    /// The mean square of the remaining PCM.
    pub(super) fn filled_power(&self) -> u64 {
        level::power(self.pcm.get(..self.filled).unwrap_or_default())
    }

    /// The level of a payload without decoding it; `None` when it needs decoding.
    pub(super) fn power(&self, lane: usize, payload: &[u8]) -> Option<u64> {
        self.lanes.get(lane).and_then(|lane| lane.meter.clone().power(lane.codec, payload))
    }

    /// Decodes a payload and returns whether that was possible; `before` is the previous payload, for a
    /// decoder whose last packets were skipped.
    pub(super) fn play(&mut self, at: usize, payload: &[u8], before: Option<&[u8]>) -> bool {
        let Some(lane) = self.lanes.get_mut(at) else { return false };
        if lane.codec == Codec::G722 {
            lane.meter.power(lane.codec, payload);
        }
        if lane.decoder.is_none() {
            lane.decoder = Decoder::new(lane.codec).ok();
        }
        let Some(decoder) = &mut lane.decoder else { return false };
        let free = self.pcm.get_mut(self.filled..).unwrap_or_default();
        let room = if lane.resampler.is_some() { &mut *self.scratch } else { &mut *free };
        if let Some(before) = before.filter(|_| std::mem::take(&mut lane.is_stale)) {
            // Restores the codec's memory; the result is not played.
            let _ = decoder.decode(before, room);
        }
        let Ok(count) = decoder.decode(payload, room) else { return false };
        self.filled += match &mut lane.resampler {
            Some(resampler) => resampler.process(self.scratch.get(..count).unwrap_or_default(), free),
            None => count,
        };
        self.last = Some(at);
        true
    }

    /// Skips a payload without decoding it: adds silence of its duration.
    pub(super) fn pass_over(&mut self, at: usize, payload: &[u8], duration_us: i64) {
        if let Some(lane) = self.lanes.get_mut(at) {
            if lane.codec == Codec::G722 {
                lane.meter.power(lane.codec, payload);
            }
            lane.is_stale = true;
        }
        self.last = Some(at);
        self.silence(samples(duration_us, self.rate_hz));
    }

    /// Fills `duration_us` with concealment from the last decoder, or from the copy in `next`.
    pub(super) fn conceal(&mut self, duration_us: i64, next: Option<&[u8]>) {
        let wanted = samples(duration_us, self.rate_hz).min(self.pcm.len() - self.filled);
        let lane = self.last.and_then(|at| self.lanes.get_mut(at));
        let Some((lane, decoder)) = lane
            .and_then(|Lane { decoder, resampler, codec, .. }| Some(((codec, resampler), decoder.as_mut()?)))
        else {
            return self.silence(wanted);
        };
        let (codec, resampler) = lane;
        let free = self.pcm.get_mut(self.filled..).unwrap_or_default();
        let lost = samples(duration_us, codec.sample_rate_hz());
        let room = if resampler.is_some() { &mut *self.scratch } else { &mut *free };
        let room = room.get_mut(..lost).unwrap_or_default();
        match next {
            Some(next) => decoder.recover(next, room),
            None => decoder.conceal(room),
        }
        let count = room.len();
        self.filled += match resampler {
            Some(resampler) => resampler.process(self.scratch.get(..count).unwrap_or_default(), free),
            None => count,
        };
    }

    /// Appends silence, as far as there is space.
    pub(super) fn silence(&mut self, count: usize) {
        let end = (self.filled + count).min(self.pcm.len());
        if let Some(room) = self.pcm.get_mut(self.filled..end) {
            room.fill(0);
        }
        self.filled = end;
    }

    /// Lengthens the remaining PCM by one period; returns the number of samples.
    pub(super) fn lengthen(&mut self) -> usize {
        let more = stretch::lengthen(&mut self.pcm, self.filled, self.rate_hz);
        self.filled += more;
        more
    }

    /// Shortens the remaining PCM by one period, so that at least `keep` samples remain; returns the number
    /// of samples.
    pub(super) fn shorten(&mut self, keep: usize) -> usize {
        let less = stretch::shorten(&mut self.pcm, self.filled, keep, self.rate_hz);
        self.filled -= less;
        less
    }

    /// Moves the first samples into `pcm`, followed by silence.
    pub(super) fn pop(&mut self, pcm: &mut [i16]) {
        let count = self.filled.min(pcm.len());
        let (voice, rest) = pcm.split_at_mut(count);
        voice.copy_from_slice(self.pcm.get(..count).unwrap_or_default());
        rest.fill(0);
        self.drop_first(count);
    }

    /// Drops the first samples.
    pub(super) fn drop_first(&mut self, count: usize) {
        let count = count.min(self.filled);
        self.pcm.copy_within(count..self.filled, 0);
        self.filled -= count;
    }
}

/// Samples of a duration at a rate.
pub(super) fn samples(duration_us: i64, rate_hz: u32) -> usize {
    usize::try_from((duration_us * i64::from(rate_hz) + 500_000) / 1_000_000).unwrap_or(0)
}

/// The longest packet: a datagram of 1,500 bytes of G.711.
pub(super) const LONGEST_US: i64 = 200_000;
/// The longest packet, plus a waiting frame and the extension by lengthening.
const PCM_US: i64 = LONGEST_US + 50_000;
