//! Via: one hop of a message's path (RFC 3261 §20.42, RFC 3581).

use std::fmt;
use std::net::{IpAddr, SocketAddr};

use crate::message::scan::{self, Cursor, is_token};
use crate::message::{Host, Malformed, Params, host};

/// A transport name of Via or of `;transport=`: an open set.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "each variant is its name on the wire")]
pub enum Transport {
    Sctp,
    Tcp,
    Tls,
    Udp,
    Ws,
    Wss,
    /// An unknown transport, as it was written.
    Other(String),
}

impl Transport {
    /// Parses a transport name in any case.
    #[must_use]
    pub fn from_token(text: &str) -> Self {
        for (name, transport) in [
            ("UDP", Self::Udp),
            ("TCP", Self::Tcp),
            ("TLS", Self::Tls),
            ("WS", Self::Ws),
            ("WSS", Self::Wss),
            ("SCTP", Self::Sctp),
        ] {
            if text.eq_ignore_ascii_case(name) {
                return transport;
            }
        }
        Self::Other(text.to_owned())
    }

    /// The name as in Via.
    #[must_use]
    pub fn as_str(&self) -> &str {
        match self {
            Self::Sctp => "SCTP",
            Self::Tcp => "TCP",
            Self::Tls => "TLS",
            Self::Udp => "UDP",
            Self::Ws => "WS",
            Self::Wss => "WSS",
            Self::Other(name) => name,
        }
    }

    /// The default port: 5061 for TLS, 80 and 443 for WebSocket, otherwise 5060.
    #[must_use]
    pub const fn default_port(&self) -> u16 {
        match self {
            Self::Tls => 5_061,
            Self::Ws => 80,
            Self::Wss => 443,
            _ => 5_060,
        }
    }
}

impl fmt::Display for Transport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// One hop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Via {
    /// The transport over which the hop sent the message.
    pub transport: Transport,
    /// Sent-by: the address to which the hop wants its responses.
    pub host: Host,
    /// The port of sent-by, when one is written.
    pub port: Option<u16>,
    /// Branch, received, rport and others, raw.
    pub params: Params,
}

/// The prefix of every RFC 3261 branch (§8.1.1.7).
const MAGIC_COOKIE: &str = "z9hG4bK";

impl Via {
    /// A hop with a branch and an empty `rport`, as a client sends it (RFC 3581 §3).
    #[must_use]
    pub fn new(transport: Transport, host: Host, port: Option<u16>, branch: &str) -> Self {
        let mut params = Params::new();
        params.set("rport", None);
        params.set("branch", Some(branch));
        Self { transport, host, port, params }
    }

    /// Parses one hop.
    ///
    /// # Errors
    ///
    /// When the text is not one valid hop; a second one after a comma is an error too.
    pub fn parse(text: &str) -> Result<Self, Malformed> {
        let mut cursor = Cursor::new(text);
        let via = Self::take(&mut cursor)?;
        if cursor.is_done() { Ok(via) } else { Err(Malformed("Via")) }
    }

    /// Parses the next hop of a list; stops at its comma or at the end.
    pub(crate) fn take(cursor: &mut Cursor<'_>) -> Result<Self, Malformed> {
        let mut params = Params::new();
        let (transport, host, port) = take_parts(cursor, &mut |name, value| params.push(name, value))?;
        Ok(Self { transport: Transport::from_token(transport), host: Host::parse(host)?, port, params })
    }

    /// The branch; `None` when it is absent or empty, as from RFC 2543 elements.
    #[must_use]
    pub fn branch(&self) -> Option<&str> {
        self.params.get("branch").filter(|branch| !branch.is_empty())
    }

    /// Whether the branch follows RFC 3261, with the cookie and more after it, so that the branch alone
    /// identifies the transaction.
    #[must_use]
    pub fn has_rfc3261_branch(&self) -> bool {
        self.branch()
            .and_then(|branch| branch.strip_prefix(MAGIC_COOKIE))
            .is_some_and(|rest| !rest.is_empty())
    }

    /// The source address of the message, with or without brackets around IPv6 (RFC 5118 §4.5).
    #[must_use]
    pub fn received(&self) -> Option<IpAddr> {
        let text = self.params.get("received")?;
        let text = text.strip_prefix('[').and_then(|t| t.strip_suffix(']')).unwrap_or(text);
        text.parse().ok()
    }

    /// The source port of the message; `None` when it is absent or not filled in yet.
    #[must_use]
    pub fn rport(&self) -> Option<u16> {
        self.params.get("rport")?.parse().ok()
    }

