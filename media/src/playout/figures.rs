//! What a playout has done so far.

/// Counts since the playout began; the delays are those of now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PlayoutFigures {
    /// Packets that came after what follows them was played.
    pub late: u64,
    /// Packets thrown away unplayed because too many waited.
    pub early: u64,
    /// Packets that came twice.
    pub duplicates: u64,
    /// Packets that their codec could not read.
    pub damaged: u64,
    /// Milliseconds of audio that stood in for what was missing.
    pub concealed_ms: u64,
    /// Milliseconds that audio was made longer, and shorter.
    pub stretched_ms: u64,
    /// See `stretched_ms`.
    pub shortened_ms: u64,
    /// How long audio waits now, from the arrival of a packet that was not held up to its frame.
    pub delay_ms: u32,
    /// How long it should, as late as packets come.
    pub target_ms: u32,
}
