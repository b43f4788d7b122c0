//! Meetings: the report of a virtual agent that took part in a session.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::access::Scope;
use crate::call::words;
use crate::ids::{AgentId, ConferenceSessionId, RoomId};
use crate::page::{Page, Window};
use crate::port_future::PortFuture;
use crate::room::Role;
use crate::time::Timestamp;

words! {
    /// The state of a meeting.
    MeetingState {
        /// No minutes were written; `minutes_error` contains the reason.
        Failed = "failed",
        /// The minutes are written.
        Ready = "ready",
        /// The agent takes part in the room.
        Running = "running",
        /// The session is over, and the agent writes the minutes.
        Writing = "writing",
    }
}

/// The meeting of one session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Meeting {
    /// The session.
    pub session_id: ConferenceSessionId,
    /// The room.
    pub room_id: RoomId,
    /// What was made of it.
    #[serde(flatten)]
    pub report: MeetingReport,
}

/// A virtual agent's report of a session; always complete.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct MeetingReport {
    /// The virtual agent in the room.
    pub agent: MeetingAgent,
    /// The state of the meeting.
    pub state: MeetingState,
    /// The minutes; present when they were written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub minutes: Option<String>,
    /// Why no minutes were written; present with `failed`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub minutes_error: Option<String>,
    /// The notes on decisions.
    pub notes: Vec<MeetingNote>,
    /// The transcript with the speakers.
    pub turns: Vec<MeetingTurn>,
    /// Unrequested replies, which were held back.
    pub replies_unheard: Vec<MeetingNote>,
    /// The addresses that the minutes were queued to.
    pub delivered_to: Vec<String>,
}

/// The virtual agent of a meeting.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct MeetingAgent {
    /// The agent.
    pub id: AgentId,
    /// Its name as it was then.
    pub name: String,
}

/// A note, or a reply that was held back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct MeetingNote {
    /// When.
    pub at: Timestamp,
    /// What.
    pub text: String,
}

/// A turn of the transcript.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct MeetingTurn {
    /// Its position in the meeting.
    pub seq: u64,
    /// When.
    pub at: Timestamp,
    /// Who; a name.
    pub speaker: String,
    /// What.
    pub text: String,
}

/// A meeting in one row.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct MeetingSummary {
    /// The session.
    pub session_id: ConferenceSessionId,
    /// The virtual agent in the session.
    pub agent: MeetingAgent,
    /// The state of the meeting.
    #[cfg_attr(feature = "openapi", schema(inline))]
    pub state: MeetingState,
    /// Whether there are minutes to read.
    pub has_minutes: bool,
    /// Why no minutes were written; present with `failed`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub minutes_error: Option<String>,
    /// Number of notes.
    pub notes: u32,
    /// Number of turns.
    pub turns: u32,
}

/// A meeting after its report was stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReportedMeeting {
    /// The meeting.
    pub meeting: Meeting,
    /// Whether it is the first report of the session.
    pub created: bool,
}

/// A person in a session, as named in the minutes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Attendee {
    /// Their name, or else their number.
    pub name: String,
    /// The member's role.
    pub role: Role,
}

/// The limits of a report.
#[derive(Clone, Copy, Debug)]
pub struct MeetingLimits {
    /// Characters of the minutes.
    pub minutes: usize,
    /// Characters of a name or a reason.
    pub line: usize,
    /// Characters of a note, a turn or a reply.
    pub text: usize,
    /// Notes and replies, each.
    pub notes: usize,
    /// Turns.
    pub turns: usize,
    /// The largest `seq`.
    pub seq: u64,
    /// Addresses.
    pub addresses: usize,
}

/// The limits of every report; a report with its turns must also fit into one request body.
pub const MEETING_LIMITS: MeetingLimits = MeetingLimits {
    minutes: 50_000,
    line: 500,
    text: 4_000,
    notes: 1_000,
    turns: 10_000,
    seq: 1_000_000_000,
    addresses: 50,
};

impl MeetingReport {
    /// Checks that this report may follow the stored report `before`; the error is a lower-case fragment with
    /// the reason.
    ///
    /// # Errors
    /// Reports may be repeated or arrive late: written minutes stay, and a session has only one agent.
    pub fn may_follow(&self, before: &MeetingReport) -> Result<(), String> {
        if self.agent.id != before.agent.id {
            return Err(format!("the session is reported by agent {} already", before.agent.id));
        }
        if self.state.rank() < before.state.rank() {
            return Err(format!(
                "the meeting is {} already, it is not {} any more",
                before.state, self.state
            ));
        }
        Ok(())
    }
}

impl MeetingState {
    /// Minutes may still be written after a failure; written minutes are kept.
    fn rank(self) -> u8 {
        match self {
            MeetingState::Running => 0,
            MeetingState::Writing => 1,
            MeetingState::Failed => 2,
            MeetingState::Ready => 3,
        }
    }
}

impl Meeting {
    /// The data of `conference.minutes`.
    pub fn minutes_data(&self, attendees: &[Attendee]) -> Value {
        json!({
            "session_id": self.session_id,
            "room_id": self.room_id,
            "room": crate::room::RoomName::from(self.room_id),
            "members": attendees,
            "minutes": self.report.minutes,
            "delivered_to": self.report.delivered_to,
        })
    }
}

/// The reports of virtual agents on the sessions of rooms.
pub trait Meetings: Send + Sync {
    /// The meeting of a session.
    ///
    /// # Errors
    /// [`NotFound`](crate::problem::Problem::NotFound) when there is no such room or no virtual agent took
    /// part in the session, [`Forbidden`](crate::problem::Problem::Forbidden) when the room is outside of
    /// `scope`.
    fn meeting(&self, scope: Scope, room: RoomId, session: ConferenceSessionId) -> PortFuture<'_, Meeting>;

    /// The meetings of a room, newest session first.
    ///
    /// # Errors
    /// Like [`Meetings::meeting`], for the room.
    fn meetings(&self, scope: Scope, room: RoomId, window: Window) -> PortFuture<'_, Page<MeetingSummary>>;

    /// Stores a report on a session; the first report with minutes causes the event, in the same transaction.
    ///
    /// # Errors
    /// Like [`Meetings::meeting`], for the room and the session;
    /// [`Conflict`](crate::problem::Problem::Conflict) according to [`MeetingReport::may_follow`].
    fn report(
        &self,
        scope: Scope,
        room: RoomId,
        session: ConferenceSessionId,
        report: MeetingReport,
        now: Timestamp,
    ) -> PortFuture<'_, ReportedMeeting>;
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    fn report(agent: u128, state: MeetingState) -> MeetingReport {
        MeetingReport {
            agent: MeetingAgent { id: AgentId(Uuid::from_u128(agent)), name: String::new() },
            state,
            minutes: None,
            minutes_error: None,
            notes: Vec::new(),
            turns: Vec::new(),
            replies_unheard: Vec::new(),
            delivered_to: Vec::new(),
        }
    }

    #[test]
    fn what_is_written_stays_written() {
        use MeetingState::{Failed, Ready, Running, Writing};
        let order = [Running, Writing, Failed, Ready];
        for (at, before) in order.into_iter().enumerate() {
            for (then, after) in order.into_iter().enumerate() {
                let may = report(1, after).may_follow(&report(1, before)).is_ok();
                assert_eq!(may, then >= at, "{before} {after}");
            }
        }
        let error = report(2, Ready).may_follow(&report(1, Running)).unwrap_err();
        assert!(error.contains("00000001 already"), "{error}");
    }
}
