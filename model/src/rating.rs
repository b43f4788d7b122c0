//! Rating: rates, the prices of a call, and the amounts after settling it.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::ids::{CallId, CostRateId, FxRateId, OrganisationId, SellRateId, TrunkId};
use crate::money::{Amount, Currency};
use crate::time::Timestamp;

/// The steps in which seconds are charged: the first step in full, then each started step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "[u32; 2]", into = "[u32; 2]")]
pub struct Increments {
    first_s: u32,
    next_s: u32,
}

impl Increments {
    /// Per second: every started second.
    pub const SECONDS: Increments = Increments { first_s: 1, next_s: 1 };
    /// The longest step, in seconds: a day.
    pub const STEP_MAX_S: u32 = 86_400;

    /// Steps of that many seconds; `None` when one is 0 or above [`Increments::STEP_MAX_S`].
    pub fn new(first_s: u32, next_s: u32) -> Option<Self> {
        let fits = |step: u32| (1..=Self::STEP_MAX_S).contains(&step);
        (fits(first_s) && fits(next_s)).then_some(Increments { first_s, next_s })
    }

    /// The minimum charge of an answered call, in seconds.
    pub const fn first_s(self) -> u32 {
        self.first_s
    }

    /// The size of the steps after that, in seconds.
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

/// The price of a minute, and the steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Price {
    /// The price of 60 seconds; not negative, at most [`Price::PER_MINUTE_MAX`].
    pub per_minute: Amount,
    /// The currency.
    pub currency: Currency,
    /// The steps in which seconds are charged.
    pub increments: Increments,
}

impl Price {
    /// The highest price of a minute: far above any tariff, and low enough for the amount of a call of ten
    /// years.
    pub const PER_MINUTE_MAX: Amount = Amount::from_scaled(10_000 * Amount::ONE.scaled());
}

/// The prefix of a rate's numbers: `+` and digits for E.164 numbers, digits only for numbers that are sent as
/// dialled. A single `+` means every E.164 number.
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

/// The text is not a prefix of a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not the beginning of a number such as +44")]
pub struct PrefixError;

/// The period in which a rate is in force.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Validity {
    /// The start of the period.
    pub from: Timestamp,
    /// The end of the period, exclusive; `None` means without end.
    pub to: Option<Timestamp>,
}

impl Validity {
    /// Whether the rate is in force at `at`.
    pub fn holds(self, at: Timestamp) -> bool {
        self.from <= at && self.to.is_none_or(|to| at < to)
    }
}

/// The price that an organisation pays for calls to one prefix.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SellRate {
    /// Primary key.
    pub id: SellRateId,
    /// The organisation that pays the rate.
    pub organisation_id: OrganisationId,
    /// The prefix of its numbers.
    pub prefix: Prefix,
    /// The price.
    pub price: Price,
    /// The period in which it is in force.
    pub validity: Validity,
}

/// The price that a carrier charges the operator for calls to one prefix.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CostRate {
    /// Primary key.
    pub id: CostRateId,
    /// The carrier.
    pub trunk_id: TrunkId,
    /// The prefix of its numbers.
    pub prefix: Prefix,
    /// The price.
    pub price: Price,
    /// The period in which it is in force.
    pub validity: Validity,
}

/// The conversion rate of one currency into another, from an instant on.
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
    /// It holds from this instant until the next rate of the pair.
    pub from_time: Timestamp,
}

impl FxRate {
    /// The highest rate: more than that of any two existing currencies.
    pub const MAX: Amount = Amount::from_scaled(10_000_000 * Amount::ONE.scaled());
}

/// A kind of rate.
pub trait Rate: Clone + Send + Sync {
    /// The type of its id.
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

/// A filter of rates: every given condition that applies to the kind of rate must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RateFilter {
    /// Converted from this currency.
    pub from: Option<Currency>,
    /// Paid by this organisation.
    pub organisation_id: Option<OrganisationId>,
    /// For numbers with this prefix: rates whose prefix begins with the text.
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
    /// The prices for organisations.
    pub sell: Vec<SellRate>,
    /// The prices of carriers.
    pub cost: Vec<CostRate>,
    /// The conversion rates.
    pub fx: Vec<FxRate>,
}

/// The credit account of an organisation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Account {
    /// Whose it is.
    pub organisation_id: OrganisationId,
    /// The account's currency.
    pub currency: Currency,
    /// The granted credit; `None` means no limit.
    pub credit: Option<Amount>,
    /// The total of all settled calls; it only grows.
    pub used: Amount,
    /// The part of the total that was used before the current credit was granted, and does not reduce it.
    pub used_before: Amount,
}

impl Account {
    /// The remaining credit; negative if the limit was lowered below the used amount; `None` without a limit.
    pub fn balance(&self) -> Option<Amount> {
        let left = i128::from(self.credit?.scaled()) + i128::from(self.used_before.scaled())
            - i128::from(self.used.scaled());
        Some(Amount::from_scaled(i64::try_from(left).unwrap_or(i64::MIN)))
    }
}

/// The prices of one call, fixed when it begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tariff {
    /// The organisation's price.
    pub sell: Price,
    /// How the price is deducted from the organisation's credit; `None` if it has no account, or if there is
    /// no conversion from the currency of `sell`.
    pub credit: Option<CreditRate>,
    /// The carrier's price for the last attempt; `None` if there is no rate for the number.
    pub cost: Option<Price>,
}

/// How an amount in the sell currency is deducted from an organisation's credit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CreditRate {
    /// The currency of the credit.
    pub currency: Currency,
    /// One unit of the sell currency in it.
    pub fx_rate: Amount,
}

/// Details of the amounts of a record.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Billing {
    /// The carrier's charge; `None` if there was none, or if it is unknown.
    pub cost: Option<CarrierCharge>,
    /// The single deduction from the organisation's credit for the call; not stored with the record.
    pub credit: Option<CreditDraw>,
    /// The prices of a call that is not settled yet; not stored with the record.
    pub tariff: Option<Tariff>,
}

/// The charge of a carrier for a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CarrierCharge {
    /// The carrier's currency.
    pub currency: Currency,
    /// The amount in that currency.
    pub amount: Amount,
    /// The conversion rate into the record's currency when the call was settled; `None` when there was none.
    pub fx_rate: Option<Amount>,
}

/// A deduction from an organisation's credit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CreditDraw {
    /// The currency of the credit.
    pub currency: Currency,
    /// The amount.
    pub amount: Amount,
}

/// Calls whose deductions are stored now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Drawn {
    /// The organisation.
    pub organisation: OrganisationId,
    /// The total used of the account, including these calls.
    pub used: Amount,
    /// The calls, new or stored before.
    pub calls: Vec<CallId>,
}

/// The deduction of a call that may not be stored in the database yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Undrawn {
    /// The organisation.
    pub organisation: OrganisationId,
    /// The call.
    pub call: CallId,
    /// The amount.
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
