//! Questions to the running switch: what the HTTP face and other tasks want to know of calls, or have done to them.
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
//! An answer is given at once. What a phone says to it seconds later is no part of it: that is an event of the phone's
//! leg, and becomes an `Output` of its own. [`Switch::phone_legs`] tells which legs of a call lead to a phone of ours,
//! [`Switch::whose_leg`] which call and leg such an event belongs to.

use std::fmt;

use sidetone_model::access::Scope;
use sidetone_model::ids::{CallId, ExtensionId, LegId};
use sidetone_model::live_call::{CallState, LiveCall, LiveCallQuery};
use sidetone_model::page::Page;
use sidetone_sip::ua::LegKey;

use crate::machine::{Now, Switch};

/// Something that the switch answers at once.
///
/// *Bounds*: it runs where SIP is served, so it does not wait, and works through nothing larger than the live calls.
pub trait Question: Send + 'static {
    /// What comes back.
    type Answer: Send + 'static;

    /// Finds the answer, doing whatever is asked for.
    fn put(self, now: Now, switch: &mut Switch) -> Self::Answer;
}

/// A question on its way to the switch, with the way back to whoever asked.
pub struct Asked(Box<Put>);

/// Puts a question and passes its answer on.
type Put = dyn FnOnce(Now, &mut Switch) + Send;

impl Asked {
    /// Puts a question and passes its answer on, as `put` does it.
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
    /// The leg as the world knows it.
    pub id: LegId,
    /// The leg in the user agent.
    pub key: LegKey,
    /// Whose phone it is.
    pub extension: ExtensionId,
    /// The extension's number.
    pub number: Option<String>,
    /// The extension's name; empty when it has none.
    pub name: String,
    /// How far the leg is: nothing is sent inside a dialog before it is [`CallState::Answered`].
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
    /// The live calls of `scope` that `query` asks for, newest first.
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

    /// A live call, whoever's it is; `None` once nobody is up in it any more.
    pub fn find_call(&self, call: CallId) -> Option<LiveCall> {
        self.calls.get(&call)?.view()
    }

    /// The legs of a live call that lead to phones of extensions; `None` when there is no such call now.
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

    /// The call and the leg that a leg of the user agent stands for; `None` once it is over.
    pub fn whose_leg(&self, key: LegKey) -> Option<(CallId, LegId)> {
        let (call, party) = self.legs.get(&key).copied()?;
        Some((call, self.calls.get(&call)?.identity_of(party)?.id))
    }
}
