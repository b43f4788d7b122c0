//! The response that carries a challenge; kept small.

use crate::message::{InvalidValue, Name, Request, Response, StatusCode};

/// The 401 or 407 with these challenges, one header each.
///
/// It is sent to the claimed source of a request before any authentication. To prevent its use as an
/// amplifier, it is at most one and a half times as long as a request with a Contact, which INVITE and
/// REGISTER must have: if all challenges are too long, it contains only the one for MD5, which every phone
/// supports.
///
/// # Errors
/// When the tag or a challenge cannot be written.
pub fn challenge_reply(
    request: &Request,
    status: StatusCode,
    to_tag: &str,
    challenges: &[String],
) -> Result<Response, InvalidValue> {
    with_challenges(request, status, to_tag, fitting_challenges(request, status, to_tag.len(), challenges))
}

/// The challenges that [`challenge_reply`] sends: all, or the one for MD5.
pub fn fitting_challenges<'a>(
    request: &Request,
    status: StatusCode,
    to_tag_len: usize,
    challenges: &'a [String],
) -> &'a [String] {
    let came = request.wire_len().saturating_sub(SOURCE_NOTE_BYTES);
    let has_tag = request.to_tag().is_ok_and(|tag| !tag.is_empty());
    let tag_len = if has_tag { 0 } else { ";tag=".len() + to_tag_len };
    let each = challenge_name(status).as_str().len() + ": ".len() + "\r\n".len();
    let of_challenges: usize = challenges.iter().map(|challenge| each + challenge.len()).sum();
    let out = Response::reply_len(request, status) + tag_len + of_challenges;
    let plainest = challenges.iter().position(|challenge| challenge.contains("algorithm=MD5"));
    match plainest.or(challenges.len().checked_sub(1)) {
        Some(at) if challenges.len() > 1 && out * 2 > came * 3 => {
            challenges.get(at..=at).unwrap_or(challenges)
        }
        _ => challenges,
    }
}

const fn challenge_name(status: StatusCode) -> Name<'static> {
    match status.as_u16() {
        407 => Name::ProxyAuthenticate,
        _ => Name::WwwAuthenticate,
    }
}

fn with_challenges(
    request: &Request,
    status: StatusCode,
    to_tag: &str,
    challenges: &[String],
) -> Result<Response, InvalidValue> {
    let mut response = Response::reply_to(request, status);
    response.set_to_tag(to_tag)?;
    for challenge in challenges {
        response.headers_mut().push(challenge_name(status), challenge)?;
    }
    Ok(response)
}

/// Length of what the transport has already added to the top Via: `;received=192.0.2.100` and the port of
/// `rport`.
const SOURCE_NOTE_BYTES: usize = 27;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::auth::{Attempt, Authenticator, Decision, SECRET_BYTES};
    use crate::message::{Datagram, Message, parse_datagram};

    fn request(extra: &str) -> Request {
        let text = format!(
            "REGISTER sip:acme.test SIP/2.0\r\nVia: SIP/2.0/UDP 192.0.2.1:5060;branch=z9hG4bK-1234567890;rport\r\n\
             Max-Forwards: 70\r\nFrom: <sip:1001@acme.test>;tag=1234567890\r\nTo: <sip:1001@acme.test>\r\n\
             Call-ID: 1234567890@192.0.2.1\r\nCSeq: 1 REGISTER\r\n{extra}Content-Length: 0\r\n\r\n"
        );
        match parse_datagram(text.into_bytes().into()) {
            Ok(Datagram::Message(Message::Request(mut request))) => {
                request.note_source("192.0.2.100:50600".parse().unwrap()).unwrap();
                request
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_challenge_is_no_amplifier() {
        #[expect(clippy::disallowed_methods, reason = "a test needs some instant to count from")]
        let now = std::time::Instant::now();
        let mut authenticator = Authenticator::new([7; SECRET_BYTES], now);
        let attempt = Attempt {
            headers: &[],
            method: "REGISTER",
            uri: "sip:acme.test",
            request: "1",
            realm: "acme.test",
            source: "192.0.2.100".parse().unwrap(),
        };
        let Decision::Challenge { challenges, .. } = authenticator.verify(now, attempt, |_: &str| None)
        else {
            panic!()
        };
        let phone = "Contact: <sip:1001@192.0.2.1:5060;transport=udp>\r\nExpires: 3600\r\nUser-Agent: Phone 1.0\r\n\
                     Allow: INVITE, ACK, CANCEL, BYE, OPTIONS, INFO, UPDATE\r\nSupported: path\r\n";
        for (name, extra, expected) in [
            ("a phone's", phone, 2),
            ("the smallest that can register", "Contact: <sip:1001@192.0.2.1>\r\n", 1),
        ] {
            let request = request(extra);
            let status = StatusCode::UNAUTHORIZED;
            let response = challenge_reply(&request, status, "0123456789abcdef", &challenges).unwrap();
            let values: Vec<_> = response.headers().header_all(Name::WwwAuthenticate).collect();
            assert_eq!(values.len(), expected, "{name}");
            assert!(values.last().unwrap().contains("algorithm=MD5"), "{name}");
            let came = request.to_bytes().len() - SOURCE_NOTE_BYTES;
            let out = response.to_bytes().len();
            assert!(out * 2 <= came * 3, "{name}: {out} bytes for {came}");
            assert_eq!(out, response.wire_len(), "{name}");
        }
    }

    #[test]
    fn each_status_has_its_header() {
        let challenges = ["Digest realm=\"a\"".to_owned()];
        let status = StatusCode::PROXY_AUTHENTICATION_REQUIRED;
        let response = challenge_reply(&request(""), status, "tag", &challenges).unwrap();
        assert_eq!(response.headers().header(Name::ProxyAuthenticate), Some("Digest realm=\"a\""));
        assert!(challenge_reply(&request(""), status, "tag", &["a\r\nb".to_owned()]).is_err());
    }
}
