//! The media addresses that session descriptions name, and the calls that named each.
//!
//! Several calls may name one address: the two calls of a B2BUA whose RTP bypasses it, the branches of a fork, or
//! calls one after the other. Which of them a packet belongs to is decided by both of its ends.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;

use sidetone_media::time::Micros;

use super::announcements::Announcement;
use super::flows::Binding;
use super::payloads::{Announced, Meanings, is_same};
use super::stream::AdvertisedPtime;

/// The state of a call, as far as it decides which packets are its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Standing {
    pub(super) started: Micros,
    pub(super) answered: Option<Micros>,
    pub(super) ended: Option<Micros>,
}

impl Standing {
    /// Whether it ended so long ago that no late packet is expected any more.
    pub(super) fn is_over(self, at: Micros) -> bool {
        self.ended.is_some_and(|ended| at.since(ended) >= LATE_US)
    }
}

/// The call that a flow belongs to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Bound {
    pub(super) binding: Binding,
    /// Other calls that the same packets belong to; mostly empty.
    pub(super) others: Box<[Binding]>,
}

/// The effect of an announcement on the table.
#[derive(Debug)]
pub(super) enum Effect {
    /// The table is full, or the announcement repeats what is known.
    None,
    /// Flows from and to the address may belong to another call now, or have other payload types. Contains the
    /// other calls that name the address.
    Changed(Vec<u32>),
}

/// The media addresses, each with the calls that named it.
#[derive(Debug, Default)]
pub(super) struct Endpoints {
    by_address: HashMap<SocketAddr, Claims>,
    /// RTCP that is not on the next port, and its RTP; at most one entry per claim.
    rtcp: HashMap<SocketAddr, SocketAddr>,
    /// Claims of all addresses.
    claims: usize,
    generation: u32,
    pub(super) meanings: Announced,
}

/// The calls that named an address; the latest is apart, because mostly there is no other.
#[derive(Debug)]
struct Claims {
    latest: Claim,
    /// The latest first.
    earlier: Vec<Claim>,
}

/// What one call states about an address.
#[derive(Debug)]
struct Claim {
    call: u32,
    of_caller: bool,
    /// Only a candidate of ICE, which counts only for packets between the parties of the call: behind their routers, the
    /// phones of many calls have one private address.
    is_candidate: bool,
    audio: bool,
    /// `a=ptime` of the section, in milliseconds.
    ptime_ms: Option<u32>,
    /// When the call last announced it.
    at: Micros,
    payloads: Meanings,
    /// The address of its RTCP, if SDP names one; boxed, since few descriptions do.
    rtcp: Option<Box<SocketAddr>>,
}

/// A call that named one or both ends of a flow.
#[derive(Clone, Copy)]
struct Candidate {
    binding: Binding,
    /// The later of its claims.
    at: Micros,
    rank: Rank,
}

/// The order of candidates; the greatest is the flow's call.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Rank {
    has_call: bool,
    is_live: bool,
    ends: NamedEnds,
    is_answered: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum NamedEnds {
    /// A party behind NAT receives at an address that no SDP named, from the address that the other party
    /// announced.
    Source,
    Destination,
    /// The source by one party, the destination by the other.
    Both,
}

impl Endpoints {
    /// A counter that changes whenever a flow may have been bound to another call.
    #[inline]
    pub(super) fn generation(&self) -> u32 {
        self.generation
    }

