//! ICE of a section (RFC 8839), and the DTLS-SRTP and BUNDLE of browsers (RFC 8842, RFC 8843).
//!
//! We are an ICE-lite agent: only the party sends checks (RFC 8445 §2.5), so calls do not use its candidates; the
//! analysis of captures does. For the same reason we never answer with `a=ice-mismatch` (RFC 8839 §4.2.5): if a
//! router rewrote the address of the section, but not its candidates, the checks arrive nevertheless.

use std::fmt;
use std::net::{IpAddr, SocketAddr};

use crate::text::Text;

/// The ICE lines and browser lines of a section.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Webrtc {
    /// `a=mid` (RFC 5888 §4).
    pub mid: Option<Text>,
    /// Whether the section is in a group of `a=group:BUNDLE` (RFC 8843).
    pub is_bundled: bool,
    /// ICE; `None` for a section that is refused or has no ICE, and for a DTLS profile without a certificate.
    pub transport: Option<IceTransport>,
}

/// ICE of a section, with or without DTLS, from its creator's view.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IceTransport {
    /// `a=ice-ufrag` and `a=ice-pwd`.
    pub ice: IceCredentials,
    /// `a=ice-lite`.
    pub is_lite: bool,
    /// The certificate, in a section with a DTLS profile.
    pub dtls: Option<Dtls>,
    /// The creator's candidates over UDP, at most 16 of a party; ours is one.
    pub candidates: Box<[IceCandidate]>,
}

/// A candidate over UDP (RFC 8839 §5.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IceCandidate {
    /// The address for RTP, component 1.
    pub rtp: SocketAddr,
    /// The address for RTCP, component 2; `None` when it shares the port of RTP.
    pub rtcp: Option<SocketAddr>,
}

/// DTLS of a section, from its creator's view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dtls {
    /// `a=fingerprint` of the certificate.
    pub fingerprint: Fingerprint,
    /// `a=setup`.
    pub setup: Setup,
}

/// The short-term credential of an agent (RFC 8839 §5.4); the password is never printed.
#[derive(Clone, PartialEq, Eq)]
pub struct IceCredentials {
    /// The user name fragment.
    pub ufrag: Text,
    /// The password.
    pub password: Text,
}

/// The SHA-256 digest of a certificate (RFC 8122 §5).
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Fingerprint(pub [u8; 32]);

/// The side that begins the DTLS handshake (RFC 4145 §4, RFC 5763 §5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Setup {
    /// The creator: it is the DTLS client.
    Active,
    /// The answerer decides.
    ActPass,
    /// The peer.
    Passive,
}

/// ICE of a leg after an exchange, from our view.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IceTerms {
    /// Our credential, with which the party checks.
    pub own: IceCredentials,
    /// The party's credential.
    pub theirs: IceCredentials,
    /// DTLS, when the keys come from its handshake.
    pub dtls: Option<DtlsTerms>,
    /// Our `a=mid`.
    pub(super) mid: Option<Text>,
    /// Whether our section is in a BUNDLE group.
    pub(super) is_bundled: bool,
}

/// DTLS of a leg after an exchange, from our view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DtlsTerms {
    /// The digest of the party's certificate.
    pub fingerprint: Fingerprint,
    /// Whether we are the DTLS client.
    pub is_client: bool,
}

impl Webrtc {
    /// The same for a refused section, which keeps its `a=mid`.
    pub(super) fn refused(&self) -> Option<Box<Webrtc>> {
        let mid = self.mid.clone()?;
        Some(Box::new(Webrtc { mid: Some(mid), is_bundled: false, transport: None }))
    }
}

impl IceCandidate {
    /// The candidates of the values of `a=candidate` lines. Those over TCP, with a name instead of an address, of
    /// further components and beyond the first 16 are left out.
    pub(super) fn parse<'a>(values: impl Iterator<Item = &'a str>) -> Box<[IceCandidate]> {
        let lines: Vec<CandidateLine<'_>> =
            values.filter_map(CandidateLine::parse).take(2 * CANDIDATES_MAX).collect();
        let of = |component: u8| lines.iter().filter(move |line| line.component == component);
        let candidates = of(1).take(CANDIDATES_MAX).map(|line| {
            // Both components of one base and one server have one foundation (RFC 8445 §5.1.1.3).
            let of_base = |other: &&CandidateLine<'_>| {
                other.foundation == line.foundation && other.address.ip() == line.address.ip()
            };
            IceCandidate { rtp: line.address, rtcp: of(2).find(of_base).map(|line| line.address) }
        });
        candidates.collect()
    }
}

