//! Laws of the message layer: parsing what was written, parsing in pieces, and no panic for any input.
//!
//! `PROPTEST_CASES` sets the number of cases per law.

#![allow(clippy::panic, clippy::unwrap_used, clippy::indexing_slicing, reason = "helpers of tests")]

use bytes::Bytes;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use sidetone_sip::message::{
    Contacts, Datagram, Message, Method, Name, NameAddr, Rejected, Rejection, Request, Response, StatusCode,
    StreamEvent, StreamParser, Uri, Via, limits, parse_datagram,
};

use crate::corpus::{RFC4475, RFC5118};

/// A valid message as other implementations might send it: folds, compact names, unusual spacing.
fn wire() -> impl Strategy<Value = Vec<u8>> {
    (
        prop_oneof![Just(None), (100_u16..=699).prop_map(Some)],
        select(vec!["INVITE", "ACK", "OPTIONS", "NOTIFY", "X-odd.1"]),
        uri(),
        vec(via(), 1..4),
        (address(), address(), "[a-z0-9.@-]{1,20}", 0_u32..limits::CSEQ_LIMIT),
        vec(extra_line(), 0..6),
        vec(any::<u8>(), 0..80),
        any::<[bool; 4]>(),
    )
        .prop_map(
            |(
                status,
                method,
                uri,
                vias,
                (from, to, call_id, cseq),
                extra,
                body,
                [compact, fold, comma, length],
            )| {
                let start = match status {
                    Some(code) => format!("SIP/2.0 {code} Some Phrase"),
                    None => format!("{method} {uri} SIP/2.0"),
                };
                let name = |long: &'static str, short: &'static str| if compact { short } else { long };
                let gap = if fold { "\r\n\t " } else { " " };
                let mut text = format!("{start}\r\n");
                if comma {
                    text += &format!("{} :{gap}{}\r\n", name("Via", "v"), vias.join(" , "));
                } else {
                    for via in vias {
                        text += &format!("{}:{gap}{via}\r\n", name("Via", "v"));
                    }
                }
                text += &format!("{}:{gap}{from}{gap};tag=a1\r\n", name("From", "f"));
                text += &format!("{}:{to}\r\n{}: {call_id}\r\n", name("tO", "t"), name("Call-ID", "i"));
                text += &format!("CSeq: {cseq}{gap}{method}\r\n");
                let mut bytes = text.into_bytes();
                for line in extra {
                    bytes.extend(line);
                }
                if length {
                    bytes.extend(format!("{}: {}\r\n", name("Content-Length", "l"), body.len()).bytes());
                }
                bytes.extend(b"\r\n");
                bytes.extend(body);
                bytes
            },
        )
}

fn host() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-z][a-z0-9]{0,8}(\\.[a-z]{2,3})?",
        any::<[u8; 4]>().prop_map(|ip| std::net::Ipv4Addr::from(ip).to_string()),
        any::<[u16; 8]>().prop_map(|ip| format!("[{}]", std::net::Ipv6Addr::from(ip))),
    ]
}

fn uri() -> impl Strategy<Value = String> {
    let port = prop_oneof![Just(String::new()), (0_u16..).prop_map(|port| format!(":{port}"))];
    let params = "(;(lr|transport=tcp|x=[a-z0-9%]{1,4}|user=phone)){0,3}";
    prop_oneof![
        4 => (select(vec!["sip", "sips", "SIP"]), "([a-zA-Z0-9&=+$,;?/_.!~*'()-]{1,8}(:[a-z0-9]{0,3})?@)?", host(), port, params)
            .prop_map(|(scheme, user, host, port, params)| format!("{scheme}:{user}{host}{port}{params}")),
        1 => "tel:\\+?[0-9][0-9.-]{0,14}(;phone-context=[a-z]{1,5})?",
    ]
}

fn via() -> impl Strategy<Value = String> {
    (
        select(vec!["UDP", "tcp", "TLS", "WSS", "SCTP", "Q2"]),
        host(),
        proptest::option::of(1_u16..),
        "[a-z0-9]{1,8}",
        "( ?; ?(rport|received=::1|x=\"a;b\"|ttl = 4)){0,2}",
    )
        .prop_map(|(transport, host, port, branch, params)| {
            let port = port.map_or_else(String::new, |port| format!(":{port}"));
            format!("SIP/2.0/{transport} {host}{port};branch=z9hG4bK{branch}{params}")
        })
}

