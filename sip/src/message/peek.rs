//! Guesses the type of a datagram without parsing it, for decisions that must be cheaper than parsing.
//!
//! The result is not reliable. For a message written in the usual way it equals the parser's result; for a
//! folded or malformed one it may contain less, and then the message is treated as one from an
//! unauthenticated source.

use memchr::{memchr, memrchr};

use crate::message::limits::LEADING_CRLF_MAX;
use crate::message::parse::looks_like_sip;
use crate::message::scan::trim;
use crate::message::{List, Method};

/// The result of a glance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Glance<'a> {
    /// The type of the first line.
    pub kind: Kind,
    /// The first hop of the top Via.
    pub via: Option<&'a str>,
    /// The tag of the To header.
    pub to_tag: Option<&'a str>,
    /// The first Authorization header.
    pub authorization: Option<&'a str>,
}

/// The apparent type of a datagram according to its first line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Only CRLFs.
    KeepAlive,
    /// Not acceptable for the parser.
    NotSip,
    /// A request.
    Request(Method),
    /// A response.
    Response,
}

/// Looks at a datagram; reads at most `GLANCE_BYTES` and `GLANCE_LINES` of it.
pub fn glance(datagram: &[u8]) -> Glance<'_> {
    let mut found = Glance { kind: Kind::NotSip, via: None, to_tag: None, authorization: None };
    let skipped =
        datagram.iter().take(4 * LEADING_CRLF_MAX).take_while(|b| matches!(b, b'\r' | b'\n')).count();
    let rest = datagram.get(skipped..datagram.len().min(GLANCE_BYTES)).unwrap_or_default();
    if rest.is_empty() {
        if skipped > 0 {
            found.kind = Kind::KeepAlive;
        }
        return found;
    }
    let mut lines = rest.split(|b| *b == b'\n').take(GLANCE_LINES);
    let first = lines.next().unwrap_or_default();
    if !looks_like_sip(first) {
        return found;
    }
    found.kind = match first.get(..4) {
        Some(start) if start.eq_ignore_ascii_case(b"SIP/") => Kind::Response,
        _ => match first.split(|b| *b == b' ').next().and_then(Method::from_bytes) {
            Some(method) => Kind::Request(method),
            None => return found,
        },
    };
    for line in lines.map(|line| trim(line.strip_suffix(b"\r").unwrap_or(line))) {
        if line.is_empty() {
            break;
        }
        found.note(line);
    }
    found
}

impl<'a> Glance<'a> {
    fn note(&mut self, line: &'a [u8]) {
        let Some(colon) = memchr(b':', line) else { return };
        let (name, value) = line.split_at(colon);
        let value = || std::str::from_utf8(trim(value.get(1..).unwrap_or_default())).ok();
        let is = |long: &[u8], compact: &[u8]| {
            let name = trim(name);
            name.eq_ignore_ascii_case(long) || (!compact.is_empty() && name.eq_ignore_ascii_case(compact))
        };
        // For most lines the first letter makes the comparisons unnecessary.
        match name.first().map(u8::to_ascii_lowercase) {
            Some(b'v') if self.via.is_none() && is(b"via", b"v") => {
                self.via = value().and_then(|hops| List::new(hops).next());
            }
            Some(b't') if self.to_tag.is_none() && is(b"to", b"t") => {
                self.to_tag = value().and_then(tag_of);
            }
            Some(b'a') if self.authorization.is_none() && is(b"authorization", b"") => {
                self.authorization = value();
            }
            _ => {}
        }
    }
}

/// The tag after an address.
fn tag_of(address: &str) -> Option<&str> {
    let params = memrchr(b'>', address.as_bytes()).and_then(|at| address.get(at..)).unwrap_or(address);
    params.split(';').skip(1).find_map(|param| {
        let (name, value) = param.split_once('=')?;
        name.trim().eq_ignore_ascii_case("tag").then(|| value.trim())
    })
}

