//! Limits that all organisations share: an organisation with high usage leaves space for the others.

use std::collections::{HashMap, VecDeque};

use sidetone_model::ids::{CallId, OrganisationId};

/// A limit on the total of all organisations, of which no organisation can use everything.
#[derive(Debug)]
pub(super) struct SharedLimit {
    max: usize,
    /// The total of all organisations.
    total: usize,
    /// The amount of each organisation; those without any have no entry.
    organisations: HashMap<OrganisationId, usize>,
}

impl SharedLimit {
    /// A limit of `max` in total.
    pub(super) fn new(max: usize) -> Self {
        SharedLimit { max, total: 0, organisations: HashMap::new() }
    }

    /// Whether an organisation may have more: it has less than [`OF_FREE`] times the free amount. A single
    /// organisation gets three quarters of the limit, two get three sevenths each; there is always space for one
    /// more.
    pub(super) fn has_room(&self, organisation: OrganisationId) -> bool {
        let own = self.organisations.get(&organisation).copied().unwrap_or(0);
        own < self.max.saturating_sub(self.total).saturating_mul(OF_FREE)
    }

    /// Adds to, or subtracts from, the amount of an organisation.
    pub(super) fn grow(&mut self, organisation: OrganisationId, by: isize) {
        let own = self.organisations.entry(organisation).or_default();
        *own = own.saturating_add_signed(by);
        if *own == 0 {
            self.organisations.remove(&organisation);
        }
        self.total = self.total.saturating_add_signed(by);
    }

    /// The total of all organisations.
    #[cfg(test)]
    pub(super) fn total(&self) -> usize {
        self.total
    }
}

/// The memory that messages of calls take, by organisation.
#[derive(Debug)]
pub(super) struct Shares {
    bytes: SharedLimit,
    /// The ended calls of each organisation that are not stored yet, the oldest first.
    ended: HashMap<OrganisationId, VecDeque<CallId>>,
}

impl Default for Shares {
    fn default() -> Self {
        Shares { bytes: SharedLimit::new(TOTAL_BYTES_MAX), ended: HashMap::new() }
    }
}

impl Shares {
    /// Whether an organisation may keep another message.
    pub(super) fn has_room(&self, organisation: OrganisationId) -> bool {
        self.bytes.has_room(organisation)
    }

    /// Adds to the bytes of an organisation's messages.
    pub(super) fn grow(&mut self, organisation: OrganisationId, bytes: isize) {
        self.bytes.grow(organisation, bytes);
    }

    /// Records an ended call.
    pub(super) fn end(&mut self, organisation: OrganisationId, call: CallId) {
        self.ended.entry(organisation).or_default().push_back(call);
    }

    /// Returns the ended call of an organisation that ended first.
    pub(super) fn first_ended(&self, organisation: OrganisationId) -> Option<CallId> {
        self.ended.get(&organisation)?.front().copied()
    }

    /// Records that an ended call is stored: the one that ended first.
    pub(super) fn stored(&mut self, organisation: OrganisationId, bytes: usize) {
        if let Some(ended) = self.ended.get_mut(&organisation) {
            ended.pop_front();
            if ended.is_empty() {
                self.ended.remove(&organisation);
            }
        }
        self.grow(organisation, -bytes.cast_signed());
    }

    /// Bytes of all organisations.
    #[cfg(test)]
    pub(super) fn bytes(&self) -> usize {
        self.bytes.total()
    }

    /// Whether no organisation has any messages.
    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.bytes.organisations.is_empty() && self.ended.is_empty()
    }
}

/// Bytes of all calls in memory.
pub(super) const TOTAL_BYTES_MAX: usize = 64 << 20;
/// The share of an organisation as a multiple of the free amount (dynamic thresholds: Choudhury and Hahne, "Dynamic
/// Queue Length Thresholds for Shared-Memory Packet Switches", 1998).
const OF_FREE: usize = 3;
