//! Requests about live calls and rooms between the nodes: sent to the others, and answered for them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::{BoxFuture, join_all};
use serde::{Deserialize, Serialize};
use sidetone_api::PeerService;
use sidetone_cluster::nats::{Answering, Connection, MemberHandle};
use sidetone_model::access::Scope;
use sidetone_model::cluster::{
    Gathered, LiveThing, NodeState, Owner, PeerAnswer, PeerRequest, Peers, RateTake, RateTaken,
};
use sidetone_model::ids::{CallId, NodeId};
use sidetone_model::live_call::LiveCalls;
use sidetone_model::page::Window;
use sidetone_model::ports::PortFuture;
use sidetone_model::problem::Problem;
use sidetone_model::room::{LiveRooms, RoomViewer};
use sidetone_switch::queries::ExpectRoom;
use sidetone_switch::room_state::RoomState;
use tokio::sync::Notify;
use uuid::Uuid;

use super::limits::SharedLimits;
use super::message::{decode, encode};
use crate::driver::Handle;

/// The other nodes of the cluster, and the limits that they enforce together.
#[derive(Clone)]
pub struct ClusterPeers(pub MemberHandle, pub Arc<SharedLimits>);

/// A request of another node: a line of JSON, and after it the body of a client's request. Unknown fields are
/// ignored.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "ask", rename_all = "snake_case")]
enum Question {
    /// Whether the node has a call.
    Call { call: CallId },
    /// Whether it has a room.
    Room { room: String },
    /// Whether it has the room of a call.
    RoomOfCall { call: Uuid },
    /// The names of its live rooms.
    Rooms,
    /// Whether the node accepts a room that another one hands over.
    TakeRoom { state: RoomState },
    /// Accept no new calls, and stop when the last one has ended.
    Drain {
        /// Whether conference rooms stay with their calls.
        #[serde(default)]
        keep_rooms: bool,
    },
    /// The response to a client's request.
    Http { request: PeerRequest },
}

/// The reply: a line of JSON, and the body after it.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "reply", rename_all = "snake_case")]
enum Reply {
    /// Whether the node has the call or room.
    Has { has: bool },
    /// The names of live rooms.
    Rooms { rooms: Vec<String> },
    /// Whether it accepts the room.
    Taken { taken: bool },
    /// It is draining; the number of its live calls.
    Draining { calls: u64 },
    /// The response for the client.
    Http { answer: PeerAnswer },
    /// The switch does not answer.
    Busy,
}

impl Question {
    fn of(thing: LiveThing) -> Self {
        match thing {
            LiveThing::Call(call) => Question::Call { call },
            LiveThing::Room(room) => Question::Room { room: room.to_string() },
            LiveThing::RoomOfCall(call) => Question::RoomOfCall { call },
        }
    }
}

/// A node that can be queried, and its name.
type Peer = (NodeId, String);

impl ClusterPeers {
    /// The other nodes that may answer, and the names of those that this node cannot query because it is isolated.
    fn others(&self) -> (Vec<Peer>, Vec<String>) {
        let view = self.0.view();
        let others = view.members.iter().filter(|member| !member.is_this);
        let is_there = |state| matches!(state, NodeState::Unknown | NodeState::Up);
        let others = others.filter(|member| is_there(member.state));
        let others = others.map(|member| (member.last.identity.node, member.last.identity.name.clone()));
        if view.is_linked {
            (others.collect(), Vec::new())
        } else {
            (Vec::new(), others.map(|(_, name)| name).collect())
        }
    }

    /// Queries every other node; a node without an answer in time is missing.
    async fn ask_others(&self, question: &[u8]) -> (Vec<(NodeId, Reply, Vec<u8>)>, Vec<String>) {
        let (others, mut missing) = self.others();
        let asked = others.into_iter().map(|(node, name)| async move {
            match self.ask(node, question.to_vec(), GATHER_MAX).await {
                Ok((reply, body)) => Ok((node, reply, body)),
                Err(reason) => {
                    tracing::debug!(node.id = %node, reason, "a node has not answered a question");
                    Err(name)
                }
            }
        });
        let mut replies = Vec::new();
        for answer in join_all(asked).await {
            match answer {
                Ok(reply) => replies.push(reply),
                Err(name) => missing.push(name),
            }
        }
        (replies, missing)
    }

