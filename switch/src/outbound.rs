//! Outbound calls: connects hunts for trunks with the calls that wait for them.

use std::collections::VecDeque;
use std::time::Duration;

use sidetone_call::media_plan::srtp_rule;
use sidetone_model::directory::Video;
use sidetone_model::ids::CallId;
use sidetone_model::time::Now;
use sidetone_model::trunk_interop::PROGRESS_SECONDS_DEFAULT;
use sidetone_sip::flow::Flow;
use sidetone_sip::message::{Method, Request, Response};
use sidetone_sip::sdp::CodecPolicy;
use sidetone_sip::ua::{LegKey, Retried, Ua};

use crate::billing::Billing;
use crate::call_limits::limit_of_trunk;
use crate::call_table::CallTable;
use crate::hunt::{HuntContext, HuntTimeout, Step};
use crate::io::{Attempt, CalleeAt, Input};
use crate::live::{Callee, LegIdentity};
use crate::switch_io::{Notice, Output, Outputs};
use crate::trunk_access::{TrunkAccess, retry_after};

/// Calls whose hunt can take its next step.
#[derive(Default)]
pub(super) struct Hunts(VecDeque<CallId>);

impl Hunts {
    /// Queues a call for the next step of its hunt.
    pub(super) fn queue(&mut self, id: CallId) {
        self.0.push_back(id);
    }

    /// Returns the next call whose hunt can take a step.
    pub(super) fn poll(&mut self) -> Option<CallId> {
        self.0.pop_front()
    }

    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Continues after a trunk failed with `status`.
    pub(super) fn failed(&mut self, id: CallId, status: u16, calls: &mut CallTable) {
        if let Some(hunt) = calls.get_mut(id).and_then(|live| live.hunt.as_mut()) {
            hunt.failed(status);
            self.queue(id);
        }
    }

    /// Handles a name that was not resolved in time, or a trunk that sent no response. Returns the input for
    /// the call, if it needs one.
    pub(super) fn timeout(
        &mut self,
        now: Now,
        id: CallId,
        calls: &mut CallTable,
        ua: &mut Ua,
        trunks: &mut TrunkAccess,
    ) -> Option<Input> {
        let live = calls.get_mut(id)?;
        match live.hunt.as_mut()?.timeout(now.instant)? {
            HuntTimeout::Unresolved => {
                self.queue(id);
                None
            }
            HuntTimeout::Silent { trunk, fork } => {
                let leg = live.callees.get(fork)?.leg?;
                let heard = ua.is_heard(leg);
                trunks.state.heard(now.instant, trunk, heard);
                if heard {
                    return None;
                }
                let to = live.callees.get(fork)?.flow.remote;
                trunks.health.refused(now, trunk, to, &Method::Invite, None);
                // If the trunk responds later, its call is hung up.
                calls.remove_leg(leg);
                ua.hang_up(now.instant, leg);
                Some(Input::Unreached(fork, 408))
            }
            HuntTimeout::Stalled { fork } => {
                let leg = live.callees.get(fork)?.leg?;
                calls.remove_leg(leg);
                ua.hang_up(now.instant, leg);
                Some(Input::Unreached(fork, 408))
            }
        }
    }
}

/// Takes the next step of a call's hunt. Returns `None` when the call no longer hunts; else the input for the
/// call, if the step has one.
pub(super) fn step(
    now: Now,
    id: CallId,
    calls: &mut CallTable,
    billing: &Billing,
    mut context: HuntContext<'_>,
) -> Option<Option<Input>> {
    let live = calls.get_mut(id).filter(|live| live.call.is_ringing())?;
    let mut hunt = live.hunt.take()?;
    let fork = live.callees.len();
    let step = hunt.step(now.instant, id, &mut context);
    let mut input = None;
    let fault = hunt.fault;
    let identity = outside_leg(context.ids.leg(), &hunt.number);
    match step {
        Step::Call { trunk, flow, invite } => {
            let rules = context.directory.trunk(trunk);
            let progress = rules.map_or(PROGRESS_SECONDS_DEFAULT, |trunk| trunk.interop.progress_seconds);
            hunt.called(now.instant, fork, flow.remote, Duration::from_secs(progress.into()));
            let at = CalleeAt::of(&flow);
            live.callees.push(Callee { flow, at, invite: *invite, identity, leg: None, binding: None });
            let facts = live.call.facts();
            let cost = facts.tariff.and_then(|_| billing.cost(trunk, &hunt.number, facts.started_at));
            let limit = limit_of_trunk(context.directory, trunk);
            let srtp = rules.map(|trunk| srtp_rule(trunk.srtp)).unwrap_or_default();
            let policy = rules.map_or(CodecPolicy::ANY, |trunk| {
                CodecPolicy::new(trunk.interop.codecs.iter().cloned()).with_video(trunk.video == Video::Pass)
            });
            let at = flow.remote.ip();
            input = Some(Input::Attempt(Attempt { trunk, at, cost, limit, srtp, policy }));
        }
        Step::Exhausted => input = Some(Input::Exhausted(fault.0, fault.1)),
        Step::Wait => {}
    }
    live.hunt = Some(hunt);
    Some(input)
}

/// Updates the state of a trunk after its refusal, and answers its challenge; returns the leg that
/// continues, if any.
pub(super) fn refused(
    now: Now,
    (id, fork): (CallId, usize),
    (flow, response): (&Flow, &Response),
    request: Option<Request>,
    calls: &mut CallTable,
    context: RefusedContext<'_>,
) -> Option<LegKey> {
    let RefusedContext { ua, trunks, outputs } = context;
    let live = calls.get_mut(id)?;
    let hunt = live.hunt.as_mut()?;
    let trunk = hunt.calls()?;
    trunks.state.heard(now.instant, trunk, true);
    let status = response.status().as_u16();
    if !matches!(status, 401 | 407) {
        trunks.health.refused(now, trunk, flow.remote, &Method::Invite, Some(response));
    }
    match status {
        503 => {
            if let Some(wished) = retry_after(response) {
                trunks.state.rest(now.instant, trunk, wished);
            }
            None
        }
        401 | 407 if live.call.is_ringing() => {
            let request = request?;
            let challenger = (flow.remote, response);
            match hunt.authorize(now.instant, fork, &mut trunks.state, challenger, &request) {
                Ok(extra) => {
                    let out = live.callees.get(fork)?.flow;
                    match ua.retry(now.instant, out, request, &extra?) {
                        Ok(Retried::Leg(leg)) => Some(leg),
                        _ => None,
                    }
                }
                Err(trunk) => {
                    trunks.health.refused(now, trunk, flow.remote, &Method::Invite, Some(response));
                    outputs.push_back(Output::Notice(Notice::Credentials(trunk)));
                    None
                }
            }
        }
        _ => None,
    }
}

/// The lower parts that handle a trunk's refusal.
pub(super) struct RefusedContext<'a> {
    pub(super) ua: &'a mut Ua,
    pub(super) trunks: &'a mut TrunkAccess,
    pub(super) outputs: &'a mut Outputs,
}

fn outside_leg(id: sidetone_model::ids::LegId, number: &str) -> LegIdentity {
    LegIdentity { id, extension: None, number: Some(number.to_owned()), name: String::new() }
}
