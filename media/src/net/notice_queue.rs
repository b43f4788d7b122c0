//! What a worker tells the switch, when there is room and when there is none.
//!
//! Reports, digits and ends wait; of who talks the last state waits; everything else is dropped and counted.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::Ordering;

use crossbeam_channel::TrySendError;

use super::counters::{Batch, Count};
use super::message::{Notice, PortId};
use super::relay::Shared;

/// The notices of one worker that are not with the switch yet.
#[derive(Default)]
pub(super) struct NoticeQueue {
    /// Notices that found the channel full. Bounded: while many wait no port is opened, and digits are dropped.
    waiting: VecDeque<Notice>,
    /// Whether a party talks, where the switch was last told the opposite. One for each leg at most.
    untold: HashMap<PortId, bool>,
    /// Something was queued for the reader in this turn.
    queued: bool,
}

impl NoticeQueue {
    /// Queues a notice.
    pub(super) fn notify(&mut self, notice: Notice, shared: &Shared, batch: &mut Batch) {
        if let Notice::Talking { id, talking } = notice {
            return self.tell_talking(id, talking, shared);
        }
        let kept = !matches!(notice, Notice::Latched { .. } | Notice::Snapshot { .. });
        // Nothing overtakes what waits.
        if kept && !self.waiting.is_empty() {
            return self.wait(notice, shared, batch);
        }
        match shared.notices.try_send(notice) {
            Ok(()) => self.queued = true,
            Err(TrySendError::Full(notice)) if kept => self.wait(notice, shared, batch),
            Err(_) => batch.add(Count::NoticesDropped, 1),
        }
    }

    /// The state that a leg's switch has not been told, taken out: the leg goes, or is over.
    pub(super) fn take_untold(&mut self, id: PortId) -> Option<bool> {
        self.untold.remove(&id)
    }

    /// Delivers what waits as far as there is room, and wakes the reader when there is something new.
    pub(super) fn deliver(&mut self, shared: &Shared, batch: &mut Batch) {
        while let Some(notice) = self.waiting.pop_front() {
            match shared.notices.try_send(notice) {
                Ok(()) => {
                    shared.backlog.fetch_sub(1, Ordering::Relaxed);
                    self.queued = true;
                }
                Err(TrySendError::Full(notice)) => {
                    self.waiting.push_front(notice);
                    break;
                }
                Err(TrySendError::Disconnected(_)) => {
                    shared.backlog.fetch_sub(1, Ordering::Relaxed);
                    batch.add(Count::NoticesDropped, 1);
                }
            }
        }
        if !self.untold.is_empty() && self.waiting.is_empty() {
            self.deliver_untold(shared);
        }
        if std::mem::take(&mut self.queued) {
            (shared.wake)();
        }
    }

    /// Whether something waits for room.
    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty() && self.untold.is_empty()
    }

    fn tell_talking(&mut self, id: PortId, talking: bool, shared: &Shared) {
        // States alternate: one that follows an untold one is what the switch believes already.
        if self.untold.remove(&id).is_some() {
            return;
        }
        if self.waiting.is_empty() && shared.notices.try_send(Notice::Talking { id, talking }).is_ok() {
            self.queued = true;
        } else {
            self.untold.insert(id, talking);
        }
    }

    fn deliver_untold(&mut self, shared: &Shared) {
        let mut told = false;
        self.untold.retain(|id, talking| {
            let sent = shared.notices.try_send(Notice::Talking { id: *id, talking: *talking }).is_ok();
            told |= sent;
            !sent
        });
        self.queued |= told;
    }

    fn wait(&mut self, notice: Notice, shared: &Shared, batch: &mut Batch) {
        // Reports have a bound of their own: their legs'.
        if self.waiting.len() >= WAITING_MAX && !matches!(notice, Notice::Closed { .. }) {
            return batch.add(Count::NoticesDropped, 1);
        }
        self.waiting.push_back(notice);
        shared.backlog.fetch_add(1, Ordering::Relaxed);
    }
}

/// Digits and ends that wait in one worker; more come of a flood only.
const WAITING_MAX: usize = 65_536;

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv4Addr};
    use std::sync::Arc;

    use super::*;
    use crate::net::RelayConfig;
    use crate::session::SessionConfig;

    #[test]
    fn nothing_is_lost_while_nobody_reads_and_who_talks_is_told_once() {
        let config = RelayConfig {
            bind: IpAddr::V4(Ipv4Addr::LOCALHOST),
            ports: 20_000..=20_001,
            workers: 1,
            session: SessionConfig::default(),
            seed: 1,
        };
        let (shared, notices) = Shared::new(config, Vec::new(), Arc::new(|| {})).unwrap();
        let (mut queue, mut batch) = (NoticeQueue::default(), Batch::new());
        let id = |serial| PortId::new(serial, 0, 20_000);
        let mut tell = |queue: &mut NoticeQueue, notice| queue.notify(notice, &shared, &mut batch);
        while !notices.is_full() {
            tell(&mut queue, Notice::Played { id: id(0), token: 0 });
        }
        // Three changes: what the switch is told is the last state, and nothing when that is the first again.
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
        queue.deliver(&shared, &mut batch);
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
        assert_eq!(shared.backlog.load(Ordering::Relaxed), 0);
    }
}
