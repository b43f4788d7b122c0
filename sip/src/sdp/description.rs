//! The parts of a session description that we use: addresses, audio formats, directions.

use std::fmt;
use std::net::{IpAddr, SocketAddr};

use crate::sdp::{Codec, Crypto, IceCandidate, IceTransport, T38, VideoLines, Webrtc, XrWish};
use crate::text::Text;

/// A session description (RFC 8866 §5).
///
/// It contains the parts that a switch uses. Lines that it would only pass on (bandwidths, candidates) are omitted on
/// purpose: they would announce features that our ports do not have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionDescription {
    /// The `o=` line.
    pub origin: Origin,
    /// The `s=` line; `-` when absent.
    pub name: Text,
    /// The session's `c=` line, for every media section without its own.
    pub connection: Option<Address>,
    /// The `m=` sections in order. Their number and order never change within a dialog (RFC 3264 §8).
    pub media: Vec<Media>,
}

/// The creator of a description and its version (RFC 8866 §5.2).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    /// The user name; `-` when absent.
    pub username: Text,
    /// The session id; numeric by the standard, but text in practice.
    pub session_id: Text,
    /// Counts changes of the description.
    pub version: u64,
    /// The creator's address.
    pub address: Address,
}

/// An address of a `c=` or `o=` line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// A literal address.
    Ip(IpAddr),
    /// A host name, which is not resolved here.
    Name(String),
}

impl Address {
    /// The literal address.
    pub fn ip(&self) -> Option<IpAddr> {
        match self {
            Address::Ip(ip) => Some(*ip),
            Address::Name(_) => None,
        }
    }

    /// Whether it is `0.0.0.0` or `::`, which means hold in RFC 2543 (RFC 3264 §8.4).
    pub fn is_hold(&self) -> bool {
        self.ip().is_some_and(|ip| ip.is_unspecified())
    }
}

impl From<IpAddr> for Address {
    fn from(ip: IpAddr) -> Self {
        Address::Ip(ip)
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Address::Ip(ip) => ip.fmt(f),
            Address::Name(name) => f.write_str(name),
        }
    }
}

/// One `m=` section.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Media {
    /// Audio, video, …
    pub kind: MediaKind,
    /// The port for RTP to its creator; 0 means refused or disabled.
    pub port: u16,
    /// The transport, as written: `RTP/AVP`, `RTP/SAVPF`, `udptl`, …
    pub protocol: Text,
    /// The RTP formats in order of preference, each with its rtpmap and fmtp.
    pub codecs: Vec<Codec>,
    /// Formats that are not known RTP payload types: `t38`, or a dynamic number without an rtpmap.
    pub other_formats: Vec<String>,
    /// Its own `c=` line.
    pub connection: Option<Address>,
    /// The direction of media, from the creator's view; the session's when the section has none.
    pub direction: Direction,
    /// `a=ptime`, milliseconds.
    pub ptime_ms: Option<u32>,
    /// `a=maxptime`, milliseconds.
    pub maxptime_ms: Option<u32>,
    /// `a=rtcp` (RFC 3605).
    pub rtcp: Option<Box<Rtcp>>,
    /// `a=rtcp-mux` (RFC 5761).
    pub rtcp_mux: bool,
    /// `a=rtcp-xr` (RFC 3611 §5.1).
    pub xr: XrWish,
    /// The acceptable lines of `a=crypto`, in order (RFC 4568).
    pub crypto: Vec<Crypto>,
    /// ICE, and DTLS of browsers. Boxed, because most phones use neither.
    pub webrtc: Option<Box<Webrtc>>,
    /// The T.38 lines of the section, unless it is refused. Boxed, because few calls are faxes.
    pub t38: Option<Box<T38>>,
    /// The additional lines of a video section. Boxed, because few calls have video.
    pub video: Option<Box<VideoLines>>,
}

impl Media {
    /// An audio section over plain RTP.
    pub fn audio(port: u16, codecs: Vec<Codec>) -> Self {
        Media {
            kind: MediaKind::Audio,
            port,
            protocol: RTP_AVP.into(),
            codecs,
            other_formats: Vec::new(),
            connection: None,
            direction: Direction::SendRecv,
            ptime_ms: None,
            maxptime_ms: None,
            rtcp: None,
            rtcp_mux: false,
            xr: XrWish::default(),
            crypto: Vec::new(),
            webrtc: None,
            t38: None,
            video: None,
        }
    }

