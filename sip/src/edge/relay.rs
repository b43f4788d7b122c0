//! Relays requests and responses between the other nodes and the phones of this one.

use std::fmt;

use bytes::Bytes;

use crate::edge::token::Signer;
use crate::flow::{Flow, ListenerId, Protocol};
use crate::message::{
    InvalidValue, Kind, Message, Method, Name, NameAddr, Request, Response, StatusCode, Transport, Via,
    glance,
};
use crate::transaction::outgoing::{MAX_FORWARDS, is_in_dialog, response_route};
use crate::transaction::{HostPort, Local};

/// The edge of one node.
///
/// ```
/// # use sidetone_sip::edge::{Edge, Relayed};
/// # use sidetone_sip::flow::Flow;
/// # use sidetone_sip::message::Message;
/// # fn run(edge: &Edge, flow: Flow, message: Message, send: impl Fn(Flow, bytes::Bytes)) {
/// if edge.concerns(&message) {
///     match edge.relay(flow, message) {
///         Relayed::Forward { to, bytes, .. } => send(to, bytes),
///         Relayed::Refuse { to, bytes } => send(to, bytes),
///         Relayed::Nothing => {}
///     }
/// }
/// # }
/// ```
#[derive(Clone)]
pub struct Edge {
    signer: Signer,
    /// The listener for the other nodes.
    internal: ListenerId,
    local: Local,
}

/// The result of relaying a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Relayed {
    /// It is passed on.
    Forward {
        /// The destination.
        to: Flow,
        /// The message.
        bytes: Bytes,
        /// For a request over a connection: the response 430 and its destination, to be sent if the connection is
        /// closed (RFC 5626 §5.3.1).
        failed: Option<(Flow, Bytes)>,
    },
    /// It is answered, without state.
    Refuse {
        /// The flow to its sender.
        to: Flow,
        /// The response.
        bytes: Bytes,
    },
    /// It is dropped.
    Nothing,
}

impl Edge {
    /// The edge of a node: `key` is shared by the cluster, `internal` is the UDP listener for its other nodes, `local`
    /// gives our addresses.
    pub fn new(key: &[u8], node: &[u8], internal: ListenerId, local: Local) -> Self {
        Edge { signer: Signer::new(key, node), internal, local }
    }

    /// The token of a phone's flow: the user part of the Route by which other nodes reach the phone here.
    pub fn token(&self, flow: &Flow) -> String {
        format!("{MARK}{}", self.signer.token(flow))
    }

    /// Whether a flow leads to another node.
    pub fn is_internal(&self, flow: &Flow) -> bool {
        flow.listener == self.internal && flow.protocol == Protocol::Udp
    }

    /// Whether a datagram may concern the edge; a quick scan, before it is parsed.
    pub fn may_concern(&self, datagram: &[u8]) -> bool {
        let mark = || memchr::memmem::find(datagram, MARK.as_bytes()).is_some();
        match glance(datagram) {
            seen if seen.kind == Kind::Response => seen.via.is_some_and(|via| via.contains(MARK)),
            seen => matches!(seen.kind, Kind::Request(_)) && mark(),
        }
    }

    /// Whether the edge must relay a message: its top Route or its top Via has the mark of an edge.
    pub fn concerns(&self, message: &Message) -> bool {
        match message {
            Message::Request(request) => {
                request.header(Name::Route).is_some_and(|line| line.contains(MARK))
                    && request.routes().is_ok_and(|routes| routes.first().and_then(token_of).is_some())
            }
            Message::Response(response) => {
                response.hop_top().and_then(|hop| token_of_branch(hop.branch()?)).is_some()
            }
        }
    }

    /// Relays a message for which [`Edge::concerns`] is true.
    pub fn relay(&self, from: Flow, message: Message) -> Relayed {
        match message {
            Message::Request(request) => self.relay_request(from, request),
            Message::Response(response) => self.relay_response(&from, response),
        }
    }

    /// Whether a datagram to a phone was relayed by the edge; `start` is the beginning of the datagram.
    pub fn sent(&self, to: &Flow, start: &[u8]) -> bool {
        let via = glance(start).via.and_then(|via| Via::parse(via).ok());
        let branch = via.as_ref().and_then(Via::branch).and_then(token_of_branch);
        !self.is_internal(to) && branch.is_some_and(|token| self.signer.flow(token).is_some())
    }

    fn relay_request(&self, from: Flow, mut request: Request) -> Relayed {
        let Ok(response_to) = request.note_source(from.remote) else { return Relayed::Nothing };
        let back = response_route(from, response_to);
        let to = match self.target(&from, &request) {
            Ok(to) => to,
            Err(status) => return self.refuse(back, &request, status),
        };
        let failed = to.protocol.is_reliable() && *request.method() != Method::Ack;
        let failed =
            failed.then(|| self.answer(&request, flow_failed())).flatten().map(|bytes| (back, bytes));
        match self.change(&back, &to, &mut request) {
            Ok(()) => Relayed::Forward { to, bytes: request.to_bytes(), failed },
            Err(_) => Relayed::Nothing,
        }
    }

