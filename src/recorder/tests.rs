//! Recordings on disks that are slow, full or broken, or that fail at any time.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

use parking_lot::Mutex;
use sidetone_media::audio::clip::Clip;
use sidetone_media::audio::wav::{HEADER_LEN, Wav};
use sidetone_media::mix::FrameSink;
use sidetone_media::time::Micros;
use sidetone_model::ids::{ConferenceSessionId, OrganisationId};
use uuid::Uuid;

use crate::recorder::{
    Begin, DataDisk, Disk, Ended, Recorder, RecorderCounters, RecordingKind, RecordingSink, Recordings,
    Storage, WavFile, channels_of, recover,
};
use crate::supervise::Supervisor;

/// A disk in memory; clones share it.
#[derive(Clone, Default)]
struct Memory(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    files: BTreeMap<ConferenceSessionId, Vec<u8>>,
    /// Operations so far.
    operations: u64,
    /// The operation that fails, and how; all later ones fail as well.
    fails_at: Option<(u64, io::ErrorKind)>,
    /// Bytes that fit, over all files.
    room: Option<usize>,
    /// Every state that a crash would have left.
    crashes: Option<Vec<Vec<u8>>>,
}

struct Handle(Memory, ConferenceSessionId);

impl Memory {
    fn operation(&self) -> io::Result<()> {
        let mut state = self.0.lock();
        state.operations += 1;
        match state.fails_at {
            Some((at, kind)) if state.operations >= at => Err(kind.into()),
            _ => Ok(()),
        }
    }

    fn file(&self, session: ConferenceSessionId) -> Option<Vec<u8>> {
        self.0.lock().files.get(&session).cloned()
    }
}

impl Disk for Memory {
    type Storage = Handle;

    fn open(&mut self, _organisation: OrganisationId, session: ConferenceSessionId) -> io::Result<Handle> {
        self.operation()?;
        self.0.lock().files.entry(session).or_default();
        Ok(Handle(self.clone(), session))
    }

    fn find(
        &mut self,
        _organisation: OrganisationId,
        session: ConferenceSessionId,
    ) -> io::Result<Option<u64>> {
        Ok(self.file(session).map(|file| file.len() as u64))
    }

    fn remove(&mut self, _organisation: OrganisationId, session: ConferenceSessionId) -> io::Result<()> {
        self.0.lock().files.remove(&session);
        Ok(())
    }

    fn free_bytes(&mut self) -> io::Result<u64> {
        let state = self.0.lock();
        let used = state.files.values().map(Vec::len).sum::<usize>();
        Ok(state.room.map_or(u64::MAX, |room| room.saturating_sub(used) as u64))
    }
}

impl Storage for Handle {
    fn size(&mut self) -> io::Result<u64> {
        Ok(self.0.file(self.1).map_or(0, |file| file.len() as u64))
    }

    /// Like a real disk: it writes the part that fits, then fails; existing bytes are overwritten.
    fn write_at(&mut self, place: u64, bytes: &[u8]) -> io::Result<()> {
        let failed = self.0.operation();
        let mut state = self.0.0.lock();
        let used = state.files.values().map(Vec::len).sum::<usize>();
        let free = state.room.map_or(usize::MAX, |room| room.saturating_sub(used));
        let file = state.files.get_mut(&self.1).unwrap();
        let place = usize::try_from(place).unwrap();
        let inside = file.len().saturating_sub(place);
        let takes = bytes.len().min(inside.saturating_add(free));
        // A write that fails halfway leaves an odd number of bytes.
        let takes = if failed.is_err() && inside == 0 { takes.min((bytes.len() / 2) | 1) } else { takes };
        let end = file.len().max(place + takes);
        file.resize(end, 0);
        file[place..place + takes].copy_from_slice(&bytes[..takes]);
        let file = file.clone();
        if let Some(crashes) = &mut state.crashes {
            crashes.push(file);
        }
        failed?;
        if takes < bytes.len() { Err(io::ErrorKind::StorageFull.into()) } else { Ok(()) }
    }