fn address() -> impl Strategy<Value = String> {
    ("(\"([^\"\\\\\\x00-\\x1f\\x7f]|\\\\[\"\\\\a])*\" ?|[a-z]+ |)", uri(), "( ;x=1)?")
        .prop_map(|(display, uri, params)| format!("{display}<{uri}>{params}"))
}

fn extra_line() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        "(X-[a-zA-Z]{1,6}|s|User-Agent)[ \t]{0,2}:[^\\x00\\r\\n]{0,20}\r\n".prop_map(String::into_bytes),
        "Subject: [a-z]{0,5}\r\n [a-z]{1,5}\r\n\t\r\n  z\r\n".prop_map(String::into_bytes),
        vec(any::<u8>().prop_filter("text", |b| !matches!(b, 0 | b'\r' | b'\n')), 0..10)
            .prop_map(|text| { [b"X-Raw:x", text.as_slice(), b"\r\n"].concat() }),
        address().prop_map(|address| format!("Route: {address}\r\n").into_bytes()),
    ]
}

fn read(bytes: &[u8]) -> Result<Message, Rejected> {
    match parse_datagram(Bytes::copy_from_slice(bytes))? {
        Datagram::Message(message) => Ok(message),
        other => panic!("{other:?}"),
    }
}

/// A comparable event of a stream.
#[derive(Debug, PartialEq)]
enum Event {
    Message(Message),
    Ping,
    Rejected { reason: Rejection, is_fatal: bool, reply: Option<Bytes> },
}

/// All events of a stream that arrives in these chunks.
fn stream<'a>(chunks: impl IntoIterator<Item = &'a [u8]>) -> Vec<Event> {
    let mut parser = StreamParser::new();
    let mut events = Vec::new();
    for chunk in chunks {
        parser.push(chunk);
        while let Some(event) = parser.poll() {
            events.push(match event {
                StreamEvent::Message(message) => Event::Message(message),
                StreamEvent::Ping => Event::Ping,
                StreamEvent::Rejected { rejected: Rejected { reason, reply }, is_fatal, .. } => {
                    Event::Rejected { reason, is_fatal, reply: reply.map(|reply| reply.to_bytes()) }
                }
            });
        }
    }
    events
}

/// Checks the properties that the guard guarantees for an accepted message.
fn assert_views(message: &Message) {
    let headers = message.headers();
    assert!(!headers.vias().unwrap().is_empty());
    headers.via_top().unwrap();
    headers.from().unwrap();
    headers.to().unwrap();
    headers.cseq().unwrap();
    headers.contacts().unwrap();
    assert!(!headers.call_id().is_empty());
    if let Message::Request(request) = message {
        request.parsed_uri().unwrap();
        assert_eq!(request.method(), &request.cseq().unwrap().method);
    }
    // The others may fail, but not panic.
    let _ =
        (headers.routes(), headers.record_routes(), headers.rack(), headers.replaces(), headers.refer_to());
    let _ = (
        headers.session_expires(),
        headers.min_se(),
        headers.expires(),
        headers.event(),
        headers.diversion(),
    );
    let _ = (headers.authorization().count(), headers.www_authenticate().count(), headers.reasons().count());
    let _ =
        (headers.p_asserted_identity(), headers.subscription_state(), headers.rseq(), headers.max_forwards());
}

