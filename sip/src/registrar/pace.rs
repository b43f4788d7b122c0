//! The rate of probes: they are sent evenly, and the domains take turns, so that one with many phones does not delay
//! the probes of another.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::admission::{Bucket, Rate};
use crate::registrar::BindingId;

/// Probes waiting to be sent.
///
/// *Bounds*: each binding waits at most once, and once more after each registration.
pub(super) struct Pace {
    bucket: Bucket,
    waiting: HashMap<Box<str>, VecDeque<(Arc<str>, BindingId)>>,
    turn: VecDeque<Box<str>>,
    due: Option<Instant>,
}

impl Pace {
    pub(super) fn new(per_second: u32) -> Self {
        let bucket = Bucket::new(Rate::new(per_second, per_second / BURSTS_PER_SECOND));
        Pace { bucket, waiting: HashMap::new(), turn: VecDeque::new(), due: None }
    }

    /// When the next waiting probes can be sent.
    pub(super) fn next_timeout(&self) -> Option<Instant> {
        self.due
    }

    /// Adds the probe of a binding.
    pub(super) fn push(&mut self, aor: &Arc<str>, id: BindingId) {
        let domain = aor.split_once('@').map_or(&**aor, |(_, domain)| domain);
        match self.waiting.get_mut(domain) {
            Some(queue) => queue.push_back((Arc::clone(aor), id)),
            None => {
                self.turn.push_back(domain.into());
                self.waiting.insert(domain.into(), VecDeque::from([(Arc::clone(aor), id)]));
            }
        }
    }

    /// The next probe that may be sent now.
    pub(super) fn pop(&mut self, now: Instant) -> Option<(Arc<str>, BindingId)> {
        self.due = None;
        let domain = self.turn.pop_front()?;
        if !self.bucket.take(now) {
            self.turn.push_front(domain);
            self.due = Some(now + Duration::from_secs(1) / BURSTS_PER_SECOND);
            return None;
        }
        let queue = self.waiting.get_mut(&domain)?;
        let next = queue.pop_front();
        if queue.is_empty() {
            self.waiting.remove(&domain);
        } else {
            self.turn.push_back(domain);
        }
        next
    }
}

/// Groups of probes per second.
const BURSTS_PER_SECOND: u32 = 100;

/// The time to the first probe of a registration: in the second half of the interval, at a position that depends on the
/// binding, so that phones that register at the same time are not probed at the same time.
pub(super) fn first_wait(id: BindingId, interval: Duration) -> Duration {
    let place = u32::try_from(id.0.wrapping_mul(GOLDEN) >> (64 - PLACES_BITS)).unwrap_or_default();
    interval - interval / 2 * place / (1 << PLACES_BITS)
}

/// 2⁶⁴ divided by the golden ratio: its multiples are spread evenly.
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;
/// The number of positions is two to the power of this.
const PLACES_BITS: u32 = 16;