    fn truncate(&mut self, len: u64) -> io::Result<()> {
        self.0.0.lock().files.get_mut(&self.1).unwrap().truncate(usize::try_from(len).unwrap());
        Ok(())
    }

    fn sync(&mut self) -> io::Result<()> {
        self.0.operation()
    }
}

const ACME: OrganisationId = OrganisationId(Uuid::from_u128(1));
const SESSION: ConferenceSessionId = ConferenceSessionId(Uuid::from_u128(2));

fn recordings(disk: &Memory, reserve_bytes: u64) -> Recordings<Memory> {
    Recordings::new(disk.clone(), reserve_bytes, Arc::default())
}

fn begin<D: Disk>(recordings: &mut Recordings<D>, session: ConferenceSessionId) -> RecordingSink {
    let (begin, sink) = Begin::new(ACME, session, &Arc::new(RecorderCounters::default()));
    recordings.begin(begin);
    sink
}

/// Records a mix whose samples count upwards, second by second, until the sink accepts no more or `seconds` have
/// passed.
fn talk<D: Disk>(recordings: &mut Recordings<D>, sink: &mut RecordingSink, seconds: i64) -> bool {
    for frame in 0..seconds * 50 {
        let pcm: [i16; 320] = std::array::from_fn(|n| (frame * 320 + n as i64) as i16);
        if !sink.frame(Micros(frame * 20_000), &pcm) {
            return false;
        }
        if frame % 12 == 11 {
            recordings.turn();
        }
    }
    true
}

fn ended<D: Disk>(recordings: &mut Recordings<D>) -> Vec<Ended> {
    std::iter::from_fn(|| recordings.poll_ended()).collect()
}

fn counts_upwards(samples: &[i16]) -> bool {
    samples.iter().enumerate().all(|(n, sample)| *sample == n as i16)
}

#[test]
fn a_session_is_one_file_however_often_it_is_recorded() {
    let disk = Memory::default();
    let mut recordings = recordings(&disk, 0);
    let mut sink = begin(&mut recordings, SESSION);
    assert!(talk(&mut recordings, &mut sink, 2));
    drop(sink);
    // Started again before the first was completely written: appended to the same file.
    let mut sink = begin(&mut recordings, SESSION);
    assert!(talk(&mut recordings, &mut sink, 1));
    drop(sink);
    recordings.turn();
    let bytes = 3 * 32_000 + HEADER_LEN as u64;
    let told = Ended { organisation: ACME, session: SESSION, kind: RecordingKind::Room, bytes, error: None };
    assert_eq!(ended(&mut recordings), [told]);
    // And again after it was completed.
    let mut sink = begin(&mut recordings, SESSION);
    assert!(talk(&mut recordings, &mut sink, 1));
    drop(sink);
    recordings.turn();
    assert_eq!(ended(&mut recordings)[0].bytes, bytes + 32_000);
    let file = disk.file(SESSION).unwrap();
    let samples = Wav::parse(&file).unwrap().mono();
    assert_eq!(samples.len(), 64_000);
    let parts = [&samples[..32_000], &samples[32_000..48_000], &samples[48_000..]];
    assert!(parts.into_iter().all(counts_upwards));
}

/// M10: every operation that can fail, with every kind of disk error. The reported result matches the disk, the file
/// can be played, and the mix detects the end.
#[test]
fn whatever_fails_ends_the_recording_and_leaves_a_file_that_plays() {
    let operations = {
        let disk = Memory::default();
        let mut recordings = recordings(&disk, 0);
        let mut sink = begin(&mut recordings, SESSION);
        talk(&mut recordings, &mut sink, 4);
        drop(sink);
        recordings.turn();
        assert_eq!(ended(&mut recordings)[0].error, None);
        disk.0.lock().operations
    };
    assert!(operations > 15, "{operations}");
    for kind in [io::ErrorKind::StorageFull, io::ErrorKind::Other, io::ErrorKind::PermissionDenied] {
        for at in 1..=operations {
            let disk = Memory::default();
            disk.0.lock().fails_at = Some((at, kind));
            let mut recordings = recordings(&disk, 0);
            let mut sink = begin(&mut recordings, SESSION);
            let all = talk(&mut recordings, &mut sink, 4);
            let more: [i16; 320] = std::array::from_fn(|n| (64_000 + n as i64) as i16);
            let is_taken = all && sink.frame(Micros(4_000_000), &more);
            drop(sink);
            recordings.finish();
            let told = ended(&mut recordings);
            assert_eq!(told.len(), 1, "{kind} at {at}");
            assert!(told[0].error.is_some(), "{kind} at {at}");
            // A failure after the last frame was taken is reported nevertheless.
            assert!(!is_taken || at + 3 > operations, "{kind} at {at}: the mix goes on");
            true_to_the_disk(&disk, &told[0], &format!("{kind} at {at}"));
        }
    }
}

