//! What a session knows of the party's packets when RTCP reports on them.

use crate::time::{ClockRate, Micros};

/// What a leg knows of the party's RTP when RTCP comes.
#[derive(Clone, Copy, Debug, Default)]
pub struct Heard {
    /// The confirmed source.
    pub ssrc: Option<u32>,
    /// Unique packets of it.
    pub received: u64,
    /// Packets of it that should have arrived by their numbers.
    pub expected: u64,
    /// Packets of the leg that were refused for their payload.
    pub refused: u64,
    /// When the last packet came.
    pub last: Option<Micros>,
    /// How long the source can have sent before its first packet came, without having been seen.
    pub unseen_us: i64,
    /// RTP packets sent to the party.
    pub sent: u64,
    /// The clock of the audio.
    pub clock: Option<ClockRate>,
}
