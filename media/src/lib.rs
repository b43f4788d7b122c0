//! RTP sessions measured and judged: parsing, statistics, the media verdict, captures, simulation.
//!
//! Everything but [`net`] is a sans-I/O core: fed with bytes and time, free of sockets and clocks. A live
//! socket and a capture file are two drivers of one [`session::Session`], so a call and its own recording
//! give the same figures. Nothing here knows SIP, records or HTTP.

pub mod audio;
pub mod codec;
pub mod dtmf;
pub mod mix;
#[cfg(feature = "net")]
pub mod net;
pub mod pcap;
pub mod playout;
pub mod rtcp;
pub mod rtp;
pub mod session;
pub mod simulate;
pub mod stats;
pub mod time;
pub mod trace;
pub mod transcode;
pub mod verdict;
