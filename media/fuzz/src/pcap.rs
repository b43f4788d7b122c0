//! Capture files: any bytes, read in pieces of any size.

use sidetone_media::pcap::{Decoder, Drained, ELEMENT_LEN_MAX, Progress, Records, dissect};

use super::choices::Choices;

/// The fields of a record that are compared.
type Seen = (i64, u16, usize, u32);

/// A file gives the same records when it is read in one piece, in several pieces and in batches. Reading ends, and
/// never requests more bytes than the limit.
pub fn pcap_reader(data: &[u8]) {
    let mut choices = Choices::new(data);
    let piece = usize::from(choices.byte()) + 1;
    let file = choices.rest();
    let whole: Vec<Seen> = Records::new(file)
        .map_while(Result::ok)
        .map(|record| (record.at.0, record.link.0, record.frame.len(), record.wire_len))
        .collect();
    assert!(whole.len() <= file.len() / 8 + 1, "more records than fit");
    assert_eq!(in_pieces(file, piece), whole);
    assert_eq!(drained(file, piece), whole);
}

fn drained(file: &[u8], piece: usize) -> Vec<Seen> {
    let (mut decoder, mut begin, mut end, mut seen) = (Decoder::new(), 0, 0, Vec::new());
    loop {
        let drained = decoder.drain(&file[begin..end], |record| {
            seen.push((record.at.0, record.link.0, record.frame.len(), record.wire_len));
        });
        let Ok(Drained { consumed, needed }) = drained else {
            assert_eq!(decoder.drain(&file[end..], |_| panic!("a record behind damage")), drained);
            return seen;
        };
        begin += consumed;
        assert_eq!(decoder.offset(), begin as u64);
        assert!(needed > end - begin && needed <= ELEMENT_LEN_MAX, "asks for {needed}");
        if end == file.len() {
            return seen;
        }
        end = (end + piece).min(file.len());
    }
}

fn in_pieces(file: &[u8], piece: usize) -> Vec<Seen> {
    let (mut decoder, mut begin, mut end, mut seen) = (Decoder::new(), 0, 0, Vec::new());
    // The format can be detected once, without consuming a byte.
    let mut may_stand = true;
    loop {
        match decoder.next(&file[begin..end]) {
            Ok(Progress::More { needed }) => {
                assert!(needed > end - begin, "asks for what it has");
                assert!(needed <= ELEMENT_LEN_MAX, "asks for too much");
                if end == file.len() {
                    let _ = decoder.finish(end - begin);
                    return seen;
                }
                end = (end + piece).min(file.len());
            }
            Ok(Progress::Record { consumed, record }) => {
                assert!(consumed > 0 && record.frame.len() < consumed);
                let _ = dissect(record.link, record.frame);
                seen.push((record.at.0, record.link.0, record.frame.len(), record.wire_len));
                begin += consumed;
            }
            Ok(Progress::Skipped { consumed }) => {
                assert!(consumed > 0 || std::mem::take(&mut may_stand), "goes nowhere");
                begin += consumed;
            }
            Err(damage) => {
                assert_eq!(decoder.next(&file[begin..end]).err(), Some(damage), "damage stays");
                return seen;
            }
        }
    }
}
