//! Parties that send tones and keep what they hear, and their room.

use std::sync::Arc;

use sidetone_media::audio::clip::Clip;
use sidetone_media::codec::{Codec, Decoder, Encoder};
use sidetone_media::mix::{Formats, Hears, Mix, MixCommand, MixEvent, Seat, SeatCommand, SeatKey};
use sidetone_media::rtp::{Packet, RtpPacket};
use sidetone_media::time::Micros;

/// The amplitude of a tone: -22 dBov.
pub(crate) const LOUD: f64 = 2_500.0;
/// Full-band PCM.
pub(crate) const L16: Codec = Codec::L16 { rate_hz: 48_000, channels: 1 };

/// A party: it sends a tone, 20 ms per packet, and keeps what it hears.
pub(crate) struct Party {
    pub(crate) key: SeatKey,
    pub(crate) codec: Codec,
    encoder: Encoder,
    decoder: Decoder,
    /// Its tone; `None` for silence, for which packets are sent too.
    pub(crate) tone: Option<(f64, f64)>,
    /// A second tone.
    beside: Option<f64>,
    /// Whether it sends packets at all.
    pub(crate) sends: bool,
    said: u32,
    sequence: u16,
    /// All PCM that it heard.
    pub(crate) heard: Vec<i16>,
    /// The header of each packet, how long it was in ms, and when it was sent.
    pub(crate) packets: Vec<(Packet, usize, Micros)>,
}

impl Party {
    pub(crate) fn new(key: u64, codec: Codec, hz: f64) -> Party {
        Party {
            key: SeatKey(key),
            codec,
            encoder: Encoder::new(codec).unwrap(),
            decoder: Decoder::new(codec).unwrap(),
            tone: Some((hz, LOUD)),
            beside: None,
            sends: true,
            said: 0,
            sequence: 65_530,
            heard: Vec::new(),
            packets: Vec::new(),
        }
    }

    pub(crate) fn silent(key: u64, codec: Codec) -> Party {
        Party { tone: None, ..Party::new(key, codec, 0.0) }
    }

    /// The same party with this amplitude.
    pub(crate) fn at(mut self, amplitude: f64) -> Party {
        self.tone = self.tone.map(|(hz, _)| (hz, amplitude));
        self
    }

    /// The same party with a second tone.
    pub(crate) fn with(mut self, hz: f64) -> Party {
        self.beside = Some(hz);
        self
    }

    pub(crate) fn seat(&self) -> Seat {
        Seat { formats: formats(self.codec), muted: false, hears: Hears::Mix, seed: self.key.0 }
    }

    /// Sends another codec from now on.
    pub(crate) fn changes_to(&mut self, codec: Codec) {
        self.codec = codec;
        self.encoder = Encoder::new(codec).unwrap();
        self.decoder = Decoder::new(codec).unwrap();
        self.heard.clear();
    }

    /// The next 20 ms that it sends.
    pub(crate) fn says(&mut self) -> (Packet, Vec<u8>) {
        let rate = self.codec.sample_rate_hz();
        let samples = rate / 50;
        let (hz, amplitude) = self.tone.unwrap_or((1_000.0, 0.0));
        let pcm: Vec<i16> = (0..samples)
            .map(|n| {
                let time = f64::from(self.said * samples + n) / f64::from(rate);
                let tone = |hz: f64| amplitude * (std::f64::consts::TAU * hz * time).sin();
                (tone(hz) + self.beside.map_or(0.0, tone)).round() as i16
            })
            .collect();
        self.speaks(&pcm)
    }

    /// These samples as a packet.
    pub(crate) fn speaks(&mut self, pcm: &[i16]) -> (Packet, Vec<u8>) {
        let mut payload = vec![0; 2_000];
        let len = self.encoder.encode(pcm, &mut payload).unwrap();
        payload.truncate(len);
        let packet = Packet {
            ssrc: 0x0a0a,
            timestamp: self.said.wrapping_mul(self.codec.rtp_clock().hz() / 50),
            payload_len: u32::try_from(len).unwrap(),
            sequence: self.sequence,
            payload_type: AUDIO,
            marker: self.said == 0,
        };
        self.said += 1;
        self.sequence = self.sequence.wrapping_add(1);
        (packet, payload)
    }

    fn hears(&mut self, datagram: &[u8], now: Micros) {
        let read = RtpPacket::parse(datagram).unwrap();
        let mut pcm = [0; 5_760];
        let count = self.decoder.decode(read.payload, &mut pcm).unwrap();
        self.heard.extend_from_slice(&pcm[..count]);
        let ms = count * 1_000 / self.codec.sample_rate_hz() as usize;
        self.packets.push((read.header, ms, now));
    }

