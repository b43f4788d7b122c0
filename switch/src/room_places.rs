//! The owners of rooms among the nodes of a cluster, and the calls here that are connected to a room at another node.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use sidetone_model::ids::{CallId, RoomId};
use sidetone_sip::flow::Flow;
use sidetone_sip::message::{NameAddr, Request, Uri};

use crate::authentication::Sender;
use crate::ids::Ids;
use crate::io::CalleeAt;
use crate::live::{Callee, LegIdentity};
use crate::node_entry::{NodeEntries, NodeEntry, host_of};
use crate::room_owner::RoomOwner;
use crate::routing::Directory;

/// The owners of rooms, and the calls that are connected to an owner at another node.
#[derive(Default)]
pub(super) struct RoomPlaces {
    /// `None` for a single node.
    entries: Option<NodeEntries>,
    owners: HashMap<RoomId, RoomOwner>,
    /// *Bounds*: the number of calls.
    joined: HashMap<CallId, Joined>,
}

/// A caller who is connected to the owner of a room.
#[derive(Clone)]
pub(super) struct Joined {
    pub(super) room: RoomId,
    pub(super) sender: Sender,
    pub(super) dialled: String,
    /// The party's seat at the node that has handed the room over.
    pub(super) seat: Option<String>,
    /// The fence of the owner that it is connected to.
    fence: u64,
    /// When the next attempt to connect it to a later owner may begin.
    again: Option<Instant>,
}

impl Joined {
    /// A caller who dials a room by its number, or by a phone number that leads to it.
    pub(super) fn new(room: RoomId, sender: Sender, dialled: String) -> Self {
        Joined { room, sender, dialled, seat: None, fence: 0, again: None }
    }

    /// Sets the caller's former seat.
    pub(super) fn with_seat(self, seat: Option<String>) -> Self {
        Joined { seat, ..self }
    }
}

/// An owner at another node.
#[derive(Clone, Copy)]
pub(super) struct OwnerThere {
    fence: u64,
    way: Flow,
    address: SocketAddr,
}

impl RoomPlaces {
    pub(super) fn new(entries: Option<NodeEntries>) -> Self {
        RoomPlaces { entries, ..RoomPlaces::default() }
    }

    /// Whether this node shares its rooms with others.
    pub(super) fn are_shared(&self) -> bool {
        self.entries.is_some()
    }

    /// The assertion in an INVITE of another node.
    pub(super) fn entry_of(&self, flow: &Flow, request: &Request) -> Option<NodeEntry> {
        self.entries.as_ref()?.read(flow, request)
    }

    pub(super) fn owner(&self, room: RoomId) -> RoomOwner {
        self.owners.get(&room).copied().unwrap_or(RoomOwner::Unowned)
    }

    /// The owner of a room, if it is another node.
    pub(super) fn there(&self, room: RoomId) -> Option<OwnerThere> {
        match self.owner(room) {
            RoomOwner::There { fence, way, address } => Some(OwnerThere { fence, way, address }),
            RoomOwner::Here(_) | RoomOwner::Lost | RoomOwner::Unowned => None,
        }
    }

    /// Sets the owner of a room; returns the former owner.
    pub(super) fn set(&mut self, room: RoomId, owner: RoomOwner) -> Option<RoomOwner> {
        match owner {
            RoomOwner::Lost if !self.joined.values().any(|joined| joined.room == room) => {
                self.owners.remove(&room)
            }
            RoomOwner::Unowned => self.owners.remove(&room),
            owner => self.owners.insert(room, owner),
        }
    }

    /// Notes a call that is connected to the present owner of a room.
    pub(super) fn join(&mut self, call: CallId, joined: Joined) {
        let fence = self.there(joined.room).map_or(0, |there| there.fence);
        self.joined.insert(call, Joined { fence, again: None, ..joined });
    }

    /// The calls that are connected to an earlier owner of a room, although the present owner is at another node. Each
    /// is returned once in [`TRIES_EVERY`].
    pub(super) fn outdated(&mut self, now: Instant) -> Vec<(CallId, Joined)> {
        let RoomPlaces { owners, joined, .. } = self;
        let is_outdated = |joined: &Joined| match owners.get(&joined.room) {
            Some(RoomOwner::There { fence, .. }) => *fence != joined.fence,
            _ => false,
        };
        let is_due = |joined: &Joined| joined.again.is_none_or(|again| again <= now);
        let due = joined.iter_mut().filter(|(_, joined)| is_outdated(joined) && is_due(joined));
        let mut due: Vec<_> = due
            .map(|(call, joined)| {
                joined.again = Some(now + TRIES_EVERY);
                (*call, joined.clone())
            })
            .collect();
        due.sort_unstable_by_key(|(call, _)| *call);
        due
    }

    /// Forgets the calls that are over.
    pub(super) fn keep(&mut self, is_live: impl Fn(CallId) -> bool) {
        self.joined.retain(|call, _| is_live(*call));
    }

    /// The rooms whose owner is lost while calls here were connected to it.
    pub(super) fn lost(&self) -> impl Iterator<Item = RoomId> {
        let rooms = self.joined.values().map(|joined| joined.room);
        rooms.filter(|room| self.owner(*room) == RoomOwner::Lost)
    }

    /// The calls that are connected to the owner of a room.
    pub(super) fn joined(&self, room: RoomId) -> Vec<(CallId, Joined)> {
        let calls = self.joined.iter().filter(|(_, joined)| joined.room == room);
        let mut calls: Vec<_> = calls.map(|(call, joined)| (*call, joined.clone())).collect();
        calls.sort_unstable_by_key(|(call, _)| *call);
        calls
    }

    /// Removes and returns the calls that are connected to the owner of a room.
    pub(super) fn take_joined(&mut self, room: RoomId) -> Vec<(CallId, Joined)> {
        let mut calls: Vec<(CallId, Joined)> =
            self.joined.extract_if(|_, joined| joined.room == room).collect();
        calls.sort_unstable_by_key(|(call, _)| *call);
        calls
    }

    /// The leg to the owner of a room; `shown` is the party that the owner sees.
    pub(super) fn callee(
        &self,
        joined: &Joined,
        shown: &LegIdentity,
        OwnerThere { fence, way, address }: OwnerThere,
        (ids, directory): (&mut Ids, &Directory),
    ) -> Option<Callee> {
        let Joined { room, sender, dialled, seat, .. } = joined;
        let call_id = ids.token();
        let from = from_of(shown, address);
        let entry = NodeEntry { sender: sender.clone(), room: *room, fence, seat: seat.clone() };
        let entries = self.entries.as_ref()?;
        let invite = entries.invite(&entry, dialled, (from.as_str(), call_id.as_str()), address)?;
        let name = directory.room(*room).map(|room| room.name.clone()).unwrap_or_default();
        let identity = LegIdentity { id: ids.leg(), extension: None, number: Some(dialled.clone()), name };
        Some(Callee { flow: way, at: CalleeAt::of(&way), invite, identity, leg: None, binding: None })
    }
}

/// The From of the INVITE to another node: the caller's number and name.
fn from_of(LegIdentity { number, name, .. }: &LegIdentity, address: SocketAddr) -> String {
    let user = number.as_deref().filter(|number| !number.is_empty()).unwrap_or("anonymous");
    let from = NameAddr::new(Uri::sip(host_of(address), None).with_user(user));
    let from = if name.is_empty() { from } else { from.with_display(name) };
    from.to_string()
}

/// Interval of the attempts to connect a call to a later owner.
const TRIES_EVERY: Duration = Duration::from_secs(1);
