//! Probes of registered phones: sends an OPTIONS when the registrar requests one, and reports its result.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

use sidetone_sip::flow::Flow;
use sidetone_sip::message::{Method, Name, StatusCode, Uri};
use sidetone_sip::registrar::{BindingId, Input, ProbeResult, Registrar};
use sidetone_sip::transaction::ClientKey;
use sidetone_sip::ua::{Cause, Draft, LegKey, Ua};

use crate::call_table::CallTable;
use crate::io::Party;
use crate::shared::Shared;

/// The probes that have no answer yet.
///
/// *Bounds*: the client transactions.
#[derive(Default)]
pub(super) struct Probes {
    sent: HashMap<ClientKey, Probe>,
}

struct Probe {
    aor: Arc<str>,
    binding: BindingId,
    flow: Flow,
    sent_at: Instant,
}

impl Probes {
    /// Probes a binding. If the transaction table is full, the probe is skipped and has no result.
    pub(super) fn send(
        &mut self,
        now: Instant,
        (aor, binding): (Arc<str>, BindingId),
        (contact, flow): (&Uri, Flow),
        ua: &mut Ua,
    ) {
        if !ua.has_spare_room() {
            return;
        }
        let to = format!("<{contact}>");
        let draft = Draft::new(Method::Options, contact.to_string(), "<sip:keepalive@sidetone.invalid>", to)
            .header(Name::Accept.as_str(), "application/sdp");
        if let Ok(key) = ua.request(now, flow, draft) {
            self.sent.insert(key, Probe { aor, binding, flow, sent_at: now });
        }
    }

    /// Handles a response; returns whether it was that of a probe.
    pub(super) fn answered(
        &mut self,
        now: Instant,
        key: ClientKey,
        status: StatusCode,
        registrar: &mut Registrar,
    ) -> bool {
        if status.is_provisional() {
            return self.sent.contains_key(&key);
        }
        let Some(probe) = self.sent.remove(&key) else { return false };
        let round_trip = now.saturating_duration_since(probe.sent_at);
        probe.report(now, ProbeResult::Answered(round_trip), registrar);
        true
    }

    /// Handles a request without a response; returns whether it was a probe.
    pub(super) fn unanswered(
        &mut self,
        now: Instant,
        key: ClientKey,
        unreachable: bool,
        registrar: &mut Registrar,
    ) -> bool {
        let Some(probe) = self.sent.remove(&key) else { return false };
        let result = if unreachable { ProbeResult::Refused } else { ProbeResult::Unanswered };
        probe.report(now, result, registrar);
        true
    }
}

/// Handles the end of a leg: an INVITE to a registered phone that the network refused, or that had no response, counts
/// as a failed probe.
pub(super) fn ended(now: Instant, leg: LegKey, cause: &Cause, calls: &CallTable, shared: &mut Shared) {
    let result = match cause {
        Cause::Unreachable => ProbeResult::Refused,
        Cause::TimedOut => ProbeResult::Unanswered,
        _ => return,
    };
    let Some((id, Party::Callee(fork))) = calls.party_of(leg) else { return };
    let Some(callee) = calls.get(id).and_then(|live| live.callees.get(fork)) else { return };
    let directory = &shared.directory;
    let aor = callee.identity.extension.and_then(|id| directory.aor(directory.extension(id)?));
    if let (Some(aor), Some(binding)) = (aor, callee.binding) {
        let flow = &callee.flow;
        shared.registrar.handle_input(now, Input::Probed { aor: &aor, binding, flow, result });
    }
}

impl Probe {
    fn report(&self, now: Instant, result: ProbeResult, registrar: &mut Registrar) {
        let Probe { aor, binding, flow, .. } = self;
        registrar.handle_input(now, Input::Probed { aor, binding: *binding, flow, result });
    }
}
