//! Stores what happens in rooms: the switch reports the changes of live rooms, and this module stores them as
//! sessions with their people, and as events.
//!
//! The [`RoomTeller`] never makes the switch wait. The [`RoomNewsWriter`] folds the changes into rows
//! ([`Ledger`]), and stores a row together with its event, in order, many rooms in one transaction. Who talks
//! is reported at most twice a second per room ([`Talk`]). Live sessions are marked every two seconds, so
//! that the end of sessions that a crash cut off is known.

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
