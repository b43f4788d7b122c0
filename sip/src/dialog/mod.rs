//! Dialogs of two user agents (RFC 3261 §12), and the rules for INVITEs inside them (§13, §14).
//!
//! Nothing here sends: a dialog creates requests and checks received ones; its machines determine when to
//! send.

mod answer;
#[expect(clippy::module_inception, reason = "the folder is the room, the file its main thing")]
mod dialog;
mod offer;
mod reliable;
mod route_set;
mod session_timer;
#[cfg(test)]
mod tests;

pub use answer::{Answer, AnswerInput, AnswerOutput};
pub use dialog::{Dialog, DialogError, DialogId, Role, State};
pub use offer::{Clash, InviteInput, InviteOutput, InviteUsage};
pub use reliable::{ReliableInput, ReliableOutput, ReliableResponses};
pub use route_set::RouteSet;
pub use session_timer::{
    MIN_SE_S, SessionAnswer, SessionTerms, SessionTimer, SessionTimerConfig, SessionTimerInput,
    SessionTimerOutput, TIMER,
};
