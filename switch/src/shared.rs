//! State that several parts of the switch use.

use std::sync::Arc;
use std::time::Duration;

use sidetone_model::time::Now;
use sidetone_sip::registrar::{Registrar, RegistrarConfig};
use sidetone_sip::transaction::ServerKey;
use sidetone_sip::ua::{Reply, Ua};

use crate::gruus::Gruus;
use crate::ids::Ids;
use crate::phone_messages::PhoneMessages;
use crate::room_places::RoomPlaces;
use crate::routing::Directory;
use crate::subscriptions::Subscriptions;
use crate::switch_io::{Notice, Output, Outputs};
use crate::trunk_access::TrunkAccess;

/// Transactions and dialogs, bindings and the addresses of devices, the directory, access to trunks, ids, outputs,
/// subscriptions, messages of phones, and the owners of rooms. No calls.
pub(super) struct Shared {
    pub(super) ua: Ua,
    pub(super) registrar: Registrar,
    pub(super) gruus: Gruus,
    pub(super) directory: Arc<Directory>,
    pub(super) trunks: TrunkAccess,
    pub(super) ids: Ids,
    pub(super) outputs: Outputs,
    pub(super) subscriptions: Subscriptions,
    pub(super) messages: PhoneMessages,
    pub(super) rooms: RoomPlaces,
}

impl Shared {
    /// Creates the state without bindings, subscriptions and messages; `qualify` is the interval of probes of
    /// registered phones.
    pub(super) fn new(
        ua: Ua,
        qualify: Option<Duration>,
        directory: Arc<Directory>,
        trunks: TrunkAccess,
        (ids, rooms): (Ids, RoomPlaces),
    ) -> Self {
        Shared {
            ua,
            registrar: Registrar::new(RegistrarConfig { qualify, ..RegistrarConfig::default() }),
            gruus: Gruus::default(),
            directory,
            trunks,
            ids,
            outputs: Outputs::new(),
            subscriptions: Subscriptions::default(),
            messages: PhoneMessages::default(),
            rooms,
        }
    }

    pub(super) fn respond(&mut self, now: Now, key: &ServerKey, reply: Reply) {
        // Fails when the transaction is over, for example because a CANCEL or BYE crossed.
        let _ = self.ua.respond(now.instant, key, reply);
    }

    /// Refuses an unknown sender without keeping state.
    pub(super) fn refuse(&mut self, now: Now, key: &ServerKey, reply: Reply) {
        // Fails when the transaction is already over; then no response is needed.
        let _ = self.ua.refuse(now.instant, key, reply);
    }

    /// Notes that the state of an address of record may have changed.
    pub(super) fn touch(&mut self, aor: &str) {
        if self.subscriptions.is_empty() {
            return;
        }
        if let Some(line) = self.directory.line_of(aor) {
            self.subscriptions.touch(line.id);
        }
    }

    pub(super) fn notice(&mut self, notice: Notice) {
        self.outputs.push_back(Output::Notice(notice));
    }
}
