//! Structurally broken SIP requests, by the classes of exception elements of the PROTOS suite (c07-sip): one element of
//! a valid request is replaced by an invalid one.
#![allow(dead_code, unreachable_pub, clippy::unwrap_used, reason = "benches and other crates use a part")]

/// A request in which one element is broken.
#[derive(Clone, Debug)]
pub struct Case {
    pub class: &'static str,
    pub element: String,
    pub method: &'static str,
    pub bytes: Vec<u8>,
}

/// The methods of the broken requests.
pub const METHODS: [&str; 6] = ["INVITE", "REGISTER", "OPTIONS", "MESSAGE", "INFO", "SUBSCRIBE"];

/// Every case of one method: each element in braces of the template with each exception. `serial` makes Call-ID, branch
/// and tag of each case unique.
pub fn cases(method: &'static str, transport: &str, serial: u64) -> Vec<Case> {
    let parts = template(method);
    let exceptions = exceptions();
    let mut cases = Vec::new();
    for (at, (name, value)) in parts.iter().enumerate().filter(|(_, (name, _))| !name.is_empty()) {
        for (class, exception) in &exceptions {
            let broken = match exception {
                Exception::Bytes(bytes) => bytes.clone(),
                Exception::Repeated(times, between) => {
                    let one = if value.is_empty() { "x" } else { value };
                    let unit = [one.as_bytes(), between.as_bytes()].concat();
                    unit.repeat((*times).min(BYTES_MAX / unit.len()).max(2))
                }
            };
            let unique = format!("{serial:x}x{:x}", cases.len());
            let mut bytes = Vec::new();
            for (place, (_, text)) in parts.iter().enumerate() {
                if place == at {
                    bytes.extend_from_slice(&broken);
                } else {
                    let text = text.replace("$N", &unique).replace("$T", transport);
                    bytes.extend_from_slice(text.as_bytes());
                }
            }
            cases.push(Case { class, element: name.clone(), method, bytes });
        }
    }
    cases
}

