//! The lines of `a=crypto` (RFC 4568): suites and keys.
//!
//! Not here: lines whose parameters change the packets, such as `UNENCRYPTED_SRTP`; those are not accepted.

use std::fmt;

use base64::Engine as _;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};

/// A supported suite of `a=crypto`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CryptoSuite {
    /// RFC 7714 §14.2.
    AeadAes128Gcm,
    /// RFC 7714 §14.2.
    AeadAes256Gcm,
    /// RFC 4568 §6.2.2.
    AesCm128HmacSha1Tag32,
    /// RFC 4568 §6.2.1.
    AesCm128HmacSha1Tag80,
}

impl CryptoSuite {
    /// Every suite.
    pub const ALL: [CryptoSuite; 4] = [
        CryptoSuite::AeadAes128Gcm,
        CryptoSuite::AeadAes256Gcm,
        CryptoSuite::AesCm128HmacSha1Tag32,
        CryptoSuite::AesCm128HmacSha1Tag80,
    ];

    /// The registered name.
    pub const fn as_str(self) -> &'static str {
        match self {
            CryptoSuite::AeadAes128Gcm => "AEAD_AES_128_GCM",
            CryptoSuite::AeadAes256Gcm => "AEAD_AES_256_GCM",
            CryptoSuite::AesCm128HmacSha1Tag32 => "AES_CM_128_HMAC_SHA1_32",
            CryptoSuite::AesCm128HmacSha1Tag80 => "AES_CM_128_HMAC_SHA1_80",
        }
    }

    /// The suite with this name, in any case.
    pub fn from_name(name: &str) -> Option<Self> {
        CryptoSuite::ALL.into_iter().find(|suite| suite.as_str().eq_ignore_ascii_case(name))
    }

    /// Bytes of the master key and its salt together.
    pub const fn material_bytes(self) -> usize {
        match self {
            CryptoSuite::AeadAes128Gcm => 16 + 12,
            CryptoSuite::AeadAes256Gcm => 32 + 12,
            CryptoSuite::AesCm128HmacSha1Tag32 | CryptoSuite::AesCm128HmacSha1Tag80 => 16 + 14,
        }
    }
}

/// One line of `a=crypto`: a suite, and the key of the side that wrote it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Crypto {
    /// Identifies the line in its description; an answer has the tag of the line that it accepts.
    pub tag: u32,
    /// The suite.
    pub suite: CryptoSuite,
    /// The master key and its salt.
    pub key: CryptoKey,
    /// Bytes of the master key identifier in each packet; usually none.
    pub mki_bytes: u8,
}

/// A master key and its salt, which are never printed.
#[derive(Clone, PartialEq, Eq)]
pub struct CryptoKey(Box<[u8]>);

impl CryptoKey {
    pub(super) fn new(material: Box<[u8]>) -> Self {
        CryptoKey(material)
    }

    /// The key and the salt in sequence.
    pub fn material(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for CryptoKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CryptoKey(..)")
    }
}

impl Crypto {
    /// Parses the value of `a=crypto`: `1 AES_CM_128_HMAC_SHA1_80 inline:PS1u…|2^20|1:4` (RFC 4568 §9.1); `None` for
    /// a line that cannot be accepted.
    ///
    /// The lifetime of the key is ignored, as in other implementations: at 50 packets a second, 2²⁰ packets take almost
    /// six hours.
    pub(super) fn parse(value: &str) -> Option<Self> {
        let mut fields = value.split_ascii_whitespace();
        let tag = fields.next().filter(|tag| tag.len() <= TAG_DIGITS_MAX)?.parse().ok()?;
        let suite = CryptoSuite::from_name(fields.next()?)?;
        let keys = fields.next()?;
        // An unknown parameter may be ignored only with a minus before it (RFC 4568 §6.3.7); WSH is a hint.
        if !fields.all(|parameter| parameter.starts_with('-') || parameter.starts_with("WSH=")) {
            return None;
        }
        let (method, info) = keys.split_once(':')?;
        // Several keys, each with an identifier, are not supported.
        if !method.eq_ignore_ascii_case("inline") || info.contains(';') {
            return None;
        }
        let mut parts = info.split('|');
        let material = BASE64.decode(parts.next()?).ok()?;
        if material.len() != suite.material_bytes() {
            return None;
        }
        let mki = parts.find_map(|part| part.split_once(':'));
        let mki_bytes = match mki {
            Some((_, len)) => len.parse().ok().filter(|len| (1..=MKI_BYTES_MAX).contains(len))?,
            None => 0,
        };
        Some(Crypto { tag, suite, key: CryptoKey(material.into()), mki_bytes })
    }

