//! The parties of other calls to which the parties of one call are relayed.

use sidetone_model::ids::CallId;

use crate::io::Party;

/// The far parties of the linked parties of a call. After a transfer only one party is left. Both parties are linked
/// after both were moved to the node of a room, each by a separate call.
#[derive(Clone, Debug, Default)]
pub(super) struct Linked {
    caller: Option<Box<(CallId, Party)>>,
    callee: Option<Box<(CallId, Party)>>,
}

impl Linked {
    /// The far party of a party.
    pub(super) fn of(&self, party: Party) -> Option<(CallId, Party)> {
        let far = match party {
            Party::Caller => &self.caller,
            Party::Callee(_) => &self.callee,
        };
        far.as_deref().copied()
    }

    /// Links a party with a party of another call.
    pub(super) fn set(&mut self, party: Party, far: (CallId, Party)) {
        *self.slot(party) = Some(Box::new(far));
    }

    /// Ends the link of a party; returns its far party.
    pub(super) fn take(&mut self, party: Party) -> Option<(CallId, Party)> {
        self.slot(party).take().map(|far| *far)
    }

    /// Whether no party is linked.
    pub(super) fn is_empty(&self) -> bool {
        self.caller.is_none() && self.callee.is_none()
    }

    /// Whether both parties are linked.
    pub(super) fn has_both(&self) -> bool {
        self.caller.is_some() && self.callee.is_some()
    }

    /// The far party of the only linked party; `None` when none is linked, or both are.
    pub(super) fn only(&self) -> Option<(CallId, Party)> {
        match (&self.caller, &self.callee) {
            (Some(far), None) | (None, Some(far)) => Some(**far),
            (None, None) | (Some(_), Some(_)) => None,
        }
    }

    fn slot(&mut self, party: Party) -> &mut Option<Box<(CallId, Party)>> {
        match party {
            Party::Caller => &mut self.caller,
            Party::Callee(_) => &mut self.callee,
        }
    }
}
