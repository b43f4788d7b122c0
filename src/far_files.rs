//! The port for recordings and traces on the disks of other nodes.

use std::fmt;

use serde::{Deserialize, Serialize};
use sidetone_model::ids::{ConferenceSessionId, NodeId, OrganisationId};
use sidetone_model::open_file::OpenFile;
use sidetone_model::ports::PortFuture;

/// Identifies a file in the data directory of a node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "file", rename_all = "snake_case")]
pub enum FilePlace {
    /// The recording of a room or a call.
    Recording {
        /// Its organisation.
        organisation: OrganisationId,
        /// The session of the room, or the recording of the call.
        session: ConferenceSessionId,
    },
    /// The trace of a leg.
    Trace {
        /// A day and a name, as in the record.
        name: String,
    },
}

/// The files of other nodes.
pub trait FarFiles: fmt::Debug + Send + Sync {
    /// Opens a file of a node; `None` if that node does not have it, or is down.
    ///
    /// # Errors
    /// [`Busy`](sidetone_model::problem::Problem::Busy) when the node does not answer in time.
    fn open(&self, node: NodeId, place: FilePlace) -> PortFuture<'_, Option<Box<dyn OpenFile>>>;

    /// Deletes the file of a recording; a missing file counts as deleted.
    ///
    /// # Errors
    /// [`Busy`](sidetone_model::problem::Problem::Busy) when the node does not answer in time,
    /// [`Conflict`](sidetone_model::problem::Problem::Conflict) when it is down.
    fn remove(&self, node: NodeId, place: FilePlace) -> PortFuture<'_, ()>;
}
