//! Limits responses to unauthenticated senders to one and a half times the bytes of the request.
//!
//! The source of a datagram may be forged, and then the response goes to a host that sent nothing. A response
//! that is too long is written again with only the headers that RFC 3261 §8.2.6 requires, in compact form,
//! and with the one challenge that every phone supports; if it is still too long, it is not sent.

use bytes::{BufMut, Bytes, BytesMut};

use crate::message::{Name, Response};

/// The largest response, in bytes, to a datagram of this length.
pub(super) const fn budget_of(came: usize) -> usize {
    came.saturating_mul(3) / 2
}

/// The response as sent within a budget; `None` when its shortest form is too long. Without a budget it is
/// unchanged.
pub(super) fn within(budget: Option<usize>, response: &Response) -> Option<Bytes> {
    let whole = response.to_bytes();
    let Some(budget) = budget else { return Some(whole) };
    if whole.len() <= budget {
        return Some(whole);
    }
    let challenges: Vec<&[u8]> =
        CHALLENGES.into_iter().flat_map(|name| response.headers().header_all_bytes(name)).collect();
    let is_md5 = |challenge: &&&[u8]| String::from_utf8_lossy(challenge).contains("algorithm=MD5");
    let plainest = challenges.iter().find(is_md5).or(challenges.last()).copied();
    [shortest(response, &challenges), shortest(response, plainest.as_slice())]
        .into_iter()
        .find(|bytes| bytes.len() <= budget)
}

/// The response with only the required parts (§8.2.6, §8.2.2.3, §22.1): names in compact form (§7.3.3), no
/// phrase (§25.1), and no Content-Length, which is optional in a datagram (§20.14).
fn shortest(response: &Response, challenges: &[&[u8]]) -> Bytes {
    let headers = response.headers();
    let mut out = BytesMut::with_capacity(headers.wire_len());
    out.put_slice(b"SIP/2.0 ");
    out.put_slice(response.status().to_string().as_bytes());
    out.put_slice(b" \r\n");
    let mut line = |name: &str, value: &[u8]| {
        out.put_slice(name.as_bytes());
        out.put_slice(b":");
        out.put_slice(value);
        out.put_slice(b"\r\n");
    };
    for (name, compact) in MANDATED {
        for value in headers.header_all_bytes(name) {
            line(compact, value);
        }
    }
    let challenge = if headers.contains(Name::ProxyAuthenticate) {
        Name::ProxyAuthenticate
    } else {
        Name::WwwAuthenticate
    };
    for value in challenges {
        line(challenge.as_str(), value);
    }
    out.put_slice(b"\r\n");
    out.freeze()
}

/// Headers that a response must have, in the form in which they are written.
const MANDATED: [(Name<'static>, &str); 6] = [
    (Name::Via, "v"),
    (Name::From, "f"),
    (Name::To, "t"),
    (Name::CallId, "i"),
    (Name::CSeq, "CSeq"),
    (Name::Unsupported, "Unsupported"),
];
const CHALLENGES: [Name<'static>; 2] = [Name::WwwAuthenticate, Name::ProxyAuthenticate];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::{Datagram, Message, StatusCode, parse_datagram};

    fn response() -> Response {
        Response::builder(StatusCode::UNAUTHORIZED, "")
            .header("Via", "SIP/2.0/UDP a;branch=z9hG4bK1;received=192.0.2.1")
            .header("From", "<sip:a>;tag=1")
            .header("To", "<sip:a>;tag=0123456789abcdef")
            .header("Call-ID", "1")
            .header("CSeq", "1 REGISTER")
            .header("WWW-Authenticate", "Digest realm=\"a\", algorithm=SHA-256")
            .header("WWW-Authenticate", "Digest realm=\"a\", algorithm=MD5")
            .header("Allow", "INVITE, ACK")
            .build()
            .unwrap()
    }

    #[test]
    fn a_response_is_whole_or_as_short_as_it_may_be_or_not_sent() {
        let (whole, response) = (response().to_bytes(), response());
        assert_eq!(within(None, &response).unwrap(), whole);
        assert_eq!(within(Some(whole.len()), &response).unwrap(), whole);
        let short = within(Some(whole.len() - 1), &response).unwrap();
        let read = |bytes: Bytes| match parse_datagram(bytes).unwrap() {
            Datagram::Message(Message::Response(response)) => response,
            other => panic!("{other:?}"),
        };
        for name in ["Via", "From", "To", "Call-ID", "CSeq"] {
            assert_eq!(read(short.clone()).header(name), response.header(name), "{name}");
        }
        assert_eq!(read(short.clone()).header_all("WWW-Authenticate").count(), 2);
        assert_eq!(read(short.clone()).header("Allow"), None);
        let shorter = within(Some(short.len() - 1), &response).unwrap();
        let left: Vec<String> =
            read(shorter.clone()).header_all("WWW-Authenticate").map(str::to_owned).collect();
        assert_eq!(left, ["Digest realm=\"a\", algorithm=MD5"]);
        assert_eq!(within(Some(shorter.len() - 1), &response), None);
    }
}
