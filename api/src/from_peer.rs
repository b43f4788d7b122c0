//! The mark of a request that another node of the cluster passes on.

use std::net::IpAddr;

/// A request came from another node, for a client with this address; it is answered here and counts against no rate,
/// because the other node has counted it. No header of a client leads to it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FromPeer(pub(crate) IpAddr);
