//! Notes to phones: stored before they are sent, sent once, with the answers of the phones and their users.
//!
//! [`NoteService`] is behind the HTTP face. It asks the switch which phones there are (`Phones`), has the note stored
//! with its event by the [`NoteWriter`], which commits what comes at one time in one transaction, and answers. Only then
//! the [`courier`] hands it to the switch, which tells what every phone answered; and that is stored the same way. A note
//! whose sending was under way when the engine died is not sent again: nobody is shown a note twice.
//!
//! `sidetone_model::note::rules` is pure: what an answer means for a receipt.

mod callback;
mod counters;
mod courier;
mod from_rooms;
mod news;
mod room;
mod service;
#[cfg(test)]
mod tests;
mod writer;

pub use counters::NoteCounters;
pub use courier::{Courier, Errands, courier};
pub use from_rooms::RoomNotes;
pub use news::{NoteNews, follow};
pub use room::{Clock, NoteRoom};
pub use service::NoteService;
pub use writer::{NoteWriter, Orders};