/// What is used of an `a=candidate` line.
struct CandidateLine<'a> {
    foundation: &'a str,
    component: u8,
    address: SocketAddr,
}

impl<'a> CandidateLine<'a> {
    /// `1 1 UDP 2130706431 192.0.2.9 4000 typ host`.
    fn parse(value: &'a str) -> Option<Self> {
        let mut fields = value.split_ascii_whitespace();
        let (foundation, component, transport) = (fields.next()?, fields.next()?, fields.next()?);
        // The priority comes before the address.
        let (ip, port) =
            (fields.nth(1)?.parse::<IpAddr>().ok()?.to_canonical(), fields.next()?.parse().ok()?);
        let is_usable = transport.eq_ignore_ascii_case("udp") && port != 0 && !ip.is_unspecified();
        is_usable.then_some(CandidateLine {
            foundation,
            component: component.parse().ok()?,
            address: SocketAddr::new(ip, port),
        })
    }
}

impl IceCredentials {
    /// A credential of these two values; `None` when a length or a character violates RFC 8839 §5.4.
    pub fn new(ufrag: &str, password: &str) -> Option<Self> {
        let is_valid = |text: &str, shortest: usize| {
            let is_ice_char = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/');
            (shortest..=ICE_TEXT_MAX).contains(&text.len()) && text.bytes().all(is_ice_char)
        };
        (is_valid(ufrag, UFRAG_MIN) && is_valid(password, PASSWORD_MIN))
            .then(|| IceCredentials { ufrag: ufrag.into(), password: password.into() })
    }

    /// A credential from `random` bytes, of which six bits each are used.
    pub(super) fn of_random(random: &[u8; OWN_UFRAG + OWN_PASSWORD]) -> Self {
        let char_of = |byte: &u8| ICE_CHARS.get(usize::from(byte % 64)).map(|byte| char::from(*byte));
        let text: String = random.iter().filter_map(char_of).collect();
        let (ufrag, password) = text.split_at(OWN_UFRAG);
        IceCredentials { ufrag: ufrag.into(), password: password.into() }
    }
}

impl fmt::Debug for IceCredentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "IceCredentials({})", &*self.ufrag)
    }
}

impl Fingerprint {
    /// Reads the value of `a=fingerprint`: `sha-256 4A:AD:…`; `None` for another hash.
    pub fn parse(value: &str) -> Option<Self> {
        let (hash, digits) = value.trim().split_once(' ')?;
        if !hash.eq_ignore_ascii_case("sha-256") {
            return None;
        }
        let mut digest = [0; 32];
        let mut pairs = digits.trim().split(':');
        for byte in &mut digest {
            let pair = pairs.next().filter(|pair| pair.len() == 2 && !pair.starts_with('+'))?;
            *byte = u8::from_str_radix(pair, 16).ok()?;
        }
        pairs.next().is_none().then_some(Fingerprint(digest))
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("sha-256 ")?;
        for (place, byte) in self.0.iter().enumerate() {
            write!(f, "{}{byte:02X}", if place > 0 { ":" } else { "" })?;
        }
        Ok(())
    }
}

impl fmt::Debug for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Fingerprint({self})")
    }
}

impl Setup {
    /// Reads the value of `a=setup`; `None` for `holdconn`, which establishes no transport.
    pub(super) fn parse(value: &str) -> Option<Self> {
        match value.trim() {
            "active" => Some(Setup::Active),
            "actpass" => Some(Setup::ActPass),
            "passive" => Some(Setup::Passive),
            _ => None,
        }
    }

    fn as_str(self) -> &'static str {
        match self {
            Setup::Active => "active",
            Setup::ActPass => "actpass",
            Setup::Passive => "passive",
        }
    }

    /// Our answer to an offer with this setup: the server's role if we may choose. With the same certificate a leg
    /// keeps the role that it `had` (RFC 8842 §5.3).
    pub(super) fn answer(self, had: Option<Setup>) -> Setup {
        match self {
            Setup::Active => Setup::Passive,
            Setup::ActPass => had.unwrap_or(Setup::Passive),
            Setup::Passive => Setup::Active,
        }
    }
}

