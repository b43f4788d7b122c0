//! RTP on the wire (RFC 3550 §5): parses datagrams without copying them.

mod header;
mod packet;
mod view;

pub use header::Header;
pub use packet::{Datagram, Packet, PacketError, PayloadKind};
pub use view::RtpPacket;
