//! What calls cost: rates, the prices they set, and what settling a call came to.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::ids::{CallId, CostRateId, FxRateId, OrganisationId, SellRateId, TrunkId};
use crate::money::{Amount, Currency};
use crate::time::Timestamp;

/// The steps in which seconds are charged: the first one as a whole, then each next one that was begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "[u32; 2]", into = "[u32; 2]")]
pub struct Increments {
    first_s: u32,
    next_s: u32,
}

impl Increments {
    /// Every second that was begun.
    pub const SECONDS: Increments = Increments { first_s: 1, next_s: 1 };
    /// The longest step, in seconds: a day.
    pub const STEP_MAX_S: u32 = 86_400;

    /// Steps of that many seconds; `None` when one is 0 or above [`Increments::STEP_MAX_S`].
    pub fn new(first_s: u32, next_s: u32) -> Option<Self> {
        let fits = |step: u32| (1..=Self::STEP_MAX_S).contains(&step);
        (fits(first_s) && fits(next_s)).then_some(Increments { first_s, next_s })
    }

    /// What an answered call is charged at least, in seconds.
    pub const fn first_s(self) -> u32 {
        self.first_s
    }

    /// What it is charged in steps of after that, in seconds.
    pub const fn next_s(self) -> u32 {
        self.next_s
    }
}

impl TryFrom<[u32; 2]> for Increments {
    type Error = &'static str;

    fn try_from([first_s, next_s]: [u32; 2]) -> Result<Self, Self::Error> {
        Increments::new(first_s, next_s).ok_or("increments out of range")
    }
}

impl From<Increments> for [u32; 2] {
    fn from(increments: Increments) -> Self {
        [increments.first_s, increments.next_s]
    }
}

/// What a minute costs and in which steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Price {
    /// The price of 60 seconds; not negative, at most [`Price::PER_MINUTE_MAX`].
    pub per_minute: Amount,
    /// What it is paid in.
    pub currency: Currency,
    /// The steps in which seconds are charged.
    pub increments: Increments,
}

impl Price {
    /// The highest price of a minute: far above any tariff, and low enough that ten years of it fit.
    pub const PER_MINUTE_MAX: Amount = Amount::from_scaled(10_000 * Amount::ONE.scaled());
}

/// The beginning of the numbers that a rate is for: `+` and digits for E.164 numbers, digits alone for numbers
/// that go out as they were dialled. `+` alone stands for every E.164 number.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct Prefix(String);

impl Prefix {
    /// Digits of the longest prefix: those of the longest E.164 number.
    pub const DIGITS_MAX: usize = 15;

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for Prefix {
    type Err = PrefixError;

    fn from_str(text: &str) -> Result<Self, PrefixError> {
        let digits = text.strip_prefix('+').unwrap_or(text);
        let plausible = !text.is_empty() && digits.len() <= Self::DIGITS_MAX;
        if plausible && digits.bytes().all(|byte| byte.is_ascii_digit()) {
            Ok(Prefix(text.to_owned()))
        } else {
            Err(PrefixError)
        }
    }
}

impl fmt::Display for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The text is no prefix of a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not the beginning of a number such as +44")]
pub struct PrefixError;

/// When a rate holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Validity {
    /// From this instant on.
    pub from: Timestamp,
    /// Up to this instant, which is not part of it; without one for ever.
    pub to: Option<Timestamp>,
}

impl Validity {
    /// Whether the rate holds at `at`.
    pub fn holds(self, at: Timestamp) -> bool {
        self.from <= at && self.to.is_none_or(|to| at < to)
    }
}

/// What an organisation pays for calls to one prefix.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SellRate {
    /// Primary key.
    pub id: SellRateId,
    /// Who pays it.
    pub organisation_id: OrganisationId,
    /// The numbers it is for.
    pub prefix: Prefix,
    /// What they cost.
    pub price: Price,
    /// When it holds.
    pub validity: Validity,
}

/// What the operator pays a carrier for calls to one prefix.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CostRate {
    /// Primary key.
    pub id: CostRateId,
    /// The carrier.
    pub trunk_id: TrunkId,
    /// The numbers it is for.
    pub prefix: Prefix,
    /// What they cost.
    pub price: Price,
    /// When it holds.
    pub validity: Validity,
}

/// What one unit of a currency is in another, from an instant on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FxRate {
    /// Primary key.
    pub id: FxRateId,
    /// The currency converted.
    pub from: Currency,
    /// The currency converted into.
    pub to: Currency,
    /// One unit of `from` in `to`; above 0, at most [`FxRate::MAX`].
    pub rate: Amount,
    /// Holds from this instant until the next one of the pair.
    pub from_time: Timestamp,
}

impl FxRate {
    /// The highest rate: more than any two currencies of the world are apart.
    pub const MAX: Amount = Amount::from_scaled(10_000_000 * Amount::ONE.scaled());
}

/// A kind of rate that is kept in a book.
pub trait Rate: Clone + Send + Sync {
    /// What names one of them.
    type Id: Copy + Send + Sync;
}

impl Rate for SellRate {
    type Id = SellRateId;
}

