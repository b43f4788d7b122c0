//! The files of recordings on the disk of this node.
//!
//! A path is built from two ids only, so that no text from a client can leave the directory.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use nix::sys::statvfs::statvfs;
use sidetone_media::audio::wav::{HEADER_LEN, channels_in};
use sidetone_model::ids::{ConferenceSessionId, OrganisationId};

use crate::recorder::wav_file::{Disk, Storage, WavFile};

/// The directory of recordings.
#[derive(Clone, Debug)]
pub struct DataDisk {
    dir: PathBuf,
}

impl DataDisk {
    /// Recordings below this directory, which is created with the first one.
    pub fn new(dir: PathBuf) -> DataDisk {
        DataDisk { dir }
    }

    /// The recordings of a node with this data directory.
    pub fn of(data_dir: &Path) -> DataDisk {
        DataDisk::new(data_dir.join("recordings"))
    }

    /// The directory of recordings.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// The file of a session.
    pub fn path(&self, organisation: OrganisationId, session: ConferenceSessionId) -> PathBuf {
        self.dir.join(organisation.to_string()).join(format!("{session}.wav"))
    }

    /// Writes a small file into the directory of an organisation and removes it.
    ///
    /// # Errors
    /// Errors of the disk: those that a recording would have at its start.
    pub(super) fn try_write(&mut self, organisation: OrganisationId) -> io::Result<()> {
        let dir = self.dir.join(organisation.to_string());
        DirBuilder::new().recursive(true).mode(0o700).create(&dir)?;
        let path = dir.join(format!("{}.tmp", uuid::Uuid::now_v7()));
        let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path)?;
        let written = file.write_all_at(&[0; HEADER_LEN], 0);
        let removed = std::fs::remove_file(&path);
        written.and(removed)
    }
}

impl Disk for DataDisk {
    type Storage = File;

    fn open(&mut self, organisation: OrganisationId, session: ConferenceSessionId) -> io::Result<File> {
        let path = self.path(organisation, session);
        if let Some(parent) = path.parent() {
            DirBuilder::new().recursive(true).mode(0o700).create(parent)?;
        }
        OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(0o600).open(path)
    }

    fn find(
        &mut self,
        organisation: OrganisationId,
        session: ConferenceSessionId,
    ) -> io::Result<Option<u64>> {
        existing(std::fs::metadata(self.path(organisation, session)))
            .map(|found| found.map(|file| file.len()))
    }

    fn remove(&mut self, organisation: OrganisationId, session: ConferenceSessionId) -> io::Result<()> {
        existing(std::fs::remove_file(self.path(organisation, session))).map(drop)
    }

    fn free_bytes(&mut self) -> io::Result<u64> {
        // Before the first recording the directory does not exist; its parent is on the same disk.
        let dir = self.dir.ancestors().find(|dir| dir.is_dir()).unwrap_or(Path::new("/"));
        let stat = statvfs(dir)?;
        Ok(stat.blocks_available().saturating_mul(stat.fragment_size()))
    }
}

impl Storage for File {
    fn size(&mut self) -> io::Result<u64> {
        Ok(self.metadata()?.len())
    }

    fn write_at(&mut self, place: u64, bytes: &[u8]) -> io::Result<()> {
        self.write_all_at(bytes, place)
    }

    fn truncate(&mut self, len: u64) -> io::Result<()> {
        self.set_len(len)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.sync_all()
    }
}

/// Repairs the file of a recording that the end of the process interrupted. Returns the length of the file, 0 if
/// there is none, and the note on the recording.
pub fn recover(
    disk: &DataDisk,
    organisation: OrganisationId,
    session: ConferenceSessionId,
    channels: u16,
) -> (u64, Option<String>) {
    let path = disk.path(organisation, session);
    let opened = existing(OpenOptions::new().read(true).write(true).open(&path));
    let made_whole = opened.and_then(|file| {
        let Some(file) = file else { return Ok(0) };
        let mut file = WavFile::open_with(file, channels)?;
        if file.is_empty() {
            std::fs::remove_file(&path)?;
            return Ok(0);
        }
        file.finish()?;
        Ok(file.len())
    });
    match made_whole {
        Ok(bytes) => (bytes, Some("the node stopped while it was recorded".to_owned())),
        Err(error) => {
            tracing::error!(%error, conference.session = %session, "a recording of an earlier run cannot be read");
            (0, Some(format!("the node stopped while it was recorded, and the file cannot be read: {error}")))
        }
    }
}

/// Returns the number of channels in the header of a session's file; `None` if there is no such file or no header.
pub fn channels_of(
    disk: &DataDisk,
    organisation: OrganisationId,
    session: ConferenceSessionId,
) -> Option<u16> {
    let file = File::open(disk.path(organisation, session)).ok()?;
    let mut header = [0; HEADER_LEN];
    file.read_exact_at(&mut header, 0).ok()?;
    channels_in(&header)
}

/// Returns `None` for a file that does not exist.
pub(super) fn existing<T>(found: io::Result<T>) -> io::Result<Option<T>> {
    match found {
        Ok(found) => Ok(Some(found)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}
