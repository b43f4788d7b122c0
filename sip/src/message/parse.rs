//! Parses bytes to a message: framing, the start line, and the response to a refused message (RFC 3261 §7,
//! §18.3).

use std::hash::{Hash as _, Hasher};
use std::ops::Range;
use std::sync::LazyLock;

use bytes::Bytes;
use memchr::memmem;

use crate::message::guard;
use crate::message::index::{Indexed, index};
use crate::message::limits::{DATAGRAM_LEN_MAX, HEAD_LEN_MAX, LEADING_CRLF_MAX};
use crate::message::name::Known;
use crate::message::request::check_uri;
use crate::message::scan::{is_token, number};
use crate::message::uri::Kind;
use crate::message::{Headers, Method, Name, Rejected, Rejection, Request, Response, StatusCode};

/// A request or a response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message {
    /// A request.
    Request(Request),
    /// A response.
    Response(Response),
}

impl Message {
    /// The headers of either.
    #[must_use]
    pub const fn headers(&self) -> &Headers {
        match self {
            Self::Request(request) => request.headers(),
            Self::Response(response) => response.headers(),
        }
    }

    /// The body of either.
    #[must_use]
    pub const fn body(&self) -> &Bytes {
        match self {
            Self::Request(request) => request.body(),
            Self::Response(response) => response.body(),
        }
    }

    /// The request, when it is one.
    #[must_use]
    pub const fn as_request(&self) -> Option<&Request> {
        match self {
            Self::Request(request) => Some(request),
            Self::Response(_) => None,
        }
    }

    /// The response, when it is one.
    #[must_use]
    pub const fn as_response(&self) -> Option<&Response> {
        match self {
            Self::Request(_) => None,
            Self::Response(response) => Some(response),
        }
    }

    /// The message as sent on the wire; Content-Length is that of the body.
    #[must_use]
    pub fn to_bytes(&self) -> Bytes {
        match self {
            Self::Request(request) => request.to_bytes(),
            Self::Response(response) => response.to_bytes(),
        }
    }
}

/// The content of a datagram.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Datagram {
    /// A message that the guard accepted.
    Message(Message),
    /// A keep-alive of two or more CRLFs; answer it with one (RFC 5626 §3.5.1).
    Ping,
    /// One CRLF: the answer to a keep-alive; never answered itself.
    Pong,
}

/// Parses one datagram.
///
/// # Errors
///
/// [`Rejected`] with the first rule of the guard that the bytes broke, and the response to send back, if any.
pub fn parse_datagram(datagram: Bytes) -> Result<Datagram, Rejected> {
    if datagram.len() > DATAGRAM_LEN_MAX {
        return Err(Rejected { reason: Rejection::TooLarge, reply: None });
    }
    let start = leading_crlf_len(&datagram);
    if start == datagram.len() && start > 0 {
        return Ok(if start >= 4 { Datagram::Ping } else { Datagram::Pong });
    }
    let rest = datagram.get(start..).unwrap_or_default();
    if start > 2 * LEADING_CRLF_MAX || !looks_like_sip(rest) {
        return Err(Rejected { reason: Rejection::NotSip, reply: None });
    }
    let head_len = head_len(rest, 0).map_err(|reason| Rejected { reason, reply: None })?;
    let Some(head_len) = head_len else {
        return Err(Rejected { reason: Rejection::NoHeadEnd, reply: None });
    };
    parse_framed(&datagram, start, start + head_len, Framing::Datagram).map(Datagram::Message)
}

/// Refuses a message; the response uses the received header lines. `head` ends with the CRLF of the last one.
pub(crate) fn refuse(head: &Bytes, reason: Rejection) -> Rejected {
    let indexed = index(head, 0..head.len());
    let line = head.slice(indexed.start_line.clone());
    Rejected { reason, reply: reply(&line, &indexed.headers, reason).map(Box::new) }
}

/// How the end of a body is determined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Framing {
    /// By the datagram; Content-Length may shorten it, but not lengthen it.
    Datagram,
    /// By Content-Length only.
    Stream,
}

/// Parses a message whose head is `start..head_end`, the empty line included.
pub(crate) fn parse_framed(
    raw: &Bytes,
    start: usize,
    head_end: usize,
    framing: Framing,
) -> Result<Message, Rejected> {
    let mut indexed = index(raw, start..head_end.saturating_sub(2));
    let line = raw.slice(indexed.start_line.clone());
    match accept(raw, &mut indexed, head_end, framing) {
        Ok(message) => Ok(message),
        Err(reason) => Err(Rejected { reason, reply: reply(&line, &indexed.headers, reason).map(Box::new) }),
    }
}

