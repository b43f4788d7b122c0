//! What the phones play: a capture of G.711 A-law for sipp, a wave file for baresip.

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
    let samples = seconds * 8_000;
    let mut file = Vec::new();
    file.extend(b"RIFF");
    file.extend((36 + samples * 2).to_le_bytes());
    file.extend(b"WAVEfmt \x10\0\0\0\x01\0\x01\0");
    file.extend(8_000_u32.to_le_bytes());
    file.extend(16_000_u32.to_le_bytes());
    file.extend(b"\x02\0\x10\0data");
    file.extend((samples * 2).to_le_bytes());
    file.extend((0..samples).flat_map(|n| if n / 8 % 2 == 0 { 4_000_i16 } else { -4_000 }.to_le_bytes()));
    std::fs::write(path, file).unwrap();
}
