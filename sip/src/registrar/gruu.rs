//! Globally routable user agent URIs (RFC 5627): addresses that reach one device of an address of record.
//!
//! A public GRUU shows the address of record and the device: `sip:1001@acme.test;gr=urn:uuid:…`. A temporary one shows
//! neither: its user part is encrypted, so it needs no memory, and each registration gets a new one. It is valid until
//! the device registers with another Call-ID (RFC 5627 §3.3), the registration expires, or the process ends.

use std::fmt::Write as _;

use hmac::{Hmac, KeyInit, Mac};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use crate::message::Uri;
use crate::registrar::Binding;

/// Creates and decrypts temporary GRUUs.
pub struct GruuKey {
    /// The MAC, initialised with the secret.
    mac: Option<Hmac<Sha256>>,
    issued: u64,
}

/// The device that a GRUU identifies within an address of record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Device {
    /// Identified by its `+sip.instance`.
    Instance(Mark),
    /// Identified by its `+sip.instance` and the Call-ID of its registrations.
    Registered(Mark),
}

/// The beginning of a hash.
type Mark = [u8; MARK_BYTES];

impl Device {
    /// The device of a public GRUU: one with a value in its `gr` parameter.
    pub fn of_public(uri: &Uri) -> Option<Self> {
        let urn = uri.param_decoded("gr").filter(|urn| !urn.is_empty())?;
        Some(Device::Instance(mark(&[&urn.to_ascii_lowercase()])))
    }

    /// Whether `binding` of `aor` belongs to it.
    pub fn is_of(&self, aor: &str, binding: &Binding) -> bool {
        let Some(urn) = binding.instance.as_deref().map(urn_of) else { return false };
        match self {
            Device::Instance(device) => mark(&[&urn]) == *device,
            Device::Registered(device) => mark(&[aor, &urn, &binding.call_id]) == *device,
        }
    }
}

impl GruuKey {
    /// With a random `secret` that only this process knows.
    pub fn new(secret: [u8; 32]) -> Self {
        // HMAC accepts a key of a block's length or less.
        GruuKey { mac: Hmac::new_from_slice(&secret).ok(), issued: 0 }
    }

    /// The parameters of the Contact of `binding` in the response to its REGISTER (RFC 5627 §5.2), each with its `;`.
    /// `None` when its device has no `+sip.instance`, or a very long one.
    pub fn contact_params(&mut self, aor: &str, binding: &Binding) -> Option<String> {
        let (user, domain) = aor.rsplit_once('@')?;
        let urn =
            binding.instance.as_deref().map(urn_of).filter(|urn| (1..=URN_LEN_MAX).contains(&urn.len()))?;
        let device = mark(&[aor, &urn, &binding.call_id]);
        let temporary = self.seal(user, device);
        let urn = escaped(&urn);
        Some(format!(";pub-gruu=\"sip:{user}@{domain};gr={urn}\";temp-gruu=\"sip:{temporary}@{domain};gr\""))
    }

    /// The user of the address of record and the device of a temporary GRUU; `None` for any other URI, and for a GRUU
    /// of another process.
    pub fn open(&self, uri: &Uri) -> Option<(String, Device)> {
        let sealed = uri.user_decoded()?;
        let bytes = bytes_of(sealed.strip_prefix(PREFIX)?)?;
        let (nonce, rest) = bytes.split_first_chunk::<NONCE_BYTES>()?;
        let (hidden, tag) = rest.split_last_chunk::<TAG_BYTES>()?;
        if !bool::from(self.tag(*nonce, hidden).ct_eq(tag)) {
            return None;
        }
        let mut plain = hidden.to_vec();
        self.mask(*nonce, &mut plain);
        let (device, user) = plain.split_first_chunk::<MARK_BYTES>()?;
        let user = user.iter().copied().take_while(|byte| *byte != 0).collect();
        Some((String::from_utf8(user).ok()?, Device::Registered(*device)))
    }

    /// The user part of a new temporary GRUU.
    fn seal(&mut self, user: &str, device: Mark) -> String {
        self.issued += 1;
        let nonce = self.issued.to_be_bytes();
        // All have one length, so that it does not reveal the length of the user.
        let mut hidden = device.to_vec();
        hidden.extend_from_slice(user.as_bytes());
        let blocks = user.len().div_ceil(USER_BLOCK).max(1);
        hidden.resize(MARK_BYTES + blocks * USER_BLOCK, 0);
        self.mask(nonce, &mut hidden);
        let mut text = PREFIX.to_owned();
        for byte in nonce.iter().chain(&hidden).chain(&self.tag(nonce, &hidden)) {
            // Writing to a String cannot fail.
            let _ = write!(text, "{byte:02x}");
        }
        text
    }

    /// Encrypts and decrypts with a key stream that is unique to each nonce.
    fn mask(&self, nonce: [u8; NONCE_BYTES], bytes: &mut [u8]) {
        for (block, chunk) in bytes.chunks_mut(32).enumerate() {
            let stream = self.hmac(&[b"stream", &nonce, &block.to_be_bytes()]);
            for (byte, with) in chunk.iter_mut().zip(stream) {
                *byte ^= with;
            }
        }
    }

