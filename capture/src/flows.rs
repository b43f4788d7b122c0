//! The table of RTP-like flows: one entry per source and destination, found by a seeded hash.
//!
//! Almost every packet continues the stream that its flow carried last. What this case needs is one cache
//! line, [`Hot`]; everything else about a flow is in [`Flow`].

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::net::SocketAddr;

use sidetone_media::time::Micros;

use super::flow_key::Key;
use super::probation::Probation;
use super::signal::{LegEnd, NONE};

/// The fields for looking up the stream of the next packet.
#[derive(Clone, Debug)]
#[repr(align(64))]
pub(super) struct Hot {
    key: Key,
    /// The stream that the flow carried last, and its SSRC; [`NONE`] when the packet has to take the slow
    /// path.
    pub(super) ssrc: u32,
    pub(super) stream: u32,
    /// The leg that its packets are counted for.
    pub(super) leg: LegEnd,
    /// The time of the last RTP packet.
    pub(super) last: Micros,
}

/// Packets from one source to one destination.
#[derive(Debug, Default)]
pub(super) struct Flow {
    /// The call whose SDP names this flow, as of `generation`.
    pub(super) binding: Option<Binding>,
    /// Other calls whose SDP names both ends of it: all of its packets take the slow path.
    pub(super) others: Box<[Binding]>,
    /// The generation of the endpoint table when the binding was looked up.
    pub(super) generation: u32,
    /// Whether an announcement for one of its ends can find it.
    pub(super) is_listed: bool,
    /// SSRC and number of each of its streams, the latest first.
    pub(super) streams: Vec<(u32, u32)>,
    /// Packets of SSRCs that are not streams yet.
    pub(super) probation: Probation,
}

/// The binding of a flow by signalling.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Binding {
    /// The number of the call.
    pub(super) call: u32,
    /// Whether the caller sends it; otherwise it is sent to the caller.
    pub(super) from_caller: bool,
    /// Whether it is the audio that decides the call's verdict.
    pub(super) audio: bool,
}

impl Binding {
    /// The call number used where a session description came without SIP.
    pub(super) const NO_CALL: u32 = u32::MAX;

    /// Whether it belongs to a known call.
    pub(super) fn has_call(&self) -> bool {
        self.call != Binding::NO_CALL
    }

    /// The leg that the packets are counted for.
    pub(super) fn leg(self) -> LegEnd {
        if self.audio { LegEnd::new(self.call, self.from_caller) } else { LegEnd::NONE }
    }
}

/// All flows of a capture.
#[derive(Debug)]
pub(super) struct Flows {
    seed: [u64; 2],
    /// Indices into `hot` by hash, with open addressing; the length is a power of two, at most half full.
    index: Vec<u32>,
    hot: Vec<Hot>,
    flows: Vec<Flow>,
    /// Numbers that can be reused.
    free: Vec<u32>,
    /// The flows that carry streams, by each of their ends.
    listed: HashMap<SocketAddr, Vec<u32>>,
}

impl Flows {
    pub(super) fn new() -> Self {
        // The sender chooses the addresses of a capture, so the hash is keyed; results do not depend on the
        // key.
        let random = RandomState::new();
        Flows {
            seed: [random.hash_one(0_u8), random.hash_one(1_u8)],
            index: vec![NONE; INDEX_LEN],
            hot: Vec::new(),
            flows: Vec::new(),
            free: Vec::new(),
            listed: HashMap::new(),
        }
    }

    /// Returns the number and the hot part of the flow with `key`.
    #[inline]
    pub(super) fn find(&mut self, key: &Key) -> Option<(u32, &mut Hot)> {
        let mask = self.index.len() - 1;
        let mut place = key.hash(self.seed) as usize & mask;
        // At least half of the places are free, so the walk ends.
        loop {
            let number = *self.index.get(place)?;
            if number == NONE {
                return None;
            }
            if self.hot.get(number as usize).is_some_and(|hot| hot.key == *key) {
                return self.hot.get_mut(number as usize).map(|hot| (number, hot));
            }
            place = (place + 1) & mask;
        }
    }

