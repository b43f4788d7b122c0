//! What rooms leave behind: the switch tells what changes in live rooms, and this stores it as sessions with their
//! people, and as events.
//!
//! The [`RoomTeller`] never makes the switch wait. The [`RoomNewsWriter`] folds what is told into rows ([`Ledger`]), and
//! stores a row together with its event, in order, many rooms in one transaction. Who talks is told at most twice a
//! second per room ([`Talk`]). Every two seconds live sessions are marked as such, so that the end of those that a
//! crash cut off is known.

mod ledger;
mod room;
mod talk;
mod teller;
#[cfg(test)]
mod tests;
mod writer;

pub use ledger::Ledger;
pub use room::{Recover, SessionRoom};
pub use talk::Talk;
pub use teller::{QUEUE_LEN_MAX, RoomNewsCounts, RoomTeller};
pub use writer::{Clock, RoomNewsWriter, WAITING_MAX, room_news};
