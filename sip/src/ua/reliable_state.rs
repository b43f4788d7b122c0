//! State of the reliable provisional responses of one leg (RFC 3262).

use std::collections::VecDeque;
use std::time::Instant;

use crate::dialog::ReliableResponses;
use crate::ua::draft::Reply;

/// The reliable provisional responses of a leg.
pub(super) enum Reliable {
    /// Those that the peer sent: the tag of each fork and its last RSeq.
    Received(Vec<(String, u32)>),
    /// Ours.
    Sent(Sent),
}

/// Our reliable provisional responses to an INVITE that requires them.
pub(super) struct Sent {
    pub(super) machine: ReliableResponses,
    /// The CSeq number of the INVITE.
    pub(super) cseq: u32,
    /// The responses that wait until the one before is acknowledged.
    pub(super) waiting: VecDeque<Reply>,
}

impl Reliable {
    pub(super) fn next_timeout(&self) -> Option<Instant> {
        match self {
            Reliable::Sent(sent) => sent.machine.next_timeout(),
            Reliable::Received(_) => None,
        }
    }
}
