//! Notes to phones: stored before they are sent, sent once, with the responses of the phones and their users.
//!
//! [`NoteService`] serves the HTTP API. It queries the switch for the phones (`Phones`), has the note stored with its
//! event by the [`NoteWriter`], which commits simultaneous notes in one transaction, and responds. Only then does the
//! [`dispatcher`](dispatcher()) pass it to the switch, which reports the response of every phone; these are stored in
//! the same way. A note whose sending was in progress when the engine crashed is not sent again: no user is shown a
//! note twice.
//!
//! `sidetone_model::note::rules` is pure: it derives the state of a receipt from a response.

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