enum Exception {
    Bytes(Vec<u8>),
    Repeated(usize, &'static str),
}

/// The replacements of an element, by class.
fn exceptions() -> Vec<(&'static str, Exception)> {
    let mut all: Vec<(&'static str, Exception)> = Vec::new();
    let mut add = |class: &'static str, texts: &[&str]| {
        for text in texts {
            all.push((class, Exception::Bytes(text.as_bytes().to_vec())));
        }
    };
    add("empty", &[""]);
    add(
        "format string",
        &["%s%s%s%s%s%s%s%s", "%n%n%n%n", "%.65535d", "%08x.%p", "${jndi:ldap://x}", "%00", "%"],
    );
    add(
        "IPv4",
        &["0.0.0.0", "255.255.255.255", "256.256.256.256", "1.2.3.4.5", "1.2.3", "0x7f.1", "1.2.3.4:99999"],
    );
    add(
        "IPv6",
        &["[::1]", "[::]", "[::ffff:127.0.0.1]", "[", "[::1", "[fe80::1%25lo]", "[1:2:3:4:5:6:7:8:9]", "::1"],
    );
    add(
        "integer",
        &[
            "-1",
            "0",
            "+1",
            "255",
            "256",
            "65536",
            "2147483647",
            "2147483648",
            "4294967295",
            "4294967296",
            "18446744073709551616",
            "99999999999999999999999999",
            "0x41",
            "1e9",
            "1.5",
            "NaN",
            "007",
            "१२",
        ],
    );
    add(
        "framing",
        &[
            "\r\n",
            "\r\n\r\n",
            "\n",
            "\r",
            "\r\n ",
            "\t",
            " ",
            ":",
            ";",
            ";;",
            ",",
            ",,,",
            "<",
            ">",
            "\"",
            "\\",
            "\"\\",
            "<<>>",
            "@",
            "=",
            "?",
            "sip:",
            "sip:@",
            "sips:",
            "*",
            "\r\nX: 1",
            "\r\nl: 0\r\n\r\nBYE sip:x SIP/2.0\r\n",
        ],
    );
    add("UTF-8", &["\u{feff}", "\u{202e}", "İßé", "\u{10ffff}"]);
    let raw: [&[u8]; 8] = [
        &[0xc0, 0x80],
        &[0xff, 0xfe],
        &[0xe2, 0x28, 0xa1],
        &[0xed, 0xa0, 0x80],
        &[0xf4, 0x90, 0x80, 0x80],
        &[0xf8, 0x88, 0x80, 0x80, 0x80],
        &[0x80; 64],
        &[0xc3],
    ];
    all.extend(raw.into_iter().map(|bytes| ("UTF-8", Exception::Bytes(bytes.to_vec()))));
    let nul: [&[u8]; 4] = [&[0], b"a\0b", &[0; 128], b"\0\r\n"];
    all.extend(nul.into_iter().map(|bytes| ("NUL", Exception::Bytes(bytes.to_vec()))));
    for length in [17, 65, 129, 257, 1_025, 4_097, 16_385, 32_769] {
        for byte in [b'a', b'9', b' ', b'/', b'('] {
            all.push(("overflow", Exception::Bytes(vec![byte; length])));
        }
    }
    for times in [2, 16, 256, 4_096] {
        for between in ["", ",", ";", "\r\n"] {
            all.push(("repeated", Exception::Repeated(times, between)));
        }
    }
    all
}

/// The parts of a valid request: elements with their names, and the unnamed text between them.
fn template(method: &'static str) -> Vec<(String, String)> {
    let (body, kind) = match method {
        "INVITE" => (SDP, "application/sdp"),
        "MESSAGE" => ("{text=hello}", "text/plain"),
        "INFO" => ("Signal={signal=5}\r\nDuration={duration=160}\r\n", "application/dtmf-relay"),
        _ => ("", "text/plain"),
    };
    let length: usize = parts(body).iter().map(|(_, text)| text.len()).sum();
    let head = HEAD.replace("$M", method).replace("$K", kind).replace("$L", &length.to_string());
    parts(&(head + body))
}

/// Splits `{name=value}` from the text between the elements.
fn parts(text: &str) -> Vec<(String, String)> {
    let mut parts = Vec::new();
    let mut rest = text;
    while let Some((before, behind)) = rest.split_once('{') {
        let (element, tail) = behind.split_once('}').unwrap();
        let (name, value) = element.split_once('=').unwrap();
        parts.push((String::new(), before.to_owned()));
        parts.push((name.to_owned(), value.to_owned()));
        rest = tail;
    }
    parts.push((String::new(), rest.to_owned()));
    parts
}

/// `$M` is the method, `$T` the transport, `$N` unique, `$K` the kind and `$L` the length of the body.
const HEAD: &str = "{method=$M}{space= }{scheme=sip}:{user=1001}@{host=load.test}{uri-parameter=;user=phone} \
    {version=SIP/2.0}{line-end=\r\n}\
    {via-name=Via}: {via-protocol=SIP/2.0/$T} {via-host=127.0.0.1}{via-port=:5099};branch={branch=z9hG4bK$N};rport\r\n\
    Max-Forwards: {max-forwards=70}\r\n\
    From: {from-display=\"A\"} <{from-uri=sip:1001@load.test}>;tag={from-tag=$N}\r\n\
    To: {to-display=\"B\"} <{to-uri=sip:1002@load.test}>{to-parameter=;x=y}\r\n\
    Call-ID: {call-id=$N@load}\r\n\
    CSeq: {cseq=1}{cseq-space= }{cseq-method=$M}\r\n\
    Contact: {contact-display=C} <{contact-uri=sip:1001@127.0.0.1:5099}>{contact-parameter=;expires=60}\r\n\
    Route: <{route=sip:load.test;lr}>\r\n\
    Expires: {expires=60}\r\n\
    User-Agent: {user-agent=probe}\r\n\
    Supported: {supported=timer}\r\n\
    Session-Expires: {session-expires=1800}{refresher=;refresher=uac}\r\n\
    {header-name=Event}: {event=presence}\r\n\
    Authorization: {auth-scheme=Digest} username=\"{auth-user=1001}\", realm=\"{auth-realm=load.test}\", \
    nonce=\"{auth-nonce=abc}\", uri=\"{auth-uri=sip:load.test}\", response=\"{auth-response=0}\", nc={auth-nc=00000001}, \
    qop={auth-qop=auth}, cnonce=\"{auth-cnonce=x}\", algorithm={auth-algorithm=MD5}\r\n\
    Content-Type: {content-type=$K}\r\n\
    Content-Length: {content-length=$L}{head-end=\r\n\r\n}";
const SDP: &str = "v={sdp-v=0}\r\no={sdp-o=- 1 1 IN IP4 127.0.0.1}\r\ns={sdp-s=-}\r\nc={sdp-c=IN IP4 127.0.0.1}\r\n\
    t={sdp-t=0 0}\r\nm={sdp-media=audio} {sdp-port=40000} {sdp-profile=RTP/AVP} {sdp-formats=0 101}\r\n\
    a={sdp-attribute=rtpmap:101 telephone-event/8000}\r\n";
/// The limit of a repeated element, so that the request still fits a datagram.
const BYTES_MAX: usize = 48_000;
