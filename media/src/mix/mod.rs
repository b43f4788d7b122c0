//! The sum that a conference hears: everybody but oneself, one tick of 20 ms after the other.
//!
//! A [`Mix`] is a sans-I/O machine: fed with packets and time, it gives packets, events and the next time at which it
//! wants to be called. It knows no room, no call and no socket.
//!
//! ```text
//! packets → inbound (playout, decoder) → talk: who is voiced → the 16 loudest are decoded → voices
//!         → sum at 8, 16, 48 kHz → everybody's encoding, shared or own → sender (RTP header) → packets
//! ```
//!
//! *Rates.* There is one sum for each of 8, 16 and 48 kHz at which somebody listens, and none at another. A voice is
//! decoded at its own rate and resampled once for each other sum, so a room of G.711 phones resamples nothing, and
//! Opus phones hear each other in full band whoever else is there. The other way, one sum at the highest rate that is
//! resampled for each listener, would need a resampler for everybody who speaks and one more when he begins.
//!
//! *Cost.* Whoever is silent costs a look at the level of each packet and the copy of a payload that all who hear the
//! same share. Each of the at most 16 who are heard costs a decoding and an encoding of his own.
//!
//! *Bounds*: [`Mix::SEATS_MAX`] seats, [`Mix::SPEAKERS_MAX`] heard at once, 64 clips a queue, 8 tunes.

mod command;
mod events;
mod grid;
mod inbound;
mod line;
mod machine;
mod member;
mod player;
mod ramp;
mod rate;
mod sender;
mod sounds;
mod spread;
mod stream;
mod sum;
mod talk;
mod tick;
mod voices;
mod words;

pub use machine::Mix;
pub use words::{
    Formats, FrameSink, Hears, MixCommand, MixEvent, MixFigures, MixId, Seat, SeatCommand, SeatError, SeatKey,
};
