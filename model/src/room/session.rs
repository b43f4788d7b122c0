//! Sessions: the stored form of one use of a room, and its port.

use serde::Serialize;

use crate::access::Scope;
use crate::ids::{CallId, ConferenceSessionId, ExtensionId, NodeId, OrganisationId, RoomId};
use crate::page::{Page, Window};
use crate::port_future::PortFuture;
use crate::room::{Invite, Role, RoomName};
use crate::time::Timestamp;

/// A session of a room, from its first member to its last.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = ConferenceSession))]
pub struct SessionRecord {
    /// The session.
    pub id: ConferenceSessionId,
    /// The switch's name of the room, such as `svc-room-<room id>` or, for merged calls, `svc-conf-<call uuid>`.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub room: RoomName,
    /// The stored room; absent for merged calls.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub room_id: Option<RoomId>,
    /// When the first member joined.
    pub started_at: Timestamp,
    /// When the last member left; null while the room is live.
    #[cfg_attr(feature = "openapi", schema(required))]
    pub ended_at: Option<Timestamp>,
    /// Whole seconds from its start to its end, or until now.
    pub duration_seconds: u64,
    /// The greatest number of members at one time.
    pub peak_members: u32,
    /// The members in the order of their arrival; a member who joined twice is listed twice.
    pub members: Vec<SessionMember>,
    /// The default members that it rang.
    pub invites: Vec<Invite>,
    /// Whether there is a recording to play.
    pub has_recording: bool,
    /// The length of the recording's file; 0 when there is none.
    pub recording_bytes: u64,
    /// The channels of the recording: 1 with the whole mix, or 2, the moderators on the left.
    pub recording_channels: u16,
    /// Why the recording stopped early, such as a full disk; absent when it did not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recording_error: Option<String>,
}

/// A member of a session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = ConferenceSessionMember))]
pub struct SessionMember {
    /// The member id in the live room, as in events and notes.
    pub member: u32,
    /// Their name; may be empty.
    pub name: String,
    /// Their number; empty when withheld.
    pub number: String,
    /// The member's role.
    #[cfg_attr(feature = "openapi", schema(inline))]
    pub role: Role,
    /// The member's extension; null for an outside caller.
    #[cfg_attr(feature = "openapi", schema(required))]
    pub extension_id: Option<ExtensionId>,
    /// The member's call.
    pub call_uuid: CallId,
    /// When they came in.
    pub joined_at: Timestamp,
    /// When the member left; null while the member is in the room.
    #[cfg_attr(feature = "openapi", schema(required))]
    pub left_at: Option<Timestamp>,
    /// Whole seconds in which the member talked, counted when the member leaves: 0 while the member is in the room.
    pub talk_seconds: u64,
}

/// The sessions of rooms.
pub trait RoomSessions: Send + Sync {
    /// Returns the sessions of a room, newest first; `now` determines the duration of a live one.
    ///
    /// # Errors
    /// [`NotFound`](crate::problem::Problem::NotFound) if the stored room does not exist, or merged calls of this name
    /// had no session; [`Forbidden`](crate::problem::Problem::Forbidden) if it is outside of `scope`.
    fn sessions(
        &self,
        scope: Scope,
        room: RoomName,
        window: Window,
        now: Timestamp,
    ) -> PortFuture<'_, Page<SessionRecord>>;

    /// One session of a room.
    ///
    /// # Errors
    /// Like [`RoomSessions::sessions`], for the room and the session.
    fn session(
        &self,
        scope: Scope,
        room: RoomName,
        session: ConferenceSessionId,
        now: Timestamp,
    ) -> PortFuture<'_, SessionRecord>;
}

/// The state of a session's recording, for playing or deleting it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionRecording {
    /// The session.
    pub session: ConferenceSessionId,
    /// Whose it is.
    pub organisation_id: OrganisationId,
    /// Whether a recording was started.
    pub is_recorded: bool,
    /// Whether the session is still live, so that the recording may grow.
    pub is_live: bool,
    /// Its length once it is complete.
    pub bytes: Option<u64>,
    /// The node that has the file.
    pub node: NodeId,
}
