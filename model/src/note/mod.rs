//! Notes: what phones show, what they answered, and what their users acknowledged.
//!
//! [`Note::parse`] reads a note from an integrator, [`Note::payload`] is what a phone receives,
//! [`Acknowledgement`] is the message when a user taps the button, and [`NoteRecord`] is what can be read
//! afterwards.

mod acknowledgement;
mod change;
mod content;
mod phones;
mod port;
mod record;
pub mod rules;

pub use acknowledgement::Acknowledgement;
pub use change::{Change, Committed, FromRoom, NewNote, NewReceipt, NoteLog, Tap, Tapper, Written};
pub use content::{Note, NoteLevel, TITLE_LEN_MAX, WHOLE_BYTES_MAX};
pub use phones::{CallPhones, Destination, Dispatch, Phone, Phones};
pub use port::{NoteQuery, NoteSent, Notes};
pub use record::{NoteChannel, NoteReceipt, NoteRecord, NoteSource, NoteStatus};
pub use rules::PhoneAnswer;
