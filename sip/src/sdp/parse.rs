//! Parses and writes the text of session descriptions. The only file that uses `sdp-types`, and only for parsing: its
//! writer needs its own copy of every line, and an answer is written several times in every call.
//!
//! Tolerant of lines that we do not use: they are removed before the parser could refuse them.

use std::fmt::{self, Write as _};
use std::net::IpAddr;

use bytes::Bytes;

use crate::sdp::description::{is_dtls, is_rtp};
use crate::sdp::{
    Address, Codec, Crypto, Direction, Dtls, Fingerprint, IceCandidate, IceCredentials, IceTransport, Media,
    MediaKind, Origin, Rtcp, SessionDescription, Setup, T38, VideoLines, Webrtc, XrWish,
};

/// The longest body that is read, in bytes.
pub const BODY_BYTES_MAX: usize = 64 * 1024;
/// The most lines of a body.
pub const LINES_MAX: usize = 1_024;
/// The most `m=` lines.
pub const MEDIA_MAX: usize = 32;
/// The most `a=` lines.
pub const ATTRIBUTES_MAX: usize = 512;

/// Why a session description cannot be parsed; a SIP peer gets 400, or 488 when the body was an offer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SdpError {
    /// The body is not SDP; the text contains the line and the reason.
    #[error("read the session description: {0}")]
    Malformed(String),
    /// The body is longer than [`BODY_BYTES_MAX`].
    #[error("read a session description of {size_bytes} bytes")]
    TooLong {
        /// Its length.
        size_bytes: usize,
    },
    /// More lines of one kind than [`LINES_MAX`], [`MEDIA_MAX`] or [`ATTRIBUTES_MAX`].
    #[error("read a session description with too many {0} lines")]
    TooMany(&'static str),
}

impl SessionDescription {
    /// Parses a body of type `application/sdp`.
    ///
    /// # Errors
    /// When it exceeds a bound, has no `v=0`, or a line that we use is invalid.
    pub fn parse(body: &[u8]) -> Result<Self, SdpError> {
        let kept = keep_lines(body)?;
        let session = sdp_types::Session::parse(kept.as_bytes())
            .map_err(|error| SdpError::Malformed(error.to_string()))?;
        let direction = direction(&session.attributes).unwrap_or_default();
        // Exact capacity: descriptions are stored, and `collect` would reserve space for four.
        let mut sections = Vec::with_capacity(session.medias.len());
        for section in session.medias {
            sections.push(media(section, direction, &session.attributes)?);
        }
        Ok(SessionDescription {
            origin: Origin {
                username: session.origin.username.as_deref().unwrap_or("-").into(),
                session_id: session.origin.sess_id.into(),
                version: session.origin.sess_version,
                address: address(&session.origin.unicast_address),
            },
            name: if session.session_name.is_empty() { "-".into() } else { session.session_name.into() },
            connection: session.connection.as_ref().map(|c| address(&c.connection_address)),
            media: sections,
        })
    }

    /// The text of the description, as a message's body.
    pub fn to_bytes(&self) -> Bytes {
        let mut text = String::with_capacity(BODY_BYTES_LIKELY);
        // Writing to a String cannot fail.
        let _ = write!(text, "{self}");
        // The body of an INVITE is kept as long as its leg.
        text.shrink_to_fit();
        Bytes::from(text)
    }
}

impl fmt::Display for SessionDescription {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Origin { username, session_id, version, address } = &self.origin;
        let username = if username.is_empty() { "-" } else { username };
        write!(
            f,
            "v=0\r\no={} {} {version} {}\r\n",
            Line(username),
            Line(session_id),
            NetworkAddress(address)
        )?;
        write!(f, "s={}\r\n", Line(&self.name))?;
        if let Some(connection) = &self.connection {
            write!(f, "c={}\r\n", NetworkAddress(connection))?;
        }
        f.write_str("t=0 0\r\n")?;
        write_bundle(f, &self.media)?;
        self.media.iter().try_for_each(|media| write_media(f, media))
    }
}

