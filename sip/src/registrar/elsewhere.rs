//! Bindings at other nodes: phones that are reached through the edge of the node where they registered.

use std::collections::HashMap;
use std::time::Instant;

use crate::flow::Flow;
use crate::registrar::{Binding, BindingId, SavedBinding};

/// A binding of another node. The fields of `saved` are those of the binding there, with the way from here: `flow`
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
    aors: HashMap<Box<str>, Vec<Binding>>,
}

impl Elsewhere {
    /// Replaces the bindings of an address of record; returns those that are gone.
    pub(super) fn replace(
        &mut self,
        aor: &str,
        bindings: Vec<BindingElsewhere>,
        next_id: &mut u64,
    ) -> Vec<BindingId> {
        let mut before = self.aors.remove(aor).unwrap_or_default();
        let bindings: Vec<Binding> = bindings
            .into_iter()
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
        if !bindings.is_empty() {
            self.aors.insert(aor.into(), bindings);
        }
        before.into_iter().map(|binding| binding.id).collect()
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
