//! Whose packets are the party's: the source filter, and latching (symmetric RTP, RFC 4961).
//!
//! Sources have a [`Rank`]: the address and port of SDP, then any port of that address or of the address of signalling,
//! then every other address. [`StrictSource`] says which ranks are admitted at all. A source outside SDP is believed
//! after four packets with consecutive numbers and one SSRC; from then on our packets go there too. An accepted source is
//! replaced by one of the same rank only when signalling changed, or after five seconds of silence, and takes the leg
//! back with its first packet. A source of a better rank takes the leg with its first packet. A source of a lesser rank
//! never replaces it.
//!
//! The analysis of a capture observes what others decided, see [`StrictSource::Observed`].

use std::net::{IpAddr, SocketAddr, SocketAddrV4};

use crate::rtp::Packet;
use crate::session::StrictSource;
use crate::session::candidate::{Arrived, Candidate, REPLAYED, Rank};
use crate::time::Micros;
use crate::verdict::address::is_unreachable;

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
    /// Where the party's SIP comes from.
    signalling: Option<IpAddr>,
    rule: StrictSource,
    /// When signalling last named another address than the accepted one.
    unsettled_at: Micros,
    /// Sources that were accepted before the accepted one and fell silent, the earliest first.
    earlier: [Option<SocketAddr>; EARLIER_MAX],
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
    /// The party sent it, after `replay` that were held back; our packets go there as of now.
    Found { replay: [Arrived; REPLAYED] },
    /// The party may have sent it: its source is on probation.
    Held,
    /// The party sent it, and our packets go to where it came from as of now.
    Latched,
    /// Another source sent it.
    Rejected,
    /// The party sent it and has the leg again, which `foreign` had taken over.
    TakenBack { foreign: SocketAddr },
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

    /// Signalling comes from `signalling` and names `remote` as the party's address; `None` names none, as on hold.
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

    /// The accepted source, when neither SDP nor signalling names its address.
    pub(crate) fn stranger(&self) -> Option<SocketAddr> {
        let search = &*self.search;
        let can_be_told = search.rule != StrictSource::Observed && search.signalling.is_some();
        search.accepted.filter(|accepted| can_be_told && search.rank(*accepted) == Rank::Stranger)
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
        self.try_candidate(now, source, Arrived { at: now, packet: *packet }, described)
    }

    /// The old source still sends although signalling named another.
    fn admit_unsettled(&mut self, now: Micros) -> Admission {
        let search = &mut *self.search;
        let long = now.since(search.unsettled_at) >= UNSETTLED_US;
        let is_admitted = search.accepted.is_some_and(|accepted| search.admits(search.rank(accepted)));
        if long && !is_admitted {
            // What was on its way when signalling named another address has come.
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

    /// The leg goes to a source of a better rank than `loser`, or to one that had it before.
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
        // Those accepted after it, and those of a lesser rank, have no claim any more.
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
        let candidate = *candidate;
        if search.settled {
            search.note_earlier();
        }
        self.accept(now, source, !described);
        self.search.latch_delay_us = Some(now.since(candidate.since()));
        Admission::Found { replay: candidate.held_back() }
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

    /// Keeps the accepted source where a packet finds it at once.
    fn know(&mut self) {
        self.known = match self.search.accepted {
            Some(accepted @ SocketAddr::V4(_)) if self.search.settled => key(&accepted),
            _ => NOBODY,
        };
    }
}

impl Search {
    /// How much signalling says for `source`.
    ///
    /// An address in SDP that cannot be reached from where signalling comes says no more than signalling does: on the
    /// Internet a packet from there is forged.
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

    /// Whether sources of that rank may become the party's.
    fn admits(&self, rank: Rank) -> bool {
        match self.rule {
            StrictSource::Any | StrictSource::Observed => true,
            StrictSource::Sdp => rank == Rank::Exact,
            StrictSource::Signalling => rank > Rank::Stranger || self.signalling.is_none(),
        }
    }

    /// Whether a packet of `source` takes the leg from the accepted one.
    fn outranks(&self, source: SocketAddr, rank: Rank, accepted: SocketAddr) -> bool {
        if self.rule == StrictSource::Observed {
            return false;
        }
        let had_it = self.earlier.contains(&Some(source));
        let rank_accepted = self.rank(accepted);
        rank > rank_accepted || (had_it && rank == rank_accepted)
    }

    /// Whether the party is looked for elsewhere than SDP says.
    fn is_searching(&self) -> bool {
        self.symmetric && self.rule != StrictSource::Sdp
    }

    /// A source in use this long silent may be replaced.
    fn silent_us(&self) -> i64 {
        if self.rule == StrictSource::Observed { OBSERVED_SILENT_US } else { SILENT_US }
    }

    /// The accepted source is replaced because it fell silent; when there is no room, those before it keep theirs.
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

/// Sources that may take the leg back.
const EARLIER_MAX: usize = 4;
/// A source in use this long silent may be replaced by one of the same rank; Asterisk learns anew after as long.
const SILENT_US: i64 = 5_000_000;
/// The same in a capture.
const OBSERVED_SILENT_US: i64 = 2_000_000;
/// The old source, still sending this long after signalling named another, is the party after all.
const UNSETTLED_US: i64 = 1_000_000;

#[cfg(test)]
#[path = "source_tests.rs"]
mod tests;