    /// Whether the sender requests its port (RFC 3581).
    #[must_use]
    pub fn wants_rport(&self) -> bool {
        self.params.has("rport")
    }

    /// The port of sent-by, or the transport's default.
    #[must_use]
    pub const fn sent_by_port(&self) -> u16 {
        match self.port {
            Some(port) => port,
            None => self.transport.default_port(),
        }
    }

    /// The hop as the server stores it: with `received` when the source differs or `rport` was requested
    /// (§18.2.1, RFC 3581 §4).
    #[must_use]
    pub fn with_received_rport(mut self, source: SocketAddr) -> Self {
        let source_ip = source.ip().to_canonical();
        let wants_rport = self.wants_rport();
        if wants_rport {
            self.params.set("rport", Some(&source.port().to_string()));
        }
        if wants_rport || self.host.ip().map(|ip| ip.to_canonical()) != Some(source_ip) {
            self.params.set("received", Some(&source_ip.to_string()));
        } else {
            // A sender that fills in its own `received` could redirect the responses.
            self.params.remove("received");
        }
        self
    }
}

/// The parts of one hop that select a transaction and its route, borrowed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Hop<'a> {
    transport: &'a str,
    host: &'a str,
    port: Option<u16>,
    branch: Option<&'a str>,
    rport: Option<Option<&'a str>>,
    received: Option<Option<&'a str>>,
}

impl<'a> Hop<'a> {
    /// Parses one hop; a second one after a comma is an error.
    pub(crate) fn parse(text: &'a str) -> Result<Self, Malformed> {
        let mut cursor = Cursor::new(text);
        let hop = Self::take(&mut cursor)?;
        if cursor.is_done() { Ok(hop) } else { Err(Malformed("Via")) }
    }

    /// Parses the next hop of a list; stops at its comma or at the end.
    pub(crate) fn take(cursor: &mut Cursor<'a>) -> Result<Self, Malformed> {
        let (mut branch, mut rport, mut received) = (None, None, None);
        let (transport, host, port) = take_parts(cursor, &mut |name, value| {
            let first = |place: &mut Option<Option<&'a str>>, wanted: &str| {
                if place.is_none() && name.eq_ignore_ascii_case(wanted) {
                    *place = Some(value);
                }
            };
            first(&mut branch, "branch");
            first(&mut rport, "rport");
            first(&mut received, "received");
        })?;
        Ok(Self { transport, host, port, branch: branch.flatten(), rport, received })
    }

    /// As [`Via::branch`].
    pub(crate) fn branch(&self) -> Option<&'a str> {
        self.branch.filter(|branch| !branch.is_empty())
    }

    /// The branch, if it identifies the transaction; see [`Via::has_rfc3261_branch`].
    pub(crate) fn rfc3261_branch(&self) -> Option<&'a str> {
        self.branch().filter(|branch| branch.strip_prefix(MAGIC_COOKIE).is_some_and(|rest| !rest.is_empty()))
    }

    /// Writes sent-by as it was written, with a lower-case host; the colon is always written.
    pub(crate) fn write_sent_by(&self, out: &mut impl fmt::Write) -> fmt::Result {
        match Host::parse(self.host) {
            Ok(Host::Name(_)) | Err(_) => {
                self.host.chars().try_for_each(|c| out.write_char(c.to_ascii_lowercase()))?;
            }
            Ok(address) => write!(out, "{address}")?,
        }
        match self.port {
            Some(port) => write!(out, ":{port}"),
            None => out.write_str(":"),
        }
    }

    /// Where responses go over an unreliable transport: to the source; to its port only if the sender requests
    /// that (§18.2.2, RFC 3581 §4).
    pub(crate) fn response_to(&self, source: SocketAddr) -> SocketAddr {
        if self.rport.is_some() {
            return source;
        }
        let port = self.port.unwrap_or_else(|| Transport::from_token(self.transport).default_port());
        SocketAddr::new(source.ip(), port)
    }

    /// Whether `received` is needed: the source differs from sent-by, or `rport` was requested.
    fn needs_received(&self, source: IpAddr) -> bool {
        let of_host = Host::parse(self.host).ok().and_then(|host| host.ip());
        self.rport.is_some() || of_host.map(|ip| ip.to_canonical()) != Some(source)
    }

    /// Whether the hop stays unchanged when the server stores the source.
    pub(crate) fn is_noted(&self, source: SocketAddr) -> bool {
        let ip = source.ip().to_canonical();
        let is = |value: Option<Option<&str>>, text: String| value.flatten() == Some(text.as_str());
        let has_port =
            self.rport.is_none_or(|value| value.is_some() && is(Some(value), source.port().to_string()));
        let has_ip = match self.needs_received(ip) {
            true => self.received.is_some() && is(self.received, ip.to_string()),
            // A sender that fills in its own `received` could redirect the responses.
            false => self.received.is_none(),
        };
        has_port && has_ip
    }
}

