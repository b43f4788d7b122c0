//! What the demo plays: its organisation, its phones, its calls, and how their records look to a person.
//!
//! [`SCENES`] is the script, [`Stage`] plays it against a running engine with a note into one of its
//! calls and a conference beside them, [`get`]
//! reads the records back over HTTP and [`Table`] prints them. Starting and ending the engine is the subcommand's part.

mod client;
mod conference;
mod note;
mod organisation;
mod script;
mod stage;
mod table;

pub use client::{ClientError, get};
pub use conference::ConferenceShowing;
pub use note::NoteShowing;
pub use organisation::{Access, PIN, ROOM};
pub use script::{Callee, SCENES, Scene};
pub use stage::{Played, Showing, Stage, StageError};
pub use table::{Audio, Record, Table};
