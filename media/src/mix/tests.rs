//! A mix in simulated time: who hears whom, told apart by the frequencies of their tones.

use super::*;
use crate::codec::{Codec, Decoder, Encoder};
use crate::rtp::{Packet, RtpPacket};
use crate::time::Micros;

/// A seat's party: it says a tone and keeps what it hears.
struct Party {
    key: SeatKey,
    codec: Codec,
    encoder: Encoder,
    decoder: Decoder,
    tone_hz: f64,
    amplitude: f64,
    said: u32,
    sequence: u16,
    heard: Vec<i16>,
    headers: Vec<Packet>,
}

impl Party {
    fn new(key: u64, codec: Codec, tone_hz: f64) -> Party {
        Party {
            key: SeatKey(key),
            codec,
            encoder: Encoder::new(codec).unwrap(),
            decoder: Decoder::new(codec).unwrap(),
            tone_hz,
            amplitude: 2_500.0,
            said: 0,
            sequence: 7,
            heard: Vec::new(),
            headers: Vec::new(),
        }
    }

    fn seat(&self) -> Seat {
        Seat { formats: formats(self.codec), muted: false, hears: Hears::Mix, seed: self.key.0 }
    }

    /// The next 20 ms of its tone as a packet.
    fn says(&mut self) -> (Packet, Vec<u8>) {
        let rate = self.codec.sample_rate_hz();
        let samples = rate / 50;
        let pcm: Vec<i16> = (0..samples)
            .map(|n| {
                let time = f64::from(self.said * samples + n) / f64::from(rate);
                (self.amplitude * (std::f64::consts::TAU * self.tone_hz * time).sin()).round() as i16
            })
            .collect();
        let mut payload = vec![0; 2_000];
        let len = self.encoder.encode(&pcm, &mut payload).unwrap();
        payload.truncate(len);
        let packet = Packet {
            ssrc: 1,
            timestamp: self.said * self.codec.rtp_clock().hz() / 50,
            payload_len: len as u32,
            sequence: self.sequence,
            payload_type: 96,
            marker: self.said == 0,
        };
        self.said += 1;
        self.sequence = self.sequence.wrapping_add(1);
        (packet, payload)
    }

    fn hears(&mut self, datagram: &[u8]) {
        let packet = Packet::parse(datagram).unwrap();
        let mut pcm = [0; 5_760];
        let count = self.decoder.decode(&datagram[12..], &mut pcm).unwrap();
        self.heard.extend_from_slice(&pcm[..count]);
        self.headers.push(packet);
    }

    /// The level of `hz` in the last `ms`, as an amplitude.
    fn amplitude_of(&self, hz: f64, ms: usize) -> f64 {
        let rate = self.codec.sample_rate_hz() as usize;
        goertzel(&self.heard[self.heard.len() - rate * ms / 1_000..], hz, rate as f64)
    }
}

fn formats(codec: Codec) -> Formats {
    Formats {
        receive: vec![(96, codec)],
        send: (96, codec),
        event_receive: Some(101),
        event_send: Some(101),
        noise_receive: Vec::new(),
        ptime_ms: 20,
        hears: true,
        speaks: true,
    }
}

/// The amplitude of one frequency.
fn goertzel(pcm: &[i16], hz: f64, rate_hz: f64) -> f64 {
    let (mut sine, mut cosine) = (0.0, 0.0);
    for (n, sample) in pcm.iter().enumerate() {
        let angle = std::f64::consts::TAU * hz * n as f64 / rate_hz;
        sine += f64::from(*sample) * angle.sin();
        cosine += f64::from(*sample) * angle.cos();
    }
    2.0 * sine.hypot(cosine) / pcm.len() as f64
}

/// A mix and its parties, 20 ms at a time.
struct Room {
    mix: Mix,
    parties: Vec<Party>,
    now: Micros,
}

impl Room {
    fn new(parties: Vec<Party>) -> Room {
        let mut mix = Mix::new();
        for party in &parties {
            mix.seat(party.key, party.seat()).unwrap();
        }
        Room { mix, parties, now: Micros(1_000_000) }
    }

    fn play(&mut self, ms: usize) {
        for _ in 0..ms / 20 {
            for party in &mut self.parties {
                let (packet, payload) = party.says();
                let packet = RtpPacket { header: packet, payload: &payload };
                self.mix.receive(self.now, party.key, &packet);
            }
            self.now = self.now + 20_000;
            while self.mix.next_tick().is_some_and(|next| next <= self.now) {
                self.mix.tick(self.now);
                while let Some((key, datagram)) = self.mix.poll_packet() {
                    let party = self.parties.iter_mut().find(|party| party.key == key).unwrap();
                    party.hears(datagram);
                }
            }
        }
    }
}

#[test]
fn each_hears_exactly_the_others() {
    let tones = [400.0, 600.0, 900.0, 1_300.0, 1_900.0, 2_500.0];
    let fullband = Codec::L16 { rate_hz: 48_000, channels: 1 };
    let codecs = [Codec::Pcmu, Codec::Pcma, Codec::G722, Codec::Pcmu, fullband, Codec::Opus];
    let parties = (1..).zip(codecs).zip(tones).map(|((key, codec), hz)| Party::new(key, codec, hz));
    let mut room = Room::new(parties.collect());
    room.play(2_000);
    for party in &room.parties {
        for hz in tones {
            let level = 20.0 * (party.amplitude_of(hz, 1_000) / 2_500.0).log10();
            if hz == party.tone_hz {
                assert!(level < -40.0, "{:?} hears itself at {level:.1} dB", party.key);
            } else {
                let off = if party.codec == Codec::Opus { 2.0 } else { 1.0 };
                assert!(level.abs() < off, "{:?} hears {hz} Hz at {level:.1} dB", party.key);
            }
        }
    }
}
