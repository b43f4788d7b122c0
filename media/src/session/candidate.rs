//! A candidate source: one that becomes the party's source after enough consecutive packets.

use std::net::SocketAddr;

use crate::rtp::Packet;
use crate::time::Micros;

/// The header of a packet that was held back, and its arrival time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Arrived {
    pub(crate) at: Micros,
    pub(crate) packet: Packet,
}

/// How well signalling supports a source; greater is better.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Rank {
    /// Neither SDP nor signalling names its address.
    #[default]
    Stranger,
    /// Its address is that of SDP or of signalling.
    Address,
    /// SDP names its address and port.
    Exact,
}

/// The candidate source, or none.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Candidate {
    /// `None` while there is no candidate.
    source: Option<SocketAddr>,
    rank: Rank,
    since: Micros,
    /// Consecutive packets so far.
    run: u32,
    /// Whether its packets were not consecutive at least once.
    has_stumbled: bool,
    /// The latest packets, newest last.
    recent: [Arrived; RUN],
}

impl Candidate {
    /// Adds a packet of `source`. Returns false when the slot belongs to a candidate of the same or a better
    /// rank that still sends.
    ///
    /// A candidate whose packets were not consecutive keeps the slot only when `may_stumble` is set;
    /// otherwise one source could hold the slot for ever.
    pub(super) fn take(
        &mut self,
        source: SocketAddr,
        rank: Rank,
        arrived: Arrived,
        may_stumble: bool,
    ) -> bool {
        if self.source == Some(source) {
            self.extend(arrived);
            return true;
        }
        let keeps = may_stumble || !self.has_stumbled;
        let is_taken = self.source.is_some() && keeps && self.is_fresh(arrived.at);
        if is_taken && self.rank >= rank {
            return false;
        }
        *self = Candidate { source: Some(source), rank, ..Candidate::default() };
        self.begin(arrived);
        true
    }

    /// Removes the candidate.
    pub(super) fn forget(&mut self) {
        self.source = None;
    }

    /// Whether enough consecutive packets arrived.
    pub(super) fn is_proven(&self) -> bool {
        self.run >= RUN_PACKETS
    }

    /// Arrival of the first packet of the run.
    pub(super) fn since(&self) -> Micros {
        self.since
    }

    /// The packets of the run before the one that completed it.
    pub(super) fn held_back(&self) -> [Arrived; REPLAYED] {
        let [first, second, third, _] = self.recent;
        [first, second, third]
    }

    fn begin(&mut self, arrived: Arrived) {
        self.since = arrived.at;
        self.run = 1;
        if let Some(newest) = self.recent.last_mut() {
            *newest = arrived;
        }
    }

    /// Continues the run with the next packet of the same source, or starts a new run with it.
    fn extend(&mut self, arrived: Arrived) {
        let newest = self.newest();
        let follows = newest.packet.ssrc == arrived.packet.ssrc
            && newest.packet.sequence.wrapping_add(1) == arrived.packet.sequence
            && arrived.at.since(newest.at) < FOLLOWS_US;
        if follows {
            self.recent.rotate_left(1);
            self.run = self.run.saturating_add(1);
            if let Some(newest) = self.recent.last_mut() {
                *newest = arrived;
            }
        } else {
            self.has_stumbled = true;
            self.begin(arrived);
        }
    }

    fn newest(&self) -> Arrived {
        let [.., newest] = self.recent;
        newest
    }

    fn is_fresh(&self, now: Micros) -> bool {
        now.since(self.newest().at) < SLOT_US
    }
}

/// Consecutive packets that make a candidate the party's source; Asterisk requires four as well.
const RUN: usize = 4;
const RUN_PACKETS: u32 = 4;
/// Those of them that were held back.
pub(super) const REPLAYED: usize = RUN - 1;
/// Two packets of one run are less than this apart.
const FOLLOWS_US: i64 = 2_000_000;
/// A candidate keeps its slot for this time after its latest packet.
const SLOT_US: i64 = 200_000;
