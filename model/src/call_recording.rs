//! Recordings of calls: both sides in one file, the caller on the left channel and the called party on the right.

use serde::Serialize;

use crate::ids::{CallId, CallRecordingId, OrganisationId, TeamId};
use crate::live_call::LiveCall;
use crate::open_file::OpenFile;
use crate::port_future::PortFuture;
use crate::time::Timestamp;

/// A recording of a call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct CallRecording {
    /// The recording.
    pub id: CallRecordingId,
    /// The call.
    pub call_uuid: CallId,
    /// The other call, when both parties were of calls that a transfer or a pick-up had linked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub linked_call_uuid: Option<CallId>,
    /// Whose it is.
    pub organisation_id: OrganisationId,
    /// The team of the call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub team_id: Option<TeamId>,
    /// When it began.
    pub started_at: Timestamp,
    /// When its file was complete; null until then.
    #[cfg_attr(feature = "openapi", schema(required))]
    pub ended_at: Option<Timestamp>,
    /// Bytes of its file; 0 while it is written, when nothing was recorded, and once it is deleted.
    pub bytes: u64,
    /// Its duration in whole seconds.
    pub seconds: u64,
    /// Why it ended early; absent when it did not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// The result of a recording whose file is closed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallRecordingEnd {
    /// The recording.
    pub id: CallRecordingId,
    /// Whose it is.
    pub organisation_id: OrganisationId,
    /// Bytes of its file; 0 without a file.
    pub bytes: u64,
    /// The reason for an early end.
    pub error: Option<String>,
    /// The time when the file was closed.
    pub at: Timestamp,
}

/// The data of `recording.ready` for the recording of a call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CallRecordingReady {
    /// The recording.
    pub recording_id: CallRecordingId,
    /// The call.
    pub call_uuid: CallId,
    /// The other call, when both parties were of linked calls.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub linked_call_uuid: Option<CallId>,
    /// Bytes of the file.
    pub bytes: u64,
    /// Its duration in whole seconds.
    pub seconds: u64,
    /// Why it ended early.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// What a program orders.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(rename_all = "lowercase"))]
pub enum RecordAction {
    /// Records silence until it is resumed.
    Pause,
    /// Records both sides again.
    Resume,
    /// Begins a recording.
    Start,
    /// Ends it.
    Stop,
}

/// The duration of a recording of `bytes` bytes: two channels of 16-bit samples at 16 kHz after a header of 80 bytes.
pub fn seconds(bytes: u64) -> u64 {
    bytes.saturating_sub(80) / 64_000
}

/// The recordings of calls.
pub trait CallRecordings: Send + Sync {
    /// Executes an order for a live call, which the caller may control; returns the recording.
    ///
    /// # Errors
    /// [`Conflict`](crate::problem::Problem::Conflict) when the state of the call or the disk does not allow
    /// it, [`NotFound`](crate::problem::Problem::NotFound) when the call has ended.
    fn order<'a>(&'a self, call: &'a LiveCall, action: RecordAction) -> PortFuture<'a, CallRecordingId>;

    /// Returns the recordings of a call of any organisation, including those begun for a linked call, oldest first; at
    /// most 500.
    fn list(&self, call: CallId) -> PortFuture<'_, Vec<CallRecording>>;

    /// Opens the file of a recording.
    ///
    /// # Errors
    /// [`NotFound`](crate::problem::Problem::NotFound) when there is none,
    /// [`Conflict`](crate::problem::Problem::Conflict) while it is written.
    fn open<'a>(&'a self, recording: &'a CallRecording) -> PortFuture<'a, Box<dyn OpenFile>>;

    /// Deletes the file of a recording. The entry remains; an open file can be read to its end.
    ///
    /// # Errors
    /// As [`CallRecordings::open`], and [`Conflict`](crate::problem::Problem::Conflict) when another node has the file.
    fn delete<'a>(&'a self, recording: &'a CallRecording) -> PortFuture<'a, ()>;
}
