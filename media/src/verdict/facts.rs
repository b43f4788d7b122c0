//! What the rules know of a leg beside the figures of its packets.

/// What signalling, the source filter and the sending side know of a leg.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    /// Whether the leg was answered.
    pub answered: bool,
    /// Time after the answer in which the party should have sent, in microseconds.
    pub receive_expected_us: i64,
    /// Time after the answer in which we should have sent, in microseconds.
    pub send_expected_us: i64,
    /// RTP packets of any kind accepted after the answer.
    pub received_after_answer: u64,
    /// RTP packets sent after the answer.
    pub sent_after_answer: u64,
    /// RTP packets refused for their source.
    pub rejected_source: u64,
    /// Whether the address in the party's SDP leads nowhere.
    pub advertised_unreachable: bool,
    /// Whether the address in our SDP leads the party nowhere.
    pub own_unreachable: bool,
    /// ICMP errors on the leg's socket.
    pub unreachable_errors: u64,
    /// Time for which our packets went to a dead end, in microseconds.
    pub blackhole_us: i64,
    /// Whether the party's packets came from another address than SDP said, and were latched to.
    pub relocated: bool,
    /// Time from the last packet to the end of expected audio, in microseconds.
    pub tail_us: i64,
    /// The packet duration the party advertised, or what stands for it, in milliseconds.
    pub ptime_ms: u32,
    /// Our own `a=ptime` in milliseconds.
    pub own_ptime_ms: Option<u32>,
    /// Our own `a=maxptime` in milliseconds.
    pub own_maxptime_ms: Option<u32>,
    /// Whether SDP has the party listen and send nothing (`a=recvonly`).
    pub only_listens: bool,
}
