//! Reads the fields that an observer needs from a SIP message that a switch would refuse.
//!
//! A switch answers 400 to a Content-Length that is not a number, to a Contact without an address, or to lines that end
//! in a bare line feed. The two parties of a capture may have understood each other anyway. An observer needs the start
//! line, From, To, the Call-ID, the CSeq and the SDP. Those lines are rewritten in correct form; everything else is
//! dropped.

use std::borrow::Cow;

use bytes::Bytes;
use sidetone_sip::message::{Datagram, Message, parse_datagram};

/// Reads a message that the guard refused; `None` when it cannot be assigned to a call.
///
/// *Cost*: a copy of the message. Only refused messages are passed to this function.
pub(super) fn read(payload: &[u8]) -> Option<Message> {
    let (head, rest) = split_head(payload.trim_ascii_start());
    let head = String::from_utf8_lossy(head);
    let mut lines = unfolded(&head).into_iter();
    let line = lines.next()?;
    let fields = Fields::of(lines);
    // The URI is kept if it can be read, because the ladder shows it.
    [Cow::Borrowed(line.trim_end()), without_uri(&line)?].iter().find_map(|line| {
        let mut text = fields.write(line)?.into_bytes();
        text.extend_from_slice(fields.body(rest));
        match parse_datagram(Bytes::from(text)) {
            Ok(Datagram::Message(message)) => Some(message),
            _ => None,
        }
    })
}

/// Splits a message into the head, without the empty line after it, and the body. A line ends with CRLF or
/// with a bare LF.
fn split_head(text: &[u8]) -> (&[u8], &[u8]) {
    let ends = [&b"\n\r\n"[..], b"\n\n"].into_iter().filter_map(|end| {
        let place = text.windows(end.len()).take(HEAD_LEN_MAX).position(|window| window == end)?;
        Some((place, place + end.len()))
    });
    match ends.min() {
        Some((head, body)) => (text.get(..head).unwrap_or_default(), text.get(body..).unwrap_or_default()),
        None => (text.get(..text.len().min(HEAD_LEN_MAX)).unwrap_or_default(), &[]),
    }
}

/// The lines of a head, each with its continuation lines (RFC 3261 §7.3.1).
fn unfolded(head: &str) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for line in head.lines().take(LINES_MAX) {
        match lines.last_mut().filter(|_| line.starts_with([' ', '\t'])) {
            Some(last) => {
                last.push(' ');
                last.push_str(line.trim());
            }
            None => lines.push(line.to_owned()),
        }
    }
    lines
}

/// A request line whose unreadable URI is replaced by a placeholder; a status line unchanged.
fn without_uri(line: &str) -> Option<Cow<'_, str>> {
    if line.starts_with("SIP/") {
        return Some(Cow::Borrowed(line));
    }
    let method = line.split(' ').next().filter(|method| !method.is_empty())?;
    Some(Cow::Owned(format!("{method} {UNREADABLE} SIP/2.0")))
}

/// The header fields that an observer needs, the first of each.
#[derive(Default)]
struct Fields {
    from: Option<String>,
    to: Option<String>,
    call_id: Option<String>,
    cseq: Option<String>,
    content_type: Option<String>,
    content_length: Option<usize>,
}

impl Fields {
    fn of(lines: impl Iterator<Item = String>) -> Self {
        let mut fields = Fields::default();
        for line in lines {
            let Some((name, value)) = line.split_once(':') else { continue };
            let value = value.trim();
            let field = match name.trim().to_ascii_lowercase().as_str() {
                "from" | "f" => &mut fields.from,
                "to" | "t" => &mut fields.to,
                "call-id" | "i" => &mut fields.call_id,
                "cseq" => &mut fields.cseq,
                "content-type" | "c" => &mut fields.content_type,
                "content-length" | "l" => {
                    fields.content_length = fields.content_length.or_else(|| value.parse().ok());
                    continue;
                }
                _ => continue,
            };
            field.get_or_insert_with(|| value.to_owned());
        }
        fields
    }

    /// Returns the head in correct form; `None` when it cannot be assigned to a call.
    fn write(&self, start_line: &str) -> Option<String> {
        let call_id = self.call_id.as_deref()?.split_ascii_whitespace().next()?;
        let cseq = self.cseq.as_deref()?.split_ascii_whitespace().collect::<Vec<_>>().join(" ");
        let (from, to) = (address(self.from.as_deref()?), address(self.to.as_deref()?));
        let kind =
            self.content_type.iter().map(|kind| format!("Content-Type: {kind}\r\n")).collect::<String>();
        Some(format!(
            "{start_line}\r\nVia: SIP/2.0/UDP unread.invalid\r\nFrom: {from}\r\nTo: {to}\r\nCall-ID: {call_id}\r\n\
             CSeq: {cseq}\r\n{kind}\r\n"
        ))
    }

    /// The part of the bytes after the head that is the body: all, unless Content-Length is smaller.
    fn body<'a>(&self, rest: &'a [u8]) -> &'a [u8] {
        self.content_length.and_then(|len| rest.get(..len)).unwrap_or(rest)
    }
}

