//! RTCP of a capture: which streams a datagram is about, and what a stream's receiver reports.

use sidetone_media::rtcp::{Block, Compound, Element, Heard, RtcpFold, RtcpView, XrBlock};
use sidetone_media::time::{ClockRate, Micros};

/// A stream that a datagram is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct About {
    pub(super) ssrc: u32,
    /// Whether its sender reports; otherwise its receiver does.
    pub(super) by_sender: bool,
}

/// The streams that a datagram is about, each once and no more than [`ABOUT_MAX`]; none if it cannot be read.
pub(super) fn about(datagram: &[u8]) -> Vec<About> {
    let mut found = Vec::new();
    let mut add = |ssrc, by_sender| {
        let about = About { ssrc, by_sender };
        if found.len() < ABOUT_MAX && !found.contains(&about) {
            found.push(about);
        }
    };
    let Ok(compound) = Compound::read(datagram) else { return found };
    for element in compound.elements() {
        match element {
            Element::Sender(report) => {
                add(report.ssrc(), true);
                report.report_blocks().for_each(|block| add(Block::of(&block).ssrc, false));
            }
            Element::Receiver(report) => {
                report.report_blocks().for_each(|block| add(Block::of(&block).ssrc, false));
            }
            Element::Goodbye(bye) => bye.ssrcs().for_each(|ssrc| add(ssrc, true)),
            Element::Extended(extended) => {
                for block in extended.blocks() {
                    if let XrBlock::Summary(ssrc, _) | XrBlock::Voip(ssrc, _) = block {
                        add(ssrc, false);
                    }
                }
            }
            Element::Other => {}
        }
    }
    found
}

/// The reports of one stream's receiver.
#[derive(Debug, Default)]
pub(super) struct ReceiverView {
    /// Created with the first RTCP about the stream: few streams have any.
    fold: Option<Box<RtcpFold>>,
}

impl ReceiverView {
    /// Takes a report of the stream's sender.
    pub(super) fn sender_told(&mut self, at: Micros, ssrc: u32, datagram: &[u8]) {
        let fold = self.fold.get_or_insert_default();
        fold.sends(ssrc);
        fold.sent(at, datagram);
    }

    /// Takes a report of the stream's receiver that arrived after `packets` packets.
    pub(super) fn receiver_told(
        &mut self,
        at: Micros,
        (ssrc, sent): (u32, u64),
        clock: Option<ClockRate>,
        datagram: &[u8],
    ) {
        let fold = self.fold.get_or_insert_default();
        fold.sends(ssrc);
        fold.received(at, datagram, &Heard { sent, clock, ..Heard::default() });
    }

    /// Adds the receiver's reports to the sender's.
    pub(super) fn complete(&self, view: &mut RtcpView) {
        let Some(fold) = &self.fold else { return };
        let told = fold.view(None);
        view.round_trip = told.round_trip;
        view.far_end = told.far_end;
        view.implausible = view.implausible.saturating_add(told.implausible);
    }
}

/// A datagram about more streams than any call has is ignored.
const ABOUT_MAX: usize = 16;
/// A longer datagram is not read, so that the queue of the accumulator stays bounded.
pub(super) const RTCP_BYTES_MAX: usize = 1_472;