/// Applies the rules in order: lines, Content-Length, start line, headers.
fn accept(
    raw: &Bytes,
    indexed: &mut Indexed,
    head_end: usize,
    framing: Framing,
) -> Result<Message, Rejection> {
    if let Some(fault) = indexed.fault {
        return Err(fault);
    }
    let available = raw.len().saturating_sub(head_end);
    let body_len = match (content_length(&indexed.headers)?, framing) {
        (Some(len), _) if len > available => return Err(Rejection::ContentLengthBeyond),
        (Some(len), _) => len,
        (None, Framing::Datagram) => available,
        (None, Framing::Stream) => return Err(Rejection::ContentLengthMissing),
    };
    let start = start_line(raw, indexed.start_line.clone())?;
    let body = raw.slice(head_end..head_end.saturating_add(body_len).min(raw.len()));
    let headers = std::mem::take(&mut indexed.headers);
    let method = match &start {
        StartLine::Request { method, .. } => Some(method),
        StartLine::Status { .. } => None,
    };
    if let Err(fault) = guard::check(method, &headers) {
        indexed.headers = headers;
        return Err(fault);
    }
    Ok(match start {
        StartLine::Request { method, uri } => {
            Message::Request(Request::from_parts(method, raw.slice(uri), headers, body))
        }
        StartLine::Status { status, reason } => {
            Message::Response(Response::from_parts(status, raw.slice(reason), headers, body))
        }
    })
}

/// The length, when all Content-Length lines are equal.
pub(crate) fn content_length(headers: &Headers) -> Result<Option<usize>, Rejection> {
    let mut agreed = None;
    for (_, value) in headers.known().filter(|(known, _)| *known == Known::ContentLength) {
        let len = std::str::from_utf8(value)
            .ok()
            .and_then(number)
            .and_then(|len| usize::try_from(len).ok())
            .ok_or(Rejection::ContentLength)?;
        if agreed.is_some_and(|other| other != len) {
            return Err(Rejection::ContentLengthConflict);
        }
        agreed = Some(len);
    }
    Ok(agreed)
}

/// The searcher for the empty line; creating one takes longer than one search.
static HEAD_END: LazyLock<memmem::Finder<'static>> = LazyLock::new(|| memmem::Finder::new(b"\r\n\r\n"));

/// The length of the head with its empty line; `None` when that has not arrived. Bytes before `from` were
/// searched already.
pub(crate) fn head_len(bytes: &[u8], from: usize) -> Result<Option<usize>, Rejection> {
    let reach = bytes.get(..bytes.len().min(HEAD_LEN_MAX)).unwrap_or_default();
    match HEAD_END.find(reach.get(from..).unwrap_or_default()) {
        Some(at) => Ok(Some(from + at + 4)),
        None if bytes.len() >= HEAD_LEN_MAX => Err(Rejection::HeadTooLarge),
        None => Ok(None),
    }
}

/// Whether the first word could be a method or a SIP version.
pub(crate) fn looks_like_sip(bytes: &[u8]) -> bool {
    let word = bytes.split(|&b| b == b' ').next().unwrap_or_default();
    is_version(word) || (word.len() < bytes.len() && is_token(word))
}

/// The length of the CRLFs before a start line.
fn leading_crlf_len(bytes: &[u8]) -> usize {
    bytes.chunks_exact(2).take_while(|pair| *pair == b"\r\n").count() * 2
}

/// Whether a word is a SIP version, that is, starts with `SIP/`.
fn is_version(word: &[u8]) -> bool {
    word.get(..4).is_some_and(|prefix| prefix.eq_ignore_ascii_case(b"SIP/"))
}

enum StartLine {
    Request { method: Method, uri: Range<usize> },
    Status { status: StatusCode, reason: Range<usize> },
}

fn start_line(raw: &Bytes, range: Range<usize>) -> Result<StartLine, Rejection> {
    let line = raw.get(range.clone()).unwrap_or_default();
    if is_version(line) {
        return status_line(line, range);
    }
    let mut parts = line.split(|&b| b == b' ');
    let (Some(method), Some(uri), Some(version), None) =
        (parts.next(), parts.next(), parts.next(), parts.next())
    else {
        return Err(Rejection::StartLine);
    };
    if !is_version(version) {
        return Err(Rejection::StartLine);
    }
    if !version.eq_ignore_ascii_case(b"SIP/2.0") {
        return Err(Rejection::Version);
    }
    let uri_start = range.start + method.len() + 1;
    let method = Method::from_bytes(method).ok_or(Rejection::StartLine)?;
    let text = std::str::from_utf8(uri).map_err(|_| Rejection::RequestUri)?;
    match check_uri(text) {
        Ok(Kind::Other) => Err(Rejection::Scheme),
        Ok(Kind::Sip | Kind::Sips | Kind::Tel) => {
            Ok(StartLine::Request { method, uri: uri_start..uri_start + uri.len() })
        }
        Err(_) => Err(Rejection::RequestUri),
    }
}

fn status_line(line: &[u8], range: Range<usize>) -> Result<StartLine, Rejection> {
    let mut parts = line.splitn(3, |&b| b == b' ');
    let version = parts.next().unwrap_or_default();
    if !version.eq_ignore_ascii_case(b"SIP/2.0") {
        return Err(Rejection::Version);
    }
    let code = parts.next().ok_or(Rejection::StartLine)?;
    // The space after the code is required even before an empty phrase; phones omit it, and the meaning is
    // clear without it.
    let reason_len = parts.next().map_or(0, <[u8]>::len);
    let status = std::str::from_utf8(code)
        .ok()
        .filter(|code| code.len() == 3)
        .and_then(number)
        .and_then(|code| u16::try_from(code).ok())
        .and_then(StatusCode::new)
        .ok_or(Rejection::StatusCode)?;
    Ok(StartLine::Status { status, reason: range.end - reason_len..range.end })
}

