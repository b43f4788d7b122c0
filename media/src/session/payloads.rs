//! The negotiated payload types, looked up once per packet.

use std::sync::Arc;

use crate::rtp::PayloadKind;
use crate::session::Payload;
use crate::stats::StreamConfig;
use crate::verdict::Thresholds;

/// The payload types of the current description, and those received so far.
#[derive(Clone, Debug, Default)]
pub(crate) struct PayloadMap {
    /// The payload type last received, and the kind of its content.
    last: Option<(u8, PayloadKind)>,
    table: Box<Table>,
}

#[derive(Clone, Debug, Default)]
struct Table {
    /// The audio payload type last received.
    audio: Option<u8>,
    /// Bit n is set when payload type n was received.
    seen: u128,
    /// As `seen`, for payload types that were not negotiated.
    refused: u128,
    payloads: Arc<[Payload]>,
    ptime_ms: Option<u32>,
    /// Audio packets by encoding name, without those since the last change.
    heard: Vec<(String, u64)>,
    /// The stream's audio packets up to the last change; these are counted in `heard`.
    heard_sum: u64,
}

impl PayloadMap {
    /// Replaces the negotiated types after `audio_packets` audio packets; `ptime_ms` is the advertised packet
    /// duration, if there is one.
    pub(crate) fn replace(&mut self, payloads: Arc<[Payload]>, ptime_ms: Option<u32>, audio_packets: u64) {
        self.settle_audio(audio_packets);
        // The same number may now mean another codec.
        self.table.audio = self.table.audio.filter(|_| self.is(&payloads));
        self.last = None;
        self.table.ptime_ms = ptime_ms;
        self.table.payloads = payloads;
    }

    /// Whether `payloads` equals the types negotiated already.
    pub(crate) fn is(&self, payloads: &[Payload]) -> bool {
        std::ptr::eq(&*self.table.payloads, payloads) || *self.table.payloads == *payloads
    }

    /// The kind of content of payload type `number`; `None` when it is not negotiated.
    #[inline]
    pub(crate) fn kind(&self, number: u8) -> Option<PayloadKind> {
        match self.last {
            Some((last, kind)) if last == number => Some(kind),
            _ => self.look_up(number),
        }
    }

    /// Records a received payload type. Returns true when the audio changes to another type; `audio_packets`
    /// is then the count so far.
    #[inline]
    pub(crate) fn note(
        &mut self,
        number: u8,
        kind: PayloadKind,
        audio_packets: impl FnOnce() -> u64,
    ) -> bool {
        self.last != Some((number, kind)) && self.note_other(number, kind, audio_packets)
    }

    /// Records a received payload type that was not negotiated.
    pub(crate) fn note_refused(&mut self, number: u8) {
        self.table.refused |= 1 << (number & 0x7f);
    }

    /// The payload types received that were not negotiated, in ascending order.
    pub(crate) fn refused(&self) -> Vec<u8> {
        numbers(self.table.refused)
    }

    /// Records comfort noise whose payload type no SDP announced.
    pub(crate) fn note_noise(&mut self, number: u8) {
        self.table.seen |= 1 << (number & 0x7f);
    }

    /// Audio packets whose encoding name matches `is_one_of`, out of `audio_packets` in total.
    pub(crate) fn heard(&self, audio_packets: u64, is_one_of: impl Fn(&str) -> bool) -> u64 {
        let settled = self.table.heard.iter().filter(|(name, _)| is_one_of(name));
        let settled: u64 = settled.map(|(_, packets)| packets).sum();
        let is_current = self.received_audio().is_some_and(|audio| is_one_of(&audio.name));
        let current = audio_packets.saturating_sub(self.table.heard_sum);
        settled.saturating_add(if is_current { current } else { 0 })
    }

