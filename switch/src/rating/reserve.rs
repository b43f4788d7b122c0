//! The part of an organisation's credit that one node of a cluster may use. It is reserved in the database, so that
//! several nodes cannot spend the same credit.

use sidetone_model::ids::OrganisationId;
use sidetone_model::money::Amount;

/// The part of an organisation's credit that a node has reserved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Reserve {
    /// The amount for live calls and for ended calls that are not stored yet. Storing a call subtracts its charge.
    pub(super) amount: i128,
    /// Whether the last request was granted only in part: calls may reach the end of the credit.
    pub(super) is_all: bool,
    /// Whether the database still reserves more for this node, which must be given back.
    pub(super) has_surplus: bool,
}

impl Reserve {
    /// Reduces a reserve far above the need, before the database grants the rest to others; returns whether it did.
    pub(super) fn give_up(&mut self, need: i128) -> bool {
        let is_ample = self.amount > need * AMPLE;
        if is_ample {
            (self.amount, self.has_surplus) = (need + need / 5, true);
        }
        is_ample
    }

    /// Handles a covered call that was stored: the database has subtracted its charge from the reserve.
    pub(super) fn stored(&mut self, charge: i128) {
        self.amount = (self.amount - charge).max(0);
    }
}

/// The credit that an organisation's calls at this node need.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CreditNeed {
    /// The organisation.
    pub organisation: OrganisationId,
    /// The reserved amount.
    pub reserved: Amount,
    /// The amount that the calls need soon; with less, a call could be ended too early.
    pub low: Amount,
    /// The amount that they need for a longer time.
    pub need: Amount,
    /// Whether calls wait for credit.
    pub is_urgent: bool,
    /// Whether the last request was granted only in part.
    pub is_all: bool,
    /// Whether the database reserves more for this node than `reserved`.
    pub has_surplus: bool,
}

/// The result of a request to reserve an organisation's credit for this node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CreditReserved {
    /// The organisation.
    pub organisation: OrganisationId,
    /// The amount, and the credit that all nodes had used at that time; `None` if the database did not answer.
    pub reserved: Option<(Amount, Amount)>,
    /// Whether the amount is less than the requested one.
    pub is_all: bool,
}

/// A reserve of more than this many times the need is reduced.
const AMPLE: i128 = 2;

/// An exact amount, or the greatest possible one.
pub(super) fn amount(scaled: i128) -> Amount {
    Amount::from_scaled(i64::try_from(scaled.max(0)).unwrap_or(i64::MAX))
}
