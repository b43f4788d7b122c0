//! Shares of the node's media ports: how many pairs each organisation holds, and how many of them the unanswered calls
//! of each caller hold.
//!
//! An organisation may take a pair while it holds fewer than [`HELD_PER_FREE`] times as many as are free. So one that
//! floods the node converges, and every other organisation still finds free pairs. A node with one organisation has no
//! such limit. The unanswered calls of one caller, with all their forks, may hold a quarter of what an organisation
//! can hold beside idle ones.

use std::collections::HashMap;
use std::hash::Hash;

use sidetone_model::ids::{ExtensionId, OrganisationId};

/// The pairs in use.
///
/// *Bounds*: the pairs of the node; an organisation or a caller without a pair has no entry.
pub(super) struct PortShares {
    pairs: usize,
    used: usize,
    held: HashMap<OrganisationId, usize>,
    unanswered: HashMap<ExtensionId, usize>,
}

impl PortShares {
    /// Shares of a node with this number of port pairs, none of them in use.
    pub(super) fn new(pairs: usize) -> Self {
        PortShares { pairs, used: 0, held: HashMap::new(), unanswered: HashMap::new() }
    }

    /// Whether an organisation may take `count` pairs; `is_alone` if the node has no other organisation.
    pub(super) fn allow(&self, organisation: OrganisationId, count: usize, is_alone: bool) -> bool {
        // The pairs before the last one are taken first.
        let before = count.saturating_sub(1);
        let free = self.pairs.saturating_sub(self.used).saturating_sub(before);
        let held = self.held.get(&organisation).copied().unwrap_or_default() + before;
        is_alone || held < free.saturating_mul(HELD_PER_FREE)
    }

    /// Whether a caller may place another call, as far as its unanswered calls matter.
    pub(super) fn allow_unanswered(&self, caller: ExtensionId) -> bool {
        let share = self.pairs - self.pairs.div_ceil(HELD_PER_FREE + 1);
        let limit = (share / UNANSWERED_PART).max(UNANSWERED_MIN);
        self.unanswered.get(&caller).is_none_or(|held| *held < limit)
    }

    /// Counts a pair of an organisation.
    pub(super) fn take(&mut self, organisation: OrganisationId) {
        self.used += 1;
        *self.held.entry(organisation).or_default() += 1;
    }

    /// Counts a pair of an organisation no longer.
    pub(super) fn give_back(&mut self, organisation: OrganisationId) {
        self.used = self.used.saturating_sub(1);
        reduce(&mut self.held, organisation, 1);
    }

    /// Counts a pair of an unanswered call of this caller.
    pub(super) fn wait(&mut self, caller: ExtensionId) {
        *self.unanswered.entry(caller).or_default() += 1;
    }

    /// Counts the pairs of an unanswered call no longer.
    pub(super) fn stop_waiting(&mut self, caller: ExtensionId, count: usize) {
        reduce(&mut self.unanswered, caller, count);
    }

    /// Whether no pair is counted.
    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.used == 0 && self.held.is_empty() && self.unanswered.is_empty()
    }
}

/// Reduces a count, and removes it at zero.
fn reduce<K: Eq + Hash>(counts: &mut HashMap<K, usize>, key: K, by: usize) {
    if let Some(count) = counts.get_mut(&key) {
        *count = count.saturating_sub(by);
        if *count == 0 {
            counts.remove(&key);
        }
    }
}

/// How many pairs an organisation may hold for each free one: beside idle ones it can hold seven eighths of all.
const HELD_PER_FREE: usize = 7;
/// The divisor of an organisation's share that is the limit of one caller's unanswered calls.
const UNANSWERED_PART: usize = 4;
/// Eight calls to one phone each.
const UNANSWERED_MIN: usize = 16;

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    fn organisation(number: u128) -> OrganisationId {
        OrganisationId(Uuid::from_u128(number))
    }

    /// Takes pairs until the next one is refused; returns how many were taken.
    fn flood(shares: &mut PortShares, number: u128) -> usize {
        let mut taken = 0;
        while shares.allow(organisation(number), 1, false) {
            shares.take(organisation(number));
            taken += 1;
        }
        taken
    }

    #[test]
    fn each_further_organisation_finds_free_pairs() {
        for (pairs, expected) in [(200, [175, 22, 3]), (5_000, [4_375, 547, 69]), (2, [2, 0, 0]), (0, [0; 3])]
        {
            let mut shares = PortShares::new(pairs);
            assert_eq!([1, 2, 3].map(|number| flood(&mut shares, number)), expected, "{pairs}");
        }
    }

    #[test]
    fn a_pair_for_video_is_within_the_share_too() {
        let mut shares = PortShares::new(16);
        (0..13).for_each(|_| shares.take(organisation(1)));
        let allowed = [1, 2, 3].map(|count| shares.allow(organisation(1), count, false));
        assert_eq!(allowed, [true, false, false]);
        assert!(shares.allow(organisation(1), 2, true));
    }

    #[test]
    fn counts_return_to_zero() {
        let mut shares = PortShares::new(200);
        let caller = ExtensionId(Uuid::from_u128(9));
        assert_eq!(flood(&mut shares, 1), 175);
        (0..43).for_each(|_| shares.wait(caller));
        assert!(!shares.allow_unanswered(caller) && shares.allow_unanswered(ExtensionId(Uuid::nil())));
        (0..175).for_each(|_| shares.give_back(organisation(1)));
        shares.stop_waiting(caller, 43);
        assert!(shares.is_empty() && shares.allow_unanswered(caller));
    }
}
