//! A draining node offers its rooms to the others: first to the one with the fewest rooms, and to another one if that
//! refuses.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use futures_util::FutureExt as _;
use futures_util::StreamExt as _;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use sidetone_cluster::leases::RoomKey;
use sidetone_cluster::membership::{MemberView, RunId};
use sidetone_cluster::nats::MemberHandle;
use sidetone_model::cluster::NodeState;
use sidetone_model::ids::NodeId;
use sidetone_switch::queries::{HandOverRoom, KeepRoom};

use super::peers::ask_to_take;
use crate::driver::Handle;

/// The offers in progress, and when a room is offered again.
#[derive(Default)]
pub(super) struct RoomOffers {
    under_way: FuturesUnordered<BoxFuture<'static, Offered>>,
    rooms: BTreeMap<RoomKey, Attempt>,
}

#[derive(Clone, Copy)]
struct Attempt {
    /// How often the room was offered.
    count: usize,
    /// When it may be offered again; `None` while an offer is in progress.
    again: Option<Instant>,
}

/// The result of an offer.
pub(super) struct Offered {
    room: RoomKey,
    at: Instant,
    /// The node that accepts the room.
    to: Option<(NodeId, RunId)>,
}

/// A node that accepts a room.
pub(super) struct Granted {
    pub(super) room: RoomKey,
    pub(super) node: NodeId,
    pub(super) run: RunId,
}

impl RoomOffers {
    /// The next result; `None` if no offer is in progress.
    pub(super) async fn next(&mut self) -> Option<Offered> {
        self.under_way.next().await
    }

    /// Handles a result; returns the node that accepts the room.
    pub(super) fn answered(&mut self, Offered { room, at, to }: Offered) -> Option<Granted> {
        if let Some(attempt) = self.rooms.get_mut(&room) {
            attempt.again = Some(at + AGAIN_AFTER);
        }
        to.map(|(node, run)| Granted { room, node, run })
    }

    /// Offers the rooms that are not being offered.
    pub(super) fn offer(
        &mut self,
        owned: impl Iterator<Item = RoomKey>,
        member: &MemberHandle,
        switch: &Handle,
    ) {
        let now = member.now().instant;
        for room in owned {
            if self.under_way.len() >= OFFERS_MAX {
                return;
            }
            let attempt = self.rooms.entry(room).or_insert(Attempt { count: 0, again: Some(now) });
            if attempt.again.is_none_or(|again| again > now) {
                continue;
            }
            let view = member.view();
            let Some((node, run)) = choose(&view.members, attempt.count) else { return };
            *attempt = Attempt { count: attempt.count + 1, again: None };
            let (member, switch) = (member.clone(), switch.clone());
            self.under_way.push(offer(room, (node, run), member, switch).boxed());
        }
    }
}

/// Takes the state of a room from the switch, and offers it to a node. If that refuses, the room stays.
async fn offer(room: RoomKey, (node, run): (NodeId, RunId), member: MemberHandle, switch: Handle) -> Offered {
    let state = switch.ask(HandOverRoom(room.room)).await.ok().flatten();
    let is_taken = match &state {
        Some(state) => ask_to_take(member.connection(), node, state.clone()).await,
        None => false,
    };
    if state.is_some() && !is_taken {
        tracing::info!(room.id = %room.room, node.id = %node, "a node did not take a room of this one, which drains");
        // If the switch does not answer, it ends the room when its time is over.
        let _ = switch.ask(KeepRoom(room.room)).await;
    }
    Offered { room, at: member.now().instant, to: is_taken.then_some((node, run)) }
}

/// The node that is to accept a room: one that is up, does not drain and accepts SIP of other nodes; another one at
/// each attempt.
fn choose(members: &[MemberView], attempt: usize) -> Option<(NodeId, RunId)> {
    let may = |member: &&MemberView| {
        let (identity, figures) = (&member.last.identity, &member.last.figures);
        !member.is_this && member.state == NodeState::Up && !figures.draining && identity.edge.is_some()
    };
    let mut nodes: Vec<&MemberView> = members.iter().filter(may).collect();
    nodes.sort_by_key(|member| {
        (member.last.figures.rooms, member.last.figures.calls, member.last.identity.node)
    });
    let place = attempt.checked_rem(nodes.len())?;
    nodes.get(place).map(|member| (member.last.identity.node, member.last.identity.run))
}

/// Rooms that are offered at the same time.
const OFFERS_MAX: usize = 16;
/// The pause before a room is offered to another node.
const AGAIN_AFTER: Duration = Duration::from_secs(1);
