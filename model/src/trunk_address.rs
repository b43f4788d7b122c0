//! The server of a trunk: the part of a SIP URI (RFC 3261 §19.1) that identifies a server.

use std::fmt;
use std::net::{IpAddr, Ipv6Addr};
use std::str::FromStr;

/// The server of a trunk, written like `sip:carrier.example:5060`; calls are sent there over UDP.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TrunkAddress {
    /// A name or a numeric address, an IPv6 one without its brackets; names in lower case.
    pub host: String,
    /// With a port, only the addresses of the name are looked up; without one its SRV records contain the
    /// port (RFC 3263 §4.2).
    pub port: Option<u16>,
}

/// Why a text is not a trunk address. Completes "the address …".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TrunkAddressError {
    /// It does not have the form.
    Form,
    /// Another transport than UDP.
    Transport,
}

impl TrunkAddress {
    /// The numeric address; `None` for a name.
    pub fn ip(&self) -> Option<IpAddr> {
        self.host.parse().ok()
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
        match transport.as_deref() {
            None | Some("transport=udp") => {}
            Some(other) if other.starts_with("transport=") => return Err(TrunkAddressError::Transport),
            Some(_) => return Err(form),
        }
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
        if host.contains(':') || is_name(host) {
            Ok(TrunkAddress { host: host.trim_end_matches('.').to_ascii_lowercase(), port })
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
        self.port.map_or(Ok(()), |port| write!(f, ":{port}"))
    }
}

impl fmt::Display for TrunkAddressError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            TrunkAddressError::Form => "must be written like sip:carrier.example:5060",
            TrunkAddressError::Transport => "goes over UDP in this version, write it without ;transport",
        })
    }
}

impl std::error::Error for TrunkAddressError {}

/// A host name, or an IPv4 address; digits and dots that are not an address are neither.
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

/// Longest text that is read.
const LEN_MAX: usize = 280;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_and_written_back() {
        let good = [
            ("sip:carrier.example:5060", "carrier.example", Some(5060)),
            ("SIP:Carrier.Example", "carrier.example", None),
            ("sip:carrier.example.;transport=UDP", "carrier.example", None),
            ("sip:192.0.2.7:5080", "192.0.2.7", Some(5080)),
            ("sip:[2001:db8::7]:5060", "2001:db8::7", Some(5060)),
            ("sip:[2001:db8::7]", "2001:db8::7", None),
        ];
        for (text, host, port) in good {
            let address: TrunkAddress = text.parse().unwrap();
            assert_eq!((address.host.as_str(), address.port), (host, port), "{text}");
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
        assert_eq!("sip:a;transport=tls".parse::<TrunkAddress>(), Err(TrunkAddressError::Transport));
    }
}
