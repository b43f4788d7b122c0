//! Addresses the relay must never send to: its own ports, because two legs would then send to each other in a
//! loop.

use std::net::{IpAddr, SocketAddr};
use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicU64, Ordering};

/// The relay's own addresses, and its ports that are open now.
pub(super) struct Guard {
    pub(super) ports: RangeInclusive<u16>,
    own: Vec<IpAddr>,
    /// The address that ports are usually bound to.
    bind: IpAddr,
    /// One bit per port number.
    open: Box<[AtomicU64]>,
    /// One bit per open port that is bound to another address than `bind`.
    elsewhere: Box<[AtomicU64]>,
}

impl Guard {
    /// A guard for `ports`, usually bound to `bind`, on the addresses `own` besides; no port is open.
    pub(super) fn new(ports: RangeInclusive<u16>, bind: IpAddr, mut own: Vec<IpAddr>) -> Guard {
        own.push(bind);
        let none_open = || std::iter::repeat_with(AtomicU64::default).take(WORDS).collect();
        Guard { ports, own, bind, open: none_open(), elsewhere: none_open() }
    }

    /// Records that the pair with the even port `rtp` was opened on `ip`.
    pub(super) fn opened(&self, ip: IpAddr, rtp: u16) {
        let word = word_of(rtp);
        if let Some(elsewhere) = self.elsewhere.get(word).filter(|_| ip != self.bind) {
            elsewhere.fetch_or(pair_of(rtp), Ordering::Relaxed);
        }
        if let Some(open) = self.open.get(word) {
            open.fetch_or(pair_of(rtp), Ordering::Relaxed);
        }
    }

    /// Records that the pair with the even port `rtp` was closed.
    pub(super) fn closed(&self, rtp: u16) {
        for words in [&self.open, &self.elsewhere] {
            if let Some(word) = words.get(word_of(rtp)) {
                word.fetch_and(!pair_of(rtp), Ordering::Relaxed);
            }
        }
    }

    /// Whether a packet may be sent to `to` from a socket on `local` for a party whose SIP comes from `party`.
    ///
    /// For a party on another machine the relay never sends into its own port range. A party on this machine
    /// may use a port of the range that is not open here at that address: that port is the party's, since a port of an
    /// address has one owner.
    pub(super) fn allows(&self, local: IpAddr, to: SocketAddr, party: Option<IpAddr>) -> bool {
        if !self.ports.contains(&to.port()) || !self.is_own(local, to.ip()) {
            return true;
        }
        party.is_some_and(|party| self.is_own(local, party)) && !self.is_open(to)
    }

    fn is_own(&self, local: IpAddr, ip: IpAddr) -> bool {
        let ip = ip.to_canonical();
        ip.is_loopback() || ip == local || self.own.contains(&ip)
    }

    /// Whether an open port of this relay receives packets sent to an own address.
    fn is_open(&self, to: SocketAddr) -> bool {
        let (port, ip) = (to.port(), to.ip().to_canonical());
        let has = |words: &[AtomicU64]| {
            let word = words.get(word_of(port)).map_or(u64::MAX, |word| word.load(Ordering::Relaxed));
            word & (1 << (port % 64)) != 0
        };
        // A socket bound to one address receives no packets for the other addresses of this host.
        let is_reached = self.bind.is_unspecified() || ip == self.bind.to_canonical();
        has(&self.open) && (is_reached || has(&self.elsewhere))
    }
}

fn word_of(port: u16) -> usize {
    usize::from(port / 64)
}

/// The bits of an even port and the odd one above it; both are in the same word.
fn pair_of(rtp: u16) -> u64 {
    0b11 << (rtp % 64)
}

/// 65,536 port numbers in words of 64 bits.
const WORDS: usize = 1_024;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_relay_port_of_this_machine_is_never_a_target() {
        let any: IpAddr = "0.0.0.0".parse().unwrap();
        let guard = Guard::new(10_000..=10_099, any, vec!["192.0.2.1".parse().unwrap()]);
        guard.opened(any, 10_050);
        let local: IpAddr = "198.51.100.7".parse().unwrap();
        // The target, whether it is allowed for a party on another machine, and for one on this machine.
        for (to, elsewhere, here) in [
            ("192.0.2.1:10000", false, true),
            ("192.0.2.1:10099", false, true),
            ("192.0.2.1:10100", true, true),
            ("198.51.100.7:10050", false, false),
            ("198.51.100.7:10051", false, false),
            ("127.0.0.1:10050", false, false),
            ("127.9.9.9:10051", false, false),
            ("127.0.0.1:10052", false, true),
            ("127.0.0.1:9999", true, true),
            ("[::1]:10050", false, false),
            ("[::ffff:192.0.2.1]:10050", false, false),
            ("203.0.113.5:10050", true, true),
        ] {
            let target = to.parse().unwrap();
            assert_eq!(guard.allows(local, target, Some("203.0.113.5".parse().unwrap())), elsewhere, "{to}");
            assert_eq!(guard.allows(local, target, None), elsewhere, "{to}, party unknown");
            assert_eq!(guard.allows(local, target, Some("192.0.2.1".parse().unwrap())), here, "{to}");
        }
        guard.closed(10_050);
        assert!(guard.allows(local, "127.0.0.1:10050".parse().unwrap(), Some(local)));
    }

    #[test]
    fn a_party_at_another_address_of_this_machine_may_have_the_number_of_an_open_port() {
        let [bind, second, party]: [IpAddr; 3] =
            ["127.0.0.1", "127.0.0.2", "127.80.0.1"].map(|ip| ip.parse().unwrap());
        let guard = Guard::new(10_000..=10_099, bind, Vec::new());
        guard.opened(bind, 10_050);
        let allows = |ip, port| guard.allows(bind, SocketAddr::new(ip, port), Some(party));
        assert!(allows(party, 10_050) && allows(party, 10_051));
        assert!(!allows(bind, 10_050) && !allows(bind, 10_051));

        // The address of a port bound to another address is not stored, so no own address is allowed as a target.
        guard.opened(second, 10_060);
        assert!(!allows(second, 10_060) && !allows(party, 10_060));
        guard.closed(10_060);
        assert!(allows(second, 10_060) && allows(party, 10_060));
    }
}
