//! State that several parts of the switch use.

use std::sync::Arc;

use sidetone_model::time::Now;
use sidetone_sip::registrar::Registrar;
use sidetone_sip::transaction::ServerKey;
use sidetone_sip::ua::{Reply, Ua};

use crate::ids::Ids;
use crate::routing::Directory;
use crate::subscriptions::Subscriptions;
use crate::switch_io::{Notice, Output, Outputs};
use crate::trunk_access::TrunkAccess;

/// Transactions and dialogs, bindings, the directory, access to trunks, ids, outputs and subscriptions. No
/// calls.
pub(super) struct Shared {
    pub(super) ua: Ua,
    pub(super) registrar: Registrar,
    pub(super) directory: Arc<Directory>,
    pub(super) trunks: TrunkAccess,
    pub(super) ids: Ids,
    pub(super) outputs: Outputs,
    pub(super) subscriptions: Subscriptions,
}

impl Shared {
    pub(super) fn respond(&mut self, now: Now, key: &ServerKey, reply: Reply) {
        // Fails when the transaction is over, for example because a CANCEL or BYE crossed.
        let _ = self.ua.respond(now.instant, key, reply);
    }

    /// Refuses an unknown sender, keeping no state.
    pub(super) fn refuse(&mut self, now: Now, key: &ServerKey, reply: Reply) {
        // Fails when the transaction is already over; then no response is needed.
        let _ = self.ua.refuse(now.instant, key, reply);
    }

    /// Notes that the state of an address of record may have changed.
    pub(super) fn touch(&mut self, aor: &str) {
        if self.subscriptions.is_empty() {
            return;
        }
        let line = aor.rsplit_once('@').and_then(|(number, domain)| {
            self.directory.line(self.directory.organisation_of_domain(domain)?.id, number)
        });
        if let Some(line) = line {
            self.subscriptions.touch(line.id);
        }
    }

    pub(super) fn notice(&mut self, notice: Notice) {
        self.outputs.push_back(Output::Notice(notice));
    }
}
