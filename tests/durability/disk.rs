//! Disks under the journal that fail at a chosen operation, fill up, or lose unsynchronised data.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use sidetone::cdr::journal::{Journal, JournalOptions};
use sidetone::cdr::reader::JournalReader;
use sidetone::cdr::segment::{HEAD, path_of};
use sidetone::cdr::storage::{Disk, SegmentFile, Storage};
use sidetone::supervise::Supervisor;

use crate::common::records::{TempDir, answered, at, ended};

/// The settings and the state of a test disk; clones are the same disk.
#[derive(Clone, Debug, Default)]
pub struct Faulty(Arc<Mutex<Faults>>);

#[derive(Debug, Default)]
pub struct Faults {
    /// Operations until now.
    pub operations: u64,
    /// The operation at which the power is cut: later operations have no effect.
    pub cut_at: Option<u64>,
    pub is_cut: bool,
    /// Writes and synchronisations fail with this, while it is set.
    pub error: Option<io::ErrorKind>,
    /// One synchronisation fails with an I/O error.
    pub fails_once: bool,
    /// Free bytes of the disk, when it is limited.
    pub free: Option<u64>,
    pub reserved: u64,
    /// The synchronised and the unsynchronised bytes, by segment.
    pub files: BTreeMap<u64, Contents>,
    /// Every write by its segment.
    pub writes: Vec<u64>,
}

#[derive(Clone, Debug, Default)]
pub struct Contents {
    pub synced: Vec<u8>,
    pub unsynced: Vec<u8>,
}

impl Faulty {
    pub fn set(&self, change: impl FnOnce(&mut Faults)) {
        change(&mut self.0.lock());
    }

    pub fn get<T>(&self, read: impl FnOnce(&Faults) -> T) -> T {
        read(&self.0.lock())
    }

    pub fn journal(&self, dir: &Path, reserve_bytes: u64) -> (Journal, JournalReader) {
        let storage = FaultyStorage { dir: dir.to_path_buf(), disk: Disk::new(dir), faults: self.clone() };
        let options = JournalOptions {
            reserve_bytes,
            storage: Some(Box::new(storage)),
            supervisor: Supervisor::default(),
            clock: None,
        };
        let (journal, reader, _) = Journal::open_with(dir, &|_| {}, options).unwrap();
        (journal, reader)
    }

    /// The state after a power cut, in a new directory: everything that was synchronised, and a part of the rest,
    /// nothing of it, or as many zeros. `present` are the segments that had not been removed.
    pub fn after_the_cut(&self, present: &[u64], seed: u64) -> TempDir {
        let mut rng = StdRng::seed_from_u64(seed);
        let dir = TempDir::new();
        for (number, contents) in &self.0.lock().files {
            // The removal may not have reached the disk either.
            if !present.contains(number) && rng.random_bool(0.5) {
                continue;
            }
            let mut bytes = contents.synced.clone();
            let rest = rng.random_range(0..=contents.unsynced.len());
            match rng.random_range(0..3) {
                0 => {}
                1 => bytes.extend(&contents.unsynced[..rest]),
                _ => bytes.extend(std::iter::repeat_n(0, rest)),
            }
            std::fs::write(path_of(dir.path(), *number), bytes).unwrap();
        }
        dir
    }

    fn count(&self) -> io::Result<()> {
        let mut faults = self.0.lock();
        faults.operations += 1;
        if faults.cut_at == Some(faults.operations) {
            faults.is_cut = true;
        }
        faults.error.map_or(Ok(()), |kind| Err(kind.into()))
    }
}

#[derive(Debug)]
struct FaultyStorage {
    dir: PathBuf,
    disk: Disk,
    faults: Faulty,
}

#[derive(Debug)]
struct FaultyFile {
    number: u64,
    file: Box<dyn SegmentFile>,
    faults: Faulty,
}

impl FaultyStorage {
    fn opened(&self, number: u64, file: Box<dyn SegmentFile>) -> Box<dyn SegmentFile> {
        let mut faults = self.faults.0.lock();
        if !faults.is_cut {
            faults.files.insert(number, Contents { synced: HEAD.to_vec(), unsynced: Vec::new() });
        }
        Box::new(FaultyFile { number, file, faults: self.faults.clone() })
    }
}

impl Storage for FaultyStorage {
    fn create(&mut self, number: u64) -> io::Result<Box<dyn SegmentFile>> {
        self.faults.count()?;
        if self.faults.get(|faults| faults.free.is_some_and(|free| free < HEAD.len() as u64)) {
            return Err(io::ErrorKind::StorageFull.into());
        }
        let file = self.disk.create(number)?;
        Ok(self.opened(number, file))
    }

    fn list(&self) -> io::Result<Vec<u64>> {
        self.disk.list()
    }

    fn free_bytes(&self) -> io::Result<u64> {
        Ok(self.faults.get(|faults| faults.free.unwrap_or(u64::MAX / 2)))
    }