    fn tag(&self, nonce: [u8; NONCE_BYTES], hidden: &[u8]) -> [u8; TAG_BYTES] {
        let full = self.hmac(&[b"tag", &nonce, hidden]);
        full.first_chunk().copied().unwrap_or_default()
    }

    fn hmac(&self, parts: &[&[u8]]) -> [u8; 32] {
        let Some(mut mac) = self.mac.clone() else { return [0; 32] };
        for part in parts {
            mac.update(part);
        }
        mac.finalize().into_bytes().into()
    }
}

/// The URN in a `+sip.instance`, without the angle brackets and in lower case: a UUID is case-insensitive.
fn urn_of(instance: &str) -> String {
    instance.trim().trim_start_matches('<').trim_end_matches('>').to_ascii_lowercase()
}

/// The mark of these texts.
fn mark(texts: &[&str]) -> Mark {
    let mut hash = Sha256::new();
    for text in texts {
        hash.update(text.len().to_be_bytes());
        hash.update(text.as_bytes());
    }
    let full: [u8; 32] = hash.finalize().into();
    full.first_chunk().copied().unwrap_or_default()
}

/// A URN as the value of a URI parameter.
fn escaped(urn: &str) -> String {
    let mut out = String::with_capacity(urn.len());
    for byte in urn.bytes() {
        if byte.is_ascii_alphanumeric() || b"-_.!~*'()[]/:&+$".contains(&byte) {
            out.push(char::from(byte));
        } else {
            // Writing to a String cannot fail.
            let _ = write!(out, "%{byte:02X}");
        }
    }
    out
}

/// The bytes of a text in hex; `None` for any other text.
fn bytes_of(hex: &str) -> Option<Vec<u8>> {
    let (pairs, []) = hex.as_bytes().as_chunks::<2>() else { return None };
    let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    pairs.iter().map(|[high, low]| Some(digit(*high)? * 16 + digit(*low)?)).collect()
}

const PREFIX: &str = "tgruu.";
const NONCE_BYTES: usize = 8;
const TAG_BYTES: usize = 16;
const MARK_BYTES: usize = 8;
/// Users up to this length give addresses of one length.
const USER_BLOCK: usize = 16;
/// Longer than any UUID.
const URN_LEN_MAX: usize = 128;

#[cfg(test)]
mod tests {
    use super::*;

    fn opened(key: &GruuKey, text: &str) -> Option<(String, Device)> {
        key.open(&Uri::parse(text).unwrap())
    }

    fn temporary(key: &mut GruuKey, user: &str, device: Mark) -> String {
        format!("sip:{}@acme.test;gr", key.seal(user, device))
    }

    #[test]
    fn a_temporary_gruu_shows_nothing_and_is_opened_by_its_process_alone() {
        let mut key = GruuKey::new([7; 32]);
        let (first, second) = (temporary(&mut key, "1001", [1; 8]), temporary(&mut key, "1001", [1; 8]));
        assert_ne!(first, second);
        assert_eq!(first.len(), temporary(&mut key, "100000000000001", [2; 8]).len());
        for text in [&first, &second] {
            assert!(!text.contains("1001"), "{text}");
            assert_eq!(opened(&key, text), Some(("1001".to_owned(), Device::Registered([1; 8]))));
            assert_eq!(opened(&GruuKey::new([8; 32]), text), None);
        }
    }

    #[test]
    fn what_was_changed_is_not_opened() {
        let mut key = GruuKey::new([7; 32]);
        let text = temporary(&mut key, "1001", [1; 8]);
        let (start, end) = ("sip:tgruu.".len(), text.find('@').unwrap());
        for at in start..end {
            let mut bytes = text.clone().into_bytes();
            bytes[at] = if bytes[at] == b'0' { b'1' } else { b'0' };
            assert_eq!(opened(&key, &String::from_utf8(bytes).unwrap()), None, "digit {at}");
        }
        for text in
            ["sip:1001@acme.test", "sip:tgruu.@acme.test", "sip:tgruu.0@acme.test", "sip:tgruu.zz@acme.test"]
        {
            assert_eq!(opened(&key, text), None, "{text}");
        }
    }

    #[test]
    fn any_instance_is_a_sound_parameter() {
        for urn in ["urn:uuid:F81D4FAE-7DEC-11D0-A765-00A0C91E6BF6", "a;b\"c>d e@f,ü"] {
            let uri = Uri::parse(&format!("sip:1001@acme.test;gr={}", escaped(urn))).unwrap();
            assert_eq!(Device::of_public(&uri), Some(Device::Instance(mark(&[&urn.to_ascii_lowercase()]))));
        }
        assert_eq!(Device::of_public(&Uri::parse("sip:tgruu.00@acme.test;gr").unwrap()), None);
    }
}
