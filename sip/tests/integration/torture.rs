//! The torture messages of RFC 4475 and RFC 5118, as datagrams and as streams one byte at a time.

#![allow(clippy::panic, clippy::unwrap_used, clippy::indexing_slicing, reason = "helpers of tests")]

use bytes::Bytes;
use sidetone_sip::message::{
    Contacts, Datagram, FieldError, Host, Message, Method, Name, NameAddr, Rejected, Rejection, Request,
    Response, StreamEvent, StreamParser, Transport, limits, parse_datagram,
};

use crate::corpus::{Case, Outcome, RFC4475, RFC5118};

fn outcome(result: &Result<Datagram, Rejected>) -> Outcome {
    match result {
        Ok(_) => Outcome::Accept,
        Err(Rejected { reply: Some(reply), .. }) => Outcome::Answer(reply.status().as_u16()),
        Err(Rejected { reply: None, .. }) => Outcome::Drop,
    }
}

fn case(name: &str) -> &'static [u8] {
    RFC4475.iter().chain(&RFC5118).find(|case| case.name == name).unwrap().bytes
}

fn message(name: &str) -> Message {
    match parse_datagram(Bytes::from_static(case(name))) {
        Ok(Datagram::Message(message)) => message,
        other => panic!("{name}: {other:?}"),
    }
}

fn request(name: &str) -> Request {
    message(name).as_request().unwrap().clone()
}

fn response(name: &str) -> Response {
    message(name).as_response().unwrap().clone()
}

#[test]
fn every_message_as_a_datagram_has_its_outcome() {
    for Case { section, name, bytes, outcome: expected, note } in RFC4475.iter().chain(&RFC5118) {
        let result = parse_datagram(Bytes::from_static(bytes));
        assert_eq!(outcome(&result), *expected, "§{section} {name}: {note}: {result:?}");
    }
}

#[test]
fn every_message_byte_by_byte_on_a_stream_has_its_outcome() {
    for Case { section, name, bytes, outcome: expected, note } in RFC4475.iter().chain(&RFC5118) {
        let mut stream = StreamParser::new();
        let mut first = None;
        for byte in bytes.iter() {
            stream.push(std::slice::from_ref(byte));
            while let Some(event) = stream.poll() {
                first.get_or_insert(event);
            }
        }
        let found = match &first {
            None => None,
            Some(StreamEvent::Message(_) | StreamEvent::Ping) => Some(Outcome::Accept),
            Some(StreamEvent::Rejected { rejected: Rejected { reply, .. }, .. }) => {
                Some(reply.as_ref().map_or(Outcome::Drop, |reply| Outcome::Answer(reply.status().as_u16())))
            }
        };
        let expected = match *name {
            // §3.1.2.2: on a stream the parser can only wait for the rest.
            "clerr" | "multi01" => None,
            // A stream message without Content-Length has no known end (§18.3 of RFC 3261).
            "inv2543" => Some(Outcome::Answer(400)),
            _ => Some(*expected),
        };
        assert_eq!(found, expected, "§{section} {name}: {note}: {first:?}");
    }
}

#[test]
fn an_answer_echoes_what_it_answers() {
    for Case { name, bytes, .. } in RFC4475.iter().chain(&RFC5118) {
        let Err(Rejected { reply: Some(reply), .. }) = parse_datagram(Bytes::from_static(bytes)) else {
            continue;
        };
        let written = reply.to_bytes();
        let text = String::from_utf8_lossy(bytes);
        let via = reply.header(Name::Via).unwrap();
        assert!(text.contains(via), "{name}: {via}");
        assert!(written.ends_with(b"\r\n\r\n"), "{name}");
        assert!(!reply.call_id().is_empty() || *name == "insuf", "{name}");
        // When the request had a valid To, the response has a tag in it, the same one every time.
        if let Ok(to) = reply.to() {
            assert!(to.tag().is_some(), "{name}");
        }
        let again = parse_datagram(Bytes::from_static(bytes)).unwrap_err().reply.unwrap();
        assert_eq!(again.to_bytes(), written, "{name}");
    }
}

