//! One default member of a live room: whether the phone rings, and when to ring it again.
//!
//! A default member who is busy or not registered is rung again: immediately when the phone is reported free;
//! else every 5 s while no phone of the extension is registered (nothing is sent then), and every 30 s while
//! the extension is busy. A phone that rang is not rung again for 30 s, and counts a report that it is free
//! only once in that time: otherwise a phone that answers every call with busy would be rung endlessly.

use std::time::{Duration, Instant};

use sidetone_model::room::{Invite, InviteReason, InviteState, Role, RoomMember};

use crate::conference::DialId;

/// A default member and the state of its invitation.
#[derive(Debug)]
pub(super) struct Invitation {
    pub(super) who: RoomMember,
    pub(super) role: Role,
    pub(super) state: InviteState,
    pub(super) reason: InviteReason,
    pub(super) dial: Option<DialId>,
    /// The last attempt that sent anything.
    pub(super) tried: Option<Instant>,
    /// When a phone last rang.
    pub(super) rang: Option<Instant>,
    /// The last attempt that followed a report that the phone is free; may be in the future.
    pub(super) heard_free: Option<Instant>,
}

impl Invitation {
    pub(super) fn new(who: RoomMember, role: Role, state: InviteState) -> Self {
        let reason = InviteReason::None;
        Invitation { who, role, state, reason, dial: None, tried: None, rang: None, heard_free: None }
    }

    /// The invitation as it is published.
    pub(super) fn published(&self) -> Invite {
        Invite {
            extension_id: self.who.extension_id,
            number: self.who.number.clone(),
            name: self.who.name.clone(),
            state: self.state,
            last_reason: self.reason,
        }
    }

    /// Whether it should be rung and is not being rung.
    pub(super) fn is_due(&self) -> bool {
        self.dial.is_none() && matches!(self.state, InviteState::Pending | InviteState::Waiting)
    }

    /// When to try again if no report arrives.
    pub(super) fn again(&self, now: Instant) -> Instant {
        let sent = self.tried.map(|at| at + REST);
        let rang = self.rang.map(|at| at + REST);
        [sent, rang].into_iter().flatten().fold(now + POLL, Instant::max)
    }

    /// When to try again after a report that the phone is free now.
    pub(super) fn earliest(&self, now: Instant) -> Instant {
        let sent = self.tried.map(|at| at + POLL);
        let rests = [self.rang, self.heard_free].map(|at| at.map(|at| at + REST));
        rests.into_iter().chain([sent]).flatten().fold(now, Instant::max)
    }
}

/// Interval of attempts while no phone is registered or the room accepts no further member.
pub(super) const POLL: Duration = Duration::from_secs(5);

/// How long a phone that rang, or was busy, is not rung again.
const REST: Duration = Duration::from_secs(30);