/// The lines that we use, in UTF-8, within the bounds, and with repairs for what the parser is known to
/// refuse.
fn keep_lines(body: &[u8]) -> Result<String, SdpError> {
    if body.len() > BODY_BYTES_MAX {
        return Err(SdpError::TooLong { size_bytes: body.len() });
    }
    // Free text may be in any charset; an invalid character in a name must not fail the call.
    let text = String::from_utf8_lossy(body);
    let mut kept = String::with_capacity(text.len());
    let (mut attributes, mut media, mut origins) = (0, 0, 0);
    let (mut begins_video, mut bandwidths) = (false, String::new());
    for (number, line) in text.split('\n').enumerate() {
        if number >= LINES_MAX {
            return Err(SdpError::TooMany("text"));
        }
        let line = line.strip_suffix('\r').unwrap_or(line);
        match line.as_bytes() {
            [b'a', b'=', ..] => {
                attributes += 1;
                begins_video = false;
                kept.push_str(&std::mem::take(&mut bandwidths));
            }
            [b'm', b'=', kind @ ..] => {
                media += 1;
                begins_video = kind.starts_with(b"video ");
                kept.push_str(&std::mem::take(&mut bandwidths));
            }
            // The parser requires them between the address and the attributes.
            [b'b', b'=', value @ ..] if begins_video && is_bandwidth(value) => {
                bandwidths.push_str(line);
                bandwidths.push_str("\r\n");
                continue;
            }
            [b'o', b'=', rest @ ..] => {
                origins += 1;
                if rest.iter().filter(|byte| **byte == b' ').count() > ORIGIN_SPACES {
                    kept.push_str(&repaired_origin(line));
                    kept.push_str("\r\n");
                    continue;
                }
            }
            [b'c' | b's' | b'v', b'=', ..] => {}
            // Bandwidths, keys, times, titles, contacts: never used, and often wrong in practice.
            [b'b' | b'e' | b'i' | b'k' | b'p' | b'r' | b't' | b'u' | b'z', b'=', ..] | [] => continue,
            _ => {}
        }
        kept.push_str(line);
        kept.push_str("\r\n");
    }
    kept.push_str(&bandwidths);
    match (attributes > ATTRIBUTES_MAX, media > MEDIA_MAX, origins) {
        (true, _, _) => Err(SdpError::TooMany("a=")),
        (_, true, _) => Err(SdpError::TooMany("m=")),
        (_, _, 0) => Err(SdpError::Malformed("no origin line".to_owned())),
        _ => Ok(kept),
    }
}

/// Whether a value of `b=` has a known type (RFC 8866 §5.8, RFC 3556, RFC 3890).
fn is_bandwidth(value: &[u8]) -> bool {
    let mut fields = value.splitn(2, |byte| *byte == b':');
    let (kind, kilobits) = (fields.next().unwrap_or_default(), fields.next().unwrap_or_default());
    matches!(kind, b"AS" | b"CT" | b"RR" | b"RS" | b"TIAS")
        && (1..=12).contains(&kilobits.len())
        && kilobits.iter().all(u8::is_ascii_digit)
}

/// Repairs an `o=` line whose user name contains spaces, contrary to RFC 8866 §5.2 but seen in practice: the
/// last five fields are the others.
fn repaired_origin(line: &str) -> String {
    let fields: Vec<&str> = line.split(' ').filter(|field| !field.is_empty()).collect();
    match fields.len().checked_sub(ORIGIN_SPACES) {
        Some(start) if start > 0 => format!("o=- {}", fields.get(start..).unwrap_or_default().join(" ")),
        _ => line.to_owned(),
    }
}

