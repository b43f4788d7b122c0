//! The bindings at the other nodes of a cluster. The registrar receives them and returns them with those of this node.

use std::sync::Arc;

use sidetone_model::ids::ExtensionId;
use sidetone_model::time::Now;
use sidetone_sip::message::Uri;
use sidetone_sip::registrar::{BindingElsewhere, SavedBinding};

use crate::call_control::CallControl;
use crate::shared::Shared;
use crate::shared_binding::{BindingsElsewhere, RemoteBinding};
use crate::wall_time::instant;

/// Replaces the bindings of extensions at other nodes; returns the extensions that are not in the directory.
pub(super) fn replace(
    now: Now,
    changes: Vec<BindingsElsewhere>,
    control: &mut CallControl,
    shared: &mut Shared,
) -> Vec<ExtensionId> {
    let mut unknown = Vec::new();
    for BindingsElsewhere { extension, bindings, displaced, is_node_lost } in changes {
        let aor = shared.directory.extension(extension).and_then(|known| shared.directory.aor(known));
        let Some(aor) = aor else {
            unknown.push(extension);
            continue;
        };
        let displaced: Vec<Uri> = displaced.iter().filter_map(|contact| contact.parse().ok()).collect();
        if !displaced.is_empty() {
            shared.registrar.displace(&aor, &displaced);
        }
        let bindings = bindings.into_iter().filter_map(|remote| elsewhere(now, remote)).collect();
        for binding in shared.registrar.replace_elsewhere(&aor, bindings) {
            control.lose(now, binding, is_node_lost, shared);
        }
        shared.touch(&aor);
    }
    unknown
}

/// The binding as the registrar's type; `None` if its addresses cannot be parsed.
fn elsewhere(now: Now, RemoteBinding { binding, way, route }: RemoteBinding) -> Option<BindingElsewhere> {
    let path = std::iter::once(&route).chain(&binding.path).map(|address| address.parse());
    Some(BindingElsewhere {
        device_flow: binding.device_flow,
        saved: SavedBinding {
            contact: binding.contact.parse().ok()?,
            flow: way,
            path: path.collect::<Result<_, _>>().ok()?,
            q_permille: binding.q_permille,
            instance: binding.instance,
            reg_id: binding.reg_id,
            // Nodes do not share it, and every phone answers an offer without ICE.
            has_ice: false,
            user_agent: binding.user_agent.map(Arc::from),
            call_id: String::new(),
            cseq: 0,
            refreshed_at: instant(now, binding.registered_at)?,
            expires_at: instant(now, binding.expires_at)?,
        },
    })
}
