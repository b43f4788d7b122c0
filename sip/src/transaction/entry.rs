//! The data of one transaction in the layer: its machine, its bytes and its route.

use std::net::IpAddr;
use std::time::Instant;

use bytes::Bytes;

use crate::flow::Flow;
use crate::message::{Method, Request, Response, StatusCode};
use crate::transaction::key::{Seal, WireId, WireKey};
use crate::transaction::{
    Client, ClientInput, ClientInvite, ClientOutput, ResponseClass, Server, ServerInput, ServerInvite,
    ServerOutput, Timers, outgoing,
};

/// A client transaction.
pub(super) struct ClientEntry {
    pub(super) machine: ClientMachine,
    pub(super) flow: Flow,
    pub(super) wire: WireKey,
    /// Kept until the final response returns it.
    pub(super) request: Option<Request>,
    pub(super) bytes: Bytes,
    /// The ACK of the failure that arrived.
    pub(super) ack: Option<Bytes>,
    /// Whether the layer itself started it; then its result is not reported.
    pub(super) internal: bool,
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
    /// Whether the sender is known: by a digest, by its address, or by a live dialog.
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
        wire: WireKey,
        request: Request,
        internal: bool,
    ) -> Self {
        let reliable = flow.protocol.is_reliable();
        let machine = match request.method() {
            Method::Invite => ClientMachine::Invite(ClientInvite::new(now, *timers, reliable)),
            _ => ClientMachine::Other(Client::new(now, *timers, reliable)),
        };
        let bytes = request.to_bytes();
        Self { machine, flow, wire, request: Some(request), bytes, ack: None, internal }
    }

    /// Creates the ACK of a failure once, if this is an INVITE.
    pub(super) fn prepare_ack(&mut self, response: &Response) {
        if let (ClientMachine::Invite(_), None, Some(request)) = (&self.machine, &self.ack, &self.request) {
            self.ack = outgoing::ack_of_failure(request, response).ok().map(|ack| ack.to_bytes());
        }
    }

    /// The key of another method with the same branch.
    pub(super) fn wire_of(&self, method: &Method) -> Option<WireKey> {
        let via = self.request.as_ref()?.via_top().ok()?;
        Some(WireKey::of_branch(via.branch()?, method))
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

    /// The response to keep for a finished request other than INVITE, and when timer J would remove it.
    pub(super) fn finished(&self) -> Option<(Bytes, Instant)> {
        match &self.machine {
            ServerMachine::Other(machine) if !machine.is_pending() => {
                Some((self.last.clone()?, machine.next_timeout()?))
            }
            ServerMachine::Other(_) | ServerMachine::Invite(_) => None,
        }
    }

    /// Whether the user has not given the final response yet.
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
