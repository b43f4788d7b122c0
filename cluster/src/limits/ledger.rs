//! What the home of a limit knows: how many slots of each organisation every node holds.

use std::collections::BTreeMap;

use sidetone_model::ids::{NodeId, OrganisationId};

use super::home::{Member, Members};
use super::message::{Ask, Granted, Report};
use crate::membership::RunId;

/// The slots of the organisations whose home is this node.
///
/// It grants nothing until every member that is up has reported what it holds, under the same view of the members: before
/// that a slot could be granted twice.
#[derive(Debug, Default)]
pub struct SlotLedger {
    members: Members,
    /// The last report of each member.
    reported: BTreeMap<NodeId, Reported>,
    books: BTreeMap<OrganisationId, BTreeMap<NodeId, Slot>>,
}

#[derive(Clone, Copy, Debug)]
struct Reported {
    run: RunId,
    seq: u64,
    members: u64,
}

#[derive(Clone, Copy, Debug)]
struct Slot {
    held: u32,
    /// The question that it is the answer to.
    seq: u64,
}

impl SlotLedger {
    /// The members have changed: what nodes hold that are not up any more is free, and all others report again. Those who
    /// saw the change earlier have done so already.
    pub fn replace_members(&mut self, members: Members) {
        let is_up = |node: &NodeId| members.up().iter().any(|member| member.node == *node);
        self.reported.retain(|node, _| is_up(node));
        let reported = &self.reported;
        let is_known = |node: &NodeId| reported.get(node).is_some_and(|last| last.members == members.hash());
        self.books.retain(|_, book| {
            book.retain(|node, _| is_known(node));
            !book.is_empty()
        });
        self.members = members;
    }

    /// Takes all that a member holds; returns whether it was taken. A report under another view counts when this node has
    /// that view, too.
    pub fn report(&mut self, report: &Report) -> bool {
        if let Some(last) = self.reported.get(&report.node) {
            let is_late = last.run == report.run && report.seq <= last.seq;
            let of_node = |member: &&Member| member.node == report.node;
            let present = self.members.up().iter().find(of_node).map(|member| member.run);
            // A run that has ended, as far as is known, or one that is not seen yet.
            let is_other = last.run != report.run && present == Some(last.run);
            if is_late || is_other {
                return false;
            }
        }
        let reported = Reported { run: report.run, seq: report.seq, members: report.members };
        self.reported.insert(report.node, reported);
        self.books.retain(|_, book| {
            book.remove(&report.node);
            !book.is_empty()
        });
        for held in report.held.iter().filter(|held| held.up > 0) {
            let slot = Slot { held: held.up, seq: report.seq };
            self.books.entry(held.organisation).or_default().insert(report.node, slot);
        }
        true
    }

    /// Grants slots, as far as the limit allows; `None` while it is not known what others hold.
    pub fn ask(&mut self, ask: &Ask) -> Option<Granted> {
        if !self.is_ready() || ask.members != self.members.hash() {
            return None;
        }
        let reported = self.reported.get(&ask.node).filter(|reported| reported.run == ask.run)?.seq;
        let book = self.books.entry(ask.organisation).or_default();
        let last = book.get(&ask.node).map_or(reported, |slot| slot.seq.max(reported));
        if ask.seq <= last {
            return None;
        }
        let others = book.iter().filter(|(node, _)| **node != ask.node).map(|(_, slot)| u64::from(slot.held));
        let left = u64::from(ask.limit).saturating_sub(others.sum());
        // Calls that are up stay up.
        let slots = ask.want.min(u32::try_from(left).unwrap_or(u32::MAX)).max(ask.up);
        // One that holds nothing is kept, too: a late question of it must not count.
        book.insert(ask.node, Slot { held: slots, seq: ask.seq });
        Some(Granted { slots })
    }

    /// Whether every member, this node among them, has reported under the view that this node has.
    pub fn is_ready(&self) -> bool {
        !self.members.up().is_empty() && self.missing().next().is_none()
    }

    /// The members that have not.
    pub fn missing(&self) -> impl Iterator<Item = NodeId> {
        let hash = self.members.hash();
        let has_reported =
            move |node: &NodeId| self.reported.get(node).is_some_and(|reported| reported.members == hash);
        self.members.up().iter().map(|member| member.node).filter(move |node| !has_reported(node))
    }

    /// How many slots of an organisation all nodes hold.
    pub fn held(&self, organisation: OrganisationId) -> u64 {
        let book = self.books.get(&organisation);
        book.map_or(0, |book| book.values().map(|slot| u64::from(slot.held)).sum())
    }
}
