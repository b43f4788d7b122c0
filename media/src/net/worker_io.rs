//! State shared by the parts of one worker: the buffers of its sockets, its counts, its notices, and the leg or mix
//! being processed.

use std::sync::Arc;

use sidetone_wire::Wire;

use super::counters::Batch;
use super::message::{Notice, PortId};
use super::notice_queue::NoticeQueue;
use super::shared::Shared;
use crate::mix::MixId;

/// The inputs and outputs of a worker, lent to its legs, mixes and transcodings.
pub(super) struct WorkerIo {
    pub(super) shared: Arc<Shared>,
    pub(super) wire: Wire,
    pub(super) batch: Batch,
    pub(super) notices: NoticeQueue,
    /// The leg or mix being processed: it ends when a panic occurs.
    pub(super) current: Option<At>,
}

/// The object that a worker is processing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum At {
    /// One leg.
    Leg(PortId),
    /// A mix, with all legs in it.
    Mix(MixId),
}

impl WorkerIo {
    /// No counts and no notices yet.
    pub(super) fn new(shared: Arc<Shared>, wire: Wire) -> WorkerIo {
        WorkerIo { shared, wire, batch: Batch::new(), notices: NoticeQueue::default(), current: None }
    }

    /// Queues a notice for the switch.
    pub(super) fn notify(&mut self, notice: Notice) {
        self.notices.notify(notice, &self.shared.notices, &mut self.batch);
    }

    /// Delivers notices that wait, as far as the switch has room.
    pub(super) fn deliver_notices(&mut self) {
        self.notices.deliver(&self.shared.notices, &mut self.batch);
    }
}
