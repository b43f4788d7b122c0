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
mod content;
mod dissector;
mod fragments;
mod ip;
mod link;
mod link_type;
mod plain;
mod reader;
mod record;
pub mod tcp;
mod writer;

pub use content::{Content, Datagram, FragmentKey, Segment};
pub use dissector::{Dissector, fragment_of};
pub use ip::dissect;
pub use link_type::LinkType;
pub use plain::{PlainDatagram, dissect_plain};
pub use reader::{Damage, Decoder, Drained, Records};
pub use record::{ELEMENT_LEN_MAX, Progress, Record};
pub use writer::{Writer, file_header, record_header};