#[test]
fn accepted_messages_are_written_back_and_read_the_same() {
    for Case { name, bytes, outcome, .. } in RFC4475.iter().chain(&RFC5118) {
        if *outcome != Outcome::Accept {
            continue;
        }
        let message = message(name);
        let written = message.to_bytes();
        if message.headers().contains(Name::ContentLength) {
            assert_eq!(written, bytes[..written.len()], "{name}: untouched bytes");
        }
        assert_eq!(parse_datagram(written).unwrap(), Datagram::Message(message), "{name}");
    }
}

#[test]
fn rfc4475_3_1_1_1_wsinv() {
    let invite = request("wsinv");
    assert_eq!(invite.method(), &Method::Invite);
    assert_eq!(invite.to().unwrap().tag(), Some("1918181833n"));
    let from = invite.from().unwrap();
    assert_eq!(from.display.as_deref(), Some("J Rosenberg \\\""));
    assert_eq!(from.tag(), Some("98asjd8"));
    assert_eq!(invite.max_forwards(), Some(68));
    assert_eq!(invite.cseq().unwrap().number, 9);
    let vias = invite.vias().unwrap();
    assert_eq!(vias.len(), 3);
    assert_eq!((&vias[1].transport, vias[1].branch()), (&Transport::Tcp, Some("z9hG4bK9ikj8")));
    assert_eq!(vias[2].host, Host::V4([192, 168, 255, 111].into()));
    assert!(!vias[0].has_rfc3261_branch() && vias[2].has_rfc3261_branch());
    assert_eq!(invite.header(Name::Subject), Some(""));
    assert_eq!(invite.header("newfangledheader"), Some("newfangled value continued newfangled value"));
    let Contacts::List(contacts) = invite.contacts().unwrap() else { panic!() };
    assert_eq!(contacts[0].display.as_deref(), Some("Quoted string \"\""));
    assert_eq!(contacts[0].params.get("newparam"), Some("newvalue"));
    assert_eq!(contacts[0].q_permille(), 330);
    assert_eq!(invite.routes().unwrap()[0].uri.param("unknownwith"), Some("value"));
    assert_eq!(invite.body().len(), 150);
}

#[test]
fn rfc4475_3_1_1_2_intmeth() {
    let odd = request("intmeth");
    assert_eq!(odd.method(), &Method::Other("!interesting-Method0123456789_*+`.%indeed'~".into()));
    let uri = odd.parsed_uri().unwrap();
    assert_eq!(uri.user(), Some("1_unusual.URI~(to-be!sure)&isn't+it$/crazy?,/;;*"));
    assert_eq!(uri.password(), Some("&it+has=1,weird!*pas$wo~d_too.(doesn't-it)"));
    let from = odd.from().unwrap();
    assert_eq!(from.display.as_deref(), Some("token1~` token2'+_ token3*%!.-"));
    assert_eq!(from.params.unquoted("fromParam''~+*_!.-%").as_deref(), Some("работающий"));
    assert_eq!(from.tag(), Some("_token~1'+`*%!-."));
    assert_eq!(odd.to().unwrap().display.as_deref(), Some("BEL:\u{7} NUL:\u{fffd} DEL:\u{7f}"));
    assert_eq!(odd.call_id(), "intmeth.word%ZK-!.*_+'@word`~)(><:\\/\"][?}{");
    assert_eq!(odd.header("extensionHeader-!.%*+_`'~"), Some("\u{feff}大停電"));
}

