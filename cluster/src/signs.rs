//! Detects which of the nodes that are down may only be cut off from NATS, with live calls: such a node keeps
//! incrementing its beat in the database.
//!
//! A node counts as alive until its beat has not changed for [`STILL_FOR`]; until then its slots of a limit stay
//! counted. While the database does not answer, the state of every node is unknown.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use sidetone_model::cluster::NodeState;
use sidetone_model::ids::NodeId;

use crate::membership::View;

/// The nodes that are down.
#[derive(Debug, Default)]
pub struct SignsOfLife {
    gone: BTreeMap<NodeId, Sign>,
    /// The time of the next read of the beats.
    next: Option<Instant>,
}

#[derive(Debug, Default)]
struct Sign {
    /// The last beat, and the time since which it is unchanged.
    beat: Option<(i64, Instant)>,
    is_dead: bool,
}

impl SignsOfLife {
    /// Takes the view: a node that is up again, has left or is forgotten is no longer watched.
    pub fn observe(&mut self, view: &View) {
        // A node that is cut off itself has no information about the others.
        if !view.is_linked {
            return;
        }
        // For an unknown node, only a stored heartbeat was read.
        let is_gone = |state: NodeState| matches!(state, NodeState::Gone | NodeState::Unknown);
        let gone = view.members.iter().filter(|member| is_gone(member.state));
        let gone: Vec<NodeId> = gone.map(|member| member.last.identity.node).collect();
        self.gone.retain(|node, _| gone.contains(node));
        for node in gone {
            self.gone.entry(node).or_default();
        }
    }

    /// The nodes whose beat must be read now; returns them once a second.
    pub fn take_due(&mut self, now: Instant) -> Vec<NodeId> {
        if self.gone.is_empty() || self.next.is_some_and(|next| next > now) {
            return Vec::new();
        }
        self.next = Some(now + READ_EVERY);
        self.gone.keys().copied().collect()
    }

    /// Takes the beats of nodes; `None` for one that could not be read.
    pub fn read(&mut self, now: Instant, beats: &[(NodeId, Option<i64>)]) {
        for (node, beat) in beats {
            let Some(sign) = self.gone.get_mut(node) else { continue };
            match (*beat, sign.beat) {
                // A live node cannot increment its beat either, so its time restarts.
                (None, _) => sign.beat = None,
                (Some(beat), Some((last, since))) if beat == last => {
                    sign.is_dead = now.saturating_duration_since(since) >= STILL_FOR;
                }
                (Some(beat), last) => {
                    sign.is_dead &= last.is_none();
                    sign.beat = Some((beat, now));
                }
            }
        }
    }

    /// The nodes that are down and may be alive.
    pub fn may_live(&self) -> Vec<NodeId> {
        self.gone.iter().filter(|(_, sign)| !sign.is_dead).map(|(node, _)| *node).collect()
    }
}

/// How long the beat of a node must stay unchanged. A node that is cut off increments it once a second.
pub const STILL_FOR: Duration = Duration::from_secs(6);
/// How often the beats are read.
const READ_EVERY: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use sidetone_model::time::Timestamp;
    use uuid::Uuid;

    use super::*;
    use crate::membership::{Figures, Heartbeat, Identity, MemberView, RunId};

    const NODE: NodeId = NodeId(Uuid::from_u128(7));

    #[expect(clippy::disallowed_methods, reason = "any instant begins the simulated time")]
    fn any_instant() -> Instant {
        Instant::now()
    }

    fn view(state: NodeState, is_linked: bool) -> View {
        let identity = Identity {
            node: NODE,
            name: "seven".into(),
            run: RunId(Uuid::from_u128(1)),
            started_at: Timestamp::from_micros(0),
            version: "1".into(),
            sip: Vec::new(),
            edge: None,
            http: String::new(),
        };
        let last = Heartbeat {
            v: Heartbeat::FORMAT,
            identity,
            seq: 1,
            at: Timestamp::from_micros(0),
            figures: Figures::default(),
            leaving: false,
        };
        let member = MemberView { last, state, heard: any_instant(), is_this: false };
        View { members: vec![member], is_linked, reason: String::new(), has_double: false, refused: 0 }
    }

    /// The state after these beats, one read each second.
    fn after(beats: &[Option<i64>]) -> (SignsOfLife, Instant) {
        let (mut signs, mut now) = (SignsOfLife::default(), any_instant());
        signs.observe(&view(NodeState::Gone, true));
        for beat in beats {
            assert_eq!(signs.take_due(now), [NODE]);
            assert!(signs.take_due(now).is_empty(), "once in a second");
            signs.read(now, &[(NODE, *beat)]);
            now += READ_EVERY;
        }
        (signs, now)
    }

    #[test]
    fn a_node_is_dead_when_its_beat_stands_still() {
        let (signs, _) = after(&[Some(5); 6]);
        assert_eq!(signs.may_live(), [NODE], "not for long enough");
        let (mut signs, now) = after(&[Some(5); 7]);
        assert!(signs.may_live().is_empty());
        // The beat changes again: the database was unreachable for this node only.
        signs.read(now, &[(NODE, Some(6))]);
        assert_eq!(signs.may_live(), [NODE]);
    }

    #[test]
    fn a_node_that_counts_lives_and_nothing_is_known_without_the_database() {
        let counting: Vec<Option<i64>> = (0..60).map(|second| Some(second / 2)).collect();
        assert_eq!(after(&counting).0.may_live(), [NODE]);
        let mut silent = vec![Some(5); 6];
        silent.extend([None; 30]);
        assert_eq!(after(&silent).0.may_live(), [NODE]);
        // The time restarts with the database, and a dead node stays dead.
        silent.extend([Some(5); 6]);
        assert_eq!(after(&silent).0.may_live(), [NODE]);
        silent.push(Some(5));
        silent.extend([None; 3]);
        assert!(after(&silent).0.may_live().is_empty());
        silent.push(Some(5));
        assert!(after(&silent).0.may_live().is_empty());
    }

    #[test]
    fn a_node_that_is_back_is_looked_at_no_longer_and_a_cut_off_observer_keeps_what_it_knows() {
        let (mut signs, now) = after(&[Some(5); 7]);
        signs.observe(&view(NodeState::Unknown, false));
        assert!(signs.may_live().is_empty() && !signs.take_due(now).is_empty());
        signs.observe(&view(NodeState::Up, true));
        assert!(signs.take_due(now + READ_EVERY).is_empty() && signs.may_live().is_empty());
        signs.observe(&view(NodeState::Gone, true));
        assert_eq!(signs.may_live(), [NODE], "its second loss is another one");
    }
}
