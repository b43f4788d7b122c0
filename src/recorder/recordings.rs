//! The recordings in progress: writes their frames, ends those that failed, and reports the result of each.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use sidetone_media::audio::wav::HEADER_LEN;
use sidetone_model::ids::{ConferenceSessionId, OrganisationId};

use crate::recorder::counters::RecorderCounters;
use crate::recorder::sink::{RecordingSink, Source, pair};
use crate::recorder::wav_file::{Disk, WavFile};

/// A recording to be started.
#[derive(Debug)]
pub struct Begin {
    organisation: OrganisationId,
    session: ConferenceSessionId,
    kind: RecordingKind,
    source: Source,
}

/// The recorded audio, and its number of channels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordingKind {
    /// Both parties of a call, each on a channel.
    Call,
    /// The mix of a room on one channel.
    Room,
    /// The mix of a room on two channels.
    RoomChannels,
}

impl RecordingKind {
    /// Channels of the file.
    pub fn channels(self) -> u16 {
        match self {
            RecordingKind::Room => 1,
            RecordingKind::Call | RecordingKind::RoomChannels => 2,
        }
    }
}

/// The result of a recording.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ended {
    /// The organisation it belongs to.
    pub organisation: OrganisationId,
    /// The session; for a call the id of its recording.
    pub session: ConferenceSessionId,
    /// What was recorded.
    pub kind: RecordingKind,
    /// Length of the session's file, with all its recordings; 0 when there is none.
    pub bytes: u64,
    /// Why it ended early.
    pub error: Option<String>,
}

/// The recordings of one disk.
pub struct Recordings<D: Disk> {
    disk: D,
    reserve_bytes: u64,
    live: BTreeMap<ConferenceSessionId, Recording<D::Storage>>,
    ended: VecDeque<Ended>,
    counters: Arc<RecorderCounters>,
    /// Buffer for the bytes to be written next; a field so that it is allocated once.
    bytes: Vec<u8>,
    turns: u64,
}

struct Recording<S> {
    organisation: OrganisationId,
    kind: RecordingKind,
    file: WavFile<S>,
    /// The source of the mix, and later sources that started while the earlier one was being written.
    sources: VecDeque<Source>,
}

impl Begin {
    /// Returns a recording and the sink for its mix.
    pub fn new(
        organisation: OrganisationId,
        session: ConferenceSessionId,
        counters: &Arc<RecorderCounters>,
    ) -> (Begin, RecordingSink) {
        Begin::of_kind(organisation, session, RecordingKind::Room, counters)
    }

    /// The same for a recording of this kind.
    pub fn of_kind(
        organisation: OrganisationId,
        session: ConferenceSessionId,
        kind: RecordingKind,
        counters: &Arc<RecorderCounters>,
    ) -> (Begin, RecordingSink) {
        let (sink, source) = pair(Arc::clone(counters), kind.channels());
        (Begin { organisation, session, kind, source }, sink)
    }
}

impl<D: Disk> Recordings<D> {
    /// Returns the recordings of `disk`. When less than `reserve_bytes` are free, no recording starts and those in
    /// progress end, because a full disk stops more than recordings.
    pub fn new(disk: D, reserve_bytes: u64, counters: Arc<RecorderCounters>) -> Self {
        let (live, ended) = (BTreeMap::new(), VecDeque::new());
        Recordings { disk, reserve_bytes, live, ended, counters, bytes: Vec::new(), turns: 0 }
    }

    /// Starts a recording, which is appended to the existing file of its session.
    pub fn begin(&mut self, begin: Begin) {
        let Begin { organisation, session, kind, source } = begin;
        if let Some(recording) = self.live.get_mut(&session) {
            recording.sources.push_back(source);
            return;
        }
        let opened = self.require_room().and_then(|()| self.disk.open(organisation, session));
        let file = opened.and_then(|storage| WavFile::open_with(storage, kind.channels()));
        match file {
            Ok(file) => {
                let sources = VecDeque::from([source]);
                self.live.insert(session, Recording { organisation, kind, file, sources });
                self.counters.live.store(self.live.len() as u64, Relaxed);
            }
            Err(error) => {
                source.over.store(true, Relaxed);
                let bytes = self.left(organisation, session);
                self.end(Ended { organisation, session, kind, bytes, error: Some(words(&error)) });
            }
        }
    }

    /// Whether no recording is in progress.
    pub fn is_idle(&self) -> bool {
        self.live.is_empty()
    }

    /// Writes waiting frames. Must be called a few times a second during recordings.
    pub fn turn(&mut self) {
        self.turns += 1;
        let looks = self.turns.is_multiple_of(LOOK_EVERY_TURNS) && !self.live.is_empty();
        let room = if looks { self.require_room() } else { Ok(()) };
        let sessions: Vec<ConferenceSessionId> = self.live.keys().copied().collect();
        for session in sessions {
            let done = match &room {
                Ok(()) => self.write(session, looks),
                Err(error) => Err(io::Error::new(error.kind(), error.to_string())),
            };
            match done {
                Ok(true) => self.complete(session),
                Ok(false) => {}
                Err(error) => self.fail(session, &error),
            }
        }
    }

