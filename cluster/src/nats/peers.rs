//! Requests between nodes: a question to one node, answered before a deadline or not at all.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use async_nats::{Request, Subscriber};
use bytes::Bytes;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use futures_util::{FutureExt as _, StreamExt as _};
use sidetone_model::ids::NodeId;
use tokio::sync::watch;

use super::connection::{Connection, chain};

/// The topic of a question. Each topic has its own listener, so that no topic waits for another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Topic {
    /// Recordings and traces on the disk of a node.
    Files,
    /// Limits that the nodes share.
    Limits,
    /// Live calls, rooms and phones, and requests of clients.
    Live,
}

/// Answers one question of another node.
pub type Answering = Arc<dyn Fn(Bytes) -> BoxFuture<'static, Vec<u8>> + Send + Sync>;

/// The task that answers the questions of other nodes, before it runs.
pub struct PeerListener {
    connection: Connection,
    topic: Topic,
    node: NodeId,
    answering: Answering,
    counters: Arc<PeerCounters>,
}

/// The counters of questions between nodes.
#[derive(Debug, Default)]
pub struct PeerCounters {
    /// Questions that this node answered.
    pub answered: AtomicU64,
    /// Questions that it refused, because too many were in progress.
    pub refused: AtomicU64,
}

impl Connection {
    /// Asks another node about live objects; the answer must arrive before `deadline`.
    ///
    /// # Errors
    /// No node listens, or it does not answer before the deadline.
    pub async fn ask(&self, node: NodeId, question: Vec<u8>, deadline: Duration) -> Result<Bytes, String> {
        self.ask_about(Topic::Live, node, question, deadline).await
    }

    /// Asks another node about a topic; the answer must arrive before `deadline`.
    ///
    /// # Errors
    /// No node listens, or it does not answer before the deadline.
    pub async fn ask_about(
        &self,
        topic: Topic,
        node: NodeId,
        question: Vec<u8>,
        deadline: Duration,
    ) -> Result<Bytes, String> {
        let request = Request::new().payload(question.into()).timeout(Some(deadline));
        let asked = self.client.send_request(subject(self, topic, node), request);
        // The client's own timeout starts when the question is sent; without a connection the client waits before that.
        match tokio::time::timeout(deadline, asked).await {
            Ok(Ok(answer)) => Ok(answer.payload),
            Ok(Err(error)) => Err(chain(&error)),
            Err(_) => Err("no answer in time".to_owned()),
        }
    }
}

impl PeerListener {
    /// Answers questions to `node` about a topic with `answering`.
    pub fn new(
        connection: Connection,
        (topic, node): (Topic, NodeId),
        answering: Answering,
    ) -> (Self, Arc<PeerCounters>) {
        let counters = Arc::new(PeerCounters::default());
        (PeerListener { connection, topic, node, answering, counters: Arc::clone(&counters) }, counters)
    }

    /// Runs until `stop` turns true. The client subscribes again after a lost connection.
    pub async fn run(&mut self, mut stop: watch::Receiver<bool>) {
        let mut under_way = FuturesUnordered::new();
        let Some(mut questions) = self.subscribe(&mut stop).await else { return };
        loop {
            tokio::select! {
                _ = stop.wait_for(|stop| *stop) => return,
                Some(()) = under_way.next() => {}
                question = questions.next() => {
                    let Some(question) = question else { break };
                    let Some(reply) = question.reply else { continue };
                    if under_way.len() >= UNDER_WAY_MAX {
                        // Without an answer the other node responds to its client with 503 and Retry-After.
                        self.counters.refused.fetch_add(1, Ordering::Relaxed);
                        continue;
                    }
                    let (answer, client) = ((self.answering)(question.payload), self.connection.client.clone());
                    let counters = Arc::clone(&self.counters);
                    under_way.push(async move {
                        let answer = answer.await;
                        // The other node may have disconnected; it then needs no answer.
                        let _ = client.publish(reply, answer.into()).await;
                        counters.answered.fetch_add(1, Ordering::Relaxed);
                    }.boxed());
                }
            }
        }
        // The client is closed: no question arrives any more.
        let _ = stop.wait_for(|stop| *stop).await;
    }

    async fn subscribe(&self, stop: &mut watch::Receiver<bool>) -> Option<Subscriber> {
        loop {
            let subject = subject(&self.connection, self.topic, self.node);
            if let Ok(subscriber) = self.connection.client.subscribe(subject).await {
                return Some(subscriber);
            }
            tokio::select! {
                _ = stop.wait_for(|stop| *stop) => return None,
                () = tokio::time::sleep(SUBSCRIBE_AGAIN) => {}
            }
        }
    }
}

fn subject(connection: &Connection, topic: Topic, node: NodeId) -> String {
    let topic = match topic {
        Topic::Files => "files",
        Topic::Limits => "limits",
        Topic::Live => "peer",
    };
    format!("{}.{topic}.{node}", connection.settings.name)
}

/// The maximum number of questions answered at the same time.
const UNDER_WAY_MAX: usize = 64;
const SUBSCRIBE_AGAIN: Duration = Duration::from_secs(1);
