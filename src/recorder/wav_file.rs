//! A WAV file that grows: right for what it holds whenever it is looked at, within a second.

use std::io;

use sidetone_media::audio::clip::Clip;
use sidetone_media::audio::wav::{HEADER_LEN, header};
use sidetone_model::ids::{ConferenceSessionId, OrganisationId};

/// Where the bytes of one file go.
pub trait Storage: Send {
    /// How many bytes there are.
    ///
    /// # Errors
    /// What the disk says.
    fn size(&mut self) -> io::Result<u64>;

    /// Writes all of `bytes` at `place`; after a failure there may be some of them.
    ///
    /// # Errors
    /// What the disk says.
    fn write_at(&mut self, place: u64, bytes: &[u8]) -> io::Result<()>;

    /// Cuts the file off.
    ///
    /// # Errors
    /// What the disk says.
    fn truncate(&mut self, len: u64) -> io::Result<()>;

    /// Brings everything to the medium.
    ///
    /// # Errors
    /// What the disk says, also of writes before.
    fn sync(&mut self) -> io::Result<()>;
}

/// Where the files are.
pub trait Disk: Send {
    /// What a file is written by.
    type Storage: Storage;

    /// The file of a session, made when it is not there.
    ///
    /// # Errors
    /// What the disk says.
    fn open(
        &mut self,
        organisation: OrganisationId,
        session: ConferenceSessionId,
    ) -> io::Result<Self::Storage>;

    /// Bytes of the file of a session, when there is one.
    ///
    /// # Errors
    /// What the disk says.
    fn find(&mut self, organisation: OrganisationId, session: ConferenceSessionId)
    -> io::Result<Option<u64>>;

    /// Removes the file of a session.
    ///
    /// # Errors
    /// What the disk says.
    fn remove(&mut self, organisation: OrganisationId, session: ConferenceSessionId) -> io::Result<()>;

    /// How many bytes more there is room for.
    ///
    /// # Errors
    /// What the disk says.
    fn free_bytes(&mut self) -> io::Result<u64>;
}

/// A recording's file.
#[derive(Debug)]
pub struct WavFile<S> {
    storage: S,
    data_bytes: u64,
    /// What the header says.
    said_bytes: u64,
}

impl<S: Storage> WavFile<S> {
    /// A file to go on with: behind what it holds, when it holds something.
    ///
    /// # Errors
    /// What the disk says.
    pub fn open(storage: S) -> io::Result<WavFile<S>> {
        let mut file = WavFile { storage, data_bytes: 0, said_bytes: 0 };
        file.data_bytes = file.found()?;
        file.storage.truncate(if file.data_bytes == 0 { 0 } else { file.len() })?;
        file.write_header()?;
        Ok(file)
    }

    /// Bytes of the file.
    pub fn len(&self) -> u64 {
        self.data_bytes + HEADER_LEN as u64
    }

    /// Whether there is no sound in it.
    pub fn is_empty(&self) -> bool {
        self.data_bytes == 0
    }

    /// Writes samples, as the bytes that they are in the file, behind the others.
    ///
    /// # Errors
    /// What the disk says. Some of them may be in the file then; [`WavFile::salvage`] finds out.
    pub fn append(&mut self, samples: &[u8]) -> io::Result<()> {
        self.storage.write_at(self.len(), samples)?;
        self.data_bytes += samples.len() as u64;
        Ok(())
    }

    /// Makes the header say what the file holds.
    ///
    /// # Errors
    /// What the disk says.
    pub fn say_length(&mut self) -> io::Result<()> {
        if self.said_bytes == self.data_bytes { Ok(()) } else { self.write_header() }
    }

    /// Makes the file whole and brings it to the medium.
    ///
    /// # Errors
    /// What the disk says.
    pub fn finish(&mut self) -> io::Result<()> {
        self.say_length()?;
        self.storage.sync()
    }

    /// After a failure: keeps what the disk took, and makes the header say so as well as it goes. The header is in its
    /// place already: writing it over needs no more room.
    pub fn salvage(&mut self) {
        if let Ok(found) = self.found() {
            self.data_bytes = found;
        }
        let whole = self.storage.truncate(self.len()).and_then(|()| self.write_header());
        if let Err(error) = whole.and_then(|()| self.storage.sync()) {
            tracing::warn!(%error, "the header of a recording is behind what its file holds");
        }
    }

    fn write_header(&mut self) -> io::Result<()> {
        self.storage.write_at(0, &header(Clip::RATE_HZ, self.data_bytes))?;
        self.said_bytes = self.data_bytes;
        Ok(())
    }

    /// The bytes of whole samples behind the header.
    fn found(&mut self) -> io::Result<u64> {
        Ok(self.storage.size()?.saturating_sub(HEADER_LEN as u64) & !1)
    }
}
