//! Notes: what is shown on phones, what they answered, and what a person acknowledged.
//!
//! [`Note::parse`] reads what an integrator sends, [`Note::payload`] is what a phone receives, [`Acknowledgement`] what
//! comes back when a person taps the button, and [`NoteRecord`] what can be read afterwards.

mod acknowledgement;
mod content;
mod port;
mod record;

pub use acknowledgement::Acknowledgement;
pub use content::{Note, NoteLevel, TITLE_LEN_MAX, WHOLE_BYTES_MAX};
pub use port::{NoteQuery, NoteSent, Notes};
pub use record::{NoteChannel, NoteReceipt, NoteRecord, NoteSource, NoteStatus};
