//! State of the reliable provisional responses of one leg (RFC 3262).

use std::collections::VecDeque;
use std::time::Instant;

use crate::dialog::ReliableResponses;
use crate::ua::draft::Reply;

/// The reliable provisional responses of a leg.
pub(super) enum Reliable {
    /// The peer's, by fork.
    Received(Vec<Received>),
    /// Ours.
    Sent(Sent),
}

/// Reliable provisional responses of one fork.
pub(super) struct Received {
    /// The tag of the fork.
    pub(super) tag: String,
    /// The last RSeq.
    pub(super) rseq: u32,
    /// Whether one had a session description: the answer to the offer of our INVITE.
    pub(super) answered: bool,
    /// Whether the fork supports UPDATE.
    pub(super) takes_updates: bool,
}

/// Our reliable provisional responses to an INVITE that requires them.
pub(super) struct Sent {
    pub(super) machine: ReliableResponses,
    /// The CSeq number of the INVITE.
    pub(super) cseq: u32,
    /// The responses that wait until the previous one is acknowledged.
    pub(super) waiting: VecDeque<Reply>,
    /// Whether the last sent response has a session description.
    pub(super) describes: bool,
    /// Whether the peer has acknowledged such a response: the offer of its INVITE is answered.
    pub(super) answered: bool,
}

impl Reliable {
    /// Whether the offer of the INVITE is answered in the dialog with the peer of this tag, so that both sides may make
    /// another offer (RFC 3311 §5.1).
    pub(super) fn is_answered(&self, tag: &str) -> bool {
        match self {
            Reliable::Received(forks) => forks.iter().any(|fork| fork.tag == tag && fork.answered),
            Reliable::Sent(sent) => sent.answered,
        }
    }

    /// Whether we may make an offer in UPDATE in the dialog with the peer of this tag (RFC 3311 §5.1).
    pub(super) fn takes_offer(&self, tag: &str) -> bool {
        match self {
            Reliable::Received(forks) => {
                forks.iter().any(|fork| fork.tag == tag && fork.answered && fork.takes_updates)
            }
            Reliable::Sent(sent) => sent.answered,
        }
    }

    pub(super) fn next_timeout(&self) -> Option<Instant> {
        match self {
            Reliable::Sent(sent) => sent.machine.next_timeout(),
            Reliable::Received(_) => None,
        }
    }
}
