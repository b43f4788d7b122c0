//! The STUN messages of connectivity checks (RFC 8489, RFC 8445 §7.1): reads and authenticates requests, writes
//! responses. Nothing here allocates.

use std::net::{IpAddr, SocketAddr};

use hmac::{Hmac, KeyInit, Mac};
use sha1::Sha1;

/// A Binding request whose integrity is proven.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Check {
    /// Identifies the request in its response.
    pub transaction: [u8; 12],
    /// The priority of the party's candidate (RFC 8445 §7.1.1).
    pub priority: u32,
    /// Whether the party nominates the pair (RFC 8445 §7.1.2).
    pub nominates: bool,
    /// Whether the party believes that we are the controlling agent (RFC 8445 §7.1.3).
    pub is_controlled: bool,
    /// The first attribute that requires comprehension and is unknown here.
    pub unknown: Option<u16>,
}

/// Why a datagram is not a check of the party; such a datagram is not answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StunError {
    /// It is not a Binding request.
    #[error("read a Binding request")]
    NoRequest,
    /// The user name or the integrity is missing or wrong.
    #[error("authenticate a Binding request")]
    Unauthenticated,
}

/// A response with the answer to a check, see [`Response::as_slice`].
#[derive(Clone, Copy, Debug)]
pub(super) struct Response {
    bytes: [u8; RESPONSE_BYTES_MAX],
    len: usize,
}

/// The answer to a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// 487: we are never the controlling agent.
    RoleConflict,
    /// The source of the check.
    Success(SocketAddr),
    /// 420: the attribute is not understood.
    Unknown(u16),
}

impl Check {
    /// Reads a Binding request to the agent with this user name and password.
    ///
    /// # Errors
    /// It is not such a request, or not authentic.
    pub fn read(datagram: &[u8], username: &str, password: &str) -> Result<Check, StunError> {
        let header = datagram.first_chunk::<HEADER_BYTES>().ok_or(StunError::NoRequest)?;
        let [k0, k1, l0, l1, c0, c1, c2, c3, transaction @ ..] = *header;
        let length = usize::from(u16::from_be_bytes([l0, l1]));
        let is_request = u16::from_be_bytes([k0, k1]) == BINDING_REQUEST
            && u32::from_be_bytes([c0, c1, c2, c3]) == COOKIE
            && length + HEADER_BYTES == datagram.len()
            && length % 4 == 0;
        if !is_request {
            return Err(StunError::NoRequest);
        }
        let mut check =
            Check { transaction, priority: 0, nominates: false, is_controlled: false, unknown: None };
        let (mut named, mut integrity) = (false, None);
        let mut at = HEADER_BYTES;
        while let Some((kind, value)) = attribute(datagram, at) {
            match kind {
                FINGERPRINT => {
                    let is_last = at + 8 == datagram.len();
                    let is_right = is_last && value == fingerprint(datagram.get(..at).unwrap_or_default());
                    return if is_right && named && integrity == Some(true) {
                        Ok(check)
                    } else {
                        Err(StunError::Unauthenticated)
                    };
                }
                // Attributes after the integrity are not protected by it.
                _ if integrity.is_some() => {}
                MESSAGE_INTEGRITY => {
                    let signed = datagram.get(..at).unwrap_or_default();
                    // The digest is computed only for the right user name, which precedes it.
                    let is_right =
                        || mac(signed, password).is_some_and(|mac| mac.verify_slice(value).is_ok());
                    integrity = Some(named && is_right());
                }
                USERNAME => named = value == username.as_bytes(),
                PRIORITY => {
                    check.priority = value.first_chunk().map_or(0, |bytes| u32::from_be_bytes(*bytes));
                }
                USE_CANDIDATE => check.nominates = true,
                ICE_CONTROLLED => check.is_controlled = true,
                unknown if unknown < OPTIONAL_FIRST => check.unknown = check.unknown.or(Some(unknown)),
                _ => {}
            }
            at += 4 + value.len().next_multiple_of(4);
        }
        Err(StunError::Unauthenticated)
    }
}

