//! The figures of a playout.

/// Counts since the playout began; the delays are current values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PlayoutFigures {
    /// Packets that arrived after a later one was played.
    pub late: u64,
    /// Packets dropped unplayed because too many waited.
    pub early: u64,
    /// Packets that arrived twice.
    pub duplicates: u64,
    /// Packets that their codec could not decode.
    pub damaged: u64,
    /// Milliseconds of audio that concealed missing packets.
    pub concealed_ms: u64,
    /// Milliseconds by which audio was lengthened.
    pub stretched_ms: u64,
    /// Milliseconds by which audio was shortened.
    pub shortened_ms: u64,
    /// Current delay of the audio, from the arrival of a packet without lateness to its frame.
    pub delay_ms: u32,
    /// The delay that the lateness of the packets requires.
    pub target_ms: u32,
}
