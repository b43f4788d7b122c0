//! Limits that all nodes share: concurrent outbound calls of an organisation, and requests of a key or a user.
//!
//! Every limit has a *home*: one of the members that are up, chosen by a rendezvous hash. All nodes with the same view
//! choose the same home, and the end of a node moves only its own limits. The home counts; the other nodes request
//! slots from it. While the home cannot be reached, and until every member has reported its slots to a new home, a node
//! uses its local share of the limit.
//!
//! A node that is cut off keeps its calls, and they stay counted as long as it may be alive: the home knows what it
//! granted, and a home that takes slots beyond its share first reports them to the next home.

mod home;
mod ledger;
mod message;
mod rates;
mod slots;

pub use home::{Member, Members, heir_of, home_of};
pub use ledger::SlotLedger;
pub use message::{Ask, Granted, Held, HeldBy, HomeSlots, Question, Recall, Reply, Report, Take, Taken};
pub use rates::RateWindows;
pub use slots::{AskId, Decision, Input, Needs, Output, Slots};

#[cfg(test)]
mod simulation;
