//! The phone for a user at a terminal, and for scripts: `sidetone phone`.
//!
//! [`Command`] and [`Step`] are its inputs, [`View`] is the layout of notes, and [`Session`] executes the inputs with
//! the built-in [`Phone`](crate::Phone). Text from the network reaches the terminal only through [`clean`], which
//! removes control characters.

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
