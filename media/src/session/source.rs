//! Whose packets are the party's: the source filter, and latching (symmetric RTP, RFC 4961).
//!
//! The party is expected where SDP says. Elsewhere it is found by four packets with consecutive numbers and
//! one SSRC; from then on our packets go there too. A source in use is left only when signalling names
//! another address, when it has been silent for two seconds, or for the very address that SDP names: what a
//! stranger sends beside a talking party goes nowhere.

use std::net::{SocketAddr, SocketAddrV4};

use crate::rtp::Packet;
use crate::time::Micros;

/// The accepted source of one leg, and the one that may become it.
#[derive(Clone, Debug)]
pub(crate) struct SourceFilter {
    /// The [`key`] of the accepted IPv4 source while signalling names no other; otherwise [`NOBODY`]'s.
    known: u64,
    accepted_at: Micros,
    /// What packets of the accepted source never touch, but for IPv6.
    search: Box<Search>,
}

#[derive(Clone, Debug, Default)]
struct Search {
    /// Where the party's packets come from.
    accepted: Option<SocketAddr>,
    /// Whether signalling names no other address than the accepted one.
    settled: bool,
    symmetric: bool,
    latched: bool,
    described: Option<SocketAddr>,
    /// When signalling last named another address than the accepted one.
    unsettled_at: Micros,
    /// Boxed, and only there where one could be latched to: most sessions of a capture never do.
    candidate: Option<Box<Candidate>>,
    latch_delay_us: Option<i64>,
    changes: u32,
}

/// What the filter says of one packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Admission {
    /// The party sent it.
    Accepted,
    /// The party sent it, and our packets go to where it came from as of now.
    Latched,
    /// The party sent it, after `replay` that were held back; our packets go there as of now.
    Found { replay: [Arrived; REPLAYED] },
    /// Somebody else sent it.
    Rejected,
}

/// The header of a packet that was held back, and when it came.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Arrived {
    pub(crate) at: Micros,
    pub(crate) packet: Packet,
}

#[derive(Clone, Copy, Debug, Default)]
struct Candidate {
    /// `None` while there is no candidate.
    source: Option<SocketAddr>,
    since: Micros,
    /// Consecutive packets so far.
    run: u32,
    /// The latest packets, newest last.
    recent: [Arrived; RUN],
}

impl SourceFilter {
    pub(crate) fn new(symmetric: bool) -> Self {
        SourceFilter {
            known: NOBODY,
            accepted_at: Micros::default(),
            search: Box::new(Search {
                symmetric,
                settled: true,
                // Made here so that no packet allocates.
                candidate: symmetric.then(Box::default),
                ..Search::default()
            }),
        }
    }

    /// Whether a packet comes from the accepted source; if not, [`SourceFilter::admit_other`] decides.
    #[inline]
    pub(crate) fn admit_known(&mut self, now: Micros, source: &SocketAddr) -> bool {
        let known = self.is_known(source);
        if known {
            self.accepted_at = now;
        }
        known
    }

    /// Whether `source` is the accepted one, and signalling names no other.
    #[inline]
    pub(crate) fn is_known(&self, source: &SocketAddr) -> bool {
        match source {
            SocketAddr::V4(_) => self.known == key(source),
            SocketAddr::V6(_) => self.search.settled && self.search.accepted.as_ref() == Some(source),
        }
    }

    /// The accepted source was heard last at `last`, if it was heard.
    #[inline]
    pub(crate) fn heard(&mut self, last: Option<Micros>) {
        self.accepted_at = last.unwrap_or(self.accepted_at);
    }

    /// Signalling names `remote` as the party's address.
    pub(crate) fn describe(&mut self, now: Micros, remote: SocketAddr) {
        if self.search.described.is_some_and(|before| same(before, remote)) {
            return;
        }
        self.search.described = Some(remote);
        self.search.forget_candidate();
        self.search.latched = false;
        if !self.search.symmetric {
            self.search.accepted = None;
        }
        self.search.settled = self.search.accepted.is_none_or(|accepted| same(accepted, remote));
        self.search.unsettled_at = now;
        self.know();
    }

