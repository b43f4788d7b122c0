//! What the demo plays: its organisation, its phones, its calls, and how their records look to a person.
//!
//! [`SCENES`] is the script, [`Stage`] plays it against a running engine with a note into one of its calls, [`get`]
//! reads the records back over HTTP and [`Table`] prints them. Starting and ending the engine is the subcommand's part.

mod client;
mod note;
mod organisation;
mod script;
mod stage;
mod table;

pub use client::{ClientError, get};
pub use note::NoteShowing;
pub use organisation::Access;
pub use script::{Callee, SCENES, Scene};
pub use stage::{Showing, Stage, StageError};
pub use table::{Record, Table};
