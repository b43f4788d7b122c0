//! Decides which members are up, by the age of their last heartbeats on this node's monotonic clock.
//!
//! A node writes its heartbeat once a second and reads those of all members, including its own. Its own heartbeat
//! proves that NATS carries both directions. Without it for three seconds the node is *isolated* and judges no other
//! member, because their silence proves nothing about them. When the node is linked again, every member has three
//! seconds from then on. For the same reason a member is judged only after an own heartbeat has returned at least two
//! seconds after the last one of the member.
//!
//! The store repeats its last values to each new reader. The age of a repeated value is unknown, so a member counts as
//! up from its second heartbeat on.

use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, Instant};

use sidetone_model::cluster::NodeState;
use sidetone_model::ids::NodeId;
use sidetone_model::time::Now;

use super::heartbeat::{Figures, Heartbeat, Identity, RunId};
use super::peer::{Novelty, Peer, Presence};
use super::view::{MemberView, View};

/// Inputs of the machine.
#[derive(Clone, Debug)]
pub enum Input {
    /// The current load of this node.
    Figures(Figures),
    /// A heartbeat of any member was read.
    Heard(Heartbeat),
    /// The connection to NATS failed, with the reason; a heartbeat marks the next success.
    Failed(String),
    /// This node stops.
    Leave,
    /// Time has passed.
    Timeout,
}

/// Actions and reports of the machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// Another process runs under the name of this node, or no longer does.
    Double(bool),
    /// This node's heartbeats do not return, with the reason.
    Isolated(String),
    /// A member is up, for the first time or again.
    Joined(NodeId),
    /// A member has stopped in order.
    Left(NodeId),
    /// This node's heartbeats return.
    Linked,
    /// A member was silent for three seconds, or has restarted.
    Lost(NodeId),
    /// Write this heartbeat under the node's id.
    Publish(Heartbeat),
    /// Reopen the readers of the store: they return nothing.
    Reopen,
}

/// The state machine of the members.
#[derive(Debug)]
pub struct Membership {
    identity: Identity,
    figures: Figures,
    seq: u64,
    next_beat: Instant,
    link: Link,
    peers: BTreeMap<NodeId, Peer>,
    double: Option<Double>,
    refused: u64,
    outputs: VecDeque<Output>,
}

/// Whether NATS returns this node's heartbeats.
#[derive(Debug)]
struct Link {
    is_up: bool,
    /// When the last own heartbeat returned, or the machine was created.
    echo: Instant,
    /// The silence of others counts from this time on.
    since: Instant,
    /// When reopening the readers was last requested.
    reopened: Instant,
    /// Why the last attempt failed.
    reason: String,
}

/// Another process with this node's id.
#[derive(Debug)]
struct Double {
    run: RunId,
    seq: u64,
    heard: Instant,
    /// Whether a second heartbeat was heard: the first one may be of an earlier run of this node.
    is_sure: bool,
}

impl Membership {
    /// A node that starts.
    pub fn new(identity: Identity, now: Instant) -> Self {
        Membership {
            identity,
            figures: Figures::default(),
            seq: 0,
            next_beat: now,
            link: Link { is_up: false, echo: now, since: now, reopened: now, reason: NOT_YET.to_owned() },
            peers: BTreeMap::new(),
            double: None,
            refused: 0,
            outputs: VecDeque::new(),
        }
    }

    /// Handles an input; drain [`Membership::poll_output`] afterwards.
    pub fn handle_input(&mut self, now: Now, input: Input) {
        match input {
            Input::Figures(figures) => self.figures = figures,
            Input::Heard(heartbeat) if heartbeat.identity.node == self.identity.node => {
                self.hear_own(now.instant, &heartbeat);
            }
            Input::Heard(heartbeat) => self.hear(now.instant, heartbeat),
            Input::Failed(reason) => self.link.reason = reason,
            Input::Leave => self.publish(now, true),
            Input::Timeout => {}
        }
        self.check_times(now);
    }

    /// Returns the next output.
    pub fn poll_output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    /// When [`Input::Timeout`] is due.
    pub fn next_timeout(&self) -> Option<Instant> {
        let silences = self.peers.values().filter_map(|peer| self.silence_ends(peer));
        let link = if self.link.is_up { self.link.echo } else { self.link.reopened };
        let double = self.double.as_ref().map(|double| double.heard + GONE_AFTER);
        silences.chain(double).chain([self.next_beat, link + GONE_AFTER]).min()
    }

    /// The cluster as this node sees it.
    pub fn view(&self, now: Now) -> View {
        let own = MemberView {
            last: self.heartbeat(now, false),
            state: NodeState::Up,
            heard: now.instant,
            is_this: true,
        };
        let others = self.peers.values().map(|peer| MemberView {
            last: peer.last.clone(),
            state: peer.shown(self.link.is_up),
            heard: peer.heard,
            is_this: false,
        });
        let mut members: Vec<_> = others.chain([own]).collect();
        members.sort_by(|a, b| {
            (&a.last.identity.name, a.last.identity.node).cmp(&(&b.last.identity.name, b.last.identity.node))
        });
        View {
            members,
            is_linked: self.link.is_up,
            reason: if self.link.is_up { String::new() } else { self.link.reason.clone() },
            has_double: self.double.as_ref().is_some_and(|double| double.is_sure),
            refused: self.refused,
        }
    }

    /// Handles a heartbeat with this node's id.
    fn hear_own(&mut self, now: Instant, heartbeat: &Heartbeat) {
        let run = heartbeat.identity.run;
        if run != self.identity.run {
            return self.hear_double(now, run, heartbeat.seq);
        }
        self.link.echo = now;
        if !self.link.is_up {
            self.link.is_up = true;
            self.link.since = now;
            self.outputs.push_back(Output::Linked);
        }
    }

