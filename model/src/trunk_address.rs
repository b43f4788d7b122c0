//! The server of a trunk: the part of a SIP URI (RFC 3261 §19.1) that identifies a server.

use std::fmt;
use std::net::{IpAddr, Ipv6Addr};
use std::str::FromStr;

/// The server of a trunk, written like `sip:carrier.example:5060` or `sip:carrier.example;transport=tls`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TrunkAddress {
    /// A name or a numeric address, an IPv6 one without its brackets; names in lower case.
    pub host: String,
    /// With a port, only the addresses of the name are looked up; without one, its SRV records contain the
    /// port (RFC 3263 §4.2).
    pub port: Option<u16>,
    /// The transport. If a name has no port and no transport, its owner chooses by DNS.
    pub transport: TrunkTransport,
}

/// How calls are sent to a trunk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum TrunkTransport {
    /// According to the NAPTR records of the name (RFC 3263 §4.1); UDP if there are none.
    Preferred,
    /// Over a TCP connection.
    Tcp,
    /// Over a TLS connection to a server with a certificate for the host.
    Tls,
    /// Over UDP.
    #[default]
    Udp,
}

/// Why a text is not a trunk address. Completes "the address …".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TrunkAddressError {
    /// The text does not have the form.
    Form,
    /// An unknown transport.
    Transport,
}

impl TrunkAddress {
    /// The numeric address; `None` for a name.
    pub fn ip(&self) -> Option<IpAddr> {
        self.host.parse().ok()
    }

    /// The port of an address if neither its text nor DNS records contain one (RFC 3261 §19.1.2).
    pub const fn default_port(&self) -> u16 {
        match self.transport {
            TrunkTransport::Tls => 5_061,
            TrunkTransport::Preferred | TrunkTransport::Tcp | TrunkTransport::Udp => 5_060,
        }
    }
}

impl FromStr for TrunkAddress {
    type Err = TrunkAddressError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let form = TrunkAddressError::Form;
        let scheme = text.get(..4).filter(|scheme| scheme.eq_ignore_ascii_case("sip:")).ok_or(form)?;
        let rest = text.get(scheme.len()..).filter(|_| text.len() <= LEN_MAX).ok_or(form)?;
        let (server, params) =
            rest.split_once(';').map_or((rest, None), |(server, rest)| (server, Some(rest)));
        let transport = params.map(|params| params.to_ascii_lowercase());
        let transport = match transport.as_deref() {
            None => TrunkTransport::Preferred,
            Some("transport=udp") => TrunkTransport::Udp,
            Some("transport=tcp") => TrunkTransport::Tcp,
            Some("transport=tls") => TrunkTransport::Tls,
            Some(other) if other.starts_with("transport=") => return Err(TrunkAddressError::Transport),
            Some(_) => return Err(form),
        };
        let (host, port) = match server.strip_prefix('[') {
            Some(v6) => {
                let (host, rest) = v6.split_once(']').ok_or(form)?;
                host.parse::<Ipv6Addr>().map_err(|_| form)?;
                (host, if rest.is_empty() { None } else { Some(rest.strip_prefix(':').ok_or(form)?) })
            }
            None => match server.split_once(':') {
                Some((host, port)) => (host, Some(port)),
                None => (server, None),
            },
        };
        let port =
            port.map(|port| port.parse::<u16>().ok().filter(|port| *port > 0).ok_or(form)).transpose()?;
        let is_address = host.parse::<IpAddr>().is_ok();
        let transport = match transport {
            TrunkTransport::Preferred if is_address || port.is_some() => TrunkTransport::Udp,
            transport => transport,
        };
        if host.contains(':') || is_name(host) {
            Ok(TrunkAddress { host: host.trim_end_matches('.').to_ascii_lowercase(), port, transport })
        } else {
            Err(form)
        }
    }
}

impl fmt::Display for TrunkAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.host.contains(':') {
            write!(f, "sip:[{}]", self.host)?;
        } else {
            write!(f, "sip:{}", self.host)?;
        }
        self.port.map_or(Ok(()), |port| write!(f, ":{port}"))?;
        match self.transport {
            TrunkTransport::Tcp => f.write_str(";transport=tcp"),
            TrunkTransport::Tls => f.write_str(";transport=tls"),
            TrunkTransport::Udp if self.port.is_none() && self.ip().is_none() => {
                f.write_str(";transport=udp")
            }
            TrunkTransport::Preferred | TrunkTransport::Udp => Ok(()),
        }
    }
}

impl fmt::Display for TrunkAddressError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            TrunkAddressError::Form => "must be written like sip:carrier.example:5060",
            TrunkAddressError::Transport => {
                "has an unknown transport, write ;transport=udp, ;transport=tcp or ;transport=tls, or none"
            }
        })
    }
}

impl std::error::Error for TrunkAddressError {}

/// Whether the text is a host name or an IPv4 address; other texts of digits and dots are neither.
fn is_name(text: &str) -> bool {
    let text = text.strip_suffix('.').unwrap_or(text);
    let label = |label: &str| {
        (1..=63).contains(&label.len())
            && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    let numeric = text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    text.len() <= 253 && text.split('.').all(label) && (!numeric || text.parse::<IpAddr>().is_ok())
}

/// The longest text that is accepted.
const LEN_MAX: usize = 280;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_and_written_back() {
        let good = [
            ("sip:carrier.example:5060", "carrier.example", Some(5060), TrunkTransport::Udp),
            ("SIP:Carrier.Example", "carrier.example", None, TrunkTransport::Preferred),
            ("sip:carrier.example.;transport=UDP", "carrier.example", None, TrunkTransport::Udp),
            ("sip:carrier.example;transport=tls", "carrier.example", None, TrunkTransport::Tls),
            ("sip:carrier.example:5070;Transport=TCP", "carrier.example", Some(5070), TrunkTransport::Tcp),
            ("sip:192.0.2.7:5080", "192.0.2.7", Some(5080), TrunkTransport::Udp),
            ("sip:[2001:db8::7]:5060", "2001:db8::7", Some(5060), TrunkTransport::Udp),
            ("sip:[2001:db8::7];transport=tls", "2001:db8::7", None, TrunkTransport::Tls),
        ];
        for (text, host, port, transport) in good {
            let address: TrunkAddress = text.parse().unwrap();
            let read = (address.host.as_str(), address.port, address.transport);
            assert_eq!(read, (host, port, transport), "{text}");
            assert_eq!(address.to_string().parse(), Ok(address), "{text}");
        }
    }

    #[test]
    fn anything_else_is_refused() {
        for text in [
            "",
            "carrier",
            "sip:",
            "tel:+44",
            "sips:carrier.example",
            "sip:user@carrier.example",
            "sip:a b",
            "sip:carrier:0",
            "sip:carrier:65536",
            "sip:carrier:",
            "sip:[::1",
            "sip:[::1]x",
            "sip:[zz]",
            "sip:1.2.3",
            "sip:300.1.1.1",
            "sip:-a.example",
            "sip:a..b",
            "sip:carrier;lr",
            "sip:a?b=c",
            "ſip:a",
        ] {
            assert_eq!(text.parse::<TrunkAddress>(), Err(TrunkAddressError::Form), "{text}");
        }
        assert_eq!("sip:a;transport=sctp".parse::<TrunkAddress>(), Err(TrunkAddressError::Transport));
    }
}
