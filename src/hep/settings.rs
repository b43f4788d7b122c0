//! `[hep]`: the Homer server that SIP messages and figures are sent to.

use std::fmt;

/// The server and the identity of this node towards it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HepSettings {
    /// Whether packets are sent over UDP; otherwise over TCP.
    pub is_udp: bool,
    /// Its name or address, and its port: `homer.example.com:9060`.
    pub server: String,
    /// The number of this node as a capture agent.
    pub capture_id: u32,
    /// The password of capture agents; empty for none.
    pub password: HepPassword,
}

/// A password, which is never logged.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct HepPassword(pub String);

impl fmt::Debug for HepPassword {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("HepPassword")
    }
}

/// Reads `udp:host:port` or `tcp:host:port`; returns whether it is UDP, and the host with its port.
///
/// # Errors
/// The error in any other text.
pub fn parse_server(text: &str) -> Result<(bool, String), String> {
    let wrong =
        || format!("\"{text}\" must be udp:HOST:PORT or tcp:HOST:PORT, such as udp:homer.example.com:9060");
    let (transport, server) = text.split_once(':').ok_or_else(wrong)?;
    let (host, port) = server.rsplit_once(':').ok_or_else(wrong)?;
    let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
    let is_host = match bare {
        Some(v6) => v6.parse::<std::net::Ipv6Addr>().is_ok(),
        None => {
            !host.is_empty()
                && host.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_'))
        }
    };
    let is_udp = match transport {
        "udp" => true,
        "tcp" => false,
        _ => return Err(wrong()),
    };
    match port.parse::<u16>() {
        Ok(port) if port > 0 && is_host => Ok((is_udp, server.to_owned())),
        _ => Err(wrong()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_a_transport_a_host_and_a_port() {
        assert_eq!(parse_server("udp:homer:9060"), Ok((true, "homer:9060".to_owned())));
        assert_eq!(parse_server("tcp:[2001:db8::1]:9061"), Ok((false, "[2001:db8::1]:9061".to_owned())));
        for wrong in [
            "",
            "homer:9060",
            "udp:homer",
            "tls:homer:1",
            "udp::9060",
            "udp:h:0",
            "udp:h:99999",
            "udp:2001::1:1",
        ] {
            assert!(parse_server(wrong).unwrap_err().contains("udp:HOST:PORT"), "{wrong}");
        }
        assert!(!format!("{:?}", HepPassword("hunter2".to_owned())).contains("hunter2"));
    }
}
