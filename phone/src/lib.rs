//! The built-in phone of the demo, the tests and `sidetone phone`: registers, calls, answers, sends the audio
//! of a scenario, shows notes and acknowledges them.
//!
//! A driver around the same user agent that the switch uses, on real sockets. It is not a softphone: it has
//! no microphone.
//!
//! A test that wants to see notes needs little: [`Phone::notes_count`] to wait, [`Phone::notes`] to look,
//! [`Phone::acknowledge`] to tap, [`Phone::treat_notes`] for a phone that refuses, is deaf or slow, and
//! [`Phone::send`] for a forger.
//!
//! [`softphone`] is the command line around it, [`demo`] what the demo plays with it.

mod actor;
pub mod demo;
mod dialling;
mod handset;
mod heard;
mod media;
mod notes;
mod plan;
mod requests;
pub mod softphone;
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
