//! Recordings and traces of other nodes, read from them in pieces over NATS.
//!
//! The requesting node decides who may read a file: it reads the record from the database, and takes the file names
//! from there.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::FutureExt as _;
use serde::{Deserialize, Serialize};
use sidetone_cluster::nats::{Answering, MemberHandle, Topic};
use sidetone_model::cluster::NodeState;
use sidetone_model::ids::NodeId;
use sidetone_model::open_file::OpenFile;
use sidetone_model::ports::PortFuture;
use sidetone_model::problem::Problem;
use sidetone_model::time::Timestamp;

use super::message::{decode, encode};
use crate::far_files::{FarFiles, FilePlace};
use crate::own_files::OwnFiles;

/// The files of the other nodes of the cluster.
#[derive(Clone, Debug)]
pub struct ClusterFiles(pub MemberHandle);

/// A request about a file: a line of JSON. Unknown fields are ignored.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "ask", rename_all = "snake_case")]
enum Question {
    /// Returns its length and its last change.
    Stat { place: FilePlace },
    /// Returns a piece of it.
    Read { place: FilePlace, at: u64, len: usize },
    /// Deletes it.
    Remove { place: FilePlace },
}

/// The response: a line of JSON, and the piece after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "reply", rename_all = "snake_case")]
enum Reply {
    /// Its length and its last change.
    File { bytes: u64, modified_at: Timestamp },
    /// The piece follows, or the file was deleted.
    Done,
    /// The node does not have it.
    Missing,
    /// Its disk fails, or it does not support the request.
    Failed,
}

/// A file of another node, in its state when it was opened.
struct FarFile {
    files: ClusterFiles,
    node: NodeId,
    place: FilePlace,
    bytes: u64,
    modified_at: Timestamp,
}

impl ClusterFiles {
    /// Whether a node can be expected to answer.
    fn may_answer(&self, node: NodeId) -> bool {
        let view = self.0.view();
        let is_there = |state| matches!(state, NodeState::Unknown | NodeState::Up);
        view.members.iter().any(|member| member.last.identity.node == node && is_there(member.state))
    }

    async fn ask(&self, node: NodeId, question: &Question) -> Result<(Reply, Vec<u8>), Problem> {
        let question = encode(question, &[]);
        let answer = self.0.connection().ask_about(Topic::Files, node, question, ANSWERS_WITHIN).await;
        let answer = answer.map_err(|reason| {
            tracing::warn!(node.id = %node, reason, "the node that has a file does not answer");
            Problem::Busy { retry_after_s: RETRY_AFTER_S }
        })?;
        match decode::<Reply>(&answer) {
            Some((Reply::Failed, _)) | None => {
                Err(Problem::Internal(format!("node {node} could not read a file of its disk")))
            }
            Some(answer) => Ok(answer),
        }
    }
}

impl FarFiles for ClusterFiles {
    fn open(&self, node: NodeId, place: FilePlace) -> PortFuture<'_, Option<Box<dyn OpenFile>>> {
        Box::pin(async move {
            if !self.may_answer(node) {
                return Ok(None);
            }
            match self.ask(node, &Question::Stat { place: place.clone() }).await? {
                (Reply::File { bytes, modified_at }, _) => {
                    let file = FarFile { files: self.clone(), node, place, bytes, modified_at };
                    Ok(Some(Box::new(file) as Box<dyn OpenFile>))
                }
                _ => Ok(None),
            }
        })
    }

    fn remove(&self, node: NodeId, place: FilePlace) -> PortFuture<'_, ()> {
        Box::pin(async move {
            if !self.may_answer(node) {
                let text =
                    format!("the recording is on node {node}, which is not there: delete it when it is back");
                return Err(Problem::Conflict(text));
            }
            self.ask(node, &Question::Remove { place }).await.map(drop)
        })
    }
}

impl OpenFile for FarFile {
    fn bytes(&self) -> u64 {
        self.bytes
    }

    fn modified_at(&self) -> Timestamp {
        self.modified_at
    }

    fn read(&self, at: u64, len: usize) -> PortFuture<'_, Vec<u8>> {
        Box::pin(async move {
            let mut read = Vec::with_capacity(len);
            while read.len() < len {
                let at = at + read.len() as u64;
                let piece = Question::Read {
                    place: self.place.clone(),
                    at,
                    len: (len - read.len()).min(PIECE_BYTES_MAX),
                };
                match self.files.ask(self.node, &piece).await? {
                    (Reply::Done, piece) if !piece.is_empty() => read.extend(piece),
                    _ => {
                        return Err(Problem::Internal(format!("a file of node {} is gone", self.node)));
                    }
                }
            }
            Ok(read)
        })
    }
}

/// Answers the requests of other nodes about the files of this one.
pub fn answering_files(files: OwnFiles) -> Answering {
    let files = Arc::new(files);
    Arc::new(move |question: Bytes| {
        let files = Arc::clone(&files);
        async move {
            let answered = match decode::<Question>(&question) {
                Some((question, _)) => answer(&files, question).await,
                // A later version may send requests that this one does not support.
                None => Ok((Reply::Failed, Vec::new())),
            };
            let (reply, piece) = answered.unwrap_or_else(|problem| {
                tracing::error!(error = %problem, "a file that another node asks for cannot be read");
                (Reply::Failed, Vec::new())
            });
            encode(&reply, &piece)
        }
        .boxed()
    })
}

async fn answer(files: &OwnFiles, question: Question) -> Result<(Reply, Vec<u8>), Problem> {
    let (place, piece) = match question {
        Question::Stat { place } => (place, None),
        Question::Read { place, at, len } => (place, Some((at, len.min(PIECE_BYTES_MAX)))),
        Question::Remove { place } => {
            files.remove(&place).await?;
            return Ok((Reply::Done, Vec::new()));
        }
    };
    let Some(file) = files.open(&place).await? else { return Ok((Reply::Missing, Vec::new())) };
    match piece {
        None => Ok((Reply::File { bytes: file.bytes(), modified_at: file.modified_at() }, Vec::new())),
        Some((at, len)) => Ok((Reply::Done, file.read(at, len).await?)),
    }
}

/// How long each piece may take.
const ANSWERS_WITHIN: Duration = Duration::from_secs(3);
/// Fits into a NATS message, whose default limit is 1 MiB.
const PIECE_BYTES_MAX: usize = 512 * 1024;
const RETRY_AFTER_S: u64 = 1;
