//! Splits a stream into messages, by their empty line and Content-Length, for any chunk sizes (RFC 3261
//! §18.3).

use bytes::{Buf as _, Bytes, BytesMut};

use crate::message::index::index;
use crate::message::limits::{HEAD_LEN_MAX, STREAM_MESSAGE_LEN_MAX};
use crate::message::parse::{Framing, content_length, head_len, looks_like_sip, parse_framed, refuse};
use crate::message::{Message, Rejected, Rejection};

/// An event of a stream.
#[derive(Debug)]
pub enum StreamEvent {
    /// A message that the guard accepted.
    Message(Message),
    /// CRLFCRLF between messages; answer with CRLF (RFC 5626 §4.4.1).
    Ping,
    /// A message that the guard refused.
    Rejected {
        /// The reason, and the response to send back, if any.
        rejected: Rejected,
        /// Whether the end of the message is unknown: send the response and close the connection.
        is_fatal: bool,
        /// The message as received; empty when its end is unknown.
        raw: Bytes,
    },
}

/// Splits a stream into messages. Pass bytes to [`StreamParser::push`], then call [`StreamParser::poll`]
/// until `None`.
///
/// *Bounds*: holds one message of at most [`STREAM_MESSAGE_LEN_MAX`], and the last chunk.
#[derive(Debug, Default)]
pub struct StreamParser {
    buffer: BytesMut,
    /// The position up to which there is no empty line.
    searched: usize,
    /// Head length and total length of the message whose body has not arrived completely.
    awaited: Option<(usize, usize)>,
    is_dead: bool,
}

impl StreamParser {
    /// A parser at the start of a stream.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a chunk; after a fatal event it is dropped.
    pub fn push(&mut self, chunk: &[u8]) {
        if !self.is_dead {
            self.buffer.extend_from_slice(chunk);
        }
    }

