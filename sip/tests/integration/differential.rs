//! rsip as an oracle: when both parse a message, the results are equal; each difference is recorded and
//! explained.
//!
//! The table shows why the engine does not parse messages with rsip (ARCHITECTURE.md). When a row fails
//! because rsip has improved, remove the row: the oracle then covers more.

#![allow(clippy::panic, clippy::unwrap_used, clippy::indexing_slicing, reason = "helpers of tests")]

use bytes::Bytes;
use proptest::prelude::*;
use proptest::sample::select;
use rsip::headers::{ToTypedHeader as _, UntypedHeader as _};
use rsip::message::HeadersExt as _;
use rsip::prelude::HasHeaders as _;
use sidetone_sip::message::{
    Contacts, Datagram, Digest, Host, InvalidValue, Message, Method, Name, NameAddr, Rejection, Request,
    Response, Scheme, StatusCode, Transport, Uri, Via, parse_datagram,
};

/// The headers every message has.
const T: &str = "Via: SIP/2.0/UDP h;branch=z9hG4bK1\r\nFrom: <sip:a@h>;tag=1\r\nTo: <sip:b@h>\r\nCall-ID: c\r\nCSeq: 1 INVITE\r\n";

fn ours(bytes: impl AsRef<[u8]>) -> Result<Message, Rejection> {
    match parse_datagram(Bytes::copy_from_slice(bytes.as_ref())) {
        Ok(Datagram::Message(message)) => Ok(message),
        Ok(other) => panic!("{other:?}"),
        Err(rejected) => Err(rejected.reason),
    }
}

fn theirs(bytes: impl AsRef<[u8]>) -> Result<rsip::SipMessage, rsip::Error> {
    rsip::SipMessage::try_from(bytes.as_ref())
}

/// An INVITE with the headers `T` and one more line.
fn with(line: &str) -> String {
    format!("INVITE sip:b@h SIP/2.0\r\n{T}{line}\r\n\r\n")
}

/// An INVITE with one header of `T` replaced.
fn but(from: &str, to: &str) -> String {
    let text = with("X: 1");
    assert!(text.contains(from), "{from}");
    text.replace(from, to)
}

#[test]
fn row_01_compact_forms() {
    let text = "INVITE sip:b@h SIP/2.0\r\nv: SIP/2.0/UDP h;branch=z9hG4bK1\r\nf: <sip:a@h>;tag=1\r\nt: <sip:b@h>\r\ni: c\r\n\
                m: <sip:a@h>\r\nCSeq: 1 INVITE\r\n\r\n";
    let message = ours(text).unwrap();
    assert_eq!(message.headers().via_top().unwrap().branch(), Some("z9hG4bK1"));
    assert_eq!(message.headers().call_id(), "c");
    let deaf = theirs(text).unwrap();
    assert!(deaf.via_header().is_err() && deaf.from_header().is_err() && deaf.call_id_header().is_err());
    // Our conversion writes the long forms, so that rsip recognises them.
    assert!(rsip::SipMessage::try_from(&message).unwrap().via_header().is_ok());
}

#[test]
fn row_02_folded_headers() {
    let text = but("UDP h;branch", "UDP h\r\n ;branch");
    assert_eq!(ours(&text).unwrap().headers().via_top().unwrap().branch(), Some("z9hG4bK1"));
    assert!(theirs(&text).is_err(), "the whole message");
    assert!(rsip::SipMessage::try_from(&ours(&text).unwrap()).is_ok(), "unfolded by the conversion");
}

#[test]
fn row_03_space_before_the_colon() {
    let text = but("Call-ID: c", "Call-ID : c");
    assert_eq!(ours(&text).unwrap().headers().call_id(), "c");
    assert!(theirs(&text).is_err(), "the whole message");
}

