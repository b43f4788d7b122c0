//! What calls cost: sell rates, cost rates, conversion rates.
//!
//! Prices are the operator's to set: a tenant reads what it pays, and nothing of what carriers charge.

pub(crate) mod cost;
mod fields;
pub(crate) mod fx;
pub(crate) mod sell;
