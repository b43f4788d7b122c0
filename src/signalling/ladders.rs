//! The messages of calls in memory: live calls, and calls that ended a moment ago.

use std::collections::{HashMap, VecDeque};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::net::SocketAddr;
use std::time::Instant;

use parking_lot::Mutex;
use sidetone_model::ids::{CallId, OrganisationId};
use sidetone_model::signalling::{CallSignalling, SipMessage};
use sidetone_model::time::{Now, Timestamp};
use tokio::sync::mpsc;

use crate::signalling::ladder::Ladder;
use crate::signalling::redact::redacted;
use crate::signalling::report::{Heard, OwnedCall};
use crate::signalling::shares::Shares;
use crate::signalling::tap::LINGER;

/// The ladders of calls, bounded in total and for each organisation by [`Shares`].
#[derive(Debug, Default)]
pub(super) struct Ladders {
    calls: HashMap<CallId, Open>,
    /// Ended calls, with the time by which their last messages have been exchanged.
    ended: VecDeque<(Instant, CallId)>,
    shares: Shares,
    /// An organisation whose message exceeded its memory; its first ended call makes space.
    crowded: Option<OrganisationId>,
}

#[derive(Debug)]
struct Open {
    ladder: Ladder,
    organisation: OrganisationId,
    phase: Phase,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// The call is up.
    Up,
    /// It has ended, and its last messages may still follow.
    Ended,
    /// It has ended, and its messages were stored early to make space. Later ones are dropped.
    Stored,
}

/// The messages of an ended call, to be stored.
#[derive(Clone, Debug)]
pub(super) struct Finished {
    /// The call.
    pub(super) call: CallId,
    /// Its organisation.
    pub(super) organisation: OrganisationId,
    /// When its messages are stored.
    pub(super) at: Timestamp,
    /// The messages.
    pub(super) signalling: CallSignalling,
}

impl Ladders {
    /// Adds a message of a call, with the digest of its bytes on the wire. Returns false if the call's organisation
    /// has no memory left for it.
    pub(super) fn push(&mut self, of: OwnedCall, message: SipMessage, digest: u64) -> bool {
        let known = self.calls.get(&of.call);
        let organisation = known.map_or(of.organisation, |open| open.organisation);
        if !self.shares.has_room(organisation) {
            self.crowded = Some(organisation);
            return false;
        }
        if known.is_some_and(|open| open.phase == Phase::Stored) {
            return false;
        }
        let new = || Open { ladder: Ladder::default(), organisation, phase: Phase::Up };
        let grown = self.calls.entry(of.call).or_insert_with(new).ladder.push(message, digest);
        self.shares.grow(organisation, grown);
        true
    }

    /// Records the end of a call.
    pub(super) fn end(&mut self, now: Instant, of: OwnedCall) {
        let OwnedCall { call, organisation } = of;
        let Some(open) = self.calls.get_mut(&call).filter(|open| open.phase == Phase::Up) else { return };
        open.phase = Phase::Ended;
        let bytes = open.ladder.bytes().cast_signed();
        // The organisation is taken from its record.
        let before = std::mem::replace(&mut open.organisation, organisation);
        self.shares.grow(before, -bytes);
        self.shares.grow(organisation, bytes);
        self.shares.end(organisation, call);
        self.ended.push_back((now + LINGER, call));
    }

    /// Removes and returns the messages of an ended call whose last messages have been exchanged, or that makes space
    /// for its organisation.
    pub(super) fn pop_finished(&mut self, now: Instant, wall: Timestamp) -> Option<Finished> {
        if let Some(finished) = self.pop_early(wall) {
            return Some(finished);
        }
        while self.ended.front().is_some_and(|(due, _)| *due <= now) {
            if let Some(finished) = self.pop_ended(wall) {
                return Some(finished);
            }
        }
        None
    }

    /// Drops the messages of the ended call that makes space for its organisation, if none can be stored. Returns
    /// whether there was one.
    pub(super) fn drop_early(&mut self, wall: Timestamp) -> bool {
        self.pop_early(wall).is_some()
    }

    /// Removes and returns the messages of the first ended call of an organisation whose message exceeded its memory.
    fn pop_early(&mut self, wall: Timestamp) -> Option<Finished> {
        let early = self.crowded.take().and_then(|organisation| self.shares.first_ended(organisation));
        early.and_then(|call| self.store(call, wall))
    }

    /// Removes and returns the messages of the call that ended first; `None` if they were stored before, or no call has
    /// ended.
    fn pop_ended(&mut self, wall: Timestamp) -> Option<Finished> {
        let (_, call) = self.ended.pop_front()?;
        let finished = self.store(call, wall);
        self.calls.remove(&call);
        finished
    }

    /// Removes and returns the messages of all ended calls.
    pub(super) fn drain_ended(&mut self, wall: Timestamp) -> Vec<Finished> {
        let mut all = Vec::new();
        while !self.ended.is_empty() {
            all.extend(self.pop_ended(wall));
        }
        all
    }

