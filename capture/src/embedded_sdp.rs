//! Finds the session description in a SIP message, and in the text of MGCP, Megaco and other protocols.

use sidetone_sip::message::Message;
use sidetone_sip::sdp::SessionDescription;

/// The session description of a message: its body, or a part of it (RFC 5621 §3).
pub(super) fn described(message: &Message) -> Option<SessionDescription> {
    let headers = message.headers();
    if headers.is_content_type("application/sdp") {
        return SessionDescription::parse(message.body()).ok();
    }
    let kind = headers.content_type().and_then(|kind| kind.trim_ascii_start().get(..MULTIPART.len()));
    let is_multipart = kind.is_some_and(|kind| kind.eq_ignore_ascii_case(MULTIPART));
    is_multipart.then(|| session_description(message.body().trim_ascii_start())).flatten()
}

/// Returns the session description in a text that is not a SIP message.
///
/// A text is examined only if it has the first line of SDP as a separate line. It is read up to the first line that
/// does not look like SDP.
pub(super) fn session_description(payload: &[u8]) -> Option<SessionDescription> {
    if !payload.first().is_some_and(u8::is_ascii_graphic) {
        return None;
    }
    let begin = payload.windows(FIRST_LINE.len()).position(|window| window == FIRST_LINE)? + 1;
    let sdp = payload.get(begin..)?;
    let lines = sdp.split(|byte| *byte == b'\n').take_while(|line| matches!(line, [b'a'..=b'z', b'=', ..]));
    SessionDescription::parse(&complete(lines)).ok().filter(|description| !description.media.is_empty())
}

/// Completes a description with the lines that a gateway may omit: RFC 3435 §3.4 does not require origin, name and
/// time.
fn complete<'a>(lines: impl Iterator<Item = &'a [u8]>) -> Vec<u8> {
    let mut text = b"v=0\r\n".to_vec();
    let mut required: &[(u8, &[u8])] = &[(b'o', b"o=- 0 0 IN IP4 0.0.0.0\r\n"), (b's', b"s=-\r\n")];
    for line in lines.skip(1) {
        // Each turn shortens one of two lists.
        while let [(kind, default), rest @ ..] = required {
            required = rest;
            if line.first() == Some(kind) {
                break;
            }
            text.extend_from_slice(default);
        }
        text.extend_from_slice(line.strip_suffix(b"\r").unwrap_or(line));
        text.extend_from_slice(b"\r\n");
    }
    text
}

/// RFC 4566 §5.1, after the end of another line.
const FIRST_LINE: &[u8] = b"\nv=0";
/// Prefix of the types that contain others (RFC 2046 §5.1).
const MULTIPART: &str = "multipart/";

#[cfg(test)]
mod tests {
    use super::*;

    const SDP: &str =
        "v=0\r\no=- 1 1 IN IP4 192.0.2.1\r\ns=-\r\nc=IN IP4 192.0.2.1\r\nt=0 0\r\nm=audio 4000 RTP/AVP 0\r\n";

    #[test]
    fn descriptions_are_found_in_text() {
        let unix = SDP.replace('\r', "");
        let short = "v=0\r\nc=IN IP4 192.0.2.1\r\nm=audio 4000 RTP/AVP 8\r\n";
        let cases: [(&str, String, Option<u16>); 8] = [
            ("MGCP with only what counts", format!("200 1203 OK\r\nI: 7c\r\n\r\n{short}"), Some(4_000)),
            ("MGCP", format!("200 1203 OK\r\nI: FDE234C8\r\n\r\n{SDP}"), Some(4_000)),
            (
                "MGCP with bare line feeds",
                format!("CRCX 1204 aaln/1@gw MGCP 1.0\nC: A3\n\n{unix}"),
                Some(4_000),
            ),
            (
                "Megaco",
                format!("MEGACO/1 [192.0.2.1]:2944\r\nReply = 1 {{ Local {{\r\n{SDP}}} }}"),
                Some(4_000),
            ),
            ("two of them", format!("200 1 OK\r\n\r\n{SDP}\r\n{SDP}"), Some(4_000)),
            ("no description", "200 1 OK\r\nI: 1\r\n\r\n".to_owned(), None),
            ("not text", format!("\0\x01\r\n{SDP}"), None),
            ("without media", "200 1 OK\r\n\r\nv=0\r\no=- 1 1 IN IP4 192.0.2.1\r\ns=-\r\n".to_owned(), None),
        ];
        for (name, text, expected) in cases {
            let found = session_description(text.as_bytes());
            assert_eq!(found.map(|description| description.media[0].port), expected, "{name}");
        }
    }
}
