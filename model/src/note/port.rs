//! Sending notes, and reading what was sent.

use serde::Serialize;

use crate::access::Scope;
use crate::ids::{CallId, ExtensionId, LegId, NoteId, RoomId};
use crate::note::{Note, NoteChannel, NoteLevel, NoteRecord, NoteSource, NoteStatus};
use crate::page::{Page, Window};
use crate::ports::PortFuture;
use crate::time::Timestamp;

/// Notes to phones, and what became of them.
pub trait Notes: Send + Sync {
    /// Sends a note into a live call: to every phone of the organisation on it.
    ///
    /// # Errors
    /// [`NotFound`](crate::problem::Problem::NotFound) when no such call is up,
    /// [`Forbidden`](crate::problem::Problem::Forbidden) when it is outside of `scope`,
    /// [`Conflict`](crate::problem::Problem::Conflict) when no phone of ours is on it,
    /// [`Busy`](crate::problem::Problem::Busy) when there is too much to do.
    fn send_to_call(&self, scope: Scope, call: CallId, note: Note) -> PortFuture<'_, NoteSent>;

    /// Sends a note to every device of an extension.
    ///
    /// # Errors
    /// As [`Notes::send_to_call`], of the extension.
    fn send_to_extension(&self, scope: Scope, extension: ExtensionId, note: Note)
    -> PortFuture<'_, NoteSent>;

    /// The notes sent into a call, which is up or has a record or notes, newest first.
    ///
    /// # Errors
    /// [`NotFound`](crate::problem::Problem::NotFound) when there is none such,
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
    /// [`NotFound`](crate::problem::Problem::NotFound) and [`Forbidden`](crate::problem::Problem::Forbidden), as the
    /// extension is.
    fn of_extension<'a>(
        &'a self,
        scope: Scope,
        extension: ExtensionId,
        query: &'a NoteQuery,
    ) -> PortFuture<'a, Page<NoteRecord>>;

    /// The notes that a conference room sent to the phones in it, newest first.
    ///
    /// # Errors
    /// [`NotFound`](crate::problem::Problem::NotFound) and [`Forbidden`](crate::problem::Problem::Forbidden), as the
    /// room is.
    fn of_room<'a>(
        &'a self,
        scope: Scope,
        room: RoomId,
        query: &'a NoteQuery,
    ) -> PortFuture<'a, Page<NoteRecord>>;
}

/// A note that was accepted: it is stored, and on its way.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct NoteSent {
    /// The note.
    pub id: NoteId,
    /// How it goes out.
    pub channel: NoteChannel,
    /// The legs that it goes to, of an `info`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub legs: Option<Vec<LegId>>,
    /// Whether it shows an Acknowledge button.
    pub ack: bool,
}

/// Which notes of a call, an extension or a room; every filter that is given must hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NoteQuery {
    /// Those that are this far.
    pub status: Option<NoteStatus>,
    /// Those of this level.
    pub level: Option<NoteLevel>,
    /// Those from there.
    pub source: Option<NoteSource>,
    /// Those that somebody acknowledged, or that nobody did.
    pub acked: Option<bool>,
    /// Those sent at this instant or later.
    pub since: Option<Timestamp>,
    /// The window.
    pub window: Window,
}