#[test]
fn row_04_ipv6() {
    for text in [
        but("sip:b@h SIP", "sip:b@[2001:db8::2]:5070 SIP"),
        but("UDP h;", "UDP [::1]:5060;"),
        with("Route: <sip:[::1];lr>"),
        with(
            "Authorization: Digest username=\"a\", realm=\"r\", nonce=\"n\", uri=\"sip:[::1]\", response=\"00\"",
        ),
    ] {
        let message = ours(&text).unwrap();
        assert!(message.headers().routes().is_ok());
        let theirs = theirs(&text);
        let typed = theirs.map(|message| {
            message.via_header().unwrap().typed().is_ok()
                && message.route_header().is_none_or(|route| route.typed().is_ok())
                && message.authorization_header().is_none_or(|header| header.typed().is_ok())
        });
        assert!(!typed.unwrap_or(false), "{text}");
    }
}

#[test]
fn row_05_ipv6_is_written_in_brackets() {
    let address: std::net::SocketAddr = "[2001:db8::1]:5060".parse().unwrap();
    assert_eq!(Uri::sip(Host::from(address), Some(5060)).to_string(), "sip:[2001:db8::1]:5060");
    let uri =
        rsip::Uri { scheme: Some(rsip::Scheme::Sip), host_with_port: address.into(), ..rsip::Uri::default() };
    assert_eq!(uri.to_string(), "sip:2001:db8::1:5060", "no URI");
}

#[test]
fn row_06_two_hops_in_one_line() {
    let text = but("branch=z9hG4bK1", "branch=z9hG4bK1, SIP/2.0/TCP g;branch=z9hG4bK2");
    assert_eq!(ours(&text).unwrap().headers().vias().unwrap().len(), 2);
    let typed = theirs(&text).unwrap().via_header().unwrap().typed().unwrap();
    assert!(!typed.to_string().contains("z9hG4bK2"), "the second hop is gone");
    let text = but("branch=z9hG4bK1", "branch=z9hG4bK1 GARBAGE");
    assert_eq!(ours(&text), Err(Rejection::Via));
    assert!(theirs(&text).unwrap().via_header().unwrap().typed().is_ok());
}

#[test]
fn row_07_received_ipv6() {
    let via = "SIP/2.0/UDP h;rport;branch=z9hG4bK1;received=::1";
    assert_eq!(Via::parse(via).unwrap().received(), Some("::1".parse().unwrap()));
    let typed = rsip::headers::Via::new(via).typed().unwrap();
    assert!(!typed.to_string().contains("::1"), "the value is cut: {typed}");
}

#[test]
fn row_08_space_before_a_parameter() {
    let via = "SIP/2.0/UDP h ;branch=z9hG4bK1";
    assert_eq!(Via::parse(via).unwrap().branch(), Some("z9hG4bK1"));
    assert!(rsip::headers::Via::new(via).typed().unwrap().branch().is_none(), "the transaction is lost");
}

#[test]
fn row_09_unknown_transports() {
    let via = Via::parse("SIP/2.0/XYZ h;branch=z9hG4bK1").unwrap();
    assert_eq!(via.transport, Transport::Other("XYZ".into()));
    assert!(rsip::headers::Via::new("SIP/2.0/XYZ h;branch=z9hG4bK1").typed().is_err());
    assert_eq!(Uri::parse("sip:h;transport=foo").unwrap().param("transport"), Some("foo"));
    assert!(rsip::Uri::try_from("sip:h;transport=foo").is_err());
}

#[test]
fn row_10_and_11_methods() {
    let text = but("INVITE", "FROBNICATE");
    assert_eq!(ours(&text).unwrap().as_request().unwrap().method(), &Method::Other("FROBNICATE".into()));
    assert!(theirs(&text).is_err(), "no way to answer 405 or 501");
    let text = but("INVITE", "invite");
    assert_eq!(ours(&text).unwrap().as_request().unwrap().method(), &Method::Other("invite".into()));
    let rsip::SipMessage::Request(request) = theirs(&text).unwrap() else { panic!() };
    assert_eq!(request.method, rsip::Method::Invite, "methods are case-sensitive");
}

