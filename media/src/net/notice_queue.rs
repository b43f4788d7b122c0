//! The notices of a worker to the switch, sent when the channel has room and kept when it has none.
//!
//! Reports, digits and ends of clips are kept. Of `Talking` only the last state is kept. All other notices
//! are dropped and counted.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crossbeam_channel::{Receiver, Sender, TrySendError, bounded};

use super::counters::{Batch, Count};
use super::message::{Notice, PortId};

/// The channel to the switch that all workers share.
pub(super) struct NoticeChannel {
    sender: Sender<Notice>,
    /// Notices that wait in the queues of all workers.
    backlog: AtomicUsize,
    /// Called after notices were queued; it must not block.
    wake: Arc<dyn Fn() + Send + Sync>,
}

impl NoticeChannel {
    /// An empty channel, and the receiver of its notices.
    pub(super) fn new(wake: Arc<dyn Fn() + Send + Sync>) -> (NoticeChannel, Receiver<Notice>) {
        let (sender, notices) = bounded(NOTICES_MAX);
        (NoticeChannel { sender, backlog: AtomicUsize::new(0), wake }, notices)
    }

    /// Whether so many notices wait that no further port may be opened.
    pub(super) fn is_behind(&self) -> bool {
        self.backlog.load(Ordering::Relaxed) >= BACKLOG_MAX
    }

    /// Sends a notice if there is room; returns whether there was.
    pub(super) fn offer(&self, notice: Notice) -> bool {
        self.sender.try_send(notice).is_ok()
    }
}

/// Notices of one worker that are not in the channel yet.
#[derive(Default)]
pub(super) struct NoticeQueue {
    /// Notices that found the channel full. Bounded: while many wait, no port is opened and digits are dropped.
    waiting: VecDeque<Notice>,
    /// The talking state of each party whose last notice to the switch was the opposite; at most one per leg.
    untold: HashMap<PortId, bool>,
    /// Whether this turn put a notice into the channel.
    queued: bool,
}

impl NoticeQueue {
    /// Queues a notice.
    pub(super) fn notify(&mut self, notice: Notice, channel: &NoticeChannel, batch: &mut Batch) {
        if let Notice::Talking { id, talking } = notice {
            return self.tell_talking(id, talking, channel);
        }
        let kept = !matches!(notice, Notice::Latched { .. } | Notice::Snapshot { .. });
        // Keeps the order: nothing overtakes a waiting notice.
        if kept && !self.waiting.is_empty() {
            return self.wait(notice, channel, batch);
        }
        match channel.sender.try_send(notice) {
            Ok(()) => self.queued = true,
            Err(TrySendError::Full(notice)) if kept => self.wait(notice, channel, batch),
            Err(_) => batch.add(Count::NoticesDropped, 1),
        }
    }

    /// Removes the talking state that was not sent to the switch, when the leg moves to another worker or ends.
    pub(super) fn take_untold(&mut self, id: PortId) -> Option<bool> {
        self.untold.remove(&id)
    }

    /// Sends waiting notices while there is room, and wakes the reader when there are new ones.
    pub(super) fn deliver(&mut self, channel: &NoticeChannel, batch: &mut Batch) {
        while let Some(notice) = self.waiting.pop_front() {
            match channel.sender.try_send(notice) {
                Ok(()) => {
                    channel.backlog.fetch_sub(1, Ordering::Relaxed);
                    self.queued = true;
                }
                Err(TrySendError::Full(notice)) => {
                    self.waiting.push_front(notice);
                    break;
                }
                Err(TrySendError::Disconnected(_)) => {
                    channel.backlog.fetch_sub(1, Ordering::Relaxed);
                    batch.add(Count::NoticesDropped, 1);
                }
            }
        }
        if !self.untold.is_empty() && self.waiting.is_empty() {
            self.deliver_untold(channel);
        }
        if std::mem::take(&mut self.queued) {
            (channel.wake)();
        }
    }

    /// Whether no notice waits.
    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty() && self.untold.is_empty()
    }

    fn tell_talking(&mut self, id: PortId, talking: bool, channel: &NoticeChannel) {
        // States alternate: a state after an undelivered one equals the last state that the switch received.
        if self.untold.remove(&id).is_some() {
            return;
        }
        if self.waiting.is_empty() && channel.offer(Notice::Talking { id, talking }) {
            self.queued = true;
        } else {
            self.untold.insert(id, talking);
        }
    }

    fn deliver_untold(&mut self, channel: &NoticeChannel) {
        let mut told = false;
        self.untold.retain(|id, talking| {
            let sent = channel.offer(Notice::Talking { id: *id, talking: *talking });
            told |= sent;
            !sent
        });
        self.queued |= told;
    }

    fn wait(&mut self, notice: Notice, channel: &NoticeChannel, batch: &mut Batch) {
        // Reports have their own bound: one per leg.
        if self.waiting.len() >= WAITING_MAX && !matches!(notice, Notice::Closed { .. }) {
            return batch.add(Count::NoticesDropped, 1);
        }
        self.waiting.push_back(notice);
        channel.backlog.fetch_add(1, Ordering::Relaxed);
    }
}

/// Digits and ends that wait in one worker; only a flood causes more.
const WAITING_MAX: usize = 65_536;
/// With more notices than this waiting for the reader, no new port is opened.
const BACKLOG_MAX: usize = 65_536;
/// Notices that the channel holds.
const NOTICES_MAX: usize = 8_192;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_lost_while_nobody_reads_and_who_talks_is_told_once() {
        let (channel, notices) = NoticeChannel::new(Arc::new(|| {}));
        let (mut queue, mut batch) = (NoticeQueue::default(), Batch::new());
        let id = |serial| PortId::new(serial, 0, 20_000);
        let mut tell = |queue: &mut NoticeQueue, notice| queue.notify(notice, &channel, &mut batch);
        while !notices.is_full() {
            tell(&mut queue, Notice::Played { id: id(0), token: 0 });
        }
        // Three changes: the switch receives only the last state, and nothing when that equals the first.
        for talking in [true, false, true] {
            tell(&mut queue, Notice::Talking { id: id(1), talking });
        }
        for talking in [true, false] {
            tell(&mut queue, Notice::Talking { id: id(2), talking });
        }
        for digit in ['1', '2'] {
            tell(&mut queue, Notice::Digit { id: id(1), digit });
        }
        tell(&mut queue, Notice::Closed { id: id(9), report: Box::default() });
        while notices.try_recv().is_ok() {}
        queue.deliver(&channel, &mut batch);
        let told: Vec<String> = notices
            .try_iter()
            .map(|notice| match notice {
                Notice::Digit { digit, .. } => format!("digit {digit}"),
                Notice::Closed { .. } => "closed".to_owned(),
                Notice::Talking { id: who, talking } => {
                    format!("{} {talking}", if who == id(1) { 1 } else { 2 })
                }
                other => panic!("{other:?}"),
            })
            .collect();
        assert_eq!(told, ["digit 1", "digit 2", "closed", "1 true"]);
        assert!(queue.is_empty());
        assert_eq!(channel.backlog.load(Ordering::Relaxed), 0);
    }
}