fn media(
    media: sdp_types::Media,
    session_direction: Direction,
    session: &[sdp_types::Attribute],
) -> Result<Media, SdpError> {
    let attributes = media.attributes.as_slice();
    let is_rtp = is_rtp(&media.proto);
    let mut codecs: Vec<Codec> = Vec::new();
    let mut other_formats: Vec<String> = Vec::new();
    for format in media.fmt.split_ascii_whitespace() {
        let codec = if is_rtp { codec(format, attributes) } else { None };
        match codec {
            Some(codec) if codecs.iter().any(|c| c.payload_type == codec.payload_type) => {}
            Some(codec) => codecs.push(codec),
            None if other_formats.iter().any(|other| other == format) => {}
            None => other_formats.push(format.to_owned()),
        }
    }
    if codecs.is_empty() && other_formats.is_empty() {
        return Err(SdpError::Malformed("m= line without a format".to_owned()));
    }
    if [&media.media, &media.proto].iter().any(|word| word.is_empty() || word.contains(char::is_whitespace)) {
        return Err(SdpError::Malformed("m= line with an empty field".to_owned()));
    }
    let mut section = Media {
        kind: MediaKind::from(media.media.as_str()),
        port: media.port,
        codecs,
        other_formats,
        connection: media.connections.first().map(|c| address(&c.connection_address)),
        direction: direction(attributes).unwrap_or(session_direction),
        ptime_ms: milliseconds(value(attributes, "ptime")),
        maxptime_ms: milliseconds(value(attributes, "maxptime")),
        rtcp: value(attributes, "rtcp").and_then(rtcp).map(Box::new),
        xr: value(attributes, "rtcp-xr")
            .or_else(|| value(session, "rtcp-xr"))
            .map_or_else(XrWish::default, XrWish::parse),
        rtcp_mux: attributes.iter().any(|a| a.attribute == "rtcp-mux"),
        crypto: if is_rtp {
            values(attributes, "crypto").filter_map(Crypto::parse).take(CRYPTO_MAX).collect()
        } else {
            Vec::new()
        },
        webrtc: if is_rtp {
            webrtc(&media.proto, attributes, session)
        } else {
            mid_of(attributes, session).map(Box::new)
        },
        protocol: media.proto.into(),
        t38: None,
        video: None,
    };
    if section.has_fax_format() && section.port != 0 {
        let lines = attributes.iter().map(|a| (a.attribute.as_str(), a.value.as_deref()));
        section.t38 = Some(Box::new(T38::of(lines)));
    }
    if section.is_video() {
        let lines = attributes.iter().map(|a| (a.attribute.as_str(), a.value.as_deref()));
        let bandwidths = media.bandwidths.iter().map(|b| format!("{}:{}", b.bwtype, b.bandwidth));
        section.video = Some(Box::new(VideoLines::of(bandwidths, lines)));
    }
    Ok(section)
}

/// ICE of a section, and DTLS if the profile has it. Lines of the session apply to every section without its own (RFC
/// 8839 §5.4).
fn webrtc(
    protocol: &str,
    media: &[sdp_types::Attribute],
    session: &[sdp_types::Attribute],
) -> Option<Box<Webrtc>> {
    let either = |name| value(media, name).or_else(|| value(session, name));
    let dtls = || {
        let mut prints = values(media, "fingerprint").chain(values(session, "fingerprint"));
        let fingerprint = prints.find_map(Fingerprint::parse)?;
        // The default of RFC 4145 §4.
        let setup = either("setup").map_or(Some(Setup::Active), Setup::parse)?;
        Some(Dtls { fingerprint, setup })
    };
    let transport = || {
        Some(IceTransport {
            ice: IceCredentials::new(either("ice-ufrag")?.trim(), either("ice-pwd")?.trim())?,
            is_lite: session.iter().any(|a| a.attribute == "ice-lite"),
            dtls: if is_dtls(protocol) { Some(dtls()?) } else { None },
            candidates: IceCandidate::parse(values(media, "candidate")),
        })
    };
    let transport = transport();
    match mid_of(media, session) {
        Some(webrtc) => Some(Box::new(Webrtc { transport, ..webrtc })),
        None => transport
            .map(|transport| Box::new(Webrtc { mid: None, is_bundled: false, transport: Some(transport) })),
    }
}