/// The reported length is the file's length, and a player finds all of it.
fn true_to_the_disk(disk: &Memory, told: &Ended, case: &str) {
    let file = disk.file(SESSION);
    if told.bytes == 0 {
        assert_eq!(file, None, "{case}");
        return;
    }
    let file = file.unwrap();
    assert_eq!(file.len() as u64, told.bytes, "{case}");
    let wav = Wav::parse(&file).unwrap_or_else(|error| panic!("{case}: {error}"));
    assert!(counts_upwards(&wav.mono()[..]), "{case}");
    assert_eq!(wav.frames(), (told.bytes - HEADER_LEN as u64) / 2, "{case}");
}

#[test]
fn a_disk_that_fills_up_ends_the_recording_where_it_is_full() {
    for room in [0, 79, 80, 81, 30_000, 64_081] {
        let disk = Memory::default();
        disk.0.lock().room = Some(room);
        let mut recordings = recordings(&disk, 0);
        let mut sink = begin(&mut recordings, SESSION);
        talk(&mut recordings, &mut sink, 10);
        recordings.turn();
        assert!(!sink.frame(Micros(10_000_000), &[0; 320]), "{room}");
        let told = ended(&mut recordings);
        assert_eq!(told.len(), 1, "{room}");
        assert_eq!(told[0].error.as_deref(), Some("the disk of recordings is full"), "{room}");
        let whole = if room <= 81 { 0 } else { room as u64 & !1 };
        assert_eq!(told[0].bytes, whole, "{room}");
        true_to_the_disk(&disk, &told[0], &room.to_string());
        // The header covers everything: no sample is lost because the header was a second old.
        if let Some(file) = disk.file(SESSION) {
            assert_eq!(u64::from(u32::from_le_bytes(file[76..80].try_into().unwrap())), whole - 80);
        }
    }
}

/// No recording uses the space reserved for the database and the journal.
#[test]
fn what_is_kept_free_stays_free() {
    let disk = Memory::default();
    disk.0.lock().room = Some(100_000);
    let mut recordings = recordings(&disk, 50_000);
    let mut sink = begin(&mut recordings, SESSION);
    assert!(!talk(&mut recordings, &mut sink, 10));
    let told = ended(&mut recordings);
    assert!(told[0].error.as_ref().unwrap().contains("[recordings] reserve_mb"), "{told:?}");
    assert!((1_000..90_000).contains(&told[0].bytes), "{told:?}");
    let other = ConferenceSessionId(Uuid::from_u128(3));
    let mut refused = begin(&mut recordings, other);
    assert!(!refused.frame(Micros(0), &[0; 320]));
    assert_eq!((ended(&mut recordings)[0].bytes, disk.file(other)), (0, None));
    // The earlier recording of the session keeps its reported length.
    let before = told[0].bytes;
    drop(begin(&mut recordings, SESSION));
    assert_eq!(ended(&mut recordings)[0].bytes, before);
}

