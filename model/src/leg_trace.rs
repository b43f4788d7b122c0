//! Header-only traces of legs, as they are fetched.

use crate::media_quality::LegTrace;
use crate::open_file::OpenFile;
use crate::ports::PortFuture;

/// The traces that a node has kept.
pub trait LegTraces: Send + Sync {
    /// A trace that a record names which the caller may read; `None` when it is not on this node, or no longer.
    ///
    /// # Errors
    /// [`Internal`](crate::problem::Problem::Internal) when the disk does not give it.
    fn open<'a>(&'a self, trace: &'a LegTrace) -> PortFuture<'a, Option<Box<dyn OpenFile>>>;
}
