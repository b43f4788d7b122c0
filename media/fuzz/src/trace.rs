//! Traces: any bytes as a file, and any bytes as the content of a valid block.

use sidetone_media::trace::{MAGIC, Replay, Replayed};

use super::choices::Choices;
use super::session::check_report;

/// A trace gives the same result when read in one piece and in several; reading ends, and the checks of every session
/// hold.
pub fn trace_reader(data: &[u8]) {
    let mut choices = Choices::new(data);
    let piece = usize::from(choices.byte()) + 1;
    let framed = choices.flag();
    let rest = choices.rest();
    let file = if framed { written(rest) } else { rest.to_vec() };
    let whole = read(&file, file.len().max(1));
    let pieces = read(&file, piece);
    let report = |replayed: &Replayed| replayed.report.clone();
    assert_eq!(whole.as_ref().map(report), pieces.as_ref().map(report));
    if let Some(replayed) = whole {
        check_report(&replayed.report);
        assert!(!framed || replayed.packets < u64::MAX);
    }
}

/// The bytes as blocks of up to 200 bytes, with correct lengths and checksums.
fn written(records: &[u8]) -> Vec<u8> {
    let mut file = [MAGIC, b"call fuzz\n\n"].concat();
    for block in records.chunks(200) {
        file.extend((block.len() as u32).to_le_bytes());
        file.extend(crc32fast::hash(block).to_le_bytes());
        file.extend(block);
    }
    file
}

fn read(file: &[u8], piece: usize) -> Option<Replayed> {
    let (mut replay, mut begin, mut end) = (Replay::new(), 0, 0);
    while end < file.len() {
        end = (end + piece).min(file.len());
        match replay.feed(&file[begin..end]) {
            Ok(used) => begin += used,
            Err(damage) => {
                assert_eq!(replay.feed(&[]), Err(damage), "damage stays");
                break;
            }
        }
        assert!(end - begin <= Replay::NEEDED_MAX, "asks for too much");
    }
    replay.finish(file.len() - begin).ok()
}
