//! One leg: an INVITE and the dialogs that it creates, of which at most one lasts.

use std::fmt;
use std::time::{Duration, Instant};

use crate::dialog::{Answer, Dialog, InviteUsage, SessionTimer};
use crate::flow::Flow;
use crate::message::Request;
use crate::transaction::{ClientKey, ServerKey};
use crate::ua::reliable_state::Reliable;

/// Identifies one leg for the life of its user agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LegKey(pub(super) u64);

/// The state of a leg in the user agent.
pub(super) struct Leg {
    /// Our tag; it identifies the leg in every message of its dialogs.
    pub(super) local_tag: String,
    /// The flow of the INVITE, or the one that the peer has moved to.
    pub(super) flow: Flow,
    /// Whether requests to the peer use its flow, whatever its Contact is.
    pub(super) keeps_flow: bool,
    /// The connection that is held for the leg. Boxed, because most legs are on UDP.
    pub(super) held: Option<Box<Flow>>,
    pub(super) phase: Phase,
    /// Whether a provisional response to our INVITE arrived, 100 included.
    pub(super) heard: bool,
    /// Our INVITE: further forks may answer it after the first, and the ACK needs its credentials.
    pub(super) invite: Option<Box<Request>>,
    /// The dialogs; once confirmed, the lasting one first, followed by those of a fork that are being ended.
    pub(super) dialogs: Vec<Dialog>,
    pub(super) usage: InviteUsage,
    /// Our INVITE inside the dialog, until its final response.
    pub(super) reinvite: Option<ClientKey>,
    /// Our 2xx that waits for its ACK.
    pub(super) answer: Option<PendingAnswer>,
    /// Whether the user has received [`Ended`](super::Event::Ended); only messages with the peer remain.
    pub(super) released: bool,
    /// Our BYEs without a response yet.
    pub(super) byes: usize,
    /// The Reason of our BYE.
    pub(super) bye_reason: Option<Box<str>>,
    /// The session timer, if the user agent has them.
    pub(super) timer: Option<SessionTimer>,
    /// Our UPDATE that refreshes the session or makes an offer in an early dialog, until its final response.
    pub(super) update: Option<ClientKey>,
    /// Its reliable provisional responses, ours or the peer's. Boxed, because most legs have none.
    pub(super) reliable: Option<Box<Reliable>>,
    /// The peer's UPDATE or PRACK with an offer, until our final response.
    pub(super) updating: Option<ServerKey>,
    /// Whether the peer supports UPDATE.
    pub(super) peer_updates: bool,
}

pub(super) enum Phase {
    /// Our INVITE waits for its answer.
    Calling { client: ClientKey },
    /// The peer's INVITE waits for our answer; a provisional response is repeated at `refresh`.
    Ringing { server: ServerKey, refresh: Option<Instant> },
    /// There is a dialog. `ack_owed`: the CSeq number of our INVITE whose 2xx the user must acknowledge.
    Confirmed { ack_owed: Option<u32> },
    /// A BYE was sent or received.
    Ending,
}

pub(super) struct PendingAnswer {
    pub(super) machine: Answer,
    pub(super) key: ServerKey,
    /// Whether it confirmed the dialog; before its ACK no BYE may be sent (§15).
    pub(super) first: bool,
    /// The CSeq number of its ACK.
    pub(super) cseq: u32,
}

impl Leg {
    pub(super) fn new(local_tag: String, flow: Flow, phase: Phase, invite: Option<Box<Request>>) -> Self {
        let owns_call_id = invite.is_some();
        Self {
            local_tag,
            flow,
            keeps_flow: false,
            held: None,
            phase,
            heard: false,
            invite,
            dialogs: Vec::new(),
            usage: InviteUsage::new(owns_call_id),
            reinvite: None,
            answer: None,
            released: false,
            byes: 0,
            bye_reason: None,
            timer: None,
            update: None,
            reliable: None,
            updating: None,
            peer_updates: false,
        }
    }

    pub(super) fn next_timeout(&self) -> Option<Instant> {
        let refresh = match &self.phase {
            Phase::Ringing { refresh, .. } => *refresh,
            _ => None,
        };
        let answer = self.answer.as_ref().and_then(|answer| answer.machine.next_timeout());
        let is_up = matches!(self.phase, Phase::Confirmed { .. }) && !self.released;
        let session = self.timer.as_ref().filter(|_| is_up).and_then(SessionTimer::next_timeout);
        let reliable = self.reliable.as_ref().filter(|_| matches!(self.phase, Phase::Ringing { .. }));
        let reliable = reliable.and_then(|reliable| reliable.next_timeout());
        [refresh, answer, session, reliable, self.usage.next_timeout()].into_iter().flatten().min()
    }

    /// The dialog with this peer.
    pub(super) fn dialog_with(&self, call_id: &str, remote_tag: &str) -> Option<usize> {
        self.dialogs.iter().position(|dialog| {
            let id = dialog.id();
            id.call_id == call_id && id.remote_tag == remote_tag
        })
    }

    /// Whether our INVITE may be sent in the dialog now (§14.1).
    pub(super) fn may_reinvite(&self) -> bool {
        let idle = self.answer.is_none() && self.updating.is_none() && self.usage.may_send();
        idle && !self.released && matches!(self.phase, Phase::Confirmed { ack_owed: None })
    }

    /// The lasting dialog, if the leg has one that the user may use.
    pub(super) fn confirmed(&mut self) -> Option<&mut Dialog> {
        match self.phase {
            Phase::Confirmed { .. } if !self.released => self.dialogs.first_mut(),
            _ => None,
        }
    }
}

impl LegKey {
    /// Sorted before every other key.
    pub const MIN: Self = Self(u64::MIN);
    /// Sorted after every other key.
    pub const MAX: Self = Self(u64::MAX);
}

impl fmt::Display for LegKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "leg {}", self.0)
    }
}

/// Interval at which a provisional response is repeated (§13.3.1.1).
pub(super) const PROVISIONAL_EVERY: Duration = Duration::from_secs(60);

/// Dialogs that one INVITE may create; further ones are ignored.
pub(super) const FORKS_MAX: usize = 16;
