//! The stages of an analysis; each includes those before it.

use std::fs::File;
use std::hint::black_box;
use std::io::Read;
use std::path::Path;

use sidetone_capture::{self as capture, EngineOptions, Source};
use sidetone_media::pcap::{Decoder, Record, dissect_plain};
use sidetone_media::rtp::Packet;

/// What a capture contains.
pub struct Found {
    pub packets: u64,
    pub calls: usize,
    pub streams: usize,
}

/// The size of a capture in bytes, and what it contains; afterwards the file is in the page cache.
pub fn look(path: &Path) -> (u64, Found) {
    let size = std::fs::metadata(path).expect("the capture is there").len();
    let analysis = capture::read("bench", &mut open(path), &mut |_| {}).analysis;
    (size, Found { packets: analysis.packets, calls: analysis.calls.len(), streams: analysis.streams.len() })
}

/// The file's bytes into memory, nothing else.
pub fn read(path: &Path) {
    let (mut file, mut buffer) = (open(path), vec![0_u8; BUFFER_LEN]);
    while file.read(&mut buffer).expect("the capture can be read") > 0 {
        black_box(&buffer);
    }
}

/// The records of the file.
pub fn walk(path: &Path) {
    records(path, |record| {
        black_box(record);
    });
}

/// The headers of all layers, up to RTP.
pub fn dissect(path: &Path) {
    records(path, |record| {
        let plain = dissect_plain(record.link, record.frame);
        black_box(plain.and_then(|plain| Packet::parse(plain.payload).ok()));
    });
}

/// The complete analysis with that many threads; each call is dropped once judged, as after it is written.
pub fn analyze(path: &Path, threads: usize) {
    let options = EngineOptions { threads, ..EngineOptions::default() };
    let outcome = capture::read_parts(options, "bench", Source::File(open(path)), &mut |_, _| {});
    outcome.parts.for_each(|part| {
        black_box(part);
    });
}

fn records(path: &Path, mut each: impl FnMut(&Record<'_>)) {
    let (mut file, mut decoder) = (open(path), Decoder::new());
    let mut buffer = vec![0_u8; BUFFER_LEN];
    let mut end = 0;
    loop {
        match file.read(&mut buffer[end..]).expect("the capture can be read") {
            0 => return,
            len => end += len,
        }
        let begin = decoder.drain(&buffer[..end], &mut each).expect("a sound capture").consumed;
        buffer.copy_within(begin..end, 0);
        end -= begin;
    }
}

fn open(path: &Path) -> File {
    File::open(path).expect("the capture can be opened")
}

/// The buffer size that one thread uses.
const BUFFER_LEN: usize = 256 << 10;
