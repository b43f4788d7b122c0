//! Fields of call requests and operations that only the directory, the credit or the live calls judge.

use crate::ids::{CallId, LegId, OrganisationId, RoomId};
use crate::room::DialKind;

/// The fields of a request that are right in themselves; `None` for those that are left out or are wrong already.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GivenFields {
    /// Those of a party that a room is to dial.
    Dial {
        /// The organisation of the room.
        organisation: OrganisationId,
        /// What the target is.
        kind: DialKind,
        /// The extension's or the outside number.
        target: String,
    },
    /// Those of an operation on a live call that the caller sees.
    Operation {
        /// The call.
        call: CallId,
        /// The leg.
        leg: Option<LegId>,
        /// The number that is called.
        to: Option<String>,
        /// The other call.
        with: Option<CallId>,
        /// The room.
        room: Option<RoomId>,
    },
    /// Those of a call to place.
    Placement {
        /// The organisation in which `from` is looked up.
        organisation: OrganisationId,
        /// The extension that rings first, as named by the caller.
        from: Option<String>,
        /// The number that is called.
        to: Option<String>,
        /// The number that is shown.
        caller_id: Option<String>,
        /// Whether there is a URL for callbacks.
        has_callback: bool,
    },
}
