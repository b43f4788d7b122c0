//! What calls cost: which rate is for a call, what its seconds come to, what that is in another currency, and
//! how long an organisation's credit lasts. Pure: prices come from a snapshot, time is `now`.
//!
//! The rules, as a record shows them:
//!
//! - Only outbound calls over a trunk are rated. Internal and inbound calls are `free`, and so are all calls of an
//!   organisation without a single sell rate, which is not billed. Who has sell rates calls no number that none
//!   of them covers, but for the short numbers that a trunk names (`112`): those are free where no rate says else.
//! - The rate is the one with the longest prefix of the number that holds at the call's start; of several with
//!   that prefix the newest. The carrier's rate is found the same way among those of the trunk that carried the
//!   call. Both are chosen when the call begins and never change after that.
//! - An answered call is charged its first increment and every next one that was begun, by its whole seconds.
//!   `amount = per_minute · seconds ÷ 60`, rounded once, half to even, at the eighth decimal place.
//! - What the carrier charged is converted at the newest rate of its pair that holds when the call ends, and
//!   rounded once more in the same way. Without a rate it stands unconverted and says so.

pub mod credit;
pub mod fx;
pub mod rate;
pub mod settle;
pub mod tariff;

pub use credit::{Ledger, Meter, NoCredit};
pub use fx::FxTable;
pub use settle::settle;
pub use tariff::{Quote, Tariffs};

#[cfg(test)]
mod tests;
