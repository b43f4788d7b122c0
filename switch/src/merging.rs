//! Decides how two calls are merged into one conference.

use sidetone_model::ids::{CallId, ExtensionId};
use sidetone_model::room::event::MergedBy;
use sidetone_model::room::{MergeRefused, RoomName};

use crate::call_table::CallTable;
use crate::conference::Goal;
use crate::io::Party;
use crate::live::LiveCall;
use crate::queries::Merge;

/// How two calls are merged.
pub(super) struct MergePlan {
    pub(super) room: RoomName,
    /// The goal of the parties of both calls in the room.
    pub(super) goal: Goal,
    pub(super) parts: [Part; 2],
}

/// A call whose parties are moved into the room, except `without`.
pub(super) struct Part {
    pub(super) call: CallId,
    pub(super) without: Option<Party>,
}

/// Plans to put the parties of two calls into one room.
///
/// # Errors
/// Why the calls cannot be merged.
pub(super) fn plan(calls: &CallTable, merge: Merge) -> Result<MergePlan, MergeRefused> {
    let Merge { call, with, by } = merge;
    let parts = parts(calls, call, with)?;
    let room = RoomName::Merged(call);
    // If the user has several extensions: the one that is in one of the calls.
    let talks = |own: &&ExtensionId| [call, with].iter().any(|id| is_on(calls, *id, **own));
    let own = &by.extensions;
    let by = MergedBy::new(by.who, own.iter().find(talks).or(own.first()).copied());
    Ok(MergePlan { room, goal: Goal::Merged { room, calls: [call, with], by }, parts })
}

fn is_on(calls: &CallTable, call: CallId, extension: ExtensionId) -> bool {
    calls.get(call).is_some_and(|live| phones(live).any(|(_, other)| other == extension))
}

/// Returns how each call is merged.
fn parts(calls: &CallTable, call: CallId, with: CallId) -> Result<[Part; 2], MergeRefused> {
    if call == with {
        return Err(MergeRefused::Same);
    }
    let (one, other) = (mergeable(calls, call)?, mergeable(calls, with)?);
    if one.call.facts().organisation != other.call.facts().organisation {
        return Err(MergeRefused::Foreign);
    }
    let mut twins = Vec::new();
    for (party, extension) in phones(one) {
        twins.extend(phones(other).filter(|(_, twin)| *twin == extension).map(|(twin, _)| (party, twin)));
    }
    let (mut left_out, mut left_out_with) = (None, None);
    match twins.as_slice() {
        [] => {}
        // An extension that is in both calls is seated once: from the first call, unless it put only that
        // call on hold.
        [(party, twin)] if holds(one, *party) && !holds(other, *twin) => left_out = Some(*party),
        [(_, twin)] => left_out_with = Some(*twin),
        _ => return Err(MergeRefused::SamePeople),
    }
    Ok([Part { call, without: left_out }, Part { call: with, without: left_out_with }])
}

fn mergeable(calls: &CallTable, id: CallId) -> Result<&LiveCall, MergeRefused> {
    let live = calls.get(id).ok_or(MergeRefused::Gone(id))?;
    live.state().ok_or(MergeRefused::Gone(id))?;
    if live.goal.is_some() {
        Err(MergeRefused::InRoom(id))
    } else if !live.call.parties().is_up() {
        Err(MergeRefused::NotAnswered(id))
    } else if !live.call.can_merge() {
        Err(MergeRefused::Changing(id))
    } else {
        Ok(live)
    }
}

/// Returns the parties of a call that are phones of extensions.
fn phones(live: &LiveCall) -> impl Iterator<Item = (Party, ExtensionId)> + '_ {
    let callee = live.call.parties().callee().map(Party::Callee);
    let parties = std::iter::once(Party::Caller).chain(callee);
    parties.filter_map(|party| Some((party, live.identity_of(party)?.extension?)))
}

/// Whether a party has put the other on hold.
fn holds(live: &LiveCall, party: Party) -> bool {
    let settled = live.call.parties().leg(party).and_then(|leg| leg.exchange.negotiated());
    settled.is_some_and(|settled| !settled.direction.sends())
}
