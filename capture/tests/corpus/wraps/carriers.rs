//! UDP, TCP, and the framings of datagrams within them.

use std::collections::HashMap;
use std::net::SocketAddr;

use sidetone_media::time::Micros;

use super::layers::{self, Packet};

/// One message or packet from one party to another.
#[derive(Clone, Debug)]
pub(crate) struct Payload {
    pub(crate) at: Micros,
    pub(crate) source: SocketAddr,
    pub(crate) destination: SocketAddr,
    pub(crate) bytes: Vec<u8>,
}

impl Payload {
    fn is_sip(&self) -> bool {
        self.bytes[0].is_ascii_uppercase()
    }
}

/// The transport of payloads; SIP is plain in TCP in every variant that uses TCP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Carrier {
    /// Media in messages of a TURN channel.
    Channels,
    /// Media in DATA indications of TURN.
    Indications,
    /// SIP in TCP, media in UDP.
    SipTcp,
    /// All in TCP, media in messages of a TURN channel.
    TcpChannels,
    /// All in TCP, media interleaved with the text of RTSP.
    TcpInterleaved,
    /// All in TCP, media with a length prefix.
    TcpLengths,
    Udp,
}

pub(crate) const CARRIERS: [Carrier; 7] = [
    Carrier::Udp,
    Carrier::SipTcp,
    Carrier::TcpLengths,
    Carrier::TcpInterleaved,
    Carrier::TcpChannels,
    Carrier::Channels,
    Carrier::Indications,
];

/// How the TCP stream is cut into segments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cut {
    /// The second half before the first.
    Backwards,
    /// In segments of one byte.
    Bytes,
    /// In segments that overlap the previous ones.
    Overlapping,
    /// In segments of 100 bytes, each of them twice.
    Twice,
    Whole,
    /// Without a handshake.
    WithoutSyn,
}

impl Cut {
    pub(crate) const ALL: [Cut; 6] =
        [Cut::Whole, Cut::WithoutSyn, Cut::Bytes, Cut::Twice, Cut::Backwards, Cut::Overlapping];

    /// The begin and end of each segment.
    fn spans(self, len: usize) -> Vec<(usize, usize)> {
        let pieces = |size: usize| (0..len).step_by(size).map(move |at| (at, (at + size).min(len)));
        match self {
            Cut::Backwards => pieces(len.div_ceil(3).max(1)).rev().collect(),
            // Only the first 40 bytes are sent singly; a complete call in single bytes would be too many segments.
            Cut::Bytes => {
                (0..len.min(40)).map(|at| (at, at + 1)).chain((len > 40).then_some((40, len))).collect()
            }
            Cut::Overlapping => pieces(90).map(|(begin, end)| (begin.saturating_sub(37), end)).collect(),
            Cut::Twice => pieces(100).flat_map(|span| [span, span]).collect(),
            Cut::Whole | Cut::WithoutSyn => vec![(0, len)],
        }
    }
}

pub(crate) fn packets(payloads: &[Payload], carrier: Carrier, cut: Cut) -> Vec<Packet> {
    let mut out = Vec::new();
    let mut sequences: HashMap<(SocketAddr, SocketAddr), u32> = HashMap::new();
    for payload in payloads {
        let ends = (payload.source, payload.destination);
        let is_in_tcp = match carrier {
            Carrier::Udp | Carrier::Channels | Carrier::Indications => false,
            Carrier::SipTcp => payload.is_sip(),
            Carrier::TcpChannels | Carrier::TcpInterleaved | Carrier::TcpLengths => true,
        };
        let bytes = if payload.is_sip() { payload.bytes.clone() } else { frame(carrier, &payload.bytes) };
        if !is_in_tcp {
            out.push(layers::udp(payload.at, ends, &bytes));
            continue;
        }
        let mut head = Vec::new();
        let sequence = sequences.entry(ends).or_insert_with(|| {
            if cut != Cut::WithoutSyn {
                out.push(layers::tcp(payload.at, ends, START.wrapping_sub(1), true, b""));
            }
            if !payload.is_sip() {
                head = greeting(carrier);
            }
            START
        });
        let bytes = [head, bytes].concat();
        for (begin, end) in cut.spans(bytes.len()) {
            out.push(layers::tcp(
                payload.at,
                ends,
                sequence.wrapping_add(begin as u32),
                false,
                &bytes[begin..end],
            ));
        }
        *sequence = sequence.wrapping_add(bytes.len() as u32);
    }
    out
}

/// The first bytes of a connection that carries media.
fn greeting(carrier: Carrier) -> Vec<u8> {
    match carrier {
        Carrier::TcpChannels => [&[0, 1, 0, 0, 0x21, 0x12, 0xa4, 0x42][..], &[5; 12]].concat(),
        Carrier::TcpInterleaved => b"RTSP/1.0 200 OK\r\nCSeq: 3\r\nContent-Length: 2\r\n\r\nok".to_vec(),
        _ => Vec::new(),
    }
}

fn frame(carrier: Carrier, bytes: &[u8]) -> Vec<u8> {
    let len = (bytes.len() as u16).to_be_bytes();
    match carrier {
        Carrier::Channels => [&[0x40, 0x01][..], &len, bytes].concat(),
        Carrier::Indications => {
            let padding = vec![0; bytes.len().next_multiple_of(4) - bytes.len()];
            let attributes =
                [&[0, 0x12, 0, 8, 0, 1, 2, 3, 4, 5, 6, 7, 0, 0x13][..], &len, bytes, &padding].concat();
            let total = (attributes.len() as u16).to_be_bytes();
            [&[0, 0x17][..], &total, &[0x21, 0x12, 0xa4, 0x42], &[9; 12], &attributes].concat()
        }
        Carrier::TcpChannels => {
            let padding = vec![0; bytes.len().next_multiple_of(4) - bytes.len()];
            [&[0x40, 0x01][..], &len, bytes, &padding].concat()
        }
        Carrier::TcpInterleaved => [&[b'$', 0][..], &len, bytes].concat(),
        Carrier::TcpLengths => [&len[..], bytes].concat(),
        Carrier::SipTcp | Carrier::Udp => bytes.to_vec(),
    }
}

/// The first sequence number; it wraps within the first message.
const START: u32 = u32::MAX - 20;
