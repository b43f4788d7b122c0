//! The driver's end: finds the call of every SIP message, and passes both on without blocking.
//!
//! A message belongs to a call if its Call-ID is that of a leg of the call and its local tag is the leg's tag. Both
//! are needed: a Call-ID alone may be chosen by any peer, including one of another organisation.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use sidetone_media::net::RtcpSink;
use sidetone_model::ids::{CallId, OrganisationId};
use sidetone_model::media_quality::CallQuality;
use sidetone_model::signalling::SipDirection;
use sidetone_model::time::Now;
use sidetone_sip::flow::Flow;
use tokio::sync::mpsc;

use crate::hep::{HepSender, RtcpExport};
use crate::signalling::counters::SignallingCounters;
use crate::signalling::peek::{Peek, peek};
use crate::signalling::report::{Ended, Heard, OwnedCall, Report};
use crate::signalling::shares::SharedLimit;
use crate::signalling::strangers::Strangers;

/// Finds the calls of messages.
#[derive(Debug)]
pub struct SignallingTap {
    /// The legs of calls by their Call-ID.
    dialogs: HashMap<Box<[u8]>, Vec<Leg>>,
    call_ids: HashMap<CallId, Vec<Box<[u8]>>>,
    /// The legs in `dialogs`, by organisation.
    legs: SharedLimit,
    /// Ended calls, with the time by which their last messages have been exchanged.
    ended: VecDeque<(Instant, CallId)>,
    strangers: Strangers,
    /// The Call-ID and the peer's tag of the current INVITE, while it belongs to no call.
    uncalled: Option<(Bytes, Bytes)>,
    /// The RTCP exports of the calls that have ports.
    rtcp: HashMap<CallId, Arc<RtcpExport>>,
    /// The destination of the RTCP export.
    hep: Option<HepSender>,
    /// Ends that did not fit in the queue.
    unsent: VecDeque<Ended>,
    /// Whether messages that belong to no call, and the figures of calls, are passed on as well.
    exports: bool,
    reports: mpsc::Sender<Report>,
    counters: Arc<SignallingCounters>,
}

#[derive(Debug)]
struct Leg {
    of: OwnedCall,
    /// The local tag; `None` for a call that was refused before it had a leg.
    our_tag: Option<Box<[u8]>>,
    /// The tag of the peer that sent the INVITE.
    peer_tag: Option<Box<[u8]>>,
}

impl SignallingTap {
    pub(super) fn new(
        reports: mpsc::Sender<Report>,
        counters: Arc<SignallingCounters>,
        exports: bool,
    ) -> Self {
        SignallingTap {
            dialogs: HashMap::new(),
            call_ids: HashMap::new(),
            legs: SharedLimit::new(LEGS_IN_ALL_MAX),
            ended: VecDeque::new(),
            strangers: Strangers::default(),
            uncalled: None,
            rtcp: HashMap::new(),
            hep: None,
            unsent: VecDeque::new(),
            exports,
            reports,
            counters,
        }
    }

    /// Exports the RTCP of calls to `hep` as well.
    #[must_use]
    pub(super) fn with_rtcp_to(mut self, hep: Option<HepSender>) -> Self {
        self.hep = hep;
        self
    }

    /// The receiver of the RTCP of a call's leg, with the Call-ID of the call's first leg; `None` without an export.
    pub fn rtcp_of(&mut self, call: CallId) -> Option<Arc<dyn RtcpSink>> {
        let hep = self.hep.as_ref()?;
        let export = self.rtcp.entry(call).or_insert_with(|| Arc::new(RtcpExport::new(hep.clone())));
        if let Some(first) = self.call_ids.get(&call).and_then(|call_ids| call_ids.first()) {
            export.correlate(&String::from_utf8_lossy(first));
        }
        Some(Arc::clone(export) as Arc<dyn RtcpSink>)
    }

    /// Records a leg of a call: the Call-ID of its INVITE, the local tag, and the peer's tag if the peer sent the
    /// INVITE.
    pub fn learn(&mut self, of: OwnedCall, call_id: &str, our_tag: &str, peer_tag: Option<&str>) {
        let boxed = |tag: &str| Box::<[u8]>::from(tag.as_bytes());
        let leg = Leg { of, our_tag: Some(boxed(our_tag)), peer_tag: peer_tag.map(boxed) };
        self.insert(call_id.as_bytes(), leg);
    }

    /// Passes on a message that was received or sent.
    pub fn note(&mut self, now: Now, flow: Flow, direction: SipDirection, bytes: Bytes) {
        self.uncalled = None;
        self.expire(now.instant);
        let Some(peek) = peek(&bytes) else { return };
        let call = self.call_of(&peek, direction);
        let of_invite = peek.invites && (direction == SipDirection::Sent) == peek.is_response;
        if call.is_none() && of_invite {
            if direction == SipDirection::Received {
                self.uncalled = Some((bytes.slice_ref(peek.call_id), bytes.slice_ref(peek.from_tag)));
            }
            let copy = bytes.clone();
            let heard = Heard { call, at: now.wall, flow, direction, bytes: copy, is_repeated: self.exports };
            self.strangers.push(now.instant, heard);
        }
        // Half of the queue is reserved for calls: any host may send messages that belong to none.
        let exports = self.exports && self.reports.capacity() > self.reports.max_capacity() / 2;
        if call.is_none() && self.exports && !exports {
            self.counters.note_dropped();
        }
        if call.is_some() || exports {
            let at = now.wall;
            self.send(Report::Heard(Heard { call, at, flow, direction, bytes, is_repeated: false }));
        }
    }

