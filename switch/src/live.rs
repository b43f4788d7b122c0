//! A live call with the legs of its parties, and its view for the API.

use std::collections::{BTreeMap, HashMap};
use std::time::{Duration, Instant};

use sidetone_model::call_prompt::{LivePrompt, PlayResult, PromptEnded};
use sidetone_model::cdr::{Called, Cdr};
use sidetone_model::directory::{Extension, StrictSource};
use sidetone_model::forwarding::ForwardReason;
use sidetone_model::ids::{ExtensionId, LegId, TrunkId};
use sidetone_model::live_call::{self, CallState, LegRole, LiveLeg, Outline};
use sidetone_model::media_quality::LegSide;
use sidetone_model::time::{Now, Timestamp};
use sidetone_sip::flow::Flow;
use sidetone_sip::message::Name;
use sidetone_sip::registrar::{Binding, BindingId};
use sidetone_sip::transaction::ServerKey;
use sidetone_sip::ua::{Invite, LegKey};

use crate::call::Call;
use crate::conference::Goal;
use crate::hunt::Hunt;
use crate::io::{CalleeAt, Party, PortId, Setup};
use crate::leg::Leg;
use crate::linked::Linked;
use crate::routing::Directory;

/// A call and the legs of its parties.
pub(super) struct LiveCall {
    pub(super) call: Call,
    /// The calling leg; `None` when a room placed the call.
    pub(super) caller: Option<Caller>,
    pub(super) callees: Vec<Callee>,
    /// The goal of its parties in a room, once they are answered.
    pub(super) goal: Option<Goal>,
    /// The search for a trunk that takes the call.
    pub(super) hunt: Option<Hunt>,
    /// The program's request that placed it.
    pub(super) request: Option<Box<Requested>>,
    /// Offers of parties inside their dialogs that we have not answered yet.
    pub(super) offers: HashMap<Party, ServerKey>,
    /// When the caller first got a ringing response.
    pub(super) ringing_at: Option<Timestamp>,
    pub(super) due: Option<Instant>,
    /// The number of its ports that count as those of an unanswered call of its caller.
    pub(super) unanswered_ports: usize,
    /// The parties of other calls that parties of this one are relayed to.
    pub(super) linked: Linked,
    /// The number of transfers in the chain of calls that led to this one.
    pub(super) transfers: u8,
    /// The requirements of its INVITE for onward legs; `None` for a call without an INVITE.
    pub(super) asked: Option<Asked>,
    /// The redirection of a called phone that has not been followed yet.
    pub(super) redirect: Option<Redirect>,
    /// The extensions that have forwarded the call, oldest first.
    pub(super) diverted: Vec<Diversion>,
    /// The number of REFERs that its parties have sent.
    pub(super) refers: u8,
    /// The seat of its party in a room that another node has handed over to this one.
    pub(super) returns: Option<String>,
}

/// A call that may begin, and the legs of its parties.
pub(super) struct NewCall {
    pub(super) setup: Setup,
    pub(super) caller: Option<Caller>,
    pub(super) callees: Vec<Callee>,
    pub(super) hunt: Option<Hunt>,
    pub(super) goal: Option<Goal>,
    /// The requirements of its INVITE for onward legs; `None` for a call without an INVITE.
    pub(super) asked: Option<Asked>,
    /// The extensions that have forwarded the call.
    pub(super) diverted: Vec<Diversion>,
    pub(super) request: Option<Box<Requested>>,
}

/// The request of a program for a call.
#[derive(Debug)]
pub(super) struct Requested {
    /// The target to connect when the calling party has answered.
    pub(super) target: RequestedTarget,
    /// The program's text for the record.
    pub(super) reference: Option<String>,
    /// The program's texts for the live call.
    pub(super) variables: BTreeMap<String, String>,
    /// Whether a phone of the calling party rings, or rang.
    pub(super) rang: bool,
    /// Whether it was cancelled.
    pub(super) cancelled: bool,
}

/// The target of a requested call.
#[derive(Clone, Debug)]
pub(super) enum RequestedTarget {
    /// An extension: its phones, or its forwarding target.
    Extension(Called),
    /// An outside number; the call has its hunt.
    Outside,
    /// A room, or the prompt that asks for a room's number.
    Room(Goal),
}

impl RequestedTarget {
    /// Returns the extension that is called.
    pub(super) fn called(&self) -> Option<Called> {
        match self {
            RequestedTarget::Extension(called) => Some(*called),
            RequestedTarget::Outside | RequestedTarget::Room(_) => None,
        }
    }
}

/// A call that may be forwarded to another number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Redirect {
    /// The extension that forwards it.
    pub(super) by: ExtensionId,
    /// The number that it is forwarded to.
    pub(super) target: String,
    /// Other numbers that the phone named, the preferred one first; used when `target` cannot be called.
    pub(super) others: Vec<String>,
}

/// An extension that has forwarded a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Diversion {
    /// The number of the extension.
    pub(super) number: String,
    pub(super) reason: ForwardReason,
}

