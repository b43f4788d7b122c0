//! For any damage of a capture, reading it ends, never panics and keeps its bounds.
#![allow(clippy::indexing_slicing, clippy::unwrap_used, reason = "a test may stop at the first surprise")]

use proptest::prelude::*;
use sidetone_media::pcap::{Content, Decoder, Dissector, LinkType, Progress, Records, Writer, dissect};
use sidetone_media::time::Micros;

fn classic(packets: u16) -> Vec<u8> {
    let mut writer = Writer::new(Vec::new(), LinkType::ETHERNET).unwrap();
    let (from, to) = ("192.0.2.1:4000".parse().unwrap(), "192.0.2.2:5000".parse().unwrap());
    for n in 0..packets {
        writer.write_udp(Micros(i64::from(n) * 20_000), from, to, &[0x80; 40]).unwrap();
    }
    writer.finish().unwrap()
}

/// The same frames as enhanced packet blocks.
fn blocks(packets: u16) -> Vec<u8> {
    let mut file = Vec::new();
    let mut block = |kind: u32, body: &[u8]| {
        let len = (body.len().next_multiple_of(4) + 12) as u32;
        file.extend(kind.to_le_bytes());
        file.extend(len.to_le_bytes());
        file.extend(body);
        file.resize(file.len().next_multiple_of(4), 0);
        file.extend(len.to_le_bytes());
    };
    block(0x0a0d_0d0a, &[0x4d, 0x3c, 0x2b, 0x1a, 1, 0, 0, 0, 255, 255, 255, 255, 255, 255, 255, 255]);
    block(1, &[1, 0, 0, 0, 0, 0, 4, 0, 9, 0, 1, 0, 9, 0, 0, 0, 0, 0, 0, 0]);
    for record in Records::new(&classic(packets)) {
        let record = record.unwrap();
        let mut body = vec![0; 12];
        body[8..12].copy_from_slice(&(record.at.0 as u32).to_le_bytes());
        body.extend((record.frame.len() as u32).to_le_bytes());
        body.extend(record.wire_len.to_le_bytes());
        body.extend(record.frame);
        block(6, &body);
    }
    file
}

/// Reads `file` in pieces of `piece` bytes, like a driver on a pipe.
fn read_in_pieces(file: &[u8], piece: usize) -> (usize, bool) {
    let (mut decoder, mut begin, mut end, mut records) = (Decoder::new(), 0, 0, 0);
    loop {
        match decoder.next(&file[begin..end]) {
            Ok(Progress::More { needed }) => {
                assert!(needed > end - begin, "asks for what it has");
                if end == file.len() {
                    return (records, decoder.finish(end - begin).is_ok());
                }
                end = (end + piece).min(file.len());
            }
            Ok(Progress::Record { consumed, record }) => {
                let _ = dissect(record.link, record.frame);
                records += 1;
                begin += consumed;
            }
            Ok(Progress::Skipped { consumed }) => begin += consumed,
            Err(_) => return (records, false),
        }
    }
}

#[test]
fn pieces_of_any_size_give_the_same_records() {
    for file in [classic(50), blocks(50)] {
        for piece in [1, 7, 64, 100_000] {
            assert_eq!(read_in_pieces(&file, piece), (50, true));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn mutated_captures_are_read_as_far_as_they_go(
        pcapng in any::<bool>(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..24),
        cut in any::<prop::sample::Index>(),
    ) {
        let mut file = if pcapng { blocks(20) } else { classic(20) };
        for (place, value) in changes {
            let place = place.index(file.len());
            file[place] = value;
        }
        file.truncate(cut.index(file.len() + 1));
        let whole = Records::new(&file).filter(|record| record.is_ok()).count();
        prop_assert!(whole <= file.len() / 12 + 1);
        prop_assert_eq!(read_in_pieces(&file, 13).0, whole);
    }

    #[test]
    fn any_bytes_are_a_frame(link in 0_u16..300, frame in prop::collection::vec(any::<u8>(), 0..200)) {
        if let Content::Udp(datagram) = dissect(LinkType(link), &frame) {
            prop_assert!(datagram.payload.len() <= datagram.payload_len);
            prop_assert!(datagram.payload.len() <= frame.len());
        }
    }

    /// Frames that are nearly fragments of each other, with a random clock.
    #[test]
    fn any_fragments_are_put_together_or_counted(
        frames in prop::collection::vec(
            (0_i64..60_000_000, 0_u16..3, 0_u16..40, any::<bool>(), prop::collection::vec(any::<u8>(), 0..48)), 0..80,
        ),
    ) {
        let mut dissector = Dissector::new();
        let (mut waited, mut whole) = (0_u64, 0_u64);
        for (at, id, offset, more, payload) in frames {
            let mut packet = vec![0x45, 0, 0, 0, 0, id as u8, 0, 0, 64, 17, 0, 0, 192, 0, 2, 1, 192, 0, 2, 2];
            packet[2..4].copy_from_slice(&(20 + payload.len() as u16).to_be_bytes());
            packet[6..8].copy_from_slice(&(offset | (u16::from(more) << 13)).to_be_bytes());
            packet.extend(payload);
            match dissector.dissect(Micros(at), LinkType::RAW, &packet) {
                Content::Fragment | Content::Head(_) => waited += 1,
                _ => whole += 1,
            }
        }
        prop_assert!(dissector.fragments_left() <= waited + whole);
    }

    #[test]
    fn any_bytes_after_a_magic_number(
        magic in prop::sample::select(vec![
            [0xd4, 0xc3, 0xb2, 0xa1], [0xa1, 0xb2, 0x3c, 0x4d], [0x0a, 0x0d, 0x0d, 0x0a], [0x34, 0xcd, 0xb2, 0xa1],
        ]),
        rest in prop::collection::vec(any::<u8>(), 0..400),
    ) {
        let file = [&magic[..], &rest].concat();
        prop_assert_eq!(read_in_pieces(&file, 5).0, Records::new(&file).filter(|record| record.is_ok()).count());
    }
}