    fn reserve(&mut self, len: u64) -> io::Result<()> {
        let mut faults = self.faults.0.lock();
        if faults.reserved == len {
            return Ok(());
        }
        if let Some(free) = &mut faults.free {
            *free = free.checked_sub(len).ok_or(io::ErrorKind::StorageFull)?;
        }
        faults.reserved = len;
        Ok(())
    }

    fn take_reserve(&mut self, number: u64) -> io::Result<Option<Box<dyn SegmentFile>>> {
        let reserved = std::mem::take(&mut self.faults.0.lock().reserved);
        if reserved == 0 {
            return Ok(None);
        }
        // The reserved space may be written from now on.
        self.faults.set(|faults| faults.free = faults.free.map(|free| free + reserved));
        std::fs::write(path_of(&self.dir, number), b"").unwrap();
        std::fs::remove_file(path_of(&self.dir, number)).unwrap();
        let file = self.disk.create(number)?;
        Ok(Some(self.opened(number, file)))
    }
}

impl FaultyFile {
    /// The write is one operation that can be cut, the synchronisation another.
    fn write_unsynced(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.faults.count()?;
        {
            let mut faults = self.faults.0.lock();
            faults.writes.push(self.number);
            if let Some(free) = &mut faults.free {
                *free = free.checked_sub(bytes.len() as u64).ok_or(io::ErrorKind::StorageFull)?;
            }
            if !faults.files.contains_key(&self.number) && !faults.is_cut {
                panic!("a segment that nobody created is written");
            }
        }
        self.file.append(bytes)?;
        let before = self.faults.get(|faults| faults.is_cut);
        if !before {
            let number = self.number;
            self.faults.set(|faults| faults.files.get_mut(&number).unwrap().unsynced.extend(bytes));
        }
        Ok(())
    }
}

impl SegmentFile for FaultyFile {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.write_unsynced(bytes)?;
        self.faults.count()?;
        let mut faults = self.faults.0.lock();
        if std::mem::take(&mut faults.fails_once) {
            // It is unknown which bytes reached the disk: the model loses them at the cut.
            return Err(io::Error::from_raw_os_error(5));
        }
        if !faults.is_cut {
            let contents = faults.files.get_mut(&self.number).unwrap();
            let unsynced = std::mem::take(&mut contents.unsynced);
            contents.synced.extend(unsynced);
        }
        Ok(())
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.write_unsynced(bytes)
    }
}

/// A record without a waiting caller becomes durable with the next record that has one, also when that synchronisation
/// fails and everything is written to a new segment.
#[test]
fn ends_are_durable_with_the_next_answer() {
    for fails_once in [false, true] {
        let (dir, disk) = (TempDir::new(), Faulty::default());
        let (journal, mut reader) = disk.journal(dir.path(), 0);
        for number in 1..=20 {
            drop(journal.ended(ended(number)).unwrap());
        }
        disk.set(|faults| faults.fails_once = fails_once);
        assert!(journal.answered(answered(21)).unwrap().wait());
        assert_eq!(journal.failed_segments(), u64::from(fails_once));
        // Records of an abandoned segment are in the next one too.
        let read = reader.next_batch(100).unwrap();
        assert!((1..=20).all(|number| read.contains(&ended(number))), "fails once: {fails_once}");
        // The power cut loses everything that is not synchronised.
        let left = TempDir::new();
        for (number, contents) in disk.get(|faults| faults.files.clone()) {
            std::fs::write(path_of(left.path(), number), contents.synced).unwrap();
        }
        let (journal, mut reader, recovery) = Journal::open(left.path()).unwrap();
        drop(journal);
        assert_eq!(recovery.crashed_calls, 1, "the answered call");
        let calls: BTreeSet<_> =
            reader.next_batch(100).unwrap().into_iter().map(|cdr| cdr.call_uuid).collect();
        assert_eq!(calls.len(), 21, "fails once: {fails_once}");
    }
}

/// Records read from memory equal those read from the files.
#[test]
fn a_reader_gets_the_same_from_memory_and_from_the_files() {
    let dir = TempDir::new();
    let (journal, mut reader, _) = Journal::open(dir.path()).unwrap();
    for number in 1..=30 {
        assert!(journal.answered(answered(number)).unwrap().wait());
        assert!(journal.ended(ended(number)).unwrap().wait());
    }
    let copy = TempDir::snapshot(dir.path());
    let from_memory = reader.next_batch(100).unwrap();
    let (second, mut reader, _) = Journal::open(copy.path()).unwrap();
    drop(second);
    assert_eq!(from_memory, reader.next_batch(100).unwrap());
    assert_eq!(from_memory.len(), 30);
    drop(journal);
}