    /// Where to send: the latched source, or what SDP says.
    pub(crate) fn target(&self) -> Option<SocketAddr> {
        if self.search.latched { self.search.accepted } else { self.search.described }
    }

    /// Where the party's packets come from.
    pub(crate) fn accepted(&self) -> Option<SocketAddr> {
        self.search.accepted
    }

    /// Where SDP last said the party is.
    pub(crate) fn described(&self) -> Option<SocketAddr> {
        self.search.described
    }

    /// Whether the party was found elsewhere than described.
    pub(crate) fn is_latched(&self) -> bool {
        self.search.latched
    }

    /// How long the winning source's packets were held back, in microseconds.
    pub(crate) fn latch_delay_us(&self) -> Option<i64> {
        self.search.latch_delay_us
    }

    /// Changes of the accepted source after the first.
    pub(crate) fn changes(&self) -> u32 {
        self.search.changes
    }

    /// Judges the source of any other packet; `usable` says whether its payload type is negotiated.
    #[cold]
    pub(crate) fn admit_other(
        &mut self,
        now: Micros,
        source: SocketAddr,
        packet: &Packet,
        usable: bool,
    ) -> Admission {
        let described = self.search.described.is_some_and(|described| same(described, source));
        if self.search.accepted == Some(source) {
            return self.admit_unsettled(now);
        }
        if described && (self.search.accepted.is_none() || !self.search.settled) {
            if usable {
                self.accept(now, source);
            }
            return Admission::Accepted;
        }
        if !self.search.symmetric || !usable {
            return Admission::Rejected;
        }
        self.try_candidate(now, source, packet, described)
    }

    /// The old source still sends although signalling named another.
    fn admit_unsettled(&mut self, now: Micros) -> Admission {
        self.accepted_at = now;
        let long = now.since(self.search.unsettled_at) >= UNSETTLED_US;
        if !long {
            return Admission::Accepted;
        }
        self.search.settled = true;
        self.search.latched = true;
        self.know();
        Admission::Latched
    }

    fn try_candidate(
        &mut self,
        now: Micros,
        source: SocketAddr,
        packet: &Packet,
        described: bool,
    ) -> Admission {
        let arrived = Arrived { at: now, packet: *packet };
        let Some(candidate) = self.search.candidate.as_deref_mut() else { return Admission::Rejected };
        if candidate.source == Some(source) {
            candidate.extend(arrived);
        } else if candidate.source.is_some() && candidate.is_fresh(now) {
            // A stranger cannot take the slot from a candidate that is still at it.
            return Admission::Rejected;
        } else {
            *candidate = Candidate::new(source, arrived);
        }
        let candidate = *candidate;
        let free = self.search.accepted.is_none()
            || !self.search.settled
            || described
            || now.since(self.accepted_at) >= SILENT_US;
        if candidate.run < RUN_PACKETS || !free {
            return Admission::Rejected;
        }
        self.accept(now, source);
        self.search.latched = !described;
        self.search.latch_delay_us = Some(now.since(candidate.since));
        Admission::Found { replay: candidate.held_back() }
    }

    fn accept(&mut self, now: Micros, source: SocketAddr) {
        if self.search.accepted.is_some_and(|before| before != source) {
            self.search.changes = self.search.changes.saturating_add(1);
        }
        self.search.accepted = Some(source);
        self.accepted_at = now;
        self.search.settled = true;
        self.search.forget_candidate();
        self.know();
    }

    /// Keeps the accepted source where a packet finds it at once.
    fn know(&mut self) {
        self.known = match self.search.accepted {
            Some(accepted @ SocketAddr::V4(_)) if self.search.settled => key(&accepted),
            _ => NOBODY,
        };
    }
}

impl Search {
    fn forget_candidate(&mut self) {
        if let Some(candidate) = &mut self.candidate {
            candidate.source = None;
        }
    }
}

impl Candidate {
    fn new(source: SocketAddr, arrived: Arrived) -> Self {
        let mut candidate =
            Candidate { source: Some(source), since: arrived.at, run: 0, recent: [Arrived::default(); RUN] };
        candidate.begin(arrived);
        candidate
    }

