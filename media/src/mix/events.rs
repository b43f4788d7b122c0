//! The bounded queue of a mix's events, in order.

use std::collections::VecDeque;

use super::words::MixEvent;

/// Events that the driver has not taken yet.
#[derive(Debug, Default)]
pub(super) struct Events(VecDeque<MixEvent>);

impl Events {
    /// Queues `event`. When the driver takes nothing, events after the first [`EVENTS_MAX`] are dropped.
    pub(super) fn tell(&mut self, event: MixEvent) {
        if self.0.len() < EVENTS_MAX {
            self.0.push_back(event);
        }
    }

    pub(super) fn take(&mut self) -> Option<MixEvent> {
        self.0.pop_front()
    }
}

/// Four for every seat of the largest mix; a driver takes them after every input.
const EVENTS_MAX: usize = 4 * 4_096;
