//! A short-lived cache of the routing table: a query takes four system calls, and a call set-up needs several.

use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

/// The local addresses from which remote addresses are reached.
///
/// *Bounds*: `ROUTES_MAX` addresses; beyond that it is cleared.
#[derive(Debug, Default)]
pub struct Routes {
    known: HashMap<IpAddr, (Instant, IpAddr)>,
}

impl Routes {
    /// Like [`local_address_towards`], but queries the system at most once a second for each address.
    ///
    /// # Errors
    /// When there is no route.
    pub fn local_address_towards(&mut self, now: Instant, remote: IpAddr) -> io::Result<IpAddr> {
        if let Some((asked, local)) = self.known.get(&remote)
            && now.saturating_duration_since(*asked) < KEPT_FOR
        {
            return Ok(*local);
        }
        let local = local_address_towards(remote)?;
        if self.known.len() >= ROUTES_MAX {
            self.known.clear();
        }
        self.known.insert(remote, (now, local));
        Ok(local)
    }
}

/// The address of this host from which the system would reach `remote`. Reads the routing table; sends
/// nothing.
///
/// # Errors
/// When there is no route.
pub fn local_address_towards(remote: IpAddr) -> io::Result<IpAddr> {
    let remote = remote.to_canonical();
    let any: IpAddr = match remote {
        IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    // Connecting a UDP socket only makes the system choose its source address.
    let socket = UdpSocket::bind(SocketAddr::new(any, 0))?;
    socket.connect(SocketAddr::new(remote, ROUTE_PORT))?;
    Ok(socket.local_addr()?.ip().to_canonical())
}

/// How long an answer is used, so that a change of the routing table takes effect soon.
const KEPT_FOR: Duration = Duration::from_secs(1);
const ROUTES_MAX: usize = 4_096;
/// Any port; the route does not depend on it.
const ROUTE_PORT: u16 = 5060;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transaction::ladder::start;

    #[test]
    fn an_answer_is_asked_for_again_after_a_second_and_the_table_is_bounded() {
        let zero = start();
        let loopback = IpAddr::from([127, 0, 0, 1]);
        let mut routes = Routes::default();
        assert_eq!(routes.local_address_towards(zero, loopback).unwrap(), loopback);
        // A cached answer is used without a query.
        let elsewhere = IpAddr::from([127, 0, 0, 9]);
        routes.known.insert(loopback, (zero, elsewhere));
        assert_eq!(routes.local_address_towards(zero + KEPT_FOR / 2, loopback).unwrap(), elsewhere);
        assert_eq!(routes.local_address_towards(zero + KEPT_FOR, loopback).unwrap(), loopback);
        for number in 0..ROUTES_MAX as u32 {
            routes.known.insert(Ipv4Addr::from(number).into(), (zero, loopback));
        }
        routes.local_address_towards(zero, IpAddr::from([127, 0, 0, 2])).unwrap();
        assert_eq!(routes.known.len(), 1);
    }
}
