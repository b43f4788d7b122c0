//! The cost of a call by its seconds.

use sidetone_model::money::Amount;
use sidetone_model::rating::{Increments, Price};

/// Returns the seconds charged for an answered call of `billsec` whole seconds: the first increment and every
/// further increment that was begun.
pub fn charged_seconds(increments: Increments, billsec: u32) -> u64 {
    let (first, next) = (u64::from(increments.first_s()), u64::from(increments.next_s()));
    let beyond = u64::from(billsec).saturating_sub(first);
    first + beyond.div_ceil(next) * next
}

/// Returns the cost of an answered call of `billsec` whole seconds: `per_minute · seconds ÷ 60`, rounded once,
/// half to even, at the eighth decimal place.
///
/// *Bounds*: an amount too large for [`Amount`] becomes the largest [`Amount`]; at the highest price that
/// takes 17 years.
pub fn charge(price: &Price, billsec: u32) -> Amount {
    charge_seconds(price, charged_seconds(price.increments, billsec))
}

/// Returns the cost of `seconds`, without rounding to increments.
pub(super) fn charge_seconds(price: &Price, seconds: u64) -> Amount {
    price.per_minute.times(seconds, 60).unwrap_or(Amount::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_are_charged_in_increments() {
        let cases = [
            (60, 1, 0, 60),
            (60, 1, 59, 60),
            (60, 1, 60, 60),
            (60, 1, 61, 61),
            (60, 60, 61, 120),
            (60, 60, 120, 120),
            (30, 6, 31, 36),
            (30, 6, 36, 36),
            (30, 6, 37, 42),
            (1, 1, 0, 1),
            (1, 1, u32::MAX, u64::from(u32::MAX)),
        ];
        for (first, next, billsec, seconds) in cases {
            let increments = Increments::new(first, next).unwrap();
            assert_eq!(charged_seconds(increments, billsec), seconds, "[{first}, {next}] {billsec}");
        }
    }

    #[test]
    fn a_charge_is_rounded_once() {
        let cases = [
            ("0.0120", 60, 1, 61, "0.0122"),
            ("0.01", 1, 1, 1, "0.00016667"),
            ("0.01", 1, 1, 2, "0.00033333"),
            ("0.01", 1, 1, 60, "0.01"),
            ("0.00000030", 1, 1, 1, "0"),
            ("0.00000090", 1, 1, 1, "0.00000002"),
            ("0", 60, 60, 3_600, "0"),
            ("10000", 1, 1, u32::MAX, "92233720368.54775807"),
        ];
        for (per_minute, first, next, billsec, amount) in cases {
            let price = Price {
                per_minute: per_minute.parse().unwrap(),
                currency: "EUR".parse().unwrap(),
                increments: Increments::new(first, next).unwrap(),
            };
            assert_eq!(charge(&price, billsec), amount.parse().unwrap(), "{per_minute} {billsec}");
        }
    }
}
