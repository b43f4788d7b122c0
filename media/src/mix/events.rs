//! What is to be told, in its order and in bounds.

use std::collections::VecDeque;

use super::words::MixEvent;

/// The events that nobody has taken yet.
#[derive(Debug, Default)]
pub(super) struct Events(VecDeque<MixEvent>);

impl Events {
    /// Tells `event`. A driver that takes nothing misses what comes after [`EVENTS_MAX`].
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
