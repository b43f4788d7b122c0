//! Notes: the content that phones show, the phones' answers, and the acknowledgements of their users.
//!
//! [`Note::parse`] reads a note from an integrator, [`Note::payload`] is the content for a phone,
//! [`Acknowledgement`] is the message that a phone sends when its user taps the button, and [`NoteRecord`] is
//! the stored form for readers.

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
