//! Header-only traces of legs, as they are fetched.

use crate::media_quality::LegTrace;
use crate::ports::PortFuture;

/// The traces that a node has kept.
pub trait LegTraces: Send + Sync {
    /// The bytes of a trace that a record of the caller's own names; `None` when it is not on this node, or no longer.
    ///
    /// # Errors
    /// [`Internal`](crate::problem::Problem::Internal) when the disk does not give it.
    fn read<'a>(&'a self, trace: &'a LegTrace) -> PortFuture<'a, Option<Vec<u8>>>;
}