    /// The last `ms` that it heard.
    pub(crate) fn lately(&self, ms: usize) -> &[i16] {
        let samples = self.codec.sample_rate_hz() as usize * ms / 1_000;
        &self.heard[self.heard.len() - samples..]
    }

    /// How loud `hz` was in the last `ms`, in dB of [`LOUD`].
    pub(crate) fn level_of(&self, hz: f64, ms: usize) -> f64 {
        20.0 * (amplitude(self.lately(ms), hz, self.codec.sample_rate_hz()) / LOUD).max(1e-6).log10()
    }

    /// The largest difference of two samples that follow each other, in the last `ms`.
    pub(crate) fn largest_step(&self, ms: usize) -> i32 {
        self.lately(ms).windows(2).map(|pair| (i32::from(pair[0]) - i32::from(pair[1])).abs()).max().unwrap()
    }
}

/// The SDP result for a party with one codec.
pub(crate) fn formats(codec: Codec) -> Formats {
    Formats {
        receive: vec![(AUDIO, codec)],
        send: (AUDIO, codec),
        event_receive: Some(EVENT),
        event_send: Some(EVENT),
        noise_receive: vec![NOISE],
        ptime_ms: 20,
        hears: true,
        speaks: true,
    }
}

/// The amplitude of one frequency.
pub(crate) fn amplitude(pcm: &[i16], hz: f64, rate_hz: u32) -> f64 {
    let (mut sine, mut cosine) = (0.0, 0.0);
    for (n, sample) in pcm.iter().enumerate() {
        let angle = std::f64::consts::TAU * hz * n as f64 / f64::from(rate_hz);
        sine += f64::from(*sample) * angle.sin();
        cosine += f64::from(*sample) * angle.cos();
    }
    2.0 * sine.hypot(cosine) / pcm.len() as f64
}

/// A clip with a tone of [`LOUD`].
pub(crate) fn clip(hz: f64, ms: usize) -> Arc<Clip> {
    let tone = |n: usize| (LOUD * (std::f64::consts::TAU * hz * n as f64 / 16_000.0).sin()) as i16;
    Arc::new(Clip::new((0..16 * ms).map(tone).collect::<Vec<i16>>()))
}

/// A mix and its parties, 20 ms at a time. Packets arrive 7 ms before a tick.
pub(crate) struct Room {
    pub(crate) mix: Mix,
    pub(crate) parties: Vec<Party>,
    pub(crate) events: Vec<(Micros, MixEvent)>,
    pub(crate) now: Micros,
}

impl Room {
    pub(crate) fn new(parties: Vec<Party>) -> Room {
        let mut room =
            Room { mix: Mix::new(), parties: Vec::new(), events: Vec::new(), now: Micros(1_000_000) };
        for party in parties {
            let seat = party.seat();
            room.join(party, seat);
        }
        room
    }

    pub(crate) fn join(&mut self, party: Party, seat: Seat) {
        self.mix.seat(party.key, seat).unwrap();
        self.parties.push(party);
    }

    pub(crate) fn order(&mut self, key: u64, command: SeatCommand) {
        self.mix.command(SeatKey(key), command).unwrap();
    }

    pub(crate) fn order_all(&mut self, command: MixCommand) {
        self.mix.mix_command(command);
    }

    pub(crate) fn party(&mut self, key: u64) -> &mut Party {
        self.parties.iter_mut().find(|party| party.key == SeatKey(key)).unwrap()
    }

    /// Lets time pass; parties send their tones.
    pub(crate) fn play(&mut self, ms: usize) {
        for _ in 0..ms / 20 {
            for party in self.parties.iter_mut().filter(|party| party.sends) {
                let (header, payload) = party.says();
                self.mix.receive(self.now, party.key, &RtpPacket { header, payload: &payload });
            }
            self.tick();
        }
    }

    /// Lets 20 ms pass without packets.
    pub(crate) fn tick(&mut self) {
        self.now = self.now + 7_000;
        self.drain();
        self.now = self.now + 13_000;
    }

    /// Runs the ticks that are due now.
    pub(crate) fn drain(&mut self) {
        while self.mix.next_tick().is_some_and(|next| next <= self.now) {
            self.mix.tick(self.now);
            while let Some((key, datagram)) = self.mix.poll_packet() {
                if let Some(party) = self.parties.iter_mut().find(|party| party.key == key) {
                    party.hears(datagram, self.now);
                }
            }
        }
        while let Some(event) = self.mix.poll_event() {
            self.events.push((self.now, event));
        }
    }
}

pub(crate) const AUDIO: u8 = 96;
pub(crate) const EVENT: u8 = 101;
const NOISE: u8 = 13;
