//! The state of the party's packets in a session, as needed to process an RTCP report about them.

use crate::time::{ClockRate, Micros};

/// The leg's data about the party's RTP when RTCP arrives.
#[derive(Clone, Copy, Debug, Default)]
pub struct Heard {
    /// The confirmed SSRC.
    pub ssrc: Option<u32>,
    /// Unique packets of that SSRC.
    pub received: u64,
    /// Packets of that SSRC that were sent according to their numbers.
    pub expected: u64,
    /// Packets of the leg that were discarded because of their payload.
    pub refused: u64,
    /// Arrival of the last packet.
    pub last: Option<Micros>,
    /// How long the source can have sent unseen before its first packet arrived.
    pub unseen_us: i64,
    /// RTP packets sent to the party.
    pub sent: u64,
    /// The clock of the audio.
    pub clock: Option<ClockRate>,
}
