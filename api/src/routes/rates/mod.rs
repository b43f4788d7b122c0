//! The prices of calls: sell rates, cost rates, conversion rates.
//!
//! The operator sets prices: an organisation can read what it pays, and nothing of what carriers charge.

pub(crate) mod cost;
mod fields;
pub(crate) mod fx;
mod resource;
pub(crate) mod sell;