impl Response {
    /// The response to the request of `transaction`, authenticated by `password`.
    pub(super) fn new(transaction: [u8; 12], outcome: Outcome, password: &str) -> Response {
        let mut response = Response { bytes: [0; RESPONSE_BYTES_MAX], len: HEADER_BYTES };
        let kind = if matches!(outcome, Outcome::Success(_)) { BINDING_SUCCESS } else { BINDING_ERROR };
        response.put(0, &kind.to_be_bytes());
        response.put(4, &COOKIE.to_be_bytes());
        response.put(8, &transaction);
        match outcome {
            Outcome::RoleConflict => response.push(ERROR_CODE, &[0, 0, 4, 87]),
            Outcome::Success(source) => response.push_address(source, transaction),
            Outcome::Unknown(kind) => {
                response.push(ERROR_CODE, &[0, 0, 4, 20]);
                response.push(UNKNOWN_ATTRIBUTES, &kind.to_be_bytes());
            }
        }
        response.seal(password);
        response
    }

    /// The bytes to send.
    pub(super) fn as_slice(&self) -> &[u8] {
        self.bytes.get(..self.len).unwrap_or_default()
    }

    /// Adds the source of the request, which is masked because some routers rewrite addresses (RFC 8489 §14.2).
    fn push_address(&mut self, source: SocketAddr, transaction: [u8; 12]) {
        let mut mask = [0; 16];
        let (cookie, rest) = mask.split_at_mut(4);
        cookie.copy_from_slice(&COOKIE.to_be_bytes());
        rest.copy_from_slice(&transaction);
        let mut value = [0; 20];
        let port = source.port() ^ (COOKIE >> 16) as u16;
        let len = match source.ip().to_canonical() {
            IpAddr::V4(ip) => {
                value = fill(value, 4, &ip.octets(), &mask);
                8
            }
            IpAddr::V6(ip) => {
                value = fill(value, 4, &ip.octets(), &mask);
                20
            }
        };
        let [p0, p1] = port.to_be_bytes();
        let family = if len == 8 { 1 } else { 2 };
        if let Some(head) = value.first_chunk_mut::<4>() {
            *head = [0, family, p0, p1];
        }
        self.push(XOR_MAPPED_ADDRESS, value.get(..len).unwrap_or_default());
    }

    /// Adds MESSAGE-INTEGRITY and FINGERPRINT, which end the message.
    fn seal(&mut self, password: &str) {
        let mac = mac(self.as_slice(), password).map(|mac| mac.finalize().into_bytes());
        self.push(MESSAGE_INTEGRITY, mac.as_deref().unwrap_or(&[0; MAC_BYTES]));
        let crc = fingerprint(self.as_slice());
        self.push(FINGERPRINT, &crc);
    }

    /// Appends an attribute, padded to four bytes, and counts it in the header.
    fn push(&mut self, kind: u16, value: &[u8]) {
        let len = u16::try_from(value.len()).unwrap_or_default();
        self.put(self.len, &kind.to_be_bytes());
        self.put(self.len + 2, &len.to_be_bytes());
        self.put(self.len + 4, value);
        self.len += 4 + value.len().next_multiple_of(4);
        let body = u16::try_from(self.len - HEADER_BYTES).unwrap_or_default();
        self.put(2, &body.to_be_bytes());
    }

    fn put(&mut self, at: usize, bytes: &[u8]) {
        if let Some(place) = self.bytes.get_mut(at..at + bytes.len()) {
            place.copy_from_slice(bytes);
        }
    }
}

/// Whether a datagram is a Binding indication, by which an agent keeps its path open (RFC 8445 §11); it has no
/// integrity.
pub fn is_indication(datagram: &[u8]) -> bool {
    let Some([k0, k1, l0, l1, c0, c1, c2, c3, ..]) = datagram.first_chunk::<HEADER_BYTES>() else {
        return false;
    };
    u16::from_be_bytes([*k0, *k1]) == BINDING_INDICATION
        && u32::from_be_bytes([*c0, *c1, *c2, *c3]) == COOKIE
        && usize::from(u16::from_be_bytes([*l0, *l1])) + HEADER_BYTES == datagram.len()
}

/// A Binding request with these attributes, sealed with `password`, as a party sends it. For tests and clients.
pub fn write_request(transaction: [u8; 12], attributes: &[(u16, &[u8])], password: &str) -> Vec<u8> {
    let mut message = Vec::new();
    message.extend_from_slice(&BINDING_REQUEST.to_be_bytes());
    message.extend_from_slice(&[0, 0]);
    message.extend_from_slice(&COOKIE.to_be_bytes());
    message.extend_from_slice(&transaction);
    let push = |message: &mut Vec<u8>, kind: u16, value: &[u8]| {
        message.extend_from_slice(&kind.to_be_bytes());
        message.extend_from_slice(&u16::try_from(value.len()).unwrap_or_default().to_be_bytes());
        message.extend_from_slice(value);
        message.resize(message.len().next_multiple_of(4), 0);
        let body = u16::try_from(message.len() - HEADER_BYTES).unwrap_or_default().to_be_bytes();
        if let Some(length) = message.get_mut(2..4) {
            length.copy_from_slice(&body);
        }
    };
    for (kind, value) in attributes {
        push(&mut message, *kind, value);
    }
    if let Some(mac) = mac(&message, password) {
        push(&mut message, MESSAGE_INTEGRITY, &mac.finalize().into_bytes());
    }
    let crc = fingerprint(&message);
    push(&mut message, FINGERPRINT, &crc);
    message
}