/// The requirements of a call's INVITE for its onward legs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Asked {
    pub(super) max_forwards: u8,
    /// Whether only secure transports may be used (RFC 3261 §26.2.2).
    pub(super) secure: bool,
    /// Whether the caller's number is to be withheld (RFC 3323 §4.2).
    pub(super) anonymous: bool,
}

/// The calling leg.
pub(super) struct Caller {
    /// Its INVITE; `None` when we invited it, for a requested call.
    pub(super) invite: Option<ServerKey>,
    pub(super) key: LegKey,
    pub(super) identity: LegIdentity,
    /// The binding of the phone that calls, if it is registered.
    pub(super) binding: Option<BindingId>,
}

/// One fork: its INVITE without the offer and, once invited, its leg.
pub(super) struct Callee {
    /// The flow of its INVITE: to the phone, to the node of the phone, or to a trunk.
    pub(super) flow: Flow,
    /// Its address, and whether it is a browser.
    pub(super) at: CalleeAt,
    pub(super) invite: Invite,
    pub(super) identity: LegIdentity,
    pub(super) leg: Option<LegKey>,
    /// The binding that is called; `None` for a trunk.
    pub(super) binding: Option<BindingId>,
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
    pub(super) fn new(now: Instant, new: NewCall) -> Self {
        let NewCall { setup, caller, callees, hunt, goal, asked, diverted, request } = new;
        LiveCall {
            call: Call::new(now, setup),
            caller,
            callees,
            goal,
            hunt,
            request,
            offers: HashMap::new(),
            ringing_at: None,
            due: None,
            unanswered_ports: 0,
            linked: Linked::default(),
            asked,
            redirect: None,
            diverted,
            transfers: 0,
            refers: 0,
            returns: None,
        }
    }

    /// Returns the leg of a party, once it was invited.
    pub(super) fn key_of(&self, party: Party) -> Option<LegKey> {
        match party {
            Party::Callee(fork) => self.callees.get(fork)?.leg,
            Party::Caller => self.caller.as_ref().map(|caller| caller.key),
        }
    }

    /// Returns the extension whose INVITE began the call.
    pub(super) fn calling_extension(&self) -> Option<ExtensionId> {
        self.caller.as_ref().filter(|caller| caller.invite.is_some())?.identity.extension
    }

    /// Returns the binding of a party's phone.
    pub(super) fn binding_of(&self, party: Party) -> Option<BindingId> {
        match party {
            Party::Callee(fork) => self.callees.get(fork)?.binding,
            Party::Caller => self.caller.as_ref()?.binding,
        }
    }

    /// Returns the legs of registered phones, with their bindings.
    pub(super) fn bound_legs(&self) -> impl Iterator<Item = (BindingId, LegKey)> {
        let caller = self.caller.as_ref().and_then(|caller| Some((caller.binding?, caller.key)));
        caller
            .into_iter()
            .chain(self.callees.iter().filter_map(|callee| Some((callee.binding?, callee.leg?))))
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
        self.identity_of(self.call.parties().party_of(side)?)?.number.clone()
    }

    /// Adds the numbers of the far ends to the media legs of a record.
    pub(super) fn name_parties(&self, record: &mut Cdr) {
        for leg in record.media.iter_mut().flat_map(|media| &mut media.legs) {
            leg.party = self.number_of(leg.leg);
        }
    }

    /// Returns the strict source check for the leg of a port, if its extension or trunk sets one.
    pub(super) fn strict_source(&self, port: PortId, directory: &Directory) -> Option<StrictSource> {
        let identity = self.identity_of(self.call.parties().party_with(port)?)?;
        match identity.extension {
            Some(extension) => directory.extension(extension)?.strict_source,
            None => directory.trunk(self.trunk_of(self.call.parties().party_with(port)?)?)?.strict_source,
        }
    }

    /// Returns the trunk of a party: the one that a called party outside was called through, or that of the call.
    pub(super) fn trunk_of(&self, party: Party) -> Option<TrunkId> {
        let called = match party {
            Party::Callee(fork) => self.hunt.as_ref().and_then(|hunt| hunt.trunk_of(fork)),
            Party::Caller => None,
        };
        called.map(|(trunk, _)| trunk).or(self.call.facts().trunk)
    }

    /// Returns when the next timeout of the call or of its hunt is due.
    pub(super) fn next_timeout(&self) -> Option<Instant> {
        let hunt = self.hunt.as_ref().filter(|_| self.call.is_ringing()).and_then(Hunt::due);
        self.call.next_timeout().into_iter().chain(hunt).min()
    }

    /// Returns the state of the call; `None` once it has ended.
    pub(super) fn state(&self) -> Option<CallState> {
        if self.call.has_ended() {
            return None;
        }
        Some(match (self.call.parties().is_up(), self.ringing_at) {
            (true, _) => CallState::Answered,
            (false, Some(_)) => CallState::Ringing,
            (false, None) => CallState::Queued,
        })
    }

