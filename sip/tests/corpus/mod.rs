//! The messages of RFC 4475 and RFC 5118, and the result of the message layer for each.
//!
//! Each file is the message that its RFC describes, with the RFC's markup for long lines, hex and repetition
//! expanded. When a higher layer decides, the note states its answer.

/// The result of the message layer for a message in a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The message is accepted.
    Accept,
    /// The message is refused with a response of this status.
    Answer(u16),
    /// The message is refused without a response.
    Drop,
}

/// One message of a corpus.
#[derive(Clone, Copy, Debug)]
pub struct Case {
    /// The section of its RFC.
    pub section: &'static str,
    /// Its name in the RFC.
    pub name: &'static str,
    /// The message, byte for byte.
    pub bytes: &'static [u8],
    /// The result of the message layer.
    pub outcome: Outcome,
    /// The tested property.
    pub note: &'static str,
}

/// RFC 4475: all 49 messages.
#[rustfmt::skip]
pub const RFC4475: [Case; 49] = [
    Case { section: "3.1.1.1", name: "wsinv", bytes: include_bytes!("../torture/wsinv.dat"), outcome: Outcome::Accept, note: "folds, spaces and both forms of Via" },
    Case { section: "3.1.1.2", name: "intmeth", bytes: include_bytes!("../torture/intmeth.dat"), outcome: Outcome::Accept, note: "an unknown method, to be answered 501; a NUL behind a backslash in a display name" },
    Case { section: "3.1.1.3", name: "esc01", bytes: include_bytes!("../torture/esc01.dat"), outcome: Outcome::Accept, note: "escapes in user parts and parameters" },
    Case { section: "3.1.1.4", name: "escnull", bytes: include_bytes!("../torture/escnull.dat"), outcome: Outcome::Accept, note: "an escaped NUL in user parts" },
    Case { section: "3.1.1.5", name: "esc02", bytes: include_bytes!("../torture/esc02.dat"), outcome: Outcome::Accept, note: "percent signs that escape nothing; an unknown method, to be answered 501" },
    Case { section: "3.1.1.6", name: "lwsdisp", bytes: include_bytes!("../torture/lwsdisp.dat"), outcome: Outcome::Accept, note: "no space between display name and angle bracket" },
    Case { section: "3.1.1.7", name: "longreq", bytes: include_bytes!("../torture/longreq.dat"), outcome: Outcome::Accept, note: "long values and 34 Vias" },
    Case { section: "3.1.1.8", name: "dblreq", bytes: include_bytes!("../torture/dblreq.dat"), outcome: Outcome::Accept, note: "octets behind the body are cut off a datagram" },
    Case { section: "3.1.1.9", name: "semiuri", bytes: include_bytes!("../torture/semiuri.dat"), outcome: Outcome::Accept, note: "semicolons in the user part" },
    Case { section: "3.1.1.10", name: "transports", bytes: include_bytes!("../torture/transports.dat"), outcome: Outcome::Accept, note: "unknown transports" },
    Case { section: "3.1.1.11", name: "mpart01", bytes: include_bytes!("../torture/mpart01.dat"), outcome: Outcome::Accept, note: "a binary body" },
    Case { section: "3.1.1.12", name: "unreason", bytes: include_bytes!("../torture/unreason.dat"), outcome: Outcome::Accept, note: "an unusual phrase" },
    Case { section: "3.1.1.13", name: "noreason", bytes: include_bytes!("../torture/noreason.dat"), outcome: Outcome::Accept, note: "an empty phrase" },
    Case { section: "3.1.2.1", name: "badinv01", bytes: include_bytes!("../torture/badinv01.dat"), outcome: Outcome::Answer(400), note: "separators without values in Via and Contact" },
    Case { section: "3.1.2.2", name: "clerr", bytes: include_bytes!("../torture/clerr.dat"), outcome: Outcome::Answer(400), note: "Content-Length beyond the datagram" },
    Case { section: "3.1.2.3", name: "ncl", bytes: include_bytes!("../torture/ncl.dat"), outcome: Outcome::Answer(400), note: "a negative Content-Length" },
    Case { section: "3.1.2.4", name: "scalar02", bytes: include_bytes!("../torture/scalar02.dat"), outcome: Outcome::Answer(400), note: "CSeq out of range" },
    Case { section: "3.1.2.5", name: "scalarlg", bytes: include_bytes!("../torture/scalarlg.dat"), outcome: Outcome::Drop, note: "a response with CSeq out of range" },
    Case { section: "3.1.2.6", name: "quotbal", bytes: include_bytes!("../torture/quotbal.dat"), outcome: Outcome::Answer(400), note: "an open quote" },
    Case { section: "3.1.2.7", name: "ltgtruri", bytes: include_bytes!("../torture/ltgtruri.dat"), outcome: Outcome::Answer(400), note: "angle brackets around the Request-URI" },
    Case { section: "3.1.2.8", name: "lwsruri", bytes: include_bytes!("../torture/lwsruri.dat"), outcome: Outcome::Answer(400), note: "a space in the Request-URI" },
    Case { section: "3.1.2.9", name: "lwsstart", bytes: include_bytes!("../torture/lwsstart.dat"), outcome: Outcome::Answer(400), note: "two spaces in the request line" },
    Case { section: "3.1.2.10", name: "trws", bytes: include_bytes!("../torture/trws.dat"), outcome: Outcome::Answer(400), note: "spaces behind the request line" },
    Case { section: "3.1.2.11", name: "escruri", bytes: include_bytes!("../torture/escruri.dat"), outcome: Outcome::Answer(400), note: "headers in the Request-URI" },
    Case { section: "3.1.2.12", name: "baddate", bytes: include_bytes!("../torture/baddate.dat"), outcome: Outcome::Accept, note: "nobody here reads Date, and the RFC asks to reject only then" },
    Case { section: "3.1.2.13", name: "regbadct", bytes: include_bytes!("../torture/regbadct.dat"), outcome: Outcome::Answer(400), note: "a URI with headers outside angle brackets" },
    Case { section: "3.1.2.14", name: "badaspec", bytes: include_bytes!("../torture/badaspec.dat"), outcome: Outcome::Answer(400), note: "spaces within angle brackets" },
    Case { section: "3.1.2.15", name: "baddn", bytes: include_bytes!("../torture/baddn.dat"), outcome: Outcome::Answer(400), note: "a comma in an unquoted display name" },
    Case { section: "3.1.2.16", name: "badvers", bytes: include_bytes!("../torture/badvers.dat"), outcome: Outcome::Answer(505), note: "SIP/7.0" },
    Case { section: "3.1.2.17", name: "mismatch01", bytes: include_bytes!("../torture/mismatch01.dat"), outcome: Outcome::Answer(400), note: "two methods" },
    Case { section: "3.1.2.18", name: "mismatch02", bytes: include_bytes!("../torture/mismatch02.dat"), outcome: Outcome::Answer(501), note: "two methods, one unknown" },
    Case { section: "3.1.2.19", name: "bigcode", bytes: include_bytes!("../torture/bigcode.dat"), outcome: Outcome::Drop, note: "a response code out of range" },
    Case { section: "3.2.1", name: "badbranch", bytes: include_bytes!("../torture/badbranch.dat"), outcome: Outcome::Accept, note: "the transaction layer falls back to RFC 2543 matching" },
    Case { section: "3.3.1", name: "insuf", bytes: include_bytes!("../torture/insuf.dat"), outcome: Outcome::Answer(400), note: "no Call-ID, From and To" },
    Case { section: "3.3.2", name: "unkscm", bytes: include_bytes!("../torture/unkscm.dat"), outcome: Outcome::Answer(416), note: "an unknown scheme" },
    Case { section: "3.3.3", name: "novelsc", bytes: include_bytes!("../torture/novelsc.dat"), outcome: Outcome::Answer(416), note: "a scheme that no call goes to" },
    Case { section: "3.3.4", name: "unksm2", bytes: include_bytes!("../torture/unksm2.dat"), outcome: Outcome::Accept, note: "other schemes in To, From, Contact; the registrar answers 400" },
    Case { section: "3.3.5", name: "bext01", bytes: include_bytes!("../torture/bext01.dat"), outcome: Outcome::Accept, note: "the user agent answers 420" },
    Case { section: "3.3.6", name: "invut", bytes: include_bytes!("../torture/invut.dat"), outcome: Outcome::Accept, note: "the user agent answers 415" },
    Case { section: "3.3.7", name: "regaut01", bytes: include_bytes!("../torture/regaut01.dat"), outcome: Outcome::Accept, note: "the registrar answers 401 with a scheme it knows" },
    Case { section: "3.3.8", name: "multi01", bytes: include_bytes!("../torture/multi01.dat"), outcome: Outcome::Answer(400), note: "single headers twice" },
    Case { section: "3.3.9", name: "mcl01", bytes: include_bytes!("../torture/mcl01.dat"), outcome: Outcome::Answer(400), note: "two Content-Lengths that disagree" },
    Case { section: "3.3.10", name: "bcast", bytes: include_bytes!("../torture/bcast.dat"), outcome: Outcome::Accept, note: "a client that sent one Via drops a response with two" },
    Case { section: "3.3.11", name: "zeromf", bytes: include_bytes!("../torture/zeromf.dat"), outcome: Outcome::Accept, note: "an endpoint answers as if it were positive; what forwards answers 483" },
    Case { section: "3.3.12", name: "cparam01", bytes: include_bytes!("../torture/cparam01.dat"), outcome: Outcome::Accept, note: "a parameter of the header, not of the URI" },
    Case { section: "3.3.13", name: "cparam02", bytes: include_bytes!("../torture/cparam02.dat"), outcome: Outcome::Accept, note: "a parameter of the URI" },
    Case { section: "3.3.14", name: "regescrt", bytes: include_bytes!("../torture/regescrt.dat"), outcome: Outcome::Accept, note: "headers in a Contact URI" },
    Case { section: "3.3.15", name: "sdp01", bytes: include_bytes!("../torture/sdp01.dat"), outcome: Outcome::Accept, note: "the user agent answers 406" },
    Case { section: "3.4.1", name: "inv2543", bytes: include_bytes!("../torture/inv2543.dat"), outcome: Outcome::Accept, note: "RFC 2543: no branch, no From tag, no Max-Forwards, no Content-Length" },
];

