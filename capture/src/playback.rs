//! Decodes the audio of streams as a phone plays it, when a capture is read a second time.
//!
//! All streams of a call begin at the same time, so the audio files of one call have the same time axis. The
//! playout conceals and drops what a phone at the capture point would conceal and drop. Packets in fragments,
//! TCP and TURN are found in the same way as by the analysis.

use std::collections::HashMap;
use std::net::SocketAddr;

use sidetone_media::codec::Codec;
use sidetone_media::pcap::{Content, Datagram, Record, dissect};
use sidetone_media::playout::{Playout, PlayoutFormats};
use sidetone_media::rtp::RtpPacket;
use sidetone_media::time::{ClockRate, Micros};

use super::excerpt::{Excerpt, ExcerptStream};
use super::reassembly::{Arrival, Reassembly};
use super::turn_protocol;

/// The streams that are decoded.
///
/// *Bounds*: each stream holds one playout, some tens of kilobytes, and the samples that were not taken yet.
#[derive(Debug)]
pub struct Playback {
    players: Vec<Player>,
    by_stream: HashMap<(SocketAddr, SocketAddr, u32), usize>,
    /// Fragments and segments that wait for the others.
    reassembly: Reassembly,
    /// The players that the last frame had packets for.
    touched: Vec<usize>,
}

/// One stream being decoded.
#[derive(Debug)]
struct Player {
    playout: Playout,
    rate_hz: u32,
    codec: Codec,
    formats: PlayoutFormats,
    /// Whether the audio has a dynamic payload type whose number is not known yet.
    is_dynamic: bool,
    next: Micros,
    end: Micros,
    has_audio: bool,
    /// Samples as bytes, little-endian.
    samples: Vec<u8>,
}

impl Playback {
    /// Decodes the streams of these excerpts whose codec is supported; [`Playback::player`] returns the
    /// player of each.
    pub fn new(excerpts: &[Excerpt]) -> Self {
        let (mut players, mut by_stream) = (Vec::new(), HashMap::new());
        for excerpt in excerpts {
            for stream in &excerpt.streams {
                let Some(player) = Player::new(excerpt, stream) else { continue };
                by_stream.insert((stream.source, stream.destination, stream.ssrc), players.len());
                players.push(player);
            }
        }
        Playback { players, by_stream, reassembly: Reassembly::default(), touched: Vec::new() }
    }

    /// Returns the player of a stream; `None` when its codec is not supported.
    pub fn player(&self, stream: &ExcerptStream) -> Option<usize> {
        self.by_stream.get(&(stream.source, stream.destination, stream.ssrc)).copied()
    }

    /// Takes a frame; returns the players that have more samples now.
    pub fn record(&mut self, record: &Record<'_>) -> &[usize] {
        self.touched.clear();
        match dissect(record.link, record.frame) {
            Content::Udp(datagram) => self.datagram(record.at, &datagram),
            Content::Fragment | Content::Head(_) => {
                self.reassemble(|reassembly, sink| reassembly.fragment(record, sink));
            }
            Content::Tcp(segment) => {
                self.reassemble(|reassembly, sink| reassembly.segment(record.at, &segment, sink))
            }
            Content::NotIp | Content::Other | Content::Truncated => {}
        }
        &self.touched
    }

    /// Takes the end of the capture: packets that still wait for fragments or segments are read as far as
    /// possible.
    pub fn end(&mut self) {
        self.reassemble(Reassembly::finish);
    }