    /// Returns the stream that an IPv4 packet continues, counted for the same leg as the packet before; `None` when the
    /// packet has to take the slow path.
    ///
    /// Like [`Flows::find`], but without a key in memory, because almost every packet takes this path.
    #[inline]
    pub(super) fn continued(&mut self, at: Micros, (addresses, ports): (u64, u32), ssrc: u32) -> Option<u32> {
        let mask = self.index.len() - 1;
        let mut place = Key::hash_v4(addresses, ports, self.seed) as usize & mask;
        // At least half of the places are free, and no flow has the number of those.
        loop {
            let number = *self.index.get(place)?;
            let hot = self.hot.get_mut(number as usize)?;
            if hot.key.is_v4(addresses, ports) {
                let continues = hot.ssrc == ssrc && hot.stream != NONE;
                return continues.then(|| {
                    hot.last = at;
                    hot.stream
                });
            }
            place = (place + 1) & mask;
        }
    }

    /// Returns the number of the flow with `key`, which is created if it is new; `None` when there are too
    /// many.
    pub(super) fn find_or_make(&mut self, at: Micros, key: &Key) -> Option<u32> {
        if let Some((number, hot)) = self.find(key) {
            hot.last = at;
            return Some(number);
        }
        if self.len() >= FLOWS_MAX {
            return None;
        }
        let hot = Hot { key: *key, ssrc: 0, stream: NONE, leg: LegEnd::NONE, last: at };
        let number = match self.free.pop() {
            Some(number) => {
                if let Some(slot) = self.hot.get_mut(number as usize) {
                    *slot = hot;
                }
                number
            }
            None => {
                self.hot.push(hot);
                self.flows.push(Flow::default());
                self.hot.len() as u32 - 1
            }
        };
        if self.len() * 2 > self.index.len() {
            self.grow();
        } else {
            self.enter(number);
        }
        Some(number)
    }

    /// The size of the tables.
    #[cfg(test)]
    pub(super) fn held(&self) -> usize {
        self.hot.len().max(self.listed.len())
    }

    /// Flows in the table.
    pub(super) fn len(&self) -> usize {
        self.hot.len() - self.free.len()
    }

    /// One flow.
    pub(super) fn get(&self, number: u32) -> Option<&Flow> {
        self.flows.get(number as usize)
    }

    /// One flow.
    pub(super) fn get_mut(&mut self, number: u32) -> Option<&mut Flow> {
        self.flows.get_mut(number as usize)
    }

    /// The hot part of one flow.
    pub(super) fn hot_mut(&mut self, number: u32) -> Option<&mut Hot> {
        self.hot.get_mut(number as usize)
    }

    /// Allows the flow's packets to take the fast path, until an announcement for one of its ends.
    ///
    /// Returns whether this is possible: packets of an address with too many flows always take the slow path.
    pub(super) fn list(&mut self, number: u32) -> bool {
        let (Some(hot), Some(flow)) = (self.hot.get(number as usize), self.flows.get_mut(number as usize))
        else {
            return false;
        };
        if flow.is_listed {
            return true;
        }
        let (source, destination) = hot.key.ends();
        let is_full = |address| self.listed.get(address).is_some_and(|list| list.len() >= LISTED_MAX);
        if is_full(&source) || is_full(&destination) {
            return false;
        }
        flow.is_listed = true;
        self.listed.entry(source).or_default().push(number);
        if destination != source {
            self.listed.entry(destination).or_default().push(number);
        }
        true
    }

    /// Signalling has changed what it states about `address`: the next packet from and to it takes the slow
    /// path.
    pub(super) fn announced(&mut self, address: SocketAddr) {
        for number in self.listed.get(&address).into_iter().flatten() {
            if let Some(hot) = self.hot.get_mut(*number as usize) {
                hot.stream = NONE;
            }
        }
    }

    /// The same for every flow.
    pub(super) fn announced_anything(&mut self) {
        for hot in &mut self.hot {
            hot.stream = NONE;
        }
    }

    /// Unbinds a flow from `call`.
    pub(super) fn unbind(&mut self, number: u32, call: u32) {
        let Some(flow) = self.flows.get_mut(number as usize) else { return };
        if flow.others.iter().any(|other| other.call == call) {
            flow.others = flow.others.iter().copied().filter(|other| other.call != call).collect();
        }
        if flow.binding.is_some_and(|binding| binding.call == call) {
            flow.binding = None;
            if let Some(hot) = self.hot.get_mut(number as usize) {
                hot.stream = NONE;
            }
        }
    }

