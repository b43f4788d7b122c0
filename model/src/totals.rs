//! Totals of call records.

use serde::Serialize;

use crate::money::{Currency, Total};

/// The sums over the records that a filter selects.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CdrTotals {
    /// The sums for each currency, ordered by its code; records without one come last.
    pub by_currency: Vec<CurrencyTotals>,
}

/// The sums over the records in one currency.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CurrencyTotals {
    /// The currency of the amounts; `None` for old records without one.
    pub currency: Option<Currency>,
    /// The number of records.
    pub count: u64,
    /// Billed seconds.
    pub billsec: u64,
    /// The prices for customers.
    pub sell: Total,
    /// The prices of carriers, without the records whose charge was not converted.
    pub cost: Total,
    /// `sell` minus `cost` of the records that `cost` includes.
    pub margin: Total,
    /// The number of records left out of `cost` and `margin`.
    pub unconverted: u64,
}

impl CdrTotals {
    /// The totals as the API writes them; `margin` includes the fields that need `margin:read`.
    pub fn view(&self, margin: bool) -> CdrTotalsView {
        CdrTotalsView {
            count: self.by_currency.iter().map(|totals| totals.count).sum(),
            billsec: self.by_currency.iter().map(|totals| totals.billsec).sum(),
            by_currency: self.by_currency.iter().map(|totals| totals.view(margin)).collect(),
        }
    }
}

impl CurrencyTotals {
    fn view(&self, margin: bool) -> CurrencyTotalsView {
        let places = self.currency.map_or(2, Currency::places);
        CurrencyTotalsView {
            currency: self.currency,
            count: self.count,
            billsec: self.billsec,
            sell_amount: self.sell.to_text(places),
            cost_amount: margin.then(|| self.cost.to_text(places)),
            margin: margin.then(|| self.margin.to_text(places)),
            unconverted_count: Some(self.unconverted).filter(|count| margin && *count > 0),
        }
    }
}

/// Totals of call records.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct CdrTotalsView {
    /// Number of matching records.
    pub count: u64,
    /// Their billed seconds.
    pub billsec: u64,
    /// Their amounts, for each currency in the order of its code.
    pub by_currency: Vec<CurrencyTotalsView>,
}

/// The sums over the records in one currency.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct CurrencyTotalsView {
    /// Currency of the amounts; absent for older records without a currency.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub currency: Option<Currency>,
    /// Number of records.
    pub count: u64,
    /// Their billed seconds.
    pub billsec: u64,
    /// The sum of their `sell_amount`.
    #[cfg_attr(feature = "openapi", schema(value_type = crate::money::Amount))]
    pub sell_amount: String,
    /// The sum of their `cost_amount`, without the records that are `cost_unconverted`; only with `margin:read`.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<crate::money::Amount>))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost_amount: Option<String>,
    /// The sum of their `margin`, without the same records; only with `margin:read`.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<crate::money::Amount>))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub margin: Option<String>,
    /// The number of `cost_unconverted` records; absent when there are none; only with `margin:read`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unconverted_count: Option<u64>,
}
