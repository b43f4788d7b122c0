//! The RTP of a golden call: numbered packets at regular times, or those of a scenario.

use sidetone_media::simulate::{Codec, Content, Packet, Scenario, Simulation};
use sidetone_media::time::Micros;

use super::capture_builder::{CaptureBuilder, Plane};

/// Identical packets that one side sends.
#[derive(Clone, Copy, Debug)]
pub(super) struct Voice {
    pub(super) from_caller: bool,
    pub(super) ssrc: u32,
    pub(super) sequence: u16,
    pub(super) timestamp: u32,
    pub(super) payload_type: u8,
    pub(super) sound: Sound,
    /// Payload octets of one packet, and the timestamp step.
    pub(super) octets: u16,
    pub(super) ticks: u32,
    pub(super) begins_us: i64,
    pub(super) gap_us: i64,
    pub(super) packets: u32,
}

/// The content of the packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sound {
    /// Octets of a codec that is not decoded here.
    Coded,
    /// Digital silence of G.711 µ-law, with the smallest possible noise.
    Silence,
    /// A tone.
    Tone(Codec),
}

impl Voice {
    /// PCMU of the caller in packets of 20 ms, from the answer on.
    pub(super) const fn of_caller(packets: u32) -> Voice {
        Voice {
            from_caller: true,
            ssrc: 0x0001_0001,
            sequence: 1_000,
            timestamp: 160_000,
            payload_type: 0,
            sound: Sound::Tone(Codec::Pcmu),
            octets: 160,
            ticks: 160,
            begins_us: 10_000,
            gap_us: 20_000,
            packets,
        }
    }

    /// The same from the called party.
    pub(super) const fn of_called(packets: u32) -> Voice {
        Voice {
            from_caller: false,
            ssrc: 0x0002_0002,
            sequence: 5_000,
            timestamp: 800_000,
            begins_us: 15_000,
            ..Voice::of_caller(packets)
        }
    }

    /// A comfort noise packet every 200 ms: enough for the other direction of a long golden call.
    pub(super) const fn sparse(packets: u32) -> Voice {
        Voice {
            payload_type: 13,
            sound: Sound::Coded,
            octets: 1,
            ticks: 1_600,
            gap_us: 200_000,
            ..Voice::of_called(packets)
        }
    }

    /// Puts the packets on the capture, except those whose number is `lost`.
    pub(super) fn speak(&self, capture: &mut CaptureBuilder, lost: impl Fn(u32) -> bool) {
        for n in (0..self.packets).filter(|n| !lost(*n)) {
            let at_us = self.at_us(n);
            capture.push(at_us, Plane::Rtp, self.from_caller, self.packet(n));
        }
    }

    /// When packet number `n` passes; a few microseconds irregular, as on a real network.
    pub(super) fn at_us(&self, n: u32) -> i64 {
        self.begins_us + i64::from(n) * self.gap_us + i64::from(n * 37 % 150)
    }

    /// Packets that were sent by `at_us`.
    pub(super) fn sent_by(&self, at_us: i64) -> u32 {
        let sent = (at_us - self.begins_us).div_euclid(self.gap_us) + 1;
        u32::try_from(sent).unwrap_or(0).min(self.packets)
    }

    fn packet(&self, n: u32) -> Vec<u8> {
        let header = Packet {
            at: Micros(0),
            sequence: self.sequence.wrapping_add(n as u16),
            timestamp: self.timestamp.wrapping_add(n.wrapping_mul(self.ticks)),
            ssrc: self.ssrc,
            payload_type: self.payload_type,
            marker: n == 0,
            payload_len: self.octets,
            content: Content::Audio {
                codec: match self.sound {
                    Sound::Tone(codec) => codec,
                    Sound::Coded | Sound::Silence => Codec::Pcmu,
                },
                position: n.wrapping_mul(self.ticks),
            },
        };
        let mut datagram = Vec::with_capacity(usize::from(self.octets) + 12);
        header.write(&mut datagram);
        match self.sound {
            Sound::Tone(_) => {}
            Sound::Coded => datagram.iter_mut().skip(12).enumerate().for_each(|(place, octet)| {
                *octet = (n.wrapping_mul(31).wrapping_add(place as u32 * 7) >> 1) as u8;
            }),
            Sound::Silence => datagram.iter_mut().skip(12).enumerate().for_each(|(place, octet)| {
                *octet = if (place as u32 + n).is_multiple_of(11) { 0x7f } else { 0xff };
            }),
        }
        datagram
    }
}

/// Puts the packets of a scenario on the capture, as the caller's; false when its text is not a scenario.
pub(super) fn simulate(capture: &mut CaptureBuilder, text: &str) {
    let Ok(scenario) = text.parse::<Scenario>() else {
        debug_assert!(false, "no scenario: {text}");
        return;
    };
    let mut datagram = Vec::new();
    for packet in Simulation::new(&scenario) {
        packet.write(&mut datagram);
        capture.push(packet.at.0 + 10_000, Plane::Rtp, true, datagram.clone());
    }
}
