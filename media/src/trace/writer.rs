//! Writes a leg's inputs into a buffer, and hands the buffer to a sink when it is full.

use std::fmt;
use std::sync::Arc;

use super::forecast::Forecast;
use super::head::TraceHead;
use super::record::Record;
use crate::time::Micros;

/// Receives the bytes of one trace, in order.
///
/// Called from the thread that carries the leg's packets: it must not block.
pub trait TraceSink: Send + Sync + fmt::Debug {
    /// Takes the next bytes of the trace and returns an empty buffer, preferably with capacity
    /// [`BLOCK_BYTES`]. `None` means that the bytes could not be taken: they are lost, and the trace ends
    /// there.
    fn append(&self, bytes: Vec<u8>) -> Option<Vec<u8>>;

    /// The name under which the trace can be found.
    fn name(&self) -> &str;
}

/// The trace of a leg.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceFile {
    /// Its name in the sink.
    pub name: String,
    /// Bytes that were handed over.
    pub bytes: u64,
    /// Inputs missing in it, because its sink had no space or it became too long.
    pub missing: u64,
}

/// Writes the trace of one leg.
///
/// *Bounds*: one buffer of [`BLOCK_BYTES`], [`TRACE_BYTES_MAX`] in total.
#[derive(Debug)]
pub struct TraceWriter {
    sink: Arc<dyn TraceSink>,
    /// The current block, with space for its frame at the start; `None` after a loss.
    block: Option<Vec<u8>>,
    forecast: Forecast,
    /// The time of the first record of the block.
    begun: Micros,
    written: u64,
    missing: u64,
}

impl TraceWriter {
    /// Starts a trace; its head goes to `sink` immediately.
    pub fn new(head: &TraceHead, sink: Arc<dyn TraceSink>) -> Self {
        let bytes = head.write();
        let written = bytes.len() as u64;
        let block = sink.append(bytes).map(framed);
        TraceWriter { sink, block, forecast: Forecast::default(), begun: Micros(0), written, missing: 0 }
    }

    /// Hands the block over when its first record is older than `age_us`.
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

    /// Ends the trace, and records how many inputs are missing.
    pub(super) fn end(mut self) -> TraceFile {
        self.hand_over();
        let mut last = self.block.take().unwrap_or_else(|| framed(Vec::new()));
        Record::End { missing: self.missing }.put(&mut last, &mut self.forecast, Micros::default());
        frame(&mut last);
        let bytes = self.written.saturating_add(last.len() as u64);
        // When the sink cannot take it, the trace looks cut off, which is correct.
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

/// Writes length and checksum before the content of the block.
fn frame(block: &mut [u8]) {
    if let Some((frame, body)) = block.split_first_chunk_mut::<FRAME_BYTES>() {
        let [l0, l1, l2, l3] = u32::try_from(body.len()).unwrap_or(u32::MAX).to_le_bytes();
        let [c0, c1, c2, c3] = crc32fast::hash(body).to_le_bytes();
        *frame = [l0, l1, l2, l3, c0, c1, c2, c3];
    }
}

/// The size at which a block is handed over: some seconds of a call.
pub const BLOCK_BYTES: usize = 2_048;
/// The longest trace: days of a call, or minutes of a flood.
pub const TRACE_BYTES_MAX: u64 = 128 << 20;
/// Length and checksum before a block.
pub(super) const FRAME_BYTES: usize = 8;
/// The longest block that a reader accepts; only an extremely long description could exceed it.
pub(super) const BLOCK_LEN_MAX: usize = 1 << 20;
