//! Writes a leg's inputs into a buffer, and hands the buffer over when it is full.

use std::fmt;
use std::sync::Arc;

use super::forecast::Forecast;
use super::head::TraceHead;
use super::record::Record;
use crate::time::Micros;

/// Where the bytes of one trace go, in order.
///
/// Called from the thread that carries the leg's packets: it must not wait for anything.
pub trait TraceSink: Send + Sync + fmt::Debug {
    /// Takes the next bytes of the trace and gives an empty buffer for those after them, best with room for
    /// [`BLOCK_BYTES`]. `None` when there was no room for the bytes: they are lost, and the trace goes no further.
    fn append(&self, bytes: Vec<u8>) -> Option<Vec<u8>>;

    /// What the trace is called, for who looks for it.
    fn name(&self) -> &str;
}

/// The trace that was written of a leg.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceFile {
    /// What its sink calls it.
    pub name: String,
    /// Bytes that were handed over.
    pub bytes: u64,
    /// Inputs that it does not hold, because its sink had no room or it became too long.
    pub missing: u64,
}

/// The trace of one leg in the making.
///
/// *Bounds*: one buffer of [`BLOCK_BYTES`], [`TRACE_BYTES_MAX`] in all.
#[derive(Debug)]
pub struct TraceWriter {
    sink: Arc<dyn TraceSink>,
    /// The block that is being filled, with room for its frame in front; `None` once something was lost.
    block: Option<Vec<u8>>,
    forecast: Forecast,
    /// The time of the first record of the block.
    begun: Micros,
    written: u64,
    missing: u64,
}

impl TraceWriter {
    /// Begins a trace; its head goes to `sink` at once.
    pub fn new(head: &TraceHead, sink: Arc<dyn TraceSink>) -> Self {
        let bytes = head.write();
        let written = bytes.len() as u64;
        let block = sink.append(bytes).map(framed);
        TraceWriter { sink, block, forecast: Forecast::default(), begun: Micros(0), written, missing: 0 }
    }

    /// Hands over what is there when its first record is older than `age_us`.
    pub fn flush(&mut self, now: Micros, age_us: i64) {
        if now.since(self.begun) >= age_us {
            self.hand_over();
        }
    }

    /// Writes one record.
    #[inline]
    pub(super) fn put(&mut self, at: Micros, record: &Record<'_>) {
        let room = record.room();
        if self.block.as_ref().is_some_and(|block| block.len() + room > BLOCK_BYTES) {
            self.hand_over();
        }
        let Some(block) = self.block.as_mut().filter(|_| room <= BLOCK_LEN_MAX) else {
            self.missing = self.missing.saturating_add(1);
            return;
        };
        if block.len() == FRAME_BYTES {
            self.begun = at;
        }
        record.put(block, &mut self.forecast, at);
    }

    /// Ends the trace, with the number of inputs that are not in it.
    pub(super) fn end(mut self) -> TraceFile {
        self.hand_over();
        let mut last = self.block.take().unwrap_or_else(|| framed(Vec::new()));
        Record::End { missing: self.missing }.put(&mut last, &mut self.forecast, Micros::default());
        frame(&mut last);
        let bytes = self.written.saturating_add(last.len() as u64);
        // Without room for it the trace looks cut off, which it is.
        let _ = self.sink.append(last);
        TraceFile { name: self.sink.name().to_owned(), bytes, missing: self.missing }
    }

    fn hand_over(&mut self) {
        let Some(mut block) = self.block.take_if(|block| block.len() > FRAME_BYTES) else { return };
        frame(&mut block);
        self.written = self.written.saturating_add(block.len() as u64);
        let next = self.sink.append(block);
        self.block = next.filter(|_| self.written < TRACE_BYTES_MAX).map(framed);
    }
}

/// An empty block in `buffer`.
fn framed(mut buffer: Vec<u8>) -> Vec<u8> {
    buffer.clear();
    buffer.resize(FRAME_BYTES, 0);
    buffer
}

/// Writes length and checksum in front of what the block holds.
fn frame(block: &mut [u8]) {
    if let Some((frame, body)) = block.split_first_chunk_mut::<FRAME_BYTES>() {
        let [l0, l1, l2, l3] = u32::try_from(body.len()).unwrap_or(u32::MAX).to_le_bytes();
        let [c0, c1, c2, c3] = crc32fast::hash(body).to_le_bytes();
        *frame = [l0, l1, l2, l3, c0, c1, c2, c3];
    }
}

/// What a block is handed over at: some seconds of a call.
pub const BLOCK_BYTES: usize = 2_048;
/// A trace goes no further than this: days of a call, or minutes of a flood.
pub const TRACE_BYTES_MAX: u64 = 128 << 20;
/// Length and checksum in front of a block.
pub(super) const FRAME_BYTES: usize = 8;
/// A reader takes no longer block; only a monstrous description would make one.
pub(super) const BLOCK_LEN_MAX: usize = 1 << 20;
