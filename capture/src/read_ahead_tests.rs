//! Files that several threads read give the same result as one thread.

use std::cell::RefCell;
use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::write::GzEncoder;
use sidetone_media::pcap::Damage;

use super::*;
use crate::engine::EngineOptions;
use crate::kept_file::Kept;
use crate::outcome::PartsOutcome;
use crate::source::read_file;
use crate::{Source, compose, golden, read_parts, read_with};

/// The complete result of an analysis, and why reading stopped.
fn told(outcome: PartsOutcome) -> (serde_json::Value, Option<String>) {
    let analysis = outcome.parts.into_analysis();
    (serde_json::to_value(&analysis).unwrap(), outcome.broken.map(|broken| broken.to_string()))
}

fn at_once(path: &Path, options: EngineOptions) -> (serde_json::Value, Option<String>) {
    let mut file = File::open(path).unwrap();
    let outcome = read_parts(options, "file", Source::Stream(&mut file), &mut |_, _| {});
    if outcome.parts.head.times.out_of_order_from.is_some() {
        // Only a file can be read in the order of time.
        return ahead(path, options, ReadAhead { readers: 0, block_len: 1 << 12 });
    }
    told(outcome)
}

fn ahead(path: &Path, options: EngineOptions, ahead: ReadAhead) -> (serde_json::Value, Option<String>) {
    let (file, last) = (File::open(path).unwrap(), RefCell::new((0, 0)));
    let outcome = read_file(options, ahead, "file", &file, &mut |bytes, packets| {
        let mut last = last.borrow_mut();
        assert!(bytes >= last.0 && packets >= last.1, "progress goes on");
        *last = (bytes, packets);
    });
    assert!(last.borrow().1 <= outcome.parts.head.packets);
    assert!(last.borrow().0 <= file.metadata().unwrap().len());
    told(outcome)
}

/// Reads a file with several numbers of threads and block sizes.
fn check(name: &str, path: &Path, options: EngineOptions) {
    let expected = at_once(path, options);
    for (readers, block_len) in [(0, 1 << 12), (1, 977), (1, 1 << 14), (3, 4_099)] {
        let ahead = ahead(path, options, ReadAhead { readers, block_len });
        assert!(ahead == expected, "{name}: {readers} readers, blocks of {block_len}");
    }
}

fn call(text: &str) -> Vec<u8> {
    let mut file = Vec::new();
    compose(&text.parse().unwrap(), &mut file).unwrap();
    file
}