impl fmt::Display for Webrtc {
    /// The lines of the section; the lines of the session follow from them.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(mid) = &self.mid {
            write!(f, "a=mid:{mid}\r\n")?;
        }
        let Some(transport) = &self.transport else { return Ok(()) };
        let IceTransport { ice, dtls, candidates, .. } = transport;
        write!(f, "a=ice-ufrag:{}\r\na=ice-pwd:{}\r\n", ice.ufrag, ice.password)?;
        if let Some(Dtls { fingerprint, setup }) = dtls {
            write!(f, "a=fingerprint:{fingerprint}\r\na=setup:{}\r\n", setup.as_str())?;
        }
        for IceCandidate { rtp, rtcp } in candidates {
            for (component, address) in (1..).zip(std::iter::once(rtp).chain(rtcp)) {
                let (ip, port, priority) = (address.ip(), address.port(), HOST_PRIORITY + 1 - component);
                write!(f, "a=candidate:1 {component} udp {priority} {ip} {port} typ host\r\n")?;
            }
        }
        if !candidates.is_empty() {
            f.write_str("a=end-of-candidates\r\n")?;
        }
        Ok(())
    }
}

/// RFC 8839 §5.4.
const UFRAG_MIN: usize = 4;
/// RFC 8839 §5.4.
const PASSWORD_MIN: usize = 22;
/// RFC 8839 §5.4, for both.
const ICE_TEXT_MAX: usize = 256;
/// Characters of our user name fragments.
pub(super) const OWN_UFRAG: usize = 8;
/// Characters of our passwords: 144 bits.
pub(super) const OWN_PASSWORD: usize = 24;
/// Candidates of a section that are kept.
const CANDIDATES_MAX: usize = 16;
/// RFC 8839 §5.1, `ice-char`.
const ICE_CHARS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
/// The priority of a host candidate of component 1 with the highest local preference (RFC 8445 §5.1.2).
const HOST_PRIORITY: u32 = (126 << 24) + (65_535 << 8) + 255;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_have_the_lengths_and_characters_of_ice() {
        let long = "a".repeat(257);
        for (ufrag, password, is_valid) in [
            ("abcd", "ABCDEFGHIJKLMNOPQRST+/", true),
            ("abc", "ABCDEFGHIJKLMNOPQRST+/", false),
            ("abcd", "ABCDEFGHIJKLMNOPQRST+", false),
            ("ab d", "ABCDEFGHIJKLMNOPQRST+/", false),
            (&long, "ABCDEFGHIJKLMNOPQRST+/", false),
        ] {
            assert_eq!(IceCredentials::new(ufrag, password).is_some(), is_valid, "{ufrag} {password}");
        }
        let ours = IceCredentials::of_random(&std::array::from_fn(|at| (at * 9) as u8));
        assert_eq!(IceCredentials::new(&ours.ufrag, &ours.password), Some(ours.clone()));
        assert!(!format!("{ours:?}").contains(&*ours.password));
    }

    #[test]
    fn fingerprints_are_read_as_they_are_written() {
        let fingerprint = Fingerprint(std::array::from_fn(|at| (at * 7) as u8));
        let text = fingerprint.to_string();
        assert_eq!(Fingerprint::parse(&text), Some(fingerprint));
        assert_eq!(Fingerprint::parse(&text.to_lowercase()), Some(fingerprint));
        for wrong in [
            "sha-256",
            "sha-1 4A:AD",
            "sha-256 4A:AD",
            &format!("{text}:00"),
            &text.replace("00:", "+0:"),
            &text.replace(':', ""),
        ] {
            assert_eq!(Fingerprint::parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn the_server_role_is_chosen_and_a_role_is_kept() {
        use Setup::*;
        for (offered, had, answered) in [
            (ActPass, None, Passive),
            (ActPass, Some(Active), Active),
            (Active, Some(Active), Passive),
            (Passive, None, Active),
        ] {
            assert_eq!(offered.answer(had), answered, "{offered:?} {had:?}");
        }
    }
}
