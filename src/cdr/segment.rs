//! One file of the call journal: an eight-byte head, then records of length, CRC-32 and payload.
//!
//! ```text
//! "SIDEJNL1" | len u32 LE | crc u32 LE | payload (kind u8, body) | len | crc | payload | …
//! ```
//! The CRC covers the length and the payload, so that a wrong length is detected as well. A crash leaves at most a
//! torn record at the end of a segment: reading stops at the last valid CRC. After a restart, no existing segment is
//! appended to. Files are filled with zeros ahead of the records (`storage.rs`): a length and a CRC of zero mark the
//! end.
//! zero are the end.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use sidetone_model::cdr::Cdr;
use sidetone_model::time::Timestamp;

/// One fact about a call or about the node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Record {
    /// A call was answered: its record so far, without an end, and the time on the clock of the ticks.
    Answered(Box<Cdr>, Option<Timestamp>),
    /// A call has ended: its complete record, and the time when it was passed, on the clock of the ticks.
    Ended(Box<Cdr>, Option<Timestamp>),
    /// The node, and with it every answered call, was alive at this time of a clock that never jumps.
    Tick(Timestamp),
}

/// The content at an offset of a segment.
#[derive(Debug, PartialEq, Eq)]
pub enum Step {
    /// Nothing: the end was reached exactly between two records.
    End,
    /// A torn or damaged record; nothing after it can be trusted.
    Damaged,
    /// A record, and the offset of the next one.
    Good(Record, u64),
    /// Intact bytes that this version cannot interpret, and the offset of the next record.
    Unreadable(u64),
}

/// The timestamps of a record in microseconds, because its JSON contains only milliseconds.
#[derive(Debug, Deserialize)]
struct Body {
    started_us: i64,
    answered_us: Option<i64>,
    ended_us: Option<i64>,
    /// Absent in journals of versions whose ticks followed the wall clock.
    #[serde(default)]
    steady_us: Option<i64>,
    cdr: Cdr,
}

/// The same for writing.
#[derive(Debug, Serialize)]
struct WrittenBody<'a> {
    started_us: i64,
    answered_us: Option<i64>,
    ended_us: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    steady_us: Option<i64>,
    cdr: &'a Cdr,
}

