//! The ledger at the home of a limit: how many slots of each organisation every node holds.

use std::collections::BTreeMap;

use sidetone_model::ids::{NodeId, OrganisationId};

use super::home::{Member, Members, home_of};
use super::message::{Ask, Granted, Held, HeldBy, HomeSlots, Report};
use crate::membership::RunId;

/// The slots of the organisations whose home is this node.
///
/// It grants nothing until every member that is up has reported its slots under the same view of the members. Before
/// that, a slot could be granted twice.
#[derive(Debug, Default)]
pub struct SlotLedger {
    members: Members,
    /// The last report of each member.
    reported: BTreeMap<NodeId, Reported>,
    books: BTreeMap<OrganisationId, BTreeMap<NodeId, Slot>>,
    /// Slots of nodes that have not reported since the members changed. Slots of a node that is down count as long as
    /// it may be cut off with live calls.
    absent: BTreeMap<(OrganisationId, NodeId), u32>,
    /// Slots that the homes of other limits hold beyond their shares; this node would be the next home.
    homes: BTreeMap<(OrganisationId, NodeId), AtHome>,
}

#[derive(Clone, Copy, Debug)]
struct AtHome {
    run: RunId,
    seq: u64,
    held: u32,
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
    /// The sequence number of the question or report that set the slots.
    seq: u64,
}

impl SlotLedger {
    /// Replaces the members. The slots of ended nodes are free, and all other members must report again, unless they
    /// have already reported under the new view.
    pub fn replace_members(&mut self, members: Members) {
        let is_up = |node: &NodeId| members.up().iter().any(|member| member.node == *node);
        self.reported.retain(|node, _| is_up(node));
        let reported = &self.reported;
        let is_known = |node: &NodeId| reported.get(node).is_some_and(|last| last.members == members.hash());
        for (organisation, book) in &self.books {
            for (node, slot) in book.iter().filter(|(node, slot)| !is_known(node) && slot.held > 0) {
                keep(&mut self.absent, (*organisation, *node), slot.held);
            }
        }
        self.books.retain(|_, book| {
            book.retain(|node, _| is_known(node));
            !book.is_empty()
        });
        for ((organisation, node), at_home) in std::mem::take(&mut self.homes) {
            let runs = members.up().contains(&Member { node, run: at_home.run });
            if !is_up(&node) {
                keep(&mut self.absent, (organisation, node), at_home.held);
            } else if runs && home_of(&members, organisation.0) == Some(node) {
                self.homes.insert((organisation, node), at_home);
            }
        }
        self.replace_absent(members);
    }

    /// Replaces the set of down nodes that may be alive; the members that are up are the same.
    pub fn replace_absent(&mut self, members: Members) {
        let is_up = |node: &NodeId| members.up().iter().any(|member| member.node == *node);
        self.absent.retain(|(_, node), _| members.absent().contains(node) || is_up(node));
        self.members = members;
    }

    /// Records the slots that the home of a limit holds; returns whether they were accepted.
    pub fn note_home(&mut self, slots: &HomeSlots) -> bool {
        let is_up = self.members.up().contains(&Member { node: slots.node, run: slots.run });
        let place = (slots.organisation, slots.node);
        let is_late =
            self.homes.get(&place).is_some_and(|last| last.run == slots.run && slots.seq <= last.seq);
        if !is_up || is_late || slots.members != self.members.hash() {
            return false;
        }
        if slots.held == 0 {
            self.homes.remove(&place);
        } else {
            self.homes.insert(place, AtHome { run: slots.run, seq: slots.seq, held: slots.held });
        }
        true
    }

    /// The slots of nodes that are down and may be alive, as far as this node knows. They are sent to all members, so
    /// that each can be the next home.
    pub fn absent(&self) -> Vec<HeldBy> {
        let gone = self.absent.iter().filter(|((_, node), _)| self.members.absent().contains(node));
        let held = gone.map(|((organisation, node), up)| {
            let held = Held { organisation: *organisation, up: *up };
            HeldBy { node: *node, held }
        });
        held.take(ABSENT_MAX).collect()
    }

