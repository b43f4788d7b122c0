//! A call that is being placed for a room, and the report of one that a client requested and that failed.
//!
//! Default members are rung again and again; their invitations show why they do not join. Only a party that a client
//! dialled is reported.

use sidetone_model::ids::{CallId, ExtensionId, OrganisationId, RoomId};
use sidetone_model::room::{DialFailure, DialKind, Role, RoomDialFailed, RoomDialled};
use sidetone_model::time::Now;

use crate::conference::outputs::Outputs;
use crate::conference::{Dial, DialEnd, DialId, Output};

/// A call that is being placed for a room.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Dialling {
    pub(super) organisation: OrganisationId,
    pub(super) room: RoomId,
    pub(super) call: CallId,
    pub(super) kind: DialKind,
    pub(super) target: String,
    pub(super) role: Role,
    /// Whether the target is asked to press 1 before it is seated.
    pub(super) confirm: bool,
    /// The extension, if the target is a default member.
    pub(super) invite: Option<ExtensionId>,
    /// Whether a client requested it.
    pub(super) is_requested: bool,
    /// Whether a phone has rung.
    pub(super) has_rung: bool,
}

impl Dialling {
    /// Returns the call to place.
    pub(super) fn dial(&self, id: DialId, (caller_name, caller_number): (String, String)) -> Dial {
        Dial {
            id,
            call: self.call,
            organisation: self.organisation,
            room: self.room,
            kind: self.kind,
            target: self.target.clone(),
            role: self.role,
            caller_name,
            caller_number,
            follows: self.is_requested,
        }
    }

    /// Returns the answer to the client that requested it.
    pub(super) fn dialled(&self) -> RoomDialled {
        RoomDialled { target: self.target.clone(), call: self.call }
    }

    /// Whether it calls this target for that room.
    pub(super) fn calls(&self, room: RoomId, kind: DialKind, target: &str) -> bool {
        self.room == room && self.kind == kind && self.target == target
    }

    /// Why it was not answered. Phones that stop ringing by themselves answer 480, some 408.
    pub(super) fn end(&self, end: DialEnd) -> DialEnd {
        match end {
            DialEnd::Status(408 | 480) if self.has_rung => DialEnd::NoAnswer,
            end => end,
        }
    }

    /// Reports that the call was not answered.
    pub(super) fn report_end(&self, now: Now, end: DialEnd, outputs: &mut Outputs) {
        let (cause, status) = match self.end(end) {
            DialEnd::Busy => (DialFailure::Busy, None),
            DialEnd::Declined => (DialFailure::Declined, None),
            DialEnd::NoAnswer => (DialFailure::NoAnswer, None),
            DialEnd::NoCredit => (DialFailure::NoCredit, None),
            DialEnd::NoRoute => (DialFailure::NoRoute, None),
            DialEnd::Status(status) => (DialFailure::Failed, Some(status)),
            DialEnd::Unregistered => (DialFailure::Unregistered, None),
        };
        self.report(now, (cause, status), outputs);
    }

    /// Reports that the party does not join, if a client requested it.
    pub(super) fn report_failure(&self, now: Now, cause: DialFailure, outputs: &mut Outputs) {
        self.report(now, (cause, None), outputs);
    }

    fn report(&self, now: Now, (cause, sip_status): (DialFailure, Option<u16>), outputs: &mut Outputs) {
        if !self.is_requested {
            return;
        }
        outputs.push(Output::DialFailed(RoomDialFailed {
            organisation_id: self.organisation,
            room_id: self.room,
            room: self.room.into(),
            call_uuid: self.call,
            kind: self.kind,
            target: self.target.clone(),
            role: self.role,
            cause,
            sip_status,
            at: now.wall,
        }));
    }
}
