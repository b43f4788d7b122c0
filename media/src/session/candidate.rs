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

/// Packets that were held back until their source was accepted, in order of arrival.
pub(crate) type HeldBack = [Option<Arrived>; HELD_MAX];

/// The packets that were held back, and then this number of copies: each number is known by then, so that the last packet
/// stands for any copy.
pub(crate) fn replayed(held: HeldBack, copies: u8) -> impl Iterator<Item = Arrived> {
    let last = held.into_iter().flatten().last();
    held.into_iter().flatten().chain(last.into_iter().cycle().take(copies.into()))
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
#[derive(Clone, Debug, Default)]
pub(super) struct Candidate {
    /// `None` while there is no candidate.
    source: Option<SocketAddr>,
    rank: Rank,
    since: Micros,
    /// Consecutive packets so far.
    run: u32,
    /// Copies of packets among those so far.
    copies: u8,
    /// Whether its packets were not consecutive at least once.
    has_stumbled: bool,
    /// The latest packets, newest last.
    recent: [Arrived; RUN],
    /// Only in a capture; boxed, because live legs have none.
    near: Option<Box<Near>>,
}

/// Packets before the newest one whose numbers are near each other, newest last. Their order may be another one than that
/// of their numbers, so that a part of them would have gaps.
///
/// *Bounds*: as many as are held back.
#[derive(Clone, Debug, Default)]
struct Near {
    held: Vec<Arrived>,
}

impl Candidate {
    /// Adds a packet of `source`. Returns false when the slot belongs to a candidate of the same or a better
    /// rank that still sends.
    ///
    /// A candidate whose packets were not consecutive keeps the slot only in a capture, which is when `is_observed` is
    /// set; otherwise one source could hold the slot for ever.
    pub(super) fn take(
        &mut self,
        source: SocketAddr,
        rank: Rank,
        arrived: Arrived,
        is_observed: bool,
    ) -> bool {
        if self.source == Some(source) {
            self.extend(arrived, is_observed);
            return true;
        }
        let keeps = is_observed || !self.has_stumbled;
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

    /// Whether `source` is the candidate and sent a packet lately.
    pub(super) fn is_heard(&self, source: SocketAddr, now: Micros) -> bool {
        self.source == Some(source) && now.since(self.newest().at) < FOLLOWS_US
    }

    /// Whether enough packets arrived.
    pub(super) fn is_proven(&self) -> bool {
        self.run >= RUN_PACKETS || self.near().len() >= HELD_MAX
    }

    /// Arrival of the first packet of the run, or of the first packet with a number near it.
    pub(super) fn since(&self) -> Micros {
        self.since
    }

    /// The packets before the one that completed the proof.
    pub(super) fn held_back(&self) -> HeldBack {
        let [first, second, third, _] = self.recent;
        let run = [first, second, third];
        let held = if self.near().is_empty() { run.as_slice() } else { self.near() };
        std::array::from_fn(|place| held.get(place).copied())
    }

    /// How many copies of packets were held back with them.
    pub(super) fn copies(&self) -> u8 {
        self.copies
    }

    fn begin(&mut self, arrived: Arrived) {
        self.since = arrived.at;
        self.run = 1;
        self.copies = 0;
        self.near = None;
        if let Some(newest) = self.recent.last_mut() {
            *newest = arrived;
        }
    }

    /// Continues the run with the next packet of the same source, or starts a new run with it. A copy of a packet of
    /// the run changes nothing: networks duplicate packets, and captures hold some of them twice.
    fn extend(&mut self, arrived: Arrived, is_observed: bool) {
        let newest = self.newest();
        let ahead = arrived.packet.sequence.wrapping_sub(newest.packet.sequence);
        let is_same_stream = newest.packet.ssrc == arrived.packet.ssrc;
        let behind = 0_u16.wrapping_sub(ahead);
        if is_same_stream && behind <= NEAR_MAX && u32::from(behind) < self.run {
            self.copies = self.copies.saturating_add(1);
            return;
        }
        let within_us = if is_observed { OBSERVED_FOLLOWS_US } else { FOLLOWS_US };
        let is_soon = is_same_stream && arrived.at.since(newest.at) < within_us;
        let is_next = is_soon && ahead == 1;
        self.has_stumbled |= !is_next;
        // In a capture a source with loss or reordering is the party's too, although no four packets are consecutive.
        let is_near = is_soon && is_observed && ahead.wrapping_add(NEAR_MAX) <= 2 * NEAR_MAX;
        if !is_next && !is_near {
            return self.begin(arrived);
        }
        self.run = if is_next { self.run.saturating_add(1) } else { 1 };
        if is_observed {
            let held = &mut self.near.get_or_insert_default().held;
            if held.len() == HELD_MAX {
                held.remove(0);
            }
            held.push(newest);
        }
        self.recent.rotate_left(1);
        if let Some(newest) = self.recent.last_mut() {
            *newest = arrived;
        }
    }

    fn near(&self) -> &[Arrived] {
        self.near.as_deref().map_or(&[], |near| near.held.as_slice())
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
/// Packets that were held back of a candidate of a capture when it becomes the party's source: it takes eight with numbers
/// near each other.
const HELD_MAX: usize = 7;
/// Numbers are near each other up to this difference, as far as packets are reordered and not lost.
const NEAR_MAX: u16 = 100;
/// Two packets of one run are less than this apart.
const FOLLOWS_US: i64 = 2_000_000;
/// The same for a capture: a party that only listens may send nothing but comfort noise, every few seconds.
const OBSERVED_FOLLOWS_US: i64 = 30_000_000;
/// A candidate keeps its slot for this time after its latest packet.
const SLOT_US: i64 = 200_000;