#[test]
fn row_12_telephone_numbers() {
    let uri = Uri::parse("tel:+1555").unwrap();
    assert_eq!(
        (uri.scheme(), uri.user(), uri.to_string()),
        (&Scheme::Tel, Some("+1555"), "tel:+1555".to_owned())
    );
    let altered = rsip::Uri::try_from("tel:+1555").map(|uri| uri.to_string());
    assert_ne!(altered.as_deref().unwrap_or_default(), "tel:+1555", "the dial string is altered");
    let text = but("sip:b@h SIP", "tel:+4989123456789 SIP");
    assert_eq!(ours(&text).unwrap().as_request().unwrap().uri(), "tel:+4989123456789");
    assert!(theirs(&text).is_err());
}

#[test]
fn row_13_odd_parameter_values() {
    for (text, value) in [("sip:a@h;a=\"q\"", "\"q\""), ("sip:a@h;a=[::1]", "[::1]")] {
        assert_eq!(Uri::parse(text).unwrap().param("a"), Some(value), "{text}");
        assert!(
            !rsip::Uri::try_from(text).unwrap().to_string().contains(value),
            "{text}: the value is dropped"
        );
    }
}

#[test]
fn row_14_quoted_and_spaced_parameters() {
    for contact in ["<sip:a@h>;+sip.instance=\"<urn:uuid:1>\"", "<sip:a@h>; tag=1", "<sip:a@h>;x=\"a;b\""] {
        let address = NameAddr::parse(contact).unwrap();
        assert_eq!(address.params.iter().count(), 1, "{contact}");
        assert!(rsip::headers::Contact::new(contact).typed().is_err(), "{contact}");
    }
}

#[test]
fn row_15_two_contacts_in_one_line() {
    let text = with("Contact: <sip:a@h>;expires=60, <sip:b@h>");
    let Contacts::List(contacts) = ours(&text).unwrap().headers().contacts().unwrap() else { panic!() };
    assert_eq!((contacts.len(), contacts[0].expires()), (2, Some(60)));
    assert!(theirs(&text).unwrap().contact_header().unwrap().typed().is_err());
}

#[test]
fn row_16_a_tag_within_quotes() {
    let from = "\"A <sip:evil@x>;tag=zz \\\" , B\" <sip:alice@e>;tag=ft1";
    let address = NameAddr::parse(from).unwrap();
    assert_eq!((address.uri.user(), address.tag()), (Some("alice"), Some("ft1")));
    assert!(rsip::headers::From::new(from).typed().is_err());
}

#[test]
fn row_17_a_tail_behind_the_tag() {
    assert!(NameAddr::parse("sip:a@h;tag=1 GARBAGE").is_err());
    assert_eq!(ours(but("<sip:a@h>;tag=1", "sip:a@h;tag=1 GARBAGE")), Err(Rejection::From));
    assert!(rsip::headers::From::new("sip:a@h;tag=1 GARBAGE").typed().is_ok(), "the tail is dropped");
}

#[test]
fn row_18_a_head_without_end() {
    let text = format!("OPTIONS sip:h SIP/2.0\r\n{T}");
    assert_eq!(ours(&text), Err(Rejection::NoHeadEnd));
    let rsip::SipMessage::Request(request) = theirs(&text).unwrap() else { panic!() };
    assert!(!request.body.is_empty(), "header lines became the body");
}