/// The response to a refused request, with its lines copied unparsed (RFC 3261 §8.2.6).
///
/// `None` for a response, for an ACK, and for a message without a Via to answer along.
fn reply(line: &[u8], headers: &Headers, reason: Rejection) -> Option<Response> {
    let method = line.split(|&b| matches!(b, b' ' | b'\t')).next().unwrap_or_default();
    let cseq_is_ack = headers.header(Name::CSeq).is_some_and(|cseq| cseq.trim_end().ends_with(" ACK"));
    if is_version(line)
        || !is_token(method)
        || method == b"ACK"
        || cseq_is_ack
        || !headers.contains(Name::Via)
    {
        return None;
    }
    // RFC 4475 §3.1.2.18: for an unknown method, 501 is more informative than 400.
    let is_unknown = Method::from_bytes(method).is_some_and(|method| !method.is_known());
    let status = match reason {
        Rejection::CSeqMethod if is_unknown => StatusCode::NOT_IMPLEMENTED,
        _ => reason.status(),
    };
    let mut response = Response::new(status);
    response.copy_from(headers, Name::Via);
    for name in [Name::From, Name::To, Name::CallId, Name::CSeq] {
        response.copy_first_from(headers, name);
    }
    // A stateless server must use the same tag for every retransmission (§8.2.7). Without a valid To no tag
    // can be added, and the copy stays unchanged.
    let mut hasher = Fnv::default();
    for (_, value) in response.known() {
        value.hash(&mut hasher);
    }
    let _ = response.set_to_tag(&format!("{:016x}", hasher.finish()));
    // The broken rule helps the peer's engineer; its text is from our own enum.
    let _ = response.push(Name::Warning, format_args!("399 sidetone \"{reason}\""));
    Some(response)
}

/// FNV-1a: a fixed function of the bytes, so that a tag survives a restart.
struct Fnv(u64);

impl Default for Fnv {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl Hasher for Fnv {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const INVITE: &str = "INVITE sip:b@h SIP/2.0\r\nv : SIP/2.0/UDP h;branch=z9hG4bK1\r\nFrom: <sip:a@h>;tag=1\r\n\
                          To: <sip:b@h>\r\nCall-ID: c\r\nCSeq: 1\r\n INVITE\r\nX-Odd :\tx\r\n\r\nbody";

    fn read(text: &str) -> Result<Message, Rejected> {
        match parse_datagram(Bytes::copy_from_slice(text.as_bytes()))? {
            Datagram::Message(message) => Ok(message),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_request_reads_and_untouched_lines_are_written_byte_for_byte() {
        let message = read(INVITE).unwrap();
        let request = message.as_request().unwrap();
        assert_eq!(request.method(), &Method::Invite);
        assert_eq!(request.uri(), "sip:b@h");
        assert_eq!(request.via_top().unwrap().branch(), Some("z9hG4bK1"));
        assert_eq!(request.cseq().unwrap().number, 1);
        assert_eq!(request.header("x-odd"), Some("x"));
        assert_eq!(request.body().as_ref(), b"body");
        let written = message.to_bytes();
        let expected = INVITE.replace("\r\n\r\n", "\r\nContent-Length: 4\r\n\r\n");
        assert_eq!(std::str::from_utf8(&written).unwrap(), expected);
    }

    #[test]
    fn a_refused_request_carries_its_answer_and_an_ack_does_not() {
        let rejected = read(&INVITE.replace("CSeq: 1", "CSeq: 99999999999")).unwrap_err();
        assert_eq!(rejected.reason, Rejection::CSeq);
        let reply = rejected.reply.unwrap();
        assert_eq!(reply.status(), StatusCode::BAD_REQUEST);
        assert!(reply.to().unwrap().tag().is_some());
        assert_eq!(reply.call_id(), "c");
        let ack = INVITE.replace("INVITE", "ACK").replace("CSeq: 1", "CSeq: 99999999999");
        assert!(read(&ack).unwrap_err().reply.is_none());
    }

    #[test]
    fn keep_alives_are_told_from_their_answers() {
        let read = |text: &'static str| parse_datagram(Bytes::from_static(text.as_bytes()));
        assert_eq!(read("\r\n\r\n").unwrap(), Datagram::Ping);
        assert_eq!(read("\r\n").unwrap(), Datagram::Pong);
        assert_eq!(read("").unwrap_err().reason, Rejection::NotSip);
    }

    #[test]
    fn the_longest_content_length_ends_nothing() {
        for len in ["18446744073709551615", "18446744073709551616", "4294967296", "-1", "+4", "0x4", ""] {
            let text = INVITE.replace("X-Odd :\tx", &format!("l: {len}"));
            let reason = read(&text).unwrap_err().reason;
            assert!(
                matches!(reason, Rejection::ContentLength | Rejection::ContentLengthBeyond),
                "{len}: {reason}"
            );
        }
    }
}