/// `a=mid` of a section, and whether it is in a BUNDLE group.
fn mid_of(media: &[sdp_types::Attribute], session: &[sdp_types::Attribute]) -> Option<Webrtc> {
    let mid = value(media, "mid").map(str::trim)?;
    if mid.is_empty() || mid.len() > MID_BYTES_MAX || mid.contains(char::is_whitespace) {
        return None;
    }
    let mut groups = values(session, "group").map(|group| group.split_ascii_whitespace());
    let is_bundled =
        groups.any(|mut group| group.next() == Some("BUNDLE") && group.any(|other| other == mid));
    Some(Webrtc { mid: Some(mid.into()), is_bundled, transport: None })
}

/// The codec of one format of an `m=` line: from its rtpmap or the static table, and its fmtp.
fn codec(format: &str, attributes: &[sdp_types::Attribute]) -> Option<Codec> {
    let number: u8 = format.parse().ok().filter(|number| *number < 128)?;
    let mut codec = values(attributes, "rtpmap")
        .filter(|value| Codec::rtpmap_number(value) == Some(number))
        .find_map(Codec::from_rtpmap)
        .or_else(|| Codec::from_static(number))?;
    codec.fmtp = values(attributes, "fmtp").find_map(|value| {
        let (of, parameters) = value.trim().split_once([' ', '\t'])?;
        let parameters = parameters.trim();
        (of.parse() == Ok(number) && !parameters.is_empty()).then(|| parameters.into())
    });
    Some(codec)
}

fn values<'a>(attributes: &'a [sdp_types::Attribute], name: &'a str) -> impl Iterator<Item = &'a str> {
    attributes.iter().filter(move |a| a.attribute == name).filter_map(|a| a.value.as_deref())
}

fn value<'a>(attributes: &'a [sdp_types::Attribute], name: &'a str) -> Option<&'a str> {
    values(attributes, name).next()
}

fn direction(attributes: &[sdp_types::Attribute]) -> Option<Direction> {
    attributes.iter().find_map(|a| Direction::from_name(&a.attribute))
}

/// `a=ptime:20`; devices also write `20.0`. Values over a second are ignored.
fn milliseconds(value: Option<&str>) -> Option<u32> {
    let whole = value?.trim().split('.').next()?;
    whole.parse().ok().filter(|ms| (1..=1_000).contains(ms))
}

/// `a=rtcp:53020 IN IP6 2001:db8::1` (RFC 3605 §2.1).
fn rtcp(value: &str) -> Option<Rtcp> {
    let mut fields = value.split_ascii_whitespace();
    let port = fields.next()?.parse().ok().filter(|port| *port != 0)?;
    Some(Rtcp { port, address: fields.nth(2).map(address) })
}

/// An address as written, without the TTL and count of a multicast group (`224.2.1.1/127/3`).
fn address(text: &str) -> Address {
    let host = text.split('/').next().unwrap_or_default();
    match host.parse::<IpAddr>() {
        Ok(ip) => Address::Ip(ip),
        Err(_) if host.is_empty() => Address::Name("-".to_owned()),
        Err(_) => Address::Name(host.to_owned()),
    }
}

/// An address with its type, as in `c=` and `o=` lines.
struct NetworkAddress<'a>(&'a Address);

impl fmt::Display for NetworkAddress<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Address::Ip(IpAddr::V4(ip)) => write!(f, "IN IP4 {ip}"),
            Address::Ip(IpAddr::V6(ip)) => write!(f, "IN IP6 {ip}"),
            Address::Name(name) => write!(f, "IN IP4 {}", Line(name)),
        }
    }
}

/// Text within a line, without the characters that would begin another one.
struct Line<'a>(&'a str);

impl fmt::Display for Line<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.split(['\0', '\r', '\n']).try_for_each(|part| f.write_str(part))
    }
}