#[test]
fn row_19_content_length() {
    let text = |lines: &str| with(lines).replace("\r\n\r\n", "\r\n\r\nABCDEXTRA");
    assert_eq!(ours(text("Content-Length: 4")).unwrap().body().as_ref(), b"ABCD");
    for (lines, reason) in [
        ("Content-Length: -5", Rejection::ContentLength),
        ("Content-Length: 99999999999999999999", Rejection::ContentLength),
        ("Content-Length: 4\r\nContent-Length: 5", Rejection::ContentLengthConflict),
        ("Content-Length: 10", Rejection::ContentLengthBeyond),
    ] {
        assert_eq!(ours(text(lines)), Err(reason), "{lines}");
    }
    for lines in ["Content-Length: 4", "Content-Length: -5", "Content-Length: 99999999999999999999"] {
        assert_eq!(theirs(text(lines)).unwrap().body(), b"ABCDEXTRA", "{lines}: ignored");
    }
}

#[test]
fn row_20_binary_bodies() {
    let mut bytes = with("Content-Length: 3").into_bytes();
    bytes.extend([0xff, 0x00, 0x80]);
    assert_eq!(ours(&bytes).unwrap().to_bytes(), bytes);
    let written = Vec::<u8>::from(theirs(&bytes).unwrap());
    assert!(written.ends_with("\u{fffd}\0\u{fffd}".as_bytes()), "corrupted");
}

#[test]
fn row_21_phrases() {
    for phrase in ["404 Not Found", "481 Call/Transaction Does Not Exist", "486 Besetzt"] {
        let text = format!("SIP/2.0 {phrase}\r\n{T}Content-Length: 0\r\n\r\n");
        assert_eq!(ours(&text).unwrap().to_bytes(), text);
        assert!(!theirs(&text).unwrap().to_string().contains(phrase), "{phrase}");
    }
}

#[test]
fn row_22_injection() {
    let refused = Request::builder(Method::Invite, "sip:b@h").header("X", "a\r\nEvil: 1").build();
    assert_eq!(refused.unwrap_err(), InvalidValue::Control);
    let rsip::SipMessage::Request(mut request) = theirs(with("X-A: 1")).unwrap() else { panic!() };
    request.headers_mut().push(rsip::Header::Other("X".into(), "a\r\nEvil: 1".into()));
    assert!(request.to_string().contains("\r\nEvil: 1\r\n"), "written as it is");
    let converted = Message::try_from(&rsip::SipMessage::Request(request));
    assert!(converted.is_err(), "the conversion refuses what rsip would write");
}

#[test]
fn row_23_versions_and_codes() {
    assert_eq!(ours(but("sip:b@h SIP/2.0", "sip:b@h SIP/2.1")), Err(Rejection::Version));
    assert_eq!(ours(but("sip:b@h SIP/2.0", "sip:b@h SIP/1.0")), Err(Rejection::Version));
    assert_eq!(ours(format!("SIP/2.0 999 Odd\r\n{T}\r\n")), Err(Rejection::StatusCode));
    assert!(theirs(but("sip:b@h SIP/2.0", "sip:b@h SIP/1.0")).is_ok());
    assert!(theirs(format!("SIP/2.0 999 Odd\r\n{T}\r\n")).is_ok());
}

#[test]
fn row_24_and_25_digests() {
    let challenge = "Digest realm=\"e\\\"x\", nonce=\"n\", algorithm=SHA-256";
    let digest = Digest::parse(challenge).unwrap();
    assert_eq!((digest.get("realm").unwrap().as_ref(), digest.raw("algorithm")), ("e\"x", Some("SHA-256")));
    assert!(rsip::headers::WwwAuthenticate::new(challenge).typed().is_err());
    let credentials = "Digest username=\"a\", realm=\"r\", nonce=\"n\", uri=\"sip:e;x=1,2\", response=\"00\"";
    assert_eq!(Digest::parse(credentials).unwrap().inner("uri"), Some("sip:e;x=1,2"));
    let typed = rsip::headers::Authorization::new(credentials).typed();
    assert!(typed.is_err() || !typed.unwrap().to_string().contains("x=1,2"), "cut at the comma");
}

