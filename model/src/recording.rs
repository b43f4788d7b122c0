//! Recordings of sessions, for playback.

use serde::Serialize;

use crate::access::Scope;
use crate::ids::{ConferenceSessionId, RoomId};
use crate::open_file::OpenFile;
use crate::ports::PortFuture;
use crate::room::RoomName;

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
    /// Its duration, in whole seconds.
    pub seconds: u64,
}

/// The duration of a recording of `bytes` bytes: 16-bit samples at 16 kHz after a header of 80 bytes.
pub fn seconds(bytes: u64) -> u64 {
    bytes.saturating_sub(80) / 32_000
}

/// The stored recordings.
pub trait Recordings: Send + Sync {
    /// Opens the complete recording of a session of a room.
    ///
    /// # Errors
    /// [`NotFound`](crate::problem::Problem::NotFound) when there is none, no such session or no such room,
    /// [`Forbidden`](crate::problem::Problem::Forbidden) when the room is outside of `scope`,
    /// [`Conflict`](crate::problem::Problem::Conflict) while it may still grow.
    fn open(
        &self,
        scope: Scope,
        room: RoomName,
        session: ConferenceSessionId,
    ) -> PortFuture<'_, Box<dyn OpenFile>>;
}
