//! The order of the bindings of one address of record: which one is tried first, which ones are left out or removed.

use std::collections::{HashMap, HashSet, VecDeque};
use std::time::Instant;

use crate::registrar::{Binding, BindingId};

/// Sorts bindings in the order in which to try them: by `q`, then the most recent.
pub(super) fn sort(bindings: &mut [Binding]) {
    bindings.sort_by_key(|b| (std::cmp::Reverse(b.q_permille), std::cmp::Reverse((b.refreshed_at, b.id))));
}

/// Removes the flows of devices (RFC 5626) but the most recently refreshed one of each.
pub(super) fn keep_one_flow_of_each(bindings: &mut Vec<Binding>) {
    let mut latest: HashMap<&str, (Instant, BindingId)> = HashMap::new();
    let mut flows = 0;
    for binding in bindings.iter().filter(|binding| binding.reg_id.is_some()) {
        let Some(instance) = binding.instance.as_deref() else { continue };
        let refreshed = (binding.refreshed_at, binding.id);
        let last = latest.entry(instance).or_insert(refreshed);
        *last = refreshed.max(*last);
        flows += 1;
    }
    if latest.len() == flows {
        return;
    }
    let kept: HashSet<BindingId> = latest.into_values().map(|(_, id)| id).collect();
    let is_flow = |binding: &Binding| binding.reg_id.is_some() && binding.instance.is_some();
    bindings.retain(|binding| !is_flow(binding) || kept.contains(&binding.id));
}

/// The binding to remove for the newly registered ones: the one with the oldest refresh, of the same device under
/// another address, else of the same User-Agent, else of any.
pub(super) fn displaced(bindings: &[Binding], registered: &VecDeque<(BindingId, bool)>) -> Option<BindingId> {
    let is_new = |b: &Binding| registered.iter().any(|(id, _)| *id == b.id);
    let (new, others): (Vec<&Binding>, Vec<&Binding>) = bindings.iter().partition(|b| is_new(b));
    let is_same = |b: &Binding, new: &Binding| b.instance.is_some() && b.instance == new.instance;
    let is_alike = |b: &Binding, new: &Binding| b.user_agent.is_some() && b.user_agent == new.user_agent;
    let nearness = |b: &Binding| {
        let any = |near: &dyn Fn(&Binding, &Binding) -> bool| new.iter().any(|new| near(b, new));
        (!any(&is_same), !any(&is_alike), b.refreshed_at, b.id)
    };
    others.into_iter().min_by_key(|b| nearness(b)).or_else(|| new.first().copied()).map(|b| b.id)
}