    /// Whether it is the same key, whatever the tag.
    pub(super) fn has_key_of(&self, other: &Crypto) -> bool {
        self.suite == other.suite && self.key == other.key
    }
}

impl fmt::Display for Crypto {
    /// The value of `a=crypto`; our own keys have no master key identifier.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} inline:{}", self.tag, self.suite.as_str(), BASE64.encode(&self.key.0))
    }
}

/// The keys of a leg after an exchange.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SrtpTerms {
    /// The party's key, for the packets that it sends.
    pub receive: Crypto,
    /// Our key, for the packets that we send.
    pub send: Crypto,
}

/// RFC 4568 §9.1.
const TAG_DIGITS_MAX: usize = 9;
/// RFC 4568 §6.1.
const MKI_BYTES_MAX: u8 = 128;
/// Some phones omit the padding.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

#[cfg(test)]
mod tests {
    use super::*;

    /// The key of the example in RFC 4568 §6.1.
    const KEY: &str = "WVNfX19zZW1jdGwgKCkgewkyMjA7fQp9CnVubGVz";

    #[test]
    fn lines_are_read_or_passed_over() {
        let table = [
            ("plain", format!("1 AES_CM_128_HMAC_SHA1_80 inline:{KEY}"), Some(0)),
            ("lifetime and identifier", format!("1 AES_CM_128_HMAC_SHA1_80 inline:{KEY}|2^20|1:4"), Some(4)),
            ("lifetime", format!("12 AES_CM_128_HMAC_SHA1_32 inline:{KEY}|1048576"), Some(0)),
            ("identifier", format!("1 AES_CM_128_HMAC_SHA1_80 inline:{KEY}|1:1"), Some(1)),
            ("lower case", format!("1 aes_cm_128_hmac_sha1_80 INLINE:{KEY}"), Some(0)),
            ("a hint", format!("1 AES_CM_128_HMAC_SHA1_80 inline:{KEY} WSH=128"), Some(0)),
            ("an optional parameter", format!("1 AES_CM_128_HMAC_SHA1_80 inline:{KEY} -X=1"), Some(0)),
            ("not encrypted", format!("1 AES_CM_128_HMAC_SHA1_80 inline:{KEY} UNENCRYPTED_SRTCP"), None),
            ("two keys", format!("1 AES_CM_128_HMAC_SHA1_80 inline:{KEY}|1:4;inline:{KEY}|2:4"), None),
            ("another suite", format!("1 F8_128_HMAC_SHA1_80 inline:{KEY}"), None),
            ("a key of another length", format!("1 AEAD_AES_128_GCM inline:{KEY}"), None),
            ("no key", "1 AES_CM_128_HMAC_SHA1_80".to_owned(), None),
            ("no base64", "1 AES_CM_128_HMAC_SHA1_80 inline:?".to_owned(), None),
            ("a long identifier", format!("1 AES_CM_128_HMAC_SHA1_80 inline:{KEY}|1:129"), None),
            ("a long tag", format!("1234567890 AES_CM_128_HMAC_SHA1_80 inline:{KEY}"), None),
            ("nothing", String::new(), None),
        ];
        for (name, line, expected) in table {
            let read = Crypto::parse(&line);
            assert_eq!(read.as_ref().map(|read| read.mki_bytes), expected, "{name}");
            if let Some(read) = read {
                assert_eq!(read.key.material()[..4], *b"YS__", "{name}");
                assert_eq!(Crypto::parse(&read.to_string()), Some(Crypto { mki_bytes: 0, ..read }), "{name}");
            }
        }
        let unpadded = Crypto::parse("1 AEAD_AES_128_GCM inline:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGw");
        assert_eq!(unpadded.unwrap().key.material().len(), 28);
    }
}
