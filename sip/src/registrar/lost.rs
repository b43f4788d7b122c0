//! Bindings that ended with their connection: a device that registers again from another one keeps its identifier,
//! and with it its calls.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;
use std::time::Instant;

use crate::registrar::{Binding, ContactUpdate};

/// The bindings whose flow failed, until they would have expired.
///
/// *Bounds*: [`LOST_PER_AOR_MAX`] of an address of record, whose oldest makes room; [`LOST_MAX`] in total.
#[derive(Default)]
pub(super) struct Lost {
    /// The bindings of each address of record with their places in `order`, the oldest first.
    by_aor: HashMap<Arc<str>, VecDeque<(u64, Binding)>>,
    /// In the order of loss.
    order: BTreeMap<u64, Arc<str>>,
    next_place: u64,
}

impl Lost {
    /// Stores a binding.
    pub(super) fn insert(&mut self, aor: &Arc<str>, binding: Binding) {
        if self.by_aor.get(aor).is_some_and(|bindings| bindings.len() >= LOST_PER_AOR_MAX) {
            self.remove(aor, |_| true);
        }
        while self.order.len() >= LOST_MAX
            && let Some(aor) = self.order.values().next().map(Arc::clone)
        {
            self.remove(&aor, |_| true);
        }
        let place = self.next_place;
        self.next_place += 1;
        self.order.insert(place, Arc::clone(aor));
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

    /// Forgets the devices of an address of record.
    pub(super) fn forget(&mut self, aor: &str) {
        for (place, _) in self.by_aor.remove(aor).unwrap_or_default() {
            self.order.remove(&place);
        }
    }

    /// Removes the oldest binding of an address of record for which `which` is true.
    fn remove(&mut self, aor: &str, which: impl Fn(&Binding) -> bool) -> Option<Binding> {
        let bindings = self.by_aor.get_mut(aor)?;
        let at = bindings.iter().position(|(_, binding)| which(binding))?;
        let (place, found) = bindings.remove(at)?;
        self.order.remove(&place);
        if bindings.is_empty() {
            self.by_aor.remove(aor);
        }
        Some(found)
    }
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
            user_agent: None,
            call_id: format!("call-{n}"),
            cseq: 1,
            refreshed_at: now,
            expires_at: now + Duration::from_secs(60),
            reachability: Reachability::default(),
            probe_at: None,
        }
    }

    /// A device whose connection closes again and again takes no place of the devices of others.
    #[test]
    fn one_address_of_record_displaces_no_other() {
        #[expect(clippy::disallowed_methods, reason = "a test needs some instant to count from")]
        let now = Instant::now();
        let (mut lost, other, restless) = (Lost::default(), Arc::from("1001@a"), Arc::from("1002@b"));
        lost.insert(&other, binding(1, now));
        for n in 2..30_000 {
            lost.insert(&restless, binding(n, now));
        }
        assert_eq!(lost.order.len(), 1 + LOST_PER_AOR_MAX);
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
        assert!(lost.by_aor.is_empty() && lost.order.is_empty());
        for n in 0..10_010 {
            lost.insert(&Arc::from(format!("{n}@c")), binding(n, now));
        }
        assert_eq!((lost.order.len(), lost.by_aor.len()), (LOST_MAX, LOST_MAX));
    }
}
