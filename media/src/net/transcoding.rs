//! The transcoder of one leg's packets for its peer's party.

use crate::codec::CodecError;
use crate::rtp::RtpPacket;
use crate::time::Micros;
use crate::transcode::{TranscodePlan, Transcoder};

/// A transcoder, and the time of its next tick in the worker's queue.
pub(super) struct Transcoding {
    transcoder: Transcoder,
    due: Option<Micros>,
}

impl Transcoding {
    /// A transcoding before its first packet.
    pub(super) fn new(plan: TranscodePlan, seed: u64) -> Result<Transcoding, CodecError> {
        Transcoder::new(plan, seed).map(|transcoder| Transcoding { transcoder, due: None })
    }

    /// The plan from which it was created.
    pub(super) fn plan(&self) -> &TranscodePlan {
        self.transcoder.plan()
    }

    /// Whether there was audio to transcode within the last second.
    pub(super) fn is_active(&self) -> bool {
        self.due.is_some()
    }

    /// Processes a packet of the leg.
    pub(super) fn receive(&mut self, at: Micros, packet: &RtpPacket<'_>) {
        self.transcoder.receive(at, packet);
    }

    /// Ticks if `due` is its current time, and returns whether it did; a replaced time in the queue is obsolete.
    pub(super) fn tick(&mut self, due: Micros, now: Micros) -> bool {
        let is_due = self.due == Some(due);
        if is_due {
            self.due = None;
            self.transcoder.tick(now);
        }
        is_due
    }

    /// The next packet for the peer's party.
    pub(super) fn poll_packet(&mut self) -> Option<&[u8]> {
        self.transcoder.poll_packet()
    }

    /// Writes a beep over the audio of the next 600 ms.
    pub(super) fn beep(&mut self) {
        self.transcoder.beep();
    }

    /// The time of its next tick, when it has changed and must be queued.
    pub(super) fn changed_due(&mut self) -> Option<Micros> {
        let next = self.transcoder.next_tick();
        if next == self.due {
            return None;
        }
        self.due = next;
        next
    }
}