proptest! {
    #[test]
    fn what_is_written_reads_the_same(bytes in wire()) {
        let message = read(&bytes).unwrap();
        assert_views(&message);
        let written = message.to_bytes();
        let again = read(&written).unwrap();
        prop_assert_eq!(&again, &message);
        prop_assert_eq!(again.to_bytes(), written.clone());
        // Only Content-Length may have been added.
        if message.headers().contains(Name::ContentLength) {
            prop_assert_eq!(&written[..], &bytes[..]);
        }
    }

    #[test]
    fn what_is_built_reads_the_same(
        uri in uri(), via in via(), from in address(), to in address(), text in "[^\\x00\\r\\n]{0,30}",
        body in vec(any::<u8>(), 0..40),
    ) {
        let request = Request::builder(Method::Invite, &uri)
            .header(Name::Via, &via)
            .header(Name::From, &from)
            .header("to", &to)
            .header(Name::CallId, "c@h")
            .header(Name::CSeq, "7 INVITE")
            .header("X-Text", &text)
            .body("application/sdp", body)
            .build()
            .unwrap();
        let message = Message::Request(request.clone());
        prop_assert_eq!(&read(&message.to_bytes()).unwrap(), &message);
        let mut response = Response::reply_to(&request, StatusCode::RINGING);
        response.set_to_tag("b2").unwrap();
        let message = Message::Response(response);
        prop_assert_eq!(&read(&message.to_bytes()).unwrap(), &message);
    }

    #[test]
    fn no_value_smuggles_a_line(text in "[\\x00-\\x7f]{0,40}") {
        let sound = !text.contains(['\r', '\n', '\0']);
        let built = Request::builder(Method::Message, "sip:a@h").header("X-Text", &text).build();
        prop_assert_eq!(built.is_ok(), sound);
        prop_assert_eq!(Response::builder(StatusCode::OK, &text).build().is_ok(), sound);
        if let Ok(request) = Request::builder(Method::Message, &text).build() {
            prop_assert_eq!(request.to_bytes().iter().filter(|b| **b == b'\n').count(), 3);
        }
    }

    #[test]
    fn views_print_what_they_read(uri in uri(), via in via(), address in address()) {
        let parsed = Uri::parse(&uri).unwrap();
        prop_assert_eq!(&Uri::parse(&parsed.to_string()).unwrap(), &parsed);
        prop_assert!(parsed.is_equivalent(&parsed));
        let parsed = Via::parse(&via).unwrap();
        prop_assert_eq!(&Via::parse(&parsed.to_string()).unwrap(), &parsed);
        let parsed = NameAddr::parse(&address).unwrap();
        prop_assert_eq!(&NameAddr::parse(&parsed.to_string()).unwrap(), &parsed);
    }

    #[test]
    fn a_stream_reads_the_same_however_it_is_cut(
        first in wire(), second in wire(), ping: bool, cuts in vec(any::<usize>(), 12),
    ) {
        let mut bytes = first;
        if ping {
            bytes.extend(b"\r\n\r\n");
        }
        bytes.extend(second);
        let whole = stream([bytes.as_slice()]);
        for cut in cuts {
            let at = cut % (bytes.len() + 1);
            let (head, tail) = bytes.split_at(at);
            prop_assert_eq!(&stream([head, tail]), &whole, "cut at {}", at);
        }
        prop_assert_eq!(&stream(bytes.chunks(1)), &whole);
    }

    #[test]
    fn nothing_that_comes_panics(at in 0_usize..61, mutations in vec(mutation(), 1..8)) {
        let case = RFC4475.iter().chain(&RFC5118).nth(at).unwrap();
        let mut bytes = case.bytes.to_vec();
        for mutation in &mutations {
            mutation.apply(&mut bytes);
        }
        survive(&bytes);
    }

    #[test]
    fn noise_never_panics(bytes in vec(any::<u8>(), 0..300), text in "[ -~\r\n\t]{0,60}") {
        survive(&bytes);
        survive(text.as_bytes());
        let _ = (Uri::parse(&text), Via::parse(&text), NameAddr::parse(&text));
    }
}

/// Parses bytes in every way; an accepted message must satisfy its guarantees.
fn survive(bytes: &[u8]) {
    match parse_datagram(Bytes::copy_from_slice(bytes)) {
        Ok(Datagram::Message(message)) => {
            assert_views(&message);
            let written = message.to_bytes();
            assert_eq!(read(&written).unwrap(), message);
            if let Message::Request(mut request) = message {
                request.note_source("[::ffff:192.0.2.1]:5060".parse().unwrap()).unwrap();
                let noted = read(&request.to_bytes()).unwrap();
                assert_eq!(noted.headers().via_top().unwrap(), request.via_top().unwrap());
                let reply = Response::reply_to(&request, StatusCode::OK);
                read(&reply.to_bytes()).unwrap();
            }
        }
        Ok(Datagram::Ping | Datagram::Pong) => {}
        Err(Rejected { reply, .. }) => {
            if let Some(reply) = reply {
                let written = reply.to_bytes();
                assert!(written.len() <= bytes.len() + 512, "an answer is no amplifier");
            }
        }
    }
    let mut parser = StreamParser::new();
    for chunk in bytes.chunks(97) {
        parser.push(chunk);
        while let Some(event) = parser.poll() {
            if let StreamEvent::Message(message) = event {
                assert_views(&message);
            }
        }
    }
}