    /// Removes a stream from its flow; returns the flow's ends.
    pub(super) fn forget_stream(&mut self, number: u32, stream: u32) -> Option<(SocketAddr, SocketAddr)> {
        self.flows.get_mut(number as usize)?.streams.retain(|(_, known)| *known != stream);
        let hot = self.hot.get_mut(number as usize)?;
        if hot.stream == stream {
            hot.stream = NONE;
        }
        Some(hot.key.ends())
    }

    /// The source and destination of a flow.
    pub(super) fn ends(&self, number: u32) -> Option<(SocketAddr, SocketAddr)> {
        self.hot.get(number as usize).map(|hot| hot.key.ends())
    }

    /// The time of the last RTP packet of a flow, if it belongs to `call`.
    pub(super) fn last(&self, number: u32, call: u32) -> Option<Micros> {
        let binding = self.flows.get(number as usize)?.binding;
        let hot = self.hot.get(number as usize)?;
        binding.filter(|binding| binding.call == call).map(|_| hot.last)
    }

    /// The time of the last packet of a stream, if its flow has carried no other stream since.
    pub(super) fn last_of_stream(&self, number: u32, stream: u32) -> Option<Micros> {
        let (_, latest) = self.flows.get(number as usize)?.streams.first()?;
        let hot = self.hot.get(number as usize)?;
        (*latest == stream).then_some(hot.last)
    }

    /// Removes the flows without a stream whose last packet came before `limit`.
    pub(super) fn remove_idle(&mut self, limit: Micros) {
        let mut idle: Vec<u32> = self.index.iter().copied().filter(|number| *number != NONE).collect();
        let (hot, flows) = (&self.hot, &self.flows);
        idle.retain(|number| {
            let is_idle = hot.get(*number as usize).is_some_and(|hot| hot.last < limit);
            is_idle && flows.get(*number as usize).is_some_and(|flow| flow.streams.is_empty())
        });
        // In the order of numbers, not of hashes, so that they are reused in the same order every time.
        idle.sort_unstable();
        for number in idle {
            self.remove(number);
        }
    }

    /// Removes a flow; its number may be reused.
    fn remove(&mut self, number: u32) {
        let Some(key) = self.hot.get(number as usize).map(|hot| hot.key) else { return };
        if !self.leave(number, &key) {
            return;
        }
        if self.flows.get(number as usize).is_some_and(|flow| flow.is_listed) {
            let (source, destination) = key.ends();
            for address in [source, destination] {
                let Some(list) = self.listed.get_mut(&address) else { continue };
                list.retain(|listed| *listed != number);
                if list.is_empty() {
                    self.listed.remove(&address);
                }
            }
        }
        if let Some(flow) = self.flows.get_mut(number as usize) {
            *flow = Flow::default();
        }
        self.free.push(number);
    }

    /// Enters a number into the index, which has a free place.
    fn enter(&mut self, number: u32) {
        let mask = self.index.len() - 1;
        let Some(hot) = self.hot.get(number as usize) else { return };
        let mut place = hot.key.hash(self.seed) as usize & mask;
        while let Some(slot) = self.index.get_mut(place) {
            if *slot == NONE {
                *slot = number;
                return;
            }
            place = (place + 1) & mask;
        }
    }

    /// Removes a number from the index; false when it is not there.
    fn leave(&mut self, number: u32, key: &Key) -> bool {
        let mask = self.index.len() - 1;
        let at = |index: &[u32], place: usize| index.get(place).copied().unwrap_or(NONE);
        let mut hole = key.hash(self.seed) as usize & mask;
        while at(&self.index, hole) != number {
            if at(&self.index, hole) == NONE {
                return false;
            }
            hole = (hole + 1) & mask;
        }
        // An entry after the hole whose place by hash is the hole or before it moves into the hole.
        let mut place = hole;
        loop {
            place = (place + 1) & mask;
            let next = at(&self.index, place);
            let Some(home) = self.hot.get(next as usize).map(|hot| hot.key.hash(self.seed) as usize & mask)
            else {
                break;
            };
            if place.wrapping_sub(home) & mask >= place.wrapping_sub(hole) & mask {
                if let Some(slot) = self.index.get_mut(hole) {
                    *slot = next;
                }
                hole = place;
            }
        }
        if let Some(slot) = self.index.get_mut(hole) {
            *slot = NONE;
        }
        true
    }