/// How many bytes of a datagram are read.
const GLANCE_BYTES: usize = 4_096;
/// How many of its lines are read.
const GLANCE_LINES: usize = 64;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::message::{Datagram, Message, parse_datagram};

    #[test]
    fn the_first_line_tells_what_a_datagram_is() {
        for (datagram, kind) in [
            ("\r\n\r\n", Kind::KeepAlive),
            ("\r\n", Kind::KeepAlive),
            ("", Kind::NotSip),
            ("\0\u{1}\u{2} x", Kind::NotSip),
            ("hello", Kind::NotSip),
            ("SIP/2.0 200 OK\r\n\r\n", Kind::Response),
            ("sip/2.0 200 OK", Kind::Response),
            ("\r\nBYE sip:a SIP/2.0\r\n", Kind::Request(Method::Bye)),
            ("WOMBAT sip:a SIP/2.0", Kind::Request(Method::Other("WOMBAT".into()))),
        ] {
            assert_eq!(glance(datagram.as_bytes()).kind, kind, "{datagram}");
        }
    }

    #[test]
    fn headers_are_found_in_any_case_and_form() {
        for (lines, via, tag, authorization) in [
            (
                "Via: a, b\r\nTo: <sip:a;tag=no>;tag=x\r\nAuthorization: Digest a=\"b\"",
                "a",
                "x",
                "Digest a=\"b\"",
            ),
            ("v : a\r\nt:sip:a;x;TAG = x ;y=1\r\nAUTHORIZATION:Digest a=\"b\"", "a", "x", "Digest a=\"b\""),
            (
                "X: y\r\nTo: \";tag=no\" <sip:a>;tag=x\r\nVia:a\r\nVia:b\r\nAuthorization: Digest a=\"b\"",
                "a",
                "x",
                "Digest a=\"b\"",
            ),
        ] {
            let text = format!("BYE sip:a SIP/2.0\r\n{lines}\r\n\r\nVia: body\r\n");
            let found = glance(text.as_bytes());
            assert_eq!(
                (found.via, found.to_tag, found.authorization),
                (Some(via), Some(tag), Some(authorization)),
                "{lines}"
            );
        }
        let none = glance(b"BYE sip:a SIP/2.0\r\nTo: <sip:a>\r\nTop: x;tag=1\r\n\r\nVia: body");
        assert_eq!((none.via, none.to_tag, none.authorization), (None, None, None));
    }

    proptest! {
        /// A glance ends for any input; for a valid message it finds what the parser finds.
        #[test]
        fn fuzz_a_glance_sees_what_the_reader_reads(
            junk in proptest::collection::vec(any::<u8>(), 0..300),
            tag in "[a-z0-9]{1,8}", branch in "[a-z0-9]{1,8}", name in "[a-z ]{0,6}", at in 0_usize..300,
        ) {
            glance(&junk);
            let mut text = format!(
                "BYE sip:a SIP/2.0\r\nVia: SIP/2.0/UDP a;branch={branch}\r\nFrom: <sip:a>;tag=1\r\n\
                 To: \"{name}\" <sip:a>;tag={tag}\r\nCall-ID: 1\r\nCSeq: 1 BYE\r\n\r\n"
            ).into_bytes();
            let expected = glance(&text).to_tag.map(str::to_owned);
            prop_assert_eq!(expected, Some(tag.clone()));
            let place = at % text.len();
            text[place] = junk.first().copied().unwrap_or(b'x');
            if let Ok(Datagram::Message(Message::Request(request))) = parse_datagram(text.clone().into()) {
                let found = glance(&text);
                prop_assert!(matches!(found.kind, Kind::Request(_)));
                let read = request.to().unwrap().tag().map(str::to_owned);
                // A tag that only one of them finds merely makes the message count as unauthenticated, or causes it to
                // be parsed.
                if let (Some(read), Some(found)) = (&read, found.to_tag) {
                    prop_assert!(read == found || text.contains(&b'"'), "{} {}", read, found);
                }
            }
        }
    }
}
