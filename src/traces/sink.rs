//! The end of a trace that a worker of the relay writes to.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use crossbeam_channel::{Receiver, Sender};
use sidetone_media::trace::{BLOCK_BYTES, TraceSink};

use crate::traces::counters::TraceCounters;

/// Takes the blocks of one trace without blocking.
#[derive(Debug)]
pub(super) struct FileSink {
    pub(super) file: Arc<TraceFile>,
    pub(super) blocks: Sender<Block>,
    pub(super) empties: Receiver<Vec<u8>>,
    pub(super) counters: Arc<TraceCounters>,
}

/// The location of a trace.
#[derive(Debug)]
pub(super) struct TraceFile {
    /// The path below the directory of traces.
    pub(super) name: String,
    pub(super) path: PathBuf,
    /// Set when the disk has refused a block: later blocks could not be decoded.
    pub(super) over: AtomicBool,
}

/// Bytes to be written to a trace.
#[derive(Debug)]
pub(super) struct Block {
    pub(super) file: Arc<TraceFile>,
    pub(super) bytes: Vec<u8>,
}

impl TraceSink for FileSink {
    fn append(&self, bytes: Vec<u8>) -> Option<Vec<u8>> {
        let block = Block { file: Arc::clone(&self.file), bytes };
        if self.file.over.load(Relaxed) || self.blocks.try_send(block).is_err() {
            self.counters.dropped.fetch_add(1, Relaxed);
            return None;
        }
        // While the thread keeps up, an empty buffer returns for each full one.
        Some(self.empties.try_recv().unwrap_or_else(|_| Vec::with_capacity(BLOCK_BYTES)))
    }

    fn name(&self) -> &str {
        &self.file.name
    }
}
