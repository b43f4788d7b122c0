//! Detects runs of nodes that ended without leaving in order, so that another node records their calls.
//!
//! Every node watches the view. A run is an orphan when it was silent for [`OrphanConfig::after`] while this node was
//! linked. The node with the lowest id among those that are up acts first; each further node acts some seconds later,
//! in case the earlier ones fail. A call that already has a record gets no second one.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use sidetone_model::cluster::NodeState;
use sidetone_model::ids::NodeId;
use sidetone_model::time::Timestamp;

use crate::membership::{MEMBERS_MAX, RunId, View};

/// The delays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OrphanConfig {
    /// How long a run must be silent.
    pub after: Duration,
    /// How much later each further node acts.
    pub rank_step: Duration,
}

/// A run of a node that ended without leaving in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Orphan {
    /// The node.
    pub node: NodeId,
    /// The run.
    pub run: RunId,
    /// The last time at which its calls are known to have been alive, by its own clock.
    pub alive_at: Timestamp,
}

/// The runs that this node has heard of.
#[derive(Debug)]
pub struct Orphans {
    config: OrphanConfig,
    runs: BTreeMap<(NodeId, RunId), Run>,
}

#[derive(Debug)]
struct Run {
    alive_at: Timestamp,
    /// The start of its silence, not counting the time in which this node was isolated; `None` while it is up.
    silent_since: Option<Instant>,
    /// Whether it was reported, so that it is not reported again.
    is_reported: bool,
}

impl Orphans {
    /// Without runs.
    pub fn new(config: OrphanConfig) -> Self {
        Orphans { config, runs: BTreeMap::new() }
    }

    /// Takes the view at `now`, and returns the runs that this node must record now.
    ///
    /// *Bounds*: at most twice as many runs as a cluster has members; reported runs are forgotten first.
    pub fn observe(&mut self, now: Instant, view: &View) -> Vec<Orphan> {
        for member in view.members.iter().filter(|member| !member.is_this) {
            let (node, run) = (member.last.identity.node, member.last.identity.run);
            // An earlier run of the node has ended; if it is still in the table, it did not leave in order.
            for ((_, other), earlier) in self.runs.range_mut((node, RunId::MIN)..=(node, RunId::MAX)) {
                if *other != run && earlier.silent_since.is_none() {
                    earlier.silent_since = Some(now);
                }
            }
            if member.state == NodeState::Left {
                // It stored its records before it left.
                self.runs.remove(&(node, run));
                continue;
            }
            let is_up = member.state == NodeState::Up;
            let entry = self.runs.entry((node, run));
            let entry =
                entry.or_insert(Run { alive_at: member.last.at, silent_since: None, is_reported: false });
            if is_up {
                *entry = Run { alive_at: member.last.at, silent_since: None, is_reported: false };
            } else if member.state == NodeState::Gone && entry.silent_since.is_none() {
                entry.alive_at = member.last.at;
                entry.silent_since = Some(member.heard);
            }
        }
        if !view.is_linked {
            // The others' state is unknown while this node is isolated, so their silence is measured from here again.
            for run in self.runs.values_mut().filter(|run| run.silent_since.is_some()) {
                run.silent_since = Some(now);
            }
            return Vec::new();
        }
        let due = self.config.after + self.config.rank_step * rank(view);
        let mut orphans = Vec::new();
        for ((node, run), state) in &mut self.runs {
            let is_due = state.silent_since.is_some_and(|since| now.saturating_duration_since(since) >= due);
            if is_due && !state.is_reported {
                state.is_reported = true;
                orphans.push(Orphan { node: *node, run: *run, alive_at: state.alive_at });
            }
        }
        self.forget();
        orphans
    }

    /// Postpones an orphan that could not be recorded or may be alive: it is reported again after the same silence from
    /// `now` on.
    pub fn postpone(&mut self, now: Instant, orphan: &Orphan) {
        if let Some(run) = self.runs.get_mut(&(orphan.node, orphan.run)) {
            run.is_reported = false;
            run.silent_since = run.silent_since.map(|_| now);
        }
    }

    fn forget(&mut self) {
        while self.runs.len() > RUNS_MAX {
            let reported = self.runs.iter().find(|(_, run)| run.is_reported).map(|(key, _)| *key);
            let Some(key) = reported.or_else(|| self.runs.keys().next().copied()) else { return };
            self.runs.remove(&key);
        }
    }
}

/// The number of nodes that are up and act before this one.
fn rank(view: &View) -> u32 {
    let own = view.members.iter().find(|member| member.is_this).map(|member| member.last.identity.node);
    let before = view
        .members
        .iter()
        .filter(|member| member.state == NodeState::Up && Some(member.last.identity.node) < own)
        .count();
    u32::try_from(before).unwrap_or(u32::MAX)
}

