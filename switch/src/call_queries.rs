//! Answers queries about live calls and their phones.

use sidetone_model::access::Scope;
use sidetone_model::cursor::KeyValue;
use sidetone_model::ids::{CallId, ExtensionId, LegId};
use sidetone_model::live_call::{CallState, LiveCall, LiveCallQuery};
use sidetone_model::note::{CallPhones, Phone};
use sidetone_model::page::{Order, Page};
use sidetone_sip::ua::LegKey;

use crate::call_table::CallTable;

/// A leg of a live call whose far end is a phone of an extension.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PhoneLeg {
    /// The leg's public id.
    pub(super) id: LegId,
    /// The leg's key in the user agent.
    pub(super) key: LegKey,
    /// The extension of the phone.
    pub(super) extension: ExtensionId,
    /// The extension's number.
    pub(super) number: Option<String>,
    /// The extension's name; empty when it has none.
    pub(super) name: String,
    /// The state of the leg; requests inside its dialog are sent only from [`CallState::Answered`] on.
    pub(super) state: CallState,
}

/// Returns the live calls of `scope` that match `query`, newest first.
pub(super) fn list(calls: &CallTable, scope: Scope, query: &LiveCallQuery) -> Page<LiveCall> {
    let mut matching: Vec<_> = calls
        .iter()
        .filter_map(|live| {
            let facts = live.call.facts();
            let state = live.state()?;
            let seen = scope.covers(facts.organisation, facts.team);
            (seen && query.matches(live.outline(state))).then_some((facts.started_at, facts.call))
        })
        .collect();
    matching.sort_unstable_by(|a, b| b.cmp(a));
    let page = Page::of_sorted(matching, &query.window, Order::Descending, |(started_at, call)| {
        vec![KeyValue::Integer(started_at.as_micros()), KeyValue::Text(call.to_string())]
    });
    let items = page.items.iter().filter_map(|(_, id)| find(calls, *id)).collect();
    page.with(items)
}

/// Returns a live call of any organisation; `None` once it has ended.
pub(super) fn find(calls: &CallTable, call: CallId) -> Option<LiveCall> {
    calls.get(call)?.view()
}

/// Returns the legs of a live call that lead to phones of extensions; `None` when the call is not live.
pub(super) fn phone_legs(calls: &CallTable, call: CallId) -> Option<Vec<PhoneLeg>> {
    let live = calls.get(call)?;
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

/// Returns the phones on a live call; `None` when the call is not live.
pub(super) fn phones_on(calls: &CallTable, call: CallId) -> Option<CallPhones> {
    let live = calls.get(call)?;
    let (facts, state) = (live.call.facts(), live.state()?);
    let legs = phone_legs(calls, call)?.into_iter().filter(|leg| leg.state == CallState::Answered);
    Some(CallPhones {
        organisation: facts.organisation,
        team: facts.team,
        is_answered: state == CallState::Answered,
        phones: legs
            .map(|leg| Phone {
                leg: leg.id,
                name: Some(leg.name).filter(|name| !name.is_empty()).or(leg.number).unwrap_or_default(),
            })
            .collect(),
    })
}
