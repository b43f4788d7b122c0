//! What transcodes the packets of one leg for its peer's party.

use crate::codec::CodecError;
use crate::rtp::RtpPacket;
use crate::time::Micros;
use crate::transcode::{TranscodePlan, Transcoder};

/// A transcoder, and when the worker's queue has it tick.
pub(super) struct Transcoding {
    transcoder: Transcoder,
    due: Option<Micros>,
}

impl Transcoding {
    /// A transcoding that was given no packet yet.
    pub(super) fn new(plan: TranscodePlan, seed: u64) -> Result<Transcoding, CodecError> {
        Transcoder::new(plan, seed).map(|transcoder| Transcoding { transcoder, due: None })
    }

    /// What it was made by.
    pub(super) fn plan(&self) -> &TranscodePlan {
        self.transcoder.plan()
    }

    /// Whether there was audio to transcode within the last second.
    pub(super) fn is_active(&self) -> bool {
        self.due.is_some()
    }

    /// Takes a packet of the leg in.
    pub(super) fn receive(&mut self, at: Micros, packet: &RtpPacket<'_>) {
        self.transcoder.receive(at, packet);
    }

    /// Ticks, if `due` is its time; a time in the queue that was replaced is out of date. Answers whether it ticked.
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

    /// The time of its next tick, if it is another one than before: that goes into the queue.
    pub(super) fn changed_due(&mut self) -> Option<Micros> {
        let next = self.transcoder.next_tick();
        if next == self.due {
            return None;
        }
        self.due = next;
        next
    }
}
