//! Addresses the relay must never send to: its own ports, because two legs would then send to each other in a
//! loop.

use std::net::{IpAddr, SocketAddr};
use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicU64, Ordering};

/// The relay's own addresses, and its ports that are open now.
pub(super) struct Guard {
    pub(super) ports: RangeInclusive<u16>,
    own: Vec<IpAddr>,
    /// One bit per port number.
    open: Box<[AtomicU64]>,
}

impl Guard {
    /// A guard for `ports` on the addresses `own`, with no port open.
    pub(super) fn new(ports: RangeInclusive<u16>, own: Vec<IpAddr>) -> Guard {
        let open = std::iter::repeat_with(AtomicU64::default).take(WORDS).collect();
        Guard { ports, own, open }
    }

    /// Records that the pair with the even port `rtp` was opened.
    pub(super) fn opened(&self, rtp: u16) {
        if let Some(word) = self.open.get(word_of(rtp)) {
            word.fetch_or(pair_of(rtp), Ordering::Relaxed);
        }
    }

    /// Records that the pair with the even port `rtp` was closed.
    pub(super) fn closed(&self, rtp: u16) {
        if let Some(word) = self.open.get(word_of(rtp)) {
            word.fetch_and(!pair_of(rtp), Ordering::Relaxed);
        }
    }

    /// Whether a packet may be sent to `to` from a socket on `local` for a party whose SIP comes from `party`.
    ///
    /// For a party on another machine the relay never sends into its own port range. A party on this machine
    /// may use a port of the range that is not open here: that port is the party's, since a port has one
    /// owner.
    pub(super) fn allows(&self, local: IpAddr, to: SocketAddr, party: Option<IpAddr>) -> bool {
        if !self.ports.contains(&to.port()) || !self.is_own(local, to.ip()) {
            return true;
        }
        party.is_some_and(|party| self.is_own(local, party)) && !self.is_open(to.port())
    }

    fn is_own(&self, local: IpAddr, ip: IpAddr) -> bool {
        let ip = ip.to_canonical();
        ip.is_loopback() || ip == local || self.own.contains(&ip)
    }

    fn is_open(&self, port: u16) -> bool {
        let word = self.open.get(word_of(port)).map_or(u64::MAX, |word| word.load(Ordering::Relaxed));
        word & (1 << (port % 64)) != 0
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
        let guard = Guard::new(10_000..=10_099, vec!["192.0.2.1".parse().unwrap()]);
        guard.opened(10_050);
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
}
