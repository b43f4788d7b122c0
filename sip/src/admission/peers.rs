//! Remote addresses from which a peer has authenticated.

use std::collections::{HashMap, VecDeque};
use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, Instant};

use crate::flow::source_of;

/// Addresses and ports that authenticated by digest lately; behind a NAT there is one per phone.
///
/// *Bounds*: [`PEERS_MAX`] in total, and half of that per source. A peer without an entry is treated as
/// unauthenticated, or by its credentials; no entry is removed before its time.
#[derive(Debug, Default)]
pub struct Peers {
    until: HashMap<SocketAddr, Instant>,
    by_source: HashMap<IpAddr, usize>,
    /// Ordered by the time of the next check, oldest first.
    order: VecDeque<(Instant, SocketAddr)>,
}

impl Peers {
    /// Records that a peer at this address has authenticated.
    pub fn prove(&mut self, now: Instant, remote: SocketAddr) {
        self.expire(now);
        let until = now + PEER_LIFE;
        if let Some(known) = self.until.get_mut(&remote) {
            *known = until;
            return;
        }
        let here = self.by_source.entry(source_of(remote.ip())).or_default();
        if self.until.len() >= PEERS_MAX || *here >= PEERS_MAX / 2 {
            return;
        }
        *here += 1;
        self.until.insert(remote, until);
        self.order.push_back((until, remote));
    }

    /// Whether a peer at this address has authenticated lately.
    pub fn contains(&self, now: Instant, remote: SocketAddr) -> bool {
        self.until.get(&remote).is_some_and(|until| *until > now)
    }

    /// Number of peers.
    pub fn len(&self) -> usize {
        self.until.len()
    }

    /// Whether there are no peers.
    pub fn is_empty(&self) -> bool {
        self.until.is_empty()
    }

    fn expire(&mut self, now: Instant) {
        while let Some((_, remote)) = self.order.pop_front_if(|(at, _)| *at <= now) {
            match self.until.get(&remote).copied() {
                Some(until) if until > now => self.order.push_back((until, remote)),
                _ => self.remove(remote),
            }
        }
    }

    fn remove(&mut self, remote: SocketAddr) {
        self.until.remove(&remote);
        let source = source_of(remote.ip());
        if let Some(here) = self.by_source.get_mut(&source) {
            *here = here.saturating_sub(1);
            if *here == 0 {
                self.by_source.remove(&source);
            }
        }
    }
}

/// The largest number of peers.
pub const PEERS_MAX: usize = 131_072;
/// How long an authentication counts: a little longer than the longest registration, whose refresh
/// authenticates again.
const PEER_LIFE: Duration = Duration::from_secs(7_500);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transaction::ladder::start;

    #[test]
    fn a_peer_is_known_until_its_proof_is_old() {
        let zero = start();
        let mut peers = Peers::default();
        let (one, two) = ("192.0.2.1:5060".parse().unwrap(), "192.0.2.1:5070".parse().unwrap());
        peers.prove(zero, one);
        peers.prove(zero, two);
        assert!(peers.contains(zero, one) && !peers.contains(zero, "192.0.2.1:5080".parse().unwrap()));
        peers.prove(zero + PEER_LIFE / 2, one);
        assert!(peers.contains(zero + PEER_LIFE, one) && !peers.contains(zero + PEER_LIFE, two));
        peers.prove(zero + PEER_LIFE, "192.0.2.2:5060".parse().unwrap());
        assert_eq!((peers.len(), peers.by_source.len(), peers.order.len()), (2, 2, 2));
    }

    #[test]
    fn there_are_so_many_and_of_one_source_half() {
        let zero = start();
        let mut peers = Peers::default();
        for source in 0..4_u8 {
            for port in 0..=u16::MAX {
                peers.prove(zero, SocketAddr::new([192, 0, 2, source].into(), port));
            }
        }
        assert_eq!((peers.len(), peers.by_source[&IpAddr::from([192, 0, 2, 0])]), (PEERS_MAX, PEERS_MAX / 2));
        peers.prove(zero + PEER_LIFE, "192.0.2.9:1".parse().unwrap());
        assert_eq!(peers.len(), 1);
    }
}
