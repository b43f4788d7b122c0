//! Stores the history of rooms: the switch reports the changes of live rooms, and this module stores them as sessions
//! with their people, and as events.
//!
//! The [`HistorySender`] never makes the switch wait. The [`HistoryWriter`] folds the changes into rows
//! ([`SessionRows`]), and stores a row together with its event, in order, many rooms in one transaction. Talking
//! members are reported at most twice a second per room ([`TalkThrottle`]). Live sessions are marked every two
//! seconds, so that after a crash the end of their sessions is known.

mod sender;
mod session_rows;
mod talk_throttle;
mod tasks;
#[cfg(test)]
mod tests;
mod writer;

pub use sender::{HistoryCounters, HistorySender, QUEUE_LEN_MAX};
pub use session_rows::SessionRows;
pub use talk_throttle::TalkThrottle;
pub use tasks::{HistoryTasks, Recover};
pub use writer::{HistoryWriter, WAITING_MAX, history};
