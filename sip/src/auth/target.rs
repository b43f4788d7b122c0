//! Whether the `uri` of a digest names the target of its request (RFC 7616 §3.4.6).
//!
//! Phones and the proxies between write one target in several ways: with an address, another name or a port of the
//! server, with other parameters, escaped, or as a `tel:` URI. What a different target costs its victim is in the user
//! part, so only that is compared.

use crate::message::{Host, Scheme, Uri};

/// Whether a Request-URI and the `uri` of the digest differ in no more than their spelling.
///
/// Without a user in the Request-URI, as in REGISTER, the domains are compared, if both have one. A `uri` without a user,
/// and one that is no URI, comes from the phone itself, because the digest protects it, and is accepted.
pub(super) fn has_target_of(request_uri: &str, digest_uri: &str) -> bool {
    if request_uri == digest_uri {
        return true;
    }
    let (Ok(request), Ok(digest)) = (Uri::parse(request_uri), Uri::parse(digest_uri)) else { return true };
    match (user_of(&request), user_of(&digest)) {
        (Some(requested), Some(signed)) => requested == signed,
        (None, None) => match (request.host(), digest.host()) {
            (Some(Host::Name(requested)), Some(Host::Name(signed))) => requested.eq_ignore_ascii_case(signed),
            _ => true,
        },
        (Some(_), None) | (None, Some(_)) => true,
    }
}

/// The user of a URI, unescaped and without its parameters; of a telephone number only its digits (RFC 3966 §5.1.1).
fn user_of(uri: &Uri) -> Option<String> {
    let user = uri.user_decoded()?;
    let user = user.split(';').next().unwrap_or_default();
    let is_visual = |c: char| matches!(c, '-' | '.' | '(' | ')' | ' ');
    let is_number = matches!(uri.scheme(), Scheme::Tel)
        || user.chars().all(|c| c.is_ascii_digit() || c == '+' || is_visual(c));
    let user = if is_number { user.replace(is_visual, "") } else { user.to_owned() };
    Some(user).filter(|user| !user.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_uri_may_differ_in_its_spelling_but_not_in_its_target() {
        let cases = [
            ("equal", "sip:1002@acme.test", "sip:1002@acme.test", true),
            ("another number", "sip:+8821000@acme.test", "sip:1002@acme.test", false),
            ("another user", "sip:bob@acme.test", "sip:alice@acme.test", false),
            ("case of the user", "sip:Bob@acme.test", "sip:bob@acme.test", false),
            ("an address of the server", "sip:1002@192.0.2.1:5060", "sip:1002@acme.test", true),
            ("parameters", "sip:1002@acme.test;transport=tcp", "sip:1002@acme.test;user=phone", true),
            ("parameters of the number", "sip:1002;phone-context=x@acme.test", "sip:1002@acme.test", true),
            ("escapes", "sip:%2b447700900123@acme.test", "sip:+447700900123@acme.test", true),
            ("secure", "sips:1002@acme.test", "sip:1002@acme.test", true),
            ("telephone URI", "sip:+447700900123@acme.test;user=phone", "tel:+44-7700-900123", true),
            ("another telephone URI", "tel:+8821000", "tel:+447700900123", false),
            ("star code", "sip:*97@acme.test", "sip:%2A97@acme.test", true),
            ("no user in the digest", "sip:1002@acme.test", "sip:acme.test", true),
            ("no user in the request", "sip:proxy.test", "sip:1002@acme.test", true),
            ("no URI in the digest", "sip:1002@acme.test", "1002", true),
            ("domain", "sip:acme.test", "sip:ACME.test:5060;transport=udp", true),
            ("another domain", "sip:other.test", "sip:acme.test", false),
            ("domain and address", "sip:192.0.2.1", "sip:acme.test", true),
        ];
        for (name, request, digest, expected) in cases {
            assert_eq!(has_target_of(request, digest), expected, "{name}");
        }
    }
}
