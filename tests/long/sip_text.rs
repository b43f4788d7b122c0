//! SIP requests as text, and the parts of a message that the engine's parser does not provide.

use std::fmt::Write;
use std::net::{IpAddr, SocketAddr};

use bytes::Bytes;
use sidetone_sip::message::{Datagram, Message, parse_datagram};

/// A request to build.
#[derive(Clone, Debug)]
pub struct Ask {
    pub method: &'static str,
    pub uri: String,
    pub via: String,
    pub branch: String,
    pub from: String,
    pub to: String,
    pub call_id: String,
    pub cseq: u32,
    /// Complete lines without their ends.
    pub headers: Vec<String>,
    /// The body, SDP.
    pub body: String,
}

impl Ask {
    /// The request as text.
    pub fn text(&self) -> String {
        let Ask { method, uri, via, branch, from, to, call_id, cseq, headers, body } = self;
        let mut text = format!(
            "{method} {uri} SIP/2.0\r\nVia: {via};branch={branch}\r\nMax-Forwards: 70\r\nFrom: {from}\r\nTo: {to}\r\n\
             Call-ID: {call_id}\r\nCSeq: {cseq} {method}\r\n"
        );
        for line in headers {
            write!(text, "{line}\r\n").unwrap();
        }
        if !body.is_empty() {
            text += "Content-Type: application/sdp\r\n";
        }
        write!(text, "Content-Length: {}\r\n\r\n{body}", body.len()).unwrap();
        text
    }
}

/// A description of one G.711 stream.
pub fn sdp(at: SocketAddr, version: u32) -> String {
    format!(
        "v=0\r\no=- 1 {version} IN IP4 {0}\r\ns=-\r\nc=IN IP4 {0}\r\nt=0 0\r\nm=audio {1} RTP/AVP 0\r\n\
         a=rtpmap:0 PCMU/8000\r\na=ptime:20\r\na=sendrecv\r\n",
        at.ip(),
        at.port()
    )
}

/// The address and port of the audio in a session description.
pub fn audio_of(body: &[u8]) -> Option<SocketAddr> {
    let text = std::str::from_utf8(body).ok()?;
    let of = |prefix: &str| text.lines().find_map(|line| line.strip_prefix(prefix));
    let host: IpAddr = of("c=IN IP4 ")?.trim().parse().ok()?;
    let port: u16 = of("m=audio ")?.split(' ').next()?.parse().ok()?;
    Some(SocketAddr::new(host, port))
}

/// The message of a datagram, if it is one.
pub fn message(bytes: &[u8]) -> Option<Message> {
    match parse_datagram(Bytes::copy_from_slice(bytes)) {
        Ok(Datagram::Message(message)) => Some(message),
        _ => None,
    }
}

/// The URI of a header's first address.
pub fn uri_in(value: &str) -> String {
    let inner = value.split_once('<').and_then(|(_, rest)| rest.split_once('>')).map(|(uri, _)| uri);
    inner.unwrap_or_else(|| value.split(';').next().unwrap_or_default()).to_owned()
}
