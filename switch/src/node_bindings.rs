//! The changed bindings of this node, for the other nodes of its cluster.

use std::collections::HashSet;
use std::sync::Arc;

use sidetone_model::directory::Extension;
use sidetone_model::time::Now;
use sidetone_sip::registrar::{Binding, Registrar};

use crate::routing::Directory;
use crate::shared_binding::{NodeBindings, SharedBinding};
use crate::wall_time::wall;

/// The addresses of record whose changed bindings must be sent to other nodes; empty without a cluster.
#[derive(Debug, Default)]
pub(super) struct SharedBindings(Option<HashSet<Arc<str>>>);

impl SharedBindings {
    /// Notes a change.
    pub(super) fn changed(&mut self, aor: &Arc<str>) {
        if let Some(changed) = &mut self.0 {
            changed.insert(Arc::clone(aor));
        }
    }

    /// Takes the changed bindings of up to `max` addresses of record; at first all count as changed.
    pub(super) fn take(
        &mut self,
        now: Now,
        max: usize,
        directory: &Directory,
        registrar: &Registrar,
    ) -> Vec<NodeBindings> {
        let changed = self.0.get_or_insert_with(|| registrar.all().map(|(aor, _)| Arc::from(aor)).collect());
        let mut taken = Vec::new();
        while taken.len() < max
            && let Some(aor) = changed.iter().next().cloned()
        {
            changed.remove(&aor);
            // A deleted extension needs no report: the other nodes ignore its bindings, too.
            let extension = directory.line_of(&aor);
            taken.extend(extension.map(|extension| of_node(now, extension, registrar.bindings_of(&aor))));
        }
        taken
    }
}

fn of_node(now: Now, extension: &Extension, bindings: &[Binding]) -> NodeBindings {
    let is_there = |b: &&Binding| b.expires_at > now.instant && b.reachability.is_callable();
    NodeBindings {
        organisation: extension.organisation_id,
        extension: extension.id,
        bindings_max: usize::try_from(extension.max_registrations).unwrap_or(usize::MAX),
        bindings: bindings.iter().filter(is_there).map(|binding| shared(now, binding)).collect(),
    }
}

fn shared(now: Now, binding: &Binding) -> SharedBinding {
    SharedBinding {
        contact: binding.contact.to_string(),
        device_flow: binding.flow,
        path: binding.path.iter().map(ToString::to_string).collect(),
        q_permille: binding.q_permille,
        instance: binding.instance.clone(),
        reg_id: binding.reg_id,
        user_agent: binding.user_agent.as_deref().map(str::to_owned),
        registered_at: wall(now, binding.refreshed_at),
        expires_at: wall(now, binding.expires_at),
    }
}
