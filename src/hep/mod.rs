//! HEPv3 export to a Homer server (`[hep]`): SIP messages without credentials, RTCP, and figures of legs.
//!
//! `packet.rs` writes packets without I/O, `sender.rs` queues and sends them, `figures.rs` reports live legs every
//! ten seconds, `rtcp.rs` passes on RTCP from the threads of the relay. Nothing here delays a call.

mod figures;
mod packet;
mod rtcp;
mod sender;
mod settings;

pub use figures::{LiveCallIds, LiveFigures, report};
pub use packet::{Kind, Packet};
pub use rtcp::RtcpExport;
pub use sender::{HepCounters, HepSender};
pub use settings::{HepPassword, HepSettings, parse_server};