#[test]
fn row_26_headers_of_a_switch() {
    let text = with(
        "Subscription-State: active;expires=60\r\nRefer-To: <sip:c@h?Replaces=x%3Bto-tag%3D1>\r\nReplaces: x;to-tag=1;from-tag=2\r\n\
         RSeq: 7\r\nRAck: 7 1 INVITE\r\nSession-Expires: 1800;refresher=uac\r\nMin-SE: 90\r\nReason: Q.850;cause=16;text=\"a, b\"\r\n\
         P-Asserted-Identity: \"A\" <sip:a@h>, <tel:+1>\r\nPath: <sip:p@h;lr>\r\nDiversion: <sip:d@h>;reason=user-busy",
    );
    let message = ours(&text).unwrap();
    let headers = message.headers();
    assert_eq!(headers.subscription_state().unwrap().package, "active");
    assert_eq!(headers.refer_to().unwrap().uri.headers(), Some("Replaces=x%3Bto-tag%3D1"));
    assert_eq!(headers.replaces().unwrap().from_tag, "2");
    assert_eq!(headers.rack().unwrap().rseq, headers.rseq().unwrap());
    assert_eq!(headers.session_expires().unwrap().refresher_is_uac, Some(true));
    assert_eq!(headers.min_se(), Some(90));
    let reason = headers.reasons().next().unwrap();
    assert_eq!((reason.cause, reason.text.as_deref()), (Some(16), Some("a, b")));
    assert_eq!(headers.p_asserted_identity().unwrap().len(), 2);
    assert_eq!(headers.path().unwrap()[0].uri.param("lr"), Some(""));
    assert_eq!(headers.diversion().unwrap()[0].params.get("reason"), Some("user-busy"));
    let others =
        theirs(&text).unwrap().headers().iter().filter(|h| matches!(h, rsip::Header::Other(_, _))).count();
    assert!(others >= 11, "all but what T has are untyped: {others}");
}

#[test]
fn row_27_second_single_headers() {
    for line in ["CSeq: 2 INVITE", "Call-ID: d", "f: <sip:x@h>"] {
        assert_eq!(ours(with(line)), Err(Rejection::Duplicate), "{line}");
        assert!(theirs(with(line)).is_ok(), "{line}: the first wins");
    }
}

#[test]
fn row_28_text_that_is_not_utf8() {
    let mut bytes = with("Subject: \u{1}").into_bytes();
    let at = bytes.iter().position(|b| *b == 1).unwrap();
    bytes[at] = 0xff;
    let message = ours(&bytes).unwrap();
    assert_eq!(message.headers().header_bytes(Name::Subject), Some(&[0xff][..]));
    assert!(message.to_bytes().contains(&0xff), "written back as it came");
    assert!(theirs(&bytes).is_err(), "the whole message");
}

#[test]
fn row_29_smuggling() {
    for (text, reason) in [
        (but("Call-ID: c", "Call-ID: ci\0d1"), Rejection::Nul),
        (but("Call-ID: c", "Call-ID: c\nX-Smuggle: 1"), Rejection::BareLf),
        (but("Call-ID: c", "Call-ID: c\rX: 1"), Rejection::BareCr),
        (but("sip:b@h SIP", "sip:b\0@h SIP"), Rejection::Nul),
    ] {
        assert_eq!(ours(&text), Err(reason), "{text:?}");
    }
    for text in [but("Call-ID: c", "Call-ID: ci\0d1"), but("Call-ID: c", "Call-ID: c\rX: 1")] {
        assert!(theirs(&text).is_ok(), "{text:?}: passed on");
    }
}

#[test]
fn row_30_line_breaks_before_the_request() {
    let text = format!("\r\n\r\n{}", with("X: 1"));
    assert!(ours(&text).is_ok());
    assert!(theirs(&text).is_err());
}