    /// The live rooms of every other node, by the name of the node.
    pub(super) async fn rooms(&self) -> Vec<(String, Vec<String>)> {
        let (replies, _) = self.ask_others(&encode(&Question::Rooms, &[])).await;
        let view = self.0.view();
        let name = |node: NodeId| {
            let member = view.members.iter().find(|member| member.last.identity.node == node);
            member.map_or_else(|| node.to_string(), |member| member.last.identity.name.clone())
        };
        let rooms = replies.into_iter().filter_map(|(node, reply, _)| match reply {
            Reply::Rooms { rooms } => Some((name(node), rooms)),
            _ => None,
        });
        rooms.collect()
    }

    async fn ask(
        &self,
        node: NodeId,
        question: Vec<u8>,
        deadline: Duration,
    ) -> Result<(Reply, Vec<u8>), String> {
        let answer = self.0.connection().ask(node, question, deadline).await?;
        match decode::<Reply>(&answer) {
            Some((Reply::Busy, _)) => Err("its switch does not answer".to_owned()),
            Some((Reply::Http { answer }, _)) if answer.status == BUSY => Err("it is busy".to_owned()),
            Some(answer) => Ok(answer),
            None => Err("its answer cannot be read".to_owned()),
        }
    }
}

impl Peers for ClusterPeers {
    fn ask_all(&self, mut request: PeerRequest) -> PortFuture<'_, Gathered> {
        Box::pin(async move {
            let body = std::mem::take(&mut request.body);
            let question = encode(&Question::Http { request }, &body);
            let (replies, missing) = self.ask_others(&question).await;
            let answers = replies.into_iter().filter_map(|(_, reply, body)| match reply {
                Reply::Http { answer } => Some(PeerAnswer { body, ..answer }),
                _ => None,
            });
            Ok(Gathered { answers: answers.collect(), missing })
        })
    }

    fn owner(&self, of: LiveThing) -> PortFuture<'_, Owner> {
        Box::pin(async move {
            let (replies, missing) = self.ask_others(&encode(&Question::of(of), &[])).await;
            let owner = replies.iter().find(|(_, reply, _)| matches!(reply, Reply::Has { has: true }));
            Ok(match owner {
                Some((node, ..)) => Owner::Node(*node),
                None if missing.is_empty() => Owner::Absent,
                None => Owner::Unknown(missing),
            })
        })
    }

    fn forward(&self, to: NodeId, mut request: PeerRequest) -> PortFuture<'_, PeerAnswer> {
        Box::pin(async move {
            let body = std::mem::take(&mut request.body);
            let question = encode(&Question::Http { request }, &body);
            match self.0.connection().ask(to, question, FORWARD_MAX).await.map(|answer| decode(&answer)) {
                Ok(Some((Reply::Http { answer }, body))) => Ok(PeerAnswer { body, ..answer }),
                Ok(_) => Err(Problem::Busy { retry_after_s: RETRY_AFTER_S }),
                Err(reason) => {
                    tracing::warn!(node.id = %to, reason, "a request for another node was answered 503");
                    Err(Problem::Busy { retry_after_s: RETRY_AFTER_S })
                }
            }
        })
    }

    fn count_requests(&self, take: RateTake) -> PortFuture<'_, RateTaken> {
        Box::pin(async move { Ok(self.1.count(take).await) })
    }
}

/// Requests that a node drains, for an operator; returns the number of its live calls.
///
/// # Errors
/// It does not answer, or its version does not support the request.
pub async fn ask_to_drain(connection: &Connection, node: NodeId, move_rooms: bool) -> Result<u64, String> {
    let question = encode(&Question::Drain { keep_rooms: !move_rooms }, &[]);
    let answer = connection.ask(node, question, DRAIN_MAX).await?;
    match decode(&answer) {
        Some((Reply::Draining { calls }, _)) => Ok(calls),
        _ => Err("it does not drain by this command: send SIGTERM to it".to_owned()),
    }
}

/// Offers a room to a node; returns whether it accepts the room. A node of an earlier version does not.
pub(super) async fn ask_to_take(connection: &Connection, node: NodeId, state: RoomState) -> bool {
    let question = encode(&Question::TakeRoom { state }, &[]);
    let answer = connection.ask(node, question, TAKE_MAX).await;
    matches!(answer.ok().as_deref().and_then(decode), Some((Reply::Taken { taken: true }, _)))
}

/// The names of the live rooms of a switch, at most 500.
pub(super) async fn live_rooms(switch: &Handle) -> Result<Vec<String>, Problem> {
    let viewer = RoomViewer { scope: Scope::Everything, extensions: Vec::new() };
    let window = Window { limit: Window::LIMIT_MAX, ..Window::default() };
    let page = LiveRooms::list(switch, viewer, None, window).await?;
    Ok(page.items.iter().map(|room| room.room.to_string()).collect())
}

