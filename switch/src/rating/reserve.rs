//! The part of an organisation's credit that one node of a cluster may use: it is reserved in the database, so that several
//! nodes cannot spend the same credit.

use sidetone_model::ids::OrganisationId;
use sidetone_model::money::Amount;

/// What a node has reserved of an organisation's credit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Reserve {
    /// What live calls may hold, and ended ones that are not stored yet. Storing a call takes its charge out of it.
    pub(super) amount: i128,
    /// Whether the last request got less than it asked for: calls may reach the end of the credit.
    pub(super) is_all: bool,
    /// Whether more is reserved in the database, which is to be given back.
    pub(super) has_surplus: bool,
}

impl Reserve {
    /// Gives up what is far more than calls need, before the database gives it to others; returns whether it was.
    pub(super) fn give_up(&mut self, need: i128) -> bool {
        let is_ample = self.amount > need * AMPLE;
        if is_ample {
            (self.amount, self.has_surplus) = (need + need / 5, true);
        }
        is_ample
    }

    /// A call that was covered is stored: the database has taken its charge out of the reserve.
    pub(super) fn stored(&mut self, charge: i128) {
        self.amount = (self.amount - charge).max(0);
    }
}

/// What an organisation's calls at this node need of its credit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CreditNeed {
    /// The organisation.
    pub organisation: OrganisationId,
    /// What is reserved.
    pub reserved: Amount,
    /// What the calls need soon; with less a call could end too early.
    pub low: Amount,
    /// What they need for some time.
    pub need: Amount,
    /// Whether calls wait for it.
    pub is_urgent: bool,
    /// Whether the last request got less than it asked for.
    pub is_all: bool,
    /// Whether the database has more for this node than `reserved`.
    pub has_surplus: bool,
}

/// What was reserved of an organisation's credit for this node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CreditReserved {
    /// The organisation.
    pub organisation: OrganisationId,
    /// The amount, and what all nodes have used of the credit by then; `None` if the database did not answer.
    pub reserved: Option<(Amount, Amount)>,
    /// Whether it is less than what was asked for.
    pub is_all: bool,
}

/// What is more than so many times the need is given back.
const AMPLE: i128 = 2;

/// An exact amount, or the greatest that there is.
pub(super) fn amount(scaled: i128) -> Amount {
    Amount::from_scaled(i64::try_from(scaled.max(0)).unwrap_or(i64::MAX))
}