    fn grow(&mut self) {
        let len = self.index.len() * 2;
        let mut free = vec![false; self.hot.len()];
        for number in &self.free {
            if let Some(slot) = free.get_mut(*number as usize) {
                *slot = true;
            }
        }
        self.index = vec![NONE; len];
        for (number, is_free) in free.into_iter().enumerate() {
            if !is_free {
                self.enter(number as u32);
            }
        }
    }
}

/// Flows beyond this number are counted and not examined; a flow that never becomes a stream takes 200 bytes.
const FLOWS_MAX: usize = 1_000_000;
/// The initial length of the index.
const INDEX_LEN: usize = 1 << 10;
/// The largest number of flows that an announcement finds by one address.
const LISTED_MAX: usize = 4_096;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn key(n: u32) -> Key {
        Key::new(([10, 0, (n >> 8) as u8, n as u8], 4_000).into(), ([192, 0, 2, 1], (n >> 16) as u16).into())
    }

    #[test]
    fn a_flow_is_found_again_and_is_directed() {
        let mut flows = Flows::new();
        let pairs: [(SocketAddr, SocketAddr); 5] = [
            ("192.0.2.1:4000", "192.0.2.2:5000"),
            ("192.0.2.2:5000", "192.0.2.1:4000"),
            ("192.0.2.1:4000", "192.0.2.2:5002"),
            ("[2001:db8::1]:4000", "[2001:db8::2]:5000"),
            ("[2001:db8::1]:4000", "[2001:db8::2]:5001"),
        ]
        .map(|(from, to)| (from.parse().unwrap(), to.parse().unwrap()));
        for _ in 0..2 {
            for (n, (from, to)) in pairs.iter().enumerate() {
                let key = Key::new(*from, *to);
                assert_eq!(flows.find_or_make(Micros(0), &key), Some(n as u32), "{from} {to}");
                assert_eq!(key.ends(), (*from, *to));
            }
        }
        assert_eq!(flows.len(), pairs.len());
    }

    #[test]
    fn an_announcement_reaches_the_flows_of_its_address() {
        let mut flows = Flows::new();
        let numbers: Vec<u32> = (0..3).map(|n| flows.find_or_make(Micros(0), &key(n)).unwrap()).collect();
        for number in &numbers {
            assert!(flows.list(*number));
            flows.hot_mut(*number).unwrap().stream = 7;
        }
        flows.announced("10.0.0.1:4000".parse().unwrap());
        let streams: Vec<u32> = numbers.iter().map(|n| flows.hot_mut(*n).unwrap().stream).collect();
        assert_eq!(streams, [7, NONE, 7]);
        flows.announced("192.0.2.1:0".parse().unwrap());
        assert!(numbers.iter().all(|n| flows.hot_mut(*n).unwrap().stream == NONE));
    }

    proptest! {
        #[test]
        fn flows_come_and_go(steps in prop::collection::vec((any::<bool>(), 0_u32..3_000), 0..4_000)) {
            let mut flows = Flows::new();
            let mut known: HashMap<u32, u32> = HashMap::new();
            for (comes, n) in steps {
                let found = flows.find(&key(n)).map(|(number, _)| number);
                prop_assert_eq!(found, known.get(&n).copied());
                if comes {
                    let number = flows.find_or_make(Micros(i64::from(n)), &key(n)).unwrap();
                    prop_assert_eq!(*known.entry(n).or_insert(number), number);
                    flows.list(number);
                } else if let Some(number) = known.remove(&n) {
                    flows.remove(number);
                }
                prop_assert_eq!(flows.len(), known.len());
            }
            prop_assert!(flows.listed.len() <= known.len() * 2);
            flows.remove_idle(Micros(1_500));
            known.retain(|n, _| *n >= 1_500);
            prop_assert_eq!(flows.len(), known.len());
            for (n, number) in known {
                prop_assert_eq!(flows.find(&key(n)).map(|(number, _)| number), Some(number));
            }
        }
    }
}
