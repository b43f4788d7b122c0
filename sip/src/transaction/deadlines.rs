//! One deadline per machine, the earliest first: changes are O(log n), and no scan is needed.

use std::collections::{BTreeSet, HashMap};
use std::hash::Hash;
use std::time::Instant;

/// The deadlines of many machines, each with a key.
#[derive(Debug)]
pub(crate) struct Deadlines<K> {
    queue: BTreeSet<(Instant, K)>,
    by_key: HashMap<K, Instant>,
}

impl<K: Copy + Eq + Hash + Ord> Deadlines<K> {
    pub(crate) fn new() -> Self {
        Self { queue: BTreeSet::new(), by_key: HashMap::new() }
    }

    /// Sets or removes the deadline of `key`.
    pub(crate) fn set(&mut self, key: K, deadline: Option<Instant>) {
        let old = match deadline {
            Some(at) => self.by_key.insert(key, at),
            None => self.by_key.remove(&key),
        };
        if old == deadline {
            return;
        }
        if let Some(old) = old {
            self.queue.remove(&(old, key));
        }
        if let Some(at) = deadline {
            self.queue.insert((at, key));
        }
    }

    /// Removes and returns one key whose deadline has passed.
    pub(crate) fn pop_due(&mut self, now: Instant) -> Option<K> {
        let (at, key) = *self.queue.first()?;
        if at > now {
            return None;
        }
        self.queue.pop_first();
        self.by_key.remove(&key);
        Some(key)
    }

    /// The earliest deadline.
    pub(crate) fn next(&self) -> Option<Instant> {
        self.queue.first().map(|(at, _)| *at)
    }

    /// Number of keys with a deadline.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.queue.len()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::transaction::ladder::start;

    #[test]
    fn a_key_has_one_deadline_and_the_earliest_comes_first() {
        let zero = start();
        let at = |ms| zero + Duration::from_millis(ms);
        let mut deadlines = Deadlines::new();
        deadlines.set('a', Some(at(30)));
        deadlines.set('b', Some(at(20)));
        deadlines.set('a', Some(at(10)));
        deadlines.set('c', Some(at(5)));
        deadlines.set('c', None);
        assert_eq!((deadlines.next(), deadlines.len()), (Some(at(10)), 2));
        assert_eq!(deadlines.pop_due(at(9)), None);
        assert_eq!(deadlines.pop_due(at(25)), Some('a'));
        assert_eq!(deadlines.pop_due(at(25)), Some('b'));
        assert_eq!((deadlines.pop_due(at(25)), deadlines.next()), (None, None));
    }
}