#[test]
fn rfc4475_3_1_1_3_to_5_escapes() {
    let esc01 = request("esc01");
    assert_eq!(esc01.parsed_uri().unwrap().user_decoded().unwrap(), "sips:user@example.com");
    assert_eq!(esc01.from().unwrap().uri.user_decoded().unwrap(), "I have spaces");
    let Contacts::List(contacts) = esc01.contacts().unwrap() else { panic!() };
    assert_eq!(contacts[0].uri.param("lr"), Some(""), "%6C%72 is lr");
    assert_eq!(contacts[0].uri.param("name"), Some("v%61lue%25%34%31"), "unescaped by the reader, once");

    let escnull = request("escnull");
    assert_eq!(escnull.to().unwrap().uri.user_decoded().unwrap(), "null-\0-null");
    let Contacts::List(contacts) = escnull.contacts().unwrap() else { panic!() };
    assert_eq!(contacts.len(), 2);
    assert!(!contacts[0].uri.is_equivalent(&contacts[1].uri), "two bindings");

    let esc02 = request("esc02");
    assert_eq!(esc02.method().as_str(), "RE%47IST%45R");
    assert_eq!(esc02.from().unwrap().display.as_deref(), Some("%Z%45"));
    let Contacts::List(contacts) = esc02.contacts().unwrap() else { panic!() };
    assert_eq!(contacts.len(), 2);
}

#[test]
fn rfc4475_3_1_1_6_to_13() {
    assert_eq!(request("lwsdisp").from().unwrap().display.as_deref(), Some("caller"));
    let long = request("longreq");
    assert_eq!(long.vias().unwrap().len(), 34);
    assert_eq!(long.from().unwrap().tag().unwrap().len(), 155);
    assert_eq!(request("dblreq").body().len(), 0);
    assert_eq!(request("semiuri").parsed_uri().unwrap().user_decoded().unwrap(), "user;par=u@example.net");
    assert_eq!(request("semiuri").list(Name::Accept).count(), 6);
    let vias = request("transports").vias().unwrap();
    assert_eq!(vias[3].transport, Transport::Other("UNKNOWN".into()));
    let multipart = request("mpart01");
    assert_eq!(multipart.body().len(), 553);
    assert!(multipart.body().contains(&0));
    assert!(multipart.is_content_type("multipart/mixed"));
    assert_eq!(response("unreason").reason(), "= 2**3 * 5**2 но сто девяносто девять - простое");
    let trying = response("noreason");
    assert_eq!((trying.status().as_u16(), trying.reason().as_ref()), (100, ""));
}

#[test]
fn rfc4475_3_3_views_for_the_layers_above() {
    assert!(!request("badbranch").via_top().unwrap().has_rfc3261_branch());
    let unksm2 = request("unksm2");
    assert!(!unksm2.to().unwrap().uri.is_sip());
    assert_eq!(unksm2.to().unwrap().uri.to_string(), "isbn:2983792873");
    assert_eq!(
        request("bext01").list(Name::Require).collect::<Vec<_>>(),
        ["nothingSupportsThis", "nothingSupportsThisEither"]
    );
    let regaut01 = request("regaut01");
    let credentials = regaut01.authorization().next().unwrap().unwrap();
    assert!(!credentials.is_digest());
    assert_eq!(response("bcast").vias().unwrap().len(), 2);
    assert_eq!(request("zeromf").max_forwards(), Some(0));
    let contact = |name: &str| request(name).contacts().unwrap().first().unwrap().clone();
    assert!(contact("cparam01").params.has("unknownparam"));
    assert!(contact("cparam02").uri.params().has("unknownparam"));
    assert_eq!(contact("regescrt").uri.headers(), Some("Route=%3Csip:sip.example.com%3E"));
    let old = request("inv2543");
    assert_eq!((old.from().unwrap().tag(), old.max_forwards(), old.body().len()), (None, None, 105));
    assert!(old.to().unwrap().params.has("user"), "outside angle brackets it is the header's");
}

