//! Payloads to PCM: a decoder for every payload type, and the PCM that the next frames are cut from.

use crate::audio::level;
use crate::audio::resample::Resampler;
use crate::codec::{Codec, Decoder, Meter};
use crate::playout::formats::PlayoutFormats;
use crate::playout::stretch;

/// One payload type: its decoder exists from its first packet on.
#[derive(Debug)]
struct Lane {
    number: u8,
    codec: Codec,
    decoder: Option<Decoder>,
    /// From the codec's rate to the one that was asked for.
    resampler: Option<Resampler>,
    meter: Meter,
    /// Whether packets were passed over since the last that was decoded.
    is_stale: bool,
}

/// What was decoded and not yet heard.
#[derive(Debug)]
pub(super) struct Voice {
    lanes: Vec<Lane>,
    /// The rate of every frame; `None` gives each at its codec's.
    fixed_hz: Option<u32>,
    rate_hz: u32,
    pcm: Box<[i16]>,
    filled: usize,
    /// What is decoded at another rate than it is heard at.
    scratch: Box<[i16]>,
    /// The lane that decoded last, which conceals what follows.
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

    /// Replaces the payload types; those that stay keep their decoders.
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
        // Of two with one number the later holds, as in the session.
        self.lanes.iter().rposition(|lane| lane.number == number)
    }

    pub(super) fn codec(&self, lane: usize) -> Option<Codec> {
        self.lanes.get(lane).map(|lane| lane.codec)
    }

    /// The rate at which this lane is heard.
    pub(super) fn rate_of(&self, lane: usize) -> u32 {
        self.fixed_hz.or_else(|| self.codec(lane).map(Codec::sample_rate_hz)).unwrap_or(self.rate_hz)
    }

    pub(super) fn rate_hz(&self) -> u32 {
        self.rate_hz
    }

    /// Goes over to another rate; what was left at the old one is not heard.
    pub(super) fn set_rate(&mut self, rate_hz: u32) {
        if rate_hz != self.rate_hz {
            self.rate_hz = rate_hz;
            self.filled = 0;
        }
    }

    pub(super) fn filled(&self) -> usize {
        self.filled
    }

    /// How long what is left is.
    pub(super) fn filled_us(&self) -> i64 {
        self.filled as i64 * 1_000_000 / i64::from(self.rate_hz.max(1))
    }

    /// The mean square of what is left.
    pub(super) fn filled_power(&self) -> u64 {
        level::power(self.pcm.get(..self.filled).unwrap_or_default())
    }

    /// How loud a payload is, without taking it in; `None` where only decoding tells.
    pub(super) fn power(&self, lane: usize, payload: &[u8]) -> Option<u64> {
        self.lanes.get(lane).and_then(|lane| lane.meter.clone().power(lane.codec, payload))
    }

    /// Decodes a payload; `before` is the one before it, for a decoder that was passed over. Whether it could.
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
            // What the codec remembers of the voice before; nobody hears it.
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

    /// Takes note of a payload that nobody hears: silence of its length.
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

    /// Fills `duration_us` with what may have been there, by the last decoder, or from the copy in `next`.
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

    /// Appends silence, as far as there is room.
    pub(super) fn silence(&mut self, count: usize) {
        let end = (self.filled + count).min(self.pcm.len());
        if let Some(room) = self.pcm.get_mut(self.filled..end) {
            room.fill(0);
        }
        self.filled = end;
    }

    /// Makes what is left one period longer, or shorter by one that leaves `keep` samples; by how many samples.
    pub(super) fn lengthen(&mut self) -> usize {
        let more = stretch::lengthen(&mut self.pcm, self.filled, self.rate_hz);
        self.filled += more;
        more
    }

    /// See [`Voice::lengthen`].
    pub(super) fn shorten(&mut self, keep: usize) -> usize {
        let less = stretch::shorten(&mut self.pcm, self.filled, keep, self.rate_hz);
        self.filled -= less;
        less
    }

    /// Moves the first samples into `pcm`; silence behind them.
    pub(super) fn pop(&mut self, pcm: &mut [i16]) {
        let count = self.filled.min(pcm.len());
        let (voice, rest) = pcm.split_at_mut(count);
        voice.copy_from_slice(self.pcm.get(..count).unwrap_or_default());
        rest.fill(0);
        self.drop_first(count);
    }

    /// Throws the first samples away.
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
/// The longest packet, a frame that waits and what they may be lengthened by.
const PCM_US: i64 = LONGEST_US + 50_000;
