//! Measures and judges RTP sessions: parsing, statistics, the media verdict, captures, simulation.
//!
//! Everything except [`net`] is a sans-I/O core: bytes and time go in, and there are no sockets or clocks. A
//! live socket and a capture file are two drivers of one [`session::Session`], so a call and its recording
//! give the same figures. This crate does not depend on SIP, records or HTTP.

pub mod audio;
pub mod codec;
pub mod dtmf;
pub mod dtmf_audio;
pub mod mix;
#[cfg(feature = "net")]
pub mod net;
pub mod pcap;
pub mod playout;
pub mod rtcp;
pub mod rtp;
pub mod session;
pub mod simulate;
pub mod srtp;
pub mod stats;
pub mod time;
pub mod trace;
pub mod transcode;
pub mod verdict;
pub mod webrtc;