/// The lines of the session that its sections need: the BUNDLE group and `a=ice-lite`.
fn write_bundle(f: &mut fmt::Formatter<'_>, media: &[Media]) -> fmt::Result {
    let sections = || media.iter().filter_map(|media| media.webrtc.as_deref());
    if sections().any(|webrtc| webrtc.is_bundled) {
        f.write_str("a=group:BUNDLE")?;
        let mut mids = sections().filter(|webrtc| webrtc.is_bundled).filter_map(|webrtc| webrtc.mid.as_ref());
        mids.try_for_each(|mid| write!(f, " {}", Line(mid)))?;
        f.write_str("\r\n")?;
    }
    if sections().filter_map(|webrtc| webrtc.transport.as_ref()).any(|transport| transport.is_lite) {
        f.write_str("a=ice-lite\r\n")?;
    }
    Ok(())
}

fn write_media(f: &mut fmt::Formatter<'_>, media: &Media) -> fmt::Result {
    write!(f, "m={} {} {}", Line(media.kind.as_str()), media.port, Line(&media.protocol))?;
    media.codecs.iter().try_for_each(|codec| write!(f, " {}", codec.payload_type))?;
    media.other_formats.iter().try_for_each(|format| write!(f, " {}", Line(format)))?;
    if media.codecs.is_empty() && media.other_formats.is_empty() {
        f.write_str(" 0")?;
    }
    f.write_str("\r\n")?;
    if let Some(connection) = &media.connection {
        write!(f, "c={}\r\n", NetworkAddress(connection))?;
    }
    for bandwidth in media.video.iter().flat_map(|video| video.bandwidths()) {
        write!(f, "b={}\r\n", Line(bandwidth))?;
    }
    for codec in &media.codecs {
        let Codec { payload_type, name, clock_rate, channels, fmtp } = codec;
        write!(f, "a=rtpmap:{payload_type} {}/{clock_rate}", Line(name))?;
        if *channels > 1 {
            write!(f, "/{channels}")?;
        }
        f.write_str("\r\n")?;
        if let Some(parameters) = fmtp {
            write!(f, "a=fmtp:{payload_type} {}\r\n", Line(parameters))?;
        }
    }
    let of_fax = media.t38.iter().flat_map(|t38| t38.lines());
    let of_video = media.video.iter().flat_map(|video| video.attributes());
    for (name, value) in of_fax.chain(of_video) {
        match value {
            Some(value) => write!(f, "a={}:{}\r\n", Line(name), Line(value))?,
            None => write!(f, "a={}\r\n", Line(name))?,
        }
    }
    if let Some(ms) = media.ptime_ms {
        write!(f, "a=ptime:{ms}\r\n")?;
    }
    if let Some(ms) = media.maxptime_ms {
        write!(f, "a=maxptime:{ms}\r\n")?;
    }
    match media.rtcp.as_deref() {
        Some(Rtcp { port, address: Some(address) }) => {
            write!(f, "a=rtcp:{port} {}\r\n", NetworkAddress(address))?;
        }
        Some(Rtcp { port, address: None }) => write!(f, "a=rtcp:{port}\r\n")?,
        None => {}
    }
    if media.rtcp_mux {
        f.write_str("a=rtcp-mux\r\n")?;
    }
    if media.xr.round_trip {
        f.write_str("a=rtcp-xr:rcvr-rtt=all\r\n")?;
    }
    if let Some(webrtc) = &media.webrtc {
        write!(f, "{webrtc}")?;
    }
    for crypto in &media.crypto {
        write!(f, "a=crypto:{crypto}\r\n")?;
    }
    // A refused section has no further lines.
    if media.port != 0 || media.direction != Direction::SendRecv {
        write!(f, "a={}\r\n", media.direction.as_str())?;
    }
    Ok(())
}

/// Length of most bodies, in bytes.
const BODY_BYTES_LIKELY: usize = 512;
/// Lines of `a=crypto` of one section that are kept.
const CRYPTO_MAX: usize = 16;
/// The longest `a=mid` that is read, in bytes.
const MID_BYTES_MAX: usize = 64;
/// Number of spaces in a well-formed `o=` line.
const ORIGIN_SPACES: usize = 5;