    /// Passes a frame to the reassembly, and takes the datagrams that it completes.
    fn reassemble(&mut self, take: impl FnOnce(&mut Reassembly, &mut dyn FnMut(Micros, Arrival<'_>))) {
        let mut reassembly = std::mem::take(&mut self.reassembly);
        take(&mut reassembly, &mut |at, arrival| {
            if let Arrival::Datagram(datagram) = arrival {
                self.datagram(at, &datagram);
            }
        });
        self.reassembly = reassembly;
    }

    fn datagram(&mut self, at: Micros, datagram: &Datagram<'_>) {
        // Relayed data is not unpacked again, whatever it looks like.
        if !self.packet(at, datagram)
            && let Some((payload, payload_len)) = turn_protocol::relayed(datagram.payload)
        {
            self.packet(at, &Datagram { payload, payload_len, ..*datagram });
        }
    }

    /// Takes a datagram; returns false when it is not a packet of a decoded stream.
    fn packet(&mut self, at: Micros, datagram: &Datagram<'_>) -> bool {
        let Ok(packet) = RtpPacket::parse(datagram.payload) else { return false };
        let key = (datagram.source, datagram.destination, packet.header.ssrc);
        let Some(place) = self.by_stream.get(&key).copied() else { return false };
        // A truncated payload cannot be decoded.
        if datagram.payload.len() == datagram.payload_len
            && let Some(player) = self.players.get_mut(place)
        {
            player.packet(at, &packet);
            if !self.touched.contains(&place) {
                self.touched.push(place);
            }
        }
        true
    }

    /// The rate of a player's samples in Hz.
    pub fn rate_hz(&self, player: usize) -> u32 {
        self.players.get(player).map_or(0, |player| player.rate_hz)
    }

    /// Returns the samples of a player since the last call: mono, 16 bits, little-endian.
    pub fn samples(&mut self, player: usize) -> Vec<u8> {
        self.players.get_mut(player).map(|player| std::mem::take(&mut player.samples)).unwrap_or_default()
    }

    /// Bytes of samples that a player holds.
    pub fn held(&self, player: usize) -> usize {
        self.players.get(player).map_or(0, |player| player.samples.len())
    }

    /// Whether a packet of a player was decoded.
    pub fn has_audio(&self, player: usize) -> bool {
        self.players.get(player).is_some_and(|player| player.has_audio)
    }

    /// Plays one more minute of a stream; returns false after the end of its call.
    pub fn play_on(&mut self, player: usize) -> bool {
        let Some(player) = self.players.get_mut(player) else { return false };
        let end = player.end + TAIL_US;
        let minute = player.next + MINUTE_US;
        player.play_until(end.min(minute));
        minute < end
    }
}

impl Player {
    fn new(excerpt: &Excerpt, stream: &ExcerptStream) -> Option<Self> {
        let codec = codec_of(stream.codec.as_deref()?)?;
        let mut audio: Vec<(u8, Codec)> = STATIC.into_iter().collect();
        let is_dynamic = !audio.iter().any(|(_, known)| *known == codec);
        audio.retain(|(_, known)| known.sample_rate_hz() <= codec.sample_rate_hz());
        let rate_hz = codec.sample_rate_hz();
        let formats = PlayoutFormats { audio, noise: vec![13, 19], rate_hz: Some(rate_hz) };
        let (first, last) = excerpt.media;
        Some(Player {
            playout: Playout::new(&formats, u64::from(stream.ssrc)),
            rate_hz,
            codec,
            formats,
            is_dynamic,
            next: first,
            end: last.min(first + LONGEST_US),
            has_audio: false,
            samples: Vec::new(),
        })
    }

    fn packet(&mut self, at: Micros, packet: &RtpPacket<'_>) {
        self.play_until(at.min(self.end + TAIL_US));
        let number = packet.header.payload_type;
        // The first dynamic type with a payload longer than a telephone event (RFC 4733 §2.3: four bytes) is
        // the audio.
        if self.is_dynamic && number >= FIRST_DYNAMIC && packet.payload.len() != EVENT_LEN {
            self.is_dynamic = false;
            self.formats.audio.push((number, self.codec));
            self.playout.set_formats(&self.formats);
        }
        self.playout.push(at, packet);
        self.has_audio |= self.formats.audio.iter().any(|(known, _)| *known == number);
    }

    /// Plays 20 ms at a time.
    fn play_until(&mut self, at: Micros) {
        let mut pcm = [0_i16; FRAME_SAMPLES_MAX];
        // Each turn plays 20 ms, of which a call has a bounded number.
        while self.next < at {
            let samples = self.playout.frame_samples().min(FRAME_SAMPLES_MAX);
            let frame = pcm.get_mut(..samples).unwrap_or_default();
            self.playout.pull(self.next, frame);
            self.samples.extend(frame.iter().flat_map(|sample| sample.to_le_bytes()));
            self.next = self.next + TICK_US;
        }
    }
}

/// Returns the codec of an encoding name, if it is supported.
fn codec_of(name: &str) -> Option<Codec> {
    [ClockRate::HZ_8000, ClockRate::HZ_48000]
        .into_iter()
        .find_map(|clock| Codec::find(name, clock, 1))
        .filter(|codec| !matches!(codec, Codec::L16 { .. }))
}

/// Payload types that need no announcement (RFC 3551 §6).
const STATIC: [(u8, Codec); 3] = [(0, Codec::Pcmu), (8, Codec::Pcma), (9, Codec::G722)];
const FIRST_DYNAMIC: u8 = 96;
const EVENT_LEN: usize = 4;
const TICK_US: i64 = 20_000;
/// 20 ms at 48 kHz.
const FRAME_SAMPLES_MAX: usize = 960;
/// Time after the end of a call in which waiting packets are played.
const TAIL_US: i64 = 300_000;
const MINUTE_US: i64 = 60_000_000;
/// The longest audio of a stream: 12 hours.
const LONGEST_US: i64 = 12 * 3_600 * 1_000_000;

#[cfg(test)]
mod tests {
    use sidetone_media::pcap::Records;
    use sidetone_media::simulate::Scenario;

    use super::super::{EngineOptions, Groups, Source, compose, read_parts};
    use super::*;

    /// The duration in ms and the loudness of each stream of a simulated call.
    fn heard(text: &str) -> Vec<(Option<&'static str>, usize, i64)> {
        let mut file = Vec::new();
        compose(&text.parse::<Scenario>().unwrap(), &mut file).unwrap();
        let read = read_parts(EngineOptions::default(), "x", Source::Stream(&mut &file[..]), &mut |_, _| {});
        let excerpts: Vec<Excerpt> = Groups::from(read.parts).map(|group| Excerpt::of(&group)).collect();
        let mut playback = Playback::new(&excerpts);
        for record in Records::new(&file).map(Result::unwrap) {
            playback.record(&record);
        }
        let streams = excerpts.iter().flat_map(|excerpt| &excerpt.streams);
        let mut out = Vec::new();
        for stream in streams {
            let player = playback.player(stream).unwrap();
            assert!(playback.has_audio(player), "{text}");
            while playback.play_on(player) {}
            let samples = playback.samples(player);
            let peak =
                samples.chunks_exact(2).map(|pair| i64::from(i16::from_le_bytes([pair[0], pair[1]]).abs()));
            let ms = samples.len() * 500 / playback.rate_hz(player) as usize;
            out.push((stream.direction, ms, peak.max().unwrap()));
        }
        out
    }

    #[test]
    fn both_directions_are_decoded_and_in_step() {
        for codec in ["pcmu", "pcma", "g722", "opus"] {
            let heard = heard(&format!("lossy duration=3s answer=1s codec={codec}"));
            let directions: Vec<_> = heard.iter().map(|(direction, ..)| *direction).collect();
            assert_eq!(directions, [Some("from_caller"), Some("to_caller")], "{codec}");
            assert_eq!(heard[0].1, heard[1].1, "{codec}: both files are as long as the call");
            assert!((3_000..3_600).contains(&heard[0].1), "{codec}: {heard:?}");
        }
    }

    #[test]
    fn what_is_not_decoded_here_has_no_player() {
        for name in ["G729", "iLBC", "speex", "L16", ""] {
            assert_eq!(codec_of(name), None, "{name}");
        }
        assert_eq!((codec_of("PCMA"), codec_of("OPUS")), (Some(Codec::Pcma), Some(Codec::Opus)));
    }
}