    fn hear_double(&mut self, now: Instant, run: RunId, seq: u64) {
        match &mut self.double {
            Some(double) if double.run == run && seq > double.seq => {
                (double.seq, double.heard) = (seq, now);
                if !double.is_sure {
                    double.is_sure = true;
                    self.outputs.push_back(Output::Double(true));
                }
            }
            // A repeated heartbeat.
            Some(double) if double.run == run => {}
            // A third process replaces the second one only after that one has ended.
            Some(double) if double.is_sure => {}
            _ => self.double = Some(Double { run, seq, heard: now, is_sure: false }),
        }
    }

    /// Handles a heartbeat of another member.
    fn hear(&mut self, now: Instant, heartbeat: Heartbeat) {
        let node = heartbeat.identity.node;
        let Some(peer) = self.peers.get_mut(&node) else {
            return self.meet(now, heartbeat);
        };
        match peer.novelty(&heartbeat) {
            Novelty::Old => return,
            // Its calls ended with its last run, so the member that was up is lost.
            Novelty::NewRun if peer.state == Presence::Up && !peer.last.leaving => {
                self.outputs.push_back(Output::Lost(node));
            }
            Novelty::NewRun | Novelty::Next => {}
        }
        let had_left = peer.last.leaving;
        let leaves = heartbeat.leaving;
        (peer.last, peer.heard) = (heartbeat, now);
        let was_up = peer.state == Presence::Up && !had_left;
        peer.state = Presence::Up;
        match (leaves, was_up) {
            (true, _) if !had_left => self.outputs.push_back(Output::Left(node)),
            (false, false) => self.outputs.push_back(Output::Joined(node)),
            // It is still up, or it had left before.
            _ => {}
        }
    }

    /// Handles the first heartbeat of a member.
    fn meet(&mut self, now: Instant, heartbeat: Heartbeat) {
        if self.peers.len() >= MEMBERS_MAX {
            self.refused = self.refused.saturating_add(1);
            return;
        }
        self.peers.insert(heartbeat.identity.node, Peer::new(heartbeat, now));
    }

    fn check_times(&mut self, now: Now) {
        let instant = now.instant;
        if self.link.is_up && instant.saturating_duration_since(self.link.echo) >= GONE_AFTER {
            self.link.is_up = false;
            self.link.reopened = instant;
            self.outputs.push_back(Output::Isolated(self.link.reason.clone()));
            self.outputs.push_back(Output::Reopen);
        } else if !self.link.is_up && instant.saturating_duration_since(self.link.reopened) >= GONE_AFTER {
            self.link.reopened = instant;
            self.outputs.push_back(Output::Reopen);
        }
        if self.double.as_ref().is_some_and(|double| instant >= double.heard + GONE_AFTER) {
            let was_sure = self.double.take().is_some_and(|double| double.is_sure);
            if was_sure {
                self.outputs.push_back(Output::Double(false));
            }
        }
        self.check_peers(instant);
        if instant >= self.next_beat {
            self.publish(now, false);
        }
    }

    /// Finds the members whose silence is long enough, and forgets those that have been down for an hour.
    fn check_peers(&mut self, now: Instant) {
        let due: Vec<NodeId> = self
            .peers
            .iter()
            .filter(|(_, peer)| self.silence_ends(peer).is_some_and(|end| now >= end))
            .map(|(node, _)| *node)
            .collect();
        for node in due {
            let Some(peer) = self.peers.get_mut(&node) else { continue };
            if matches!(peer.state, Presence::Gone { .. }) || peer.last.leaving {
                self.peers.remove(&node);
            } else {
                peer.state = Presence::Gone { since: now };
                self.outputs.push_back(Output::Lost(node));
            }
        }
    }

    /// When the silence of a member has a consequence; `None` while that waits for an own heartbeat.
    fn silence_ends(&self, peer: &Peer) -> Option<Instant> {
        match peer.state {
            _ if peer.last.leaving => Some(peer.heard + FORGOTTEN_AFTER),
            Presence::Gone { since } => Some(since + FORGOTTEN_AFTER),
            Presence::Stored | Presence::Up if self.link.is_up => {
                let end = peer.heard.max(self.link.since) + GONE_AFTER;
                // A node that was just cut off received its own last heartbeat at most shortly after the member's.
                (self.link.echo + BEAT_EVERY >= end).then_some(end)
            }
            Presence::Stored | Presence::Up => None,
        }
    }

    fn publish(&mut self, now: Now, leaving: bool) {
        self.seq = self.seq.saturating_add(1);
        self.next_beat = now.instant + BEAT_EVERY;
        let heartbeat = self.heartbeat(now, leaving);
        self.outputs.push_back(Output::Publish(heartbeat));
    }

    fn heartbeat(&self, now: Now, leaving: bool) -> Heartbeat {
        Heartbeat {
            v: Heartbeat::FORMAT,
            identity: self.identity.clone(),
            seq: self.seq,
            at: now.wall,
            figures: self.figures,
            leaving,
        }
    }
}

/// The interval of heartbeats.
pub const BEAT_EVERY: Duration = Duration::from_secs(1);
/// How long a member may be silent.
pub const GONE_AFTER: Duration = Duration::from_secs(3);
/// The maximum number of members of a cluster; further ones are refused.
pub const MEMBERS_MAX: usize = 256;
/// How long a member that is down stays in the list.
const FORGOTTEN_AFTER: Duration = Duration::from_secs(3_600);
/// The reason until the first attempt has failed.
const NOT_YET: &str = "NATS has not answered yet";