    fn begin(&mut self, arrived: Arrived) {
        self.since = arrived.at;
        self.run = 1;
        if let Some(newest) = self.recent.last_mut() {
            *newest = arrived;
        }
    }

    /// Goes on with the next packet of the same source, or begins anew with it.
    fn extend(&mut self, arrived: Arrived) {
        let newest = self.newest();
        let follows = newest.packet.ssrc == arrived.packet.ssrc
            && newest.packet.sequence.wrapping_add(1) == arrived.packet.sequence
            && arrived.at.since(newest.at) < SILENT_US;
        if follows {
            self.recent.rotate_left(1);
            self.run = self.run.saturating_add(1);
            if let Some(newest) = self.recent.last_mut() {
                *newest = arrived;
            }
        } else {
            self.begin(arrived);
        }
    }

    fn newest(&self) -> Arrived {
        let [.., newest] = self.recent;
        newest
    }

    fn is_fresh(&self, now: Micros) -> bool {
        now.since(self.newest().at) < CANDIDATE_US
    }

    /// The packets of the run before the one that completed it.
    fn held_back(&self) -> [Arrived; REPLAYED] {
        let [first, second, third, _] = self.recent;
        [first, second, third]
    }
}

/// A source as a number: no other has that of an IPv4 source, all of IPv6 have the same.
#[inline(always)]
pub(crate) fn key(source: &SocketAddr) -> u64 {
    match source {
        SocketAddr::V4(source) => key_v4(source),
        SocketAddr::V6(_) => SOMEBODY,
    }
}

/// The [`key`] of an IPv4 source.
#[inline(always)]
pub(crate) fn key_v4(source: &SocketAddrV4) -> u64 {
    u64::from(source.ip().to_bits()) << 16 | u64::from(source.port())
}

/// The [`key`] of all sources of IPv6.
const SOMEBODY: u64 = u64::MAX - 1;
/// No source has this [`key`].
pub(crate) const NOBODY: u64 = u64::MAX;

/// Whether two addresses are one, an IPv4 address mapped into IPv6 being the same.
fn same(one: SocketAddr, other: SocketAddr) -> bool {
    one.port() == other.port() && one.ip().to_canonical() == other.ip().to_canonical()
}

/// Consecutive packets that make a candidate the party; Asterisk takes four as well.
const RUN: usize = 4;
const RUN_PACKETS: u32 = 4;
/// Those of them that were held back.
const REPLAYED: usize = RUN - 1;
/// A source in use this long silent may be replaced.
const SILENT_US: i64 = 2_000_000;
/// The old source, still sending this long after signalling named another, is the party after all.
const UNSETTLED_US: i64 = 1_000_000;
/// A candidate keeps its slot this long after its latest packet.
const CANDIDATE_US: i64 = 200_000;

#[cfg(test)]
mod tests {
    use super::*;

    const DESCRIBED: &str = "10.0.0.1:4000";
    const OTHER: &str = "192.0.2.1:4000";
    const STRANGER: &str = "192.0.2.66:4000";

