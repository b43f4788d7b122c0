//! The outputs of a user agent for its user and its driver.

use bytes::Bytes;

use crate::flow::Flow;
use crate::message::{Rejection, Request, Response, StatusCode};
use crate::transaction::{ClientKey, ServerKey};
use crate::ua::{LegKey, SubscriptionKey};

/// An action or an event.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "drained at once, never stored")]
pub enum Output {
    /// For the user.
    Event(Event),
    /// A leg begins to use this connection, or no leg uses it any more. While it is held, silence must not close it.
    Hold {
        /// The connection; its peer need not be authenticated yet.
        flow: Flow,
        /// Whether it is used.
        is_held: bool,
    },
    /// A table is full; the message was answered 503.
    Overload {
        /// The flow of the message.
        flow: Flow,
    },
    /// The bytes were not a valid message; they were answered if possible.
    Rejected {
        /// Its flow.
        flow: Flow,
        /// The rule it broke.
        reason: Rejection,
    },
    /// Send these bytes.
    Transmit {
        /// The destination.
        flow: Flow,
        /// One complete message.
        bytes: Bytes,
        /// The transaction for [`Input::TransportError`](super::Input::TransportError) if sending fails.
        key: Option<ClientKey>,
    },
    /// A response to an unauthenticated sender was not sent: its shortest form is more than one and a half
    /// times as long as the request.
    Withheld {
        /// The flow of the request.
        flow: Flow,
    },
}

/// An event of a leg, a request or a subscription.
#[derive(Debug)]
pub enum Event {
    /// The ACK of our 2xx arrived; it may contain the answer to our offer. Once per 2xx.
    Acked {
        /// The leg.
        leg: LegKey,
        /// The ACK.
        request: Request,
    },
    /// The peer answered: the leg has its dialog. If the INVITE had no offer, the user must call
    /// [`Ua::ack`](super::Ua::ack).
    Answered {
        /// The leg.
        leg: LegKey,
        /// The 2xx.
        response: Response,
    },
    /// The leg has ended; the last event about it.
    Ended {
        /// The leg.
        leg: LegKey,
        /// The cause.
        cause: Cause,
    },
    /// The result of our INFO; once for each, also after the leg's [`Event::Ended`]. The leg continues for
    /// any receipt: see [`Ua::info`](super::Ua::info).
    InfoAnswered {
        /// The leg it was sent in.
        leg: LegKey,
        /// Its transaction, as [`Ua::info`](super::Ua::info) returned it.
        key: ClientKey,
        /// The result.
        receipt: Receipt,
    },
    /// An INVITE arrived; answer it with [`Ua::respond`](super::Ua::respond).
    Invited {
        /// The new leg.
        leg: LegKey,
        /// The INVITE's transaction.
        key: ServerKey,
        /// Its flow.
        flow: Flow,
        /// The INVITE.
        request: Request,
    },
    /// The result of our MESSAGE outside dialogs; once for each.
    MessageAnswered {
        /// Its transaction, as [`Ua::request`](super::Ua::request) returned it.
        key: ClientKey,
        /// The result.
        receipt: Receipt,
    },
    /// The result of our NOTIFY; once for each, unless the subscription has been forgotten.
    NotifyAnswered {
        /// The subscription.
        subscription: SubscriptionKey,
        /// The final response; `None` when there was none, or the NOTIFY could not be sent.
        status: Option<StatusCode>,
    },
    /// A provisional response other than 100 to the INVITE of a leg; several dialogs of a fork may send them.
    Progress {
        /// The leg.
        leg: LegKey,
        /// The response.
        response: Response,
    },
    /// The peer changes the call with an INVITE in the dialog; the user must answer it.
    Reinvited {
        /// The leg.
        leg: LegKey,
        /// The INVITE's transaction.
        key: ServerKey,
        /// Its flow.
        flow: Flow,
        /// The INVITE.
        request: Request,
    },
    /// The peer cancelled its INVITE in the dialog; 487 has been sent.
    ReinviteCancelled {
        /// The leg.
        leg: LegKey,
        /// The INVITE's transaction.
        key: ServerKey,
    },
    /// The peer has answered our INVITE in the dialog with 491, because it has sent one of its own: our offer is void.
    /// [`Event::ReinviteDue`] follows.
    ReinviteClashed {
        /// The leg.
        leg: LegKey,
    },
    /// Our INVITE in the dialog clashed with the peer's and may now be sent again as a new request (§14.1).
    ReinviteDue {
        /// The leg.
        leg: LegKey,
    },
    /// The session must be refreshed with an INVITE in the dialog with the current description: see
    /// [`Ua::reinvite`](super::Ua::reinvite). Repeated until that happens, or until the session expires.
    RefreshDue {
        /// The leg.
        leg: LegKey,
    },
    /// The peer refreshes or ends its subscription, by its Expires; the user must answer, and send a NOTIFY.
    Resubscribed {
        /// The subscription.
        subscription: SubscriptionKey,
        /// The SUBSCRIBE's transaction.
        key: ServerKey,
        /// The SUBSCRIBE.
        request: Request,
    },
    /// The peer changes the call with an offer in UPDATE, or in a PRACK (RFC 3262 §5); the user must answer as soon as
    /// possible.
    Updated {
        /// The leg.
        leg: LegKey,
        /// The transaction of the UPDATE or PRACK.
        key: ServerKey,
        /// Its flow.
        flow: Flow,
        /// The UPDATE or PRACK.
        request: Request,
    },
    /// The peer has not answered our offer in UPDATE, or in a cancelled INVITE to which it sent 1xx only.
    OfferUnanswered {
        /// The leg.
        leg: LegKey,
    },
    /// Another request arrived and must be answered: of a leg (INFO, UPDATE, MESSAGE, …) or outside
    /// (REGISTER, OPTIONS, …).
    Request {
        /// The leg, for a request inside its dialog.
        leg: Option<LegKey>,
        /// Its transaction.
        key: ServerKey,
        /// Its flow.
        flow: Flow,
        /// The request.
        request: Request,
    },
    /// A response to our request, except for first INVITEs and requests with their own event. Of the
    /// responses to a BYE only a challenge is reported; its leg has ended by then, and the Call-ID identifies
    /// it.
    Response {
        /// The leg, for a request inside its dialog.
        leg: Option<LegKey>,
        /// Its transaction.
        key: ClientKey,
        /// Its flow.
        flow: Flow,
        /// The response.
        response: Response,
        /// Our request, returned with the final response, for [`Ua::retry`](super::Ua::retry).
        request: Option<Request>,
    },
    /// Our request, other than a first INVITE and requests with their own event, got no response: equivalent
    /// to 408, or to 503 if it could not be sent.
    Unanswered {
        /// The leg, for a request inside its dialog.
        leg: Option<LegKey>,
        /// Its transaction.
        key: ClientKey,
        /// Whether it could not be sent.
        unreachable: bool,
    },
}

