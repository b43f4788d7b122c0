//! Packets to a party: encrypted in place, then given a tag.

use std::fmt;

use super::cipher::Cipher;
use super::layout::{ENCRYPTED, RtpHead, rtcp_ssrc};
use super::streams::Streams;
use super::{MasterKey, SrtpError};

/// The sending side of one key. No index is used twice: a packet that was sent before is refused.
pub struct Outbound {
    /// `None` when the keys were not usable: then no packet is sent.
    ciphers: Option<(Cipher, Cipher)>,
    streams: Streams,
    /// The stream whose sequence numbers are shifted, see [`Outbound::continued`].
    shift: Shift,
    /// The index of the next SRTCP packet, of all streams (RFC 3711 §3.4).
    next_rtcp: u32,
}

/// A stream that restarted with other sequence numbers.
#[derive(Clone, Copy, Debug, Default)]
struct Shift {
    ssrc: u32,
    /// The offset added to the sequence numbers of the stream.
    by: u16,
    /// The sequence number that would confirm the restart.
    awaited: Option<u16>,
}

impl Outbound {
    /// Derives the session keys of `key`; no packet has been sent yet.
    pub fn new(key: &MasterKey) -> Outbound {
        let ciphers = Cipher::derived(key, false).zip(Cipher::derived(key, true));
        Outbound { ciphers, streams: Streams::new(), shift: Shift::default(), next_rtcp: 0 }
    }

    #[cfg(test)]
    pub(super) fn with_ciphers(rtp: Cipher, rtcp: Cipher, next_rtcp: u32) -> Outbound {
        let ciphers = Some((rtp, rtcp));
        Outbound { ciphers, streams: Streams::new(), shift: Shift::default(), next_rtcp }
    }

    /// Protects the RTP packet in the first `len` bytes of `buffer`, in place; returns the new length.
    ///
    /// # Errors
    /// The packet is not to be sent, and its bytes are undefined.
    #[inline]
    pub fn protect(&mut self, buffer: &mut [u8], len: usize) -> Result<usize, SrtpError> {
        let head = buffer.get(..len).and_then(RtpHead::read).ok_or(SrtpError::Malformed)?;
        let sequence = match self.shift {
            Shift { ssrc, by, .. } if ssrc == head.ssrc => head.sequence.wrapping_add(by),
            _ => head.sequence,
        };
        let index = match self.streams.index_of(head.ssrc, sequence) {
            Ok(index) => index,
            Err(SrtpError::Replayed) => self.continued(head, sequence).ok_or(SrtpError::Replayed)?,
            Err(error) => return Err(error),
        };
        if index as u16 != head.sequence {
            buffer.get_mut(2..4).ok_or(SrtpError::Malformed)?.copy_from_slice(&(index as u16).to_be_bytes());
        }
        let (cipher, _) = self.ciphers.as_ref().ok_or(SrtpError::Room)?;
        let sealed = cipher.seal_rtp(buffer, (head.bytes, len), (head.ssrc, index));
        let sealed = sealed.ok_or(SrtpError::Room)?;
        self.streams.came(head.ssrc, index);
        Ok(sealed)
    }

    /// Protects the RTCP packet in the first `len` bytes of `buffer`, in place; returns the new length.
    ///
    /// # Errors
    /// The packet is not to be sent, and its bytes are undefined.
    pub fn protect_rtcp(&mut self, buffer: &mut [u8], len: usize) -> Result<usize, SrtpError> {
        let ssrc = buffer.get(..len).and_then(rtcp_ssrc).ok_or(SrtpError::Malformed)?;
        let (_, cipher) = self.ciphers.as_ref().ok_or(SrtpError::Room)?;
        let index = Some(self.next_rtcp).filter(|index| *index < ENCRYPTED).ok_or(SrtpError::Room)?;
        let sealed = cipher.seal_rtcp(buffer, len, ssrc, index).ok_or(SrtpError::Room)?;
        self.next_rtcp = index + 1;
        Ok(sealed)
    }

    /// The index of a packet of a restarted stream: some senders restart their sequence numbers and keep the SSRC. An
    /// SRTP receiver would assign such packets to the previous rollover and refuse all of them, so the stream continues
    /// with shifted numbers. Two consecutive packets outside the window show a restart (RFC 3550 A.1).
    #[cold]
    fn continued(&mut self, head: RtpHead, sequence: u16) -> Option<u64> {
        let highest = self.streams.highest(head.ssrc)?;
        let is_in_window = u64::from((highest as u16).wrapping_sub(sequence)) < super::streams::WINDOW;
        let is_confirmed = self.shift.ssrc == head.ssrc && self.shift.awaited == Some(head.sequence);
        if is_in_window {
            return None;
        }
        let next = highest + 1;
        let by = if self.shift.ssrc == head.ssrc { self.shift.by } else { 0 };
        self.shift = if is_confirmed {
            Shift { ssrc: head.ssrc, by: (next as u16).wrapping_sub(head.sequence), awaited: None }
        } else {
            Shift { ssrc: head.ssrc, by, awaited: Some(head.sequence.wrapping_add(1)) }
        };
        (is_confirmed && next >> 48 == 0).then_some(next)
    }
}

impl fmt::Debug for Outbound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Outbound").field("streams", &self.streams).finish_non_exhaustive()
    }
}
