//! A WAV file that grows; its header is correct for its content, at most one second old.

use std::io;

use sidetone_media::audio::clip::Clip;
use sidetone_media::audio::wav::{HEADER_LEN, header_of};
use sidetone_model::ids::{ConferenceSessionId, OrganisationId};

/// The storage of one file.
pub trait Storage: Send {
    /// Returns the number of bytes.
    ///
    /// # Errors
    /// Errors of the disk.
    fn size(&mut self) -> io::Result<u64>;

    /// Writes all of `bytes` at `place`; after a failure, some of them may have been written.
    ///
    /// # Errors
    /// Errors of the disk.
    fn write_at(&mut self, place: u64, bytes: &[u8]) -> io::Result<()>;

    /// Truncates the file to `len` bytes.
    ///
    /// # Errors
    /// Errors of the disk.
    fn truncate(&mut self, len: u64) -> io::Result<()>;

    /// Flushes everything to the medium.
    ///
    /// # Errors
    /// Errors of the disk, also of earlier writes.
    fn sync(&mut self) -> io::Result<()>;
}

/// The directory of the files.
pub trait Disk: Send {
    /// The storage of a file.
    type Storage: Storage;

    /// Opens the file of a session, which is created if it does not exist.
    ///
    /// # Errors
    /// Errors of the disk.
    fn open(
        &mut self,
        organisation: OrganisationId,
        session: ConferenceSessionId,
    ) -> io::Result<Self::Storage>;

    /// Returns the length of a session's file, if it exists.
    ///
    /// # Errors
    /// Errors of the disk.
    fn find(&mut self, organisation: OrganisationId, session: ConferenceSessionId)
    -> io::Result<Option<u64>>;

    /// Removes the file of a session.
    ///
    /// # Errors
    /// Errors of the disk.
    fn remove(&mut self, organisation: OrganisationId, session: ConferenceSessionId) -> io::Result<()>;

    /// Returns how many bytes are free.
    ///
    /// # Errors
    /// Errors of the disk.
    fn free_bytes(&mut self) -> io::Result<u64>;
}

/// A recording's file.
#[derive(Debug)]
pub struct WavFile<S> {
    storage: S,
    channels: u16,
    data_bytes: u64,
    /// The length that the header contains.
    said_bytes: u64,
}

impl<S: Storage> WavFile<S> {
    /// Opens a file with one channel for appending, after its content if it has any.
    ///
    /// # Errors
    /// Errors of the disk.
    pub fn open(storage: S) -> io::Result<WavFile<S>> {
        WavFile::open_with(storage, 1)
    }

    /// Opens a file with this number of channels.
    ///
    /// # Errors
    /// Errors of the disk.
    pub fn open_with(storage: S, channels: u16) -> io::Result<WavFile<S>> {
        let mut file = WavFile { storage, channels: channels.max(1), data_bytes: 0, said_bytes: 0 };
        file.data_bytes = file.found()?;
        file.storage.truncate(if file.data_bytes == 0 { 0 } else { file.len() })?;
        file.write_header()?;
        Ok(file)
    }

    /// Returns the length of the file.
    pub fn len(&self) -> u64 {
        self.data_bytes + HEADER_LEN as u64
    }

    /// Returns whether it has no audio.
    pub fn is_empty(&self) -> bool {
        self.data_bytes == 0
    }

    /// Appends samples, in the byte order of the file.
    ///
    /// # Errors
    /// Errors of the disk. Some samples may have been written then; [`WavFile::salvage`] determines how many.
    pub fn append(&mut self, samples: &[u8]) -> io::Result<()> {
        self.storage.write_at(self.len(), samples)?;
        self.data_bytes += samples.len() as u64;
        Ok(())
    }

    /// Updates the length in the header.
    ///
    /// # Errors
    /// Errors of the disk.
    pub fn say_length(&mut self) -> io::Result<()> {
        if self.said_bytes == self.data_bytes { Ok(()) } else { self.write_header() }
    }

    /// Completes the file and flushes it to the medium.
    ///
    /// # Errors
    /// Errors of the disk.
    pub fn finish(&mut self) -> io::Result<()> {
        self.say_length()?;
        self.storage.sync()
    }

    /// After a failure: keeps the data that the disk stored, and updates the header if possible. The header exists
    /// already, so overwriting it needs no more space.
    pub fn salvage(&mut self) {
        if let Ok(found) = self.found() {
            self.data_bytes = found;
        }
        let whole = self.storage.truncate(self.len()).and_then(|()| self.write_header());
        if let Err(error) = whole.and_then(|()| self.storage.sync()) {
            tracing::warn!(%error, "the header of a recording is older than its file");
        }
    }

    fn write_header(&mut self) -> io::Result<()> {
        self.storage.write_at(0, &header_of(Clip::RATE_HZ, self.channels, self.data_bytes))?;
        self.said_bytes = self.data_bytes;
        Ok(())
    }

    /// The bytes of complete samples after the header.
    fn found(&mut self) -> io::Result<u64> {
        let bytes = self.storage.size()?.saturating_sub(HEADER_LEN as u64);
        Ok(bytes - bytes % (2 * u64::from(self.channels)))
    }
}
