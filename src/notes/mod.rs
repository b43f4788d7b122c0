//! Notes to phones: stored before they are sent, sent once, with the answers of the phones and their users.
//!
//! The API calls [`NoteService`]. It asks the switch for the phones ([`Phones`]), has the [`NoteWriter`]
//! store the note with its event (changes that arrive together share one transaction), and answers. Only then
//! the [`courier`] passes the note to the switch. The switch reports what every phone answered, which is
//! stored in the same way. A note that was being sent when the engine died is not sent again, so that no user
//! sees a note twice.
//!
//! [`rules`] is pure: the meaning of an answer for a receipt.

mod callback;
mod change;
mod counters;
mod courier;
mod from_rooms;
mod news;
mod phones;
mod room;
pub mod rules;
mod service;
#[cfg(test)]
mod tests;
mod writer;

pub use change::{Change, Committed, FromRoom, NewNote, NewReceipt, NoteLog, Tap, Tapper, Written};
pub use counters::NoteCounters;
pub use courier::{Courier, Errands, courier};
pub use from_rooms::RoomNotes;
pub use news::{NoteNews, follow};
pub use phones::{CallPhones, Destination, Dispatch, Phone, Phones};
pub use room::{Clock, NoteRoom};
pub use rules::PhoneAnswer;
pub use service::NoteService;
pub use writer::{NoteWriter, Orders};