/// The top hop of a line as the server stores it, followed by the rest of the line; see
/// [`Via::with_received_rport`].
pub(crate) struct Noted<'a> {
    pub(crate) line: &'a str,
    pub(crate) source: SocketAddr,
}

impl fmt::Display for Noted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let hop = Hop::take(&mut Cursor::new(self.line)).map_err(|_| fmt::Error)?;
        let ip = self.source.ip().to_canonical();
        let needs_received = hop.needs_received(ip);
        write!(f, "SIP/2.0/{}", Transport::from_token(hop.transport))?;
        match Host::parse(hop.host).map_err(|_| fmt::Error)? {
            Host::Name(name) => write!(f, " {name}")?,
            address => write!(f, " {address}")?,
        }
        if let Some(port) = hop.port {
            write!(f, ":{port}")?;
        }
        let (mut has_rport, mut has_received, mut outcome) = (false, false, Ok(()));
        let mut cursor = Cursor::new(self.line);
        let mut param = |name: &str, value: Option<&str>| {
            if name.eq_ignore_ascii_case("rport") && !std::mem::replace(&mut has_rport, true) {
                return write!(f, ";{name}={}", self.source.port());
            }
            if name.eq_ignore_ascii_case("received") {
                if !needs_received {
                    return Ok(());
                }
                if !std::mem::replace(&mut has_received, true) {
                    return write!(f, ";{name}={ip}");
                }
            }
            match value {
                Some(value) => write!(f, ";{name}={value}"),
                None => write!(f, ";{name}"),
            }
        };
        let parsed = take_parts(&mut cursor, &mut |name, value| {
            if outcome.is_ok() {
                outcome = param(name, value);
            }
        });
        parsed.map_err(|_| fmt::Error)?;
        outcome?;
        if needs_received && !has_received {
            write!(f, ";received={ip}")?;
        }
        f.write_str(cursor.rest())
    }
}

impl std::str::FromStr for Via {
    type Err = Malformed;

    fn from_str(text: &str) -> Result<Self, Malformed> {
        Self::parse(text)
    }
}

impl fmt::Display for Via {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SIP/2.0/{} {}", self.transport, self.host)?;
        if let Some(port) = self.port {
            write!(f, ":{port}")?;
        }
        self.params.fmt(f)
    }
}

