//! The RTCP of a call's legs as HEP packets.

use std::sync::OnceLock;

use sidetone_media::net::{RtcpPacket, RtcpSink};
use sidetone_model::time::Timestamp;

use crate::hep::packet::{Kind, Packet};
use crate::hep::sender::HepSender;

/// Exports the RTCP of one call.
#[derive(Debug)]
pub struct RtcpExport {
    hep: HepSender,
    /// The Call-ID of the call's first leg. A call that Sidetone places has ports before its first INVITE.
    call_id: OnceLock<Box<str>>,
}

impl RtcpExport {
    /// The export of a call without a Call-ID so far.
    pub fn new(hep: HepSender) -> Self {
        RtcpExport { hep, call_id: OnceLock::new() }
    }

    /// Sets the Call-ID that correlates the packets with the messages of the call; only the first one counts.
    pub fn correlate(&self, call_id: &str) {
        self.call_id.get_or_init(|| call_id.into());
    }
}

impl RtcpSink for RtcpExport {
    fn take(&self, packet: &RtcpPacket<'_>) {
        // No party has the port before the INVITE has its Call-ID, so nothing is lost here in practice.
        let Some(correlation) = self.call_id.get() else { return self.leave_out() };
        self.hep.send_spare(&Packet {
            kind: Kind::Rtcp,
            at: Timestamp::from_micros(packet.wall_us),
            source: packet.source,
            destination: packet.destination,
            is_udp: true,
            correlation,
            payload: packet.bytes,
        });
    }

    fn leave_out(&self) {
        self.hep.note_dropped();
    }
}