/// A record that cannot be written.
#[derive(Debug, thiserror::Error)]
pub enum EncodeError {
    /// The record cannot be written as JSON.
    #[error("encode the record: {0}")]
    Json(#[from] serde_json::Error),
    /// The record is larger than readers accept.
    #[error("encode the record: {len} bytes are more than {PAYLOAD_LEN_MAX}")]
    TooLong {
        /// Its size in bytes.
        len: usize,
    },
}

/// Appends `record` in its stored form to `out`; leaves `out` as it was on an error.
///
/// # Errors
/// When the record has no stored form.
pub fn encode(record: &Record, out: &mut Vec<u8>) -> Result<(), EncodeError> {
    let mut payload = Vec::with_capacity(1024);
    match record {
        Record::Answered(cdr, steady) => {
            payload.push(KIND_ANSWERED);
            write_body(cdr, *steady, &mut payload)?;
        }
        Record::Ended(cdr, steady) => {
            payload.push(KIND_ENDED);
            write_body(cdr, *steady, &mut payload)?;
        }
        Record::Tick(at) => {
            payload.push(KIND_TICK);
            payload.extend_from_slice(&at.as_micros().to_le_bytes());
        }
    }
    let len = u32::try_from(payload.len()).ok().filter(|len| *len <= PAYLOAD_LEN_MAX);
    let len = len.ok_or(EncodeError::TooLong { len: payload.len() })?.to_le_bytes();
    out.extend_from_slice(&len);
    out.extend_from_slice(&checksum(len, &payload).to_le_bytes());
    out.extend_from_slice(&payload);
    Ok(())
}

fn write_body(cdr: &Cdr, steady: Option<Timestamp>, out: &mut Vec<u8>) -> Result<(), serde_json::Error> {
    serde_json::to_writer(out, &WrittenBody::new(cdr, steady))
}

impl<'a> WrittenBody<'a> {
    fn new(cdr: &'a Cdr, steady: Option<Timestamp>) -> Self {
        WrittenBody {
            started_us: cdr.started_at.as_micros(),
            answered_us: cdr.answered_at.map(Timestamp::as_micros),
            ended_us: cdr.ended_at.map(Timestamp::as_micros),
            steady_us: steady.map(Timestamp::as_micros),
            cdr,
        }
    }
}

/// Returns whether `file` begins with the head of a segment; a crash during its creation may have left an incomplete
/// head.
///
/// # Errors
/// When the file itself cannot be read.
pub fn has_head(file: &File) -> io::Result<bool> {
    let mut head = [0; HEAD.len()];
    match file.read_exact_at(&mut head, 0) {
        Ok(()) => Ok(head == *HEAD),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
        Err(error) => Err(error),
    }
}

/// Reads the record at `offset` of `file`, whose durable bytes end at `end`.
///
/// # Errors
/// When the file itself cannot be read.
pub fn read(file: &File, offset: u64, end: u64) -> io::Result<Step> {
    let left = end.saturating_sub(offset);
    if left == 0 {
        return Ok(Step::End);
    }
    if left < FRAME_LEN {
        return Ok(Step::Damaged);
    }
    let (mut len, mut crc) = ([0; 4], [0; 4]);
    file.read_exact_at(&mut len, offset)?;
    file.read_exact_at(&mut crc, offset + 4)?;
    if (len, crc) == ([0; 4], [0; 4]) {
        // Allocated space in which nothing was written.
        return Ok(Step::End);
    }
    let payload_len = u32::from_le_bytes(len);
    if payload_len == 0 || payload_len > PAYLOAD_LEN_MAX || u64::from(payload_len) > left - FRAME_LEN {
        return Ok(Step::Damaged);
    }
    let mut payload = vec![0; payload_len as usize];
    file.read_exact_at(&mut payload, offset + FRAME_LEN)?;
    if checksum(len, &payload) != u32::from_le_bytes(crc) {
        return Ok(Step::Damaged);
    }
    let next = offset + FRAME_LEN + u64::from(payload_len);
    Ok(decode(&payload).map_or(Step::Unreadable(next), |record| Step::Good(record, next)))
}

fn decode(payload: &[u8]) -> Option<Record> {
    let (kind, body) = payload.split_first()?;
    match *kind {
        KIND_ANSWERED => read_body(body).map(|(cdr, steady)| Record::Answered(cdr, steady)),
        KIND_ENDED => read_body(body).map(|(cdr, steady)| Record::Ended(cdr, steady)),
        KIND_TICK => Some(Record::Tick(Timestamp::from_micros(i64::from_le_bytes(body.try_into().ok()?)))),
        _ => None,
    }
}

fn read_body(body: &[u8]) -> Option<(Box<Cdr>, Option<Timestamp>)> {
    let Body { started_us, answered_us, ended_us, steady_us, mut cdr } = serde_json::from_slice(body).ok()?;
    cdr.started_at = Timestamp::from_micros(started_us);
    cdr.answered_at = answered_us.map(Timestamp::from_micros);
    cdr.ended_at = ended_us.map(Timestamp::from_micros);
    Some((Box::new(cdr), steady_us.map(Timestamp::from_micros)))
}

/// A record as stored in a dead letter, with its timestamps in microseconds.
///
/// # Errors
/// When it cannot be written as JSON.
pub fn to_json(cdr: &Cdr) -> Result<serde_json::Value, serde_json::Error> {
    serde_json::to_value(written(cdr))
}

/// The record in the form of [`to_json`], for embedding in other JSON.
pub fn written(cdr: &Cdr) -> impl Serialize {
    WrittenBody::new(cdr, None)
}

/// The record that was [`written`]; `None` for other content.
pub fn of_json(content: &serde_json::Value) -> Option<Cdr> {
    read_body(content.to_string().as_bytes()).map(|(cdr, _)| *cdr)
}

fn checksum(len: [u8; 4], payload: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&len);
    hasher.update(payload);
    hasher.finalize()
}

/// The path of segment `number` in `dir`.
pub fn path_of(dir: &Path, number: u64) -> PathBuf {
    dir.join(format!("{number:020}{SUFFIX}"))
}

/// The numbers of the segments in `dir`, ascending.
///
/// # Errors
/// When the directory cannot be read.
pub fn list(dir: &Path) -> io::Result<Vec<u64>> {
    let mut numbers = Vec::new();
    for entry in std::fs::read_dir(dir)? {
        let name = entry?.file_name();
        let number: Option<u64> =
            name.to_str().and_then(|name| name.strip_suffix(SUFFIX)).and_then(|stem| stem.parse().ok());
        numbers.extend(number);
    }
    numbers.sort_unstable();
    Ok(numbers)
}

/// Bytes before a payload: its length and its CRC.
pub const FRAME_LEN: u64 = 8;
/// The first bytes of a segment.
pub const HEAD: &[u8; 8] = b"SIDEJNL1";
/// The offset of the first record.
pub const HEAD_LEN: u64 = HEAD.len() as u64;
const KIND_ANSWERED: u8 = 1;
const KIND_ENDED: u8 = 2;
const KIND_TICK: u8 = 3;
/// Twice the size of two full timelines; a longer payload is damaged and must not be allocated.
const PAYLOAD_LEN_MAX: u32 = 2 * 1024 * 1024;
const SUFFIX: &str = ".journal";
