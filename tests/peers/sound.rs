//! Audio files for the phones: a capture of G.711 A-law for sipp, a wave file for baresip.

use std::f64::consts::TAU;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::net::SocketAddr;
use std::path::Path;

use sidetone_media::pcap::{LinkType, Writer};
use sidetone_media::time::Micros;

/// Writes a capture of `packets` RTP packets of PCMA, 20 ms each and sent every 20 ms.
pub fn write_capture(path: &Path, packets: u16) {
    let addresses: [SocketAddr; 2] = ["192.0.2.1:4000".parse().unwrap(), "192.0.2.2:4000".parse().unwrap()];
    let mut writer = Writer::new(Vec::new(), LinkType::ETHERNET).unwrap();
    for number in 0..packets {
        let timestamp = u32::from(number) * 160;
        let mut packet = vec![0x80, if number == 0 { 0x88 } else { 0x08 }];
        packet.extend(number.wrapping_add(1_000).to_be_bytes());
        packet.extend(timestamp.to_be_bytes());
        packet.extend(0x51DE_70FE_u32.to_be_bytes());
        // 500 Hz: sixteen A-law samples a period, of one level and alternating sign.
        packet.extend((0..160).map(|sample| if sample / 8 % 2 == 0 { 0xA5_u8 } else { 0x25 }));
        let at = Micros(1_000_000_000 + i64::from(number) * 20_000);
        writer.write_udp(at, addresses[0], addresses[1], &packet).unwrap();
    }
    std::fs::write(path, writer.finish().unwrap()).unwrap();
}

/// Writes a wave file of `seconds` at 8,000 Hz, one channel of 16 bits.
pub fn write_wave(path: &Path, seconds: u32) {
    write_samples(path, seconds, |n| if n / 8 % 2 == 0 { 4_000 } else { -4_000 });
}

/// The same with a sine of that frequency.
pub fn write_tone(path: &Path, seconds: u32, hz: f64) {
    let sample = |n: u32| (6_000.0 * (f64::from(n % 8_000) * hz / 8_000.0 * TAU).sin()) as i16;
    write_samples(path, seconds, sample);
}

/// The level of each frequency at the end of a phone's growing recording, whose header is not written yet: the
/// amplitude of a sine, over the last 400 ms. `None` while there is less.
pub fn at_the_end(path: &Path, rate_hz: u32, frequencies: &[f64]) -> Option<Vec<f64>> {
    let samples = rate_hz as usize * 2 / 5;
    let mut file = File::open(path).ok()?;
    let whole = file.metadata().ok()?.len() / 2 * 2;
    let begin = whole.checked_sub(samples as u64 * 2).filter(|begin| *begin >= 44)?;
    file.seek(SeekFrom::Start(begin)).ok()?;
    let mut bytes = vec![0; samples * 2];
    file.read_exact(&mut bytes).ok()?;
    let pcm = bytes.chunks_exact(2).map(|pair| f64::from(i16::from_le_bytes([pair[0], pair[1]])));
    let pcm: Vec<f64> = pcm.collect();
    let amplitude = |hz: &f64| {
        let turn = hz / f64::from(rate_hz) * TAU;
        let angles = (0..samples).map(|n| n as f64 * turn);
        let (sine, cosine) = pcm.iter().zip(angles).fold((0.0, 0.0), |(sine, cosine), (sample, angle)| {
            (sine + sample * angle.sin(), cosine + sample * angle.cos())
        });
        2.0 * f64::hypot(sine, cosine) / samples as f64
    };
    Some(frequencies.iter().map(amplitude).collect())
}

fn write_samples(path: &Path, seconds: u32, sample: impl Fn(u32) -> i16) {
    let samples = seconds * 8_000;
    let mut file = Vec::new();
    file.extend(b"RIFF");
    file.extend((36 + samples * 2).to_le_bytes());
    file.extend(b"WAVEfmt \x10\0\0\0\x01\0\x01\0");
    file.extend(8_000_u32.to_le_bytes());
    file.extend(16_000_u32.to_le_bytes());
    file.extend(b"\x02\0\x10\0data");
    file.extend((samples * 2).to_le_bytes());
    file.extend((0..samples).flat_map(|n| sample(n).to_le_bytes()));
    std::fs::write(path, file).unwrap();
}
