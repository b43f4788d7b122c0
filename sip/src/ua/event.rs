//! What a user agent tells its user and its driver.

use bytes::Bytes;

use crate::flow::Flow;
use crate::message::{Rejection, Request, Response, StatusCode};
use crate::transaction::{ClientKey, ServerKey};
use crate::ua::LegKey;

/// Something to do, or to know.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "drained at once, never stored")]
pub enum Output {
    /// For the user.
    Event(Event),
    /// A table is full; the message was answered 503.
    Overload {
        /// Where the message came from.
        flow: Flow,
    },
    /// What came was no message; it was answered where that is possible.
    Rejected {
        /// Where it came from.
        flow: Flow,
        /// The rule it broke.
        reason: Rejection,
    },
    /// Send these bytes.
    Transmit {
        /// To where.
        flow: Flow,
        /// One whole message.
        bytes: Bytes,
        /// The transaction to name in [`Input::TransportError`](super::Input::TransportError) if sending fails.
        key: Option<ClientKey>,
    },
    /// An answer to a stranger was not sent: its shortest form is more than one and a half times what came.
    Withheld {
        /// Where the request came from.
        flow: Flow,
    },
}

/// What happened.
#[derive(Debug)]
pub enum Event {
    /// The ACK of our 2xx came; it may carry the answer to our offer. Once per 2xx.
    Acked {
        /// The leg.
        leg: LegKey,
        /// The ACK.
        request: Request,
    },
    /// The peer answered: the leg has its dialog. If the INVITE carried no offer, the user owes [`Ua::ack`](super::Ua::ack).
    Answered {
        /// The leg.
        leg: LegKey,
        /// The 2xx.
        response: Response,
    },
    /// The leg is over; the last event about it.
    Ended {
        /// The leg.
        leg: LegKey,
        /// Why.
        cause: Cause,
    },
    /// An INFO of ours came to its end; once for each, also after the leg's [`Event::Ended`]. Whatever the receipt says,
    /// the leg goes on: see [`Ua::info`](super::Ua::info).
    InfoAnswered {
        /// The leg it was sent in.
        leg: LegKey,
        /// Its transaction, as [`Ua::info`](super::Ua::info) returned it.
        key: ClientKey,
        /// What came of it.
        receipt: Receipt,
    },
    /// An INVITE came and wants an answer by [`Ua::respond`](super::Ua::respond).
    Invited {
        /// The new leg.
        leg: LegKey,
        /// The INVITE's transaction.
        key: ServerKey,
        /// Where it came from.
        flow: Flow,
        /// The INVITE.
        request: Request,
    },
    /// A MESSAGE of ours outside dialogs came to its end; once for each.
    MessageAnswered {
        /// Its transaction, as [`Ua::request`](super::Ua::request) returned it.
        key: ClientKey,
        /// What came of it.
        receipt: Receipt,
    },
    /// A provisional response of more than 100 to the INVITE of a leg; several dialogs of a fork may send them.
    Progress {
        /// The leg.
        leg: LegKey,
        /// The response.
        response: Response,
    },
    /// The peer changes the call by an INVITE in the dialog; it wants an answer.
    Reinvited {
        /// The leg.
        leg: LegKey,
        /// The INVITE's transaction.
        key: ServerKey,
        /// Where it came from.
        flow: Flow,
        /// The INVITE.
        request: Request,
    },
    /// The peer took its INVITE in the dialog back; 487 has been sent.
    ReinviteCancelled {
        /// The leg.
        leg: LegKey,
        /// The INVITE's transaction.
        key: ServerKey,
    },
    /// Our INVITE in the dialog clashed with the peer's and may be sent again now, made anew (§14.1).
    ReinviteDue {
        /// The leg.
        leg: LegKey,
    },
    /// The session has to be refreshed by an INVITE in the dialog with the description that holds: see
    /// [`Ua::reinvite`](super::Ua::reinvite). Told again until it is, or until the session expires.
    RefreshDue {
        /// The leg.
        leg: LegKey,
    },
    /// Another request came and wants an answer: of a leg (INFO, UPDATE, MESSAGE, …) or outside (REGISTER, OPTIONS, …).
    Request {
        /// The leg, for a request inside its dialog.
        leg: Option<LegKey>,
        /// Its transaction.
        key: ServerKey,
        /// Where it came from.
        flow: Flow,
        /// The request.
        request: Request,
    },
    /// A response to a request of ours that is no first INVITE and not told by an event of its own. Of the answers to a BYE only a challenge is told;
    /// its leg has ended by then, the Call-ID tells which it was.
    Response {
        /// The leg, for a request inside its dialog.
        leg: Option<LegKey>,
        /// Its transaction.
        key: ClientKey,
        /// Where the response came from.
        flow: Flow,
        /// The response.
        response: Response,
        /// Our request, with the final response, for [`Ua::retry`](super::Ua::retry).
        request: Option<Request>,
    },
    /// A request of ours that is no first INVITE and not told by an event of its own got no answer: 408 in effect, 503
    /// if it could not even be sent.
    Unanswered {
        /// The leg, for a request inside its dialog.
        leg: Option<LegKey>,
        /// Its transaction.
        key: ClientKey,
        /// Whether it could not be sent.
        unreachable: bool,
    },
}

/// Why a leg is over.
#[derive(Debug)]
pub enum Cause {
    /// The ACK of our 2xx never came; a BYE has been sent (§13.3.1.4).
    AckMissing,
    /// The peer said BYE.
    Bye(Request),
    /// The caller said CANCEL before the answer.
    Cancelled(Request),
    /// The peer answered our INVITE in the dialog with 481 or 408, or not at all (§12.2.1.2).
    Gone,
    /// We ended it: by [`Ua::hang_up`](super::Ua::hang_up), or by refusing its INVITE.
    HungUp,
    /// The peer refused our INVITE.
    Refused {
        /// Where the response came from.
        flow: Flow,
        /// The final response.
        response: Response,
        /// Our INVITE, for [`Ua::retry`](super::Ua::retry) after a 401 or 407.
        request: Option<Request>,
    },
    /// The session was not refreshed in time (RFC 4028 §10); a BYE has been sent.
    SessionExpired,
    /// No final response came in time (timer B, or the limit of a CANCEL): 408 in effect.
    TimedOut,
    /// Our INVITE could not be sent: 503 in effect.
    Unreachable,
}

/// What came of an INFO or MESSAGE of ours.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "taken apart at once, never stored")]
pub enum Receipt {
    /// The peer gave its final response.
    Answered {
        /// Where the response came from.
        flow: Flow,
        /// The final response.
        response: Response,
        /// Our request, for [`Ua::retry`](super::Ua::retry) after a 401 or 407.
        request: Option<Request>,
    },
    /// No final response came within 32 s (timer F).
    TimedOut,
    /// It could not be sent.
    Unreachable,
}

impl Receipt {
    /// The status that the peer answered with, if it answered.
    pub fn status(&self) -> Option<StatusCode> {
        match self {
            Self::Answered { response, .. } => Some(response.status()),
            Self::TimedOut | Self::Unreachable => None,
        }
    }
}

/// What a retried request became.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Retried {
    /// A first INVITE: a new leg.
    Leg(LegKey),
    /// Any other: a new transaction.
    Transaction(ClientKey),
}
