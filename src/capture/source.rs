//! Drives a capture of any length through the engine with one buffer.

use std::io::{self, Read};

use sidetone_media::pcap::{Damage, Decoder};
use sidetone_media::trace::TraceDamage;
use thiserror::Error;

use super::engine::{Engine, EngineOptions};
use super::gzip::{GzipDamage, Plain};
use super::parts::Parts;
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

/// As [`Outcome`], before the calls and streams are judged.
#[derive(Debug)]
pub struct PartsOutcome {
    /// What was read, as far as it went.
    pub parts: Parts,
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
/// `progress` is told the number of bytes read of `input`, each time more is read. *Bounds*: beside a buffer of
/// 256 KiB one element of the file is held, at most [`sidetone_media::pcap::ELEMENT_LEN_MAX`] bytes.
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
    let PartsOutcome { parts, broken } = read_parts(options, name, input, progress);
    Outcome { analysis: parts.into_analysis(), broken }
}

/// As [`read_with`], for whoever writes what was found call by call, and need not have all of it in memory.
pub fn read_parts(
    options: EngineOptions,
    name: &str,
    input: &mut dyn Read,
    progress: &mut dyn FnMut(u64, u64),
) -> PartsOutcome {
    let mut input = Plain::new(input);
    let begins = beginning(&mut input);
    if let Ok(begins) = &begins
        && is_trace(begins)
    {
        let Outcome { analysis, broken } = read_trace(name, &mut input, &mut |bytes| progress(bytes, 0));
        return PartsOutcome { parts: analysis.into(), broken };
    }
    // Nobody would ask for what is handed out before the end.
    let mut engine = Engine::new(EngineOptions { evict: false, ..options });
    let broken = match begins {
        Ok(begins) => drive(&mut engine, &begins, &mut input, progress).err(),
        Err(error) => Some(error.into()),
    };
    PartsOutcome { parts: engine.close(name), broken }
}

/// Feeds the engine with what was read already, and with the rest.
fn drive(
    engine: &mut Engine,
    begins: &[u8],
    input: &mut Plain<&mut dyn Read>,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<(), Broken> {
    let mut feed = Feed { engine, decoder: Decoder::new(), bridge: Vec::new(), needed: 0 };
    feed.take(begins)?;
    let mut buffer = vec![0_u8; BUFFER_LEN];
    // Each turn reads a byte at least, or is the last.
    loop {
        match input.read(&mut buffer) {
            Ok(0) => break,
            Ok(len) => feed.take(buffer.get(..len).unwrap_or_default())?,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error.into()),
        }
        progress(input.taken(), feed.engine.packets());
    }
    Ok(feed.decoder.finish(feed.bridge.len())?)
}

/// Cuts bytes that come in pieces into frames for the engine.
struct Feed<'a> {
    engine: &'a mut Engine,
    decoder: Decoder,
    /// An element that began in one piece and goes on in the next, as far as it is there.
    bridge: Vec<u8>,
    /// What the decoder needs of that element.
    needed: usize,
}

impl Feed<'_> {
    /// Takes the next piece.
    fn take(&mut self, mut bytes: &[u8]) -> Result<(), Damage> {
        // Each turn takes bytes into the bridge, which is complete within a few: the decoder bounds what it needs.
        while !self.bridge.is_empty() {
            let missing = self.needed.saturating_sub(self.bridge.len()).max(1);
            let Some((head, rest)) = bytes.split_at_checked(missing) else {
                self.bridge.extend_from_slice(bytes);
                return Ok(());
            };
            self.bridge.extend_from_slice(head);
            bytes = rest;
            let drained = self.decoder.drain(&self.bridge, |record| self.engine.record(record))?;
            self.bridge.drain(..drained.consumed);
            self.needed = drained.needed;
        }
        let drained = self.decoder.drain(bytes, |record| self.engine.record(record))?;
        self.bridge.extend_from_slice(bytes.get(drained.consumed..).unwrap_or_default());
        self.needed = drained.needed;
        Ok(())
    }
}

impl From<io::Error> for Broken {
    fn from(error: io::Error) -> Self {
        error.downcast::<GzipDamage>().map_or_else(Broken::Io, Broken::Gzip)
    }
}

/// Small enough to stay in the cache between the kernel that fills it and the engine that reads it.
const BUFFER_LEN: usize = 256 << 10;
