//! The heartbeat of a member: versioned JSON in the key-value store, under the node's id.

use std::net::SocketAddr;

use serde::{Deserialize, Serialize};
use sidetone_model::ids::NodeId;
use sidetone_model::time::Timestamp;
use uuid::Uuid;

/// One run of a node: a process from its start to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RunId(pub Uuid);

impl RunId {
    /// The smallest id.
    pub const MIN: RunId = RunId(Uuid::nil());
    /// The largest id.
    pub const MAX: RunId = RunId(Uuid::max());
}

/// The properties that do not change while a node runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    /// The node's id in the database.
    pub node: NodeId,
    /// Its configured name.
    pub name: String,
    /// This run of the node.
    pub run: RunId,
    /// The start of this run, by the node's clock.
    pub started_at: Timestamp,
    /// The version of the program.
    pub version: String,
    /// Its SIP listeners, such as `udp://192.0.2.10:5060`.
    #[serde(default)]
    pub sip: Vec<String>,
    /// The address to which other nodes send SIP for its phones: its internal UDP listener.
    #[serde(default)]
    pub edge: Option<SocketAddr>,
    /// The URL of its HTTP API.
    #[serde(default)]
    pub http: String,
}

/// The current load of a node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Figures {
    /// Live calls.
    pub calls: u64,
    /// Live conference rooms.
    pub rooms: u64,
    /// Registered phones.
    pub registrations: u64,
    /// Processor time of the process during the last second, in percent of all processors.
    pub cpu_percent: u32,
    /// Whether the node refuses calls of programs because of its load.
    pub loaded: bool,
    /// Whether the node takes no new calls.
    pub draining: bool,
}

/// One heartbeat. Fields that a later version adds are ignored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Heartbeat {
    /// The version of the format: [`Heartbeat::FORMAT`]. A format that older programs cannot read has another number.
    pub v: u32,
    /// The sender.
    #[serde(flatten)]
    pub identity: Identity,
    /// Counts the heartbeats of a run, starting at 1.
    pub seq: u64,
    /// The time of sending, by the node's clock: the last time at which its calls are known to be alive.
    pub at: Timestamp,
    /// The load of the node.
    #[serde(flatten)]
    pub figures: Figures,
    /// Whether the node has stopped in order and leaves the cluster.
    #[serde(default)]
    pub leaving: bool,
}

/// Why a heartbeat is not used.
#[derive(Debug, thiserror::Error)]
pub enum UnreadableHeartbeat {
    /// A later program wrote it.
    #[error("read a heartbeat of format {v}: this program reads format {}", Heartbeat::FORMAT)]
    Format {
        /// Its format.
        v: u32,
    },
    /// The value is not a heartbeat.
    #[error("read a heartbeat: {0}")]
    Json(#[from] serde_json::Error),
    /// It is longer than any heartbeat.
    #[error("read a heartbeat: it has {len} bytes, at most {}", Heartbeat::BYTES_MAX)]
    Size {
        /// Its length in bytes.
        len: usize,
    },
}

impl Heartbeat {
    /// The format of this program.
    pub const FORMAT: u32 = 1;
    /// The longest heartbeat that is read.
    pub const BYTES_MAX: usize = 16 * 1024;

    /// Writes it as JSON.
    pub fn write(&self) -> Vec<u8> {
        // Cannot fail: the fields are numbers and strings.
        serde_json::to_vec(self).unwrap_or_default()
    }

    /// Reads a heartbeat of another node.
    ///
    /// # Errors
    /// The value is too long, not a heartbeat, or of an unknown format.
    pub fn read(bytes: &[u8]) -> Result<Self, UnreadableHeartbeat> {
        if bytes.len() > Self::BYTES_MAX {
            return Err(UnreadableHeartbeat::Size { len: bytes.len() });
        }
        #[derive(Deserialize)]
        struct Format {
            v: u32,
        }
        // The number first: the fields of another format are unknown.
        let Format { v } = serde_json::from_slice(bytes)?;
        if v != Self::FORMAT {
            return Err(UnreadableHeartbeat::Format { v });
        }
        Ok(serde_json::from_slice(bytes)?)
    }
}
