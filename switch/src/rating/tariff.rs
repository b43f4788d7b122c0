//! Which rate applies to a call.

use std::collections::HashMap;

use sidetone_model::ids::{OrganisationId, TrunkId};
use sidetone_model::rating::{Prefix, Price, RateSnapshot, Validity};
use sidetone_model::time::Timestamp;

use super::fx::FxTable;

/// Every rate, indexed by prefix: a number takes at most sixteen look-ups, however many rates there are.
///
/// *Bounds*: some 150 bytes per rate.
#[derive(Clone, Debug, Default)]
pub struct Tariffs {
    revision: i64,
    sell: HashMap<OrganisationId, Prices>,
    cost: HashMap<TrunkId, Prices>,
    fx: FxTable,
}

/// The price of a call to a number for its organisation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quote {
    /// The organisation has rates, but none for the number: the call is refused.
    Barred,
    /// The organisation has no rates: it is not billed.
    Free,
    /// The call has this price.
    Rated(Price),
}

impl Tariffs {
    /// Indexes the rates of `snapshot`.
    pub fn new(snapshot: RateSnapshot) -> Self {
        let RateSnapshot { revision, sell, cost, fx } = snapshot;
        let mut tariffs = Tariffs { revision, fx: FxTable::new(fx), ..Tariffs::default() };
        for rate in sell {
            let prices = tariffs.sell.entry(rate.organisation_id).or_default();
            prices.insert(&rate.prefix, rate.price, rate.validity);
        }
        for rate in cost {
            let prices = tariffs.cost.entry(rate.trunk_id).or_default();
            prices.insert(&rate.prefix, rate.price, rate.validity);
        }
        for prices in tariffs.sell.values_mut().chain(tariffs.cost.values_mut()) {
            prices.sort();
        }
        tariffs
    }

    /// The stored revision of these rates.
    pub fn revision(&self) -> i64 {
        self.revision
    }

    /// Returns the price that the organisation pays for a call to `number` that begins at `at`.
    pub fn quote(&self, organisation: OrganisationId, number: &str, at: Timestamp) -> Quote {
        match self.sell.get(&organisation) {
            None => Quote::Free,
            Some(prices) => prices.find(number, at).map_or(Quote::Barred, Quote::Rated),
        }
    }

    /// Returns the price that the operator pays for a call over `trunk` to `number` that begins at `at`.
    pub fn cost(&self, trunk: TrunkId, number: &str, at: Timestamp) -> Option<Price> {
        self.cost.get(&trunk)?.find(number, at)
    }

    /// The conversion rates.
    pub fn fx(&self) -> &FxTable {
        &self.fx
    }
}

/// The prices of one payer, by prefix.
#[derive(Clone, Debug, Default)]
struct Prices {
    /// The prices of each prefix; the one that begins last comes first.
    by_prefix: HashMap<Box<str>, Vec<(Validity, Price)>>,
}

impl Prices {
    fn insert(&mut self, prefix: &Prefix, price: Price, validity: Validity) {
        self.by_prefix.entry(prefix.as_str().into()).or_default().push((validity, price));
    }

    fn sort(&mut self) {
        for prices in self.by_prefix.values_mut() {
            prices.sort_by_key(|(validity, _)| std::cmp::Reverse(*validity));
            prices.shrink_to_fit();
        }
    }

    /// Returns the price under the longest prefix of `number` that has a price valid at `at`.
    fn find(&self, number: &str, at: Timestamp) -> Option<Price> {
        let longest = number.len().min(Prefix::DIGITS_MAX + 1);
        (1..=longest).rev().find_map(|len| {
            let prices = self.by_prefix.get(number.get(..len)?)?;
            prices.iter().find(|(validity, _)| validity.holds(at)).map(|(_, price)| *price)
        })
    }
}

#[cfg(test)]
mod tests {
    use sidetone_model::ids::{CostRateId, SellRateId};
    use sidetone_model::rating::{CostRate, Increments, SellRate};
    use uuid::Uuid;

    use super::*;

    fn price(per_minute: &str) -> Price {
        let currency = "EUR".parse().unwrap();
        Price { per_minute: per_minute.parse().unwrap(), currency, increments: Increments::SECONDS }
    }

    fn at(us: i64) -> Timestamp {
        Timestamp::from_micros(us)
    }

    fn sell(prefix: &str, per_minute: &str, from: i64, to: Option<i64>) -> SellRate {
        SellRate {
            id: SellRateId(Uuid::nil()),
            organisation_id: OrganisationId(Uuid::from_u128(1)),
            prefix: prefix.parse().unwrap(),
            price: price(per_minute),
            validity: Validity { from: at(from), to: to.map(at) },
        }
    }

    #[test]
    fn the_longest_prefix_wins_and_of_equal_ones_the_newest_that_holds() {
        let tariffs = Tariffs::new(RateSnapshot {
            sell: vec![
                sell("+", "9", 0, None),
                sell("+44", "1", 0, None),
                sell("+44", "2", 100, None),
                sell("+44", "3", 200, Some(300)),
                sell("+4420", "4", 0, Some(50)),
                sell("112", "0", 0, None),
            ],
            ..RateSnapshot::default()
        });
        let cases = [
            ("+442071230000", 0, Some("4")),
            ("+442071230000", 49, Some("4")),
            ("+442071230000", 50, Some("1")),
            ("+447700900123", 99, Some("1")),
            ("+447700900123", 100, Some("2")),
            ("+447700900123", 250, Some("3")),
            ("+447700900123", 300, Some("2")),
            ("+43171234", 0, Some("9")),
            ("112", 0, Some("0")),
            ("911", 0, None),
            ("+٤٤", 0, Some("9")),
            ("", 0, None),
        ];
        for (number, us, expected) in cases {
            let quote = tariffs.quote(OrganisationId(Uuid::from_u128(1)), number, at(us));
            let expected = expected.map_or(Quote::Barred, |text| Quote::Rated(price(text)));
            assert_eq!(quote, expected, "{number} at {us}");
        }
        assert_eq!(tariffs.quote(OrganisationId(Uuid::from_u128(2)), "+44", at(0)), Quote::Free);
    }

    #[test]
    fn a_carrier_without_a_rate_costs_nobody_knows_what() {
        let trunk = TrunkId(Uuid::from_u128(7));
        let tariffs = Tariffs::new(RateSnapshot {
            cost: vec![CostRate {
                id: CostRateId(Uuid::nil()),
                trunk_id: trunk,
                prefix: "+44".parse().unwrap(),
                price: price("0.008"),
                validity: Validity::default(),
            }],
            ..RateSnapshot::default()
        });
        assert_eq!(tariffs.cost(trunk, "+442071230000", at(5)), Some(price("0.008")));
        assert_eq!(tariffs.cost(trunk, "+43171234", at(5)), None);
        assert_eq!(tariffs.cost(TrunkId(Uuid::from_u128(8)), "+442071230000", at(5)), None);
    }
}
