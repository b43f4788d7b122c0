//! Header-only traces of legs, for download.

use crate::media_quality::LegTrace;
use crate::open_file::OpenFile;
use crate::port_future::PortFuture;

/// The traces stored on a node.
pub trait LegTraces: Send + Sync {
    /// Opens a trace named in a record that the caller may read; `None` when it is not, or no longer, on this
    /// node.
    ///
    /// # Errors
    /// [`Internal`](crate::problem::Problem::Internal) when the disk cannot read it.
    fn open<'a>(&'a self, trace: &'a LegTrace) -> PortFuture<'a, Option<Box<dyn OpenFile>>>;
}
