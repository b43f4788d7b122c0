//! The messages of the calls in memory: those that are up, and those that ended a moment ago.

use std::collections::{HashMap, VecDeque};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::net::SocketAddr;
use std::time::Instant;

use sidetone_model::ids::{CallId, OrganisationId};
use sidetone_model::signalling::{CallSignalling, SipMessage};
use sidetone_model::time::Timestamp;

use crate::signalling::ladder::Ladder;
use crate::signalling::redact::redacted;
use crate::signalling::report::Heard;
use crate::signalling::tap::LINGER;

/// The ladders of calls, bounded in all by [`TOTAL_BYTES_MAX`].
#[derive(Debug, Default)]
pub(super) struct Ladders {
    calls: HashMap<CallId, Open>,
    /// Ended calls, with the time at which they are stored.
    ended: VecDeque<(Instant, CallId)>,
    bytes: usize,
}

#[derive(Debug, Default)]
struct Open {
    ladder: Ladder,
    /// Set at the end of the call.
    organisation: Option<OrganisationId>,
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
    /// Adds a message of a call, with the digest of its bytes on the wire. Returns false when there is no memory
    /// for it.
    pub(super) fn push(&mut self, call: CallId, message: SipMessage, digest: u64) -> bool {
        if self.bytes >= TOTAL_BYTES_MAX {
            return false;
        }
        let open = self.calls.entry(call).or_default();
        let grown = open.ladder.push(message, digest);
        self.bytes = self.bytes.saturating_add_signed(grown);
        true
    }

    /// Notes the end of a call.
    pub(super) fn end(&mut self, now: Instant, call: CallId, organisation: OrganisationId) {
        if let Some(open) = self.calls.get_mut(&call)
            && open.organisation.replace(organisation).is_none()
        {
            self.ended.push_back((now + LINGER, call));
        }
    }

    /// Removes and returns an ended call whose last messages have been exchanged, or that makes space.
    pub(super) fn pop_finished(&mut self, now: Instant, wall: Timestamp) -> Option<Finished> {
        let (due, call) = self.ended.front().copied()?;
        if due > now && self.bytes < TOTAL_BYTES_MAX {
            return None;
        }
        self.finish(call, wall)
    }

    /// Removes and returns any ended call.
    pub(super) fn pop_ended(&mut self, wall: Timestamp) -> Option<Finished> {
        let (_, call) = self.ended.front().copied()?;
        self.finish(call, wall)
    }

    /// Returns the messages of a call; of an ended one only to its organisation.
    pub(super) fn find(&self, organisation: OrganisationId, call: CallId) -> Option<CallSignalling> {
        let open = self.calls.get(&call)?;
        let is_own = open.organisation.is_none_or(|own| own == organisation);
        is_own.then(|| open.ladder.to_signalling())
    }

    fn finish(&mut self, call: CallId, at: Timestamp) -> Option<Finished> {
        self.ended.pop_front();
        let Open { ladder, organisation } = self.calls.remove(&call)?;
        self.bytes = self.bytes.saturating_sub(ladder.bytes());
        Some(Finished { call, organisation: organisation?, at, signalling: ladder.to_signalling() })
    }
}

/// The digest of a message's bytes on the wire, by which a retransmission is recognised.
pub(super) fn digest_of(heard: &Heard) -> u64 {
    let mut digest = DefaultHasher::new();
    heard.bytes.hash(&mut digest);
    digest.finish()
}

/// The message as it is kept.
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

/// Bytes of all calls in memory.
const TOTAL_BYTES_MAX: usize = 64 << 20;

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use sidetone_model::signalling::SipDirection;
    use sidetone_sip::flow::{Flow, ListenerId};
    use uuid::Uuid;

    use super::*;

    fn push(ladders: &mut Ladders, call: CallId, text: &str, local: Option<SocketAddr>) -> bool {
        let heard = heard(text.to_owned());
        ladders.push(call, message(&heard, local), digest_of(&heard))
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
        let (call, own, other) = (CallId(Uuid::nil()), Uuid::from_u128(1).into(), Uuid::from_u128(2).into());
        let mut ladders = Ladders::default();
        ladders.end(begin, call, own);
        assert!(ladders.pop_ended(wall).is_none(), "a call without messages");
        let local = Some(([192, 0, 2, 9], 5060).into());
        assert!(push(&mut ladders, call, "BYE sip:a SIP/2.0\r\nCall-ID: x\r\n\r\n", local));
        ladders.end(begin, call, own);
        assert!(ladders.find(other, call).is_none());
        let found = ladders.find(own, call).unwrap();
        let message = &found.messages[0];
        assert_eq!((message.method.as_str(), message.local.as_deref()), ("BYE", Some("192.0.2.9:5060")));
        assert!(ladders.pop_finished(begin + LINGER / 2, wall).is_none());
        let finished = ladders.pop_finished(begin + LINGER, wall).unwrap();
        assert_eq!((finished.organisation, finished.signalling), (own, found));
        assert_eq!((ladders.bytes, ladders.calls.len(), ladders.ended.len()), (0, 0, 0));
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "any instant begins the simulated time")]
    fn memory_in_all_is_bounded() {
        let (begin, wall) = (Instant::now(), Timestamp::from_micros(9));
        let mut ladders = Ladders::default();
        let call = |number: u128| CallId(Uuid::from_u128(number));
        let padding = "x".repeat(7_000);
        let mut number = 0;
        while push(&mut ladders, call(number / 4), &format!("{number} {padding}"), None) {
            number += 1;
        }
        assert!((TOTAL_BYTES_MAX..TOTAL_BYTES_MAX + (64 << 10)).contains(&ladders.bytes));
        assert!(ladders.pop_finished(begin, wall).is_none(), "calls that are up stay");
        ladders.end(begin, call(0), Uuid::nil().into());
        assert!(ladders.pop_finished(begin, wall).is_some(), "an ended call makes space");
        assert!(push(&mut ladders, call(number), "BYE", None));
    }
}