/// `octets` under `mask`, from `at` on.
fn fill(mut value: [u8; 20], at: usize, octets: &[u8], mask: &[u8; 16]) -> [u8; 20] {
    let places = value.iter_mut().skip(at);
    for (place, (octet, mask)) in places.zip(octets.iter().zip(mask)) {
        *place = octet ^ mask;
    }
    value
}

/// The attribute at `at`; `None` at the end, or when the message ends within it.
fn attribute(message: &[u8], at: usize) -> Option<(u16, &[u8])> {
    let [k0, k1, l0, l1] = *message.get(at..)?.first_chunk::<4>()?;
    let length = usize::from(u16::from_be_bytes([l0, l1]));
    Some((u16::from_be_bytes([k0, k1]), message.get(at + 4..at + 4 + length)?))
}

/// The MAC over a message up to its MESSAGE-INTEGRITY; the length in the header includes that attribute (RFC 8489
/// §14.5).
fn mac(message: &[u8], password: &str) -> Option<Hmac<Sha1>> {
    let mut mac = Hmac::<Sha1>::new_from_slice(password.as_bytes()).ok()?;
    mac.update(message.get(..2)?);
    mac.update(&length_with(message, 4 + MAC_BYTES));
    mac.update(message.get(4..)?);
    Some(mac)
}

/// FINGERPRINT of a message up to it (RFC 8489 §14.7).
fn fingerprint(message: &[u8]) -> [u8; 4] {
    let mut crc = crc32fast::Hasher::new();
    crc.update(message.get(..2).unwrap_or_default());
    crc.update(&length_with(message, 8));
    crc.update(message.get(4..).unwrap_or_default());
    (crc.finalize() ^ FINGERPRINT_MASK).to_be_bytes()
}

/// The length field of a message to which `more` bytes are added.
fn length_with(message: &[u8], more: usize) -> [u8; 2] {
    let length = (message.len() + more).saturating_sub(HEADER_BYTES);
    u16::try_from(length).unwrap_or_default().to_be_bytes()
}

