//! Messages of INVITEs that belong to no call yet: a call's first INVITE is challenged before the call exists.
//!
//! The senders are not authenticated, so the memory is fixed: [`TOTAL_MAX`] messages of at most [`BYTES_MAX`] bytes,
//! and [`SOURCE_MAX`] of one address. The oldest make space.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use crate::signalling::peek::peek;
use crate::signalling::report::Heard;

/// Recent messages without a call, the oldest first.
#[derive(Debug, Default)]
pub(super) struct Strangers {
    waiting: VecDeque<(Instant, Heard)>,
}

impl Strangers {
    /// Keeps a message for a while.
    pub(super) fn push(&mut self, now: Instant, heard: Heard) {
        while self.waiting.front().is_some_and(|(at, _)| now.saturating_duration_since(*at) >= KEPT_FOR) {
            self.waiting.pop_front();
        }
        if heard.bytes.len() > BYTES_MAX {
            return;
        }
        let source = heard.flow.remote.ip();
        let of_source = |one: &(Instant, Heard)| one.1.flow.remote.ip() == source;
        if self.waiting.iter().filter(|one| of_source(one)).count() >= SOURCE_MAX {
            let oldest = self.waiting.iter().position(of_source);
            oldest.and_then(|place| self.waiting.remove(place));
        } else if self.waiting.len() >= TOTAL_MAX {
            self.waiting.pop_front();
        }
        self.waiting.push_back((now, heard));
    }

    /// Removes and returns the messages of a dialog that began with this Call-ID and this tag of the peer, in order.
    pub(super) fn take(&mut self, call_id: &[u8], peer_tag: &[u8]) -> Vec<Heard> {
        let is_of = |one: &(Instant, Heard)| {
            peek(&one.1.bytes).is_some_and(|peek| peek.call_id == call_id && peek.from_tag == peer_tag)
        };
        let mut taken = Vec::new();
        let mut place = 0;
        while place < self.waiting.len() {
            if self.waiting.get(place).is_some_and(is_of) {
                taken.extend(self.waiting.remove(place).map(|(_, heard)| heard));
            } else {
                place += 1;
            }
        }
        taken
    }
}

/// A challenged INVITE is sent again within this time.
const KEPT_FOR: Duration = Duration::from_secs(10);
const TOTAL_MAX: usize = 256;
const SOURCE_MAX: usize = 16;
const BYTES_MAX: usize = 8 << 10;

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, SocketAddr};

    use bytes::Bytes;
    use sidetone_model::signalling::SipDirection;
    use sidetone_model::time::Timestamp;
    use sidetone_sip::flow::{Flow, ListenerId};

    use super::*;

    fn heard(source: u32, call_id: usize, len: usize) -> Heard {
        let text = format!(
            "INVITE sip:a SIP/2.0\r\nCall-ID: {call_id}\r\nFrom: <sip:a>;tag=t\r\n\r\n{}",
            "x".repeat(len)
        );
        Heard {
            call: None,
            at: Timestamp::from_micros(call_id as i64),
            flow: Flow::udp(ListenerId(0), SocketAddr::new(IpAddr::from(source.to_be_bytes()), 5060)),
            direction: SipDirection::Received,
            bytes: Bytes::from(text),
            is_repeated: false,
        }
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "any instant begins the simulated time")]
    fn what_strangers_send_takes_a_fixed_amount_of_memory() {
        let begin = Instant::now();
        let mut strangers = Strangers::default();
        strangers.push(begin, heard(0, 7, BYTES_MAX));
        assert_eq!(strangers.waiting.len(), 0, "too long");
        for number in 0..100 {
            strangers.push(begin, heard(1, number, 0));
        }
        assert_eq!(strangers.waiting.len(), SOURCE_MAX);
        assert!(strangers.take(b"7", b"t").is_empty(), "the oldest made space");
        assert!(strangers.take(b"99", b"other").is_empty());
        assert_eq!(strangers.take(b"99", b"t").len(), 1);
        for source in 0..1_000 {
            strangers.push(begin, heard(source, 5, 0));
        }
        assert_eq!(strangers.waiting.len(), TOTAL_MAX);
        strangers.push(begin + KEPT_FOR, heard(1, 5, 0));
        assert_eq!(strangers.waiting.len(), 1, "the others are too old");
    }
}