    /// Media addresses in the table.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.by_address.len()
    }

    /// Whether the table has no place for another claim.
    pub(super) fn is_full(&self) -> bool {
        self.claims >= CLAIMS_MAX
    }

    /// Removes the claims of calls that are over, and of no call.
    pub(super) fn retain_live(&mut self, standing: &impl Fn(u32) -> Option<Standing>) {
        let is_live = |claim: &Claim| standing(claim.call).is_some_and(|call| call.ended.is_none());
        self.by_address.retain(|_, claims| claims.retain(is_live));
        self.claims = self.by_address.values().map(|claims| 1 + claims.earlier.len()).sum();
        let by_address = &self.by_address;
        self.rtcp.retain(|_, rtp| by_address.contains_key(rtp));
        self.generation = self.generation.wrapping_add(1);
    }

    /// Whether a call names the address.
    pub(super) fn is_a_calls(&self, address: SocketAddr) -> bool {
        self.by_address
            .get(&address)
            .is_some_and(|claims| claims.iter().any(|claim| claim.call != Binding::NO_CALL))
    }

    /// Enters what `call` announces.
    pub(super) fn announce(
        &mut self,
        at: Micros,
        call: u32,
        announcement: &Announcement,
        standing: &impl Fn(u32) -> Option<Standing>,
    ) -> Effect {
        let Some(media) = announcement.sections().next() else { return Effect::None };
        let ptime_ms = media.ptime_ms;
        let payloads = self.meanings.meanings_of(announcement.sections());
        let Announcement { address, rtcp, of_caller, is_candidate, audio, .. } = *announcement;
        // Behind different routers, both parties may have one private address.
        if is_candidate && self.claim(address, call).is_some_and(|claim| !claim.is_candidate) {
            return Effect::None;
        }
        if let Some(known) = self.by_address.get_mut(&address).map(|claims| &mut claims.latest)
            && (known.call, known.of_caller, known.audio) == (call, of_caller, audio)
            && known.is_candidate == is_candidate
            && (known.rtcp.as_deref(), known.ptime_ms) == (rtcp.as_ref(), ptime_ms)
            && is_same(&known.payloads, &payloads)
        {
            known.at = at;
            return Effect::None;
        }
        if self.is_full() {
            return Effect::None;
        }
        self.generation = self.generation.wrapping_add(1);
        // The late packets of a call that used the address before and is over count for the new call.
        let goes_on = |claim: &Claim| {
            let is_over =
                |call: Standing| call.is_over(at) || (call.answered.is_some() && call.ended.is_some());
            claim.call != call && standing(claim.call).is_some_and(|call| !is_over(call))
        };
        self.forget(address, &goes_on);
        let claim =
            Claim { call, of_caller, is_candidate, audio, ptime_ms, at, payloads, rtcp: rtcp.map(Box::new) };
        if let Some(rtcp) = rtcp {
            self.rtcp.insert(rtcp, address);
        }
        self.claims += 1;
        let Some(claims) = self.by_address.get_mut(&address) else {
            self.by_address.insert(address, Claims { latest: claim, earlier: Vec::new() });
            return Effect::Changed(Vec::new());
        };
        let before = std::mem::replace(&mut claims.latest, claim);
        claims.earlier.insert(0, before);
        let excess = if claims.earlier.len() >= CLAIMS_PER_ADDRESS_MAX { claims.earlier.pop() } else { None };
        let others = claims.earlier.iter().map(|claim| claim.call).collect();
        if let Some(excess) = excess {
            self.claims -= 1;
            self.forget_rtcp(address, excess.rtcp.as_deref().copied());
        }
        Effect::Changed(others)
    }

    /// The state of a call has changed: of two calls that name the address, another one may have its packets now.
    /// Returns whether there are two.
    pub(super) fn reconsider(&mut self, address: SocketAddr) -> bool {
        let is_contested = self.by_address.get(&address).is_some_and(|claims| !claims.earlier.is_empty());
        if is_contested {
            self.generation = self.generation.wrapping_add(1);
        }
        is_contested
    }

    /// Removes what `call` states about an address.
    pub(super) fn withdraw(&mut self, address: SocketAddr, call: u32) {
        self.forget(address, &|claim| claim.call != call);
        if self.by_address.contains_key(&address) {
            self.generation = self.generation.wrapping_add(1);
        }
    }

    /// Keeps only some claims of an address.
    fn forget(&mut self, address: SocketAddr, keeps: &impl Fn(&Claim) -> bool) {
        let Some(claims) = self.by_address.get_mut(&address) else { return };
        let rtcp: Vec<SocketAddr> = claims
            .iter()
            .filter(|claim| !keeps(claim))
            .filter_map(|claim| claim.rtcp.as_deref().copied())
            .collect();
        let before = 1 + claims.earlier.len();
        let remain = claims.retain(keeps);
        let after = if remain { 1 + claims.earlier.len() } else { 0 };
        self.claims -= before - after;
        if !remain {
            self.by_address.remove(&address);
        }
        self.forget_rtcp(address, rtcp);
    }

    /// Removes addresses of RTCP of removed claims, except those that another claim of the address has too.
    fn forget_rtcp(&mut self, address: SocketAddr, removed: impl IntoIterator<Item = SocketAddr>) {
        let claims = self.by_address.get(&address);
        let is_used = |rtcp: &SocketAddr| {
            claims.is_some_and(|claims| claims.iter().any(|claim| claim.rtcp.as_deref() == Some(rtcp)))
        };
        for rtcp in removed.into_iter().filter(|rtcp| !is_used(rtcp)) {
            self.rtcp.remove(&rtcp);
        }
    }

    /// Returns the call whose SDP named one or both ends of a flow, and the others that named both.
    pub(super) fn bind(
        &self,
        at: Micros,
        (source, destination): (SocketAddr, SocketAddr),
        standing: &impl Fn(u32) -> Option<Standing>,
    ) -> Option<Bound> {
        let (from, to) = (self.by_address.get(&source), self.by_address.get(&destination));
        let named = |claims: Option<&Claims>, call: u32, of_caller: bool| {
            let mut claims = claims.into_iter().flat_map(Claims::iter);
            claims.find(|claim| claim.call == call && claim.of_caller == of_caller).map(|claim| claim.at)
        };
        let received = || {
            to.into_iter().flat_map(Claims::iter).filter_map(|claim| {
                let sent = named(from, claim.call, !claim.of_caller);
                let ends = if sent.is_some() { NamedEnds::Both } else { NamedEnds::Destination };
                let counts = ends == NamedEnds::Both || !claim.is_candidate;
                let claimed = sent.map_or(claim.at, |sent| sent.max(claim.at));
                counts.then_some((claim, !claim.of_caller, ends, claimed))
            })
        };
        let is_received = |call: u32| received().any(|(claim, ..)| claim.call == call);
        let sent = from.into_iter().flat_map(Claims::iter);
        let sent = sent.filter(|claim| !claim.is_candidate && !is_received(claim.call));
        let sent = sent.map(|claim| (claim, claim.of_caller, NamedEnds::Source, claim.at));
        let candidates = received().chain(sent).filter_map(|(claim, from_caller, ends, claimed)| {
            let call = standing(claim.call);
            if call.is_some_and(|call| call.is_over(at)) {
                return None;
            }
            let rank = Rank {
                has_call: claim.call != Binding::NO_CALL,
                is_live: call.is_none_or(|call| call.ended.is_none()),
                ends,
                is_answered: call.is_some_and(|call| call.answered.is_some()),
            };
            let binding = Binding { call: claim.call, from_caller, audio: claim.audio };
            Some(Candidate { binding, at: claimed, rank })
        });
        let candidates: Vec<Candidate> = candidates.collect();
        // Among equals, the one that was announced last.
        let key = |candidate: &Candidate| (candidate.rank, candidate.at);
        let best = candidates
            .iter()
            .copied()
            .reduce(|best, other| if key(&other) > key(&best) { other } else { best })?;
        let others = candidates.iter().filter(|other| other.shares_with(&best, standing));
        Some(Bound { binding: best.binding, others: others.map(|other| other.binding).collect() })
    }

    /// The RTP address that belongs to the RTCP at `address`.
    pub(super) fn rtp_address(&self, address: SocketAddr) -> SocketAddr {
        if let Some(rtp) = self.rtcp.get(&address) {
            return *rtp;
        }
        let shared = self.by_address.contains_key(&address);
        let below = address.port().checked_sub(1).filter(|port| *port > 0 && !shared);
        below.map_or(address, |port| SocketAddr::new(address.ip(), port))
    }

    /// The meaning of the payload types of a flow that belongs to a call.
    pub(super) fn payloads(&self, binding: Binding, ends: (SocketAddr, SocketAddr)) -> Option<Meanings> {
        let claim = self.claim(ends.1, binding.call).or_else(|| self.claim(ends.0, binding.call))?;
        Some(Arc::clone(&claim.payloads))
    }

    /// The packet durations that the descriptions of the call give for the source and for the destination.
    pub(super) fn ptime_ms(&self, binding: Binding, ends: (SocketAddr, SocketAddr)) -> AdvertisedPtime {
        let (source, destination) = (self.claim(ends.0, binding.call), self.claim(ends.1, binding.call));
        let of = |claim: Option<&Claim>| claim.and_then(|claim| claim.ptime_ms);
        let ptime_ms = (of(source), of(destination));
        // A description that was not captured may have named one.
        let is_known = ptime_ms != (None, None) || (source.is_some() && destination.is_some());
        is_known.then_some(ptime_ms)
    }

    fn claim(&self, address: SocketAddr, call: u32) -> Option<&Claim> {
        self.by_address.get(&address)?.iter().find(|claim| claim.call == call)
    }
}

