//! Bindings at other nodes: phones that are reached through the edge of their node.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Instant;

use crate::flow::Flow;
use crate::registrar::{Binding, BindingId, SavedBinding};

/// A binding at another node. The fields of `saved` are those of the binding there, with the path from here: `flow`
/// leads to the other node, and the first route of `path` names the phone's flow to that node.
#[derive(Clone, Debug)]
pub struct BindingElsewhere {
    /// The binding.
    pub saved: SavedBinding,
    /// The flow of the phone at its node.
    pub device_flow: Flow,
}

/// The bindings of all other nodes.
#[derive(Default)]
pub(super) struct Elsewhere {
    aors: HashMap<Arc<str>, Vec<Binding>>,
    /// The first expiry of each address of record.
    ends: BTreeSet<(Instant, Arc<str>)>,
}

impl Elsewhere {
    /// Replaces the bindings of an address of record; returns those that are removed. Beyond the maximum, the most
    /// recently refreshed ones are kept. If there are too many addresses of record, a new one gets no bindings.
    pub(super) fn replace(
        &mut self,
        aor: &str,
        mut bindings: Vec<BindingElsewhere>,
        aors_max: usize,
        next_id: &mut u64,
    ) -> Vec<BindingId> {
        let mut before = self.take(aor);
        if before.is_empty() && self.aors.len() >= aors_max {
            return Vec::new();
        }
        bindings.sort_by_key(|binding| std::cmp::Reverse(binding.saved.refreshed_at));
        let bindings: Vec<Binding> = bindings
            .into_iter()
            .take(BINDINGS_MAX)
            .map(|BindingElsewhere { saved, device_flow }| {
                let same = |old: &Binding| {
                    old.flow == saved.flow
                        && old.path == saved.path
                        && old.contact.is_equivalent(&saved.contact)
                };
                let id = before.iter().position(same).map(|at| before.swap_remove(at).id);
                let id = id.unwrap_or_else(|| {
                    *next_id += 1;
                    BindingId(*next_id - 1)
                });
                Binding { device_flow: Some(device_flow), ..saved.into_binding(id, None) }
            })
            .collect();
        self.put(aor.into(), bindings);
        before.into_iter().map(|binding| binding.id).collect()
    }

    /// When [`Elsewhere::expire`] is next due.
    pub(super) fn next_timeout(&self) -> Option<Instant> {
        self.ends.first().map(|(end, _)| *end)
    }

    /// Removes expired bindings, whose node may not have reported the expiry.
    pub(super) fn expire(&mut self, now: Instant) {
        while let Some((_, aor)) = self.ends.first().filter(|(end, _)| *end <= now).cloned() {
            let mut bindings = self.take(&aor);
            bindings.retain(|binding| binding.expires_at > now);
            self.put(aor, bindings);
        }
    }

    fn take(&mut self, aor: &str) -> Vec<Binding> {
        let Some((key, bindings)) = self.aors.remove_entry(aor) else { return Vec::new() };
        if let Some(end) = first_end(&bindings) {
            self.ends.remove(&(end, key));
        }
        bindings
    }

    fn put(&mut self, aor: Arc<str>, bindings: Vec<Binding>) {
        if let Some(end) = first_end(&bindings) {
            self.ends.insert((end, Arc::clone(&aor)));
            self.aors.insert(aor, bindings);
        }
    }

    /// The valid bindings of an address of record, without those of devices that are registered here.
    pub(super) fn beside<'a>(
        &'a self,
        aor: &str,
        now: Instant,
        here: &'a [Binding],
    ) -> impl Iterator<Item = &'a Binding> {
        let all = self.aors.get(aor).map(Vec::as_slice).unwrap_or_default().iter();
        all.filter(move |binding| {
            let is_here =
                |b: &Binding| b.is_of(&binding.contact, binding.instance.as_deref(), binding.reg_id);
            binding.expires_at > now && !here.iter().any(|b| b.expires_at > now && is_here(b))
        })
    }
}

/// The maximum number of bindings of one address of record at other nodes; no account may have more.
const BINDINGS_MAX: usize = 100;

fn first_end(bindings: &[Binding]) -> Option<Instant> {
    bindings.iter().map(|binding| binding.expires_at).min()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::flow::ListenerId;
    use crate::registrar::{Input, Registrar, RegistrarConfig};

    fn binding(number: u16, refreshed_at: Instant, lasts_s: u64) -> BindingElsewhere {
        let flow = Flow::udp(ListenerId(0), ([10, 0, 0, 2], 5070).into());
        BindingElsewhere {
            device_flow: flow,
            saved: SavedBinding {
                contact: format!("sip:1001@192.0.2.1:{number}").parse().unwrap(),
                flow,
                path: Vec::new(),
                q_permille: 1_000,
                instance: None,
                reg_id: None,
                has_ice: false,
                user_agent: None,
                call_id: String::new(),
                cseq: 0,
                refreshed_at,
                expires_at: refreshed_at + Duration::from_secs(lasts_s),
            },
        }
    }

    #[test]
    fn bindings_of_other_nodes_end_by_themselves_and_have_a_limit() {
        #[expect(clippy::disallowed_methods, reason = "a test needs some instant to count from")]
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let config = RegistrarConfig { aors_max: 1, ..RegistrarConfig::default() };
        let mut registrar = Registrar::new(config);
        let most = u16::try_from(BINDINGS_MAX).unwrap();
        let many = (10..10 + most).map(|number| binding(number, at(0), 60));
        registrar.replace_elsewhere("a@acme.test", many.chain([binding(1, at(1), 60)]).collect());
        assert_eq!(registrar.lookup("a@acme.test", at(2)).len(), BINDINGS_MAX);
        assert_eq!(registrar.lookup("a@acme.test", at(2))[0].contact.port(), Some(1), "the last one");
        registrar.replace_elsewhere("a@acme.test", Vec::new());
        let all = vec![binding(2, at(5), 100), binding(3, at(9), 60)];
        assert_eq!(registrar.replace_elsewhere("a@acme.test", all), []);
        let ports = |registrar: &Registrar, now| -> Vec<u16> {
            let found = registrar.lookup("a@acme.test", now);
            found.iter().filter_map(|binding| binding.contact.port()).collect()
        };
        assert_eq!(ports(&registrar, at(10)), [3, 2]);
        registrar.replace_elsewhere("b@acme.test", vec![binding(4, at(10), 60)]);
        assert!(registrar.lookup("b@acme.test", at(10)).is_empty(), "one address too many");
        // The first one expires, then the other, without a report of their node.
        assert_eq!(registrar.next_timeout(), Some(at(69)));
        registrar.handle_input(at(69), Input::Timeout);
        assert_eq!(ports(&registrar, at(10)), [2]);
        registrar.handle_input(at(105), Input::Timeout);
        assert_eq!(registrar.next_timeout(), None);
        assert_eq!(ports(&registrar, at(10)), [0_u16; 0]);
        registrar.replace_elsewhere("b@acme.test", vec![binding(4, at(110), 60)]);
        assert_eq!(registrar.lookup("b@acme.test", at(110)).len(), 1, "there is a place again");
        assert_eq!(registrar.replace_elsewhere("b@acme.test", Vec::new()).len(), 1);
        assert_eq!(registrar.next_timeout(), None);
    }
}
