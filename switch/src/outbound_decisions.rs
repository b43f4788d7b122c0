//! Outbound calls that wait for a decision of the cluster's nodes: they continue, or are refused.

use sidetone_model::call::HangupCause;
use sidetone_model::ids::CallId;
use sidetone_model::time::Now;

use crate::call_control::CallControl;
use crate::io::Input;
use crate::outbound_limit::{OutboundDecision, OutboundNeeds};
use crate::outbound_slots::Outcome;
use crate::shared::Shared;

/// Returns the needs of every organisation with a limit.
pub(super) fn take_needs(control: &mut CallControl, shared: &Shared) -> Vec<OutboundNeeds> {
    control.slots.as_mut().map(|slots| slots.take(&shared.directory)).unwrap_or_default()
}

/// Applies decisions.
pub(super) fn decide(
    now: Now,
    decisions: Vec<OutboundDecision>,
    control: &mut CallControl,
    shared: &mut Shared,
) {
    for decision in decisions {
        let outcomes = control.slots.as_mut().map(|slots| slots.decide(decision)).unwrap_or_default();
        for outcome in outcomes {
            match outcome {
                Outcome::GoesOn(id) => control.hunts.queue(id),
                Outcome::Refused(id) => refuse(now, id, control, shared),
            }
        }
    }
}

/// Refuses calls without a decision in time.
pub(super) fn timeout(now: Now, control: &mut CallControl, shared: &mut Shared) {
    let late = control.slots.as_mut().map(|slots| slots.timeout(now.instant)).unwrap_or_default();
    late.into_iter().for_each(|id| refuse(now, id, control, shared));
}

/// Refuses a call that exceeds the limit of its organisation, or that got no decision.
fn refuse(now: Now, id: CallId, control: &mut CallControl, shared: &mut Shared) {
    control.feed(now, id, Input::Exhausted(503, HangupCause::SwitchCongestion), shared);
}
