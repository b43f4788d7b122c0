//! Reads a capture of any length into the engine with one buffer, or with threads that read ahead.

use std::fs::File;
use std::io::{self, Read};

use super::engine::{Engine, EngineOptions};
use super::feed::Feed;
use super::gzip::Plain;
use super::outcome::{Broken, Outcome, PartsOutcome};
use super::read_ahead::ReadAhead;
use super::trace_replay::{beginning, is_trace, read_trace};

/// The source of a capture.
pub enum Source<'a> {
    /// A file that was opened and not read yet. Threads share the reading of a regular file.
    File(File),
    /// Any other source of bytes, read in order.
    Stream(&'a mut dyn Read),
}

/// Reads a capture, or the trace of a leg, from `input`, which may be compressed with gzip, to its end or as
/// far as it can be read.
///
/// `progress` is called with the number of bytes read from `input` after each read. *Bounds*: in addition to
/// a buffer of 256 KiB one element of the file is held, at most [`sidetone_media::pcap::ELEMENT_LEN_MAX`]
/// bytes.
pub fn read(name: &str, input: &mut dyn Read, progress: &mut dyn FnMut(u64)) -> Outcome {
    read_with(EngineOptions::default(), name, input, &mut |bytes, _packets| progress(bytes))
}

/// Like [`read`], with the given engine options; `progress` is called with the bytes and the packets read.
pub fn read_with(
    options: EngineOptions,
    name: &str,
    input: &mut dyn Read,
    progress: &mut dyn FnMut(u64, u64),
) -> Outcome {
    let PartsOutcome { parts, broken } = read_parts(options, name, Source::Stream(input), progress);
    Outcome { analysis: parts.into_analysis(), broken }
}

/// Like [`read_with`], for callers that write the result call by call and need not hold all of it in memory.
///
/// [`EngineOptions::threads`] threads share the reading of a file. *Bounds*: each of them holds two blocks of
/// 512 KiB; the frames of at most seven blocks, plus one per thread, wait for the engine. They take a fifth
/// of the blocks' size, and with [`EngineOptions::audio`] all of it.
pub fn read_parts(
    options: EngineOptions,
    name: &str,
    source: Source<'_>,
    progress: &mut dyn FnMut(u64, u64),
) -> PartsOutcome {
    match source {
        Source::File(file) => {
            read_file(options, ReadAhead::with_threads(options.threads), name, &file, progress)
        }
        Source::Stream(input) => read_plain(options, name, Plain::new(input), progress, drive),
    }
}

/// Reads a file, with threads where that is faster.
pub(super) fn read_file(
    options: EngineOptions,
    ahead: ReadAhead,
    name: &str,
    file: &File,
    progress: &mut dyn FnMut(u64, u64),
) -> PartsOutcome {
    let input = Plain::new(file);
    if !ahead.suits(file) {
        return read_plain(options, name, input, progress, drive);
    }
    read_plain(options, name, input, progress, |engine, begins, input, progress| {
        ahead
            .drive(engine, begins, (file, input), progress)
            .unwrap_or_else(|input| drive(engine, begins, input, progress))
    })
}

/// Reads a possibly compressed trace or capture; for a capture, `drive` feeds the engine with all of it.
fn read_plain<R: Read>(
    options: EngineOptions,
    name: &str,
    mut input: Plain<R>,
    progress: &mut dyn FnMut(u64, u64),
    drive: impl FnOnce(&mut Engine, &[u8], Plain<R>, &mut dyn FnMut(u64, u64)) -> Result<(), Broken>,
) -> PartsOutcome {
    let begins = beginning(&mut input);
    if let Ok(begins) = &begins
        && is_trace(begins)
    {
        let Outcome { analysis, broken } = read_trace(name, &mut input, &mut |bytes| progress(bytes, 0));
        return PartsOutcome { parts: analysis.into(), broken };
    }
    // Eviction is off, because nothing here polls for finished calls.
    let mut engine = Engine::new(EngineOptions { evict: false, ..options });
    let broken = match begins {
        Ok(begins) => drive(&mut engine, &begins, input, progress).err(),
        Err(error) => Some(error.into()),
    };
    PartsOutcome { parts: engine.close(name), broken }
}

/// Feeds the engine with what was already read, and with the rest.
fn drive<R: Read>(
    engine: &mut Engine,
    begins: &[u8],
    mut input: Plain<R>,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<(), Broken> {
    let mut feed = Feed::default();
    feed.take(begins, |record| engine.record(record))?;
    let mut buffer = vec![0_u8; BUFFER_LEN];
    // Each turn reads at least one byte, or is the last.
    loop {
        match input.read(&mut buffer) {
            Ok(0) => break,
            Ok(len) => feed.take(buffer.get(..len).unwrap_or_default(), |record| engine.record(record))?,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error.into()),
        }
        progress(input.taken(), engine.packets());
    }
    Ok(feed.finish()?)
}

/// Small enough to stay in the cache between the kernel that fills it and the engine that reads it.
const BUFFER_LEN: usize = 256 << 10;
