//! The packets of a new source that were held back until it was accepted.

use crate::session::Session;
use crate::session::candidate::Arrived;

impl Session {
    /// Processes packets that were held back and counted as rejected, and then this number of copies of them.
    pub(super) fn take_held(&mut self, held: impl IntoIterator<Item = Arrived>, copies: u8) {
        let mut last = None;
        for arrived in held {
            self.take_one(arrived);
            last = Some(arrived);
        }
        // Each number is known by now, so that any of them is a duplicate.
        for copy in last.into_iter().cycle().take(copies.into()) {
            self.take_one(copy);
        }
    }

    fn take_one(&mut self, Arrived { at, packet }: Arrived) {
        let refused = &mut self.state.counters.rejected_source;
        *refused = refused.saturating_sub(1);
        if let Some(kind) = self.packets.payloads().kind(packet.payload_type) {
            self.fold(at, &packet, kind);
        }
    }
}