/// Parses one hop: transport, host and port; the parameters go to `sink`.
pub(crate) fn take_parts<'a>(
    cursor: &mut Cursor<'a>,
    sink: &mut impl FnMut(&'a str, Option<&'a str>),
) -> Result<(&'a str, &'a str, Option<u16>), Malformed> {
    cursor.skip_space();
    let protocol = cursor.token();
    let slashed = cursor.eat_spaced(b'/');
    let version = cursor.token();
    if !protocol.eq_ignore_ascii_case("SIP") || !slashed || version != "2.0" || !cursor.eat_spaced(b'/') {
        return Err(Malformed("Via"));
    }
    let transport = cursor.token();
    if !is_token(transport.as_bytes()) || !matches!(cursor.peek(), Some(b' ' | b'\t')) {
        return Err(Malformed("Via"));
    }
    cursor.skip_space();
    let (host, port) = host::take(cursor, true)?;
    scan::params(cursor, sink)?;
    Ok((transport, host, port))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hops_read_and_print() {
        let via = Via::parse("SIP / 2.0/udp h : 5070 ;branch = z9hG4bKa; x=\"a;b\" ").unwrap();
        assert_eq!(via.to_string(), "SIP/2.0/UDP h:5070;branch=z9hG4bKa;x=\"a;b\"");
        for text in [
            "",
            "SIP/2.0/UDP",
            "SIP/2.0/UDP ",
            "SIP/2.0 h",
            "SIP/3.0/UDP h",
            "HTTP/2.0/UDP h",
            "SIP/2.0/UDP h;",
            "SIP/2.0/UDP h;;a",
            "SIP/2.0/UDP h,",
            "SIP/2.0/UDP h;a GARBAGE",
            "SIP/2.0/UDP h h",
            "SIP/2.0/UDP ::1",
            "SIP/2.0/UDP h:0x10",
            "SIP/2.0/UDP h;a=\"b",
            "SIP/2.0/UDP h, SIP/2.0/UDP g",
        ] {
            assert!(Via::parse(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn the_server_notes_where_a_hop_really_is() {
        let source: SocketAddr = "192.0.2.9:1024".parse().unwrap();
        for (name, text, expected) in [
            (
                "rport asked",
                "SIP/2.0/UDP 10.0.0.1;rport",
                "SIP/2.0/UDP 10.0.0.1;rport=1024;received=192.0.2.9",
            ),
            ("not asked", "SIP/2.0/UDP 10.0.0.1", "SIP/2.0/UDP 10.0.0.1;received=192.0.2.9"),
            ("same address", "SIP/2.0/UDP 192.0.2.9:5060", "SIP/2.0/UDP 192.0.2.9:5060"),
            ("a name", "SIP/2.0/UDP pbx.example", "SIP/2.0/UDP pbx.example;received=192.0.2.9"),
            ("forged", "SIP/2.0/UDP 192.0.2.9;received=203.0.113.1", "SIP/2.0/UDP 192.0.2.9"),
        ] {
            assert_eq!(Via::parse(text).unwrap().with_received_rport(source).to_string(), expected, "{name}");
        }
        let mapped: SocketAddr = "[::ffff:192.0.2.9]:1024".parse().unwrap();
        let via = Via::parse("SIP/2.0/UDP 192.0.2.9").unwrap().with_received_rport(mapped);
        assert_eq!(via.received(), None, "a mapped address is the IPv4 address it maps");
    }

    #[test]
    fn a_borrowed_hop_is_noted_as_a_parsed_one() {
        for source in ["192.0.2.9:1024", "[2001:db8::9]:5060", "[::ffff:192.0.2.9]:7"] {
            let source: SocketAddr = source.parse().unwrap();
            for line in [
                "SIP/2.0/UDP 10.0.0.1;rport;branch=z9hG4bK1",
                "SIP/2.0/UDP 192.0.2.9:5060;branch=z9hG4bK1",
                "SIP/2.0/UDP 192.0.2.9;received=203.0.113.1;branch=z9hG4bK1;RECEIVED=a",
                "SIP / 2.0 / udp  pbx.Example : 5070 ; rport = 1024 ; x=\"a;b\";rport",
                "SIP/2.0/UDP 10.0.0.1;rport=1024;received=192.0.2.9",
                "SIP/2.0/TCP [2001:DB8::9];rport=5060;received=2001:db8::9;rport=2",
                "SIP/2.0/WSS a.invalid;branch=,SIP/2.0/UDP b;branch=z9hG4bK2",
                "SIP/2.0/foo a.invalid;received, SIP/2.0/UDP b",
            ] {
                let mut cursor = Cursor::new(line);
                let top = Via::take(&mut cursor).unwrap();
                let noted = top.clone().with_received_rport(source);
                let hop = Hop::take(&mut Cursor::new(line)).unwrap();
                assert_eq!(hop.is_noted(source), noted == top, "{line} {source}");
                assert_eq!(Noted { line, source }.to_string(), format!("{noted}{}", cursor.rest()), "{line}");
                assert_eq!(hop.branch(), top.branch(), "{line}");
                assert_eq!(hop.rfc3261_branch().is_some(), top.has_rfc3261_branch(), "{line}");
                let port = if top.wants_rport() { source.port() } else { top.sent_by_port() };
                assert_eq!(hop.response_to(source), SocketAddr::new(source.ip(), port), "{line}");
                let mut sent_by = String::new();
                hop.write_sent_by(&mut sent_by).unwrap();
                let port = top.port.map_or_else(String::new, |port| port.to_string());
                assert_eq!(
                    sent_by,
                    format!("{}:{port}", top.host.to_string().to_ascii_lowercase()),
                    "{line}"
                );
            }
        }
    }

    #[test]
    fn branches_of_rfc3261() {
        for (text, branch, is_rfc3261) in [
            ("SIP/2.0/UDP h;branch=z9hG4bKx", Some("z9hG4bKx"), true),
            ("SIP/2.0/UDP h;branch=z9hG4bK", Some("z9hG4bK"), false),
            ("SIP/2.0/UDP h;branch=1", Some("1"), false),
            ("SIP/2.0/UDP h;branch=", None, false),
            ("SIP/2.0/UDP h", None, false),
        ] {
            let via = Via::parse(text).unwrap();
            assert_eq!((via.branch(), via.has_rfc3261_branch()), (branch, is_rfc3261), "{text}");
        }
    }
}