/// The URI and the tag of an address, without the display name.
fn address(value: &str) -> String {
    let (uri, parameters) =
        match value.rsplit_once('<').map(|(_, rest)| rest.split_once('>').unwrap_or((rest, ""))) {
            Some(parts) => parts,
            None => value.split_once(';').unwrap_or((value, "")),
        };
    let is_read = sidetone_sip::message::Uri::parse(uri.trim()).is_ok();
    let uri = if is_read { uri.trim() } else { UNREADABLE };
    let tag = parameters.split(';').find_map(|parameter| {
        let (name, value) = parameter.split_once('=')?;
        name.trim().eq_ignore_ascii_case("tag").then(|| value.trim())
    });
    tag.filter(|tag| is_token(tag)).map_or_else(|| format!("<{uri}>"), |tag| format!("<{uri}>;tag={tag}"))
}

/// Whether a text is a token (RFC 3261 §25.1); a tag must be one.
fn is_token(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-.!%*_+`'~".contains(&byte))
}

/// The placeholder for a URI that cannot be read (RFC 2606 §2).
const UNREADABLE: &str = "sip:unreadable.invalid";
/// A longer head is not read.
const HEAD_LEN_MAX: usize = 16_384;
/// Lines of one head.
const LINES_MAX: usize = 256;

#[cfg(test)]
mod tests {
    use super::*;

    const SOUND: &str = "INVITE sip:b@192.0.2.2 SIP/2.0\r\nVia: SIP/2.0/UDP 192.0.2.1;branch=z9hG4bK1\r\n\
        From: \"A\" <sip:a@192.0.2.1>;tag=1\r\nTo: <sip:b@192.0.2.2>\r\nCall-ID: one\r\nCSeq: 1 INVITE\r\n\
        Contact: <sip:a@192.0.2.1>\r\nMax-Forwards: 70\r\nContent-Type: application/sdp\r\nContent-Length: 5\r\n\r\nv=0\r\n";

    #[test]
    fn what_a_switch_refuses_is_read_as_far_as_an_observer_needs() {
        let replaced = |from: &str, to: &str| {
            assert!(SOUND.contains(from), "{from}");
            SOUND.replace(from, to)
        };
        let cases = [
            ("sound", SOUND.to_owned()),
            ("line feeds alone", SOUND.replace("\r\n", "\n")),
            ("a length that is no number", replaced("Length: 5", "Length: five")),
            ("a length beyond the datagram", replaced("Length: 5", "Length: 500")),
            ("two lengths", replaced("Content-Length: 5", "Content-Length: 5\r\nl: 6")),
            ("an escaped quote that opens nothing", replaced("\"A\" <", "\\\"A\\\" <")),
            ("a quote that never closes", replaced("\"A\" <", "\"A <")),
            ("a name of other bytes", replaced("\"A\" <", "\u{fffd}, A <")),
            ("a contact without address", replaced("Contact: <sip:a@192.0.2.1>", "Contact:")),
            ("hops beyond reason", replaced("Max-Forwards: 70", "Max-Forwards: 700")),
            ("no Via", replaced("Via: SIP/2.0/UDP 192.0.2.1;branch=z9hG4bK1\r\n", "")),
            ("From twice", replaced("To: ", "From: <sip:c@192.0.2.3>;tag=3\r\nTo: ")),
            ("a space behind the Call-ID", replaced("Call-ID: one", "Call-ID: one ;x")),
            ("a URI with a space", replaced("INVITE sip:b@192.0.2.2 SIP", "INVITE sip:b b@192.0.2.2 SIP")),
            ("a line without a colon", replaced("Contact: ", "What is this\r\nContact: ")),
            ("compact and folded", replaced("Call-ID: one", "i:\r\n one")),
            ("keep-alives in front", format!("\r\n\r\n\n{SOUND}")),
        ];
        for (name, text) in cases {
            let message = read(text.as_bytes()).unwrap_or_else(|| panic!("{name}"));
            let headers = message.headers();
            let (from, to) = (headers.from().unwrap(), headers.to().unwrap());
            let seen =
                (from.uri.to_string(), from.tag().map(str::to_owned), to.uri.to_string(), headers.call_id());
            let expected =
                ("sip:a@192.0.2.1".to_owned(), Some("1".to_owned()), "sip:b@192.0.2.2".to_owned(), "one");
            assert_eq!(seen, expected, "{name}");
            assert!(headers.is_content_type("application/sdp"), "{name}");
            assert!(message.body().starts_with(b"v=0"), "{name}");
        }
    }

    #[test]
    fn what_belongs_to_nothing_is_not_read() {
        let cases = [
            ("no Call-ID", SOUND.replace("Call-ID: one\r\n", "")),
            ("an empty Call-ID", SOUND.replace("Call-ID: one", "Call-ID: ")),
            ("no From", SOUND.replace("From: ", "Fram: ")),
            ("no CSeq", SOUND.replace("CSeq: 1 INVITE\r\n", "")),
            ("a CSeq of another method", SOUND.replace("CSeq: 1 INVITE", "CSeq: 1 BYE")),
            ("another protocol", SOUND.replace("SIP/2.0\r\nVia", "RTSP/1.0\r\nVia")),
            ("nothing", String::new()),
        ];
        for (name, text) in cases {
            // The original start line decides, not a replaced one.
            let is_sip = crate::payload_kind::is_sip(text.as_bytes());
            assert!(!is_sip || read(text.as_bytes()).is_none(), "{name}");
        }
    }
}