    /// Records the end of a call, also of one that was refused before it had a leg.
    pub fn ended(
        &mut self,
        now: Now,
        call: CallId,
        organisation: OrganisationId,
        quality: Option<&CallQuality>,
    ) {
        let of = OwnedCall { call, organisation };
        if !self.call_ids.contains_key(&call)
            && let Some((call_id, peer_tag)) = self.uncalled.take()
        {
            self.insert(&call_id, Leg { of, our_tag: None, peer_tag: Some(peer_tag[..].into()) });
        }
        if self.call_ids.contains_key(&call) {
            self.ended.push_back((now.instant + LINGER, call));
            let is_exported = self.exports && self.unsent.len() < UNSENT_MAX;
            let quality = quality.filter(|_| is_exported).map(|all| Box::new(all.clone().without_timeline()));
            self.unsent.push_back(Ended { of, quality });
            self.send_ends();
        } else {
            self.rtcp.remove(&call);
        }
    }

    fn insert(&mut self, call_id: &[u8], leg: Leg) {
        let (of, peer_tag) = (leg.of, leg.peer_tag.clone());
        let known = self.dialogs.get(call_id).map(Vec::as_slice).unwrap_or_default();
        if known.iter().any(|known| known.of.call == of.call && known.our_tag == leg.our_tag) {
            return;
        }
        if known.len() >= LEGS_MAX || !self.legs.has_room(of.organisation) {
            return self.counters.note_dropped();
        }
        self.dialogs.entry(call_id.into()).or_default().push(leg);
        self.legs.grow(of.organisation, 1);
        if let Some(export) = self.rtcp.get(&of.call) {
            export.correlate(&String::from_utf8_lossy(call_id));
        }
        let call_ids = self.call_ids.entry(of.call).or_default();
        if !call_ids.iter().any(|known| **known == *call_id) {
            call_ids.push(call_id.into());
        }
        for heard in peer_tag.map(|tag| self.strangers.take(call_id, &tag)).unwrap_or_default() {
            self.send(Report::Heard(Heard { call: Some(of), ..heard }));
        }
    }

    /// Returns the call of a message.
    fn call_of(&self, peek: &Peek<'_>, direction: SipDirection) -> Option<OwnedCall> {
        let legs = self.dialogs.get(peek.call_id)?;
        // From is the side that sent the request, To the other one.
        let is_ours = peek.is_response == (direction == SipDirection::Received);
        let (ours, peers) = if is_ours { (peek.from_tag, peek.to_tag) } else { (peek.to_tag, peek.from_tag) };
        let same = |tag: &Option<Box<[u8]>>, other: &[u8]| tag.as_deref().is_some_and(|tag| tag == other);
        let with_tag = |leg: &&Leg| !ours.is_empty() && same(&leg.our_tag, ours);
        // The first INVITE, its CANCEL and its 100 have no local tag yet, and a refused call has no leg.
        let by_peer = |leg: &&Leg| same(&leg.peer_tag, peers) && (ours.is_empty() || leg.our_tag.is_none());
        if let Some(leg) = legs.iter().find(with_tag) {
            return Some(leg.of);
        }
        let mut of_peer = legs.iter().filter(by_peer).map(|leg| leg.of);
        // A proxy may have forked one INVITE to two calls here; a message that matches both is assigned to neither.
        of_peer.next().filter(|of| of_peer.all(|other| other.call == of.call))
    }

    fn send(&mut self, report: Report) {
        self.send_ends();
        if self.reports.try_send(report).is_err() {
            self.counters.note_dropped();
        }
    }

    fn send_ends(&mut self) {
        while !self.unsent.is_empty() {
            // If the queue is full, the ends follow with the next message.
            let Ok(place) = self.reports.try_reserve() else { return };
            if let Some(ended) = self.unsent.pop_front() {
                place.send(Report::Ended(ended));
            }
        }
    }

    /// Drops calls whose last messages have been exchanged.
    fn expire(&mut self, now: Instant) {
        while let Some((due, call)) = self.ended.front().copied()
            && due <= now
        {
            self.ended.pop_front();
            self.rtcp.remove(&call);
            for call_id in self.call_ids.remove(&call).unwrap_or_default() {
                let Some(legs) = self.dialogs.get_mut(&call_id) else { continue };
                for leg in legs.extract_if(.., |leg| leg.of.call == call) {
                    self.legs.grow(leg.of.organisation, -1);
                }
                if legs.is_empty() {
                    self.dialogs.remove(&call_id);
                }
            }
        }
    }
}

/// How long messages of an ended call are expected: a BYE is retransmitted for 64 × T1 (RFC 3261 §17.1.2.2).
pub(super) const LINGER: Duration = Duration::from_secs(32);
/// Legs of all organisations at the same time.
const LEGS_IN_ALL_MAX: usize = 131_072;
/// Legs with one Call-ID.
const LEGS_MAX: usize = 16;
/// Ends with figures that may wait for the queue. Later ones have no figures: a lost end would leave the messages of
/// its call in memory permanently.
const UNSENT_MAX: usize = 4_096;

#[cfg(test)]
#[path = "tap_tests.rs"]
mod tests;
