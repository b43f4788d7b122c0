//! Bindings that ended with their connection: a device that registers again on another connection keeps its binding's
//! identifier, and with it its calls.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::sync::Arc;
use std::time::Instant;

use crate::registrar::{Binding, ContactUpdate};

/// The bindings whose flow failed, until they would have expired.
///
/// *Bounds*: [`LOST_PER_AOR_MAX`] per address of record, beyond which its oldest is removed; [`LOST_MAX`] in total,
/// beyond which the oldest of the domain with the most is removed. So an organisation whose devices keep losing their
/// connections displaces only bindings of others that exceed an equal share.
#[derive(Default)]
pub(super) struct Lost {
    /// The bindings of each address of record with their positions in the order of their domain, the oldest first.
    by_aor: HashMap<Arc<str>, VecDeque<(u64, Binding)>>,
    /// The addresses of record of each domain in the order of loss.
    by_domain: HashMap<Arc<str>, BTreeMap<u64, Arc<str>>>,
    /// The domains by the number of their bindings.
    fullest: BTreeSet<(usize, Arc<str>)>,
    len: usize,
    next_place: u64,
}

impl Lost {
    /// Stores a binding.
    pub(super) fn insert(&mut self, aor: &Arc<str>, binding: Binding) {
        if self.by_aor.get(aor).is_some_and(|bindings| bindings.len() >= LOST_PER_AOR_MAX) {
            self.remove(aor, |_| true);
        }
        while self.len >= LOST_MAX
            && let Some(aor) = self.oldest_of_fullest()
        {
            self.remove(&aor, |_| true);
        }
        let place = self.next_place;
        self.next_place += 1;
        self.change(domain_of(aor), |order| drop(order.insert(place, Arc::clone(aor))));
        self.by_aor.entry(Arc::clone(aor)).or_default().push_back((place, binding));
    }

    /// Takes the binding of the device that registers `contact`: the contact or the instance is the same, or the
    /// Call-ID, which a device keeps for all of its registrations (RFC 3261 §10.2).
    pub(super) fn take(
        &mut self,
        now: Instant,
        aor: &str,
        contact: &ContactUpdate,
        call_id: &str,
    ) -> Option<Binding> {
        if self.by_aor.is_empty() {
            return None;
        }
        let found = self.remove(aor, |binding| contact.is_of(binding));
        let found = found.or_else(|| self.remove(aor, |binding| binding.call_id == call_id));
        found.filter(|binding| binding.expires_at > now)
    }

    /// Removes the bindings of an address of record.
    pub(super) fn forget(&mut self, aor: &str) {
        for (place, _) in self.by_aor.remove(aor).unwrap_or_default() {
            self.change(domain_of(aor), |order| drop(order.remove(&place)));
        }
    }

    /// The address of record of the oldest binding in the domain with the most bindings.
    fn oldest_of_fullest(&self) -> Option<Arc<str>> {
        let (_, domain) = self.fullest.last()?;
        self.by_domain.get(domain)?.values().next().map(Arc::clone)
    }

    /// Changes the order of a domain, and updates its count.
    fn change(&mut self, domain: &str, change: impl FnOnce(&mut BTreeMap<u64, Arc<str>>)) {
        let (key, mut order) = match self.by_domain.remove_entry(domain) {
            Some(known) => known,
            None => (Arc::from(domain), BTreeMap::new()),
        };
        self.fullest.remove(&(order.len(), Arc::clone(&key)));
        self.len -= order.len();
        change(&mut order);
        self.len += order.len();
        if !order.is_empty() {
            self.fullest.insert((order.len(), Arc::clone(&key)));
            self.by_domain.insert(key, order);
        }
    }

    /// Removes the oldest binding of an address of record for which `which` is true.
    fn remove(&mut self, aor: &str, which: impl Fn(&Binding) -> bool) -> Option<Binding> {
        let bindings = self.by_aor.get_mut(aor)?;
        let at = bindings.iter().position(|(_, binding)| which(binding))?;
        let (place, found) = bindings.remove(at)?;
        if bindings.is_empty() {
            self.by_aor.remove(aor);
        }
        self.change(domain_of(aor), |order| drop(order.remove(&place)));
        Some(found)
    }
}

/// The domain of an address of record, which identifies one organisation.
fn domain_of(aor: &str) -> &str {
    aor.rsplit_once('@').map_or(aor, |(_, domain)| domain)
}

/// Lost bindings that are stored.
const LOST_MAX: usize = 10_000;
/// Lost bindings of one address of record that are stored.
const LOST_PER_AOR_MAX: usize = 10;

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::flow::{Flow, ListenerId};
    use crate::registrar::{BindingId, Reachability};

    fn binding(n: u64, now: Instant) -> Binding {
        Binding {
            id: BindingId(n),
            contact: format!("sip:1001@192.0.2.1:{}", 10_000 + n % 50_000).parse().unwrap(),
            flow: Flow::udp(ListenerId(0), "192.0.2.1:5060".parse().unwrap()),
            path: Vec::new(),
            q_permille: 1_000,
            instance: None,
            reg_id: None,
            has_ice: false,
            user_agent: None,
            call_id: format!("call-{n}"),
            cseq: 1,
            refreshed_at: now,
            expires_at: now + Duration::from_secs(60),
            reachability: Reachability::default(),
            device_flow: None,
            probe_at: None,
        }
    }

    /// A device whose connection closes repeatedly does not displace the devices of others.
    #[test]
    fn one_address_of_record_displaces_no_other() {
        #[expect(clippy::disallowed_methods, reason = "a test needs some instant to count from")]
        let now = Instant::now();
        let (mut lost, other, restless) = (Lost::default(), Arc::from("1001@a"), Arc::from("1002@b"));
        lost.insert(&other, binding(1, now));
        for n in 2..30_000 {
            lost.insert(&restless, binding(n, now));
        }
        assert_eq!(lost.len, 1 + LOST_PER_AOR_MAX);
        assert_eq!(
            lost.remove(&other, |binding| binding.id == BindingId(1)).map(|b| b.id),
            Some(BindingId(1))
        );
        assert!(
            lost.remove(&restless, |binding| binding.id == BindingId(2)).is_none(),
            "its own oldest is gone"
        );
        assert!(lost.remove(&restless, |binding| binding.id == BindingId(29_999)).is_some());
        lost.forget(&restless);
        assert!(lost.by_aor.is_empty() && lost.by_domain.is_empty() && lost.fullest.is_empty());
        for n in 0..10_010 {
            lost.insert(&Arc::from(format!("{n}@c")), binding(n, now));
        }
        assert_eq!((lost.len, lost.by_aor.len()), (LOST_MAX, LOST_MAX));
    }

    /// An organisation with very many devices does not displace those of another that is below an equal share.
    #[test]
    fn one_organisation_displaces_no_other() {
        #[expect(clippy::disallowed_methods, reason = "a test needs some instant to count from")]
        let now = Instant::now();
        let mut lost = Lost::default();
        let small: Vec<Arc<str>> = (0..40).map(|n| Arc::from(format!("{n}@small.test"))).collect();
        small.iter().for_each(|aor| lost.insert(aor, binding(1, now)));
        for n in 0..30_000 {
            lost.insert(&Arc::from(format!("{n}@large.test")), binding(n, now));
        }
        assert_eq!(lost.len, LOST_MAX);
        assert!(lost.by_aor.contains_key("29999@large.test"), "the newest is kept");
        for aor in &small {
            assert!(lost.remove(aor, |_| true).is_some(), "{aor}");
        }
        assert_eq!(lost.len, LOST_MAX - small.len());
    }
}