    /// The same section refused: port 0 and one format (RFC 3264 §6).
    pub fn refused(&self) -> Self {
        let format = match (self.codecs.first(), self.other_formats.first()) {
            (Some(codec), _) => codec.payload_type.to_string(),
            (None, Some(format)) => format.clone(),
            (None, None) => "0".to_owned(),
        };
        Media {
            kind: self.kind.clone(),
            protocol: self.protocol.clone(),
            other_formats: vec![format],
            webrtc: self.webrtc.as_ref().and_then(|webrtc| webrtc.refused()),
            ..Media::audio(0, Vec::new())
        }
    }

    /// Whether our ports support it: audio over RTP, over SRTP with a key that we could accept, or over DTLS-SRTP with
    /// ICE; each with or without feedback (RFC 4585, RFC 5124).
    pub fn is_carried(&self) -> bool {
        self.kind == MediaKind::Audio && (self.has_plain_or_keyed_rtp() || self.is_webrtc())
    }

    /// Whether its transport is plain RTP, or SRTP with a key that we could accept.
    pub(super) fn has_plain_or_keyed_rtp(&self) -> bool {
        let is_plain = [RTP_AVP, RTP_AVPF].iter().any(|p| self.protocol.eq_ignore_ascii_case(p));
        is_plain || (is_secure(&self.protocol) && !self.crypto.is_empty())
    }

    /// Whether it is audio in the form of browsers: over DTLS-SRTP, with RTCP on the same port, from an agent that
    /// checks our candidate.
    pub fn is_webrtc(&self) -> bool {
        let transport = self.ice().filter(|transport| !transport.is_lite && self.rtcp_mux);
        self.kind == MediaKind::Audio && transport.is_some_and(|transport| transport.dtls.is_some())
    }

    /// The ICE candidates over UDP that its creator names.
    pub fn candidates(&self) -> &[IceCandidate] {
        self.ice().map_or(&[], |transport| &transport.candidates)
    }

    /// Its ICE.
    fn ice(&self) -> Option<&IceTransport> {
        self.webrtc.as_ref()?.transport.as_ref()
    }

    /// Whether it is audio of an agent that checks our candidates, without DTLS: a phone with ICE.
    pub fn has_plain_ice(&self) -> bool {
        let checks = self.ice().is_some_and(|transport| !transport.is_lite && transport.dtls.is_none());
        checks && self.is_carried()
    }
}

/// The media type of an `m=` line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MediaKind {
    /// `audio`.
    Audio,
    /// `image`, as T.38 uses it.
    Image,
    /// Any other: `application`, `message`, `text`, …
    Other(String),
    /// `video`.
    Video,
}

impl MediaKind {
    /// The media type as in the `m=` line.
    pub fn as_str(&self) -> &str {
        match self {
            MediaKind::Audio => "audio",
            MediaKind::Image => "image",
            MediaKind::Other(word) => word,
            MediaKind::Video => "video",
        }
    }
}

impl From<&str> for MediaKind {
    fn from(word: &str) -> Self {
        match word {
            _ if word.eq_ignore_ascii_case("audio") => MediaKind::Audio,
            _ if word.eq_ignore_ascii_case("image") => MediaKind::Image,
            _ if word.eq_ignore_ascii_case("video") => MediaKind::Video,
            _ => MediaKind::Other(word.to_owned()),
        }
    }
}

/// The creator's RTCP address, if it is not the next port (RFC 3605).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rtcp {
    /// The port.
    pub port: u16,
    /// The address, when it differs from that of RTP.
    pub address: Option<Address>,
}

/// The direction of media, from the creator's view (RFC 8866 §6.7).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Direction {
    /// Neither way.
    Inactive,
    /// Only to the creator.
    RecvOnly,
    /// Only from the creator: the usual hold.
    SendOnly,
    /// Both ways.
    #[default]
    SendRecv,
}

impl Direction {
    /// The direction with these two settings.
    pub fn new(send: bool, receive: bool) -> Self {
        match (send, receive) {
            (true, true) => Direction::SendRecv,
            (true, false) => Direction::SendOnly,
            (false, true) => Direction::RecvOnly,
            (false, false) => Direction::Inactive,
        }
    }

