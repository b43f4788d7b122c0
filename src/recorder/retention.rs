//! Deletes recordings after their retention time, and files that belong to no session.
//!
//! The file is deleted first and the session's entry afterwards. If the process dies in between, the next
//! pass does both again; a missing file counts as deleted. So no file is left without an entry.

use std::fs::{DirEntry, ReadDir};
use std::io;
use std::time::{Duration, SystemTime};

use sidetone_model::ids::{ConferenceSessionId, OrganisationId};
use sidetone_model::problem::Problem;
use sidetone_model::time::Timestamp;
use sidetone_store::{RecordingPlace, Store};
use tokio::sync::watch;

use crate::recorder::disk::existing;
use crate::recorder::playback::{Playback, beside};
use crate::recorder::wav_file::Disk as _;

impl Playback {
    /// Deletes recordings after their retention time; returns whether there may be more.
    ///
    /// # Errors
    /// When the disk or the database fails; earlier deletions remain.
    pub async fn purge(&self, now: Timestamp) -> Result<bool, Problem> {
        let node = self.node();
        let expired = self.store().expired_recordings(node, now).await?;
        for place in &expired {
            self.remove(*place).await?;
        }
        let of_calls = self.store().expired_call_recordings(node, now).await?;
        for (organisation, recording) in &of_calls {
            let (mut disk, organisation, recording) = (self.disk().clone(), *organisation, *recording);
            beside(move || disk.remove(organisation, recording)).await?;
            self.store().forget_call_recording((organisation, recording)).await?;
        }
        Ok(expired.len().max(of_calls.len()) == Store::RECORDING_PURGE_BATCH)
    }

    /// Deletes files that were last written before `before` and that belong to no session; returns how many.
    /// Files with other names are not touched.
    ///
    /// # Errors
    /// As [`Playback::purge`].
    pub async fn purge_strays(&self, before: SystemTime) -> Result<usize, Problem> {
        let dir = self.disk().dir().to_owned();
        let mut walk = Some(beside(move || Walk::new(existing(std::fs::read_dir(dir))?)).await?);
        let mut deleted = 0;
        while let Some(mut at) = walk.take() {
            let (files, at) = beside(move || Ok((at.next_files(before)?, at))).await?;
            if files.is_empty() {
                break;
            }
            let mut known = self.store().recordings_of_sessions(&files).await?;
            known.extend(self.store().recordings_of_calls(&files).await?);
            for (organisation, session) in files.into_iter().filter(|file| !known.contains(file)) {
                let mut disk = self.disk().clone();
                beside(move || disk.remove(organisation, session)).await?;
                tracing::warn!(conference.session = %session, "a recording without a session was deleted");
                deleted += 1;
            }
            walk = Some(at);
        }
        Ok(deleted)
    }
}

/// Deletes recordings until it is stopped.
pub async fn retain(playback: Playback, clock: fn() -> Timestamp, mut stop: watch::Receiver<bool>) {
    let mut looks: u64 = 0;
    let mut pause = LOOK_EVERY;
    loop {
        tokio::select! {
            _ = stop.wait_for(|stop| *stop) => return,
            () = tokio::time::sleep(pause) => {}
        }
        let purged = playback.purge(clock()).await;
        pause = if matches!(purged, Ok(true)) { BATCH_PAUSE } else { LOOK_EVERY };
        let strays = if looks.is_multiple_of(STRAYS_EVERY_LOOKS) && pause == LOOK_EVERY {
            playback.purge_strays(time_of(clock()) - STRAY_AGE).await.map(drop)
        } else {
            Ok(())
        };
        looks += u64::from(pause == LOOK_EVERY);
        if let Err(error) = purged.map(drop).and(strays) {
            tracing::warn!(%error, "expired recordings cannot be deleted now");
        }
    }
}

/// Iterates over the files of recordings, one directory after another.
struct Walk {
    organisations: Option<ReadDir>,
    files: Option<(OrganisationId, ReadDir)>,
}

impl Walk {
    fn new(organisations: Option<ReadDir>) -> io::Result<Walk> {
        Ok(Walk { organisations, files: None })
    }

    /// The next files that were last written before `before`; empty at the end.
    fn next_files(&mut self, before: SystemTime) -> io::Result<Vec<RecordingPlace>> {
        let mut found = Vec::new();
        while found.len() < FILES_MAX {
            let Some((organisation, files)) = &mut self.files else {
                let Some(next) = self.organisations.as_mut().and_then(Iterator::next) else { break };
                self.files = directory_of(&next?)?;
                continue;
            };
            let organisation = *organisation;
            match files.next() {
                Some(entry) => {
                    found.extend(session_of(&entry?, before)?.map(|session| (organisation, session)))
                }
                None => self.files = None,
            }
        }
        Ok(found)
    }
}

/// The directory of an organisation.
fn directory_of(entry: &DirEntry) -> io::Result<Option<(OrganisationId, ReadDir)>> {
    let organisation = entry.file_name().to_str().and_then(|name| name.parse().ok());
    let Some(organisation) = organisation else { return Ok(None) };
    Ok(existing(std::fs::read_dir(entry.path()))?.map(|files| (organisation, files)))
}

/// The session of a file that is old enough.
fn session_of(entry: &DirEntry, before: SystemTime) -> io::Result<Option<ConferenceSessionId>> {
    let name = entry.file_name();
    let session = name.to_str().and_then(|name| name.strip_suffix(".wav")?.parse().ok());
    let Some(session) = session else { return Ok(None) };
    // A file that was deleted in the meantime is skipped.
    let modified = existing(entry.metadata().and_then(|metadata| metadata.modified()))?;
    Ok(modified.filter(|modified| *modified < before).map(|_| session))
}

fn time_of(at: Timestamp) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_micros(u64::try_from(at.as_micros()).unwrap_or(0))
}

/// Files in one database query.
const FILES_MAX: usize = 64;
/// How often the retention is checked.
const LOOK_EVERY: Duration = Duration::from_secs(60);
/// Pause between two batches, in which others can use the disk.
const BATCH_PAUSE: Duration = Duration::from_millis(100);
/// An hour.
const STRAYS_EVERY_LOOKS: u64 = 60;
/// A session is stored a few seconds after it began; a database may be unavailable for hours.
const STRAY_AGE: Duration = Duration::from_secs(24 * 3_600);
