//! SIP messages as text: the parts of a message that the load program reads, and the lines of its own messages.
//!
//! Headers that are only copied stay slices of the datagram. Not here: the meaning of a message for a call.

use std::io::Write;
use std::net::{Ipv4Addr, SocketAddrV4};

/// A message, parsed in one pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Message<'a> {
    /// Request or response.
    pub(crate) start: Start<'a>,
    /// The lines of the headers.
    pub(crate) head: &'a str,
    /// `Call-ID`.
    pub(crate) call_id: &'a str,
    /// The number of `CSeq`.
    pub(crate) cseq: u32,
    /// The method of `CSeq`.
    pub(crate) method: &'a str,
    /// `To` with its parameters.
    pub(crate) to: &'a str,
    /// The body.
    pub(crate) body: &'a str,
}

/// The first line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Start<'a> {
    /// A request with its method.
    Request(&'a str),
    /// A response with its status.
    Response(u16),
}

impl<'a> Message<'a> {
    /// Reads a datagram; `None` when it is no SIP message with the headers that every message has.
    pub(crate) fn read(datagram: &'a [u8]) -> Option<Self> {
        let text = std::str::from_utf8(datagram).ok()?;
        let (first, rest) = text.split_once("\r\n")?;
        let (head, body) = rest.split_once("\r\n\r\n")?;
        let start = match first.strip_prefix("SIP/2.0 ") {
            Some(status) => Start::Response(status.get(..3)?.parse().ok()?),
            None => Start::Request(first.strip_suffix(" SIP/2.0")?.split(' ').next()?),
        };
        let (mut call_id, mut cseq, mut to) = (None, None, None);
        for (name, value) in lines(head) {
            match canonical(name) {
                Some(Header::CallId) => call_id = Some(value),
                Some(Header::Cseq) => cseq = value.split_once(' '),
                Some(Header::To) => to = Some(value),
                _ => {}
            }
        }
        let (number, method) = cseq?;
        Some(Message {
            start,
            head,
            call_id: call_id?,
            cseq: number.parse().ok()?,
            method: method.trim(),
            to: to?,
            body,
        })
    }

    /// Returns the values of a header in order; several values in one line stay one value.
    pub(crate) fn each(&self, header: Header) -> impl DoubleEndedIterator<Item = &'a str> + use<'a> {
        lines(self.head).filter(move |(name, _)| canonical(name) == Some(header)).map(|(_, value)| value)
    }

    /// Returns the URI of `Contact`.
    pub(crate) fn contact(&self) -> Option<&'a str> {
        let value = self.each(Header::Contact).next()?;
        match value.split_once('<') {
            Some((_, uri)) => uri.split('>').next(),
            None => value.split(';').next().map(str::trim),
        }
    }

    /// Returns the address and port of the audio that the body describes.
    pub(crate) fn audio(&self) -> Option<SocketAddrV4> {
        audio(self.body)
    }
}

/// Headers that the load program reads or copies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Header {
    /// `Call-ID`.
    CallId,
    /// `Contact`.
    Contact,
    /// `CSeq`.
    Cseq,
    /// `From`.
    From,
    /// `Record-Route`.
    RecordRoute,
    /// `To`.
    To,
    /// `Via`.
    Via,
    /// `WWW-Authenticate`.
    WwwAuthenticate,
}

/// Returns the header with this name, in its long or its compact form.
fn canonical(name: &str) -> Option<Header> {
    let is = |other: &str| name.eq_ignore_ascii_case(other);
    match name.len() {
        1 => match name {
            "i" | "I" => Some(Header::CallId),
            "m" | "M" => Some(Header::Contact),
            "f" | "F" => Some(Header::From),
            "t" | "T" => Some(Header::To),
            "v" | "V" => Some(Header::Via),
            _ => None,
        },
        2 => is("To").then_some(Header::To),
        3 => is("Via").then_some(Header::Via),
        4 if is("CSeq") => Some(Header::Cseq),
        4 => is("From").then_some(Header::From),
        7 if is("Call-ID") => Some(Header::CallId),
        7 => is("Contact").then_some(Header::Contact),
        12 => is("Record-Route").then_some(Header::RecordRoute),
        16 => is("WWW-Authenticate").then_some(Header::WwwAuthenticate),
        _ => None,
    }
}