fn pack(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

#[test]
fn golden_captures_read_ahead_are_the_same() {
    for golden in golden::all() {
        let mut bytes = Vec::new();
        golden.write(&mut bytes).unwrap();
        let file = Kept::new(&bytes);
        for audio in [false, true] {
            check(golden.name, &file.0, EngineOptions { audio, ladder: true, ..EngineOptions::default() });
        }
    }
}

#[test]
fn captures_of_others_read_ahead_are_the_same() {
    let Some(shared) = std::env::var_os("SIDETONE_SHARED").map(PathBuf::from) else {
        eprintln!("SKIPPED: SIDETONE_SHARED does not name a folder of captures");
        return;
    };
    let mut count = 0;
    for entry in std::fs::read_dir(shared.join("captures")).unwrap() {
        let path = entry.unwrap().path();
        if path.is_file() && std::fs::metadata(&path).unwrap().len() < 4 << 20 {
            check(&path.to_string_lossy(), &path, EngineOptions::default());
            count += 1;
        }
    }
    assert!(count > 0);
}

#[test]
fn damage_is_reported_behind_the_same_packets() {
    let whole = call("lossy duration=4s digits=1");
    let mut wrong = whole.clone();
    wrong[60_000..60_100].fill(0xff);
    let cases = [
        ("cut off", whole[..whole.len() - 7].to_vec()),
        ("cut off in the first record", whole[..24 + 16 + 3].to_vec()),
        ("a block's length", whole[..977 * 40].to_vec()),
        ("damaged", wrong.clone()),
        ("no capture", b"something else ".repeat(300)),
        ("compressed", pack(&whole)),
        ("compressed and damaged", pack(&wrong)),
        ("compressed and no capture", pack(&(0..9_000_u32).flat_map(u32::to_be_bytes).collect::<Vec<_>>())),
        ("compressed and cut off", pack(&whole)[..8_000].to_vec()),
        ("compressed and more behind", [&pack(&whole)[..], b"trailing"].concat()),
        ("two members", [pack(&whole[..50_000]), pack(&whole[50_000..])].concat()),
    ];
    for (name, bytes) in cases {
        let file = Kept::new(&bytes);
        check(name, &file.0, EngineOptions::default());
    }
}

#[test]
fn a_file_that_shrinks_ends_where_it_ends_now() {
    let whole = call("clean duration=3s");
    let kept = Kept::new(&whole);
    let file = File::open(&kept.0).unwrap();
    let mut blocks = Blocks::new(Bytes::At(&file), 4_096);
    assert!(!blocks.copy(0));
    File::options().write(true).open(&kept.0).unwrap().set_len(6_000).unwrap();
    assert!(blocks.copy(1), "the second block is the last");
    let (mut feed, mut packets) = (Feed::default(), 0);
    assert!(matches!(blocks.cut(&mut feed, |_| packets += 1), (4_096, None)));
    let (taken, end) = blocks.cut(&mut feed, |_| packets += 1);
    let expected = read_with(EngineOptions::default(), "file", &mut &whole[..6_000], &mut |_, _| {});
    assert_eq!((taken, packets), (6_000, expected.analysis.packets));
    assert!(matches!(end, Some(Err(Broken::Damage(Damage::CutOff { .. })))));
}

#[test]
fn an_error_of_the_disk_is_told_behind_what_was_read() {
    let bytes = call("clean duration=1s");
    let kept = Kept::new(&bytes);
    // A file without read permission stands for a disk that cannot be read.
    let file = File::options().append(true).open(&kept.0).unwrap();
    let mut blocks = Blocks::new(Bytes::At(&file), 4_096);
    assert!(blocks.copy(0));
    let (_, end) = blocks.cut(&mut Feed::default(), |_| ());
    assert!(matches!(end, Some(Err(Broken::Io(_)))));
    let ahead = ReadAhead { readers: 1, block_len: 4_096 };
    let input = Plain::new(&file);
    let end = ahead.drive(&mut Engine::default(), &[], (&file, input), &mut |_, _| {});
    assert!(matches!(end, Ok(Err(Broken::Io(_)))));
}

#[test]
fn without_a_thread_the_input_is_as_before() {
    let bytes = call("clean duration=1s");
    for bytes in [pack(&bytes), bytes.clone()] {
        let kept = Kept::new(&bytes);
        let file = File::open(&kept.0).unwrap();
        let (mut input, mut begins, mut engine) = (Plain::new(&file), [0; 4], Engine::default());
        input.read_exact(&mut begins).unwrap();
        let none = ReadAhead { readers: 0, block_len: 4_096 };
        let mut input = none.drive(&mut engine, &begins, (&file, input), &mut |_, _| {}).unwrap_err();
        let mut rest = Vec::new();
        input.read_to_end(&mut rest).unwrap();
        assert_eq!((engine.packets(), [&begins[..], &rest].concat()), (0, call("clean duration=1s")));
    }
}

#[test]
fn the_panic_of_a_reader_ends_the_engine() {
    let shared = Shared {
        schedule: Mutex::new(Schedule::new(Feed::default(), 1, false)),
        changed: Condvar::new(),
        listens: false,
    };
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        let _failing = Failing(&shared);
        panic!("a reader panics");
    }));
    assert!(panicked.is_err());
    let kept = Kept::new(&[]);
    let file = File::open(&kept.0).unwrap();
    let end = shared.run(&mut Engine::default(), Blocks::new(Bytes::At(&file), 1), &mut |_, _| {});
    assert!(end.is_none());
}
