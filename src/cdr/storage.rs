//! The disk of the journal: the operations that a crash, a full disk or a broken disk can interrupt.
//!
//! [`Disk`] is the real one. Tests replace it to lose unsynchronised data and to fail at a chosen operation.

use std::fmt::Debug;
use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
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
    /// Appends `bytes` and waits until they, and all bytes written before, are on the disk.
    ///
    /// # Errors
    /// After an error, the state of the bytes is unknown.
    fn append(&mut self, bytes: &[u8]) -> io::Result<()>;

    /// Appends `bytes`, which survive the end of the process; a later [`SegmentFile::append`] makes them durable. A
    /// disk without this distinction makes them durable immediately.
    ///
    /// # Errors
    /// After an error, the state of the bytes is unknown.
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
    /// Bytes after `len` that were written and are not durable yet.
    unsynced: u64,
}

impl Segment {
    /// Segment `number`, which is `file` and contains only its head.
    pub fn new(number: u64, file: Box<dyn SegmentFile>) -> Self {
        Self { file, number, len: segment::HEAD_LEN, unsynced: 0 }
    }

    /// Appends `bytes` and waits until they, and all bytes written before, are on the disk.
    ///
    /// # Errors
    /// After an error, the state of the bytes is unknown: continue in a new segment.
    pub fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.file.append(bytes)?;
        let unsynced = std::mem::take(&mut self.unsynced);
        self.len = self.len.saturating_add(unsynced).saturating_add(bytes.len() as u64);
        Ok(())
    }

    /// Appends `bytes` without waiting for the disk.
    ///
    /// # Errors
    /// After an error, the state of the bytes is unknown: continue in a new segment.
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
        Ok(Box::new(DiskFile::new(file, segment::HEAD_LEN)))
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
        let file = match File::options().write(true).open(self.reserve_path()) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        let allocated = file.metadata()?.len();
        std::fs::rename(self.reserve_path(), segment::path_of(&self.dir, number))?;
        self.sync_names()?;
        Ok(Some(Box::new(DiskFile::new(file, allocated))))
    }
}

/// A file that is filled with zeros ahead of the written data.
///
/// Synchronising bytes that extend a file makes the file system also commit its own journal: several writes and waits
/// instead of one. For every reader, zeros after the last record mark the end ([`segment::read`]).
#[derive(Debug)]
struct DiskFile {
    file: File,
    /// The offset of the next bytes.
    at: u64,
    /// The length of the file, as far as it was determined.
    filled: u64,
}

impl DiskFile {
    /// A segment that contains only its head, in a file of `filled` bytes.
    fn new(file: File, filled: u64) -> Self {
        Self { file, at: segment::HEAD_LEN, filled }
    }

    /// Fills the file with zeros if it does not have space for `len` further bytes. A disk without space for the
    /// zeros may still have space for the bytes, so an error is not fatal.
    fn fill(&mut self, len: usize) {
        let end = self.at.saturating_add(len as u64).saturating_add(segment::FRAME_LEN);
        if end <= self.filled {
            return;
        }
        let mut from = self.filled.max(self.at);
        let target = end.next_multiple_of(FILL_LEN);
        while from < target {
            let zeros = usize::try_from(target - from).unwrap_or(ZEROS.len()).min(ZEROS.len());
            match self.file.write_at(ZEROS.get(..zeros).unwrap_or_default(), from) {
                Ok(written) if written > 0 => from = from.saturating_add(written as u64),
                Ok(_) => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => break,
            }
        }
        self.filled = from;
    }
}

impl SegmentFile for DiskFile {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.write(bytes)?;
        self.file.sync_data()
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.fill(bytes.len());
        self.file.write_all_at(bytes, self.at)?;
        self.at = self.at.saturating_add(bytes.len() as u64);
        Ok(())
    }
}

/// The file with the reserved blocks.
pub const RESERVE_FILE: &str = "reserve";
/// Files are filled up to multiples of this: the records of a few hundred calls.
const FILL_LEN: u64 = 256 * 1024;
static ZEROS: [u8; 64 * 1024] = [0; 64 * 1024];
