//! Reads a capture of any length into the engine with one buffer, or with threads that read ahead.

use std::fs::File;
use std::io::{self, Read, Seek};

use super::engine::{Engine, EngineOptions};
use super::feed::Feed;
use super::gzip::Plain;
use super::outcome::{Broken, End, Outcome, PartsOutcome};
use super::read_ahead::ReadAhead;
use super::time_order::TimeOrder;
use super::times::Times;
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
/// A file whose packets are not in the order of time is read in that order. A stream, which includes compressed
/// files, cannot be: its calls and streams are not judged, [`Head::times`](crate::Head::times).
///
/// [`EngineOptions::threads`] threads share the reading of a file. *Bounds*: each of them holds two blocks of
/// 512 KiB; the frames of at most seven blocks, plus one per thread, wait for the engine. They take a fifth
/// of the blocks' size, and with [`EngineOptions::audio`] all of it. A file that is not in the order of time takes 16
/// bytes for each of its packets; with more than 67,108,864 it is treated as a stream.
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
        Source::Stream(input) => match read_plain(options, name, Plain::new(input), false, progress, drive) {
            Reading::Done(outcome) => *outcome,
            Reading::OutOfOrder(engine) => closed(*engine, name, Ok(())),
        },
    }
}

/// The result of reading a capture once.
enum Reading {
    Done(Box<PartsOutcome>),
    /// It is not in the order of time; what follows was not read.
    OutOfOrder(Box<Engine>),
}

/// Reads a file, with threads where that is faster; if its packets are not in the order of time, it is read again
/// in that order.
pub(super) fn read_file(
    options: EngineOptions,
    ahead: ReadAhead,
    name: &str,
    file: &File,
    progress: &mut dyn FnMut(u64, u64),
) -> PartsOutcome {
    let mut most = (0, 0);
    // The second reading starts at the first packet again; the reported progress must not go back.
    let progress = &mut |bytes: u64, packets: u64| {
        most = (most.0.max(bytes), most.1.max(packets));
        progress(most.0, most.1);
    };
    let can_start_over = file.metadata().is_ok_and(|file| file.is_file());
    match read_file_once(options, ahead, name, file, can_start_over, progress) {
        Reading::Done(outcome) => *outcome,
        Reading::OutOfOrder(engine) => {
            drop(engine);
            read_in_order(options, ahead, name, file, progress)
        }
    }
}

/// Reads a file in the order of time; one that is too large for it in its own order.
fn read_in_order(
    options: EngineOptions,
    ahead: ReadAhead,
    name: &str,
    file: &File,
    progress: &mut dyn FnMut(u64, u64),
) -> PartsOutcome {
    let mut engine = Engine::new(EngineOptions { evict: false, ..options });
    if let Some(order) = TimeOrder::of(file) {
        engine.set_times(Times { untimed: order.untimed, out_of_order_from: None });
        let end = order.each(file, |record, bytes| {
            engine.record(record);
            if engine.packets().is_multiple_of(PACKETS_OF_PROGRESS) {
                progress(bytes, engine.packets());
            }
        });
        return closed(engine, name, end);
    }
    let mut from_start = file;
    if let Err(error) = from_start.rewind() {
        return closed(engine, name, Err(error.into()));
    }
    match read_file_once(options, ahead, name, file, false, progress) {
        Reading::Done(outcome) => *outcome,
        Reading::OutOfOrder(engine) => closed(*engine, name, Ok(())),
    }
}

fn read_file_once(
    options: EngineOptions,
    ahead: ReadAhead,
    name: &str,
    file: &File,
    can_start_over: bool,
    progress: &mut dyn FnMut(u64, u64),
) -> Reading {
    let input = Plain::new(file);
    if !ahead.suits(file) {
        return read_plain(options, name, input, can_start_over, progress, drive);
    }
    read_plain(options, name, input, can_start_over, progress, |engine, begins, input, progress| {
        ahead
            .drive(engine, begins, (file, input), progress)
            .unwrap_or_else(|input| drive(engine, begins, input, progress))
    })
}

/// Reads a possibly compressed trace or capture; for a capture, `drive` feeds the engine with all of it, or with
/// what comes before a step back in time if it `can_start_over` and is not compressed.
fn read_plain<R: Read>(
    options: EngineOptions,
    name: &str,
    mut input: Plain<R>,
    can_start_over: bool,
    progress: &mut dyn FnMut(u64, u64),
    drive: impl FnOnce(&mut Engine, &[u8], Plain<R>, &mut dyn FnMut(u64, u64)) -> Result<(), Broken>,
) -> Reading {
    let begins = beginning(&mut input);
    if let Ok(begins) = &begins
        && is_trace(begins)
    {
        let Outcome { analysis, broken } = read_trace(name, &mut input, &mut |bytes| progress(bytes, 0));
        return Reading::Done(Box::new(PartsOutcome { parts: analysis.into(), broken }));
    }
    // Eviction is off, because nothing here polls for finished calls.
    let mut engine = Engine::new(EngineOptions { evict: false, ..options });
    if can_start_over && !input.is_compressed() {
        engine.start_over_in_order();
    }
    let end = match begins {
        Ok(begins) => drive(&mut engine, &begins, input, progress),
        Err(error) => Err(error.into()),
    };
    if engine.must_stop() {
        return Reading::OutOfOrder(Box::new(engine));
    }
    Reading::Done(Box::new(closed(engine, name, end)))
}

fn closed(engine: Engine, name: &str, end: End) -> PartsOutcome {
    PartsOutcome { parts: engine.close(name), broken: end.err() }
}

/// Feeds the engine with what was already read, and with the rest.
fn drive<R: Read>(
    engine: &mut Engine,
    begins: &[u8],
    mut input: Plain<R>,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<(), Broken> {
    let mut feed = Feed::default();
    take(engine, &mut feed, begins)?;
    let mut buffer = vec![0_u8; BUFFER_LEN];
    // Each turn reads at least one byte, or is the last.
    loop {
        match input.read(&mut buffer) {
            Ok(0) => break,
            Ok(len) => take(engine, &mut feed, buffer.get(..len).unwrap_or_default())?,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error.into()),
        }
        progress(input.taken(), engine.packets());
        if engine.must_stop() {
            return Ok(());
        }
    }
    Ok(feed.finish()?)
}

/// Feeds the engine with the next bytes of a capture.
fn take(engine: &mut Engine, feed: &mut Feed, bytes: &[u8]) -> Result<(), Broken> {
    let taken = feed.take(bytes, |record| engine.record(record));
    engine.set_times(feed.times());
    Ok(taken?)
}

/// Small enough to stay in the cache between the kernel that fills it and the engine that reads it.
const BUFFER_LEN: usize = 256 << 10;
/// Packets between two reports of progress.
const PACKETS_OF_PROGRESS: u64 = 4_096;
