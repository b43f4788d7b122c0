//! Limits that all nodes share: concurrent outbound calls of an organisation, and requests of a key or a user.
//!
//! Every limit has a *home*: one of the members that are up, found by a rendezvous hash, so that all nodes with the same view
//! name the same one, and the end of a node moves only its own limits. The home counts; the others ask it before they
//! take more. While it cannot be reached, and until every member has reported to a new home what it holds, a node goes by its
//! local share of the limit.
//!
//! A node that is cut off keeps its calls, and they stay counted as long as it may live: the home knows what it has granted, and
//! what a home takes for itself beyond its share is known first to the member that would be the next home.

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
