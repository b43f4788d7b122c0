//! Operations of programs on live calls: the orders, and the reasons to refuse them.

use crate::call_parking::{ParkOrder, PickUpOrder};
use crate::call_prompt::LivePrompt;
use crate::ids::{CallId, CallRecordingId, LegId, RoomId};
use crate::problem::{FieldProblem, Problem};

/// An operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CallOperation {
    /// Put a party on hold.
    Hold(HoldOrder),
    /// Move parties into a room.
    MoveToRoom(MoveOrder),
    /// Park a party.
    Park(ParkOrder),
    /// Connect a waiting call with an extension.
    PickUp(PickUpOrder),
    /// Play a prompt into the call, replacing a current one; `None` stops it.
    Play(CallId, Option<LivePrompt>),
    /// Record the call.
    Record(CallId, RecordStep),
    /// Transfer a party.
    Transfer(TransferOrder),
    /// Resume a call that was put on hold.
    Unhold(CallId),
}

/// A step of the recording of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordStep {
    /// Records silence until it is resumed.
    Pause,
    /// Records both sides again.
    Resume,
    /// Begins a recording with this id.
    Start(CallRecordingId),
    /// Ends it.
    Stop,
}

/// Puts the party that a leg talks to on hold, with music.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HoldOrder {
    /// The call.
    pub call: CallId,
    /// The leg that holds; by default the phone of the extension that the call belongs to.
    pub leg: Option<LegId>,
}

/// Transfers the party that a leg talks to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TransferOrder {
    /// The call.
    pub call: CallId,
    /// The leg that transfers, and leaves when the target has answered; by default the phone of the extension that the
    /// call belongs to.
    pub leg: Option<LegId>,
    /// The target.
    pub to: TransferTarget,
}

/// The target of a transfer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TransferTarget {
    /// The far end of another call of the transferring extension.
    Call(CallId),
    /// A number, as the transferring extension would dial it.
    Number(String),
}

/// Moves parties of a call into a stored room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MoveOrder {
    /// The call.
    pub call: CallId,
    /// The leg that moves, while the other is hung up; by default both move.
    pub leg: Option<LegId>,
    /// The room.
    pub room: RoomId,
}

/// Why an operation is refused; it had no effect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OperationRefused {
    /// The node accepts no new call or room now.
    Busy,
    /// The state of the call does not allow it.
    Conflict(String),
    /// The call is not live.
    Gone,
    /// Fields of the order are wrong.
    Wrong(Vec<FieldProblem>),
}

impl OperationRefused {
    /// Refuses a field of the order.
    pub fn wrong(field: &str, message: impl Into<String>) -> Self {
        OperationRefused::Wrong(vec![FieldProblem { field: field.to_owned(), message: message.into() }])
    }
}

impl From<OperationRefused> for Problem {
    fn from(refused: OperationRefused) -> Self {
        match refused {
            OperationRefused::Busy => Problem::Busy { retry_after_s: BUSY_RETRY_S },
            OperationRefused::Conflict(why) => Problem::Conflict(why),
            OperationRefused::Gone => Problem::NotFound("there is no such call that is up".to_owned()),
            OperationRefused::Wrong(fields) => Problem::Unprocessable(fields),
        }
    }
}

/// A node at its limit has capacity again after calls end.
const BUSY_RETRY_S: u64 = 30;