fn lines(head: &str) -> impl DoubleEndedIterator<Item = (&str, &str)> {
    head.split('\n').filter_map(|line| line.split_once(':')).map(|(name, value)| (name.trim(), value.trim()))
}

/// Returns the address and port of the audio in a session description.
pub(crate) fn audio(sdp: &str) -> Option<SocketAddrV4> {
    let value = |prefix: &str| sdp.lines().find_map(|line| line.strip_prefix(prefix));
    let ip: Ipv4Addr = value("c=IN IP4 ")?.trim().parse().ok()?;
    let port = value("m=audio ")?.split(' ').next()?.parse().ok()?;
    Some(SocketAddrV4::new(ip, port))
}

/// Writes the session description of one G.711 stream at an address.
pub(crate) fn write_sdp(to: &mut Vec<u8>, media: SocketAddrV4) {
    let (ip, port) = (media.ip(), media.port());
    line(
        to,
        format_args!(
            "v=0\r\no=load 1 1 IN IP4 {ip}\r\ns=-\r\nc=IN IP4 {ip}\r\nt=0 0\r\nm=audio {port} RTP/AVP 0\r\n\
             a=rtpmap:0 PCMU/8000\r\na=ptime:20\r\na=sendrecv\r\n"
        ),
    );
}

/// Appends formatted text; writing to memory does not fail.
pub(crate) fn line(to: &mut Vec<u8>, text: std::fmt::Arguments<'_>) {
    let _ = to.write_fmt(text);
}

/// Appends the end of a message: `Content-Length` and the session description, if there is one.
pub(crate) fn write_body(to: &mut Vec<u8>, media: Option<SocketAddrV4>) {
    let Some(media) = media else {
        to.extend_from_slice(b"Content-Length: 0\r\n\r\n");
        return;
    };
    // The length comes before the body that it counts, so a fixed width is filled in afterwards.
    to.extend_from_slice(b"Content-Type: application/sdp\r\nContent-Length: ");
    let place = to.len();
    to.extend_from_slice(b"000\r\n\r\n");
    let body = to.len();
    write_sdp(to, media);
    let digits = format!("{:03}", to.len() - body);
    if let Some(slot) = to.get_mut(place..place + digits.len()) {
        slot.copy_from_slice(digits.as_bytes());
    }
}

/// Appends the response to a request: a status line, the copied headers and, after the `To` of a request outside of
/// dialogs, a tag.
pub(crate) fn write_answer_head(to: &mut Vec<u8>, request: &Message<'_>, status: &str, tag: u32) {
    line(to, format_args!("SIP/2.0 {status}\r\n"));
    for via in request.each(Header::Via) {
        line(to, format_args!("Via: {via}\r\n"));
    }
    for route in request.each(Header::RecordRoute) {
        line(to, format_args!("Record-Route: {route}\r\n"));
    }
    for from in request.each(Header::From) {
        line(to, format_args!("From: {from}\r\n"));
    }
    let is_tagged = request.to.contains(";tag=") || status.starts_with("100");
    match is_tagged {
        true => line(to, format_args!("To: {}\r\n", request.to)),
        false => line(to, format_args!("To: {};tag=p{tag:08x}\r\n", request.to)),
    }
    line(to, format_args!("Call-ID: {}\r\nCSeq: {} {}\r\n", request.call_id, request.cseq, request.method));
}