    /// The flow to which a request is relayed.
    fn target(&self, from: &Flow, request: &Request) -> Result<Flow, StatusCode> {
        let routes = request.routes().map_err(|_| StatusCode::BAD_REQUEST)?;
        let token = routes.first().and_then(token_of).ok_or(StatusCode::FORBIDDEN)?;
        let to = self.signer.flow(token).ok_or(StatusCode::FORBIDDEN)?;
        let is_from_node = self.is_internal(from);
        // Only between a node and a phone; and a call of a phone begins at its own node, not through the edge.
        if is_from_node == self.is_internal(&to) || (!is_from_node && !is_in_dialog(request)) {
            return Err(StatusCode::FORBIDDEN);
        }
        match request.max_forwards() {
            Some(0) => Err(StatusCode::TOO_MANY_HOPS),
            _ => Ok(to),
        }
    }

    /// Changes a request as a proxy does (RFC 3261 §16.6): Max-Forwards, Route, Record-Route, Via.
    fn change(&self, back: &Flow, to: &Flow, request: &mut Request) -> Result<(), InvalidValue> {
        let left = request.max_forwards().unwrap_or(MAX_FORWARDS).saturating_sub(1);
        request.set(Name::MaxForwards, left)?;
        let routes = request.routes().unwrap_or_default();
        let own = routes
            .iter()
            .take_while(|route| token_of(route).is_some_and(|token| self.signer.flow(token).is_some()));
        // The Record-Route of the other side follows it.
        for _ in 0..own.take(2).count() {
            request.pop_first(Name::Route)?;
        }
        if self.is_internal(back) && !is_in_dialog(request) && begins_dialog(request.method()) {
            request.prepend(Name::RecordRoute, self.route(back, to))?;
            request.prepend(Name::RecordRoute, self.route(to, back))?;
        }
        let via = request.via_top().map_err(|_| InvalidValue::Token)?;
        let cseq = request.cseq().map_err(|_| InvalidValue::Token)?.number;
        let sent_by = HostPort { host: via.host.clone(), port: via.port }.to_string();
        let parts = [via.branch().unwrap_or_default(), &sent_by, request.call_id(), &cseq.to_string()];
        // Equal for a retransmission, and for the CANCEL and the ACK of a failure (RFC 3261 §16.11).
        let digest = self.signer.digest(&parts.map(str::as_bytes));
        let branch = format!("z9hG4bK{MARK}{}.{digest}", self.signer.token(back));
        let HostPort { host, port } = self.local.address(to);
        request.prepend(Name::Via, Via::new(Transport::from_token(to.protocol.as_str()), host, port, &branch))
    }

    /// The Record-Route for the peer on `side`, through which its requests reach `other`.
    fn route(&self, side: &Flow, other: &Flow) -> String {
        let transport = match side.protocol {
            Protocol::Udp => String::new(),
            connection => format!(";transport={}", connection.uri_transport()),
        };
        format!("<sip:{}@{}{transport};lr>", self.token(other), self.local.address(side))
    }

    fn relay_response(&self, from: &Flow, mut response: Response) -> Relayed {
        let token = response.hop_top().and_then(|hop| token_of_branch(hop.branch()?));
        let Some(to) = token.and_then(|token| self.signer.flow(token)) else { return Relayed::Nothing };
        if self.is_internal(from) == self.is_internal(&to) || response.pop_first(Name::Via).is_err() {
            return Relayed::Nothing;
        }
        Relayed::Forward { to, bytes: response.to_bytes(), failed: None }
    }

    fn refuse(&self, to: Flow, request: &Request, status: StatusCode) -> Relayed {
        let bytes = (*request.method() != Method::Ack).then(|| self.answer(request, status)).flatten();
        bytes.map_or(Relayed::Nothing, |bytes| Relayed::Refuse { to, bytes })
    }

    fn answer(&self, request: &Request, status: StatusCode) -> Option<Bytes> {
        let mut response = Response::reply_to(request, status);
        let tag = self.signer.digest(&[request.call_id().as_bytes()]);
        response.set_to_tag(&tag).ok()?;
        if status == flow_failed() {
            response.set_reason("Flow Failed").ok()?;
        }
        Some(response.to_bytes())
    }
}

impl fmt::Debug for Edge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Edge({})", self.internal)
    }
}

/// RFC 3261 §12, RFC 3515 §2.4.4, RFC 6665 §4.4.1.
fn begins_dialog(method: &Method) -> bool {
    matches!(method, Method::Invite | Method::Notify | Method::Refer | Method::Subscribe)
}

fn token_of(route: &NameAddr) -> Option<&str> {
    route.uri.user()?.strip_prefix(MARK)
}

fn token_of_branch(branch: &str) -> Option<&str> {
    let (token, _) = branch.strip_prefix("z9hG4bK")?.strip_prefix(MARK)?.split_once('.')?;
    Some(token)
}

/// 430 Flow Failed (RFC 5626 §11.5).
fn flow_failed() -> StatusCode {
    StatusCode::new(430).unwrap_or(StatusCode::TEMPORARILY_UNAVAILABLE)
}

/// The prefix of every token of an edge: rare in a message, and valid in a user part and in a branch.
const MARK: &str = "edge~";
