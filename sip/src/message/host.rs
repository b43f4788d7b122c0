//! Host and port in URIs and Via (RFC 3261 §25.1, RFC 5954 for IPv6).

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use crate::message::Malformed;
use crate::message::scan::{Cursor, number};

/// A host: a domain name as it was written, or an address.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Host {
    /// A domain name; [`Host::is_equivalent`] compares it case-insensitively.
    Name(String),
    /// An IPv4 address.
    V4(Ipv4Addr),
    /// An IPv6 address; written in brackets.
    V6(Ipv6Addr),
}

impl Host {
    /// Parses a host; IPv6 addresses are in brackets.
    ///
    /// # Errors
    ///
    /// When the text is neither an address nor consists of characters of a domain name.
    pub fn parse(text: &str) -> Result<Self, Malformed> {
        check(text)?;
        if let Some(inner) = text.strip_prefix('[').and_then(|t| t.strip_suffix(']')) {
            return parse_v6(inner).map(Self::V6).ok_or(Malformed("host"));
        }
        Ok(text.parse().map_or_else(|_| Self::Name(text.to_owned()), Self::V4))
    }

    /// The address, when the host is one.
    #[must_use]
    pub const fn ip(&self) -> Option<IpAddr> {
        match self {
            Self::Name(_) => None,
            Self::V4(ip) => Some(IpAddr::V4(*ip)),
            Self::V6(ip) => Some(IpAddr::V6(*ip)),
        }
    }

    /// Whether both are the same host; names compare case-insensitively.
    #[must_use]
    pub fn is_equivalent(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Name(a), Self::Name(b)) => a.eq_ignore_ascii_case(b),
            (a, b) => a == b,
        }
    }
}

impl From<IpAddr> for Host {
    fn from(ip: IpAddr) -> Self {
        match ip {
            IpAddr::V4(ip) => Self::V4(ip),
            IpAddr::V6(ip) => Self::V6(ip),
        }
    }
}

impl From<SocketAddr> for Host {
    fn from(addr: SocketAddr) -> Self {
        Self::from(addr.ip())
    }
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => f.write_str(name),
            Self::V4(ip) => ip.fmt(f),
            Self::V6(ip) => write!(f, "[{ip}]"),
        }
    }
}

/// Checks what [`Host::parse`] accepts, without creating it.
pub(crate) fn check(text: &str) -> Result<(), Malformed> {
    let sound = match text.strip_prefix('[') {
        Some(rest) => rest.strip_suffix(']').is_some_and(|t| parse_v6(t).is_some()),
        None => {
            !text.is_empty()
                && text.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'-' | b'_'))
        }
    };
    if sound { Ok(()) } else { Err(Malformed("host")) }
}

/// A byte of a domain name; the underscore is not allowed, but too many names contain it to refuse it.
const fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_')
}

/// Parses an IPv6 address, also with the third colon that the grammar of RFC 3261 has before an IPv4 part and
/// that RFC 5118 §4.10 asks to tolerate.
fn parse_v6(text: &str) -> Option<Ipv6Addr> {
    match text.parse() {
        Ok(ip) => Some(ip),
        Err(_) if text.contains('.') && text.contains(":::") => text.replacen(":::", "::", 1).parse().ok(),
        Err(_) => None,
    }
}

/// Parses a host and an optional port; white space around the colon is allowed only in Via.
pub(crate) fn take<'a>(cursor: &mut Cursor<'a>, spaced: bool) -> Result<(&'a str, Option<u16>), Malformed> {
    let bracketed = cursor.peek() == Some(b'[');
    let host = if bracketed {
        let mut is_open = true;
        cursor.take_while(|b| std::mem::replace(&mut is_open, b != b']'))
    } else {
        cursor.take_while(is_name_byte)
    };
    if host.is_empty() {
        return Err(Malformed("host"));
    }
    if bracketed {
        check(host)?;
    }
    let colon = if spaced { cursor.eat_spaced(b':') } else { cursor.eat(b':') };
    if !colon {
        return Ok((host, None));
    }
    let digits = cursor.take_while(|b| b.is_ascii_digit());
    let port = number(digits).and_then(|port| u16::try_from(port).ok()).ok_or(Malformed("port"))?;
    Ok((host, Some(port)))
}
