//! The switch: back-to-back calls between phones and trunks, with media anchored on our ports.
//!
//! [`call`] decides about one call and handles no SIP message; [`machine`] connects calls with dialogs, the
//! registrar and the directory; only [`driver`] has sockets, a clock and a task.

pub mod admitting;
mod billing;
pub mod call;
pub mod carriers;
mod carrying;
mod conferencing;
pub mod control;
pub mod counters;
pub mod denied;
mod dialling;
pub mod driver;
mod ending;
mod events;
pub mod face;
mod gate;
mod guess_alerts;
mod incoming;
mod keys;
mod leg;
mod live;
mod live_media;
pub mod machine;
mod merging;
pub mod messaging;
pub mod mixing;
pub mod names;
mod negotiation;
mod notes;
mod outbound;
mod outcome;
mod outgoing;
mod placement;
mod registering;
mod registrant;
mod ringing;
mod room_questions;
mod seating;
mod stay;
mod transcoding;
mod trunks;

#[cfg(test)]
mod tests;
