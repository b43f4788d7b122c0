//! The recorder and the mixer: its cost to the mixer, and a real disk of 8 MB that is full (M10).
#![allow(clippy::panic, clippy::print_stderr, clippy::unwrap_used, missing_docs)]

use std::alloc::System;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::mpsc::channel;

use sidetone::recorder::{Begin, DataDisk, Disk, Recorder};
use sidetone::supervise::Supervisor;
use sidetone_media::audio::wav::{HEADER_LEN, Wav};
use sidetone_media::mix::FrameSink;
use sidetone_media::time::Micros;
use sidetone_model::ids::{ConferenceSessionId, OrganisationId};
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};
use uuid::Uuid;

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

const ACME: OrganisationId = OrganisationId(Uuid::from_u128(1));
const SESSION: ConferenceSessionId = ConferenceSessionId(Uuid::from_u128(2));

/// One test, because the allocator counts all threads: a frame costs the mixer one copy and nothing else, even when no
/// task reads it; and a full disk ends the recording.
#[test]
fn a_mix_is_not_held_up_and_a_full_disk_ends_the_recording() {
    no_frame_allocates();
    a_disk_of_8_mb_fills_up();
}

/// The test harness has its own thread, which may allocate: allocations of a frame would appear in every round.
fn no_frame_allocates() {
    let rounds: Vec<(usize, usize)> = (0..5).map(|_| allocations_of_frames()).collect();
    assert!(rounds.contains(&(0, 0)), "{rounds:?}");
}

fn allocations_of_frames() -> (usize, usize) {
    let (begin, mut sink) = Begin::new(ACME, SESSION, &Arc::default());
    let pcm = [7; 320];
    sink.frame(Micros(0), &pcm);
    let region = Region::new(ALLOCATOR);
    // More frames than the queue to the disk holds: the last ones are lost.
    for n in 1..600 {
        assert!(sink.frame(Micros(n * 20_000), &pcm));
    }
    let change = region.change();
    drop(begin);
    (change.allocations, change.reallocations)
}

fn a_disk_of_8_mb_fills_up() {
    let Some(tmpfs) = Tmpfs::mount() else {
        eprintln!(
            "NOTICE: no file system of 8 MB can be mounted (who runs this is not root): M10 is not tried on a \
                   real one; src/recorder/tests.rs tries it on one in memory"
        );
        return;
    };
    let (ended, heard) = channel();
    let mut disk = DataDisk::of(&tmpfs.0);
    let recorder =
        Recorder::start(disk.clone(), 0, &Supervisor::default(), move |told| ended.send(told).unwrap())
            .unwrap();
    let mut sink = recorder.begins().begin(ACME, SESSION).unwrap();
    // As fast as the disk accepts, until the sink reports the end.
    let mut at = Micros(0);
    while sink.frame(at, &[1; 320]) {
        at = Micros(at.0 + 20_000);
        std::thread::yield_now();
    }
    let told = heard.recv().unwrap();
    assert_eq!(told.error.as_deref(), Some("the disk of recordings is full"));
    assert_eq!(disk.free_bytes().unwrap() / 4_096, 0, "it is full");
    let file = std::fs::read(disk.path(ACME, SESSION)).unwrap();
    assert_eq!(file.len() as u64, told.bytes);
    assert!(told.bytes > 7_000_000, "{} bytes", told.bytes);
    assert_eq!(Wav::parse(&file).unwrap().frames(), (told.bytes - HEADER_LEN as u64) / 2);
    assert_eq!((recorder.counters().failed(), recorder.counters().live()), (1, 0));
    recorder.stop();
}

/// A tmpfs, which is unmounted when the value is dropped.
struct Tmpfs(PathBuf);

impl Tmpfs {
    fn mount() -> Option<Tmpfs> {
        let dir = std::env::temp_dir().join(format!("sidetone-tmpfs-{}", Uuid::new_v4()));
        std::fs::create_dir(&dir).unwrap();
        let mounted = run("mount", &["-t", "tmpfs", "-o", "size=8m", "tmpfs"], &dir);
        if !mounted {
            std::fs::remove_dir(&dir).unwrap();
        }
        mounted.then_some(Tmpfs(dir))
    }
}

impl Drop for Tmpfs {
    fn drop(&mut self) {
        run("umount", &[], &self.0);
        let _ = std::fs::remove_dir(&self.0);
    }
}

fn run(program: &str, arguments: &[&str], dir: &Path) -> bool {
    let output = Command::new(program).args(arguments).arg(dir).output();
    output.is_ok_and(|output| output.status.success())
}
