//! Which of the nodes that are gone may be cut off from NATS alone, with live calls: they count up their beat in the database.
//!
//! A node is taken for alive until its beat has stood still for [`STILL_FOR`], because what it holds of a limit is counted
//! meanwhile. While the database does not answer, nothing is known of any node.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use sidetone_model::cluster::NodeState;
use sidetone_model::ids::NodeId;

use crate::membership::View;

/// The nodes that are gone.
#[derive(Debug, Default)]
pub struct SignsOfLife {
    gone: BTreeMap<NodeId, Sign>,
    /// When the beats are read next.
    next: Option<Instant>,
}

#[derive(Debug, Default)]
struct Sign {
    /// The last beat, and since when it stands.
    beat: Option<(i64, Instant)>,
    is_dead: bool,
}

impl SignsOfLife {
    /// Takes the view: a node that is back, has left or is forgotten is looked at no longer.
    pub fn observe(&mut self, view: &View) {
        // A node that is cut off itself knows nothing of the others.
        if !view.is_linked {
            return;
        }
        // Of one that is unknown a stored heartbeat was read alone.
        let is_gone = |state: NodeState| matches!(state, NodeState::Gone | NodeState::Unknown);
        let gone = view.members.iter().filter(|member| is_gone(member.state));
        let gone: Vec<NodeId> = gone.map(|member| member.last.identity.node).collect();
        self.gone.retain(|node, _| gone.contains(node));
        for node in gone {
            self.gone.entry(node).or_default();
        }
    }

    /// The nodes whose beat is to be read now, and then once in [`READ_EVERY`].
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
                // A node that lives cannot count either, and has as long again.
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

    /// The nodes that are gone and may live.
    pub fn may_live(&self) -> Vec<NodeId> {
        self.gone.iter().filter(|(_, sign)| !sign.is_dead).map(|(node, _)| *node).collect()
    }
}

/// How long the beat of a node must stand still. A node that is cut off counts once a second.
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

    /// The signs after the beats of so many seconds, one read each.
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
        // It counts again: the database had hung for it alone.
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
        // Its time begins again with the database, and what was known of a dead node stays.
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
