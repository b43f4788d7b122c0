//! Notes: what is shown on phones, what they answered, and what a person acknowledged.
//!
//! [`Note::parse`] reads what an integrator sends, [`Note::payload`] is what a phone receives, [`Acknowledgement`] what
//! comes back when a person taps the button, and [`NoteRecord`] what can be read afterwards.

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