/// The reason why a leg has ended.
#[derive(Debug)]
pub enum Cause {
    /// The ACK of our 2xx did not arrive; a BYE has been sent (§13.3.1.4).
    AckMissing,
    /// The peer sent BYE.
    Bye(Request),
    /// The caller sent CANCEL before the answer.
    Cancelled(Request),
    /// The peer answered our INVITE in the dialog with 481 or 408, or not at all (§12.2.1.2).
    Gone,
    /// We ended it: with [`Ua::hang_up`](super::Ua::hang_up), or by refusing its INVITE.
    HungUp,
    /// The peer refused our INVITE.
    Refused {
        /// The flow of the response.
        flow: Flow,
        /// The final response.
        response: Response,
        /// Our INVITE, for [`Ua::retry`](super::Ua::retry) after a 401 or 407.
        request: Option<Request>,
    },
    /// The PRACK of our provisional response did not arrive; the INVITE has been refused with 504 (RFC 3262 §3).
    PrackMissing,
    /// The session was not refreshed in time (RFC 4028 §10); a BYE has been sent.
    SessionExpired,
    /// No final response arrived in time (timer B, or the limit of a CANCEL): equivalent to 408.
    TimedOut,
    /// Our INVITE could not be sent: equivalent to 503.
    Unreachable,
}

/// The result of our INFO or MESSAGE.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "taken apart at once, never stored")]
pub enum Receipt {
    /// The peer sent a final response.
    Answered {
        /// The flow of the response.
        flow: Flow,
        /// The final response.
        response: Response,
        /// Our request, for [`Ua::retry`](super::Ua::retry) after a 401 or 407.
        request: Option<Request>,
    },
    /// No final response arrived within 32 s (timer F).
    TimedOut,
    /// It could not be sent.
    Unreachable,
}

impl Receipt {
    /// The status of the peer's response, if there was one.
    pub fn status(&self) -> Option<StatusCode> {
        match self {
            Self::Answered { response, .. } => Some(response.status()),
            Self::TimedOut | Self::Unreachable => None,
        }
    }
}

/// The result of retrying a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Retried {
    /// A first INVITE: a new leg.
    Leg(LegKey),
    /// Any other: a new transaction.
    Transaction(ClientKey),
}
