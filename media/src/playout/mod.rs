//! Playout: the packets of one party in, one frame of 20 ms per tick out. Wherever audio is decoded, never on a relay.
//!
//! [`Playout`] is fed packets as they arrive and asked for a frame at every tick. In between, `slots` puts packets in
//! order, `timing` watches how late they come and says how long to wait for them, `voice` decodes, conceals and
//! resamples, `stretch` makes voice a little longer or shorter where the wait is not what it should be, and `noise` is
//! what is heard of a party that says it is silent (RFC 3389). How loud a frame is can be asked before it is decoded,
//! and a frame can be passed over undecoded.

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
