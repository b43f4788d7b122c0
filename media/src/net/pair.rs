//! The pair of sockets that each leg opens.

use std::io;
use std::net::{IpAddr, SocketAddr};

use sidetone_wire::Endpoint;

/// The two sockets of a leg: an even port and the odd one above it (RFC 3550 §11).
#[derive(Debug)]
pub(super) struct Pair {
    pub(super) rtp: Endpoint,
    pub(super) rtcp: Endpoint,
}

impl Pair {
    /// Binds both sockets, or none.
    pub(super) fn bind(ip: IpAddr, port: u16) -> io::Result<Pair> {
        let rtp = Endpoint::bind(SocketAddr::new(ip, port))?;
        // A phone without RTCP answers each report with "port unreachable". That is no evidence about audio,
        // so only the RTP socket reads these errors.
        rtp.hear_unreachable()?;
        let rtcp = Endpoint::bind(SocketAddr::new(ip, port.saturating_add(1)))?;
        Ok(Pair { rtp, rtcp })
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    #[test]
    fn a_pair_is_bound_wholly_or_not_at_all() {
        // Any free port of the system stands for "taken by another program".
        let taken = Endpoint::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).unwrap();
        let port = taken.local().port();
        let even = port & !1;
        assert!(Pair::bind(Ipv4Addr::LOCALHOST.into(), even).is_err(), "half of the pair is taken");
        drop(taken);
        // Another process may take the ports in between; then there is nothing to check.
        if let Ok(pair) = Pair::bind(Ipv4Addr::LOCALHOST.into(), even) {
            assert_eq!(pair.rtp.local().port(), even);
            assert_eq!(pair.rtcp.local().port(), even + 1);
        }
    }
}
