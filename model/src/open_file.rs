//! A file of this node, read in pieces.

use crate::port_future::PortFuture;
use crate::time::Timestamp;

/// An open recording or trace: it remains readable even if the file is deleted.
pub trait OpenFile: Send + Sync {
    /// Bytes of the file.
    fn bytes(&self) -> u64;

    /// The last change of the file.
    fn modified_at(&self) -> Timestamp;

    /// Reads `len` bytes from position `at`.
    ///
    /// # Errors
    /// [`Internal`](crate::problem::Problem::Internal) if the file is shorter, or the disk cannot read it.
    fn read(&self, at: u64, len: usize) -> PortFuture<'_, Vec<u8>>;
}
