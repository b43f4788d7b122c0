//! The inputs of the rules besides the figures of a leg's packets.

/// Inputs of the rules from signalling, the source filter and the sending side.
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
    /// RTP packets rejected because of their source.
    pub rejected_source: u64,
    /// Whether the address in the party's SDP is not reachable.
    pub advertised_unreachable: bool,
    /// Whether the address in our SDP is not reachable for the party.
    pub own_unreachable: bool,
    /// ICMP errors on the leg's socket.
    pub unreachable_errors: u64,
    /// Time for which our packets went to an unreachable address, in microseconds.
    pub blackhole_us: i64,
    /// Whether the party's packets arrived from another address than in SDP, and that address was latched.
    pub relocated: bool,
    /// Time from the last packet to the end of expected audio, in microseconds.
    pub tail_us: i64,
    /// The packet duration that the party advertised, or its default, in milliseconds.
    pub ptime_ms: u32,
    /// Our own `a=ptime` in milliseconds.
    pub own_ptime_ms: Option<u32>,
    /// Our own `a=maxptime` in milliseconds.
    pub own_maxptime_ms: Option<u32>,
    /// Whether SDP makes the party receive only (`a=recvonly`).
    pub only_listens: bool,
}
