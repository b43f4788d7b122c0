//! Which webhooks may send now: a state machine without clock, socket or database. Callbacks of calls use another
//! one, with a share for each organisation.
//!
//! It counts running attempts, and distributes the free places among the owners with due deliveries: those with the
//! fewest running first, 16 each at most, and fewer when few places are left. An endpoint that hangs holds its places
//! until the time limit; others still find free places, however many deliveries wait.

use std::collections::BTreeMap;

use sidetone_model::ids::WebhookId;

/// Distributes the places.
#[derive(Debug)]
pub struct Scheduler<Owner = WebhookId> {
    /// Attempts that run or may start, by their owner; no entry is 0.
    running: BTreeMap<Owner, usize>,
    total: usize,
    places: usize,
}

/// How many deliveries of an owner may start now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Grant<Owner = WebhookId> {
    /// The owner of the deliveries.
    pub owner: Owner,
    /// The largest number, at least one.
    pub places: usize,
}

impl<Owner: Copy + Ord> Scheduler<Owner> {
    /// A scheduler with that many places in total.
    pub fn new(places: usize) -> Self {
        Self { running: BTreeMap::new(), total: 0, places }
    }

    /// Distributes the free places among the owners with due deliveries. A granted place counts as running until
    /// [`Scheduler::ended`] is called for it.
    pub fn grant(&mut self, due: &[Owner]) -> Vec<Grant<Owner>> {
        let mut waiting: Vec<Owner> = due.to_vec();
        waiting.sort_by_key(|owner| (self.running(*owner), *owner));
        waiting.dedup();
        let mut granted: BTreeMap<Owner, usize> = BTreeMap::new();
        // One place each per round, so that no owner takes a place that another could use for its first delivery.
        for _ in 0..PER_WEBHOOK_MAX {
            let before = self.total;
            for owner in &waiting {
                if self.total < self.places && self.running(*owner) < self.share() {
                    *self.running.entry(*owner).or_default() += 1;
                    *granted.entry(*owner).or_default() += 1;
                    self.total += 1;
                }
            }
            if self.total == before {
                break;
            }
        }
        granted.into_iter().map(|(owner, places)| Grant { owner, places }).collect()
    }

    /// Frees places of `owner`: its attempts ended, or it had less to send than was granted.
    pub fn ended(&mut self, owner: Owner, places: usize) {
        let Some(running) = self.running.get_mut(&owner) else { return };
        let freed = places.min(*running);
        *running -= freed;
        self.total -= freed;
        if *running == 0 {
            self.running.remove(&owner);
        }
    }

    /// Running attempts of all owners.
    pub fn total(&self) -> usize {
        self.total
    }

    /// Running attempts of one owner.
    pub fn running(&self, owner: Owner) -> usize {
        self.running.get(&owner).copied().unwrap_or_default()
    }

    /// The number that one owner may have now: less when fewer places are free.
    fn share(&self) -> usize {
        let free = self.places.saturating_sub(self.total);
        (free / FREE_PER_SHARE).clamp(1, PER_WEBHOOK_MAX)
    }
}

/// Simultaneous attempts of one owner, on all nodes together.
pub const PER_WEBHOOK_MAX: usize = 16;
/// Simultaneous attempts of all owners, on this node.
pub const PLACES: usize = 256;
/// With a quarter of the places in use, an endpoint still gets its 16; with 16 left, two.
const FREE_PER_SHARE: usize = 8;

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    fn hook(number: u128) -> WebhookId {
        WebhookId(Uuid::from_u128(number))
    }

    fn granted(scheduler: &mut Scheduler, due: &[WebhookId]) -> Vec<(u128, usize)> {
        scheduler.grant(due).iter().map(|grant| (grant.owner.0.as_u128(), grant.places)).collect()
    }

    #[test]
    fn one_webhook_has_sixteen_places() {
        let mut scheduler = Scheduler::new(PLACES);
        assert_eq!(granted(&mut scheduler, &[hook(1)]), [(1, 16)]);
        assert_eq!(granted(&mut scheduler, &[hook(1), hook(1)]), []);
        scheduler.ended(hook(1), 3);
        assert_eq!(granted(&mut scheduler, &[hook(1), hook(2)]), [(1, 3), (2, 16)]);
        assert_eq!((scheduler.total(), scheduler.running(hook(2))), (32, 16));
    }

    #[test]
    fn the_fewer_places_are_left_the_fewer_an_endpoint_has() {
        let mut scheduler = Scheduler::new(PLACES);
        let mut hung = 0;
        for number in 1.. {
            let grants = granted(&mut scheduler, &[hook(number)]);
            let Some((_, places)) = grants.first() else { break };
            assert!(*places >= 1 && *places <= 16);
            hung += 1;
        }
        // With 16 each, 16 endpoints would take all places.
        assert!(hung > 40, "{hung} endpoints hang before a place is missing");
        assert_eq!(scheduler.total(), PLACES);
    }

    #[test]
    fn those_with_less_go_first() {
        let mut scheduler = Scheduler::new(4);
        assert_eq!(granted(&mut scheduler, &[hook(1)]), [(1, 1)]);
        assert_eq!(granted(&mut scheduler, &[hook(1), hook(3), hook(2)]), [(2, 1), (3, 1)]);
        assert_eq!(granted(&mut scheduler, &[hook(4), hook(5)]), [(4, 1)]);
        assert_eq!(granted(&mut scheduler, &[hook(5)]), []);
        scheduler.ended(hook(2), 1);
        assert_eq!(granted(&mut scheduler, &[hook(1), hook(5)]), [(5, 1)]);
    }

    #[test]
    fn what_never_ran_frees_nothing() {
        let mut scheduler = Scheduler::new(8);
        scheduler.ended(hook(1), 4);
        scheduler.grant(&[hook(2)]);
        scheduler.ended(hook(2), 100);
        assert_eq!((scheduler.total(), scheduler.running(hook(2))), (0, 0));
    }
}
