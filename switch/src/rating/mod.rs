//! Rating: the rate that applies to a call, the cost of its seconds, the amount in another currency, and how long
//! an organisation's credit lasts. Pure: prices come from a snapshot, time is `now`.
//!
//! The rules, as a record shows them:
//!
//! - Only outbound calls over a trunk are rated. Internal and inbound calls are `free`. Calls of an
//!   organisation without any sell rate are free too: such an organisation is not billed. An organisation
//!   that has sell rates cannot call a number that none of them covers, except the short numbers that a trunk
//!   lists (`112`): these are free unless a rate covers them.
//! - The rate with the longest matching prefix that is valid at the call's start applies; among equal
//!   prefixes the newest. The carrier's rate is found in the same way among the rates of the trunk that
//!   carried the call. Both rates are chosen when the call begins and do not change afterwards.
//! - An answered call is charged its first increment and every further increment that it began, counted in
//!   whole seconds. `amount = per_minute · seconds ÷ 60`, rounded once, half to even, at the eighth decimal
//!   place.
//! - The carrier's charge is converted at the newest rate of the currency pair that is valid when the call
//!   ends. It is rounded once more in the same way. Without such a rate it stays unconverted and is marked
//!   so.

pub mod credit;
pub mod fx;
pub mod rate;
mod reserve;
pub mod settle;
pub mod tariff;

pub use credit::{Ledger, Meter, NoCredit};
pub use fx::FxTable;
pub use reserve::{CreditNeed, CreditReserved};
pub use settle::settle;
pub use tariff::{Quote, Tariffs};

#[cfg(test)]
mod shared_tests;
#[cfg(test)]
mod tests;