/// Reads the number in an identifier such as `c17-2a@load` if it is of this kind and of this run.
pub(crate) fn own_number(call_id: &str, kind: char, run: u32) -> Option<u32> {
    let (number, rest) = call_id.strip_prefix(kind)?.split_once('-')?;
    let theirs = u32::from_str_radix(rest.strip_suffix("@load")?, 16).ok()?;
    (theirs == run).then(|| number.parse().ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    const RINGING: &str = "SIP/2.0 180 Ringing\r\nv: SIP/2.0/UDP 127.80.0.1:5070;branch=z9hG4bKa\r\n\
         Via: SIP/2.0/UDP 127.0.0.1:5060;branch=z9hG4bKb\r\nRecord-Route: <sip:127.0.0.1;lr>\r\n\
         From: <sip:+44@load.test>;tag=f\r\nTo: <sip:1@load.test>;tag=t\r\nCALL-ID: c17-2a@load\r\n\
         CSeq:  1   INVITE\r\nContact: \"A\" <sip:1@127.0.0.1:5060;transport=udp>;expires=1\r\nContent-Length: 0\r\n\r\n";

    #[test]
    fn reads_a_response() {
        let message = Message::read(RINGING.as_bytes()).unwrap();
        assert_eq!((message.start, message.call_id), (Start::Response(180), "c17-2a@load"));
        assert_eq!((message.cseq, message.method), (1, "INVITE"));
        assert_eq!(message.to, "<sip:1@load.test>;tag=t");
        assert_eq!(message.contact(), Some("sip:1@127.0.0.1:5060;transport=udp"));
        let branch = |via: &str| via.rsplit('=').next().map(str::to_owned);
        let vias: Vec<_> = message.each(Header::Via).filter_map(branch).collect();
        assert_eq!(vias, ["z9hG4bKa", "z9hG4bKb"]);
        assert_eq!(message.each(Header::RecordRoute).collect::<Vec<_>>(), ["<sip:127.0.0.1;lr>"]);
    }

    #[test]
    fn what_is_no_message_is_none() {
        for text in [
            "",
            "\r\n\r\n",
            "SIP/2.0 2\r\nTo: a\r\n\r\n",
            "SIP/2.0 200 OK\r\nTo: a\r\nCall-ID: b\r\n\r\n",
            "INVITE sip:a SIP/2.0\r\nTo: a\r\nCall-ID: b\r\nCSeq: x INVITE\r\n\r\n",
            "INVITE sip:a HTTP/1.1\r\nTo: a\r\nCall-ID: b\r\nCSeq: 1 INVITE\r\n\r\n",
        ] {
            assert_eq!(Message::read(text.as_bytes()), None, "{text:?}");
        }
        assert_eq!(Message::read(&[0xff, 0xfe]), None);
    }

    #[test]
    fn an_answer_copies_what_it_must() {
        let invite = "INVITE sip:1@127.81.0.1 SIP/2.0\r\nVia: SIP/2.0/UDP 127.0.0.1;branch=z9hG4bKb\r\n\
             Via: SIP/2.0/UDP 127.80.0.1;branch=z9hG4bKa\r\nFrom: <sip:a>;tag=f\r\nTo: <sip:1@load.test>\r\n\
             Call-ID: x\r\nCSeq: 7 INVITE\r\nContent-Length: 0\r\n\r\n";
        let message = Message::read(invite.as_bytes()).unwrap();
        assert_eq!(message.start, Start::Request("INVITE"));
        let mut text = Vec::new();
        write_answer_head(&mut text, &message, "200 OK", 0xbeef);
        write_body(&mut text, Some("127.81.0.1:4000".parse().unwrap()));
        let text = String::from_utf8(text).unwrap();
        let body = text.split_once("\r\n\r\n").unwrap().1;
        assert!(text.starts_with(
            "SIP/2.0 200 OK\r\nVia: SIP/2.0/UDP 127.0.0.1;branch=z9hG4bKb\r\n\
             Via: SIP/2.0/UDP 127.80.0.1;branch=z9hG4bKa\r\nFrom: <sip:a>;tag=f\r\n\
             To: <sip:1@load.test>;tag=p0000beef\r\nCall-ID: x\r\nCSeq: 7 INVITE\r\n"
        ));
        assert!(text.contains(&format!("\r\nContent-Length: {}\r\n", body.len())), "{text}");
        let answer = Message::read(text.as_bytes()).unwrap();
        assert_eq!(answer.audio(), Some("127.81.0.1:4000".parse().unwrap()));
        let mut trying = Vec::new();
        write_answer_head(&mut trying, &message, "100 Trying", 1);
        assert!(!String::from_utf8(trying).unwrap().contains("tag=p"));
    }

    #[test]
    fn own_numbers_are_of_this_run_and_kind() {
        assert_eq!(own_number("c17-2a@load", 'c', 0x2a), Some(17));
        for (call_id, kind) in
            [("c17-2b@load", 'c'), ("r17-2a@load", 'c'), ("c17-2a", 'c'), ("c-2a@load", 'c')]
        {
            assert_eq!(own_number(call_id, kind, 0x2a), None, "{call_id}");
        }
    }
}
