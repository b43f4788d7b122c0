//! Header-only traces of legs, for download.

use crate::ids::NodeId;
use crate::media_quality::LegTrace;
use crate::open_file::OpenFile;
use crate::port_future::PortFuture;

/// The traces stored on the nodes.
pub trait LegTraces: Send + Sync {
    /// Opens a trace named in a record that the caller may read; `node` carried the call. `None` if the trace does not
    /// exist any more, or if that node is gone.
    ///
    /// # Errors
    /// [`Internal`](crate::problem::Problem::Internal) when the disk cannot read it, and
    /// [`Busy`](crate::problem::Problem::Busy) when its node does not answer in time.
    fn open<'a>(
        &'a self,
        node: Option<NodeId>,
        trace: &'a LegTrace,
    ) -> PortFuture<'a, Option<Box<dyn OpenFile>>>;
}
