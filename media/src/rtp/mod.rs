//! RTP on the wire (RFC 3550 §5): what one datagram says, read without copying it.

mod header;
mod packet;
mod view;

pub use header::Header;
pub use packet::{Datagram, Packet, PacketError, PayloadKind};
pub use view::RtpPacket;
