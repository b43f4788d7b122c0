//! Currency conversion: the rate from one currency to another at an instant.

use std::collections::HashMap;

use sidetone_model::money::{Amount, Currency};
use sidetone_model::rating::FxRate;
use sidetone_model::time::Timestamp;

/// The conversion rates, by pair and time.
///
/// A pair is looked up only as it was entered. The inverse of a rate is a different price and needs its own
/// entry.
#[derive(Clone, Debug, Default)]
pub struct FxTable {
    /// For each pair, its rates in ascending order of their start.
    pairs: HashMap<(Currency, Currency), Vec<(Timestamp, Amount)>>,
}

impl FxTable {
    /// Builds the table of these rates.
    pub fn new(rates: Vec<FxRate>) -> Self {
        let mut pairs: HashMap<_, Vec<(Timestamp, Amount)>> = HashMap::new();
        for rate in rates {
            pairs.entry((rate.from, rate.to)).or_default().push((rate.from_time, rate.rate));
        }
        for rates in pairs.values_mut() {
            rates.sort_unstable();
        }
        FxTable { pairs }
    }

    /// Returns the price of one unit of `from` in `to` at `at`: the newest rate that has begun. It is 1 when
    /// both are the same currency.
    pub fn rate(&self, from: Currency, to: Currency, at: Timestamp) -> Option<Amount> {
        if from == to {
            return Some(Amount::ONE);
        }
        let rates = self.pairs.get(&(from, to))?;
        let begun = rates.partition_point(|(from_time, _)| *from_time <= at);
        rates.get(begun.checked_sub(1)?).map(|(_, rate)| *rate)
    }
}

#[cfg(test)]
mod tests {
    use sidetone_model::ids::FxRateId;
    use uuid::Uuid;

    use super::*;

    #[test]
    fn the_newest_rate_that_has_begun_holds() {
        let rate = |from: &str, to: &str, rate: &str, us| FxRate {
            id: FxRateId(Uuid::nil()),
            from: from.parse().unwrap(),
            to: to.parse().unwrap(),
            rate: rate.parse().unwrap(),
            from_time: Timestamp::from_micros(us),
        };
        let table = FxTable::new(vec![
            rate("USD", "EUR", "0.93", 20),
            rate("USD", "EUR", "0.92", 10),
            rate("GBP", "EUR", "1.15", 0),
        ]);
        let cases = [
            ("USD", "EUR", 9, None),
            ("USD", "EUR", 10, Some("0.92")),
            ("USD", "EUR", 19, Some("0.92")),
            ("USD", "EUR", 20, Some("0.93")),
            ("EUR", "USD", 20, None),
            ("EUR", "EUR", 0, Some("1")),
            ("XTS", "XTS", 0, Some("1")),
            ("JPY", "EUR", 20, None),
        ];
        for (from, to, us, expected) in cases {
            let found = table.rate(from.parse().unwrap(), to.parse().unwrap(), Timestamp::from_micros(us));
            assert_eq!(found, expected.map(|text| text.parse().unwrap()), "{from} {to} {us}");
        }
    }
}
