//! The audio of a conference: each party hears the sum of all others, in ticks of 20 ms.
//!
//! A [`Mix`] is a sans-I/O machine: packets and time go in; packets, events and the time of the next tick
//! come out. It does not depend on rooms, calls or sockets.
//!
//! ```text
//! packets → inbound (playout, decoder) → talk: voiced parties → the 16 loudest are decoded → voices
//!         → gain → sum at 8, 16, 48 kHz → encodings, shared or own → sender (RTP header) → packets
//! ```
//!
//! *Rates.* There is one sum for each of 8, 16 and 48 kHz that has a listener, and none for other rates. A
//! voice is decoded at its own rate and resampled once for each other sum. So a room of G.711 phones
//! resamples nothing, and Opus phones hear each other in full band whatever the other codecs are. The
//! alternative, one sum at the highest rate that is resampled for each listener, needs a resampler per
//! speaker and another one whenever a party begins to talk.
//!
//! *Pauses.* While no party talks, the others hear noise at the level of the background (`comfort_noise`).
//!
//! *Cost.* For each packet of a silent party the mix reads its level and copies a payload that all listeners
//! share. Each of the at most 16 parties that are heard costs one decoding and one encoding.
//!
//! *Bounds*: [`Mix::SEATS_MAX`] seats, [`Mix::SPEAKERS_MAX`] heard at the same time, 64 clips per queue, 8 music clips.

mod comfort_noise;
mod command;
mod events;
mod gain;
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
    Formats, FrameSink, Gain, Hears, MixCommand, MixEvent, MixFigures, MixId, Seat, SeatCommand, SeatError,
    SeatKey,
};
