//! Fields of call requests and operations that can be checked only against the directory, the credit or the
//! live calls.

use crate::ids::{CallId, LegId, OrganisationId, RoomId};
use crate::room::DialKind;

/// The fields of a request that have no problem of their own; `None` for those that are missing or already
/// refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GivenFields {
    /// Fields for dialling a party into a room.
    Dial {
        /// The organisation of the room.
        organisation: OrganisationId,
        /// The kind of the target.
        kind: DialKind,
        /// The number of the extension or the outside number.
        target: String,
    },
    /// Fields of an operation on a live call that the caller may see.
    Operation {
        /// The call.
        call: CallId,
        /// The leg.
        leg: Option<LegId>,
        /// The number to call.
        to: Option<String>,
        /// The other call.
        with: Option<CallId>,
        /// The room.
        room: Option<RoomId>,
    },
    /// Fields of a call to place.
    Placement {
        /// The organisation in which `from` is looked up.
        organisation: OrganisationId,
        /// The extension that rings first, as named by the caller.
        from: Option<String>,
        /// The number to call.
        to: Option<String>,
        /// The number to show.
        caller_id: Option<String>,
        /// Whether there is a URL for callbacks.
        has_callback: bool,
    },
}