    /// Whether no byte of an incomplete message is held; half a keep-alive does not count.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.buffer.iter().all(|byte| matches!(byte, b'\r' | b'\n'))
    }

    /// Bytes held of an incomplete message.
    #[must_use]
    pub fn held_len(&self) -> usize {
        self.buffer.len()
    }

    /// The next event, or `None` until more bytes arrive.
    pub fn poll(&mut self) -> Option<StreamEvent> {
        if self.is_dead {
            return None;
        }
        let (head_len, total) = match self.awaited {
            Some(awaited) => awaited,
            None => {
                if self.skip_crlf()? {
                    return Some(StreamEvent::Ping);
                }
                match self.find_head() {
                    Ok(found) => found?,
                    Err(rejected) => return Some(self.die(rejected)),
                }
            }
        };
        self.awaited = Some((head_len, total));
        if self.buffer.len() < total {
            return None;
        }
        self.awaited = None;
        self.searched = 0;
        let raw = self.buffer.split_to(total).freeze();
        if self.buffer.is_empty() {
            self.buffer = BytesMut::new(); // A connection that waits for its next message holds no memory for it.
        }
        Some(match parse_framed(&raw, 0, head_len, Framing::Stream) {
            Ok(message) => StreamEvent::Message(message),
            Err(rejected) => StreamEvent::Rejected { rejected, is_fatal: false, raw },
        })
    }

    /// Skips CRLFs between messages. `None` when more bytes are needed, `Some(true)` for a keep-alive.
    fn skip_crlf(&mut self) -> Option<bool> {
        loop {
            match self.buffer.as_ref() {
                [] | [b'\r'] | [b'\r', b'\n'] | [b'\r', b'\n', b'\r'] => return None,
                [b'\r', b'\n', b'\r', b'\n', ..] => {
                    self.buffer.advance(4);
                    return Some(true);
                }
                [b'\r', b'\n', ..] => self.buffer.advance(2),
                _ => return Some(false),
            }
        }
    }

    /// The length of the head and of the whole message, once the head has arrived.
    fn find_head(&mut self) -> Result<Option<(usize, usize)>, Rejected> {
        let first_line_came = self.buffer.contains(&b' ') || self.buffer.contains(&b'\n');
        if first_line_came && !looks_like_sip(&self.buffer) {
            return Err(Rejected { reason: Rejection::NotSip, reply: None });
        }
        let found = head_len(&self.buffer, self.searched);
        let Some(head_len) = found.map_err(|reason| refuse(&self.lines(), reason))? else {
            self.searched = self.buffer.len().saturating_sub(3);
            return Ok(None);
        };
        let head = Bytes::copy_from_slice(self.buffer.get(..head_len).unwrap_or_default());
        let indexed = index(&head, 0..head_len.saturating_sub(2));
        let body_len = match (indexed.fault, content_length(&indexed.headers)) {
            // When a line is invalid, the length is unknown too; the same rules give the response, and the
            // stream ends.
            (Some(_), _) | (_, Err(_) | Ok(None)) => {
                return match parse_framed(&head, 0, head_len, Framing::Stream) {
                    Ok(_) => Err(refuse(
                        &head.slice(..head_len.saturating_sub(2)),
                        Rejection::ContentLengthMissing,
                    )),
                    Err(rejected) => Err(rejected),
                };
            }
            (None, Ok(Some(len))) => len,
        };
        match head_len.checked_add(body_len).filter(|total| *total <= STREAM_MESSAGE_LEN_MAX) {
            Some(total) => Ok(Some((head_len, total))),
            None => Err(refuse(&head.slice(..head_len.saturating_sub(2)), Rejection::TooLarge)),
        }
    }

    /// The complete lines of a head without an end.
    fn lines(&self) -> Bytes {
        let reach = self.buffer.get(..self.buffer.len().min(HEAD_LEN_MAX)).unwrap_or_default();
        let end = memchr::memmem::rfind(reach, b"\r\n").map_or(0, |at| at + 2);
        Bytes::copy_from_slice(reach.get(..end).unwrap_or_default())
    }

    fn die(&mut self, rejected: Rejected) -> StreamEvent {
        self.is_dead = true;
        self.buffer = BytesMut::new();
        StreamEvent::Rejected { rejected, is_fatal: true, raw: Bytes::new() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::StatusCode;

    const HEAD: &str = "OPTIONS sip:a@h SIP/2.0\r\nVia: SIP/2.0/TCP h;branch=z9hG4bK1\r\nMax-Forwards: 70\r\n\
                        From: <sip:a@h>;tag=1\r\nTo: <sip:a@h>\r\nCall-ID: c\r\nCSeq: 1 OPTIONS\r\n";

    /// Feeds `text` like a connection; returns the largest memory held, and the last event.
    fn feed(text: &str) -> (usize, Option<StreamEvent>) {
        let (mut parser, mut held, mut last) = (StreamParser::new(), 0, None);
        for chunk in text.as_bytes().chunks(4_096) {
            parser.push(chunk);
            held = held.max(parser.buffer.capacity());
            while let Some(event) = parser.poll() {
                last = Some(event);
            }
        }
        (held, last)
    }

    /// T5: for any input a connection's buffer stays within 64 KiB.
    #[test]
    fn a_connection_holds_64_kib_at_most() {
        let room = STREAM_MESSAGE_LEN_MAX - HEAD.len() - "Content-Length: 60000\r\n\r\n".len();
        let largest = format!("{HEAD}Content-Length: {room}\r\n\r\n{}", "x".repeat(room));
        let several = format!("{largest}{largest}{HEAD}Content-Length: 0\r\n\r\n");
        let endless = format!("{HEAD}{}", "X-Long: x\r\n".repeat(100_000));
        let line = format!("{HEAD}X-Long: {}", "x".repeat(1_000_000));
        for (name, text, refused) in [
            ("the largest message", largest, false),
            ("several of them", several, false),
            ("a head without an end", endless, true),
            ("a line without an end", line, true),
        ] {
            let (held, last) = feed(&text);
            assert!(held <= 64 * 1_024, "{name}: {held} bytes");
            match last {
                Some(StreamEvent::Message(_)) => assert!(!refused, "{name}"),
                Some(StreamEvent::Rejected { rejected, is_fatal: true, .. }) => {
                    let status = rejected.reply.map(|reply| reply.status());
                    assert_eq!((refused, status), (true, Some(StatusCode::ENTITY_TOO_LARGE)), "{name}");
                }
                other => panic!("{name}: {other:?}"),
            }
        }
    }
}
