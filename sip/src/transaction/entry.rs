//! The data of one transaction in the layer: its machine, its bytes and its route.

use std::net::IpAddr;
use std::time::Instant;

use bytes::Bytes;

use crate::flow::Flow;
use crate::message::{Method, Name, Request, Response, StatusCode};
use crate::transaction::event::Output;
use crate::transaction::key::{ClientKey, ClientWire, Seal, WireId};
use crate::transaction::{
    Client, ClientInput, ClientInvite, ClientOutput, ResponseClass, Server, ServerInput, ServerInvite,
    ServerOutput, Timers, outgoing,
};

/// A client transaction.
pub(super) struct ClientEntry {
    pub(super) machine: ClientMachine,
    pub(super) flow: Flow,
    pub(super) wire: ClientWire,
    pub(super) method: Method,
    /// Kept until the final response returns it.
    pub(super) request: Option<Request>,
    pub(super) bytes: Bytes,
    /// The ACK of the received failure.
    pub(super) ack: Option<Bytes>,
    /// Whether the layer itself started it; then its result is not reported.
    pub(super) internal: bool,
    /// Whether the request was sent again after its connection had closed.
    pub(super) reopened: bool,
    /// The Reason of its CANCEL.
    pub(super) cancel_reason: Option<Box<str>>,
}

/// A server transaction.
pub(super) struct ServerEntry {
    pub(super) machine: ServerMachine,
    /// The flow for responses.
    pub(super) route: Flow,
    pub(super) wire: Seal,
    pub(super) merged: Option<WireId>,
    /// The source in whose share of the table it counts, if any.
    pub(super) source: Option<IpAddr>,
    /// The largest length of the response while the sender is unauthenticated; `None` means no limit.
    pub(super) budget: Option<usize>,
    /// Whether the sender is authenticated: by a digest, by its address, or by a live dialog.
    pub(super) is_proven: bool,
    /// Kept until the final response.
    pub(super) request: Option<Request>,
    /// The latest response.
    pub(super) last: Option<Bytes>,
}

/// One of the two client machines.
pub(super) enum ClientMachine {
    Invite(ClientInvite),
    Other(Client),
}

/// One of the two server machines.
pub(super) enum ServerMachine {
    Invite(ServerInvite),
    Other(Server),
}

impl ClientEntry {
    pub(super) fn new(
        now: Instant,
        timers: &Timers,
        flow: Flow,
        wire: ClientWire,
        request: Request,
        internal: bool,
    ) -> Self {
        let reliable = flow.protocol.is_reliable();
        let machine = match request.method() {
            Method::Invite => ClientMachine::Invite(ClientInvite::new(now, *timers, reliable)),
            _ => ClientMachine::Other(Client::new(now, *timers, reliable)),
        };
        let (bytes, method) = (request.to_bytes(), request.method().clone());
        Self {
            machine,
            flow,
            wire,
            method,
            request: Some(request),
            bytes,
            ack: None,
            internal,
            reopened: false,
            cancel_reason: None,
        }
    }

    /// Whether the request may be sent again after its connection has closed.
    pub(super) fn may_reopen(&self) -> bool {
        !self.reopened && self.request.is_some() && self.flow.listener.is_outbound()
    }

    /// Whether the request waits for its final response on this flow.
    pub(super) fn waits_on(&self, flow: &Flow) -> bool {
        self.flow == *flow && self.request.is_some()
    }

    /// Sends the request again on another flow, with the same branch.
    pub(super) fn again_by(&mut self, key: ClientKey, flow: Flow) -> Output {
        self.flow = flow;
        self.again(key)
    }

    /// Sends the request again on another connection.
    pub(super) fn again(&mut self, key: ClientKey) -> Output {
        self.reopened = true;
        Output::Transmit { flow: self.flow, bytes: self.bytes.clone(), key: Some(key) }
    }

    /// Creates the ACK of a failure once, if this is an INVITE.
    pub(super) fn prepare_ack(&mut self, response: &Response) {
        if let (ClientMachine::Invite(_), None, Some(request)) = (&self.machine, &self.ack, &self.request) {
            self.ack = outgoing::ack_of_failure(request, response).ok().map(|ack| ack.to_bytes());
        }
    }

