//! The mark of a request that another node of the cluster forwards.

use std::net::IpAddr;

/// The address of the client of a forwarded request. This node answers it, and it counts against no rate, because
/// the other node has counted it. No header of a client can set this mark.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FromPeer(pub(crate) IpAddr);
