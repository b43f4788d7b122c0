//! Questions to the running switch: how the HTTP API and other tasks query and control calls.
//!
//! # How to add one
//!
//! Implement [`Question`] for a type of your own; its `put` has the whole switch for the moment between two datagrams.
//! What it pushes as outputs (a request to a phone, a media command) is carried out as after any other input, and what
//! it returns goes back to whoever asked by `Handle::ask` of the driver:
//!
//! ```
//! use sidetone_switch::control::Question;
//! use sidetone_switch::machine::{Now, Switch};
//!
//! struct HowMany;
//!
//! impl Question for HowMany {
//!     type Answer = usize;
//!
//!     fn put(self, _now: Now, switch: &mut Switch) -> usize {
//!         switch.live_calls()
//!     }
//! }
//! ```
//!
//! A question is answered at once. A phone's response seconds later is not part of the answer: it is an event
//! of the phone's leg, and becomes an `Output` of its own. [`Switch::phone_legs`] returns the legs of a call
//! that lead to our phones; [`Switch::whose_leg`] returns the call and leg that such an event belongs to.

use std::fmt;

use sidetone_model::access::Scope;
use sidetone_model::ids::{CallId, ExtensionId, LegId};
use sidetone_model::live_call::{CallState, LiveCall, LiveCallQuery};
use sidetone_model::page::Page;
use sidetone_sip::ua::LegKey;

use crate::machine::{Now, Switch};

/// A question that the switch answers at once.
///
/// *Bounds*: it runs in the task that serves SIP, so it must not wait, and may iterate over at most the live
/// calls.
pub trait Question: Send + 'static {
    /// The answer.
    type Answer: Send + 'static;

    /// Carries out the question and returns its answer.
    fn put(self, now: Now, switch: &mut Switch) -> Self::Answer;
}

/// A question on its way to the switch, with the channel for its answer.
pub struct Asked(Box<Put>);

/// Carries out a question and passes its answer on.
type Put = dyn FnOnce(Now, &mut Switch) + Send;

impl Asked {
    /// Wraps `put`, which carries out a question and passes its answer on.
    pub fn new(put: impl FnOnce(Now, &mut Switch) + Send + 'static) -> Self {
        Asked(Box::new(put))
    }

    /// Puts the question.
    pub fn put(self, now: Now, switch: &mut Switch) {
        (self.0)(now, switch);
    }
}

impl fmt::Debug for Asked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Asked")
    }
}

/// A leg of a live call whose far end is a phone of an extension.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PhoneLeg {
    /// The leg's public id.
    pub id: LegId,
    /// The leg's key in the user agent.
    pub key: LegKey,
    /// The extension of the phone.
    pub extension: ExtensionId,
    /// The extension's number.
    pub number: Option<String>,
    /// The extension's name; empty when it has none.
    pub name: String,
    /// The state of the leg; requests inside its dialog are sent only from [`CallState::Answered`] on.
    pub state: CallState,
}

/// The live calls of a scope that a query asks for.
#[derive(Debug)]
pub struct ListCalls(pub Scope, pub LiveCallQuery);

impl Question for ListCalls {
    type Answer = Page<LiveCall>;

    fn put(self, _now: Now, switch: &mut Switch) -> Page<LiveCall> {
        switch.list_calls(self.0, &self.1)
    }
}

/// One live call, whoever's it is.
#[derive(Debug)]
pub struct FindCall(pub CallId);

impl Question for FindCall {
    type Answer = Option<LiveCall>;

    fn put(self, _now: Now, switch: &mut Switch) -> Option<LiveCall> {
        switch.find_call(self.0)
    }
}

impl Switch {
    /// Returns the live calls of `scope` that match `query`, newest first.
    pub fn list_calls(&self, scope: Scope, query: &LiveCallQuery) -> Page<LiveCall> {
        let mut matching: Vec<_> = self
            .calls
            .values()
            .filter_map(|live| {
                let facts = live.call.facts();
                let state = live.state()?;
                let seen = scope.covers(facts.organisation, facts.team);
                (seen && query.matches(live.outline(state))).then_some((facts.started_at, facts.call))
            })
            .collect();
        matching.sort_unstable_by(|a, b| b.cmp(a));
        let window = query.window;
        let skipped = usize::try_from(window.offset).unwrap_or(usize::MAX);
        let ids = matching.iter().skip(skipped).take(window.limit as usize);
        let items = ids.filter_map(|(_, id)| self.find_call(*id)).collect();
        Page { items, total: matching.len() as u64, limit: window.limit, offset: window.offset }
    }

    /// Returns a live call of any organisation; `None` once it has ended.
    pub fn find_call(&self, call: CallId) -> Option<LiveCall> {
        self.calls.get(&call)?.view()
    }

    /// Returns the legs of a live call that lead to phones of extensions; `None` when the call is not live.
    pub fn phone_legs(&self, call: CallId) -> Option<Vec<PhoneLeg>> {
        let live = self.calls.get(&call)?;
        live.state()?;
        let legs = live.parties().filter_map(|(key, identity, state)| {
            Some(PhoneLeg {
                id: identity.id,
                key: key?,
                extension: identity.extension?,
                number: identity.number.clone(),
                name: identity.name.clone(),
                state,
            })
        });
        Some(legs.collect())
    }

    /// Returns the call and leg id of a leg of the user agent; `None` once the leg is over.
    pub fn whose_leg(&self, key: LegKey) -> Option<(CallId, LegId)> {
        let (call, party) = self.legs.get(&key).copied()?;
        Some((call, self.calls.get(&call)?.identity_of(party)?.id))
    }
}
