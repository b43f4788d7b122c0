//! What is found in a frame, layer by layer, down to a UDP datagram, a TCP segment or a fragment.

use std::net::{IpAddr, SocketAddr};

use super::link_type::LinkType;

/// One UDP datagram of a capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Datagram<'a> {
    /// Who sent it.
    pub source: SocketAddr,
    /// Where it was sent.
    pub destination: SocketAddr,
    /// The bytes of the payload that the capture kept.
    pub payload: &'a [u8],
    /// Length of the payload on the wire in bytes; at least `payload.len()`.
    pub payload_len: usize,
}

/// One TCP segment of a capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment<'a> {
    /// Who sent it.
    pub source: SocketAddr,
    /// Where it was sent.
    pub destination: SocketAddr,
    /// The sequence number of its first byte, or of the SYN.
    pub sequence: u32,
    /// The next byte that its sender expects from the other side; absent before the handshake.
    pub acknowledges: Option<u32>,
    /// It opens the connection.
    pub syn: bool,
    /// It is the last that its sender has to say.
    pub fin: bool,
    /// It aborts the connection.
    pub rst: bool,
    /// The bytes of the payload that the capture kept.
    pub payload: &'a [u8],
    /// Length of the payload on the wire in bytes; at least `payload.len()`.
    pub payload_len: usize,
}

/// What a frame holds, as far as this product is interested.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content<'a> {
    /// A fragment that waits for the others of its packet.
    Fragment,
    /// The first fragment of a UDP datagram, cut off where the next one begins. Where the rest comes, the whole
    /// datagram follows as [`Content::Udp`]; filters that look for ports never let it pass.
    Head(Datagram<'a>),
    /// A frame that carries no IP packet, or a link layer that is not read here.
    NotIp,
    /// IP that carries something else than UDP and TCP.
    Other,
    /// A TCP segment.
    Tcp(Segment<'a>),
    /// Too short for the headers that it announces.
    Truncated,
    /// A UDP datagram.
    Udp(Datagram<'a>),
}

/// What a layer has behind it.
pub(super) enum Layer<'a> {
    Found(Found<'a>),
    Frame(LinkType, &'a [u8]),
    Packet(&'a [u8]),
}

impl Layer<'_> {
    pub(super) const fn not_ip() -> Self {
        Layer::Found(Found::Content(Content::NotIp))
    }

    pub(super) const fn truncated() -> Self {
        Layer::Found(Found::Content(Content::Truncated))
    }
}

/// Where the layers of a frame end.
pub(super) enum Found<'a> {
    Content(Content<'a>),
    Piece(Piece<'a>),
}

/// What the fragments of one IP packet share (RFC 791 §2.3, RFC 8200 §4.5): addresses, protocol and identification.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FragmentKey {
    pub(super) ends: Ends,
    pub(super) protocol: u8,
    pub(super) id: u32,
}

/// A fragment of an IP packet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Piece<'a> {
    pub(super) ends: Ends,
    pub(super) protocol: u8,
    pub(super) id: u32,
    /// Its place in the payload of the whole packet.
    pub(super) offset: usize,
    /// It is not the last one.
    pub(super) more: bool,
    /// The bytes that the capture kept.
    pub(super) payload: &'a [u8],
    /// Its length on the wire.
    pub(super) len: usize,
}

/// The two ends of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Ends {
    pub(super) source: IpAddr,
    pub(super) destination: IpAddr,
}
