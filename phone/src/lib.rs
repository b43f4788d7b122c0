//! The built-in phone of the demo, the tests and `sidetone phone`: registers, calls, answers, sends the audio
//! of a scenario, shows notes and acknowledges them.
//!
//! It drives the same user agent that the switch uses, on real sockets. It has no microphone, so it is not a
//! softphone.
//!
//! For tests with notes: [`Phone::notes_count`] waits for notes, [`Phone::notes`] lists them, [`Phone::acknowledge`]
//! acknowledges one, [`Phone::treat_notes`] makes the phone refuse, ignore or delay notes, and [`Phone::send`] sends
//! forged requests.
//!
//! [`softphone`] is its command line, and [`demo`] the content that the demo plays with it.

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
