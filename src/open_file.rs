//! Files that the API reads in pieces; disk operations run on blocking threads.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::time::UNIX_EPOCH;

use sidetone_model::open_file::OpenFile;
use sidetone_model::ports::PortFuture;
use sidetone_model::problem::Problem;
use sidetone_model::time::Timestamp;

/// An open file, with its length at the time of opening.
pub struct Opened {
    file: Arc<File>,
    bytes: u64,
    modified_at: Timestamp,
    /// The content of its disk, for error messages: "recordings".
    holds: &'static str,
}

impl Opened {
    /// Wraps an open file; `holds` is the content of its disk.
    ///
    /// # Errors
    /// When the file's metadata cannot be read.
    pub fn new(file: File, holds: &'static str) -> io::Result<Opened> {
        let metadata = file.metadata()?;
        let modified = metadata.modified()?.duration_since(UNIX_EPOCH).unwrap_or_default();
        let modified_at = Timestamp::from_micros(i64::try_from(modified.as_micros()).unwrap_or(i64::MAX));
        Ok(Opened { bytes: metadata.len(), modified_at, file: Arc::new(file), holds })
    }
}

impl OpenFile for Opened {
    fn bytes(&self) -> u64 {
        self.bytes
    }

    fn modified_at(&self) -> Timestamp {
        self.modified_at
    }

    fn read(&self, at: u64, len: usize) -> PortFuture<'_, Vec<u8>> {
        let file = Arc::clone(&self.file);
        Box::pin(beside(self.holds, move || {
            let mut piece = vec![0; len];
            file.read_exact_at(&mut piece, at)?;
            Ok(piece)
        }))
    }
}

/// Runs a disk operation on a blocking thread; `holds` is the content of the disk, for error messages.
///
/// # Errors
/// [`Problem::Internal`] when the disk fails.
pub async fn beside<T: Send + 'static>(
    holds: &'static str,
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> Result<T, Problem> {
    let done = tokio::task::spawn_blocking(work).await;
    let done = done.map_err(|error| Problem::Internal(error.to_string()))?;
    done.map_err(|error| Problem::Internal(format!("the disk of {holds}: {error}")))
}
