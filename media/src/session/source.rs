//! Decides which packets are the party's: the source filter, and latching (symmetric RTP, RFC 4961).
//!
//! Each source has a [`Rank`]. The best is the address and port of SDP, then any port of that address or of
//! the signalling address, then every other address. [`StrictSource`] defines which ranks are admitted at
//! all. A source outside SDP is accepted after four packets with consecutive numbers and one SSRC; from then
//! on our packets are sent there too. An accepted source is replaced by one of the same rank only when
//! signalling changed or after five seconds of silence, and its next packet takes the leg back. A source of a
//! better rank takes the leg with its first packet. A source of a worse rank never replaces it.
//!
//! In a capture the endpoints have already decided, and the analysis only observes: see
//! [`StrictSource::Observed`]. A source that continues the accepted stream is accepted with its first packet, because a
//! NAT may give the party another address at any time. One whose numbers are never four in a row, because packets are
//! missing or reordered, is accepted after eight.

use std::net::{IpAddr, SocketAddr, SocketAddrV4};

use crate::rtp::Packet;
use crate::session::StrictSource;
pub(crate) use crate::session::candidate::replayed;
use crate::session::candidate::{Arrived, Candidate, HeldBack, Rank};
use crate::time::Micros;
use crate::verdict::address::is_unreachable;

/// The accepted source of one leg, and the candidate for it.
#[derive(Clone, Debug)]
pub(crate) struct SourceFilter {
    /// The [`key`] of the accepted IPv4 source while signalling names no other address; otherwise [`NO_SOURCE`].
    known: u64,
    accepted_at: Micros,
    /// State that packets of the accepted IPv4 source never touch.
    search: Box<Search>,
}

#[derive(Clone, Debug, Default)]
struct Search {
    /// Source of the party's packets.
    accepted: Option<SocketAddr>,
    /// Whether signalling names no address other than the accepted one.
    settled: bool,
    symmetric: bool,
    latched: bool,
    described: Option<SocketAddr>,
    /// Source address of the party's SIP.
    signalling: Option<IpAddr>,
    rule: StrictSource,
    /// When signalling last named another address than the accepted one.
    unsettled_at: Micros,
    /// Earlier accepted sources that fell silent, the earliest first.
    earlier: [Option<SocketAddr>; EARLIER_MAX],
    /// Boxed, and only when latching is possible: most sessions of a capture never latch.
    candidate: Option<Box<Candidate>>,
    latch_delay_us: Option<i64>,
    changes: u32,
}

/// The filter's decision about one packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Admission {
    /// The party sent it.
    Accepted,
    /// The party sent it, after the packets in `replay` and a number of copies of them, which were held back; from now
    /// on our packets are sent to its source.
    Found { replay: HeldBack, copies: u8 },
    /// The party may have sent it: its source is a candidate.
    Held,
    /// The party sent it; from now on our packets are sent to its source.
    Latched,
    /// Another source sent it.
    Rejected,
    /// The party sent it and has the leg again, after `foreign` had taken it over.
    TakenBack { foreign: SocketAddr },
}

