//! Why a run ended without a report.

use std::io;
use std::path::PathBuf;

/// Why a run ended without a report.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LoadError {
    /// A file of `provision` cannot be written.
    #[error("failed to write {path}: {source}")]
    File {
        /// The file.
        path: PathBuf,
        /// The reason given by the system.
        #[source]
        source: io::Error,
    },
    /// The named process does not run.
    #[error("failed to find a process: {0}")]
    Process(String),
    /// The set-up before the measurement did not finish in time.
    #[error("failed to set up: {0}")]
    SetUp(String),
    /// A socket cannot be opened or read.
    #[error("failed to open or use a socket: {0}")]
    Socket(#[from] io::Error),
    /// Options that contradict each other.
    #[error("{0}")]
    Usage(String),
}

impl From<nix::errno::Errno> for LoadError {
    fn from(errno: nix::errno::Errno) -> Self {
        LoadError::Socket(errno.into())
    }
}
