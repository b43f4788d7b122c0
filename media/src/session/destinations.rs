//! The destinations of packets to the party of a leg.

use std::net::SocketAddr;

use crate::session::Session;
use crate::verdict::address::is_permitted;

impl Session {
    /// The current destination of RTP to the party: the latched source, or the address in SDP.
    ///
    /// `None` on hold, before SDP, and when packets must not be sent to the address.
    pub fn destination(&self) -> Option<SocketAddr> {
        let description = self.state.description.as_ref()?;
        description.remote.filter(|_| description.send)?;
        self.packets.source().target().filter(|target| self.may_send_to(*target))
    }

    /// The current destination of RTCP to the party; RTCP continues while the party holds the call (RFC 3264
    /// §5.1).
    pub fn rtcp_destination(&self) -> Option<SocketAddr> {
        // UDPTL has no RTCP beside it.
        let description = self.state.description.as_ref().filter(|description| !description.udptl)?;
        let remote = description.remote?;
        let source = self.packets.source();
        let target = source.target()?;
        let next_port = |address: SocketAddr| {
            address.port().checked_add(1).map(|port| SocketAddr::new(address.ip(), port))
        };
        let rtcp = if description.rtcp_mux {
            Some(target)
        } else if source.is_latched() {
            let heard = self.state.rtcp_source.map(|(source, _)| source);
            heard.filter(|source| source.ip() == target.ip()).or_else(|| next_port(target))
        } else {
            description.remote_rtcp.or_else(|| next_port(remote))
        };
        rtcp.filter(|rtcp| self.may_send_to(*rtcp))
    }

    /// Whether packets may be sent to `address` for this party.
    fn may_send_to(&self, address: SocketAddr) -> bool {
        address.port() != 0 && is_permitted(address.ip(), self.signalling())
    }
}
