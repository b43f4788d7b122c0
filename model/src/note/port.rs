//! Sends notes, and reads those that were sent.

use serde::Serialize;

use crate::access::Scope;
use crate::ids::{CallId, ExtensionId, LegId, NoteId, RoomId};
use crate::note::{Note, NoteChannel, NoteLevel, NoteRecord, NoteSource, NoteStatus};
use crate::page::{Page, Window};
use crate::port_future::PortFuture;
use crate::time::Timestamp;

/// Notes to phones, and their results.
pub trait Notes: Send + Sync {
    /// Sends a note into a live call: to every phone of the organisation in it.
    ///
    /// # Errors
    /// [`NotFound`](crate::problem::Problem::NotFound) when there is no such live call,
    /// [`Forbidden`](crate::problem::Problem::Forbidden) when it is outside of `scope`,
    /// [`Conflict`](crate::problem::Problem::Conflict) when no phone of the organisation takes part in it,
    /// [`Busy`](crate::problem::Problem::Busy) when the service is overloaded.
    fn send_to_call(&self, scope: Scope, call: CallId, note: Note) -> PortFuture<'_, NoteSent>;

    /// Sends a note to every device of an extension.
    ///
    /// # Errors
    /// Like [`Notes::send_to_call`], for the extension.
    fn send_to_extension(&self, scope: Scope, extension: ExtensionId, note: Note)
    -> PortFuture<'_, NoteSent>;

    /// Returns the notes sent into a call that is live or has a record or notes, newest first.
    ///
    /// # Errors
    /// [`NotFound`](crate::problem::Problem::NotFound) when there is no such call,
    /// [`Forbidden`](crate::problem::Problem::Forbidden) when it is outside of `scope`.
    fn of_call<'a>(
        &'a self,
        scope: Scope,
        call: CallId,
        query: &'a NoteQuery,
    ) -> PortFuture<'a, Page<NoteRecord>>;

    /// The notes sent to an extension, newest first.
    ///
    /// # Errors
    /// [`NotFound`](crate::problem::Problem::NotFound) and [`Forbidden`](crate::problem::Problem::Forbidden),
    /// for the extension.
    fn of_extension<'a>(
        &'a self,
        scope: Scope,
        extension: ExtensionId,
        query: &'a NoteQuery,
    ) -> PortFuture<'a, Page<NoteRecord>>;

    /// The notes that a conference room sent to the phones in it, newest first.
    ///
    /// # Errors
    /// [`NotFound`](crate::problem::Problem::NotFound) and [`Forbidden`](crate::problem::Problem::Forbidden),
    /// for the room.
    fn of_room<'a>(
        &'a self,
        scope: Scope,
        room: RoomId,
        query: &'a NoteQuery,
    ) -> PortFuture<'a, Page<NoteRecord>>;
}

/// An accepted note: stored and being sent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct NoteSent {
    /// The note.
    pub id: NoteId,
    /// The channel of the note.
    pub channel: NoteChannel,
    /// The legs that receive it, for an `info`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub legs: Option<Vec<LegId>>,
    /// Whether the phone shows an Acknowledge button.
    pub ack: bool,
}

/// A filter of the notes of a call, an extension or a room; every given condition must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NoteQuery {
    /// Notes with this status.
    pub status: Option<NoteStatus>,
    /// Notes of this level.
    pub level: Option<NoteLevel>,
    /// Notes from this source.
    pub source: Option<NoteSource>,
    /// Notes with or without an acknowledgement.
    pub acked: Option<bool>,
    /// Notes sent at this time or later.
    pub since: Option<Timestamp>,
    /// The window.
    pub window: Window,
}