const BINDING_INDICATION: u16 = 0x0011;
const BINDING_REQUEST: u16 = 0x0001;
const BINDING_SUCCESS: u16 = 0x0101;
const BINDING_ERROR: u16 = 0x0111;
const COOKIE: u32 = 0x2112_a442;
const HEADER_BYTES: usize = 20;
/// Bytes of an HMAC-SHA1.
const MAC_BYTES: usize = 20;
const FINGERPRINT_MASK: u32 = 0x5354_554e;
/// The longest response: an IPv6 address, integrity and fingerprint.
const RESPONSE_BYTES_MAX: usize = 96;
/// Attributes from here on need not be understood (RFC 8489 §14).
const OPTIONAL_FIRST: u16 = 0x8000;
const USERNAME: u16 = 0x0006;
const MESSAGE_INTEGRITY: u16 = 0x0008;
const ERROR_CODE: u16 = 0x0009;
const UNKNOWN_ATTRIBUTES: u16 = 0x000a;
const XOR_MAPPED_ADDRESS: u16 = 0x0020;
const PRIORITY: u16 = 0x0024;
const USE_CANDIDATE: u16 = 0x0025;
const FINGERPRINT: u16 = 0x8028;
const ICE_CONTROLLED: u16 = 0x8029;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The request of RFC 5769 §2.1, with its user name and password.
    const SAMPLE: &str = "000100582112a442b7e7a701bc34d686fa87dfae802200105354554e207465737420636c69656e74\
        002400046e0001ff80290008932ff9b151263b36000600096576746a3a683676592020200008001\
        49aeaa70cbfd8cb56781ef2b5b2d3f249c1b571a280280004e57a3bcf";
    const NAME: &str = "evtj:h6vY";
    const PASSWORD: &str = "VOkJxbRl1RmTxUk/WvJxBt";

    fn sample() -> Vec<u8> {
        let digits: Vec<u8> = SAMPLE.bytes().filter(u8::is_ascii_hexdigit).collect();
        digits.chunks(2).map(|pair| u8::from_str_radix(str::from_utf8(pair).unwrap(), 16).unwrap()).collect()
    }

    #[test]
    fn the_sample_of_rfc_5769_is_authentic() {
        let check = Check::read(&sample(), NAME, PASSWORD).unwrap();
        assert_eq!((check.priority, check.nominates), (0x6e00_01ff, false));
        assert!(check.is_controlled && check.unknown.is_none());
        for (name, password) in [("evtj:h6vX", PASSWORD), (NAME, "VOkJxbRl1RmTxUk/WvJxBu"), ("", "")] {
            assert_eq!(Check::read(&sample(), name, password), Err(StunError::Unauthenticated), "{name}");
        }
    }

    #[test]
    fn every_changed_bit_is_noticed() {
        let sample = sample();
        for at in 0..sample.len() * 8 {
            let mut changed = sample.clone();
            changed[at / 8] ^= 1 << (at % 8);
            assert!(Check::read(&changed, NAME, PASSWORD).is_err(), "bit {at}");
        }
    }

    #[test]
    fn what_must_be_there_is_missed() {
        let name: (u16, &[u8]) = (USERNAME, NAME.as_bytes());
        let whole = write_request([7; 12], &[name, (USE_CANDIDATE, &[])], PASSWORD);
        assert!(Check::read(&whole, NAME, PASSWORD).unwrap().nominates);
        let without_print = |mut message: Vec<u8>| {
            message.truncate(message.len() - 8);
            let body = u16::try_from(message.len() - HEADER_BYTES).unwrap().to_be_bytes();
            message[2..4].copy_from_slice(&body);
            message
        };
        for (what, message, expected) in [
            ("no name", write_request([7; 12], &[], PASSWORD), StunError::Unauthenticated),
            ("no fingerprint", without_print(whole.clone()), StunError::Unauthenticated),
            ("an indication", [&[0, 0x11], &whole[2..]].concat(), StunError::NoRequest),
            ("a short one", whole[..19].to_vec(), StunError::NoRequest),
            ("more than its length", [&whole[..], &[0; 4]].concat(), StunError::NoRequest),
            ("nothing", Vec::new(), StunError::NoRequest),
        ] {
            assert_eq!(Check::read(&message, NAME, PASSWORD), Err(expected), "{what}");
        }
        let odd = write_request([7; 12], &[name, (0x7fff, b"x")], PASSWORD);
        assert_eq!(Check::read(&odd, NAME, PASSWORD).unwrap().unknown, Some(0x7fff));
    }

    #[test]
    fn a_response_has_the_source_under_its_mask() {
        // RFC 5769 §2.2 and §2.3, without their SOFTWARE.
        let transaction = *sample()[8..].first_chunk::<12>().unwrap();
        for (source, value) in [
            ("192.0.2.1:32853", "0001a147e112a643"),
            ("[2001:db8:1234:5678:11:2233:4455:6677]:32853", "0002a1470113a9faa5d3f179bc25f4b5bed2b9d9"),
            ("[::ffff:192.0.2.1]:32853", "0001a147e112a643"),
        ] {
            let outcome = Outcome::Success(source.parse().unwrap());
            let response = Response::new(transaction, outcome, PASSWORD);
            let bytes = response.as_slice();
            let hex: String =
                bytes[24..24 + value.len() / 2].iter().map(|byte| format!("{byte:02x}")).collect();
            assert_eq!(hex, value, "{source}");
            assert_eq!(usize::from(bytes[3]), bytes.len() - HEADER_BYTES);
            let signed = &bytes[..bytes.len() - 8 - 24];
            let tag = &bytes[bytes.len() - 28..bytes.len() - 8];
            mac(signed, PASSWORD).unwrap().verify_slice(tag).unwrap();
        }
    }

    proptest! {
        #[test]
        fn fuzz_requests_never_panic(
            bytes in prop::collection::vec(any::<u8>(), 0..200),
            name in "[a-z:]{0,9}",
        ) {
            prop_assert!(Check::read(&bytes, &name, PASSWORD).is_err());
            let mut framed = sample();
            framed.truncate(20);
            framed.extend(&bytes);
            let body = u16::try_from(bytes.len()).unwrap().to_be_bytes();
            framed[2..4].copy_from_slice(&body);
            prop_assert!(Check::read(&framed, &name, PASSWORD).is_err());
        }
    }
}
