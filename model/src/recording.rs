//! Recordings of sessions, for playback.

use serde::Serialize;

use crate::access::Scope;
use crate::event::{Event, EventKind};
use crate::ids::{ConferenceSessionId, OrganisationId, RoomId};
use crate::open_file::OpenFile;
use crate::port_future::PortFuture;
use crate::room::RoomName;
use crate::time::Timestamp;

/// The data of `recording.ready`: a recording is complete and can be played.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RecordingReady {
    /// The session.
    pub session_id: ConferenceSessionId,
    /// The stored room; absent for merged calls.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub room_id: Option<RoomId>,
    /// The switch's name of the room.
    pub room: String,
    /// Bytes of the file.
    pub bytes: u64,
    /// Its channels.
    pub channels: u16,
    /// Its duration, in whole seconds.
    pub seconds: u64,
}

/// A recording of a room that could not begin, or ended early; the data of `recording.failed`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RecordingFailed {
    /// The organisation of the room.
    #[serde(skip)]
    pub organisation_id: OrganisationId,
    /// The session.
    pub session_id: ConferenceSessionId,
    /// The stored room; absent for merged calls.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub room_id: Option<RoomId>,
    /// The switch's name of the room.
    pub room: RoomName,
    /// Why, such as a full disk.
    pub error: String,
    /// Bytes of the file with what was recorded before; 0 when there is none.
    pub bytes: u64,
    /// When it was noticed.
    pub at: Timestamp,
}

impl RecordingFailed {
    /// Returns a new event with these data.
    pub fn event(&self) -> Event {
        Event::of(EventKind::RecordingFailed, self.organisation_id, None, self.at, self)
    }
}

/// The duration of a recording of `bytes` bytes: 16-bit samples at 16 kHz on each channel, after a header of 80 bytes.
pub fn seconds(bytes: u64, channels: u16) -> u64 {
    bytes.saturating_sub(80) / (32_000 * u64::from(channels.max(1)))
}

/// The stored recordings.
pub trait Recordings: Send + Sync {
    /// Checks whether a recording of this organisation could be written now.
    ///
    /// # Errors
    /// [`Conflict`](crate::problem::Problem::Conflict) with the cause: too little space, a directory that is not
    /// writable, or a recorder at its limit.
    fn require_writable(&self, organisation: OrganisationId) -> PortFuture<'_, ()>;

    /// Opens the complete recording of a session of a room.
    ///
    /// # Errors
    /// [`NotFound`](crate::problem::Problem::NotFound) if the recording, the session or the room does not
    /// exist, [`Forbidden`](crate::problem::Problem::Forbidden) if the room is outside of `scope`,
    /// [`Conflict`](crate::problem::Problem::Conflict) while the recording may still grow.
    fn open(
        &self,
        scope: Scope,
        room: RoomName,
        session: ConferenceSessionId,
    ) -> PortFuture<'_, Box<dyn OpenFile>>;

    /// Deletes the complete recording of a session of a room, or of merged calls. The session remains; an open file can be read to its end.
    ///
    /// # Errors
    /// As [`Recordings::open`], and [`Conflict`](crate::problem::Problem::Conflict) when another node has the file.
    fn delete(&self, scope: Scope, room: RoomName, session: ConferenceSessionId) -> PortFuture<'_, ()>;
}