    /// Whether the creator sends.
    pub fn sends(self) -> bool {
        matches!(self, Direction::SendRecv | Direction::SendOnly)
    }

    /// Whether the creator receives.
    pub fn receives(self) -> bool {
        matches!(self, Direction::SendRecv | Direction::RecvOnly)
    }

    /// The same direction from the peer's view.
    #[must_use]
    pub fn reversed(self) -> Self {
        Direction::new(self.receives(), self.sends())
    }

    /// Our own direction `self`, restricted by the offered direction (RFC 3264 §6.1, table 1).
    #[must_use]
    pub fn answering(self, offered: Direction) -> Self {
        Direction::new(self.sends() && offered.receives(), self.receives() && offered.sends())
    }

    /// The attribute's name.
    pub fn as_str(self) -> &'static str {
        match self {
            Direction::Inactive => "inactive",
            Direction::RecvOnly => "recvonly",
            Direction::SendOnly => "sendonly",
            Direction::SendRecv => "sendrecv",
        }
    }

    /// The direction with this attribute name; `None` for another attribute.
    pub(super) fn from_name(name: &str) -> Option<Self> {
        match name {
            "inactive" => Some(Direction::Inactive),
            "recvonly" => Some(Direction::RecvOnly),
            "sendonly" => Some(Direction::SendOnly),
            "sendrecv" => Some(Direction::SendRecv),
            _ => None,
        }
    }
}

impl SessionDescription {
    /// Our own description with these sections; [`super::OfferAnswer`] fills in session id and version.
    pub fn new(address: IpAddr, media: Vec<Media>) -> Self {
        SessionDescription {
            origin: Origin {
                username: "-".into(),
                session_id: "0".into(),
                version: 0,
                address: Address::Ip(address),
            },
            name: "-".into(),
            connection: Some(Address::Ip(address)),
            media,
        }
    }

    /// The address for `media`: its own, or the session's.
    pub fn address_of<'a>(&'a self, media: &'a Media) -> Option<&'a Address> {
        media.connection.as_ref().or(self.connection.as_ref())
    }

    /// The first enabled audio section that our ports support, and its index.
    pub fn carried_audio(&self) -> Option<(usize, &Media)> {
        self.media.iter().enumerate().find(|(_, media)| media.is_carried() && media.port != 0)
    }

    /// Whether the creator is a browser: its first audio is over DTLS-SRTP with ICE.
    pub fn wants_webrtc(&self) -> bool {
        let mut audio = self.media.iter().filter(|media| media.kind == MediaKind::Audio && media.port != 0);
        audio.next().is_some_and(Media::is_webrtc)
    }

    /// Whether the creator's audio has ICE without DTLS, see [`Media::has_plain_ice`].
    pub fn wants_plain_ice(&self) -> bool {
        self.carried_audio().is_some_and(|(_, audio)| audio.has_plain_ice())
    }

    /// The direction of `media`. An address of `0.0.0.0` means that its creator does not receive; with ICE it only
    /// means that candidates follow (RFC 8840 §4.1.3).
    pub fn direction_of(&self, media: &Media) -> Direction {
        let hold = media.ice().is_none() && self.address_of(media).is_some_and(Address::is_hold);
        Direction::new(media.direction.sends(), media.direction.receives() && !hold)
    }

    /// The address for RTP of `media` to its creator; `None` for a refused section, a hold or a host name.
    ///
    /// It may be an address to which nothing may be sent, such as a multicast group. The sender must check that.
    pub fn rtp_address(&self, media: &Media) -> Option<SocketAddr> {
        socket_address(self.address_of(media)?, media.port)
    }

    /// Whether `media` is enabled, but its address is a host name, which is not resolved, or missing. With ICE an address
    /// of `0.0.0.0` counts too: only the candidates are addresses (RFC 8840 §4.1.3).
    pub fn is_unresolved(&self, media: &Media) -> bool {
        let ip = self.address_of(media).and_then(Address::ip);
        media.port != 0 && ip.is_none_or(|ip| ip.is_unspecified() && media.ice().is_some())
    }