impl SourceFilter {
    pub(crate) fn new(symmetric: bool) -> Self {
        SourceFilter {
            known: NO_SOURCE,
            accepted_at: Micros::default(),
            search: Box::new(Search {
                symmetric,
                settled: true,
                // Allocated here so that no packet allocates.
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

    /// Whether `source` is the accepted one and signalling names no other.
    #[inline]
    pub(crate) fn is_known(&self, source: &SocketAddr) -> bool {
        match source {
            SocketAddr::V4(_) => self.known == key(source),
            SocketAddr::V6(_) => self.search.settled && self.search.accepted.as_ref() == Some(source),
        }
    }

    /// Updates the arrival of the accepted source's last packet, if there was one.
    #[inline]
    pub(crate) fn heard(&mut self, last: Option<Micros>) {
        self.accepted_at = last.unwrap_or(self.accepted_at);
    }

    /// Applies signalling: it comes from `signalling` and names `remote` as the party's address. `None` names
    /// no address, as on hold.
    pub(crate) fn describe(
        &mut self,
        now: Micros,
        remote: Option<SocketAddr>,
        signalling: Option<IpAddr>,
        rule: StrictSource,
    ) {
        let search = &mut *self.search;
        let signalling = signalling.map(|from| from.to_canonical());
        let remote = remote.filter(|remote| !search.described.is_some_and(|before| same(before, *remote)));
        let has_moved = rule != StrictSource::Observed && search.signalling != signalling;
        (search.signalling, search.rule) = (signalling, rule);
        if remote.is_none() && !has_moved {
            return;
        }
        search.forget_candidate();
        search.earlier = [None; EARLIER_MAX];
        if let Some(remote) = remote {
            search.described = Some(remote);
            search.latched = false;
            if !search.is_searching() {
                search.accepted = None;
            }
        }
        search.settled = search.accepted.is_none_or(|accepted| match remote {
            Some(remote) => same(accepted, remote),
            None => search.rank(accepted) > Rank::Stranger,
        });
        search.unsettled_at = now;
        self.know();
    }

    /// The destination: the latched source, or the address in SDP.
    pub(crate) fn target(&self) -> Option<SocketAddr> {
        if self.search.latched { self.search.accepted } else { self.search.described }
    }

    /// Source of the party's packets.
    pub(crate) fn accepted(&self) -> Option<SocketAddr> {
        self.search.accepted
    }

    /// The party's address in the last SDP.
    pub(crate) fn described(&self) -> Option<SocketAddr> {
        self.search.described
    }

    /// Whether the party's source differs from the described address.
    pub(crate) fn is_latched(&self) -> bool {
        self.search.latched
    }

    /// The accepted source, when neither SDP nor signalling names its address.
    pub(crate) fn stranger(&self) -> Option<SocketAddr> {
        let search = &*self.search;
        let can_be_told = search.rule != StrictSource::Observed && search.signalling.is_some();
        search.accepted.filter(|accepted| can_be_told && search.rank(*accepted) == Rank::Stranger)
    }

    /// How long the accepted source's packets were held back, in microseconds.
    pub(crate) fn latch_delay_us(&self) -> Option<i64> {
        self.search.latch_delay_us
    }

    /// Changes of the accepted source after the first.
    pub(crate) fn changes(&self) -> u32 {
        self.search.changes
    }

    /// Decides about a packet from any other source; `usable` is true when its payload type is negotiated, `continues`
    /// when it has the SSRC of the accepted stream and one of the next numbers.
    #[cold]
    pub(crate) fn admit_other(
        &mut self,
        now: Micros,
        source: SocketAddr,
        packet: &Packet,
        (usable, continues): (bool, bool),
    ) -> Admission {
        let search = &*self.search;
        let described = search.described.is_some_and(|described| same(described, source));
        if search.accepted == Some(source) {
            return self.admit_unsettled(now);
        }
        if described && (search.accepted.is_none() || !search.settled) {
            if usable {
                let before = self.target();
                self.accept(now, source, false);
                return if self.target() == before { Admission::Accepted } else { Admission::Latched };
            }
            return Admission::Accepted;
        }
        let rank = search.rank(source);
        if !search.is_searching() || !usable || !search.admits(rank) {
            return Admission::Rejected;
        }
        if let Some(loser) = search.accepted.filter(|accepted| search.outranks(source, rank, *accepted)) {
            return self.take_back(now, source, loser, described);
        }
        if continues && search.follows_party(now, source) {
            self.accept(now, source, !described);
            return Admission::Latched;
        }
        self.try_candidate(now, source, Arrived { at: now, packet: *packet }, described)
    }

    /// Handles the old source, which still sends although signalling named another.
    fn admit_unsettled(&mut self, now: Micros) -> Admission {
        let search = &mut *self.search;
        let long = now.since(search.unsettled_at) >= UNSETTLED_US;
        let is_admitted = search.accepted.is_some_and(|accepted| search.admits(search.rank(accepted)));
        if long && !is_admitted {
            // Packets that were in transit when signalling named another address have arrived by now.
            search.accepted = None;
            search.latched = false;
            search.settled = true;
            self.know();
            return Admission::Rejected;
        }
        self.accepted_at = now;
        if !long {
            return Admission::Accepted;
        }
        search.settled = true;
        search.latched = true;
        self.know();
        Admission::Latched
    }

    /// Gives the leg to a source of a better rank than `loser`, or to an earlier source.
    fn take_back(
        &mut self,
        now: Micros,
        source: SocketAddr,
        loser: SocketAddr,
        described: bool,
    ) -> Admission {
        let search = &mut *self.search;
        let had_it = search.earlier.iter().position(|earlier| *earlier == Some(source));
        let is_foreign = search.settled && (had_it.is_some() || search.rank(loser) == Rank::Stranger);
        // Sources accepted after it, and those of a worse rank, lose their claim.
        search.earlier.iter_mut().skip(had_it.unwrap_or(0)).for_each(|earlier| *earlier = None);
        self.accept(now, source, !described);
        if is_foreign { Admission::TakenBack { foreign: loser } } else { Admission::Latched }
    }

    fn try_candidate(
        &mut self,
        now: Micros,
        source: SocketAddr,
        arrived: Arrived,
        described: bool,
    ) -> Admission {
        let search = &mut *self.search;
        let rank = search.rank(source);
        let is_silent = now.since(self.accepted_at) >= search.silent_us();
        let free = match search.accepted {
            None => true,
            Some(_) if search.rule == StrictSource::Observed => !search.settled || described || is_silent,
            Some(accepted) => (!search.settled || is_silent) && rank >= search.rank(accepted),
        };
        let is_learning = search.accepted.is_none() || !search.settled;
        let refusal = if is_learning && free { Admission::Held } else { Admission::Rejected };
        let Some(candidate) = search.candidate.as_deref_mut() else { return Admission::Rejected };
        if !candidate.take(source, rank, arrived, search.rule == StrictSource::Observed) {
            return Admission::Rejected;
        }
        if !candidate.is_proven() || !free {
            return refusal;
        }
        let (since, found) = (
            candidate.since(),
            Admission::Found { replay: candidate.held_back(), copies: candidate.copies() },
        );
        if search.settled {
            search.note_earlier();
        }
        self.accept(now, source, !described);
        self.search.latch_delay_us = Some(now.since(since));
        found
    }

    fn accept(&mut self, now: Micros, source: SocketAddr, latched: bool) {
        if self.search.accepted.is_some_and(|before| before != source) {
            self.search.changes = self.search.changes.saturating_add(1);
        }
        self.search.accepted = Some(source);
        self.accepted_at = now;
        self.search.settled = true;
        self.search.latched = latched;
        self.search.forget_candidate();
        self.know();
    }

    /// Copies the accepted source into the field that the packet path reads.
    fn know(&mut self) {
        self.known = match self.search.accepted {
            Some(accepted @ SocketAddr::V4(_)) if self.search.settled => key(&accepted),
            _ => NO_SOURCE,
        };
    }
}

impl Search {
    /// The rank of `source`.
    ///
    /// When an address in SDP cannot be reached from the signalling source, an exact match does not count
    /// more than the signalling address: on the Internet a packet from such an address is forged.
    fn rank(&self, source: SocketAddr) -> Rank {
        if self.rule == StrictSource::Observed {
            return Rank::Stranger;
        }
        let ip = source.ip().to_canonical();
        let described = self.described.filter(|described| described.ip().to_canonical() == ip);
        let leads_nowhere = |described: SocketAddr| {
            self.rule != StrictSource::Sdp
                && self.signalling.is_some_and(|from| is_unreachable(described.ip(), from, &[]))
        };
        match described {
            Some(described) if described.port() == source.port() && !leads_nowhere(described) => Rank::Exact,
            Some(_) => Rank::Address,
            None if self.signalling == Some(ip) => Rank::Address,
            None => Rank::Stranger,
        }
    }

    /// Whether sources of this rank may become the party's.
    fn admits(&self, rank: Rank) -> bool {
        match self.rule {
            StrictSource::Any | StrictSource::Observed => true,
            StrictSource::Sdp => rank == Rank::Exact,
            StrictSource::Signalling => rank > Rank::Stranger || self.signalling.is_none(),
        }
    }

    /// Whether a packet of `source` takes the leg from the accepted source.
    fn outranks(&self, source: SocketAddr, rank: Rank, accepted: SocketAddr) -> bool {
        if self.rule == StrictSource::Observed {
            return false;
        }
        let had_it = self.earlier.contains(&Some(source));
        let rank_accepted = self.rank(accepted);
        rank > rank_accepted || (had_it && rank == rank_accepted)
    }

    /// Whether a source that continues the accepted stream is the party behind a new address. A source that sent
    /// before sends a copy of the stream, such as a capture in front of and behind a NAT holds.
    fn follows_party(&self, now: Micros, source: SocketAddr) -> bool {
        let sends_a_copy = self.candidate.as_deref().is_some_and(|candidate| candidate.is_heard(source, now));
        self.rule == StrictSource::Observed && self.accepted.is_some() && !sends_a_copy
    }

    /// Whether sources other than the one in SDP are considered.
    fn is_searching(&self) -> bool {
        self.symmetric && self.rule != StrictSource::Sdp
    }

    /// After this time of silence an accepted source may be replaced.
    fn silent_us(&self) -> i64 {
        if self.rule == StrictSource::Observed { OBSERVED_SILENT_US } else { SILENT_US }
    }

    /// Keeps the accepted source as an earlier one when it is replaced after silence; when the list is full,
    /// the entries in it stay.
    fn note_earlier(&mut self) {
        let Some(accepted) = self.accepted else { return };
        if let Some(free) = self.earlier.iter_mut().find(|earlier| earlier.is_none()) {
            *free = Some(accepted);
        }
    }

    fn forget_candidate(&mut self) {
        if let Some(candidate) = &mut self.candidate {
            candidate.forget();
        }
    }
}

/// A source as a number: unique for an IPv4 source, the same for all IPv6 sources.
#[inline(always)]
pub(crate) fn key(source: &SocketAddr) -> u64 {
    match source {
        SocketAddr::V4(source) => key_v4(source),
        SocketAddr::V6(_) => ANY_IPV6,
    }
}

/// The [`key`] of an IPv4 source.
#[inline(always)]
pub(crate) fn key_v4(source: &SocketAddrV4) -> u64 {
    u64::from(source.ip().to_bits()) << 16 | u64::from(source.port())
}

/// The [`key`] of all IPv6 sources.
const ANY_IPV6: u64 = u64::MAX - 1;
/// The [`key`] of no source.
pub(crate) const NO_SOURCE: u64 = u64::MAX;

/// Whether two addresses are equal; an IPv4 address mapped into IPv6 equals the IPv4 address.
fn same(one: SocketAddr, other: SocketAddr) -> bool {
    one.port() == other.port() && one.ip().to_canonical() == other.ip().to_canonical()
}

/// Sources that may take the leg back.
const EARLIER_MAX: usize = 4;
/// An accepted source that is silent for this time may be replaced by one of the same rank; Asterisk uses the
/// same time.
const SILENT_US: i64 = 5_000_000;
/// The same for a capture.
const OBSERVED_SILENT_US: i64 = 2_000_000;
/// When the old source still sends this long after signalling named another, it is the party's.
const UNSETTLED_US: i64 = 1_000_000;

#[cfg(test)]
#[path = "source_tests.rs"]
mod tests;
