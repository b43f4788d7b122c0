//! The table of RTP-like flows: one entry per source and destination, found by a fast seeded hash.

use std::collections::HashMap;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::net::{IpAddr, SocketAddr};

use super::probation::Probation;

/// Packets of one source to one destination.
#[derive(Debug)]
pub(super) struct Flow {
    /// The call whose SDP names this flow, as of `generation`.
    pub(super) binding: Option<Binding>,
    /// State of the endpoint table when the binding was looked up.
    pub(super) generation: u32,
    /// SSRC and number of each of its streams, the latest in front.
    pub(super) streams: Vec<(u32, u32)>,
    /// Packets of SSRCs that are not streams yet.
    pub(super) probation: Probation,
}

/// What signalling says about a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Binding {
    /// Number of the call.
    pub(super) call: u32,
    /// The caller sends it; else it is sent to the caller.
    pub(super) from_caller: bool,
    /// It is the audio that the call is judged by.
    pub(super) audio: bool,
}

/// All flows of a capture.
#[derive(Debug)]
pub(super) struct Flows {
    index: HashMap<Key, u32, Seeded>,
    flows: Vec<Flow>,
    last: Option<(Key, u32)>,
}

impl Flows {
    pub(super) fn new() -> Self {
        // Addresses of a capture are anybody's choice, so the hash is keyed; results do not depend on it.
        let seed = RandomState::new().hash_one(0_u8) | 1;
        Flows { index: HashMap::with_hasher(Seeded(seed)), flows: Vec::new(), last: None }
    }

    /// The flow from `source` to `destination`, made when it is new; `None` when there are too many.
    #[inline]
    pub(super) fn find(&mut self, source: SocketAddr, destination: SocketAddr) -> Option<&mut Flow> {
        let key = Key::new(source, destination);
        let number = match self.last {
            Some((last, number)) if last == key => number,
            _ => self.look_up(key)?,
        };
        self.last = Some((key, number));
        self.flows.get_mut(number as usize)
    }

    fn look_up(&mut self, key: Key) -> Option<u32> {
        if let Some(number) = self.index.get(&key) {
            return Some(*number);
        }
        if self.flows.len() >= FLOWS_MAX {
            return None;
        }
        let number = self.flows.len() as u32;
        self.flows.push(Flow {
            binding: None,
            generation: 0,
            streams: Vec::new(),
            probation: Probation::default(),
        });
        self.index.insert(key, number);
        Some(number)
    }
}

/// Source and destination, packed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Key {
    V4(u64, u32),
    V6(u128, u128, u32),
}

impl Key {
    #[inline]
    fn new(source: SocketAddr, destination: SocketAddr) -> Self {
        let ports = u32::from(source.port()) << 16 | u32::from(destination.port());
        match (source.ip(), destination.ip()) {
            (IpAddr::V4(from), IpAddr::V4(to)) => {
                Key::V4(u64::from(from.to_bits()) << 32 | u64::from(to.to_bits()), ports)
            }
            (from, to) => Key::V6(wide(from), wide(to), ports),
        }
    }
}

fn wide(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(v4) => v4.to_ipv6_mapped().to_bits(),
        IpAddr::V6(v6) => v6.to_bits(),
    }
}

/// Makes folded-multiply hashers that start from a seed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seeded(u64);

impl BuildHasher for Seeded {
    type Hasher = Folded;

    #[inline]
    fn build_hasher(&self) -> Folded {
        Folded(self.0)
    }
}

/// Multiplies to 128 bits and folds the halves together, number by number.
#[derive(Debug)]
pub(super) struct Folded(u64);

impl Hasher for Folded {
    #[inline]
    fn write_u64(&mut self, number: u64) {
        let wide = u128::from(self.0 ^ number) * 0x9e37_79b9_7f4a_7c15_u128;
        self.0 = (wide >> 64) as u64 ^ wide as u64;
    }

    #[inline]
    fn write_u32(&mut self, number: u32) {
        self.write_u64(u64::from(number));
    }

    #[inline]
    fn write_isize(&mut self, number: isize) {
        self.write_u64(number as u64);
    }

    #[inline]
    fn write_u128(&mut self, number: u128) {
        self.write_u64(number as u64);
        self.write_u64((number >> 64) as u64);
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }

    #[inline]
    fn finish(&self) -> u64 {
        self.0
    }
}

/// Flows beyond this number are counted and left alone; a flow that never becomes a stream takes 200 bytes.
const FLOWS_MAX: usize = 1_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flow_is_found_again_and_is_directed() {
        let mut flows = Flows::new();
        let pairs = [
            ("192.0.2.1:4000", "192.0.2.2:5000"),
            ("192.0.2.2:5000", "192.0.2.1:4000"),
            ("192.0.2.1:4000", "192.0.2.2:5002"),
            ("[2001:db8::1]:4000", "[2001:db8::2]:5000"),
        ];
        for round in 0..2 {
            for (n, (from, to)) in pairs.iter().enumerate() {
                let flow = flows.find(from.parse().unwrap(), to.parse().unwrap()).unwrap();
                assert_eq!(flow.generation, round * (n as u32 + 1), "{from} {to}");
                flow.generation = n as u32 + 1;
            }
        }
        assert_eq!(flows.flows.len(), pairs.len());
    }
}
