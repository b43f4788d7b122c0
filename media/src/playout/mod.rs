//! Playout: turns the packets of one party into one frame of 20 ms per tick. Used wherever audio is decoded,
//! never for a relay.
//!
//! [`Playout`] takes packets as they arrive and returns a frame at every tick. Inside, `slots` orders the
//! packets; `timing` measures their lateness and computes the target delay; `voice` decodes, conceals and
//! resamples; `stretch` lengthens or shortens voice a little when the delay differs from its target; and
//! `noise` generates comfort noise for a silent party (RFC 3389). The level of a frame is available before it
//! is decoded, and a frame can be skipped without decoding.

mod figures;
mod formats;
mod machine;
mod noise;
mod slots;
mod stretch;
mod tick;
mod timing;
mod voice;

pub use figures::PlayoutFigures;
pub use formats::PlayoutFormats;
pub use machine::{Peek, Playout, Pulled, Pushed};
