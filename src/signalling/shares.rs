//! The memory that messages of live calls take, by organisation: one that has many calls leaves room for the others.

use std::collections::{HashMap, VecDeque};

use sidetone_model::ids::{CallId, OrganisationId};

/// The bytes of all organisations, below [`TOTAL_BYTES_MAX`].
#[derive(Debug, Default)]
pub(super) struct Shares {
    organisations: HashMap<OrganisationId, Share>,
    /// Bytes of all organisations.
    bytes: usize,
}

/// What one organisation has.
#[derive(Debug, Default)]
struct Share {
    bytes: usize,
    /// Its ended calls that are not stored yet, the oldest first.
    ended: VecDeque<CallId>,
}

impl Shares {
    /// Whether an organisation may keep another message: its bytes are less than [`OF_FREE`] times what is free. One alone
    /// gets three quarters of the memory, two get three sevenths each; there is always room for one more.
    pub(super) fn has_room(&self, organisation: OrganisationId) -> bool {
        let own = self.organisations.get(&organisation).map_or(0, |share| share.bytes);
        own < TOTAL_BYTES_MAX.saturating_sub(self.bytes).saturating_mul(OF_FREE)
    }

    /// Notes that the messages of an organisation grew by so many bytes.
    pub(super) fn grow(&mut self, organisation: OrganisationId, bytes: isize) {
        let share = self.organisations.entry(organisation).or_default();
        share.bytes = share.bytes.saturating_add_signed(bytes);
        self.bytes = self.bytes.saturating_add_signed(bytes);
        self.tidy(organisation);
    }

    /// Notes an ended call.
    pub(super) fn end(&mut self, organisation: OrganisationId, call: CallId) {
        self.organisations.entry(organisation).or_default().ended.push_back(call);
    }

    /// Returns the ended call of an organisation that ended first.
    pub(super) fn first_ended(&self, organisation: OrganisationId) -> Option<CallId> {
        self.organisations.get(&organisation)?.ended.front().copied()
    }

    /// Notes that an ended call is stored: the one that ended first.
    pub(super) fn stored(&mut self, organisation: OrganisationId, bytes: usize) {
        if let Some(share) = self.organisations.get_mut(&organisation) {
            share.ended.pop_front();
        }
        self.grow(organisation, -bytes.cast_signed());
    }

    /// Bytes of all organisations.
    #[cfg(test)]
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Whether no organisation has anything.
    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.organisations.is_empty()
    }

    /// Forgets an organisation that has nothing.
    fn tidy(&mut self, organisation: OrganisationId) {
        let is_idle = |share: &Share| share.bytes == 0 && share.ended.is_empty();
        if self.organisations.get(&organisation).is_some_and(is_idle) {
            self.organisations.remove(&organisation);
        }
    }
}

/// Bytes of all calls in memory.
pub(super) const TOTAL_BYTES_MAX: usize = 64 << 20;
/// How many times the free bytes an organisation may have (dynamic thresholds: Choudhury and Hahne, "Dynamic Queue Length
/// Thresholds for Shared-Memory Packet Switches", 1998).
const OF_FREE: usize = 3;