    /// The CANCEL of its INVITE.
    pub(super) fn cancel(&self) -> Option<Request> {
        let mut cancel = outgoing::cancel(self.request.as_ref()?).ok()?;
        if let Some(reason) = self.cancel_reason.as_deref() {
            let _ = cancel.push(Name::Reason, reason); // A value with a line break is left out.
        }
        Some(cancel)
    }

    /// The end of the transaction, if until then it only absorbs retransmissions: it has no more bytes to send.
    pub(super) fn spent(&self) -> Option<Instant> {
        match &self.machine {
            ClientMachine::Invite(machine) => machine.accepted_until(),
            ClientMachine::Other(machine) => machine.completed_until(),
        }
    }
}

impl ServerEntry {
    pub(super) fn new(
        now: Instant,
        timers: &Timers,
        route: Flow,
        (wire, merged): (Seal, Option<WireId>),
        budget: Option<usize>,
        request: Request,
    ) -> Self {
        let reliable = route.protocol.is_reliable();
        let machine = match request.method() {
            Method::Invite => ServerMachine::Invite(ServerInvite::new(now, *timers, reliable)),
            _ => ServerMachine::Other(Server::new(now, *timers, reliable)),
        };
        Self {
            machine,
            route,
            wire,
            merged,
            source: None,
            budget,
            is_proven: false,
            request: Some(request),
            last: None,
        }
    }

    /// Whether this response leaves no state when [`LayerConfig::forgets_strangers`](super::LayerConfig) is
    /// set: the first response to an unauthenticated sender, if it is final and does not accept a call.
    pub(super) fn is_forgettable(&self, class: ResponseClass) -> bool {
        let takes_call = class == ResponseClass::Success && matches!(self.machine, ServerMachine::Invite(_));
        !self.is_proven && self.last.is_none() && class != ResponseClass::Provisional && !takes_call
    }

    /// When an accepted INVITE stops absorbing its retransmissions.
    pub(super) fn accepted_until(&self) -> Option<Instant> {
        match &self.machine {
            ServerMachine::Invite(machine) => machine.accepted_until(),
            ServerMachine::Other(_) => None,
        }
    }

    /// The response to keep for a finished request other than INVITE, and when timer J would remove it.
    pub(super) fn finished(&self) -> Option<(Bytes, Instant)> {
        match &self.machine {
            ServerMachine::Other(machine) if !machine.is_pending() => {
                Some((self.last.clone()?, machine.next_timeout()?))
            }
            ServerMachine::Other(_) | ServerMachine::Invite(_) => None,
        }
    }

    /// Whether the user still has to give the final response.
    pub(super) fn is_pending(&self) -> bool {
        match &self.machine {
            ServerMachine::Invite(machine) => machine.is_pending(),
            ServerMachine::Other(machine) => machine.is_pending(),
        }
    }

    /// The 100 that a machine sends by itself.
    pub(super) fn trying(&self) -> Option<Bytes> {
        Some(Response::reply_to(self.request.as_ref()?, StatusCode::TRYING).to_bytes())
    }
}

impl ClientMachine {
    pub(super) fn handle_input(&mut self, now: Instant, input: ClientInput) {
        match self {
            Self::Invite(machine) => machine.handle_input(now, input),
            Self::Other(machine) => machine.handle_input(now, input),
        }
    }

    pub(super) fn poll_output(&mut self) -> Option<ClientOutput> {
        match self {
            Self::Invite(machine) => machine.poll_output(),
            Self::Other(machine) => machine.poll_output(),
        }
    }

    pub(super) fn next_timeout(&self) -> Option<Instant> {
        match self {
            Self::Invite(machine) => machine.next_timeout(),
            Self::Other(machine) => machine.next_timeout(),
        }
    }
}

impl ServerMachine {
    pub(super) fn handle_input(&mut self, now: Instant, input: ServerInput) {
        match self {
            Self::Invite(machine) => machine.handle_input(now, input),
            Self::Other(machine) => machine.handle_input(now, input),
        }
    }

    pub(super) fn poll_output(&mut self) -> Option<ServerOutput> {
        match self {
            Self::Invite(machine) => machine.poll_output(),
            Self::Other(machine) => machine.poll_output(),
        }
    }

    pub(super) fn next_timeout(&self) -> Option<Instant> {
        match self {
            Self::Invite(machine) => machine.next_timeout(),
            Self::Other(machine) => machine.next_timeout(),
        }
    }
}