/// The request of an operator that this node drains.
#[derive(Clone, Debug, Default)]
pub struct DrainRequest {
    /// Notified when it arrives.
    pub asked: Arc<Notify>,
    /// Whether the node's conference rooms stay with their calls.
    pub keep_rooms: Arc<AtomicBool>,
}

/// Answers the requests of other nodes; `drain` is notified when one requests that this node drains.
pub fn answering(switch: Handle, api: PeerService, drain: DrainRequest) -> Answering {
    Arc::new(move |question: Bytes| {
        let (switch, api, drain) = (switch.clone(), api.clone(), drain.clone());
        let answer: BoxFuture<'static, Vec<u8>> = Box::pin(async move {
            match decode::<Question>(&question) {
                Some((Question::Drain { keep_rooms }, _)) => {
                    drain.keep_rooms.store(keep_rooms, Ordering::Relaxed);
                    drain.asked.notify_one();
                    encode(&Reply::Draining { calls: switch.live_calls() as u64 }, &[])
                }
                Some((question, body)) => answer(&switch, &api, question, body).await,
                // A later version may send requests that this one does not support.
                None => encode(&Reply::Busy, &[]),
            }
        });
        answer
    })
}

async fn answer(switch: &Handle, api: &PeerService, question: Question, body: Vec<u8>) -> Vec<u8> {
    let has = match question {
        // This request was answered earlier.
        Question::Drain { .. } => return encode(&Reply::Busy, &[]),
        Question::Rooms => {
            let rooms = live_rooms(switch).await;
            return encode(&rooms.map_or(Reply::Busy, |rooms| Reply::Rooms { rooms }), &[]);
        }
        Question::TakeRoom { state } => {
            // If the switch does not answer, the room stays where it is.
            let taken = switch.ask(ExpectRoom(state)).await.unwrap_or(false);
            return encode(&Reply::Taken { taken }, &[]);
        }
        Question::Http { request } => {
            let mut answer = api.answer(PeerRequest { body, ..request }).await;
            let body = std::mem::take(&mut answer.body);
            return encode(&Reply::Http { answer }, &body);
        }
        Question::Call { call } => LiveCalls::find(switch, call).await.map(|found| found.is_some()),
        Question::Room { room } => match room.parse() {
            Ok(room) => LiveRooms::find(switch, room).await.map(|found| found.is_some()),
            Err(_) => Ok(false),
        },
        Question::RoomOfCall { call } => switch.by_call(call).await.map(|found| found.is_some()),
    };
    match has {
        Ok(has) => encode(&Reply::Has { has }, &[]),
        Err(_) => encode(&Reply::Busy, &[]),
    }
}

/// How long each node may take for its part of a list, or for a lookup.
const GATHER_MAX: Duration = Duration::from_millis(300);
/// How long the owner of a live call or room may take: its switch answers within two seconds, the database may be
/// slow.
const FORWARD_MAX: Duration = Duration::from_secs(10);
/// How long a node may take to confirm that it drains.
const DRAIN_MAX: Duration = Duration::from_secs(5);
/// How long a node may take to accept or refuse a room. Controls of the room are refused in the meantime.
const TAKE_MAX: Duration = Duration::from_secs(1);
const RETRY_AFTER_S: u64 = 1;
const BUSY: u16 = 503;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_round_trip_with_their_bodies() {
        let request = PeerRequest {
            method: "POST".to_owned(),
            target: "/calls/x/hold?a=b".to_owned(),
            headers: vec![("authorization".to_owned(), "Bearer tel_x".to_owned())],
            client: "192.0.2.7".parse().unwrap(),
            body: Vec::new(),
        };
        let bytes = encode(&Question::Http { request: request.clone() }, b"{\"leg\":\n1}");
        let (question, body) = decode::<Question>(&bytes).unwrap();
        assert!(matches!(question, Question::Http { request: read } if read == request));
        assert_eq!(body, b"{\"leg\":\n1}");
        let later = b"{\"reply\":\"has\",\"has\":true,\"since\":7}\n";
        assert!(matches!(decode::<Reply>(later), Some((Reply::Has { has: true }, body)) if body.is_empty()));
        for wrong in [&b""[..], b"{}\n", b"{\"reply\":\"has\",\"has\":true}", b"\n\n", b"\xff\n"] {
            assert!(decode::<Reply>(wrong).is_none());
        }
    }
}
