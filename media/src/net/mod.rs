//! RTP on the wire: ports, sockets, kernel receive times, and the relay between the two legs of a call.
//!
//! [`Relay`] is the whole face. Behind it, worker threads own their sockets and the sessions of their
//! legs; a packet is received into a worker's buffer, measured by the leg's
//! [`Session`](crate::session::Session) and sent to the other leg from that same buffer: no lock, no
//! channel, no allocation and no copy in between. Commands enter by a bounded queue per worker, reports
//! leave by one bounded channel.
//!
//! A [`Mix`](crate::mix::Mix) lives in one worker, which its number decides. A leg that joins it from another
//! worker is handed over with its sockets and its session, so that audio never crosses threads.
//!
//! Legs of a call that share no codec are bridged by a [`Transcoder`](crate::transcode::Transcoder) in each direction,
//! in the worker that has them both.
//!
//! What a packet *means* is decided by the session, what a room sounds like by the mix; here are only bytes,
//! addresses and clocks. SRTP is not here.

mod beep;
mod clock;
mod counters;
mod endpoint;
mod guard;
mod handover;
mod leg;
mod legs;
mod message;
mod mixes;
mod notice_queue;
mod ports;
mod presence;
mod relay;
mod reports;
mod shared;
mod transcoding;
mod transcodings;
mod waker;
mod wire;
mod worker;
mod worker_io;

pub use counters::{Counters, DiscardCount, MixingCounts, TickCounts};
pub use message::{
    Command, CommandError, MixRefused, Notice, OpenError, Port, PortId, RelayConfig, RelayError,
};
pub use relay::Relay;