#[test]
fn conversions_do_not_repair() {
    // A message that rsip would alter silently does not convert.
    let mut bytes = with("Content-Length: 2").into_bytes();
    bytes.extend(b"ab");
    let message = ours(&bytes).unwrap();
    let there = rsip::SipMessage::try_from(&message).unwrap();
    assert_eq!(Message::try_from(&there).unwrap(), message);
    let response = Message::Response(Response::reply_to(message.as_request().unwrap(), StatusCode::RINGING));
    let there = rsip::SipMessage::try_from(&response).unwrap();
    assert_eq!(Message::try_from(&there).unwrap(), response);
    let v6 = ours(but("sip:b@h SIP", "sip:b@[::1] SIP")).unwrap();
    assert!(rsip::SipMessage::try_from(&v6).is_err());
}

proptest! {
    /// For messages that rsip supports, both give the same result.
    #[test]
    fn both_read_the_same(
        method in select(vec!["INVITE", "ACK", "BYE", "CANCEL", "OPTIONS", "REGISTER", "INFO", "MESSAGE", "REFER"]),
        (user, host, port) in ("[a-z][a-z0-9]{0,8}", "[a-z]{2,8}\\.(com|net)", 1_000_u16..),
        (branch, call_id, cseq) in ("[a-zA-Z0-9]{1,12}", "[a-z0-9]{1,10}@[a-z]{1,5}", 0_u32..(1 << 31)),
        (display, from_tag, to_tag) in ("[A-Za-z]{1,8}", "[a-z0-9]{1,8}", "[a-z0-9]{1,8}"),
        body in "[ -~]{0,40}",
    ) {
        let text = format!(
            "{method} sip:{user}@{host}:{port} SIP/2.0\r\nVia: SIP/2.0/UDP {host}:{port};branch=z9hG4bK{branch}\r\n\
             Max-Forwards: 70\r\nFrom: \"{display}\" <sip:{user}@{host}>;tag={from_tag}\r\nTo: <sip:{user}@{host}>;tag={to_tag}\r\n\
             Call-ID: {call_id}\r\nCSeq: {cseq} {method}\r\nContact: <sip:{user}@{host}:{port}>\r\nSubject: x\r\n\
             Content-Length: {}\r\n\r\n{body}",
            body.len()
        );
        let message = ours(&text).unwrap();
        let request = message.as_request().unwrap();
        let oracle = theirs(&text).unwrap();
        let rsip::SipMessage::Request(line) = &oracle else { panic!() };
        prop_assert_eq!(request.method().as_str(), line.method.to_string());
        prop_assert_eq!(request.uri(), line.uri.to_string());
        prop_assert_eq!(request.parsed_uri().unwrap().port(), Some(port));
        let via = oracle.via_header().unwrap().typed().unwrap();
        let top = request.via_top().unwrap();
        prop_assert_eq!(top.branch(), via.branch().map(rsip::param::Branch::value));
        let from = oracle.from_header().unwrap().typed().unwrap();
        let ours_from = request.from().unwrap();
        prop_assert_eq!(ours_from.tag().map(str::to_owned), from.tag().map(|tag| tag.value().to_owned()));
        prop_assert_eq!(ours_from.uri.to_string(), from.uri.to_string());
        let to = oracle.to_header().unwrap().typed().unwrap();
        let ours_to = request.to().unwrap();
        prop_assert_eq!(ours_to.tag().map(str::to_owned), to.tag().map(|tag| tag.value().to_owned()));
        prop_assert_eq!(request.call_id(), oracle.call_id_header().unwrap().value());
        let seq = oracle.cseq_header().unwrap().typed().unwrap();
        prop_assert_eq!((request.cseq().unwrap().number, request.cseq().unwrap().method.to_string()), (seq.seq, seq.method.to_string()));
        prop_assert_eq!(request.body().as_ref(), oracle.body().as_slice());
        prop_assert_eq!(request.headers().len(), oracle.headers().iter().count());
        let written = request.to_bytes();
        prop_assert_eq!(String::from_utf8_lossy(&written), oracle.to_string());
    }
}