    /// The address for RTCP of `media` to its creator: the RTP port itself, `a=rtcp`, or the next port (RFC
    /// 3550 §11).
    ///
    /// `mux` means that both sides agreed on `a=rtcp-mux`.
    pub fn rtcp_address(&self, media: &Media, mux: bool) -> Option<SocketAddr> {
        let rtp = self.rtp_address(media)?;
        match media.rtcp.as_deref() {
            _ if mux => Some(rtp),
            Some(rtcp) => match &rtcp.address {
                Some(address) => socket_address(address, rtcp.port),
                None => Some(SocketAddr::new(rtp.ip(), rtcp.port)),
            },
            None => rtp.port().checked_add(1).map(|port| SocketAddr::new(rtp.ip(), port)),
        }
    }
}

fn socket_address(address: &Address, port: u16) -> Option<SocketAddr> {
    // An IPv4-mapped address is reached over IPv4.
    let ip = address.ip()?.to_canonical();
    (port != 0 && !ip.is_unspecified()).then_some(SocketAddr::new(ip, port))
}

/// Whether a transport is RTP with any profile.
pub(super) fn is_rtp(protocol: &str) -> bool {
    protocol.as_bytes().windows(4).any(|word| word.eq_ignore_ascii_case(b"RTP/"))
}

/// Whether a transport is SRTP with keys in SDP.
pub(super) fn is_secure(protocol: &str) -> bool {
    [RTP_SAVP, RTP_SAVPF].iter().any(|p| protocol.eq_ignore_ascii_case(p))
}

/// Whether a transport is SRTP with keys of a DTLS handshake.
pub(super) fn is_dtls(protocol: &str) -> bool {
    [DTLS_SAVP, DTLS_SAVPF].iter().any(|p| protocol.eq_ignore_ascii_case(p))
}

/// DTLS-SRTP (RFC 5764 §8).
const DTLS_SAVP: &str = "UDP/TLS/RTP/SAVP";
/// DTLS-SRTP with early feedback.
pub(super) const DTLS_SAVPF: &str = "UDP/TLS/RTP/SAVPF";
/// Plain RTP (RFC 3551).
pub(super) const RTP_AVP: &str = "RTP/AVP";
/// Plain RTP with early feedback (RFC 4585).
pub(super) const RTP_AVPF: &str = "RTP/AVPF";
/// SRTP (RFC 3711).
pub(super) const RTP_SAVP: &str = "RTP/SAVP";
/// SRTP with early feedback (RFC 5124).
pub(super) const RTP_SAVPF: &str = "RTP/SAVPF";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_takes_no_more_than_was_offered() {
        use Direction::*;
        // RFC 3264 §6.1: the allowed answer to each offer, for an answerer that wants both directions.
        let table = [(SendRecv, SendRecv), (SendOnly, RecvOnly), (RecvOnly, SendOnly), (Inactive, Inactive)];
        for (offered, answered) in table {
            assert_eq!(SendRecv.answering(offered), answered, "{offered:?}");
            assert_eq!(offered.reversed(), answered);
        }
        assert_eq!(SendOnly.answering(SendOnly), Inactive);
    }

    #[test]
    fn addresses_to_send_to() {
        let one = |address: Address, port| {
            let mut description =
                SessionDescription::new("192.0.2.1".parse().unwrap(), vec![Media::audio(port, Vec::new())]);
            description.connection = Some(address);
            description
        };
        let ip = |text: &str| Address::Ip(text.parse().unwrap());
        let table = [
            ("plain", one(ip("192.0.2.7"), 4000), Some("192.0.2.7:4000"), Some("192.0.2.7:4001")),
            ("hold", one(ip("0.0.0.0"), 4000), None, None),
            ("hold, IPv6", one(ip("::"), 4000), None, None),
            ("refused", one(ip("192.0.2.7"), 0), None, None),
            ("multicast", one(ip("224.2.1.1"), 4000), Some("224.2.1.1:4000"), Some("224.2.1.1:4001")),
            ("name", one(Address::Name("media.example".into()), 4000), None, None),
            ("last port", one(ip("2001:db8::1"), 65_535), Some("[2001:db8::1]:65535"), None),
        ];
        for (name, description, rtp, rtcp) in table {
            let media = &description.media[0];
            let text = |address: Option<SocketAddr>| address.map(|address| address.to_string());
            assert_eq!(text(description.rtp_address(media)).as_deref(), rtp, "{name}");
            assert_eq!(text(description.rtcp_address(media, false)).as_deref(), rtcp, "{name}");
            assert_eq!(description.is_unresolved(media), name == "name", "{name}");
        }
    }
}
