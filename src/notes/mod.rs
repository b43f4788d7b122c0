//! Notes to phones: stored before they are sent, sent once, with the answers of the phones and their users.
//!
//! [`NoteService`] is behind the HTTP face. It asks the switch which phones there are (`Phones`), has the note stored
//! with its event by the [`NoteWriter`], which commits what comes at one time in one transaction, and answers. Only then
//! the [`dispatcher`](dispatcher()) hands it to the switch, which tells what every phone answered; and that is stored the same way. A note
//! whose sending was under way when the engine died is not sent again: nobody is shown a note twice.
//!
//! `sidetone_model::note::rules` is pure: what an answer means for a receipt.

mod callback;
mod conference_notes;
mod counters;
mod dispatcher;
mod orders;
mod phone_replies;
mod service;
mod tasks;
#[cfg(test)]
mod tests;
mod writer;

pub use conference_notes::ConferenceNotes;
pub use counters::NoteCounters;
pub use dispatcher::{DispatchQueue, Dispatcher, dispatcher};
pub use orders::Orders;
pub use phone_replies::{PhoneReply, follow};
pub use service::NoteService;
pub use tasks::NoteTasks;
pub use writer::NoteWriter;
