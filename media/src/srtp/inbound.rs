//! Packets from a party: authenticated, then decrypted in place.

use std::fmt;

use super::cipher::Cipher;
use super::layout::{ENCRYPTED, RtpHead, rtcp_ssrc};
use super::streams::Streams;
use super::{MasterKey, SrtpError};

/// The receiving side of one key.
///
/// ```
/// use sidetone_media::srtp::{Inbound, MasterKey, Outbound, Suite};
///
/// let key = MasterKey::new(Suite::AeadAes128Gcm, &[7; 28]).ok_or("a key has 16 bytes and a salt 12")?;
/// let (mut sender, mut receiver) = (Outbound::new(&key), Inbound::new(&key));
/// let mut buffer = [0_u8; 200];
/// buffer[0] = 0x80;
/// let len = sender.protect(&mut buffer, 172)?;
/// assert_eq!(receiver.unprotect(&mut buffer[..len])?, 172);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Inbound {
    /// `None` when the keys were not usable: then every packet is refused.
    ciphers: Option<(Cipher, Cipher)>,
    mki_bytes: usize,
    rtp: Streams,
    rtcp: Streams,
}

impl Inbound {
    /// Derives the session keys of `key`; no packet has arrived yet.
    pub fn new(key: &MasterKey) -> Inbound {
        let ciphers = Cipher::derived(key, false).zip(Cipher::derived(key, true));
        Inbound { ciphers, mki_bytes: key.mki_bytes(), rtp: Streams::new(), rtcp: Streams::new() }
    }

    #[cfg(test)]
    pub(super) fn with_ciphers(rtp: Cipher, rtcp: Cipher) -> Inbound {
        let ciphers = Some((rtp, rtcp));
        Inbound { ciphers, mki_bytes: 0, rtp: Streams::new(), rtcp: Streams::new() }
    }

    /// Authenticates an SRTP packet and decrypts it in place; returns the length of the RTP packet.
    ///
    /// # Errors
    /// The packet is not to be used, and its bytes are undefined.
    #[inline]
    pub fn unprotect(&mut self, datagram: &mut [u8]) -> Result<usize, SrtpError> {
        let (cipher, _) = self.ciphers.as_ref().ok_or(SrtpError::Tag)?;
        let head = RtpHead::read(datagram).ok_or(SrtpError::Malformed)?;
        let index = self.rtp.index_of(head.ssrc, head.sequence)?;
        let len = cipher.open_rtp(datagram, (head.bytes, self.mki_bytes), (head.ssrc, index))?;
        self.rtp.came(head.ssrc, index);
        Ok(len)
    }

    /// Authenticates an SRTCP packet and decrypts it in place; returns the length of the RTCP packet.
    ///
    /// A packet that is not encrypted is refused: no `a=crypto` line with `UNENCRYPTED_SRTCP` is ever accepted.
    ///
    /// # Errors
    /// The packet is not to be used, and its bytes are undefined.
    pub fn unprotect_rtcp(&mut self, datagram: &mut [u8]) -> Result<usize, SrtpError> {
        let (_, cipher) = self.ciphers.as_ref().ok_or(SrtpError::Tag)?;
        let ssrc = rtcp_ssrc(datagram).ok_or(SrtpError::Malformed)?;
        let flagged = cipher.rtcp_index(datagram, self.mki_bytes)?;
        let index = flagged.checked_sub(ENCRYPTED).ok_or(SrtpError::Tag)?;
        self.rtcp.admits(ssrc, index.into())?;
        let len = cipher.open_rtcp(datagram, self.mki_bytes, ssrc, index)?;
        self.rtcp.came(ssrc, index.into());
        Ok(len)
    }
}

impl fmt::Debug for Inbound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Inbound").field("rtp", &self.rtp).field("rtcp", &self.rtcp).finish_non_exhaustive()
    }
}