#[test]
fn rfc5118_addresses() {
    let uri = |name: &str| request(name).parsed_uri().unwrap();
    let v6 = |text: &str| Some(Host::V6(text.parse().unwrap()));
    assert_eq!(uri("ipv6-good").host().cloned(), v6("2001:db8::10"));
    assert_eq!(
        (uri("port-ambiguous").host().cloned(), uri("port-ambiguous").port()),
        (v6("2001:db8::10:5070"), None)
    );
    assert_eq!(
        (uri("port-unambiguous").host().cloned(), uri("port-unambiguous").port()),
        (v6("2001:db8::10"), Some(5070))
    );
    for name in ["via-received-param-with-delim", "via-received-param-no-delim"] {
        let via = request(name).via_top().unwrap();
        assert_eq!(via.received(), Some("2001:db8::9:255".parse().unwrap()), "{name}");
    }
    assert_eq!(uri("ipv6-bug-abnf-3-colons").host(), uri("ipv6-correct-abnf-2-colons").host());
    assert_eq!(request("ipv4-mapped-ipv6").via_top().unwrap().host.to_string(), "[::ffff:192.0.2.10]");
}

/// Additions of a fuzzer or an attacker to a valid request, and their result (reliability A2.1, P7 and P8).
#[test]
fn smuggled_headers_and_swollen_structures() {
    let base = "INVITE sip:b@h SIP/2.0\r\nVia: SIP/2.0/UDP h;branch=z9hG4bK1\r\nFrom: <sip:a@h>;tag=1\r\nTo: <sip:b@h>\r\n\
                Call-ID: c\r\nCSeq: 1 INVITE\r\n";
    let read = |extra: &str| parse_datagram(Bytes::from(format!("{base}{extra}\r\n")));
    let reason = |extra: &str| read(extra).map(|_| ()).map_err(|rejected| rejected.reason);
    for (name, extra, expected) in [
        ("bare LF", "X: a\nX-Internal: 1\r\n", Err(Rejection::BareLf)),
        ("bare CR", "X: a\rX-Internal: 1\r\n", Err(Rejection::BareCr)),
        ("NUL in text", "Subject: a\0b\r\n", Err(Rejection::Nul)),
        ("NUL behind a backslash outside quotes", "Contact: a\\\0 <sip:a@h>\r\n", Err(Rejection::Nul)),
        ("NUL in a name", "X\0: a\r\n", Err(Rejection::HeaderName)),
        ("no colon", "X-Internal\r\n", Err(Rejection::NoColon)),
        ("empty name", ": a\r\n", Err(Rejection::HeaderName)),
        ("space within a name", "X Internal: a\r\n", Err(Rejection::HeaderName)),
        ("fold within a name", "X-Inter\r\n nal: a\r\n", Err(Rejection::HeaderName)),
        ("second From", "f: <sip:x@h>;tag=2\r\n", Err(Rejection::Duplicate)),
        ("second Call-ID", "i : c\r\n", Err(Rejection::Duplicate)),
        ("two lengths", "l: 0\r\nContent-Length: 1\r\n", Err(Rejection::ContentLengthConflict)),
        ("the same length twice", "l: 0\r\nContent-Length : 00\r\n", Ok(())),
        ("a sum that wraps", "l: 18446744073709551615\r\n", Err(Rejection::ContentLengthBeyond)),
        ("star beside an address", "Contact: *\r\nContact: <sip:a@h>\r\n", Err(Rejection::Contact)),
        ("a value of 8 KiB", &format!("X: {}\r\n", "a".repeat(8 * 1024)), Ok(())),
        ("a value of more", &format!("X: {}\r\n", "a".repeat(8 * 1024 + 1)), Err(Rejection::ValueTooLong)),
        ("250 lines", &"X: a\r\n".repeat(250), Ok(())),
        ("256 lines, one of them the length", &format!("{}l: 0\r\n", "X: a\r\n".repeat(250)), Ok(())),
        ("256 lines, to which a length is added", &"X: a\r\n".repeat(251), Err(Rejection::TooManyHeaders)),
        ("257 lines", &"X: a\r\n".repeat(252), Err(Rejection::TooManyHeaders)),
        ("70 hops", &"v: SIP/2.0/UDP h\r\n".repeat(69), Ok(())),
        (
            "71 hops in one line",
            &format!("v: {}SIP/2.0/UDP h\r\n", "SIP/2.0/UDP h,".repeat(69)),
            Err(Rejection::TooManyVias),
        ),
        (
            "10,000 Contacts",
            &format!("X: {}\r\nm: {}<a:b>\r\n", "a", "<a:b>,".repeat(1_300)),
            Err(Rejection::Contact),
        ),
        (
            "a head beyond 32 KiB",
            &"X: abcdefghijklmnopqrstuvwxyz\r\n".repeat(1_200),
            Err(Rejection::HeadTooLarge),
        ),
        (
            "a parameter 2,000 times",
            &format!("m: <sip:a@h>{}\r\n", ";a".repeat(2_000)),
            Err(Rejection::Contact),
        ),
    ] {
        assert_eq!(reason(extra), expected, "{name}");
    }
    for extra in ["X-Internal : 1\r\n", "X-Internal\t: 1\r\n", "x-internal:\r\n 1\r\n", "X-INTERNAL:1\r\n"] {
        let Ok(Datagram::Message(message)) = read(extra) else { panic!("{extra:?}") };
        assert_eq!(message.headers().header("X-Internal"), Some("1"), "{extra:?}");
        let Message::Request(mut request) = message else { panic!() };
        request.remove("X-Internal");
        assert!(
            !String::from_utf8_lossy(&request.to_bytes()).to_lowercase().contains("internal"),
            "{extra:?}"
        );
    }
}

