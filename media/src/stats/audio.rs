//! Audio evidence from a few decoded samples (G.711): silence, level, clipping.
//!
//! Packets may arrive in time and in order and still contain nothing audible. In every fourth packet of PCMU
//! and PCMA (by sequence number) fifteen samples are decoded, enough to distinguish sound from silence. SRTP
//! payloads look like loud noise with little clipping, so they count as neither silent nor clipped.

use crate::audio::level::dbov;
use crate::codec::g711::{PCMA_TO_PCM, PCMU_TO_PCM};
use crate::rtp::Packet;
use crate::stats::Hundredths;

/// Audio evidence of a leg's packets since the answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AudioEvidence {
    /// Packets that were decoded: one in four of those that could be.
    pub looked_at_packets: u64,
    /// The audio that they represent, in milliseconds.
    pub looked_at_ms: u64,
    /// Mean level, in dBov; -127 is digital silence (RFC 6465 §3).
    pub level_dbov: Hundredths,
    /// Level of the loudest sample, in dBov.
    pub peak_dbov: Hundredths,
    /// Silent packets in percent of those looked at: below -60 dBov, or all samples alike.
    pub silent_share_pct: Hundredths,
    /// Packets with two samples at full scale in percent of those that are not silent; `None` when all are.
    pub clipped_share_pct: Option<Hundredths>,
    /// The longest time without a packet that is not silent, in milliseconds.
    pub longest_silence_ms: u64,
}

/// A few octets of one packet's payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AudioSample([u8; SAMPLES]);

impl AudioSample {
    /// Whether `packet` is one of those to decode: G.711 by its static payload type (RFC 3551 table 4).
    #[inline]
    pub fn is_due(packet: &Packet) -> bool {
        packet.sequence.is_multiple_of(EVERY) && matches!(packet.payload_type, PCMU | PCMA)
    }

    /// Whether the RTP packet in `datagram` may be one of those, by its sequence number.
    #[inline(always)]
    pub(crate) fn may_be_due(datagram: &[u8]) -> bool {
        // The lower byte of the number is a multiple of [`EVERY`] exactly when the number is.
        datagram.get(3).is_some_and(|low| u16::from(*low).is_multiple_of(EVERY))
    }

    /// Samples `payload`, or the part of it that a capture has kept; `None` when that is too short.
    pub fn of(payload: &[u8]) -> Option<AudioSample> {
        let stride = payload.len() / STRIDES;
        if stride == 0 {
            return None;
        }
        let mut bytes = [0; SAMPLES];
        for ((place, byte), offset) in bytes.iter_mut().enumerate().zip(OFFSETS) {
            *byte = *payload.get(place * stride + offset * stride / STRIDES)?;
        }
        Some(AudioSample(bytes))
    }
}

/// Accumulates the decoded samples.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct AudioFold {
    packets: u64,
    octets: u64,
    power_sum: u64,
    silent_packets: u64,
    clipped_packets: u64,
    /// Octets of the current silence, and of the longest one.
    silent_octets: u64,
    silent_octets_max: u64,
    /// The last sequence number that was decoded, so that a duplicate does not count twice.
    last: Option<u16>,
    peak: u16,
}

impl AudioFold {
    /// Adds the samples of `packet`, and returns their mean square; `None` for a packet that was added before.
    pub(crate) fn push(&mut self, packet: &Packet, sample: &AudioSample) -> Option<u64> {
        if self.last == Some(packet.sequence) {
            return None;
        }
        let (table, full_scale) = match packet.payload_type {
            PCMU => (&PCMU_TO_PCM, PCMU_FULL_SCALE),
            PCMA => (&PCMA_TO_PCM, PCMA_FULL_SCALE),
            _ => return None,
        };
        self.last = Some(packet.sequence);
        let (mut power, mut peak, mut at_full_scale) = (0_u64, 0, 0);
        for byte in sample.0 {
            let amplitude = table.get(usize::from(byte)).map_or(0, |pcm| pcm.unsigned_abs());
            power += u64::from(u32::from(amplitude).pow(2));
            peak = peak.max(amplitude);
            at_full_scale += u32::from(amplitude >= full_scale);
        }
        let [first, rest @ ..] = sample.0;
        if rest.iter().all(|byte| *byte == first) {
            // A constant value is inaudible, however far from zero it is.
            (power, peak) = (0, 0);
        }
        let octets = u64::from(packet.payload_len);
        self.packets += 1;
        self.octets = self.octets.saturating_add(octets);
        self.power_sum = self.power_sum.saturating_add(power);
        self.peak = self.peak.max(peak);
        if power < SILENT_POWER * SAMPLES as u64 {
            self.silent_packets += 1;
            self.silent_octets = self.silent_octets.saturating_add(octets);
            self.silent_octets_max = self.silent_octets_max.max(self.silent_octets);
        } else {
            self.silent_octets = 0;
            self.clipped_packets += u64::from(at_full_scale >= CLIPPED_SAMPLES_MIN);
        }
        Some(power / SAMPLES as u64)
    }

    /// The evidence; `None` when no packet was decoded.
    pub(crate) fn evidence(&self) -> Option<AudioEvidence> {
        let percent = |part: u64, whole: u64| Hundredths::ratio(i128::from(part) * 100, i128::from(whole));
        let stands_for_ms = |octets: u64| octets.saturating_mul(u64::from(EVERY)) / OCTETS_PER_MS;
        Some(AudioEvidence {
            looked_at_packets: self.packets,
            looked_at_ms: stands_for_ms(self.octets),
            level_dbov: level(self.power_sum / self.packets.saturating_mul(SAMPLES as u64).max(1)),
            peak_dbov: level(u64::from(u32::from(self.peak).pow(2))),
            silent_share_pct: percent(self.silent_packets, self.packets)?,
            clipped_share_pct: percent(
                self.clipped_packets,
                self.packets.saturating_sub(self.silent_packets),
            ),
            longest_silence_ms: stands_for_ms(self.silent_octets_max),
        })
    }
}

/// The level of a mean square.
fn level(power: u64) -> Hundredths {
    let hundredths = dbov(power).map_or(DIGITAL_SILENCE, |level| (level * 100.0).round() as i64);
    Hundredths(hundredths.max(DIGITAL_SILENCE))
}

/// Samples decoded in one packet.
const SAMPLES: usize = 15;
/// Parts of a payload, one more than samples; each sample is taken from its own part.
const STRIDES: usize = 16;
/// Position of each sample in its part, in sixteenths. The positions are irregular, so that no tone is
/// sampled only at its zeros.
const OFFSETS: [usize; SAMPLES] = [3, 11, 0, 14, 7, 5, 12, 1, 9, 15, 4, 10, 2, 13, 6];
/// One packet in this many is decoded, by sequence number.
const EVERY: u16 = 4;
/// Payload types (RFC 3551 table 4).
const PCMU: u8 = 0;
const PCMA: u8 = 8;
/// G.711 octets per millisecond.
const OCTETS_PER_MS: u64 = 8;
/// The outermost values of both laws (ITU-T G.711, tables 1 and 2).
const PCMU_FULL_SCALE: u16 = 32_124;
const PCMA_FULL_SCALE: u16 = 32_256;
/// A single sample at full scale may be the peak of loud audio.
const CLIPPED_SAMPLES_MIN: u32 = 2;
/// The mean square of -60 dBov; a quiet line or comfort noise is below it.
const SILENT_POWER: u64 = 1_073;
/// In hundredths of dBov.
const DIGITAL_SILENCE: i64 = -12_700;

#[cfg(test)]
#[path = "audio_tests.rs"]
mod tests;
