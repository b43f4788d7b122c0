//! Merges two calls into one conference.

use sidetone_model::ids::{CallId, ExtensionId};
use sidetone_model::room::{LiveRoom, MergeRefused, RoomName};

use crate::control::Question;
use crate::face::{Input, Party};
use crate::live::LiveCall;
use crate::machine::{Now, Switch};
use crate::rooms::Goal;

/// Two calls to be merged.
#[derive(Debug)]
pub struct Merge {
    /// The one that the room is named after.
    pub call: CallId,
    /// The other one.
    pub with: CallId,
    /// The extensions of who asks for it.
    pub by: Vec<ExtensionId>,
}

impl Question for Merge {
    type Answer = Result<LiveRoom, MergeRefused>;

    fn put(self, now: Now, switch: &mut Switch) -> Self::Answer {
        switch.merge(now, self)
    }
}

/// A call whose parties go into the room, except one.
struct Part {
    call: CallId,
    without: Option<Party>,
}

impl Switch {
    /// Puts the parties of two calls into one room.
    ///
    /// # Errors
    /// Why the calls were not merged.
    pub(super) fn merge(&mut self, now: Now, merge: Merge) -> Result<LiveRoom, MergeRefused> {
        let Merge { call, with, by } = merge;
        let parts = self.parts(call, with)?;
        let room = RoomName::Merged(call);
        if !self.conferences.rooms.takes_another_room() {
            return Err(MergeRefused::Full);
        }
        // If the user has several extensions, the one that is in one of the calls.
        let talks = |own: &&ExtensionId| [call, with].iter().any(|id| self.is_on(*id, **own));
        let by = by.iter().find(talks).or(by.first()).copied();
        for Part { call: id, without } in parts {
            if let Some(live) = self.calls.get_mut(&id) {
                live.goal = Some(Goal::Merged { room, calls: [call, with], by });
            }
            self.tell_call(now, id, Input::Merge(without));
        }
        self.live_room(now, room).ok_or(MergeRefused::Full)
    }

    fn is_on(&self, call: CallId, extension: ExtensionId) -> bool {
        self.calls.get(&call).is_some_and(|live| phones(live).any(|(_, other)| other == extension))
    }

    /// Returns how each call is merged.
    fn parts(&self, call: CallId, with: CallId) -> Result<[Part; 2], MergeRefused> {
        if call == with {
            return Err(MergeRefused::Same);
        }
        let (one, other) = (self.mergeable(call)?, self.mergeable(with)?);
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

    fn mergeable(&self, id: CallId) -> Result<&LiveCall, MergeRefused> {
        let live = self.calls.get(&id).ok_or(MergeRefused::Gone(id))?;
        live.state().ok_or(MergeRefused::Gone(id))?;
        if live.goal.is_some() {
            Err(MergeRefused::InRoom(id))
        } else if !live.call.is_up() {
            Err(MergeRefused::NotAnswered(id))
        } else if !live.call.can_merge() {
            Err(MergeRefused::Changing(id))
        } else {
            Ok(live)
        }
    }
}

/// Returns the parties of a call that are phones of extensions.
fn phones(live: &LiveCall) -> impl Iterator<Item = (Party, ExtensionId)> + '_ {
    let callee = live.call.callee().map(Party::Callee);
    let parties = std::iter::once(Party::Caller).chain(callee);
    parties.filter_map(|party| Some((party, live.identity_of(party)?.extension?)))
}

/// Whether a party has put the other on hold.
fn holds(live: &LiveCall, party: Party) -> bool {
    let settled = live.call.leg(party).and_then(|leg| leg.exchange.negotiated());
    settled.is_some_and(|settled| !settled.direction.sends())
}