    /// Returns the legs that exist now; the caller's comes first.
    pub(super) fn parties(&self) -> impl Iterator<Item = (Option<LegKey>, &LegIdentity, CallState)> {
        let caller = self.caller.as_ref().filter(|_| self.call.parties().has_caller());
        let caller =
            caller.zip(self.state()).map(|(caller, state)| (Some(caller.key), &caller.identity, state));
        let callees = self.callees.iter().enumerate().filter_map(|(fork, callee)| {
            let state = self.call.parties().fork_state(fork)?;
            Some((callee.leg, &callee.identity, state))
        });
        caller.into_iter().chain(callees)
    }

    /// Returns the extensions of all legs, including ended ones.
    pub(super) fn extensions(&self) -> impl Iterator<Item = ExtensionId> {
        let caller = self.caller.iter().map(|caller| &caller.identity);
        caller.chain(self.callees.iter().map(|callee| &callee.identity)).filter_map(|leg| leg.extension)
    }

    /// Returns the fields that a list is filtered by.
    pub(super) fn outline(&self, state: CallState) -> Outline<impl Fn(ExtensionId) -> bool> {
        let facts = self.call.facts();
        Outline {
            organisation_id: facts.organisation,
            direction: facts.direction,
            state,
            parked_slot: self.call.parties().parked().map(|parked| parked.place.slot),
            has_extension: move |extension| {
                facts.extension == Some(extension)
                    || self.parties().any(|(_, identity, _)| identity.extension == Some(extension))
            },
        }
    }

    /// Returns the leg that holds on a program's request; after a transfer it may be a leg of the linked call.
    pub(super) fn held_by(&self) -> Option<LegId> {
        let parties = self.call.parties();
        let of_link = || Some(parties.link.as_ref()?.hold()?.by);
        parties.holder().and_then(|party| Some(self.identity_of(party)?.id)).or_else(of_link)
    }

    /// Returns the call as the API shows it; `None` once it has ended.
    pub(super) fn view(&self) -> Option<live_call::LiveCall> {
        let (facts, state) = (self.call.facts(), self.state()?);
        let at = |after: Option<Duration>| {
            let micros = |after: Duration| i64::try_from(after.as_micros()).unwrap_or(i64::MAX);
            after.map(|after| facts.started_at.plus_micros(micros(after)))
        };
        let answered_at = at(self.call.parties().answered_after()).filter(|_| state == CallState::Answered);
        let caller = self
            .caller
            .as_ref()
            .zip(self.call.parties().caller())
            .filter(|_| self.call.parties().has_caller());
        let caller =
            caller.map(|(caller, leg)| leg_view(&caller.identity, LegRole::Caller, state, leg, answered_at));
        let role = match self.call.parties().rings_caller() {
            true => LegRole::Caller,
            false => LegRole::Callee,
        };
        let callees = self.callees.iter().enumerate().filter_map(|(fork, callee)| {
            let (state, leg) =
                (self.call.parties().fork_state(fork)?, self.call.parties().leg(Party::Callee(fork))?);
            let answered_at =
                at(self.call.parties().far_answered_after()).filter(|_| state == CallState::Answered);
            Some(leg_view(&callee.identity, role, state, leg, answered_at))
        });
        let request = self.request.as_deref();
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
            reference: request.and_then(|request| request.reference.clone()),
            variables: request.map(|request| request.variables.clone()).unwrap_or_default(),
            held_by: self.held_by(),
            parked: self.call.parties().parked().map(|parked| parked.place),
            playing: self.call.parties().prompt(),
            recording: self.call.parties().recording(),
            legs: caller.into_iter().chain(callees).collect(),
        })
    }
}

impl LegIdentity {
    /// Returns the identity of a leg to a phone of this extension.
    pub(super) fn of(id: LegId, extension: &Extension) -> Self {
        LegIdentity {
            id,
            extension: Some(extension.id),
            number: Some(extension.number.clone()),
            name: extension.name.clone(),
        }
    }
}

impl Callee {
    /// Returns the fork for a registered contact.
    pub(super) fn bound(
        binding: &Binding,
        identity: LegIdentity,
        from: &str,
        to: &str,
        max_forwards: u8,
    ) -> Self {
        let mut invite = Invite::new(binding.target().to_string(), from, to)
            .header(Name::MaxForwards.as_str(), max_forwards.to_string());
        for route in &binding.path {
            invite = invite.header(Name::Route.as_str(), route.to_string());
        }
        let at = CalleeAt { has_ice: binding.has_ice, ..CalleeAt::of(&binding.seen_at()) };
        Callee { flow: binding.way(), at, invite, identity, leg: None, binding: Some(binding.id) }
    }
}

/// Returns the end of a prompt in a call, for its event.
pub(super) fn prompt_ended(now: Now, live: &LiveCall, prompt: LivePrompt, result: PlayResult) -> PromptEnded {
    let facts = live.call.facts();
    PromptEnded {
        organisation_id: facts.organisation,
        team_id: facts.team,
        call_uuid: facts.call,
        prompt,
        result,
        at: now.wall,
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
        media_verdict: leg.warned,
    }
}

/// Max-Forwards of an INVITE that begins at the switch (RFC 3261 §8.1.1.6).
pub(super) const MAX_FORWARDS: u8 = 70;
