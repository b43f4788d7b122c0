//! Requests of keys and users in the last minute, counted at the home of each: fixed windows, to which each node adds
//! its own count.

use std::collections::{BTreeMap, HashMap};
use std::time::{Duration, Instant};

use sidetone_model::cluster::RateKind;
use sidetone_model::ids::NodeId;
use uuid::Uuid;

use super::message::{Take, Taken};

/// The windows of the keys and users whose home is this node.
///
/// A node sends its own count with every question, so a new home rebuilds a window from the first question of each
/// node. A window is never longer than a minute.
#[derive(Debug, Default)]
pub struct RateWindows {
    windows: HashMap<(Uuid, RateKind), Window>,
    /// The time of the next search of a full table for ended windows: once a second.
    sweep_after: Option<Instant>,
}

#[derive(Debug)]
struct Window {
    ends_at: Instant,
    used: BTreeMap<NodeId, u32>,
}

impl RateWindows {
    /// Counts requests that are within the limit; `None` when the table is full.
    pub fn take(&mut self, now: Instant, take: &Take) -> Option<Taken> {
        let name = (take.who, take.what);
        if self.windows.len() >= WINDOWS_MAX && !self.windows.contains_key(&name) {
            self.sweep(now);
            if self.windows.len() >= WINDOWS_MAX {
                return None;
            }
        }
        let rest = u64::try_from(take.ends_in_us).unwrap_or_default();
        let own = Duration::from_micros(rest).min(WINDOW);
        // A node in the middle of its window sends the rest of it; otherwise the window begins now.
        let fresh = now + if take.used > 0 && !own.is_zero() { own } else { WINDOW };
        let window =
            self.windows.entry(name).or_insert_with(|| Window { ends_at: fresh, used: BTreeMap::new() });
        if window.ends_at <= now {
            *window = Window { ends_at: fresh, used: BTreeMap::new() };
        }
        // A count from a window that has already ended here is ignored.
        let is_of_window = now + own + SKEW >= window.ends_at;
        let counted = window.used.entry(take.node).or_default();
        if is_of_window && take.used > *counted {
            *counted = take.used;
        }
        let used: u64 = window.used.values().map(|used| u64::from(*used)).sum();
        let allowed = used + u64::from(take.cost) <= u64::from(take.limit);
        let cost = if allowed { take.cost } else { 0 };
        if let Some(counted) = window.used.get_mut(&take.node) {
            *counted = counted.saturating_add(cost);
        }
        let remaining = u64::from(take.limit).saturating_sub(used + u64::from(cost));
        let ends_in = window.ends_at.saturating_duration_since(now);
        Some(Taken {
            allowed,
            remaining: u32::try_from(remaining).unwrap_or(u32::MAX),
            ends_in_us: i64::try_from(ends_in.as_micros()).unwrap_or(i64::MAX),
        })
    }

    /// Number of windows.
    pub fn len(&self) -> usize {
        self.windows.len()
    }

    /// Whether the table is empty.
    pub fn is_empty(&self) -> bool {
        self.windows.is_empty()
    }

    fn sweep(&mut self, now: Instant) {
        if self.sweep_after.is_none_or(|after| after <= now) {
            self.windows.retain(|_, window| window.ends_at > now);
            self.sweep_after = Some(now + SWEEP_EVERY);
        }
    }
}

const WINDOW: Duration = Duration::from_secs(60);
/// How far two nodes' ends of the same window may differ: the transit time of a message.
const SKEW: Duration = Duration::from_secs(1);
const SWEEP_EVERY: Duration = Duration::from_secs(1);
/// The number of keys and users in the store bounds the windows.
const WINDOWS_MAX: usize = 100_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[expect(clippy::disallowed_methods, reason = "any instant begins the simulated time")]
    fn any_instant() -> Instant {
        Instant::now()
    }

    /// The node's own state: its count, and the end of its window.
    struct Node {
        node: NodeId,
        used: u32,
        ends_at: Instant,
    }

    impl Node {
        fn new(id: u128, now: Instant) -> Node {
            Node { node: NodeId(Uuid::from_u128(id)), used: 0, ends_at: now }
        }

        fn take(&mut self, home: &mut RateWindows, now: Instant, limit: u32) -> Taken {
            if self.ends_at <= now {
                self.used = 0;
            }
            let rest = self.ends_at.saturating_duration_since(now);
            let take = Take {
                node: self.node,
                who: Uuid::from_u128(5),
                what: RateKind::Requests,
                limit,
                cost: 1,
                used: self.used,
                ends_in_us: rest.as_micros() as i64,
            };
            let taken = home.take(now, &take).unwrap();
            self.used += u32::from(taken.allowed);
            self.ends_at = now + Duration::from_micros(taken.ends_in_us as u64);
            taken
        }
    }

    #[test]
    fn three_nodes_use_one_limit_in_every_minute() {
        let start = any_instant();
        let mut home = RateWindows::default();
        let mut nodes = [1, 2, 3].map(|id| Node::new(id, start));
        for minute in 0..3 {
            let mut allowed = 0;
            for n in 0..1_200 {
                let now = start + Duration::from_millis(minute * 60_000 + n * 50);
                allowed += u32::from(nodes[n as usize % 3].take(&mut home, now, 600).allowed);
            }
            assert_eq!(allowed, 600, "minute {minute}");
        }
    }

    #[test]
    fn a_new_home_learns_what_each_node_has_counted() {
        let start = any_instant();
        let mut home = RateWindows::default();
        let mut nodes = [1, 2].map(|id| Node::new(id, start));
        for _ in 0..4 {
            nodes[0].take(&mut home, start, 10);
            nodes[1].take(&mut home, start, 10);
        }
        let later = start + Duration::from_secs(20);
        let mut home = RateWindows::default();
        let taken = nodes[0].take(&mut home, later, 10);
        // The other node has not asked yet.
        assert_eq!((taken.allowed, taken.remaining, taken.ends_in_us), (true, 5, 40_000_000));
        let taken = nodes[1].take(&mut home, later, 10);
        assert_eq!((taken.allowed, taken.remaining), (true, 0));
        assert!(!nodes[0].take(&mut home, later, 10).allowed);
        // The count of an ended window does not carry over into the next one.
        let next = start + Duration::from_secs(61);
        assert_eq!(nodes[1].take(&mut home, next, 10).remaining, 9);
    }
}