    /// Adds the audio packets since the last change to their encoding.
    fn settle_audio(&mut self, audio_packets: u64) {
        let since = audio_packets.saturating_sub(self.table.heard_sum);
        self.table.heard_sum = audio_packets;
        let Some(audio) = self.received_audio().filter(|_| since > 0) else { return };
        let known = self.table.heard.iter().position(|(name, _)| *name == audio.name);
        let Some(place) = known else {
            let name = audio.name.clone();
            if self.table.heard.len() < HEARD_MAX {
                self.table.heard.push((name, since));
            }
            return;
        };
        if let Some((_, packets)) = self.table.heard.get_mut(place) {
            *packets = packets.saturating_add(since);
        }
    }

    #[cold]
    fn look_up(&self, number: u8) -> Option<PayloadKind> {
        // Of two types with the same number the later one is valid. This search runs only for the first of
        // several packets with the same number; a table of all 128 numbers for each of many legs would cost
        // more memory.
        let payload = self.table.payloads.iter().rev().find(|payload| payload.number == number);
        payload.map(|payload| payload.kind)
    }

    #[cold]
    fn note_other(&mut self, number: u8, kind: PayloadKind, audio_packets: impl FnOnce() -> u64) -> bool {
        self.last = Some((number, kind));
        self.table.seen |= 1 << (number & 0x7f);
        let changes = kind == PayloadKind::Audio && self.table.audio != Some(number);
        if changes {
            self.settle_audio(audio_packets());
            self.table.audio = Some(number);
        }
        changes
    }

    /// The audio type last received; before any, the first that was negotiated.
    pub(crate) fn audio(&self) -> Option<&Payload> {
        match self.table.audio {
            Some(number) => self.table.payloads.iter().rev().find(|payload| payload.number == number),
            None => self.table.payloads.iter().find(|payload| payload.kind == PayloadKind::Audio),
        }
    }

    /// The audio type last received.
    pub(crate) fn received_audio(&self) -> Option<&Payload> {
        self.table.audio.and_then(|_| self.audio())
    }

    /// The advertised packet duration, or the codec's default, in milliseconds.
    pub(crate) fn ptime_ms(&self) -> u32 {
        self.table.ptime_ms.unwrap_or_else(|| self.audio().map_or(PTIME_DEFAULT_MS, default_ptime_ms))
    }

    /// The stream settings for this audio; `is_tagged` is set when payloads contain the authentication tag of SRTP.
    pub(crate) fn stream_config(&self, thresholds: &Thresholds, is_tagged: bool) -> Option<StreamConfig> {
        let audio = self.audio()?;
        let config = StreamConfig::new(audio.clock, self.ptime_ms(), thresholds);
        let bytes_per_ms = if is_tagged { audio.tagged_bytes_per_ms() } else { audio.bytes_per_ms };
        Some(StreamConfig { bytes_per_ms, ..config })
    }

    /// The payload types ever received, in ascending order.
    pub(crate) fn seen(&self) -> Vec<u8> {
        numbers(self.table.seen)
    }
}

/// The positions of the bits that are set, in ascending order.
fn numbers(mut set: u128) -> Vec<u8> {
    let next = || {
        let number = (set != 0).then(|| set.trailing_zeros() as u8)?;
        set &= set - 1;
        Some(number)
    };
    std::iter::from_fn(next).collect()
}

/// The packet duration of a format when SDP gives none (RFC 3551 §4.5, RFC 3952 §5).
fn default_ptime_ms(audio: &Payload) -> u32 {
    let is_of_30_ms = ["G723", "iLBC"].iter().any(|codec| audio.name.eq_ignore_ascii_case(codec));
    audio.default_ptime_ms.unwrap_or(if is_of_30_ms { 30 } else { PTIME_DEFAULT_MS })
}

/// Whether a payload type is comfort noise although no SDP announced it (RFC 3551 table 4; 19 is its former
/// number).
pub(crate) fn is_static_noise(number: u8) -> bool {
    matches!(number, 13 | 19)
}

/// Encoding names that are counted per leg.
const HEARD_MAX: usize = 16;
/// The default packet duration of almost every codec (RFC 3551 §4.2).
pub(crate) const PTIME_DEFAULT_MS: u32 = 20;
