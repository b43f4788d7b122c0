//!
//! to whom is the driver's to say.

mod udp;

pub use udp::{
    BindError, Counters, DATAGRAM_BYTES_MAX, SendError, UdpSender, UdpTransport, local_address_towards,
};