/// RFC 5118: all 12 messages. The bodies of §4.6, §4.8 and §4.9 are similar to the RFC's, not identical.
#[rustfmt::skip]
pub const RFC5118: [Case; 12] = [
    Case { section: "4.1", name: "ipv6-good", bytes: include_bytes!("../torture/rfc5118/ipv6-good.dat"), outcome: Outcome::Accept, note: "a reference in brackets" },
    Case { section: "4.2", name: "ipv6-bad", bytes: include_bytes!("../torture/rfc5118/ipv6-bad.dat"), outcome: Outcome::Answer(400), note: "no brackets" },
    Case { section: "4.3", name: "port-ambiguous", bytes: include_bytes!("../torture/rfc5118/port-ambiguous.dat"), outcome: Outcome::Accept, note: "what looks like a port is part of the address" },
    Case { section: "4.4", name: "port-unambiguous", bytes: include_bytes!("../torture/rfc5118/port-unambiguous.dat"), outcome: Outcome::Accept, note: "a port behind the brackets" },
    Case { section: "4.5", name: "via-received-param-with-delim", bytes: include_bytes!("../torture/rfc5118/via-received-param-with-delim.dat"), outcome: Outcome::Accept, note: "received in brackets" },
    Case { section: "4.5", name: "via-received-param-no-delim", bytes: include_bytes!("../torture/rfc5118/via-received-param-no-delim.dat"), outcome: Outcome::Accept, note: "received without brackets" },
    Case { section: "4.6", name: "ipv6-in-sdp", bytes: include_bytes!("../torture/rfc5118/ipv6-in-sdp.dat"), outcome: Outcome::Accept, note: "IPv6 in the body" },
    Case { section: "4.7", name: "mult-ip-in-header", bytes: include_bytes!("../torture/rfc5118/mult-ip-in-header.dat"), outcome: Outcome::Accept, note: "both families in Via" },
    Case { section: "4.8", name: "mult-ip-in-sdp", bytes: include_bytes!("../torture/rfc5118/mult-ip-in-sdp.dat"), outcome: Outcome::Accept, note: "both families in the body" },
    Case { section: "4.9", name: "ipv4-mapped-ipv6", bytes: include_bytes!("../torture/rfc5118/ipv4-mapped-ipv6.dat"), outcome: Outcome::Accept, note: "mapped addresses" },
    Case { section: "4.10", name: "ipv6-bug-abnf-3-colons", bytes: include_bytes!("../torture/rfc5118/ipv6-bug-abnf-3-colons.dat"), outcome: Outcome::Accept, note: "three colons, as the grammar of RFC 3261 has them" },
    Case { section: "4.10", name: "ipv6-correct-abnf-2-colons", bytes: include_bytes!("../torture/rfc5118/ipv6-correct-abnf-2-colons.dat"), outcome: Outcome::Accept, note: "two colons" },
];
