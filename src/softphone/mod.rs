//! The phone for a user at a terminal, and for scripts: `sidetone phone`.
//!
//! [`Command`] and [`Step`] are its inputs, [`View`] is the layout of notes, [`Session`] executes commands on
//! the built-in [`Phone`](crate::phone::Phone). All text from the network passes [`clean`], which removes
//! control characters, before it reaches the terminal.

mod command;
mod console;
mod secret;
mod session;
mod step;
mod view;

pub use command::{Command, HELP, Which};
pub use console::{Console, lines};
pub use secret::{SecretError, ask, read};
pub use session::{Failed, Session};
pub use step::{Condition, Expectation, Script, ScriptError, Step};
pub use view::{Fold, View, clean};