impl Rate for CostRate {
    type Id = CostRateId;
}

impl Rate for FxRate {
    type Id = FxRateId;
}

/// Which rates of a list: every part that is given, and that the kind of rate knows, must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RateFilter {
    /// Converted from this currency.
    pub from: Option<Currency>,
    /// Paid by this organisation.
    pub organisation_id: Option<OrganisationId>,
    /// For numbers that begin like this: prefixes that begin with the text.
    pub prefix: Option<Prefix>,
    /// Converted into this currency.
    pub to: Option<Currency>,
    /// Charged by this trunk.
    pub trunk_id: Option<TrunkId>,
}

/// All rates, as one consistent read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RateSnapshot {
    /// Grows with every change of the stored rates.
    pub revision: i64,
    /// What organisations pay.
    pub sell: Vec<SellRate>,
    /// What carriers charge.
    pub cost: Vec<CostRate>,
    /// Conversions.
    pub fx: Vec<FxRate>,
}

/// How much an organisation may still spend.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Account {
    /// Whose it is.
    pub organisation_id: OrganisationId,
    /// What it is kept in.
    pub currency: Currency,
    /// What was granted; `None` is no limit.
    pub credit: Option<Amount>,
    /// What settled calls have used in all; only grows.
    pub used: Amount,
    /// What had been used when the credit was granted, and so is not taken from it.
    pub used_before: Amount,
}

impl Account {
    /// What is left, below 0 when the limit was lowered under what is used; `None` without a limit.
    pub fn balance(&self) -> Option<Amount> {
        let left = i128::from(self.credit?.scaled()) + i128::from(self.used_before.scaled())
            - i128::from(self.used.scaled());
        Some(Amount::from_scaled(i64::try_from(left).unwrap_or(i64::MIN)))
    }
}

/// The prices of one call, chosen when it began and never changed after that.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tariff {
    /// What the organisation pays.
    pub sell: Price,
    /// How what it pays is taken from its credit; `None` when it has no account in reach of `sell`'s currency.
    pub credit: Option<CreditRate>,
    /// What the carrier of the last attempt charges; `None` when it has no rate for the number.
    pub cost: Option<Price>,
}

/// How an amount in the sell currency is taken from an organisation's credit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CreditRate {
    /// The currency of the credit.
    pub currency: Currency,
    /// One unit of the sell currency in it.
    pub fx_rate: Amount,
}

/// What stands behind the amounts of a record.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Billing {
    /// What the carrier charged; `None` when nothing was, or nobody knows what.
    pub cost: Option<CarrierCharge>,
    /// What the call takes from its organisation's credit, once; not stored with the record.
    pub credit: Option<CreditDraw>,
    /// The prices of a call that is not settled yet; not stored with the record.
    pub tariff: Option<Tariff>,
}

/// What a carrier charged for a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CarrierCharge {
    /// The currency it charges in.
    pub currency: Currency,
    /// The amount in that currency.
    pub amount: Amount,
    /// One unit of it in the record's currency when the call was settled; `None` when there was no rate.
    pub fx_rate: Option<Amount>,
}

/// What is taken from an organisation's credit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CreditDraw {
    /// The currency of the credit.
    pub currency: Currency,
    /// How much of it.
    pub amount: Amount,
}

/// Calls that the account of their organisation knows now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Drawn {
    /// Whose account it is.
    pub organisation: OrganisationId,
    /// What is used of it with these calls.
    pub used: Amount,
    /// The calls, new or stored before.
    pub calls: Vec<CallId>,
}

/// What a call takes from the credit of its organisation, unless the database knows it already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Undrawn {
    /// Whose credit it is.
    pub organisation: OrganisationId,
    /// The call.
    pub call: CallId,
    /// How much it takes.
    pub amount: Amount,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_is_the_beginning_of_a_number() {
        for text in ["+", "+44", "112", "+123456789012345"] {
            assert_eq!(text.parse::<Prefix>().map(|prefix| prefix.to_string()), Ok(text.to_owned()));
        }
        for text in ["", "44+", "++44", "+44 20", "+1234567890123456", "a", "+٤٤"] {
            assert_eq!(text.parse::<Prefix>(), Err(PrefixError), "{text}");
        }
    }

    #[test]
    fn a_validity_begins_with_its_first_instant_and_ends_before_its_last() {
        let at = Timestamp::from_micros;
        let validity = Validity { from: at(10), to: Some(at(20)) };
        let holds: Vec<bool> = [9, 10, 19, 20].into_iter().map(|us| validity.holds(at(us))).collect();
        assert_eq!(holds, [false, true, true, false]);
        assert!(Validity::default().holds(at(i64::MAX)));
    }

    #[test]
    fn increments_have_bounds() {
        assert_eq!(Increments::new(60, 1).map(<[u32; 2]>::from), Some([60, 1]));
        for (first, next) in [(0, 1), (1, 0), (86_401, 1), (1, 86_401)] {
            assert_eq!(Increments::new(first, next), None);
        }
        assert!(serde_json::from_str::<Increments>("[0, 1]").is_err());
    }
}
