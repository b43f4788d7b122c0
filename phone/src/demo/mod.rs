//! The content of the demo: its organisation, its phones, its calls, and the table of their records.
//!
//! [`SCENES`] is the script. [`Stage`] plays it with a running engine, and also sends a note into one of its
//! calls and holds a conference. [`get`] reads the records over HTTP and [`Table`] prints them. The
//! subcommand starts and ends the engine.

mod client;
mod conference;
mod note;
mod organisation;
mod result;
mod script;
mod stage;
mod table;

pub use client::{ClientError, get};
pub use conference::ConferenceShowing;
pub use note::NoteShowing;
pub use organisation::{Access, PIN, ROOM};
pub use result::{Audio, Record, Showing};
pub use script::{Callee, SCENES, Scene};
pub use stage::{Played, Stage, StageError};
pub use table::Table;
