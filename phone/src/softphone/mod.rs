//! The phone for a user at a terminal, and for scripts: `sidetone phone`.
//!
//! [`Command`] and [`Step`] are what can be asked of it, [`View`] is how notes look, [`Session`] does what is asked
//! over the built-in [`Phone`](crate::Phone). Nothing that the network sent reaches the terminal unread:
//! [`clean`] takes control characters out of it.

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
