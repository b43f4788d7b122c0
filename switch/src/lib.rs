//! The switch: back-to-back calls between phones and trunks, with media anchored on our ports.
//!
//! [`call`] decides about one call and knows no SIP message; [`machine`] connects calls with dialogs,
//! the registrar and the directory, [`rooms`] are the conferences, [`routing`] is the dial plan, [`rating`] the prices.
//! No I/O and no clock: the driver of the engine feeds the machine and carries out what it says.

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
mod ending;
mod events;
pub mod face;
mod gate;
mod guess_alerts;
mod incoming;
mod keys;
mod leg;
mod live;
pub mod live_media;
pub mod machine;
pub mod merging;
pub mod messaging;
pub mod mixing;
pub mod names;
mod negotiation;
pub mod notes;
mod outbound;
mod outcome;
mod outgoing;
mod placement;
pub mod rating;
mod registering;
mod registrant;
mod ringing;
pub mod room_questions;
pub mod rooms;
pub mod routing;
mod seating;
mod stay;
mod transcoding;
mod trunks;

#[cfg(test)]
mod tests;