const RUNS_MAX: usize = 2 * MEMBERS_MAX;

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;
    use crate::membership::{Figures, Heartbeat, Identity, MemberView};

    const CONFIG: OrphanConfig =
        OrphanConfig { after: Duration::from_secs(60), rank_step: Duration::from_secs(3) };

    fn member(node: u128, run: u128, state: NodeState, heard: Instant, is_this: bool) -> MemberView {
        let identity = Identity {
            node: NodeId(Uuid::from_u128(node)),
            name: format!("node-{node}"),
            run: RunId(Uuid::from_u128(run)),
            started_at: Timestamp::default(),
            version: String::new(),
            sip: Vec::new(),
            edge: None,
            http: String::new(),
        };
        let at = Timestamp::from_micros(i64::try_from(run).unwrap());
        let last = Heartbeat { v: 1, identity, seq: 1, at, figures: Figures::default(), leaving: false };
        MemberView { last, state, heard, is_this }
    }

    fn view(is_linked: bool, members: Vec<MemberView>) -> View {
        View { members, is_linked, reason: String::new(), has_double: false, refused: 0 }
    }

    /// The reported runs, with the second at which each is reported.
    #[expect(
        clippy::disallowed_methods,
        reason = "one reading of the clock, as the origin of simulated time"
    )]
    fn reported(own: u128, seconds: u64, at: impl Fn(Instant, u64) -> View) -> Vec<(u64, u128)> {
        let began = Instant::now();
        let mut orphans = Orphans::new(CONFIG);
        let mut found = Vec::new();
        for second in 0..seconds {
            let now = began + Duration::from_secs(second);
            let mut view = at(began, second);
            view.members.push(member(own, 1_000 + own, NodeState::Up, now, true));
            for orphan in orphans.observe(now, &view) {
                found.push((second, orphan.run.0.as_u128()));
            }
        }
        found
    }

    #[test]
    fn a_run_that_is_gone_for_a_minute_is_reported_once_and_by_the_lowest_node_first() {
        let at = |began: Instant, second: u64| {
            let state = if second < 13 { NodeState::Up } else { NodeState::Gone };
            let heard = began + Duration::from_secs(second.min(10));
            let now = began + Duration::from_secs(second);
            view(true, vec![member(5, 50, state, heard, false), member(7, 70, NodeState::Up, now, false)])
        };
        assert_eq!(reported(1, 300, at), [(70, 50)]);
        assert_eq!(reported(9, 300, at), [(73, 50)], "node 7 acts before");
    }

    #[test]
    fn a_run_that_comes_back_in_time_or_takes_leave_is_not() {
        let back = |began: Instant, second: u64| {
            let state = if (13..60).contains(&second) { NodeState::Gone } else { NodeState::Up };
            view(true, vec![member(5, 50, state, began + Duration::from_secs(10), false)])
        };
        assert_eq!(reported(1, 300, back), []);
        let left = |began: Instant, second: u64| {
            let state = if second < 13 { NodeState::Up } else { NodeState::Left };
            view(true, vec![member(5, 50, state, began, false)])
        };
        assert_eq!(reported(1, 300, left), []);
    }

    #[test]
    fn the_run_before_a_restart_is_reported() {
        let at = |began: Instant, second: u64| {
            let now = began + Duration::from_secs(second);
            let run = if second < 20 { 50 } else { 51 };
            view(true, vec![member(5, run, NodeState::Up, now, false)])
        };
        assert_eq!(reported(1, 300, at), [(80, 50)]);
    }

    #[test]
    fn an_isolated_node_reports_nothing_and_counts_from_its_return() {
        let at = |began: Instant, second: u64| {
            let is_linked = !(30..100).contains(&second);
            let state = match second {
                0..13 => NodeState::Up,
                _ if is_linked => NodeState::Gone,
                _ => NodeState::Unknown,
            };
            view(is_linked, vec![member(5, 50, state, began + Duration::from_secs(10), false)])
        };
        assert_eq!(reported(1, 300, at), [(159, 50)]);
    }

    #[test]
    #[expect(
        clippy::disallowed_methods,
        reason = "one reading of the clock, as the origin of simulated time"
    )]
    fn what_could_not_be_recorded_is_reported_again() {
        let began = Instant::now();
        let mut orphans = Orphans::new(CONFIG);
        let gone = view(true, vec![member(5, 50, NodeState::Gone, began, false)]);
        let now = began + Duration::from_secs(60);
        let found = orphans.observe(now, &gone);
        assert_eq!(found.len(), 1);
        assert_eq!(orphans.observe(now + Duration::from_secs(600), &gone), []);
        orphans.postpone(now, &found[0]);
        assert_eq!(orphans.observe(now + Duration::from_secs(59), &gone), []);
        assert_eq!(orphans.observe(now + Duration::from_secs(60), &gone), found);
    }
}
