//! Drives a capture of any length through the engine with one buffer.

use std::io::{self, Read};

use sidetone_media::pcap::{Damage, Decoder, Progress};
use sidetone_media::trace::TraceDamage;
use thiserror::Error;

use super::engine::{Engine, EngineOptions};
use super::gzip::{GzipDamage, Plain};
use super::report::Analysis;
use super::retrace::{beginning, is_trace, read_trace};

/// What came of reading a capture.
#[derive(Debug)]
pub struct Outcome {
    /// What was read, as far as it went.
    pub analysis: Analysis,
    /// Why it went no further; `None` when the end was reached.
    pub broken: Option<Broken>,
}

/// Why a capture could not be read to its end.
#[derive(Debug, Error)]
pub enum Broken {
    /// The bytes are no capture from here on.
    #[error(transparent)]
    Damage(#[from] Damage),
    /// The bytes are no gzip from here on.
    #[error(transparent)]
    Gzip(#[from] GzipDamage),
    /// The bytes could not be had.
    #[error("cannot be read: {0}")]
    Io(#[source] io::Error),
    /// The bytes are no trace from here on.
    #[error(transparent)]
    Trace(TraceDamage),
    /// A trace to which its own writer could not keep.
    #[error("the trace does not hold the last {missing} things that happened: its disk was full or slow")]
    TraceWithGap {
        /// Inputs that were not written down.
        missing: u64,
    },
    /// A trace that was not ended.
    #[error("the trace has no end, as when the leg goes on or its node was stopped at once")]
    TraceWithoutEnd,
}

/// Reads a capture, or the trace of a leg, from `input`, which may be compressed with gzip, to its end, or as far as
/// it goes.
///
/// `progress` is told the number of bytes read of `input`, each time more is read. *Bounds*: the buffer holds one
/// element of the file, at most [`sidetone_media::pcap::ELEMENT_LEN_MAX`] bytes.
pub fn read(name: &str, input: &mut dyn Read, progress: &mut dyn FnMut(u64)) -> Outcome {
    read_with(EngineOptions::default(), name, input, &mut |bytes, _packets| progress(bytes))
}

/// As [`read`], with an engine of the caller's choice; `progress` is told the bytes and the packets read.
pub fn read_with(
    options: EngineOptions,
    name: &str,
    input: &mut dyn Read,
    progress: &mut dyn FnMut(u64, u64),
) -> Outcome {
    let mut input = Plain::new(input);
    let begins = beginning(&mut input);
    if let Ok(begins) = &begins
        && is_trace(begins)
    {
        return read_trace(name, &mut input, &mut |bytes| progress(bytes, 0));
    }
    // Nobody would ask for what is handed out before the end.
    let mut engine = Engine::new(EngineOptions { evict: false, ..options });
    let broken = match begins {
        Ok(begins) => drive(&mut engine, &begins, &mut input, progress).err(),
        Err(error) => Some(error.into()),
    };
    Outcome { analysis: engine.finish(name), broken }
}

/// Feeds the engine with what was read already, and with the rest.
fn drive(
    engine: &mut Engine,
    begins: &[u8],
    input: &mut Plain<&mut dyn Read>,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<(), Broken> {
    let mut decoder = Decoder::new();
    let mut buffer = vec![0_u8; BUFFER_LEN];
    let (mut begin, mut end) = (0, begins.len());
    if let Some(place) = buffer.get_mut(..end) {
        place.copy_from_slice(begins);
    }
    loop {
        match decoder.next(buffer.get(begin..end).unwrap_or_default())? {
            Progress::Record { consumed, record } => {
                engine.record(&record);
                begin += consumed;
            }
            Progress::Skipped { consumed } => begin += consumed,
            Progress::More { needed } => {
                buffer.copy_within(begin..end, 0);
                end -= begin;
                begin = 0;
                // The decoder bounds `needed`, and the buffer grows only as far as bytes really come.
                if needed > buffer.len() && end == buffer.len() {
                    buffer.resize((buffer.len() * 2).min(needed), 0);
                }
                progress(input.taken(), engine.packets());
                let free = buffer.get_mut(end..).unwrap_or_default();
                match input.read(free) {
                    Ok(0) => return Ok(decoder.finish(end)?),
                    Ok(len) => end += len,
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    Err(error) => return Err(error.into()),
                }
            }
        }
    }
}

impl From<io::Error> for Broken {
    fn from(error: io::Error) -> Self {
        error.downcast::<GzipDamage>().map_or_else(Broken::Io, Broken::Gzip)
    }
}

/// Small enough to stay in the cache between the kernel that fills it and the engine that reads it.
const BUFFER_LEN: usize = 256 << 10;
