//! Bindings that are kept across restarts: the changed ones to store, and the stored ones to restore.

use std::collections::HashSet;
use std::sync::Arc;

use sha2::{Digest, Sha256};
use sidetone_model::directory::Extension;
use sidetone_model::registration::{KeptBinding, KeptExtension};
use sidetone_model::time::Now;
use sidetone_sip::flow::{Flow, ListenerId, Protocol};
use sidetone_sip::registrar::{self, Binding, Registrar, SavedBinding};

use crate::node_bindings::SharedBindings;
use crate::routing::Directory;
use crate::shared::Shared;
use crate::shared_binding::NodeBindings;
use crate::wall_time::{instant, wall};

/// The addresses of record whose bindings changed since they were last taken.
#[derive(Debug, Default)]
pub(super) struct ChangedBindings {
    kept: HashSet<Arc<str>>,
    /// For the other nodes of a cluster.
    shared: SharedBindings,
}

impl ChangedBindings {
    /// Notes the change of a binding that the registrar reports.
    pub(super) fn note(&mut self, output: &registrar::Output) {
        match output {
            registrar::Output::Registered { aor, .. } | registrar::Output::Removed { aor, .. } => {
                self.kept.insert(Arc::clone(aor));
                self.shared.changed(aor);
            }
            registrar::Output::Reachability { aor, .. } => self.shared.changed(aor),
            registrar::Output::KeepAlive { .. } | registrar::Output::Moved { .. } => {}
        }
    }

    /// Takes the changed bindings of up to `max` addresses of record for the other nodes.
    pub(super) fn take_shared(&mut self, now: Now, max: usize, shared: &Shared) -> Vec<NodeBindings> {
        self.shared.take(now, max, &shared.directory, &shared.registrar)
    }

    /// Takes the changed bindings of up to `max` addresses of record. Addresses without an extension, because it was
    /// deleted, are left out: a restart does not restore their bindings.
    pub(super) fn take(
        &mut self,
        now: Now,
        max: usize,
        directory: &Directory,
        registrar: &Registrar,
    ) -> Vec<KeptExtension> {
        let mut taken = Vec::new();
        while taken.len() < max
            && let Some(aor) = self.kept.iter().next().cloned()
        {
            self.kept.remove(&aor);
            if let Some(extension) = directory.line_of(&aor) {
                taken.push(KeptExtension {
                    extension_id: extension.id,
                    credential: digest(extension),
                    bindings: kept_of(now, registrar.bindings_of(&aor)),
                    aor: aor.to_string(),
                });
            }
        }
        taken
    }
}

/// Restores the bindings of extensions that still have the same address of record and the same credential; returns
/// the number of bindings.
pub(super) fn restore(now: Now, kept: Vec<KeptExtension>, shared: &mut Shared) -> usize {
    let Shared { directory, registrar, .. } = shared;
    let mut restored = 0;
    for KeptExtension { extension_id, aor, credential, bindings } in kept {
        let Some(extension) = directory.extension(extension_id) else { continue };
        if directory.aor(extension).as_ref() == Some(&aor) && digest(extension) == credential {
            let saved = bindings.into_iter().filter_map(|binding| saved(now, binding)).collect();
            restored += registrar.restore(now.instant, &aor, bindings_max_of(extension), saved);
        }
    }
    restored
}

/// How many bindings an extension may have.
pub(super) fn bindings_max_of(extension: &Extension) -> usize {
    usize::try_from(extension.max_registrations).unwrap_or(usize::MAX)
}

/// A digest of an extension's credential. A registration ends when the credential changes, also across a restart.
fn digest(extension: &Extension) -> String {
    let digest = Sha256::digest(format!("{}:{}", extension.ha1.md5, extension.ha1.sha256));
    digest.iter().take(DIGEST_LEN).map(|byte| format!("{byte:02x}")).collect()
}

fn kept_of(now: Now, bindings: &[Binding]) -> Vec<KeptBinding> {
    let valid = bindings.iter().filter(|binding| binding.expires_at > now.instant);
    valid.filter_map(|binding| kept(now, binding)).collect()
}

fn kept(now: Now, binding: &Binding) -> Option<KeptBinding> {
    (binding.flow.protocol == Protocol::Udp).then(|| KeptBinding {
        contact: binding.contact.to_string(),
        listener: binding.flow.listener.0,
        remote: binding.flow.remote,
        path: binding.path.iter().map(ToString::to_string).collect(),
        q_permille: binding.q_permille,
        instance: binding.instance.clone(),
        reg_id: binding.reg_id,
        has_ice: binding.has_ice,
        user_agent: binding.user_agent.as_deref().map(str::to_owned),
        call_id: binding.call_id.clone(),
        cseq: binding.cseq,
        registered_at: wall(now, binding.refreshed_at),
        expires_at: wall(now, binding.expires_at),
    })
}

fn saved(now: Now, kept: KeptBinding) -> Option<SavedBinding> {
    Some(SavedBinding {
        contact: kept.contact.parse().ok()?,
        flow: Flow::udp(ListenerId(kept.listener), kept.remote),
        path: kept.path.iter().map(|address| address.parse()).collect::<Result<_, _>>().ok()?,
        q_permille: kept.q_permille,
        instance: kept.instance,
        reg_id: kept.reg_id,
        has_ice: kept.has_ice,
        user_agent: kept.user_agent.map(Arc::from),
        call_id: kept.call_id,
        cseq: kept.cseq,
        refreshed_at: instant(now, kept.registered_at)?,
        expires_at: instant(now, kept.expires_at)?,
    })
}

/// Bytes of the digest that are kept.
const DIGEST_LEN: usize = 16;
