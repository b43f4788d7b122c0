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
mod call;
mod calls;
mod command;
mod config;
pub mod demo;
mod endpoint;
mod media;
mod notes;
mod packet_capture;
mod phone;
mod received_audio;
mod referrals;
mod requests;
pub mod softphone;
mod srtp;
mod terminal;
#[cfg(test)]
mod tests;
mod transport;
mod voice;
mod wav;

pub use command::PhoneError;
pub use config::{Answering, CallOutcome, CallPlan, Calls, News, PhoneConfig};
pub use notes::{Channel, Level, Noting, Parcel, ShownNote};
pub use packet_capture::Tap;
pub use phone::Phone;
pub use received_audio::Heard;
pub use transport::Carrier;
pub use voice::{Voice, is_digit};
pub use wav::Recorder;