/// D6: the segment whose synchronisation failed is never written again, and the record is in the next one.
#[test]
fn a_failed_synchronisation_gives_the_segment_up() {
    let (dir, disk) = (TempDir::new(), Faulty::default());
    let (journal, mut reader) = disk.journal(dir.path(), 0);
    assert!(journal.ended(ended(1)).unwrap().wait());
    disk.set(|faults| faults.fails_once = true);
    assert!(journal.ended(ended(2)).unwrap().wait());
    assert!(journal.ended(ended(3)).unwrap().wait());
    let writes = disk.get(|faults| faults.writes.clone());
    // The first try of record 2 went to segment 1, its second and everything later to segment 2.
    // The first write is the one of the start.
    assert_eq!(writes, [1, 1, 1, 2, 2]);
    assert_eq!(journal.failed_segments(), 1);
    assert!(journal.is_healthy(), "the new segment takes records");
    let calls: Vec<_> = reader.next_batch(10).unwrap();
    assert!([ended(1), ended(2), ended(3)].iter().all(|call| calls.contains(call)), "{calls:?}");
    // The power cut loses what was never synchronised: the record is in the new segment nevertheless.
    let left = disk.after_the_cut(&[1, 2], 1);
    std::fs::write(path_of(left.path(), 1), disk.get(|faults| faults.files[&1].synced.clone())).unwrap();
    let (journal, mut reader, _) = Journal::open(left.path()).unwrap();
    drop(journal);
    assert_eq!(reader.next_batch(10).unwrap().len(), 3);
}

/// D6: while every write fails, nothing is acknowledged and the journal reports it; afterwards nothing is lost.
#[test]
fn a_disk_that_fails_delays_and_is_named() {
    let (dir, disk) = (TempDir::new(), Faulty::default());
    let (journal, mut reader) = disk.journal(dir.path(), 0);
    for kind in [io::ErrorKind::ReadOnlyFilesystem, io::ErrorKind::Other] {
        disk.set(|faults| faults.error = Some(kind));
        let committed = journal.ended(ended(1)).unwrap();
        while journal.is_healthy() {
            std::thread::yield_now();
        }
        disk.set(|faults| faults.error = None);
        assert!(committed.wait(), "the record is written once the disk takes it");
        while !journal.is_healthy() {
            std::thread::yield_now();
        }
    }
    assert!(reader.next_batch(10).unwrap().iter().all(|call| *call == ended(1)));
}

/// D5: the reserve holds the records of calls that are up, new calls are refused, and everything recovers.
#[test]
fn a_full_disk_leaves_the_reserve_to_the_calls_that_are_up() {
    const RESERVE: u64 = 1 << 20;
    let (dir, disk) = (TempDir::new(), Faulty::default());
    disk.set(|faults| faults.free = Some(4 << 20));
    let (journal, mut reader) = disk.journal(dir.path(), RESERVE);
    assert!(journal.ended(ended(1)).unwrap().wait());
    assert!(journal.is_healthy() && journal.has_reserve());
    assert_eq!(disk.get(|faults| faults.reserved), RESERVE);

    // Another program fills the disk.
    disk.set(|faults| faults.free = Some(0));
    for number in 2..200 {
        assert!(journal.ended(ended(number)).unwrap().wait(), "a call that is up keeps its record");
    }
    while journal.is_healthy() {
        std::thread::yield_now();
    }
    assert!(!journal.has_reserve() && !journal.has_space());
    let stored = reader.next_batch(1_000).unwrap();
    assert_eq!(stored.len(), 199, "nothing is lost on a full disk");

    // Space again: the reserve is allocated before new calls are accepted.
    disk.set(|faults| faults.free = Some(8 << 20));
    while !journal.is_healthy() {
        assert!(journal.tick(at(5)).unwrap().wait());
    }
    assert!(journal.has_reserve());
    assert_eq!(disk.get(|faults| faults.reserved), RESERVE);
}

/// The reserve is a segment head followed by zeros: records written into it are read, and zeros mark its end.
#[test]
fn a_segment_made_of_the_reserve_is_read_to_its_last_record() {
    let dir = TempDir::new();
    let mut disk = Disk::new(dir.path());
    disk.reserve(256 << 10).unwrap();
    let mut file = disk.take_reserve(1).unwrap().unwrap();
    let mut bytes = Vec::new();
    for number in 1..=3 {
        let record = sidetone::cdr::segment::Record::Ended(Box::new(ended(number)), None);
        sidetone::cdr::segment::encode(&record, &mut bytes).unwrap();
    }
    file.append(&bytes).unwrap();
    assert!(disk.take_reserve(2).unwrap().is_none(), "it is there once");
    let (journal, mut reader, recovery) = Journal::open(dir.path()).unwrap();
    drop(journal);
    assert_eq!((recovery.segments, recovery.damaged_segments), (1, 0));
    assert_eq!(reader.next_batch(10).unwrap(), [ended(1), ended(2), ended(3)]);
}
