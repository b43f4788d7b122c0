//! The last audio that a phone received, decoded and in memory.

use std::collections::VecDeque;
use std::sync::Arc;

use parking_lot::Mutex;
use sidetone_media::codec::{Codec, Decoder};
use sidetone_media::rtp::RtpPacket;

use crate::voice::Format;

/// The last minute of audio that a phone received in its calls, in the order in which packets arrived; clones share
/// it.
#[derive(Clone, Default)]
pub struct Heard {
    inner: Arc<Mutex<Inner>>,
}

#[derive(Default)]
struct Inner {
    decoder: Option<Decoder>,
    pcm: VecDeque<i16>,
}

impl Heard {
    /// Returns an empty buffer.
    pub fn new() -> Heard {
        Heard::default()
    }

    /// Clears the buffer.
    pub fn clear(&self) {
        self.inner.lock().pcm.clear();
    }

    /// Returns the last `ms` milliseconds and their sample rate in Hz; `None` until that much was received.
    pub fn lately(&self, ms: u32) -> Option<(Vec<i16>, u32)> {
        let inner = self.inner.lock();
        let rate_hz = inner.decoder.as_ref()?.codec().sample_rate_hz();
        let samples = usize::try_from(u64::from(rate_hz) * u64::from(ms) / 1_000).ok()?;
        let before = inner.pcm.len().checked_sub(samples)?;
        Some((inner.pcm.iter().skip(before).copied().collect(), rate_hz))
    }

    /// Decodes one packet of the negotiated codec; others are ignored.
    pub(super) fn hear(&self, datagram: &[u8], format: Format) {
        let Ok(packet) = RtpPacket::parse(datagram) else { return };
        if packet.header.payload_type == format.heard {
            self.inner.lock().hear(packet.payload, format.codec);
        }
    }
}

impl Inner {
    fn hear(&mut self, payload: &[u8], codec: Codec) {
        if self.decoder.as_ref().is_none_or(|decoder| decoder.codec() != codec) {
            (self.decoder, self.pcm) = (Decoder::new(codec).ok(), VecDeque::new());
        }
        let Some(decoder) = &mut self.decoder else { return };
        let mut frame = [0; SAMPLES_MAX];
        let samples = decoder.decode(payload, &mut frame).unwrap_or(0);
        self.pcm.extend(frame.iter().take(samples));
        let kept = codec.sample_rate_hz() as usize * KEPT_SECONDS;
        let over = self.pcm.len().saturating_sub(kept);
        self.pcm.drain(..over);
    }
}

/// 120 ms at 48 kHz, the longest packet of Opus.
const SAMPLES_MAX: usize = 5_760;
const KEPT_SECONDS: usize = 60;