impl Claims {
    fn iter(&self) -> impl Iterator<Item = &Claim> {
        std::iter::once(&self.latest).chain(&self.earlier)
    }

    /// Keeps only some of them; false when none is left, and nothing has changed then.
    fn retain(&mut self, keeps: impl Fn(&Claim) -> bool) -> bool {
        if !self.iter().any(&keeps) {
            return false;
        }
        self.earlier.retain(&keeps);
        if !keeps(&self.latest) && !self.earlier.is_empty() {
            self.latest = self.earlier.remove(0);
        }
        true
    }
}

impl Candidate {
    /// Whether the packets belong to this call as well as to `best`: both are live and name both ends.
    fn shares_with(&self, best: &Candidate, standing: &impl Fn(u32) -> Option<Standing>) -> bool {
        let has_both = |candidate: &Candidate| {
            candidate.rank.has_call && candidate.rank.is_live && candidate.rank.ends == NamedEnds::Both
        };
        if self.binding.call == best.binding.call || !has_both(self) || !has_both(best) {
            return false;
        }
        // A call that was up before the other began, and announced nothing since: its end was not captured, and the
        // ports are used again.
        let began = standing(best.binding.call).map(|call| call.started);
        let answered = standing(self.binding.call).and_then(|call| call.answered);
        !began.is_some_and(|began| self.at < began && answered.is_some_and(|answered| answered < began))
    }
}

/// Claims of all calls at one time.
const CLAIMS_MAX: usize = 200_000;
/// Calls that are remembered for one address.
const CLAIMS_PER_ADDRESS_MAX: usize = 16;
/// Late packets of a call arrive within this time after its end.
pub(super) const LATE_US: i64 = 5_000_000;