/// Text may contain any bytes; parts that route a message or identify its dialog may not.
#[test]
fn bytes_that_are_not_utf8() {
    let base = String::from(
        "INVITE sip:b@h SIP/2.0\r\nVia: SIP/2.0/UDP h;branch=z9hG4bK1;x=\"q\"\r\nFrom: \"A\" <sip:a@h>;tag=1\r\n\
                To: <sip:b@h>\r\nCall-ID: c\r\nCSeq: 1 INVITE\r\nSupported: timer\r\nSubject: s\r\n\r\n",
    );
    for (name, from, to, expected) in [
        ("display name", "\"A\"", &b"\"\xe9\""[..], Ok(())),
        ("unquoted display name", "\"A\"", b"\xe9", Ok(())),
        ("Subject", "Subject: s", b"Subject: \xe9", Ok(())),
        ("unknown header", "Subject: s", b"X-A: \xe9", Ok(())),
        ("user part", "sip:a@h", b"sip:\xe9@h", Err(Rejection::From)),
        ("tag", "tag=1", b"tag=\xe9", Err(Rejection::From)),
        ("branch", "bK1", b"bK\xe9", Err(Rejection::Utf8)),
        ("quoted Via parameter", "\"q\"", b"\"\xe9\"", Err(Rejection::Utf8)),
        ("Call-ID", "Call-ID: c", b"Call-ID: \xe9", Err(Rejection::Utf8)),
        ("Supported", "timer", b"\xe9", Err(Rejection::Utf8)),
        ("Request-URI", "sip:b@h SIP", b"sip:\xe9@h SIP", Err(Rejection::RequestUri)),
        ("header name", "Subject: s", b"X\xe9: s", Err(Rejection::HeaderName)),
    ] {
        let (before, after) = base.split_once(from).unwrap();
        let bytes = [before.as_bytes(), to, after.as_bytes()].concat();
        let found = parse_datagram(Bytes::from(bytes)).map(|_| ()).map_err(|rejected| rejected.reason);
        assert_eq!(found, expected, "{name}");
    }
}

/// A list beyond its limit is refused by its view.
#[test]
fn views_are_bounded() {
    let route = "<sip:a@h;lr>,".repeat(130);
    let request = Request::builder(Method::Options, "sip:a@h")
        .header(Name::Route, route.trim_end_matches(','))
        .build()
        .unwrap();
    assert_eq!(request.routes(), Err(FieldError::Malformed("Route")));
    assert!(NameAddr::parse(&format!("<sip:a@h>{}", ";a".repeat(limits::PARAMS_MAX + 1))).is_err());
}