    /// When, from where, and with which number packets come.
    type Sent = Vec<(i64, &'static str, u16)>;

    /// Feeds (milliseconds, source, number) to a filter that expects `DESCRIBED`; one letter for each packet:
    /// a accepted, l latched, f found, r rejected.
    fn letters(symmetric: bool, packets: &[(i64, &str, u16)]) -> String {
        let mut filter = SourceFilter::new(symmetric);
        filter.describe(Micros(0), DESCRIBED.parse().unwrap());
        packets.iter().map(|packet| letter(&mut filter, *packet)).collect()
    }

    fn letter(filter: &mut SourceFilter, (ms, source, sequence): (i64, &str, u16)) -> char {
        let packet = Packet { sequence, ..Packet::default() };
        let (now, source) = (Micros::from_millis(ms), source.parse().unwrap());
        if filter.admit_known(now, &source) {
            return 'a';
        }
        match filter.admit_other(now, source, &packet, true) {
            Admission::Accepted => 'a',
            Admission::Latched => 'l',
            Admission::Found { .. } => 'f',
            Admission::Rejected => 'r',
        }
    }

    #[test]
    fn sources_are_judged() {
        let run = |source, from: i64, count: i64| {
            (from..from + count).map(move |n| (n * 20, source, u16::try_from(n % 65_536).unwrap()))
        };
        let cases: Vec<(&str, bool, Sent, &str)> = vec![
            ("as described", true, run(DESCRIBED, 0, 5).collect(), "aaaaa"),
            ("from elsewhere", true, run(OTHER, 0, 6).collect(), "rrrfaa"),
            ("from elsewhere, latching off", false, run(OTHER, 0, 6).collect(), "rrrrrr"),
            (
                "from elsewhere with a gap",
                true,
                [0, 1, 2, 4, 5, 6, 7].map(|n| (n * 20, OTHER, n as u16)).to_vec(),
                "rrrrrrf",
            ),
            (
                "a mapped address is the same",
                true,
                vec![(0, "[::ffff:10.0.0.1]:4000", 1), (20, "[::ffff:10.0.0.1]:4000", 2)],
                "aa",
            ),
            (
                "a stranger beside the party",
                true,
                run(DESCRIBED, 0, 6).zip(run(STRANGER, 0, 6)).flat_map(|(a, b)| [a, b]).collect(),
                "arararararar",
            ),
            (
                "a stranger once the party is silent",
                true,
                run(DESCRIBED, 0, 2).chain(run(STRANGER, 99, 5)).collect(),
                "aarrrfa",
            ),
            (
                "a stranger who began before the silence",
                true,
                run(DESCRIBED, 0, 1).chain(run(STRANGER, 96, 6)).collect(),
                "arrrrfa",
            ),
            (
                "the described one wins back what was latched",
                true,
                run(OTHER, 0, 5).chain(run(DESCRIBED, 5, 5)).collect(),
                "rrrfarrrfa",
            ),
            (
                "a stranger cannot disturb a candidate",
                true,
                run(OTHER, 0, 5)
                    .zip(run(STRANGER, 7, 5))
                    .flat_map(|(a, (ms, source, n))| [a, (ms - 140, source, n)])
                    .collect(),
                "rrrrrrfrar",
            ),
        ];
        for (name, symmetric, packets, expected) in cases {
            assert_eq!(letters(symmetric, &packets), expected, "{name}");
        }
    }

    #[test]
    fn without_latching_signalling_is_obeyed_at_once() {
        let mut filter = SourceFilter::new(false);
        filter.describe(Micros(0), DESCRIBED.parse().unwrap());
        assert_eq!(letter(&mut filter, (0, DESCRIBED, 0)), 'a');
        filter.describe(Micros(10_000), OTHER.parse().unwrap());
        assert_eq!(letter(&mut filter, (20, DESCRIBED, 1)), 'r');
        assert_eq!(letter(&mut filter, (40, OTHER, 2)), 'a');
    }

    #[test]
    fn signalling_unsettles_the_source() {
        let mut filter = SourceFilter::new(true);
        let feed = |filter: &mut SourceFilter, packets: &[(i64, &str, u16)]| {
            packets.iter().map(|packet| letter(filter, *packet)).collect::<String>()
        };
        filter.describe(Micros(0), DESCRIBED.parse().unwrap());
        assert_eq!(feed(&mut filter, &[(0, DESCRIBED, 0)]), "a");
        filter.describe(Micros(10_000), OTHER.parse().unwrap());
        assert_eq!(filter.target(), Some(OTHER.parse().unwrap()));
        assert_eq!(feed(&mut filter, &[(20, DESCRIBED, 1), (40, OTHER, 2), (60, DESCRIBED, 3)]), "aar");
        assert_eq!(filter.target(), Some(OTHER.parse().unwrap()));
        assert!(!filter.is_latched());
        // The new address is named but the packets go on from the old one: it is behind NAT.
        filter.describe(Micros(100_000), STRANGER.parse().unwrap());
        assert_eq!(feed(&mut filter, &[(120, OTHER, 4), (1_090, OTHER, 5), (1_100, OTHER, 6)]), "aal");
        assert_eq!(filter.target(), Some(OTHER.parse().unwrap()));
        filter.describe(Micros(2_000_000), STRANGER.parse().unwrap());
        assert!(filter.is_latched(), "the same description again changes nothing");
    }
}
