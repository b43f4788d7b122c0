//! The content of a frame, found layer by layer, down to a UDP datagram, a TCP segment or a fragment.

use std::net::{IpAddr, SocketAddr};

use super::link_type::LinkType;

/// One UDP datagram of a capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Datagram<'a> {
    /// Its sender.
    pub source: SocketAddr,
    /// Its destination.
    pub destination: SocketAddr,
    /// The captured bytes of the payload.
    pub payload: &'a [u8],
    /// Length of the payload on the wire in bytes; at least `payload.len()`.
    pub payload_len: usize,
}

/// One TCP segment of a capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment<'a> {
    /// Its sender.
    pub source: SocketAddr,
    /// Its destination.
    pub destination: SocketAddr,
    /// The sequence number of its first byte, or of the SYN.
    pub sequence: u32,
    /// The next byte that its sender expects from the peer; `None` before the handshake.
    pub acknowledges: Option<u32>,
    /// Whether it opens the connection.
    pub syn: bool,
    /// Whether it is its sender's last one.
    pub fin: bool,
    /// Whether it aborts the connection.
    pub rst: bool,
    /// The captured bytes of the payload.
    pub payload: &'a [u8],
    /// Length of the payload on the wire in bytes; at least `payload.len()`.
    pub payload_len: usize,
}

/// The content of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content<'a> {
    /// A fragment that waits for the others of its packet.
    Fragment,
    /// The first fragment of a UDP datagram, cut off where the next fragment begins. When the rest is captured, the
    /// complete datagram follows as [`Content::Udp`]; a capture filter for ports drops the rest.
    Head(Datagram<'a>),
    /// A frame without an IP packet, or with an unsupported link layer.
    NotIp,
    /// IP with a protocol other than UDP and TCP.
    Other,
    /// A TCP segment.
    Tcp(Segment<'a>),
    /// Shorter than its headers state.
    Truncated,
    /// A UDP datagram.
    Udp(Datagram<'a>),
}

/// The next layer after the one that was removed.
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

/// The innermost content of a frame.
pub(super) enum Found<'a> {
    Content(Content<'a>),
    Piece(Piece<'a>),
}

/// A fragment of an IP packet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Piece<'a> {
    pub(super) ends: Ends,
    pub(super) protocol: u8,
    pub(super) id: u32,
    /// Its offset in the payload of the complete packet.
    pub(super) offset: usize,
    /// Whether more fragments follow it.
    pub(super) more: bool,
    /// The captured bytes.
    pub(super) payload: &'a [u8],
    /// Its length on the wire.
    pub(super) len: usize,
}

impl Piece<'_> {
    /// The key of the packet that it belongs to.
    pub(super) fn key(&self) -> FragmentKey {
        FragmentKey { ends: self.ends, protocol: self.protocol, id: self.id }
    }
}

/// The fields that all fragments of one IP packet share (RFC 791 §2.3, RFC 8200 §4.5): addresses, protocol and
/// identification.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FragmentKey {
    pub(super) ends: Ends,
    pub(super) protocol: u8,
    pub(super) id: u32,
}

/// The two ends of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Ends {
    pub(super) source: IpAddr,
    pub(super) destination: IpAddr,
}
