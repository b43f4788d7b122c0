//! The built-in phone of the demo, the tests and `sidetone phone`: registers, calls, answers, sends the audio
//! of a scenario, shows notes and acknowledges them.
//!
//! A driver around the same user agent that the switch uses, on real sockets. It is not a softphone: it has
//! no microphone.
//!
//! Tests of notes use [`Phone::notes_count`] to wait, [`Phone::notes`] to read, [`Phone::acknowledge`] to
//! acknowledge, [`Phone::treat_notes`] for a phone that refuses, does not answer or is slow, and
//! [`Phone::send`] for a forged message.

mod actor;
mod dialling;
mod handset;
mod heard;
mod media;
mod notes;
mod plan;
mod requests;
mod tap;
#[cfg(test)]
mod tests;
mod voice;
mod wav;
mod wire;

pub use handset::{Phone, PhoneError};
pub use heard::Heard;
pub use notes::{Channel, Level, Noting, Parcel, ShownNote};
pub use plan::{Answering, CallOutcome, CallPlan, Calls, News, PhoneConfig};
pub use tap::Tap;
pub use voice::{Voice, is_digit};
pub use wav::Recorder;
pub use wire::Carrier;
