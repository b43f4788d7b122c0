//! Capture files: reads pcap and pcapng without copying, decodes the layers down to UDP and TCP, and writes
//! captures.
//!
//! The decoder is sans-I/O: a driver passes it the bytes it has and learns how many were used, so a capture
//! of any size is read with a small buffer. This module does not depend on RTP or SIP.
//!
//! ```
//! use sidetone_media::pcap::{Content, LinkType, Records, Writer, dissect};
//! use sidetone_media::time::Micros;
//!
//! let mut file = Vec::new();
//! let mut writer = Writer::new(&mut file, LinkType::ETHERNET)?;
//! writer.write_udp(Micros(1_000_000), "192.0.2.1:4000".parse()?, "192.0.2.2:5000".parse()?, b"hello")?;
//!
//! for record in Records::new(&file) {
//!     let record = record?;
//!     if let Content::Udp(datagram) = dissect(record.link, record.frame) {
//!         assert_eq!(datagram.payload, b"hello");
//!     }
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod blocks;
mod bytes;
mod dissector;
mod fragments;
mod ip;
mod link;
mod plain;
mod reader;
pub mod tcp;
mod writer;

pub use dissector::{Dissector, fragment_of};
pub use ip::{Content, Datagram, FragmentKey, Segment, dissect};
pub use link::LinkType;
pub use plain::{PlainDatagram, dissect_plain};
pub use reader::{Damage, Decoder, Drained, ELEMENT_LEN_MAX, Progress, Record, Records};
pub use writer::{Writer, file_header, record_header};