/// A crash at any time: the file on the disk can be played except for the last second, and completely after recovery.
#[test]
fn a_crash_at_any_moment_leaves_a_file_that_plays() {
    let disk = Memory::default();
    disk.0.lock().crashes = Some(Vec::new());
    let mut recordings = recordings(&disk, 0);
    let mut sink = begin(&mut recordings, SESSION);
    assert!(talk(&mut recordings, &mut sink, 5));
    let crashes = disk.0.lock().crashes.take().unwrap();
    assert!(crashes.len() > 20);
    for mut left in crashes {
        let on_disk = left.len().saturating_sub(HEADER_LEN) / 2;
        let said = Wav::parse(&left).map_or(0, |wav| wav.frames() as usize);
        assert!(on_disk - said <= 16_000 * 5 / 4, "{said} of {on_disk} samples are said");
        let mut file = WavFile::open(Slice(&mut left)).unwrap();
        file.finish().unwrap();
        assert_eq!(file.is_empty(), on_disk == 0);
        if on_disk > 0 {
            assert!(counts_upwards(&Wav::parse(&left).unwrap().mono()));
            assert_eq!(Wav::parse(&left).unwrap().frames() as usize, on_disk);
        }
    }
}

struct Slice<'a>(&'a mut Vec<u8>);

