//! Detects, in the bytes to be written, an answer that comes from the HTTP library and not from the routes.
//!
//! hyper answers a head that it cannot read with a bare 400, 414 or 431 and closes the connection. Such an
//! answer is the last one of its connection and follows the answers of the routes. This state machine follows
//! the framing of the output (RFC 9112 §6) and counts: a head that no route has answered is hyper's own. It
//! reads only hyper's output, never the client's input.

use std::collections::VecDeque;

use axum::http::StatusCode;

/// The answers written on one HTTP/1 connection.
#[derive(Debug, Clone, Default)]
pub(super) struct Framing {
    state: State,
    /// Answers of the routes whose heads are not written yet: whether the request was a `HEAD`.
    answered: VecDeque<bool>,
}

/// The part of some bytes that may be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Written {
    /// The bytes begin with the library's own answer.
    Bare(StatusCode),
    /// This many of them belong to answers of the routes.
    Ours(usize),
}

#[derive(Debug, Clone, Default)]
enum State {
    /// A chunk's length is next; the value read so far.
    ChunkLen(usize),
    /// The line end after a chunk's length or after its bytes is next.
    ChunkLine { len: usize },
    /// A head is next.
    #[default]
    Head,
    /// Nothing more is examined: HTTP/2, an upgrade, or an answer that ends with the connection.
    Open,
    /// This many bytes belong to the head or the body.
    Skip { left: usize, then: After },
    /// The line end of the last chunk is next.
    Trailer,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum After {
    Chunk,
    ChunkLen,
    Head,
    Open,
}

impl Framing {
    /// Records that a route has answered a request, which may have been a `HEAD`.
    pub(super) fn answered(&mut self, is_head: bool) {
        self.answered.push_back(is_head);
    }

    /// Stops examining this connection: it uses HTTP/2, or its output is not a known form of HTTP/1.
    pub(super) fn open(&mut self) {
        self.state = State::Open;
        self.answered.clear();
    }

    /// Returns how much of `bytes` may be written.
    pub(super) fn look(&self, bytes: &[u8]) -> Written {
        let mut ahead = self.clone();
        match ahead.advance(bytes, bytes.len()) {
            (0, Some(status)) => Written::Bare(status),
            (read, _) => Written::Ours(read),
        }
    }

    /// Records that the first `len` of `bytes` were written to the socket.
    pub(super) fn wrote(&mut self, bytes: &[u8], len: usize) {
        self.advance(bytes, len);
    }

    /// Reads `len` of `bytes`, but stops before an answer of the library.
    fn advance(&mut self, bytes: &[u8], len: usize) -> (usize, Option<StatusCode>) {
        let mut at = 0;
        while at < len {
            // A head is examined completely, although the socket may take only a part of it.
            let Some(rest) = bytes.get(at..).filter(|rest| !rest.is_empty()) else { break };
            at += match &mut self.state {
                State::Open => len - at,
                State::Skip { left, then } => {
                    let read = (len - at).min(*left);
                    *left -= read;
                    if *left == 0 {
                        self.state = State::from(*then);
                    }
                    read
                }
                State::ChunkLen(len) => {
                    match rest.first().and_then(|byte| char::from(*byte).to_digit(16)) {
                        Some(digit) => *len = len.saturating_mul(16).saturating_add(digit as usize),
                        None => self.state = State::ChunkLine { len: *len },
                    }
                    1
                }
                State::ChunkLine { len } => {
                    self.state = match *len {
                        0 => State::Trailer,
                        len => State::Skip { left: len.saturating_add(2), then: After::ChunkLen },
                    };
                    1
                }
                State::Trailer => {
                    self.state = State::Skip { left: 1, then: After::Head };
                    1
                }
                State::Head => match self.head(rest) {
                    Ok(()) => 0,
                    Err(status) => return (at, Some(status)),
                },
            };
        }
        (at, None)
    }

