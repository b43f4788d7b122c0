//! A file of this node that is read piece by piece.

use crate::ports::PortFuture;
use crate::time::Timestamp;

/// A recording or a trace that is open: it stays readable whatever becomes of its name.
pub trait OpenFile: Send + Sync {
    /// Bytes of the file.
    fn bytes(&self) -> u64;

    /// When it was written last.
    fn modified_at(&self) -> Timestamp;

    /// The bytes from `at` on, `len` of them.
    ///
    /// # Errors
    /// [`Internal`](crate::problem::Problem::Internal) when there are fewer, or the disk does not give them.
    fn read(&self, at: u64, len: usize) -> PortFuture<'_, Vec<u8>>;
}