    /// Returns the messages of a call of this organisation that are in memory.
    pub(super) fn find(&self, organisation: OrganisationId, call: CallId) -> Option<CallSignalling> {
        let open = self.calls.get(&call)?;
        let is_here = open.organisation == organisation && open.phase != Phase::Stored;
        is_here.then(|| open.ladder.to_signalling())
    }

    /// Removes the messages of an ended call from memory.
    fn store(&mut self, call: CallId, at: Timestamp) -> Option<Finished> {
        let open = self.calls.get_mut(&call).filter(|open| open.phase == Phase::Ended)?;
        open.phase = Phase::Stored;
        let (organisation, ladder) = (open.organisation, std::mem::take(&mut open.ladder));
        self.shares.stored(organisation, ladder.bytes());
        Some(Finished { call, organisation, at, signalling: ladder.to_signalling() })
    }
}

/// Passes ended calls to the writer while it accepts them. The others stay in the memory of their organisation, which
/// loses its oldest when it needs that memory. Returns how many calls lost their messages.
pub(super) fn pass_on(ladders: &Mutex<Ladders>, writer: &mpsc::Sender<Finished>, now: Now) -> u64 {
    while let Ok(place) = writer.try_reserve() {
        let Some(finished) = ladders.lock().pop_finished(now.instant, now.wall) else { return 0 };
        place.send(finished);
    }
    ladders.lock().drop_early(now.wall).into()
}

/// The digest of a message's bytes on the wire, which identifies a retransmission.
pub(super) fn digest_of(heard: &Heard) -> u64 {
    let mut digest = DefaultHasher::new();
    heard.bytes.hash(&mut digest);
    digest.finish()
}

