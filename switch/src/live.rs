//! A live call with the legs of its parties, and its view for the API.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use sidetone_model::ids::{ExtensionId, LegId};
use sidetone_model::live_call::{self, CallState, LegRole, LiveLeg, Outline};
use sidetone_model::media_quality::LegSide;
use sidetone_model::time::Timestamp;
use sidetone_sip::flow::Flow;
use sidetone_sip::transaction::ServerKey;
use sidetone_sip::ua::{Invite, LegKey};

use crate::call::Call;
use crate::face::Party;
use crate::leg::Leg;
use crate::outbound::Hunt;
use crate::rooms::Goal;

/// A call and the legs of its parties.
pub(super) struct LiveCall {
    pub(super) call: Call,
    /// The calling leg; `None` when a room placed the call.
    pub(super) caller: Option<Caller>,
    pub(super) callees: Vec<Callee>,
    /// What its parties want of a room once they are answered.
    pub(super) goal: Option<Goal>,
    /// The search for a trunk that takes the call.
    pub(super) hunt: Option<Hunt>,
    /// Offers of parties inside their dialogs that we have not answered yet.
    pub(super) offers: HashMap<Party, ServerKey>,
    /// When the caller first got a ringing response.
    pub(super) ringing_at: Option<Timestamp>,
    pub(super) due: Option<Instant>,
}

/// The calling leg.
pub(super) struct Caller {
    /// Its INVITE.
    pub(super) invite: ServerKey,
    pub(super) key: LegKey,
    pub(super) identity: LegIdentity,
}

/// One fork: its INVITE without the offer and, once invited, its leg.
pub(super) struct Callee {
    pub(super) flow: Flow,
    pub(super) invite: Invite,
    pub(super) identity: LegIdentity,
    pub(super) leg: Option<LegKey>,
}

/// The public id of a leg, and the party at its far end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct LegIdentity {
    pub(super) id: LegId,
    /// The extension, if the far end is our phone.
    pub(super) extension: Option<ExtensionId>,
    pub(super) number: Option<String>,
    /// Empty when there is none.
    pub(super) name: String,
}

impl LiveCall {
    pub(super) fn new(
        call: Call,
        caller: Option<Caller>,
        callees: Vec<Callee>,
        hunt: Option<Hunt>,
        goal: Option<Goal>,
    ) -> Self {
        LiveCall { call, caller, callees, goal, hunt, offers: HashMap::new(), ringing_at: None, due: None }
    }

    /// Returns the leg of a party, once it was invited.
    pub(super) fn key_of(&self, party: Party) -> Option<LegKey> {
        match party {
            Party::Callee(fork) => self.callees.get(fork)?.leg,
            Party::Caller => self.caller.as_ref().map(|caller| caller.key),
        }
    }

    /// Returns the public identity of a party's leg.
    pub(super) fn identity_of(&self, party: Party) -> Option<&LegIdentity> {
        match party {
            Party::Callee(fork) => self.callees.get(fork).map(|callee| &callee.identity),
            Party::Caller => self.caller.as_ref().map(|caller| &caller.identity),
        }
    }

    /// Returns the number of the party at the far end of that leg.
    pub(super) fn number_of(&self, side: LegSide) -> Option<String> {
        self.identity_of(self.call.party_of(side)?)?.number.clone()
    }

    /// Returns the state of the call; `None` once it has ended.
    pub(super) fn state(&self) -> Option<CallState> {
        if self.call.has_ended() {
            return None;
        }
        Some(match (self.call.is_up(), self.ringing_at) {
            (true, _) => CallState::Answered,
            (false, Some(_)) => CallState::Ringing,
            (false, None) => CallState::Queued,
        })
    }

    /// Returns the legs that exist now; the caller's comes first.
    pub(super) fn parties(&self) -> impl Iterator<Item = (Option<LegKey>, &LegIdentity, CallState)> {
        let caller = self.caller.as_ref().filter(|_| self.call.has_caller());
        let caller =
            caller.zip(self.state()).map(|(caller, state)| (Some(caller.key), &caller.identity, state));
        let callees = self.callees.iter().enumerate().filter_map(|(fork, callee)| {
            let state = self.call.fork_state(fork)?;
            Some((callee.leg, &callee.identity, state))
        });
        caller.into_iter().chain(callees)
    }

    /// Returns the fields that a list is filtered by.
    pub(super) fn outline(&self, state: CallState) -> Outline<impl Fn(ExtensionId) -> bool> {
        let facts = self.call.facts();
        Outline {
            organisation_id: facts.organisation,
            direction: facts.direction,
            state,
            has_extension: move |extension| {
                facts.extension == Some(extension)
                    || self.parties().any(|(_, identity, _)| identity.extension == Some(extension))
            },
        }
    }

    /// Returns the call as the API shows it; `None` once it has ended.
    pub(super) fn view(&self) -> Option<live_call::LiveCall> {
        let (facts, state) = (self.call.facts(), self.state()?);
        let at = |after: Option<Duration>| {
            let micros = |after: Duration| i64::try_from(after.as_micros()).unwrap_or(i64::MAX);
            after.map(|after| facts.started_at.plus_micros(micros(after)))
        };
        let answered_at = at(self.call.answered_after()).filter(|_| state == CallState::Answered);
        let caller = self.caller.as_ref().zip(self.call.caller()).filter(|_| self.call.has_caller());
        let caller =
            caller.map(|(caller, leg)| leg_view(&caller.identity, LegRole::Caller, state, leg, answered_at));
        let callees = self.callees.iter().enumerate().filter_map(|(fork, callee)| {
            let (state, leg) = (self.call.fork_state(fork)?, self.call.leg(Party::Callee(fork))?);
            let answered_at = at(self.call.far_answered_after()).filter(|_| state == CallState::Answered);
            Some(leg_view(&callee.identity, LegRole::Callee, state, leg, answered_at))
        });
        Some(live_call::LiveCall {
            uuid: facts.call,
            organisation_id: facts.organisation,
            direction: facts.direction,
            caller: facts.caller_number.clone(),
            destination: facts.destination_number.clone(),
            state,
            started_at: facts.started_at,
            ringing_at: self.ringing_at,
            answered_at,
            extension_id: facts.extension,
            agent_id: facts.agent,
            team_id: facts.team,
            trunk_id: facts.trunk,
            legs: caller.into_iter().chain(callees).collect(),
        })
    }
}

fn leg_view(
    identity: &LegIdentity,
    role: LegRole,
    state: CallState,
    leg: &Leg,
    answered_at: Option<Timestamp>,
) -> LiveLeg {
    LiveLeg {
        uuid: identity.id,
        role,
        extension_id: identity.extension,
        number: identity.number.clone(),
        name: identity.name.clone(),
        state,
        codec: leg.codec().filter(|_| state == CallState::Answered),
        answered_at,
    }
}