    /// Records all slots that a member holds; returns whether the report was accepted. A report under another view
    /// counts once this node has that view, too.
    pub fn report(&mut self, report: &Report) -> bool {
        if let Some(last) = self.reported.get(&report.node) {
            let is_late = last.run == report.run && report.seq <= last.seq;
            let of_node = |member: &&Member| member.node == report.node;
            let present = self.members.up().iter().find(of_node).map(|member| member.run);
            // The report is of an earlier run, or of a run that is not a member yet.
            let is_other = last.run != report.run && present == Some(last.run);
            if is_late || is_other {
                return false;
            }
        }
        let reported = Reported { run: report.run, seq: report.seq, members: report.members };
        self.reported.insert(report.node, reported);
        self.absent.retain(|(_, node), _| *node != report.node);
        // A node that is still up here may be down a moment later.
        for HeldBy { node, held } in report.absent.iter().take(ABSENT_MAX) {
            keep(&mut self.absent, (held.organisation, *node), held.up);
        }
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

    /// Grants slots within the limit; `None` while reports of other members are missing.
    pub fn ask(&mut self, ask: &Ask) -> Option<Granted> {
        if !self.is_ready() || ask.members != self.members.hash() {
            return None;
        }
        let reported = self.reported.get(&ask.node).filter(|reported| reported.run == ask.run)?.seq;
        let absent = self.held_by_absent(ask.organisation);
        let book = self.books.entry(ask.organisation).or_default();
        let last = book.get(&ask.node).map_or(reported, |slot| slot.seq.max(reported));
        if ask.seq <= last {
            return None;
        }
        let others = book.iter().filter(|(node, _)| **node != ask.node).map(|(_, slot)| u64::from(slot.held));
        let left = u64::from(ask.limit).saturating_sub(others.sum::<u64>() + absent);
        // Slots of active calls are never withdrawn.
        let slots = ask.want.min(u32::try_from(left).unwrap_or(u32::MAX)).max(ask.up);
        // A node that holds nothing is kept, too, so that its late question is ignored.
        book.insert(ask.node, Slot { held: slots, seq: ask.seq });
        Some(Granted { slots })
    }

    /// Whether every member, including this node, has reported under this node's view.
    pub fn is_ready(&self) -> bool {
        !self.members.up().is_empty() && self.missing().next().is_none()
    }

    /// The members that have not reported under this node's view.
    pub fn missing(&self) -> impl Iterator<Item = NodeId> {
        let hash = self.members.hash();
        let has_reported =
            move |node: &NodeId| self.reported.get(node).is_some_and(|reported| reported.members == hash);
        self.members.up().iter().map(|member| member.node).filter(move |node| !has_reported(node))
    }

    /// The number of slots of an organisation at all nodes, including nodes that are down and may be alive.
    pub fn held(&self, organisation: OrganisationId) -> u64 {
        let book = self.books.get(&organisation);
        let held = book.map_or(0, |book| book.values().map(|slot| u64::from(slot.held)).sum());
        held + self.held_by_absent(organisation)
    }

    fn held_by_absent(&self, organisation: OrganisationId) -> u64 {
        let held = self.members.absent().iter().filter_map(|node| self.absent.get(&(organisation, *node)));
        held.map(|held| u64::from(*held)).sum()
    }
}

/// Two nodes may report different figures for a node that is down; the higher one counts.
fn keep(absent: &mut BTreeMap<(OrganisationId, NodeId), u32>, place: (OrganisationId, NodeId), held: u32) {
    let known = absent.entry(place).or_default();
    *known = held.max(*known);
}

/// The maximum number of figures for down nodes in one report; each is an organisation with a limit and live calls.
const ABSENT_MAX: usize = 2_000;
