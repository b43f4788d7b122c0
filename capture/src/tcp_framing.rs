//! Reads one direction of a TCP connection: SIP messages, or datagrams in one of the framings used over TCP.
//!
//! Ports have no influence here either. The first bytes of a direction, or of a later segment when the
//! capture started late, identify SIP (RFC 3261 §18.3), RTSP with its interleaved packets (RFC 2326 §10.12),
//! STUN and TURN (RFC 8489 §6.2.2), and packets with a length prefix (RFC 4571). All else is skipped.

use sidetone_sip::message::{Message, StreamEvent, StreamParser};

use super::lenient_sip;
use super::payload_kind::is_sip;
use super::turn_protocol;

/// The recognised framing of a direction, and the bytes of an incomplete element.
#[derive(Debug, Default)]
pub(super) struct TcpReader {
    framing: Framing,
    buffer: Vec<u8>,
    /// Segments in which nothing was recognised.
    tries: u32,
}

/// A unit that a reader returns.
#[derive(Debug)]
pub(super) struct Unit<'a> {
    pub(super) kind: UnitKind<'a>,
    /// The number of consumed bytes after the unit; with the unit's length, it gives the unit's position.
    pub(super) behind: usize,
}

/// The type of a unit.
#[derive(Debug)]
pub(super) enum UnitKind<'a> {
    /// The payload of a UDP datagram.
    Datagram(&'a [u8]),
    /// SIP from which the Call-ID or another needed field cannot be read.
    Malformed,
    /// A SIP message.
    Message(&'a Message),
}

#[derive(Debug, Default)]
enum Framing {
    /// Packets interleaved with the text of RTSP.
    Interleaved,
    /// Packets with a two-byte length prefix.
    Lengths,
    Sip(StreamParser),
    /// STUN and channel messages, which contain their own length.
    Turn,
    #[default]
    Unknown,
}

/// The first element of a buffer.
#[derive(Debug, PartialEq, Eq)]
enum Element {
    /// No such element.
    Broken,
    /// A datagram, which begins and ends here, in an element of this length.
    Datagram { begin: usize, end: usize, len: usize },
    /// More bytes are required.
    More,
    /// Another element of this length.
    Other { len: usize },
}

impl TcpReader {
    /// Takes the bytes that follow; `false` when nothing in this direction can be recognised.
    pub(super) fn take(&mut self, bytes: &[u8], sink: &mut dyn FnMut(Unit<'_>)) -> bool {
        match self.framing {
            Framing::Sip(_) => self.sip(bytes, sink),
            Framing::Interleaved | Framing::Lengths | Framing::Turn => {
                self.buffer.extend_from_slice(bytes);
                self.elements(sink);
            }
            Framing::Unknown => self.recognise(bytes, sink),
        }
        if matches!(self.framing, Framing::Unknown) && self.tries >= TRIES_MAX {
            self.buffer = Vec::new();
            return false;
        }
        true
    }

    /// Handles bytes that are missing from the capture; filler replaces them while elements stay complete.
    pub(super) fn lose(&mut self, len: usize, sink: &mut dyn FnMut(Unit<'_>)) {
        let filler = match self.framing {
            Framing::Sip(_) if len <= LOST_MAX => b'\n',
            Framing::Interleaved | Framing::Lengths | Framing::Turn if len <= LOST_MAX => 0,
            _ => {
                self.forget();
                return;
            }
        };
        self.take(&vec![filler; len], sink);
    }

    /// Bytes that it holds.
    pub(super) fn held(&self) -> usize {
        let parser = if let Framing::Sip(parser) = &self.framing { parser.held_len() } else { 0 };
        self.buffer.len() + parser
    }

    /// Starts recognition again with the next segment.
    pub(super) fn forget(&mut self) {
        self.framing = Framing::Unknown;
        self.buffer = Vec::new();
    }

    /// Looks for the beginning of a known framing.
    fn recognise(&mut self, bytes: &[u8], sink: &mut dyn FnMut(Unit<'_>)) {
        self.buffer.extend_from_slice(bytes);
        let bytes = std::mem::take(&mut self.buffer);
        // Keep-alives may precede SIP (RFC 5626 §3.5.1).
        let begin = bytes.iter().position(|byte| !matches!(byte, b'\r' | b'\n')).unwrap_or(bytes.len());
        let text = bytes.get(begin..).unwrap_or_default();
        match recognise(text) {
            Recognised::As(Framing::Sip(_)) => self.sip_from(text, sink),
            Recognised::As(framing) => {
                self.framing = framing;
                self.buffer = text.to_vec();
                self.elements(sink);
            }
            Recognised::Later if text.len() < PROBE_LEN_MAX => self.buffer = text.to_vec(),
            Recognised::Later | Recognised::Never => match next_message(text) {
                Some(place) => self.sip_from(text.get(place..).unwrap_or_default(), sink),
                None => self.tries += 1,
            },
        }
    }

    /// Reads SIP from a start line on, message by message, and skips what is not SIP.
    fn sip_from(&mut self, text: &[u8], sink: &mut dyn FnMut(Unit<'_>)) {
        let mut rest = text;
        // Each turn begins at a later start line than the one before.
        loop {
            self.framing = Framing::Sip(StreamParser::new());
            if self.sip_messages(rest, sink) {
                return;
            }
            match next_message(rest) {
                Some(place) => rest = rest.get(place..).unwrap_or_default(),
                None => {
                    self.forget();
                    self.tries += 1;
                    return;
                }
            }
        }
    }

    fn sip(&mut self, bytes: &[u8], sink: &mut dyn FnMut(Unit<'_>)) {
        if self.sip_messages(bytes, sink) {
            return;
        }
        // The stream cannot be followed any further; perhaps another message begins in the same bytes.
        self.forget();
        match (is_sip(bytes), next_message(bytes)) {
            (true, _) => self.sip_from(bytes, sink),
            (false, Some(place)) => self.sip_from(bytes.get(place..).unwrap_or_default(), sink),
            (false, None) => self.tries += 1,
        }
    }

    /// Returns the messages that are complete; `false` when the stream is lost.
    fn sip_messages(&mut self, bytes: &[u8], sink: &mut dyn FnMut(Unit<'_>)) -> bool {
        let Framing::Sip(parser) = &mut self.framing else { return false };
        parser.push(bytes);
        while let Some(event) = parser.poll() {
            let behind = parser.held_len();
            match event {
                StreamEvent::Message(message) => sink(Unit { kind: UnitKind::Message(&message), behind }),
                StreamEvent::Ping => {}
                StreamEvent::Rejected { is_fatal, raw, .. } => {
                    match lenient_sip::read(&raw) {
                        Some(message) => sink(Unit { kind: UnitKind::Message(&message), behind }),
                        None => sink(Unit { kind: UnitKind::Malformed, behind }),
                    }
                    if is_fatal {
                        return false;
                    }
                }
            }
        }
        true
    }

    /// Returns the datagrams that are complete.
    fn elements(&mut self, sink: &mut dyn FnMut(Unit<'_>)) {
        let mut place = 0;
        // Each turn passes an element, or is the last.
        loop {
            let rest = self.buffer.get(place..).unwrap_or_default();
            let element = match self.framing {
                Framing::Interleaved => interleaved(rest),
                Framing::Lengths => behind_length(rest),
                Framing::Turn => turn_message(rest),
                Framing::Sip(_) | Framing::Unknown => Element::Broken,
            };
            match element {
                Element::Broken => {
                    self.forget();
                    self.tries += 1;
                    return;
                }
                Element::Datagram { begin, end, len } => {
                    self.tries = 0;
                    let kind = UnitKind::Datagram(rest.get(begin..end).unwrap_or_default());
                    sink(Unit { kind, behind: rest.len() - len });
                    place += len;
                }
                Element::More => break,
                Element::Other { len } => place += len,
            }
        }
        self.buffer.drain(..place);
    }
}

enum Recognised {
    As(Framing),
    /// More bytes are required.
    Later,
    Never,
}

/// Recognises what a direction that begins with `bytes` carries.
fn recognise(bytes: &[u8]) -> Recognised {
    if is_sip(bytes) {
        return Recognised::As(Framing::Sip(StreamParser::new()));
    }
    if is_rtsp(bytes) {
        return Recognised::As(Framing::Interleaved);
    }
    // A TURN channel that carries RTP; text has no such byte.
    if matches!(bytes, [0x40..=0x4f, _, _, _, 0x80..=0xbf, ..]) {
        return Recognised::As(Framing::Turn);
    }
    let Some(first) = bytes.first() else { return Recognised::Later };
    if first.is_ascii_uppercase() {
        // A start line that is not complete yet.
        let is_line = bytes.iter().all(|byte| matches!(byte, b' '..=b'~'));
        return if is_line { Recognised::Later } else { Recognised::Never };
    }
    if bytes.len() < RECOGNISED_LEN {
        return Recognised::Later;
    }
    if turn_protocol::is_stun(bytes) {
        return Recognised::As(Framing::Turn);
    }
    match bytes {
        // The two channels of a stream, and packets that are RTP or RTCP.
        [b'$', 0..=31, _, _, 0x80..=0xbf, ..] => Recognised::As(Framing::Interleaved),
        [high, low, packet @ ..] if u16::from_be_bytes([*high, *low]) >= PACKET_LEN_MIN => match packet {
            [0x80..=0xbf, ..] => Recognised::As(Framing::Lengths),
            packet if turn_protocol::is_stun(packet) => Recognised::As(Framing::Lengths),
            _ => Recognised::Never,
        },
        _ => Recognised::Never,
    }
}

/// Whether text begins with a line of RTSP.
fn is_rtsp(bytes: &[u8]) -> bool {
    let line = bytes.split(|byte| matches!(byte, b'\r' | b'\n')).next().unwrap_or_default();
    let has_ended = line.len() < bytes.len();
    line.starts_with(b"RTSP/1.0 ")
        || line.starts_with(b"RTSP/2.0 ")
        || (has_ended && (line.ends_with(b" RTSP/1.0") || line.ends_with(b" RTSP/2.0")))
}

/// The position of the first SIP start line after another line.
fn next_message(bytes: &[u8]) -> Option<usize> {
    let ends = bytes.iter().enumerate().filter(|(_, byte)| **byte == b'\n').map(|(place, _)| place + 1);
    ends.into_iter().find(|place| is_sip(bytes.get(*place..).unwrap_or_default()))
}

/// `$`, channel, length and a packet; or a message of RTSP (RFC 2326 §10.12).
fn interleaved(bytes: &[u8]) -> Element {
    match bytes {
        [b'$', _, high, low, ..] => {
            let len = 4 + usize::from(u16::from_be_bytes([*high, *low]));
            if bytes.len() < len { Element::More } else { Element::Datagram { begin: 4, end: len, len } }
        }
        [] | [b'$', ..] => Element::More,
        [b'\r' | b'\n', ..] => Element::Other { len: 1 },
        [first, ..] if !first.is_ascii_uppercase() => Element::Broken,
        text => match text.windows(4).position(|end| end == b"\r\n\r\n") {
            Some(place) => {
                let body_len = text.get(..place).and_then(content_length).unwrap_or(0);
                let len = place + 4 + body_len;
                match len {
                    _ if len > TEXT_LEN_MAX => Element::Broken,
                    _ if bytes.len() < len => Element::More,
                    _ => Element::Other { len },
                }
            }
            None if text.len() > TEXT_LEN_MAX => Element::Broken,
            None => Element::More,
        },
    }
}

/// Two bytes of length and a packet (RFC 4571 §2); STUN and DTLS may be among them (RFC 6544 §10.1).
fn behind_length(bytes: &[u8]) -> Element {
    let [high, low, packet @ ..] = bytes else { return Element::More };
    let end = 2 + usize::from(u16::from_be_bytes([*high, *low]));
    match packet.first() {
        _ if end < 2 + usize::from(PACKET_LEN_MIN) => Element::Broken,
        // RTP and RTCP, STUN, DTLS, and channels of TURN (RFC 7983 §7).
        Some(0..=3 | 20..=63 | 64..=79 | 0x80..=0xbf) if bytes.len() >= end => {
            Element::Datagram { begin: 2, end, len: end }
        }
        None | Some(0..=3 | 20..=63 | 64..=79 | 0x80..=0xbf) => Element::More,
        Some(_) => Element::Broken,
    }
}

fn turn_message(bytes: &[u8]) -> Element {
    let Some(head) = bytes.first_chunk::<4>() else { return Element::More };
    match turn_protocol::message_len(head) {
        Some(len) if bytes.len() >= len => Element::Datagram { begin: 0, end: len, len },
        Some(_) => Element::More,
        None => Element::Broken,
    }
}

/// The value of Content-Length in a head.
fn content_length(head: &[u8]) -> Option<usize> {
    const NAME: &[u8] = b"content-length:";
    head.split(|byte| *byte == b'\n')
        .find(|line| line.get(..NAME.len()).is_some_and(|name| name.eq_ignore_ascii_case(NAME)))
        .and_then(|line| str::from_utf8(line.get(NAME.len()..)?).ok()?.trim().parse().ok())
}

/// Segments without a recognised framing after which a direction is skipped.
const TRIES_MAX: u32 = 16;
/// Bytes that are kept in case they begin a start line.
const PROBE_LEN_MAX: usize = 1_024;
/// Bytes needed to recognise a framing.
const RECOGNISED_LEN: usize = 10;
/// The shortest packet, an RTCP header with an SSRC.
const PACKET_LEN_MIN: u16 = 8;
/// The longest message of RTSP.
const TEXT_LEN_MAX: usize = 16 << 10;
/// Lost bytes that may fall within elements.
const LOST_MAX: usize = 64 << 10;

#[cfg(test)]
mod tests {
    use super::*;

    const OPTIONS: &str = "OPTIONS sip:a@h SIP/2.0\r\nVia: SIP/2.0/TCP h;branch=z9hG4bK1\r\nMax-Forwards: 70\r\n\
        From: <sip:a@h>;tag=1\r\nTo: <sip:a@h>\r\nCall-ID: c\r\nCSeq: 1 OPTIONS\r\nContent-Length: 0\r\n\r\n";

    /// What is read from `bytes` in pieces of some size: `m` for a message, `!` for a refused one, a datagram
    /// as its length.
    fn read(bytes: &[u8], piece: usize) -> String {
        let mut reader = TcpReader::default();
        let mut told = String::new();
        for chunk in bytes.chunks(piece) {
            let goes_on = reader.take(chunk, &mut |unit| match unit.kind {
                UnitKind::Datagram(bytes) => told.push_str(&format!("{} ", bytes.len())),
                UnitKind::Malformed => told.push('!'),
                UnitKind::Message(_) => told.push_str("m "),
            });
            if !goes_on {
                break;
            }
        }
        told
    }

    fn rtp(len: usize) -> Vec<u8> {
        let mut packet = vec![0x80, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 7];
        packet.resize(len, 0x55);
        packet
    }

    fn framed(head: &[u8], packet: &[u8]) -> Vec<u8> {
        [head, &(packet.len() as u16).to_be_bytes(), packet].concat()
    }

    #[test]
    fn what_a_direction_carries_whatever_its_pieces() {
        let stun = [&[0, 1, 0, 0, 0x21, 0x12, 0xa4, 0x42][..], &[7; 12]].concat();
        let channel = [&[0x40, 1][..], &172_u16.to_be_bytes(), &rtp(172)].concat();
        let rtsp = "RTSP/1.0 200 OK\r\nCSeq: 1\r\nContent-Length: 5\r\n\r\nv=0\r\n";
        let dollar = |channel| framed(&[b'$', channel], &rtp(60));
        let cases: [(&str, Vec<u8>, &str); 9] = [
            ("SIP", OPTIONS.repeat(3).into_bytes(), "m m m "),
            ("SIP with keep-alives", format!("\r\n\r\n{OPTIONS}\r\n\r\n{OPTIONS}").into_bytes(), "m m "),
            ("packets behind lengths", [framed(&[], &rtp(172)), framed(&[], &rtp(80))].concat(), "172 80 "),
            ("with STUN in front", [framed(&[], &stun), framed(&[], &rtp(80))].concat(), "20 80 "),
            ("STUN and channels", [stun.clone(), channel.clone()].concat(), "20 176 "),
            ("channels, joined late", channel.repeat(2), "176 176 "),
            ("RTSP", [rtsp.as_bytes(), &dollar(0), rtsp.as_bytes(), &dollar(1)].concat(), "60 60 "),
            ("interleaved, joined late", [dollar(2), dollar(3)].concat(), "60 60 "),
            ("HTTP", b"GET / HTTP/1.1\r\nHost: h\r\n\r\n".repeat(20), ""),
        ];
        for (name, bytes, expected) in cases {
            for piece in [1, 2, 3, 7, 64, 100_000] {
                assert_eq!(read(&bytes, piece), expected, "{name} in pieces of {piece}");
            }
        }
    }

    #[test]
    fn a_stream_is_found_again_behind_garbage() {
        let cases: [(&str, String, &str); 4] = [
            ("the end of a message first", format!("a=sendrecv\r\na=ptime:20\r\n{OPTIONS}"), "m "),
            ("garbage between", format!("{OPTIONS}\0\0\0 garbage\r\n{OPTIONS}"), "m !m "),
            ("no length", format!("{}{OPTIONS}", OPTIONS.replace("Content-Length: 0\r\n", "")), "!m "),
            ("only garbage", "\0\x01 nothing\r\n".repeat(9), ""),
        ];
        for (name, text, expected) in cases {
            assert_eq!(read(text.as_bytes(), 100_000), expected, "{name}");
        }
    }

    #[test]
    fn the_place_of_a_load_is_known() {
        let packets = [framed(&[], &rtp(172)), framed(&[], &rtp(80))].concat();
        for (bytes, ends) in
            [(OPTIONS.repeat(2).into_bytes(), [OPTIONS.len(), 2 * OPTIONS.len()]), (packets, [174, 256])]
        {
            for piece in [1, 60, 200, 100_000] {
                let (mut reader, mut taken, mut found) = (TcpReader::default(), 0, Vec::new());
                for chunk in bytes.chunks(piece) {
                    taken += chunk.len();
                    reader.take(chunk, &mut |unit| found.push(taken - unit.behind));
                }
                assert_eq!(found, ends, "in pieces of {piece}");
            }
        }
    }

    #[test]
    fn packets_go_on_behind_lost_bytes() {
        let mut reader = TcpReader::default();
        let mut told = Vec::new();
        let whole = [framed(&[], &rtp(172)), framed(&[], &rtp(80))].concat();
        let mut sink = |unit: Unit<'_>| {
            if let UnitKind::Datagram(bytes) = unit.kind {
                told.push(bytes.len());
            }
        };
        assert!(reader.take(&whole[..40], &mut sink));
        reader.lose(100, &mut sink);
        assert!(reader.take(&whole[140..], &mut sink));
        reader.lose(1 << 30, &mut sink);
        assert!(reader.take(&whole, &mut sink));
        assert_eq!((told, reader.held()), (vec![172, 80, 172, 80], 0));
    }

    #[test]
    fn other_protocols_are_given_up_and_hold_nothing() {
        let tls = [0x16, 3, 1, 2, 0, 1, 0, 1, 0xfc, 3, 3].repeat(400);
        let random: Vec<u8> = (0..40_000_u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
        for bytes in [tls, vec![0; 3_000], vec![b'A'; 100_000]] {
            let mut reader = TcpReader::default();
            let ended = bytes.chunks(100).any(|chunk| !reader.take(chunk, &mut |unit| panic!("{unit:?}")));
            assert!(ended && reader.held() == 0);
        }
        // Random numbers may occasionally look like a length; they give no message, and the memory is bounded.
        let mut reader = TcpReader::default();
        for chunk in random.chunks(100) {
            let mut sink = |unit: Unit<'_>| assert!(matches!(unit.kind, UnitKind::Datagram(_)), "{unit:?}");
            if !reader.take(chunk, &mut sink) {
                break;
            }
            assert!(reader.held() <= 66_000);
        }
    }
}
