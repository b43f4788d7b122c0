//! The data of a binding that survives a restart.

use std::sync::Arc;
use std::time::Instant;

use crate::flow::Flow;
use crate::message::{NameAddr, Uri};
use crate::registrar::{Binding, BindingId, Reachability};

/// The data that a binding needs after a restart; see [`Binding`] for the fields.
#[derive(Clone, Debug)]
#[expect(missing_docs, reason = "the fields of `Binding`")]
pub struct SavedBinding {
    pub contact: Uri,
    pub flow: Flow,
    pub path: Vec<NameAddr>,
    pub q_permille: u16,
    pub instance: Option<String>,
    pub reg_id: Option<u32>,
    pub has_ice: bool,
    pub user_agent: Option<Arc<str>>,
    pub call_id: String,
    pub cseq: u32,
    pub refreshed_at: Instant,
    pub expires_at: Instant,
}

impl SavedBinding {
    /// The binding, with its first probe at this time.
    pub(super) fn into_binding(self, id: BindingId, probe_at: Option<Instant>) -> Binding {
        Binding {
            id,
            contact: self.contact,
            flow: self.flow,
            path: self.path,
            q_permille: self.q_permille,
            instance: self.instance,
            reg_id: self.reg_id,
            has_ice: self.has_ice,
            user_agent: self.user_agent,
            call_id: self.call_id,
            cseq: self.cseq,
            refreshed_at: self.refreshed_at,
            expires_at: self.expires_at,
            reachability: Reachability::default(),
            device_flow: None,
            probe_at,
        }
    }
}