    /// Reads the head at the beginning of `bytes`.
    ///
    /// # Errors
    /// The status of an answer that no route has given.
    fn head(&mut self, bytes: &[u8]) -> Result<(), StatusCode> {
        let head = bytes.windows(4).position(|window| window == b"\r\n\r\n");
        let head = head.and_then(|len| Some((len + 4, std::str::from_utf8(bytes.get(..len)?).ok()?)));
        let Some((len, status, text)) = head.and_then(|(len, text)| Some((len, status_of(text)?, text)))
        else {
            // hyper writes a head in one call, so this is not a head.
            self.open();
            return Ok(());
        };
        if status.is_informational() {
            let then = if status == StatusCode::SWITCHING_PROTOCOLS { After::Open } else { After::Head };
            self.state = State::Skip { left: len, then };
            return Ok(());
        }
        let is_head = self.answered.pop_front().ok_or(status)?;
        let bodiless = is_head || matches!(status, StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED);
        let body_len = field(text, "content-length").and_then(|value| value.parse::<usize>().ok());
        let chunked =
            field(text, "transfer-encoding").is_some_and(|value| value.eq_ignore_ascii_case("chunked"));
        let (body_len, then) = match (bodiless, chunked, body_len) {
            (true, _, _) => (0, After::Head),
            (false, true, _) => (0, After::Chunk),
            (false, false, Some(len)) => (len, After::Head),
            (false, false, None) => (0, After::Open),
        };
        self.state = State::Skip { left: len.saturating_add(body_len), then };
        Ok(())
    }
}

impl From<After> for State {
    fn from(after: After) -> Self {
        match after {
            After::Chunk | After::ChunkLen => State::ChunkLen(0),
            After::Head => State::Head,
            After::Open => State::Open,
        }
    }
}

/// The status of a status line.
fn status_of(head: &str) -> Option<StatusCode> {
    let line = head.strip_prefix("HTTP/1.1 ").or_else(|| head.strip_prefix("HTTP/1.0 "))?;
    line.get(..3)?.parse().ok()
}

/// The value of a field.
fn field<'h>(head: &'h str, name: &str) -> Option<&'h str> {
    head.lines().skip(1).find_map(|line| {
        let (own, value) = line.split_once(':')?;
        own.eq_ignore_ascii_case(name).then_some(value.trim())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const BARE: &str = "HTTP/1.1 400 Bad Request\r\nconnection: close\r\ncontent-length: 0\r\n\r\n";

    /// Writes `text` in pieces of `step` bytes like a socket; returns the number of bytes before a bare
    /// answer, and its status.
    fn write(framing: &mut Framing, text: &str, step: usize) -> (usize, Option<StatusCode>) {
        let mut at = 0;
        while at < text.len() {
            // hyper writes a head in one call; the socket takes a part of it.
            let bytes = &text.as_bytes()[at..];
            match framing.look(bytes) {
                Written::Bare(status) => return (at, Some(status)),
                Written::Ours(len) => {
                    let taken = len.min(step);
                    framing.wrote(bytes, taken);
                    at += taken;
                }
            }
        }
        (at, None)
    }

    #[test]
    fn an_answer_of_no_route_is_found_behind_those_of_the_routes() {
        let ours: [(&str, bool); 6] = [
            ("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", false),
            (
                "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\nA\r\n0123456789\r\n0\r\n\r\n",
                false,
            ),
            ("HTTP/1.1 204 No Content\r\nx: y\r\n\r\n", false),
            ("HTTP/1.1 200 OK\r\ncontent-length: 500\r\n\r\n", true),
            ("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n", false),
            // The body of an answer may look like an answer.
            (
                "HTTP/1.1 200 OK\r\ncontent-length: 67\r\n\r\nHTTP/1.1 400 Bad Request\r\nconnection: close\r\ncontent-length: 00\r\n\r\n",
                false,
            ),
        ];
        for step in [1, 2, 3, 7, 1000] {
            let mut framing = Framing::default();
            let mut text = String::new();
            for (answer, is_head) in ours {
                framing.answered(is_head);
                text.push_str(answer);
            }
            text.push_str(BARE);
            let expected = (text.len() - BARE.len(), Some(StatusCode::BAD_REQUEST));
            assert_eq!(write(&mut framing, &text, step), expected, "{step}");
        }
    }

    #[test]
    fn the_first_answer_may_be_a_bare_one_and_http2_is_left_alone() {
        assert_eq!(write(&mut Framing::default(), BARE, 9), (0, Some(StatusCode::BAD_REQUEST)));
        let settings = "\0\0\0\u{4}\0\0\0\0\0";
        assert_eq!(write(&mut Framing::default(), settings, 9), (9, None));
        let mut framing = Framing::default();
        framing.open();
        assert_eq!(write(&mut framing, BARE, 9), (BARE.len(), None));
    }

    #[test]
    fn an_answer_that_ends_with_the_connection_is_left_alone() {
        let mut framing = Framing::default();
        framing.answered(false);
        let text = format!("HTTP/1.0 200 OK\r\n\r\n{BARE}");
        assert_eq!(write(&mut framing, &text, 5), (text.len(), None));
    }
}