/// The message in its kept form.
pub(super) fn message(heard: &Heard, local: Option<SocketAddr>) -> SipMessage {
    let kept = redacted(&heard.bytes);
    SipMessage {
        at: heard.at,
        at_us: heard.at.as_micros(),
        direction: heard.direction,
        transport: heard.flow.protocol.as_str().to_owned(),
        local: local.map(|local| local.to_string()),
        remote: heard.flow.remote.to_string(),
        repeats: 0,
        left_out_before: 0,
        method: kept.method,
        status: kept.status,
        summary: kept.summary,
        call_id: kept.call_id,
        cseq: kept.cseq,
        from: kept.from,
        to: kept.to,
        body_type: kept.body_type,
        body_bytes: kept.body_bytes,
        text: kept.text,
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use sidetone_model::signalling::SipDirection;
    use sidetone_sip::flow::{Flow, ListenerId};
    use uuid::Uuid;

    use super::*;
    use crate::signalling::shares::TOTAL_BYTES_MAX;

    fn owned(call: u128, organisation: u128) -> OwnedCall {
        let organisation = Uuid::from_u128(organisation).into();
        OwnedCall { call: CallId(Uuid::from_u128(call)), organisation }
    }

    fn push(ladders: &mut Ladders, of: OwnedCall, text: &str, local: Option<SocketAddr>) -> bool {
        let heard = heard(text.to_owned());
        ladders.push(of, message(&heard, local), digest_of(&heard))
    }

    fn heard(text: String) -> Heard {
        Heard {
            call: None,
            at: Timestamp::from_micros(1),
            flow: Flow::udp(ListenerId(0), ([192, 0, 2, 1], 5060).into()),
            direction: SipDirection::Received,
            bytes: Bytes::from(text),
            is_repeated: false,
        }
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "any instant begins the simulated time")]
    fn an_ended_call_waits_for_its_last_messages_and_is_its_organisations() {
        let (begin, wall) = (Instant::now(), Timestamp::from_micros(9));
        let (of, other) = (owned(0, 1), Uuid::from_u128(2).into());
        let OwnedCall { call, organisation: own } = of;
        let mut ladders = Ladders::default();
        ladders.end(begin, of);
        assert!(ladders.drain_ended(wall).is_empty(), "a call without messages");
        let local = Some(([192, 0, 2, 9], 5060).into());
        assert!(push(&mut ladders, of, "BYE sip:a SIP/2.0\r\nCall-ID: x\r\n\r\n", local));
        assert!(ladders.find(other, call).is_none(), "a live call is of its organisation too");
        ladders.end(begin, of);
        assert!(ladders.find(other, call).is_none());
        let found = ladders.find(own, call).unwrap();
        let message = &found.messages[0];
        assert_eq!((message.method.as_str(), message.local.as_deref()), ("BYE", Some("192.0.2.9:5060")));
        assert!(ladders.pop_finished(begin + LINGER / 2, wall).is_none());
        let finished = ladders.pop_finished(begin + LINGER, wall).unwrap();
        assert_eq!((finished.organisation, finished.signalling), (own, found));
        assert_eq!((ladders.shares.is_empty(), ladders.calls.len(), ladders.ended.len()), (true, 0, 0));
    }

    /// Pushes messages of calls of an organisation, four in each, until there is no memory left; returns the next
    /// call.
    fn fill(ladders: &mut Ladders, first: u128, organisation: u128) -> u128 {
        let long = message(&heard("x".repeat(7_000)), None);
        let mut number = 0;
        while ladders.push(owned(first + number / 4, organisation), long.clone(), number as u64) {
            number += 1;
        }
        first + number / 4
    }

    #[test]
    fn an_organisation_with_many_calls_leaves_memory_to_the_others() {
        let mut ladders = Ladders::default();
        let next = fill(&mut ladders, 0, 1);
        let alone = ladders.shares.bytes();
        assert!(alone > TOTAL_BYTES_MAX / 2, "one alone has most of it: {alone}");
        assert!(!push(&mut ladders, owned(next, 1), "BYE", None));
        // Whatever the first one does, a hundred others can each keep the messages of some calls.
        for organisation in 2..=101_u128 {
            let first = organisation << 64;
            for call in 0..8 {
                assert!(
                    push(&mut ladders, owned(first + call, organisation), "INVITE", None),
                    "{organisation}"
                );
            }
            assert!(!push(&mut ladders, owned(0, 1), "INFO", None), "the first one is over its share");
        }
        let others = fill(&mut ladders, 1 << 80, 200);
        assert!(others > 1 << 80);
        assert!(ladders.shares.bytes() <= TOTAL_BYTES_MAX);
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "any instant begins the simulated time")]
    fn an_ended_call_makes_space_for_its_organisation_and_is_stored_once() {
        let (begin, wall) = (Instant::now(), Timestamp::from_micros(9));
        let mut ladders = Ladders::default();
        assert!(push(&mut ladders, owned(7 << 80, 2), "INVITE", None));
        ladders.end(begin, owned(7 << 80, 2));
        let next = fill(&mut ladders, 0, 1);
        assert!(ladders.shares.bytes() <= TOTAL_BYTES_MAX);
        assert!(ladders.pop_finished(begin, wall).is_none(), "calls that are up stay, and those of others");
        ladders.end(begin, owned(0, 1));
        assert!(ladders.pop_finished(begin, wall).is_none(), "there was no message since that found no room");
        assert!(!push(&mut ladders, owned(next, 1), "INVITE", None));
        assert_eq!(ladders.pop_finished(begin, wall).unwrap().call, owned(0, 1).call, "it makes space");
        assert!(push(&mut ladders, owned(next, 1), "BYE", None));
        assert!(!push(&mut ladders, owned(0, 1), "BYE", None), "what follows a stored call is dropped");
        assert!(ladders.find(owned(0, 1).organisation, owned(0, 1).call).is_none(), "it is in the database");
        let late = begin + LINGER;
        assert_eq!(ladders.pop_finished(late, wall).unwrap().call, owned(7 << 80, 2).call);
        assert!(ladders.pop_finished(late, wall).is_none(), "not twice");
        assert!(
            !ladders.calls.contains_key(&owned(0, 1).call) && ladders.ended.is_empty(),
            "it is forgotten"
        );
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "any instant begins the simulated time")]
    fn ended_calls_wait_for_a_slow_database_in_the_memory_of_their_organisation() {
        let now = Now { instant: Instant::now(), wall: Timestamp::from_micros(9) };
        let late = Now { instant: now.instant + LINGER, ..now };
        let ladders = Mutex::new(Ladders::default());
        let (writer, mut taken) = mpsc::channel(2);
        // One organisation ends many calls, then another one ends one; the writer takes two.
        for call in 0..50 {
            assert!(push(&mut ladders.lock(), owned(call, 1), "INVITE", None));
            ladders.lock().end(now.instant, owned(call, 1));
        }
        assert!(push(&mut ladders.lock(), owned(99, 2), "INVITE", None));
        ladders.lock().end(now.instant, owned(99, 2));
        assert_eq!(pass_on(&ladders, &writer, late), 0, "none is lost while there is memory");
        assert_eq!(pass_on(&ladders, &writer, late), 0);
        // The first one fills its memory: its own oldest call makes space, not one of the other.
        let next = fill(&mut ladders.lock(), 100, 1);
        assert_eq!(pass_on(&ladders, &writer, late), 1);
        assert!(push(&mut ladders.lock(), owned(next, 1), "INVITE", None));
        let mut stored = Vec::new();
        while let Ok(finished) = taken.try_recv() {
            stored.push(finished.call);
            assert_eq!(pass_on(&ladders, &writer, late), 0);
        }
        let expected = (0..50).filter(|call| *call != 2).map(|call| owned(call, 1).call);
        assert_eq!(stored, expected.chain([owned(99, 2).call]).collect::<Vec<_>>());
    }
}
