//! The crypto suites.

/// A crypto suite: cipher, authentication and lengths.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Suite {
    /// `AEAD_AES_128_GCM` (RFC 7714).
    AeadAes128Gcm,
    /// `AEAD_AES_256_GCM` (RFC 7714).
    AeadAes256Gcm,
    /// `AES_CM_128_HMAC_SHA1_32` (RFC 4568 §6.2.2): tags of 32 bits for RTP, of 80 bits for RTCP.
    AesCm128HmacSha1Tag32,
    /// `AES_CM_128_HMAC_SHA1_80` (RFC 4568 §6.2.1), which every phone with SRTP has.
    AesCm128HmacSha1Tag80,
}

impl Suite {
    /// Every suite.
    pub const ALL: [Suite; 4] = [
        Suite::AeadAes128Gcm,
        Suite::AeadAes256Gcm,
        Suite::AesCm128HmacSha1Tag32,
        Suite::AesCm128HmacSha1Tag80,
    ];

    /// The name in `a=crypto`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Suite::AeadAes128Gcm => "AEAD_AES_128_GCM",
            Suite::AeadAes256Gcm => "AEAD_AES_256_GCM",
            Suite::AesCm128HmacSha1Tag32 => "AES_CM_128_HMAC_SHA1_32",
            Suite::AesCm128HmacSha1Tag80 => "AES_CM_128_HMAC_SHA1_80",
        }
    }

    /// The suite with this name, in any case.
    pub fn from_name(name: &str) -> Option<Suite> {
        Suite::ALL.into_iter().find(|suite| suite.as_str().eq_ignore_ascii_case(name))
    }

    /// Bytes of the master key, and of the session keys that are derived from it.
    pub const fn key_bytes(self) -> usize {
        match self {
            Suite::AeadAes256Gcm => 32,
            Suite::AeadAes128Gcm | Suite::AesCm128HmacSha1Tag32 | Suite::AesCm128HmacSha1Tag80 => 16,
        }
    }

    /// Bytes of the salts.
    pub const fn salt_bytes(self) -> usize {
        match self {
            Suite::AeadAes128Gcm | Suite::AeadAes256Gcm => 12,
            Suite::AesCm128HmacSha1Tag32 | Suite::AesCm128HmacSha1Tag80 => 14,
        }
    }

    /// Bytes of a tag of RTP.
    pub(super) const fn rtp_tag_bytes(self) -> usize {
        match self {
            Suite::AeadAes128Gcm | Suite::AeadAes256Gcm => 16,
            Suite::AesCm128HmacSha1Tag32 => 4,
            Suite::AesCm128HmacSha1Tag80 => 10,
        }
    }

    /// Bytes of a tag of RTCP.
    pub(super) const fn rtcp_tag_bytes(self) -> usize {
        match self {
            Suite::AeadAes128Gcm | Suite::AeadAes256Gcm => 16,
            Suite::AesCm128HmacSha1Tag32 | Suite::AesCm128HmacSha1Tag80 => 10,
        }
    }
}
