//! The messages of one call in memory: a bounded number of bytes, of which the start and the end are kept.

use std::collections::VecDeque;

use sidetone_model::signalling::{CallSignalling, SipMessage};

/// The messages of a call.
#[derive(Debug, Default)]
pub(super) struct Ladder {
    /// The first messages, at most half of the bytes.
    start: Vec<Entry>,
    /// The latest messages, at most the other half.
    end: VecDeque<Entry>,
    start_bytes: usize,
    end_bytes: usize,
    /// Messages between both that were dropped.
    left_out: u64,
    /// Whether a message did not fit in the start.
    start_is_full: bool,
}

#[derive(Debug)]
struct Entry {
    message: SipMessage,
    /// Digest of the bytes on the wire: a retransmission has the same.
    digest: u64,
}

impl Ladder {
    /// Adds a message; a retransmission of a recent one is only counted. Returns by how many bytes the ladder grew;
    /// negative if older messages were dropped.
    pub(super) fn push(&mut self, message: SipMessage, digest: u64) -> isize {
        let same = |entry: &&mut Entry| {
            entry.digest == digest
                && entry.message.direction == message.direction
                && entry.message.remote == message.remote
        };
        let recent = self.end.iter_mut().rev().chain(self.start.iter_mut().rev()).take(RECENT_MAX);
        if let Some(known) = { recent }.find(same) {
            known.message.repeats += 1;
            return 0;
        }
        let before = self.bytes();
        let bytes = size(&message);
        if !self.start_is_full && self.start_bytes + bytes <= HALF_BYTES {
            self.start_bytes += bytes;
            self.start.push(Entry { message, digest });
        } else {
            self.start_is_full = true;
            self.end_bytes += bytes;
            self.end.push_back(Entry { message, digest });
            while self.end_bytes > HALF_BYTES
                && let Some(oldest) = self.end.pop_front()
            {
                self.end_bytes -= size(&oldest.message);
                self.left_out += 1;
            }
        }
        self.bytes().cast_signed() - before.cast_signed()
    }

    /// The number of bytes that it counts for.
    pub(super) fn bytes(&self) -> usize {
        self.start_bytes + self.end_bytes
    }

    /// The messages.
    pub(super) fn to_signalling(&self) -> CallSignalling {
        let of = |entry: &Entry| entry.message.clone();
        let mut messages: Vec<SipMessage> = self.start.iter().map(of).collect();
        let first_of_end = messages.len();
        messages.extend(self.end.iter().map(of));
        if let Some(after) = messages.get_mut(first_of_end) {
            after.left_out_before = self.left_out;
        }
        CallSignalling { messages, left_out: self.left_out }
    }
}

/// The size that a message counts for: its texts, and a fixed part, so that the number of messages is bounded as
/// well.
fn size(message: &SipMessage) -> usize {
    let texts = [
        &message.text,
        &message.summary,
        &message.call_id,
        &message.cseq,
        &message.from,
        &message.to,
        &message.remote,
    ];
    let body_type = message.body_type.as_ref().map_or(0, String::len);
    texts.map(String::len).iter().sum::<usize>() + body_type + MESSAGE_BYTES
}

/// The most bytes of a call.
pub(super) const CALL_BYTES_MAX: usize = 64 << 10;
const HALF_BYTES: usize = CALL_BYTES_MAX / 2;
/// The size that a message counts for besides its texts.
const MESSAGE_BYTES: usize = 256;
/// How many of the last messages a retransmission is compared with.
const RECENT_MAX: usize = 32;

#[cfg(test)]
mod tests {
    use sidetone_model::signalling::SipDirection;
    use sidetone_model::time::Timestamp;

    use super::*;
    use crate::signalling::redact::TEXT_MAX;

    fn message(number: usize, text: usize) -> SipMessage {
        SipMessage {
            at: Timestamp::from_micros(number as i64),
            at_us: number as i64,
            direction: SipDirection::Received,
            transport: "UDP".to_owned(),
            local: None,
            remote: "192.0.2.1:5060".to_owned(),
            repeats: 0,
            left_out_before: 0,
            method: "INFO".to_owned(),
            status: None,
            summary: format!("INFO {number}"),
            call_id: String::new(),
            cseq: String::new(),
            from: String::new(),
            to: String::new(),
            body_type: None,
            body_bytes: 0,
            text: "x".repeat(text),
        }
    }

    #[test]
    fn retransmissions_are_counted_and_not_repeated() {
        let mut ladder = Ladder::default();
        for (number, digest) in [(0, 1), (1, 2), (2, 1), (3, 1), (4, 3)] {
            ladder.push(message(number, 10), digest);
        }
        let mut other_way = message(5, 10);
        other_way.direction = SipDirection::Sent;
        assert!(ladder.push(other_way, 1) > 0, "the same bytes in the other direction are another message");
        let kept = ladder.to_signalling();
        let repeats: Vec<u64> = kept.messages.iter().map(|message| message.repeats).collect();
        assert_eq!(repeats, [2, 0, 0, 0]);
    }

    #[test]
    fn the_start_and_the_end_of_a_long_call_are_kept() {
        let mut ladder = Ladder::default();
        let mut bytes = 0;
        for number in 0..10_000 {
            bytes += ladder.push(message(number, 10 + number % TEXT_MAX), number as u64);
            assert!(ladder.bytes() <= CALL_BYTES_MAX);
            assert_eq!(bytes, ladder.bytes().cast_signed(), "the growth is returned");
        }
        let kept = ladder.to_signalling();
        assert_eq!((kept.messages[0].at_us, kept.messages.last().unwrap().at_us), (0, 9_999));
        assert_eq!(kept.left_out + kept.messages.len() as u64, 10_000);
        let gaps: Vec<&SipMessage> = kept.messages.iter().filter(|one| one.left_out_before > 0).collect();
        assert_eq!(gaps.len(), 1, "one cut");
        assert_eq!(gaps[0].left_out_before, kept.left_out);
        let written = serde_json::to_string(&kept).unwrap().len();
        assert!(written < 2 * CALL_BYTES_MAX, "{written}");
    }
}