#[derive(Clone, Debug)]
enum Mutation {
    Flip(usize, u8),
    Insert(usize, Vec<u8>),
    Cut(usize, usize),
    Repeat(usize, usize, usize),
    Swap(usize, usize, usize),
}

/// Bytes and words that are difficult for parsers.
const TRAPS: [&[u8]; 22] = [
    b"\r\n",
    b"\r",
    b"\n",
    b"\0",
    b" ",
    b"\t",
    b"\"",
    b"\\",
    b"<",
    b">",
    b",",
    b";",
    b":",
    b"@",
    b"=",
    b"%",
    b"[",
    b"]",
    b"\xff",
    b"\r\n ",
    b"-1",
    b"99999999999999999999",
];

fn mutation() -> impl Strategy<Value = Mutation> {
    let trap = prop_oneof![select(&TRAPS[..]).prop_map(<[u8]>::to_vec), vec(any::<u8>(), 1..6)];
    prop_oneof![
        (any::<usize>(), any::<u8>()).prop_map(|(at, to)| Mutation::Flip(at, to)),
        (any::<usize>(), trap).prop_map(|(at, bytes)| Mutation::Insert(at, bytes)),
        (any::<usize>(), 1_usize..40).prop_map(|(at, len)| Mutation::Cut(at, len)),
        (any::<usize>(), 1_usize..60, 1_usize..40)
            .prop_map(|(at, len, times)| Mutation::Repeat(at, len, times)),
        (any::<usize>(), any::<usize>(), 1_usize..60)
            .prop_map(|(from, to, len)| Mutation::Swap(from, to, len)),
    ]
}

impl Mutation {
    fn apply(&self, bytes: &mut Vec<u8>) {
        let len = bytes.len().max(1);
        let piece = |at: usize, piece_len: usize| at % len..(at % len + piece_len).min(bytes.len());
        match self {
            Self::Flip(at, to) => {
                if let Some(byte) = bytes.get_mut(at % len) {
                    *byte = *to;
                }
            }
            Self::Insert(at, inserted) => {
                let at = (at % len).min(bytes.len());
                bytes.splice(at..at, inserted.iter().copied());
            }
            Self::Cut(at, cut) => {
                let range = piece(*at, *cut);
                bytes.drain(range);
            }
            Self::Repeat(at, piece_len, times) => {
                let range = piece(*at, *piece_len);
                let repeated = bytes[range.clone()].repeat(*times);
                bytes.splice(range.end..range.end, repeated);
            }
            Self::Swap(from, to, piece_len) => {
                let range = piece(*from, *piece_len);
                let taken: Vec<u8> = bytes.drain(range).collect();
                let to = to % (bytes.len() + 1);
                bytes.splice(to..to, taken);
            }
        }
    }
}

/// P6: every message of the corpus, split at every offset, and with another one in the same chunk.
#[test]
fn the_corpus_reads_the_same_however_it_is_cut() {
    let next = RFC4475[9].bytes;
    for case in RFC4475.iter().chain(&RFC5118) {
        let whole = stream([case.bytes]);
        for at in 0..=case.bytes.len() {
            let (head, tail) = case.bytes.split_at(at);
            assert_eq!(stream([head, tail]), whole, "{} cut at {at}", case.name);
        }
        let coalesced = [case.bytes, b"\r\n", next].concat();
        assert_eq!(stream([coalesced.as_slice()]), stream([case.bytes, b"\r\n", next]), "{}", case.name);
    }
}

#[test]
fn a_contact_star_is_not_an_address() {
    let text = "REGISTER sip:h SIP/2.0\r\nVia: SIP/2.0/UDP h\r\nFrom: <sip:a@h>\r\nTo: <sip:a@h>\r\nCall-ID: c\r\nCSeq: 1 REGISTER\r\n\
                Contact: *\r\n\r\n";
    assert_eq!(read(text.as_bytes()).unwrap().headers().contacts().unwrap(), Contacts::Star);
}