    /// Writes waiting frames, and completes every recording, even if its mix has not ended.
    pub fn finish(&mut self) {
        self.turn();
        let sessions: Vec<ConferenceSessionId> = self.live.keys().copied().collect();
        for session in sessions {
            self.complete(session);
        }
    }

    /// Returns the next result of a recording; drain after every call.
    pub fn poll_ended(&mut self) -> Option<Ended> {
        self.ended.pop_front()
    }

    /// Writes the waiting frames of one recording; returns whether those were the last.
    fn write(&mut self, session: ConferenceSessionId, say_length: bool) -> io::Result<bool> {
        let Some(recording) = self.live.get_mut(&session) else { return Ok(false) };
        while let Some(source) = recording.sources.front() {
            // Read before the frames are taken, so that frames that arrive in between are not lost.
            let is_last = Arc::strong_count(&source.over) == 1;
            self.bytes.clear();
            source.frames.try_iter().take(FRAMES_MAX).for_each(|frame| frame.write(&mut self.bytes));
            if !self.bytes.is_empty() {
                recording.file.append(&self.bytes)?;
                self.counters.bytes.fetch_add(self.bytes.len() as u64, Relaxed);
            }
            if !(is_last && source.frames.is_empty()) {
                break;
            }
            recording.sources.pop_front();
        }
        if say_length {
            recording.file.say_length()?;
        }
        Ok(recording.sources.is_empty())
    }

    fn complete(&mut self, session: ConferenceSessionId) {
        let Some(recording) = self.live.get_mut(&session) else { return };
        match recording.file.finish() {
            Ok(()) => self.close(session, None),
            Err(error) => self.fail(session, &error),
        }
    }

    fn fail(&mut self, session: ConferenceSessionId, error: &io::Error) {
        if let Some(recording) = self.live.get_mut(&session) {
            recording.file.salvage();
        }
        self.close(session, Some(words(error)));
    }

    fn close(&mut self, session: ConferenceSessionId, error: Option<String>) {
        let Some(recording) = self.live.remove(&session) else { return };
        self.counters.live.store(self.live.len() as u64, Relaxed);
        recording.sources.iter().for_each(|source| source.over.store(true, Relaxed));
        let Recording { organisation, kind, file, .. } = recording;
        let mut bytes = file.len();
        if file.is_empty() {
            bytes = 0;
            drop(file);
            self.remove(organisation, session);
        }
        self.end(Ended { organisation, session, kind, bytes, error });
    }

    fn end(&mut self, ended: Ended) {
        match &ended.error {
            None => drop(self.counters.complete.fetch_add(1, Relaxed)),
            Some(error) => {
                self.counters.failed.fetch_add(1, Relaxed);
                tracing::error!(
                    conference.session = %ended.session,
                    bytes = ended.bytes,
                    error,
                    "a recording ended early, the conference or the call goes on"
                );
            }
        }
        self.ended.push_back(ended);
    }

    /// Length of the earlier recordings of a session, when a further one cannot start.
    fn left(&mut self, organisation: OrganisationId, session: ConferenceSessionId) -> u64 {
        let found = self.disk.find(organisation, session).ok().flatten().unwrap_or(0);
        if found > HEADER_LEN as u64 {
            return found;
        }
        self.remove(organisation, session);
        0
    }

    /// Removes a file without audio.
    fn remove(&mut self, organisation: OrganisationId, session: ConferenceSessionId) {
        if let Err(error) = self.disk.remove(organisation, session) {
            tracing::warn!(%error, conference.session = %session, "an empty recording cannot be removed");
        }
    }

    fn require_room(&mut self) -> io::Result<()> {
        require_free(self.disk.free_bytes()?, self.reserve_bytes)
    }
}

/// Checks that enough bytes are free.
///
/// # Errors
/// [`StorageFull`](io::ErrorKind::StorageFull) with the reason.
pub(super) fn require_free(free_bytes: u64, reserve_bytes: u64) -> io::Result<()> {
    if free_bytes >= reserve_bytes {
        return Ok(());
    }
    let message = format!(
        "the disk of recordings has {} MiB left, fewer than [recordings] reserve_mb keeps free",
        free_bytes >> 20
    );
    Err(io::Error::new(io::ErrorKind::StorageFull, message))
}

/// Why a recording ended, as text for readers of its session.
pub(super) fn words(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::StorageFull if error.get_ref().is_none() => {
            "the disk of recordings is full".to_owned()
        }
        io::ErrorKind::StorageFull => error.to_string(),
        _ => format!("the recording cannot be written: {error}"),
    }
}

/// Frames of a recording that one turn writes: more than arrive between two turns.
const FRAMES_MAX: usize = 500;
/// Turns after which headers are updated and the free space is checked: one second.
const LOOK_EVERY_TURNS: u64 = 4;
