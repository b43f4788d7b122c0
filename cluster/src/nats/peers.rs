//! Requests between nodes: a question to one of them, an answer in time or none.

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

/// What nodes are asked about: each topic has its own listener, so that none waits for the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Topic {
    /// Recordings and traces on the disk of a node.
    Files,
    /// Limits that the nodes keep together.
    Limits,
    /// Live things, and requests of clients.
    Live,
}

/// Answers one question of another node.
pub type Answering = Arc<dyn Fn(Bytes) -> BoxFuture<'static, Vec<u8>> + Send + Sync>;

/// The task that answers the other nodes, before it runs.
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
    /// Questions that it refused, because too many were under way.
    pub refused: AtomicU64,
}

impl Connection {
    /// Asks another node about live things, which has until `deadline`.
    ///
    /// # Errors
    /// No node listens, or it does not answer in time.
    pub async fn ask(&self, node: NodeId, question: Vec<u8>, deadline: Duration) -> Result<Bytes, String> {
        self.ask_about(Topic::Live, node, question, deadline).await
    }

    /// Asks another node about a topic, which has until `deadline`.
    ///
    /// # Errors
    /// No node listens, or it does not answer in time.
    pub async fn ask_about(
        &self,
        topic: Topic,
        node: NodeId,
        question: Vec<u8>,
        deadline: Duration,
    ) -> Result<Bytes, String> {
        let request = Request::new().payload(question.into()).timeout(Some(deadline));
        let asked = self.client.send_request(subject(self, topic, node), request);
        // The client's own deadline begins when the question is sent; without a connection it waits before.
        match tokio::time::timeout(deadline, asked).await {
            Ok(Ok(answer)) => Ok(answer.payload),
            Ok(Err(error)) => Err(chain(&error)),
            Err(_) => Err("no answer in time".to_owned()),
        }
    }
}

impl PeerListener {
    /// Answers questions about a topic to `node` by `answering`.
    pub fn new(
        connection: Connection,
        (topic, node): (Topic, NodeId),
        answering: Answering,
    ) -> (Self, Arc<PeerCounters>) {
        let counters = Arc::new(PeerCounters::default());
        (PeerListener { connection, topic, node, answering, counters: Arc::clone(&counters) }, counters)
    }

    /// Runs until `stop` turns true. The client subscribes again by itself after a lost connection.
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
                        // Without an answer the other node sends its client 503 with Retry-After.
                        self.counters.refused.fetch_add(1, Ordering::Relaxed);
                        continue;
                    }
                    let (answer, client) = ((self.answering)(question.payload), self.connection.client.clone());
                    let counters = Arc::clone(&self.counters);
                    under_way.push(async move {
                        let answer = answer.await;
                        // A node that has gone away meanwhile needs no answer.
                        let _ = client.publish(reply, answer.into()).await;
                        counters.answered.fetch_add(1, Ordering::Relaxed);
                    }.boxed());
                }
            }
        }
        // The client is closed: no question comes any more.
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

/// Questions that are answered at the same time.
const UNDER_WAY_MAX: usize = 64;
const SUBSCRIBE_AGAIN: Duration = Duration::from_secs(1);
