//! The disk of the journal: the operations that a crash, a full disk or a broken disk can interrupt.
//!
//! [`Disk`] is the real one. Tests replace it to lose unsynchronised data and to fail at a chosen operation.

use std::fmt::Debug;
use std::fs::File;
use std::io::{self, Seek as _, SeekFrom, Write};
use std::path::{Path, PathBuf};

use nix::fcntl::posix_fallocate;
use nix::sys::statvfs::statvfs;

use crate::cdr::segment;

/// The directory of the segments.
pub trait Storage: Debug + Send {
    /// Creates segment `number` with its head, durable as an empty segment; an error leaves no file.
    ///
    /// # Errors
    /// When it exists already or cannot be created.
    fn create(&mut self, number: u64) -> io::Result<Box<dyn SegmentFile>>;

    /// The numbers of the segments, ascending.
    ///
    /// # Errors
    /// When the directory cannot be read.
    fn list(&self) -> io::Result<Vec<u64>>;

    /// Returns the bytes that the disk has free for this process.
    ///
    /// # Errors
    /// When the disk cannot be queried.
    fn free_bytes(&self) -> io::Result<u64>;

    /// Reserves `len` bytes, allocated and durable; does nothing if they are reserved already.
    ///
    /// # Errors
    /// When the disk has no space for them; nothing is reserved then.
    fn reserve(&mut self, len: u64) -> io::Result<()>;

    /// Turns the reserve into segment `number`; `None` when there is none.
    ///
    /// # Errors
    /// When the disk fails.
    fn take_reserve(&mut self, number: u64) -> io::Result<Option<Box<dyn SegmentFile>>>;
}

/// A segment being written.
pub trait SegmentFile: Debug + Send {
    /// Appends `bytes` and waits until they, and what was written before, are on the disk.
    ///
    /// # Errors
    /// After an error nothing is known about the bytes.
    fn append(&mut self, bytes: &[u8]) -> io::Result<()>;

    /// Appends `bytes`, which survive the end of the process; a later [`SegmentFile::append`] makes them
    /// durable. A disk that cannot tell the two apart makes them durable at once.
    ///
    /// # Errors
    /// After an error nothing is known about the bytes.
    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.append(bytes)
    }
}

/// A segment that this process appends to.
#[derive(Debug)]
pub struct Segment {
    file: Box<dyn SegmentFile>,
    number: u64,
    len: u64,
    /// Bytes behind `len` that were written and are not durable yet.
    unsynced: u64,
}

impl Segment {
    /// Segment `number`, which is `file` and contains only its head.
    pub fn new(number: u64, file: Box<dyn SegmentFile>) -> Self {
        Self { file, number, len: segment::HEAD_LEN, unsynced: 0 }
    }

    /// Appends `bytes` and waits until they, and what was written before, are on the disk.
    ///
    /// # Errors
    /// After an error nothing is known about the bytes: continue in a new segment.
    pub fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.file.append(bytes)?;
        let unsynced = std::mem::take(&mut self.unsynced);
        self.len = self.len.saturating_add(unsynced).saturating_add(bytes.len() as u64);
        Ok(())
    }

    /// Appends `bytes` without waiting for the disk.
    ///
    /// # Errors
    /// After an error nothing is known about the bytes: continue in a new segment.
    pub fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.file.write(bytes)?;
        self.unsynced = self.unsynced.saturating_add(bytes.len() as u64);
        Ok(())
    }

    /// Its number; later segments have larger ones.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// Bytes that are on the disk.
    pub fn len_bytes(&self) -> u64 {
        self.len
    }
}

/// A directory of the file system.
#[derive(Debug)]
pub struct Disk {
    dir: PathBuf,
}

impl Disk {
    /// The directory, which must exist.
    pub fn new(dir: &Path) -> Self {
        Self { dir: dir.to_path_buf() }
    }

    fn sync_names(&self) -> io::Result<()> {
        File::open(&self.dir)?.sync_all()
    }

    fn reserve_path(&self) -> PathBuf {
        self.dir.join(RESERVE_FILE)
    }
}

impl Storage for Disk {
    fn create(&mut self, number: u64) -> io::Result<Box<dyn SegmentFile>> {
        let path = segment::path_of(&self.dir, number);
        let mut file = File::options().write(true).create_new(true).open(&path)?;
        let written = file.write_all(segment::HEAD).and_then(|()| file.sync_data());
        // The file name has to survive a power failure as well.
        if let Err(error) = written.and_then(|()| self.sync_names()) {
            // Every reader skips a segment without its head.
            let _ = std::fs::remove_file(&path);
            return Err(error);
        }
        Ok(Box::new(DiskFile(file)))
    }

    fn list(&self) -> io::Result<Vec<u64>> {
        segment::list(&self.dir)
    }

    fn free_bytes(&self) -> io::Result<u64> {
        let disk = statvfs(&self.dir).map_err(io::Error::from)?;
        Ok(disk.blocks_available().saturating_mul(disk.fragment_size()))
    }

    fn reserve(&mut self, len: u64) -> io::Result<()> {
        let path = self.reserve_path();
        if std::fs::metadata(&path).is_ok_and(|found| found.len() == len) {
            return Ok(());
        }
        let mut file = File::options().write(true).create(true).truncate(true).open(&path)?;
        let allocated = posix_fallocate(&file, 0, i64::try_from(len).unwrap_or(i64::MAX));
        let done = allocated
            .map_err(io::Error::from)
            .and_then(|()| file.write_all(segment::HEAD))
            .and_then(|()| file.sync_all())
            .and_then(|()| self.sync_names());
        if done.is_err() {
            let _ = std::fs::remove_file(&path);
        }
        done
    }

    fn take_reserve(&mut self, number: u64) -> io::Result<Option<Box<dyn SegmentFile>>> {
        let mut file = match File::options().write(true).open(self.reserve_path()) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        file.seek(SeekFrom::Start(segment::HEAD_LEN))?;
        std::fs::rename(self.reserve_path(), segment::path_of(&self.dir, number))?;
        self.sync_names()?;
        Ok(Some(Box::new(DiskFile(file))))
    }
}

#[derive(Debug)]
struct DiskFile(File);

impl SegmentFile for DiskFile {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.0.write_all(bytes)?;
        self.0.sync_data()
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.0.write_all(bytes)
    }
}

/// The file with the reserved blocks.
pub const RESERVE_FILE: &str = "reserve";
