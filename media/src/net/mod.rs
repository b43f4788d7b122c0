//! RTP on the wire: ports, sockets, kernel receive times, and the relay between the two legs of a call.
//!
//! [`Relay`] is the only public entry. Its worker threads own their sockets and the sessions of their legs. A
//! packet is received into a worker's buffer, measured by the leg's [`Session`](crate::session::Session) and
//! sent to the other leg from the same buffer, without lock, channel, allocation or copy. Commands arrive
//! through a bounded queue per worker; reports leave through one bounded channel.
//!
//! A [`Mix`](crate::mix::Mix) lives in one worker, chosen by its id. A leg of another worker that joins it is
//! handed over with its sockets and its session, so that audio never crosses threads.
//!
//! Legs of a call without a common codec are bridged by a [`Transcoder`](crate::transcode::Transcoder) per
//! direction, in the worker that owns both legs.
//!
//! The session interprets the packets and the mix produces the audio of a room; this module handles only
//! bytes, addresses and clocks. DTLS handshakes run on a thread of their own. SRTP and ICE are not here.

mod beep;
mod clock;
mod counters;
mod gather;
mod guard;
mod handover;
mod handshakes;
mod ice_path;
mod job;
mod key_ear;
mod key_presses;
mod key_tones;
mod key_watch;
mod keys;
mod leg;
mod legs;
mod message;
mod mixes;
mod monitor;
mod notice_queue;
mod pair;
mod payload;
mod ports;
mod presence;
mod protected;
mod real_time;
mod relay;
mod reporting;
mod reports;
mod rtcp_tap;
mod secured;
mod shared;
mod transcoding;
mod transcodings;
mod webrtc;
mod worker;
mod worker_io;

pub use counters::{Counters, DiscardCount, MixingCounts, TickCounts};
pub use message::{
    Command, CommandError, CommandRefused, MixRefused, Notice, OpenError, Port, PortId, RelayConfig,
    RelayError, RelayIo, Shaken,
};
pub use real_time::try_real_time;
pub use relay::Relay;
pub use rtcp_tap::{RtcpPacket, RtcpSink};
pub use sidetone_wire::Io;
