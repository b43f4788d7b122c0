//! The two transforms, for the packets of one direction: AES-CM with HMAC-SHA1 (RFC 3711), and AES-GCM (RFC 7714).

use aes::Aes128;
use aes::cipher::{InnerIvInit, KeyInit, StreamCipher, StreamCipherCoreWrapper};
use ctr::CtrCore;
use ctr::flavors::Ctr128BE;
use hmac::{Hmac, Mac};
use ring::aead::{AES_128_GCM, AES_256_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use sha1::Sha1;

use super::derive::{Label, derive};
use super::layout::{ENCRYPTED, INDEX_BYTES, RTCP_HEAD_BYTES};
use super::{MasterKey, SrtpError, Suite};

/// The session keys of one direction, for RTP or for RTCP.
pub(super) enum Cipher {
    Cm(Cm),
    Gcm(Gcm),
}

/// Keys of AES-CM and HMAC-SHA1.
pub(super) struct Cm {
    aes: Aes128,
    salt: [u8; 14],
    mac: Hmac<Sha1>,
    tag_bytes: usize,
}

/// Keys of AES-GCM.
pub(super) struct Gcm {
    key: LessSafeKey,
    salt: [u8; 12],
}

impl Cipher {
    /// Derives the session keys; `None` when a library refuses the length of a key, which never happens.
    pub(super) fn derived(master: &MasterKey, is_rtcp: bool) -> Option<Cipher> {
        let suite = master.suite();
        let (mut key, mut salt, mut auth) = ([0; 32], [0; 14], [0; AUTH_KEY_BYTES]);
        let key = key.get_mut(..suite.key_bytes())?;
        let salt = salt.get_mut(..suite.salt_bytes())?;
        derive(master, Label::Encryption, is_rtcp, key);
        derive(master, Label::Salt, is_rtcp, salt);
        derive(master, Label::Authentication, is_rtcp, &mut auth);
        Cipher::new(suite, is_rtcp, key, salt, &auth)
    }

    /// The transform with these session keys.
    pub(super) fn new(suite: Suite, is_rtcp: bool, key: &[u8], salt: &[u8], auth: &[u8]) -> Option<Cipher> {
        let algorithm = match suite {
            Suite::AeadAes128Gcm => &AES_128_GCM,
            Suite::AeadAes256Gcm => &AES_256_GCM,
            Suite::AesCm128HmacSha1Tag32 | Suite::AesCm128HmacSha1Tag80 => {
                return Some(Cipher::Cm(Cm {
                    aes: Aes128::new_from_slice(key).ok()?,
                    salt: salt.try_into().ok()?,
                    mac: <Hmac<Sha1> as KeyInit>::new_from_slice(auth).ok()?,
                    tag_bytes: if is_rtcp { suite.rtcp_tag_bytes() } else { suite.rtp_tag_bytes() },
                }));
            }
        };
        let key = LessSafeKey::new(UnboundKey::new(algorithm, key).ok()?);
        Some(Cipher::Gcm(Gcm { key, salt: salt.try_into().ok()? }))
    }

    /// Protects the first `len` bytes of `buffer`, RTP with a header of `head` bytes; returns the new length.
    #[inline]
    pub(super) fn seal_rtp(
        &self,
        buffer: &mut [u8],
        (head, len): (usize, usize),
        (ssrc, index): (u32, u64),
    ) -> Option<usize> {
        match self {
            Cipher::Cm(cm) => {
                cm.crypt(ssrc, index, buffer.get_mut(head..len)?);
                cm.sign(buffer, len, &rollover(index))
            }
            Cipher::Gcm(gcm) => {
                let (clear, body) = buffer.get_mut(..len + GCM_TAG_BYTES)?.split_at_mut_checked(head)?;
                gcm.seal(gcm.rtp_nonce(ssrc, index), clear, body)?;
                Some(len + GCM_TAG_BYTES)
            }
        }
    }

    /// Authenticates and decrypts RTP with a header of `head` bytes; returns its length without tag and master key
    /// identifier. The body is undefined after an error.
    #[inline]
    pub(super) fn open_rtp(
        &self,
        datagram: &mut [u8],
        (head, mki_bytes): (usize, usize),
        (ssrc, index): (u32, u64),
    ) -> Result<usize, SrtpError> {
        match self {
            Cipher::Cm(cm) => {
                let len = before(datagram, cm.tag_bytes + mki_bytes, head)?;
                cm.verify(datagram, len, &rollover(index))?;
                cm.crypt(ssrc, index, datagram.get_mut(head..len).ok_or(SrtpError::Malformed)?);
                Ok(len)
            }
            Cipher::Gcm(gcm) => {
                let end = before(datagram, mki_bytes, head + GCM_TAG_BYTES)?;
                let parts = datagram.get_mut(..end).and_then(|whole| whole.split_at_mut_checked(head));
                let (clear, body) = parts.ok_or(SrtpError::Malformed)?;
                gcm.open(gcm.rtp_nonce(ssrc, index), clear, body)?;
                Ok(end - GCM_TAG_BYTES)
            }
        }
    }

    /// Protects the first `len` bytes of `buffer`, RTCP; returns the new length.
    pub(super) fn seal_rtcp(&self, buffer: &mut [u8], len: usize, ssrc: u32, index: u32) -> Option<usize> {
        let flagged = (index | ENCRYPTED).to_be_bytes();
        match self {
            Cipher::Cm(cm) => {
                cm.crypt(ssrc, index.into(), buffer.get_mut(RTCP_HEAD_BYTES..len)?);
                buffer.get_mut(len..len + INDEX_BYTES)?.copy_from_slice(&flagged);
                cm.sign(buffer, len + INDEX_BYTES, &[])
            }
            Cipher::Gcm(gcm) => {
                let end = len + GCM_TAG_BYTES;
                buffer.get_mut(end..end + INDEX_BYTES)?.copy_from_slice(&flagged);
                let (clear, body) = buffer.get_mut(..end)?.split_at_mut_checked(RTCP_HEAD_BYTES)?;
                gcm.seal(gcm.rtcp_nonce(ssrc, index), &rtcp_clear(clear, flagged)?, body)?;
                Some(end + INDEX_BYTES)
            }
        }
    }

    /// The flag and the index of an SRTCP packet, from its end.
    pub(super) fn rtcp_index(&self, datagram: &[u8], mki_bytes: usize) -> Result<u32, SrtpError> {
        let end = match self {
            Cipher::Cm(cm) => before(datagram, cm.tag_bytes + mki_bytes, RTCP_HEAD_BYTES + INDEX_BYTES)?,
            Cipher::Gcm(_) => before(datagram, mki_bytes, RTCP_HEAD_BYTES + GCM_TAG_BYTES + INDEX_BYTES)?,
        };
        let index = datagram.get(..end).and_then(|whole| whole.last_chunk());
        index.map(|index| u32::from_be_bytes(*index)).ok_or(SrtpError::Malformed)
    }

    /// Authenticates and decrypts RTCP; returns its length without index, tag and master key identifier. The body
    /// is undefined after an error.
    pub(super) fn open_rtcp(
        &self,
        datagram: &mut [u8],
        mki_bytes: usize,
        ssrc: u32,
        index: u32,
    ) -> Result<usize, SrtpError> {
        match self {
            Cipher::Cm(cm) => {
                let signed = before(datagram, cm.tag_bytes + mki_bytes, RTCP_HEAD_BYTES + INDEX_BYTES)?;
                cm.verify(datagram, signed, &[])?;
                let len = signed - INDEX_BYTES;
                let body = datagram.get_mut(RTCP_HEAD_BYTES..len).ok_or(SrtpError::Malformed)?;
                cm.crypt(ssrc, index.into(), body);
                Ok(len)
            }
            Cipher::Gcm(gcm) => {
                let tail = mki_bytes + INDEX_BYTES;
                let end = before(datagram, tail, RTCP_HEAD_BYTES + GCM_TAG_BYTES)?;
                let parts =
                    datagram.get_mut(..end).and_then(|whole| whole.split_at_mut_checked(RTCP_HEAD_BYTES));
                let (clear, body) = parts.ok_or(SrtpError::Malformed)?;
                let clear =
                    rtcp_clear(clear, (index | ENCRYPTED).to_be_bytes()).ok_or(SrtpError::Malformed)?;
                gcm.open(gcm.rtcp_nonce(ssrc, index), &clear, body)?;
                Ok(end - GCM_TAG_BYTES)
            }
        }
    }
}

impl Cm {
    /// Encrypts or decrypts; RFC 3711 §4.1.1.
    #[inline]
    fn crypt(&self, ssrc: u32, index: u64, body: &mut [u8]) {
        let mut counter = [0; 16];
        let salted = (u128::from(ssrc) << 64) ^ (u128::from(index) << 16);
        for ((byte, salt), mixed) in
            counter.iter_mut().zip(self.salt.iter().chain(&[0; 2])).zip(salted.to_be_bytes())
        {
            *byte = salt ^ mixed;
        }
        let core = CtrCore::<&Aes128, Ctr128BE>::inner_iv_init(&self.aes, &counter.into());
        StreamCipherCoreWrapper::from_core(core).apply_keystream(body);
    }

    /// Writes the tag of `buffer[..len]` after it; returns the length with the tag.
    #[inline]
    fn sign(&self, buffer: &mut [u8], len: usize, more: &[u8]) -> Option<usize> {
        let tag = self.mac_of(buffer.get(..len)?, more).finalize().into_bytes();
        let end = len + self.tag_bytes;
        buffer.get_mut(len..end)?.copy_from_slice(tag.get(..self.tag_bytes)?);
        Some(end)
    }

    /// Compares the tag at the end with that of `datagram[..len]`, in constant time.
    #[inline]
    fn verify(&self, datagram: &[u8], len: usize, more: &[u8]) -> Result<(), SrtpError> {
        let signed = datagram.get(..len).ok_or(SrtpError::Malformed)?;
        let tag = before(datagram, self.tag_bytes, 0)?;
        let tag = datagram.get(tag..).ok_or(SrtpError::Malformed)?;
        self.mac_of(signed, more).verify_truncated_left(tag).map_err(|_| SrtpError::Tag)
    }

    #[inline]
    fn mac_of(&self, signed: &[u8], more: &[u8]) -> Hmac<Sha1> {
        let mut mac = self.mac.clone();
        mac.update(signed);
        mac.update(more);
        mac
    }
}

impl Gcm {
    /// RFC 7714 §8.1.
    #[inline]
    fn rtp_nonce(&self, ssrc: u32, index: u64) -> Nonce {
        self.nonce((u128::from(ssrc) << 48) | u128::from(index))
    }

    /// RFC 7714 §9.1.
    fn rtcp_nonce(&self, ssrc: u32, index: u32) -> Nonce {
        self.nonce((u128::from(ssrc) << 48) | u128::from(index))
    }

    fn nonce(&self, mixed: u128) -> Nonce {
        let [_, _, _, _, mut nonce @ ..] = mixed.to_be_bytes();
        for (byte, salt) in nonce.iter_mut().zip(&self.salt) {
            *byte ^= salt;
        }
        Nonce::assume_unique_for_key(nonce)
    }

    /// Encrypts `body` except its last bytes, which become the tag.
    #[inline]
    fn seal(&self, nonce: Nonce, clear: &[u8], body: &mut [u8]) -> Option<()> {
        let (body, room) = body.split_at_mut_checked(body.len().checked_sub(GCM_TAG_BYTES)?)?;
        let tag = self.key.seal_in_place_separate_tag(nonce, Aad::from(clear), body).ok()?;
        room.copy_from_slice(tag.as_ref());
        Some(())
    }

    /// Authenticates and decrypts `body`, which ends with the tag.
    #[inline]
    fn open(&self, nonce: Nonce, clear: &[u8], body: &mut [u8]) -> Result<(), SrtpError> {
        self.key.open_in_place(nonce, Aad::from(clear), body).map(|_| ()).map_err(|_| SrtpError::Tag)
    }
}

/// The length of `datagram` without `tail` bytes at its end, if `least` bytes remain.
#[inline]
fn before(datagram: &[u8], tail: usize, least: usize) -> Result<usize, SrtpError> {
    datagram.len().checked_sub(tail).filter(|len| *len >= least).ok_or(SrtpError::Malformed)
}

/// The rollover counter of an index, which is authenticated with the packet.
#[inline]
fn rollover(index: u64) -> [u8; 4] {
    ((index >> 16) as u32).to_be_bytes()
}

/// The part of an SRTCP packet that is authenticated but not encrypted (RFC 7714 §9.2).
fn rtcp_clear(head: &[u8], flagged: [u8; INDEX_BYTES]) -> Option<[u8; RTCP_HEAD_BYTES + INDEX_BYTES]> {
    let mut clear = [0; RTCP_HEAD_BYTES + INDEX_BYTES];
    clear.first_chunk_mut::<RTCP_HEAD_BYTES>()?.copy_from_slice(head);
    clear.last_chunk_mut::<INDEX_BYTES>()?.copy_from_slice(&flagged);
    Some(clear)
}

/// HMAC-SHA1 has a key of 160 bits (RFC 3711 §8.2).
const AUTH_KEY_BYTES: usize = 20;
/// RFC 7714 §13.1.
const GCM_TAG_BYTES: usize = 16;