impl Storage for Slice<'_> {
    fn size(&mut self) -> io::Result<u64> {
        Ok(self.0.len() as u64)
    }

    fn write_at(&mut self, place: u64, bytes: &[u8]) -> io::Result<()> {
        let end = place as usize + bytes.len();
        self.0.resize(self.0.len().max(end), 0);
        self.0[place as usize..end].copy_from_slice(bytes);
        Ok(())
    }

    fn truncate(&mut self, len: u64) -> io::Result<()> {
        self.0.truncate(len as usize);
        Ok(())
    }

    fn sync(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A recording of several days: the file is sparse, the sizes are real.
#[test]
fn a_recording_goes_on_behind_2_and_4_gib() {
    let dir = crate_dir();
    let disk = DataDisk::new(dir.clone());
    for (n, gib) in [(1, 2_u64), (2, 4)] {
        let session = ConferenceSessionId(Uuid::from_u128(n));
        let path = disk.path(ACME, session);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        let edge = (gib << 30) - 16_000;
        std::fs::File::create(&path).unwrap().set_len(edge).unwrap();
        let mut recordings = Recordings::new(disk.clone(), 0, Arc::default());
        let mut sink = begin(&mut recordings, session);
        assert!(talk(&mut recordings, &mut sink, 1));
        drop(sink);
        recordings.turn();
        let told = ended(&mut recordings).pop().unwrap();
        assert_eq!((told.bytes, told.error), (edge + 32_000, None), "{gib} GiB");
        let head = first_bytes(&path);
        let wide = |at: usize| u64::from_le_bytes(head[at..at + 8].try_into().unwrap());
        let narrow = |at: usize| u64::from(u32::from_le_bytes(head[at..at + 4].try_into().unwrap()));
        if gib == 2 {
            assert_eq!(
                (&head[..4], narrow(4), narrow(76)),
                (b"RIFF".as_slice(), told.bytes - 8, told.bytes - 80)
            );
        } else {
            assert_eq!((&head[..4], &head[12..16]), (b"RF64".as_slice(), b"ds64".as_slice()));
            assert_eq!((wide(20), wide(28)), (told.bytes - 8, told.bytes - 80));
        }
    }
    std::fs::remove_dir_all(dir).unwrap();
}

fn first_bytes(path: &std::path::Path) -> Vec<u8> {
    use std::io::Read;

    let mut head = vec![0; HEADER_LEN];
    std::fs::File::open(path).unwrap().read_exact(&mut head).unwrap();
    head
}

/// A directory for this test only.
fn crate_dir() -> std::path::PathBuf {
    std::env::temp_dir().join(format!("sidetone-recordings-{}", Uuid::new_v4()))
}

/// The thread with the real disk: a directory that cannot be written, and one that can.
#[test]
fn the_recorder_tells_what_became_of_each() {
    let dir = crate_dir();
    let (ended, heard) = std::sync::mpsc::channel();
    let disk = DataDisk::new(dir.clone());
    let recorder =
        Recorder::start(disk.clone(), 0, &Supervisor::default(), move |told| ended.send(told).unwrap())
            .unwrap();
    let mut sink = recorder.begins().begin(ACME, SESSION).unwrap();
    for n in 0..100 {
        assert!(sink.frame(Micros(n * 20_000), &[9; 320]));
    }
    drop(sink);
    let bytes = 64_000 + HEADER_LEN as u64;
    let told = heard.recv().unwrap();
    assert_eq!(
        told,
        Ended { organisation: ACME, session: SESSION, kind: RecordingKind::Room, bytes, error: None }
    );
    let file = std::fs::read(disk.path(ACME, SESSION)).unwrap();
    assert_eq!(Clip::from_wav(&file).unwrap().samples(), [9; 32_000]);
    // A recording in progress is completed when the engine stops.
    let other = ConferenceSessionId(Uuid::from_u128(3));
    let mut sink = recorder.begins().begin(ACME, other).unwrap();
    assert!(sink.frame(Micros(0), &[9; 320]));
    let begins = recorder.begins();
    recorder.stop();
    assert_eq!(heard.recv().unwrap().bytes, 640 + HEADER_LEN as u64);
    assert!(!sink.frame(Micros(20_000), &[9; 320]));
    assert!(begins.begin(ACME, SESSION).is_err(), "nobody writes any more");
    std::fs::remove_dir_all(&dir).unwrap();

    // A file where the directory should be.
    std::fs::write(&dir, "").unwrap();
    let (ended, heard) = std::sync::mpsc::channel();
    let recorder =
        Recorder::start(disk, 0, &Supervisor::default(), move |told| ended.send(told).unwrap()).unwrap();
    let counters = recorder.counters();
    let mut sink = recorder.begins().begin(ACME, SESSION).unwrap();
    let told = heard.recv().unwrap();
    assert_eq!(told.bytes, 0);
    assert!(told.error.unwrap().starts_with("the recording cannot be written: "));
    assert!(!sink.frame(Micros(0), &[9; 320]));
    assert_eq!((counters.failed(), counters.live()), (1, 0));
    recorder.stop();
    std::fs::remove_file(&dir).unwrap();
}

#[test]
fn what_a_crash_left_is_recovered() {
    let dir = crate_dir();
    let disk = DataDisk::new(dir.clone());
    let (bytes, said) = recover(&disk, ACME, SESSION, 1);
    assert_eq!((bytes, said.is_some()), (0, true), "there is none");
    let mut recordings = Recordings::new(disk.clone(), 0, Arc::default());
    let mut sink = begin(&mut recordings, SESSION);
    assert!(talk(&mut recordings, &mut sink, 2));
    // Samples that the header does not cover yet, and half a sample.
    let path = disk.path(ACME, SESSION);
    let mut left = std::fs::read(&path).unwrap();
    left.extend([7, 7, 7]);
    std::fs::write(&path, &left).unwrap();
    let (bytes, _) = recover(&disk, ACME, SESSION, 1);
    assert_eq!(bytes, left.len() as u64 - 1);
    let whole = std::fs::read(&path).unwrap();
    assert_eq!(Wav::parse(&whole).unwrap().frames(), (bytes - HEADER_LEN as u64) / 2);
    // A file of two channels ends with both, and its header lists them.
    std::fs::write(&path, [&left[..], &[7; 2]].concat()).unwrap();
    let (bytes, _) = recover(&disk, ACME, SESSION, 2);
    assert_eq!((bytes - HEADER_LEN as u64) % 4, 0);
    let whole = std::fs::read(&path).unwrap();
    assert_eq!((Wav::parse(&whole).unwrap().frames(), whole[58]), ((bytes - HEADER_LEN as u64) / 4, 2));
    // A later start of the process reads the number of channels from the header.
    assert_eq!(channels_of(&disk, ACME, SESSION), Some(2));
    // A file without any samples counts as none.
    std::fs::write(&path, &left[..40]).unwrap();
    assert_eq!(recover(&disk, ACME, SESSION, 1).0, 0);
    assert!(!path.exists());
    assert_eq!(channels_of(&disk, ACME, SESSION), None);
    std::fs::remove_dir_all(dir).unwrap();
}
