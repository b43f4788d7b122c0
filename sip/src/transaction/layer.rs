//! The transaction layer: all transactions of one element, and the matching of messages to them (RFC 3261 §17, §18).
//!
//! Below it are sockets, above it a user that makes requests and answers. It knows no dialogs: the ACK of a 2xx and the
//! repetition of a 2xx pass through as they are. Everything is bounded; what finds no room is answered 503 and reported.

use std::collections::{HashMap, VecDeque};
use std::fmt::Write as _;
use std::net::SocketAddr;
use std::time::Instant;

use bytes::Bytes;
use hmac::{Hmac, KeyInit, Mac};
use rand::rngs::StdRng;
use rand::{Rng, RngExt};
use sha2::Sha256;

use crate::flow::Flow;
use crate::message::limits::PEER_DATAGRAM_LEN_MAX;
use crate::message::{
    Datagram, Message, Method, Name, Rejection, Request, Response, StatusCode, Transport, Via, parse_datagram,
};
use crate::transaction::deadlines::Deadlines;
use crate::transaction::entry::{ClientEntry, ServerEntry};
use crate::transaction::event::{Counters, Event, Output, SendError};
use crate::transaction::key::{COOKIE, ClientKey, ServerKey, WireKey};
use crate::transaction::{
    ClientInput, ClientOutput, LayerConfig, ResponseClass, ServerInput, ServerOutput, outgoing,
};

/// All transactions of one element.
pub struct Layer {
    config: LayerConfig,
    rng: StdRng,
    /// Makes local tags that a stranger cannot guess and a retransmission meets again.
    tag_secret: [u8; 32],
    keys: u64,
    clients: HashMap<ClientKey, ClientEntry>,
    clients_by_wire: HashMap<WireKey, ClientKey>,
    servers: HashMap<ServerKey, ServerEntry>,
    servers_by_wire: HashMap<WireKey, ServerKey>,
    servers_by_merge: HashMap<WireKey, ServerKey>,
    deadlines: Deadlines<Key>,
    outputs: VecDeque<Output>,
    counters: Counters,
}

/// What a layer is fed with by its driver.
#[derive(Debug)]
pub enum Input {
    /// Bytes came.
    Datagram {
        /// From where.
        flow: Flow,
        /// One datagram.
        bytes: Bytes,
    },
    /// A connection is closed: nobody answers by it any more what was sent by it.
    FlowClosed {
        /// The connection.
        flow: Flow,
    },
    /// A message came that has been read already, as those of a stream are.
    Message {
        /// From where.
        flow: Flow,
        /// The message.
        message: Message,
    },
    /// The time of [`Layer::next_timeout`] has come.
    Timeout,
    /// An [`Output::Transmit`] with this key could not be sent.
    TransportError {
        /// The key it carried.
        key: ClientKey,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Key {
    Client(ClientKey),
    Server(ServerKey),
}

impl Layer {
    /// A layer without transactions; `rng` makes branches and tags.
    pub fn new(config: LayerConfig, mut rng: StdRng) -> Self {
        let mut tag_secret = [0; 32];
        rng.fill_bytes(&mut tag_secret);
        Self {
            config,
            rng,
            tag_secret,
            keys: 0,
            clients: HashMap::new(),
            clients_by_wire: HashMap::new(),
            servers: HashMap::new(),
            servers_by_wire: HashMap::new(),
            servers_by_merge: HashMap::new(),
            deadlines: Deadlines::new(),
            outputs: VecDeque::new(),
            counters: Counters::default(),
        }
    }

    /// Feeds one event of the driver.
    pub fn handle_input(&mut self, now: Instant, input: Input) {
        match input {
            // Not answered: it would be read to its end for that.
            Input::Datagram { flow, bytes } if bytes.len() > PEER_DATAGRAM_LEN_MAX => {
                self.outputs.push_back(Output::Rejected { flow, reason: Rejection::TooLarge });
            }
            Input::Datagram { flow, bytes } => self.receive(now, flow, bytes),
            Input::FlowClosed { flow } => self.close(now, flow),
            Input::Message { flow, message } => self.receive_message(now, flow, message),
            Input::Timeout => self.timeout(now),
            Input::TransportError { key } => self.feed_client(now, key, ClientInput::TransportError, None),
        }
    }

    /// What to do next; drain after every call that changes the layer.
    pub fn poll_output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    /// When to feed [`Input::Timeout`].
    pub fn next_timeout(&self) -> Option<Instant> {
        self.deadlines.next()
    }

    /// What was absorbed so far.
    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// How many client and server transactions live.
    pub fn transactions(&self) -> (usize, usize) {
        (self.clients.len(), self.servers.len())
    }

    /// The settings.
    pub fn config(&self) -> &LayerConfig {
        &self.config
    }

    /// Reads one datagram and feeds its message.
    pub fn receive(&mut self, now: Instant, flow: Flow, datagram: Bytes) {
        match parse_datagram(datagram) {
            Ok(Datagram::Message(message)) => self.receive_message(now, flow, message),
            // RFC 5626 §4.4.1 has the pong on streams only; on UDP it keeps a NAT open in both directions.
            Ok(Datagram::Ping) => self.transmit(flow, Bytes::from_static(b"\r\n")),
            Ok(Datagram::Pong) => {}
            Err(rejected) => {
                if let Some(reply) = &rejected.reply {
                    self.transmit(flow, reply.to_bytes());
                }
                self.outputs.push_back(Output::Rejected { flow, reason: rejected.reason });
            }
        }
    }

    /// Feeds one message that has been read already.
    pub fn receive_message(&mut self, now: Instant, flow: Flow, message: Message) {
        match message {
            Message::Request(request) => self.receive_request(now, flow, request),
            Message::Response(response) => self.receive_response(now, flow, response),
        }
    }

    /// Sends a request in a client transaction of its own; a Via with a new branch is put on top.
    ///
    /// # Errors
    ///
    /// [`SendError::Overload`] at the bound of the table, [`SendError::InvalidValue`] if the request has no sound CSeq.
    pub fn request(
        &mut self,
        now: Instant,
        flow: Flow,
        mut request: Request,
    ) -> Result<ClientKey, SendError> {
        if self.clients.len() >= self.config.client_len_max {
            return Err(SendError::Overload);
        }
        let branch = self.add_via(&flow, &mut request)?;
        let wire = WireKey::of_branch(&branch, request.method());
        Ok(self.start_client(now, ClientEntry::new(now, &self.config.timers, flow, wire, request, false)))
    }

    /// Gives up on an INVITE: a CANCEL goes as soon as a provisional has come (§9.1). Its answer is absorbed here.
    pub fn cancel(&mut self, now: Instant, key: &ClientKey) {
        self.feed_client(now, *key, ClientInput::Cancel, None);
    }

    /// Answers a request. Tells whether the response was sent: a transaction takes one final response only.
    pub fn respond(&mut self, now: Instant, key: &ServerKey, response: &Response) -> bool {
        let Some(entry) = self.servers.get_mut(key) else { return false };
        let class = ResponseClass::of(response.status().as_u16());
        let before = entry.last.replace(response.to_bytes());
        if !self.feed_server(now, *key, ServerInput::Response(class)) {
            if let Some(entry) = self.servers.get_mut(key) {
                entry.last = before;
            }
            return false;
        }
        true
    }

    /// Answers a request and forgets it (§8.2.7): a retransmission comes up as a new request.
    ///
    /// For challenges and refusals before authentication: nothing is kept and nothing is sent twice for a stranger.
    /// After a provisional it answers as [`Layer::respond`] does: the client no longer repeats its INVITE, and a lost
    /// answer would leave it waiting for ever.
    pub fn respond_statelessly(&mut self, now: Instant, key: &ServerKey, response: &Response) -> bool {
        if self.servers.get(key).is_some_and(|entry| entry.last.is_some()) {
            return self.respond(now, key, response);
        }
        let Some(entry) = self.remove_server(*key) else { return false };
        self.transmit(entry.route, response.to_bytes());
        true
    }

    /// Sends the latest response again: a 2xx that waits for its ACK, or a provisional that keeps proxies patient.
    pub fn retransmit(&mut self, now: Instant, key: &ServerKey) {
        let Some(entry) = self.servers.get(key).filter(|entry| entry.last.is_some()) else { return };
        let class = if entry.is_pending() { ResponseClass::Provisional } else { ResponseClass::Success };
        self.feed_server(now, *key, ServerInput::Response(class));
    }

    /// Sends a request outside transactions, which an ACK of a 2xx is, and returns its bytes for sending it again.
    ///
    /// # Errors
    ///
    /// [`SendError::InvalidValue`] if our own address cannot be written.
    pub fn send(&mut self, flow: Flow, mut request: Request) -> Result<Bytes, SendError> {
        self.add_via(&flow, &mut request)?;
        let bytes = request.to_bytes();
        self.transmit(flow, bytes.clone());
        Ok(bytes)
    }

    /// Sends bytes as they are.
    pub fn transmit(&mut self, flow: Flow, bytes: Bytes) {
        self.outputs.push_back(Output::Transmit { flow, bytes, key: None });
    }

    /// The request of a server transaction, while its user owes the final response.
    pub fn server_request(&self, key: &ServerKey) -> Option<&Request> {
        self.servers.get(key).and_then(|entry| entry.request.as_ref())
    }

    /// The To tag for responses to this request: the same for every retransmission, not to be guessed by others.
    pub fn local_tag(&self, key: &ServerKey) -> Option<String> {
        self.servers.get(key).map(|entry| self.tag(&entry.wire))
    }

    /// A random token for Call-IDs and tags.
    pub fn token(&mut self) -> String {
        format!("{:032x}", self.rng.random::<u128>())
    }

    /// The generator, for a user that needs random times.
    pub fn rng(&mut self) -> &mut StdRng {
        &mut self.rng
    }

    /// §18.4: what waits for an answer by this connection waits in vain. Rare, so it looks at all of them.
    fn close(&mut self, now: Instant, flow: Flow) {
        let mut waiting: Vec<ClientKey> =
            self.clients.iter().filter(|(_, entry)| entry.flow == flow).map(|(key, _)| *key).collect();
        waiting.sort_unstable();
        for key in waiting {
            self.feed_client(now, key, ClientInput::TransportError, None);
        }
    }

    fn receive_request(&mut self, now: Instant, flow: Flow, mut request: Request) {
        // §18.2.1: the Via is completed before anybody sees the request.
        let Ok(via) = request.note_source(flow.remote) else { return };
        let route = response_route(flow, &via);
        let Some(wire) = WireKey::of_request(&request, request.method()) else { return };
        let known = self.servers_by_wire.get(&wire).copied();

        if *request.method() == Method::Ack {
            match known {
                Some(key) => self.receive_ack(now, key, flow, request),
                None => self.event(Event::Ack { flow, request }),
            }
            return;
        }
        if let Some(key) = known {
            self.counters.retransmitted_requests += 1;
            self.feed_server(now, key, ServerInput::Request);
            return;
        }
        let merged = WireKey::of_merged(&request);
        if merged.as_ref().is_some_and(|merged| self.servers_by_merge.contains_key(merged)) {
            self.counters.merged_requests += 1;
            self.refuse(route, &wire, &request, StatusCode::LOOP_DETECTED);
            return;
        }
        if self.servers.len() >= self.config.server_len_max {
            self.refuse(route, &wire, &request, StatusCode::SERVICE_UNAVAILABLE);
            self.outputs.push_back(Output::Overload { flow });
            return;
        }
        let key =
            self.start_server(now, ServerEntry::new(now, &self.config.timers, route, wire, merged, request));
        match self.server_request(&key).cloned() {
            Some(request) if *request.method() == Method::Cancel => {
                self.receive_cancel(now, key, flow, request)
            }
            Some(request) => self.event(Event::Request { key, flow, request }),
            None => {}
        }
    }

    fn receive_ack(&mut self, now: Instant, key: ServerKey, flow: Flow, request: Request) {
        let delivered = self.feed_server(now, key, ServerInput::Ack);
        if delivered {
            self.event(Event::Ack { flow, request });
        }
    }

    /// §9.2. The CANCEL must come from where its INVITE came from: a stranger who learnt a branch ends no call.
    fn receive_cancel(&mut self, now: Instant, key: ServerKey, flow: Flow, request: Request) {
        let invite = WireKey::of_request(&request, &Method::Invite)
            .and_then(|wire| self.servers_by_wire.get(&wire).copied())
            .filter(|invite| {
                self.servers.get(invite).is_some_and(|e| e.route.remote.ip() == flow.remote.ip())
            });
        let status = if invite.is_some() { StatusCode::OK } else { StatusCode::NO_TRANSACTION };
        // The To tag is the one of the INVITE's responses (§9.2).
        let tag = self.local_tag(&invite.unwrap_or(key)).unwrap_or_default();
        if let Ok(response) = outgoing::reply(&request, status, &tag) {
            self.respond(now, &key, &response);
        }
        // After the final response a CANCEL has no effect.
        if let Some(invite) =
            invite.filter(|invite| self.servers.get(invite).is_some_and(ServerEntry::is_pending))
        {
            self.event(Event::Cancelled { key: invite, request });
        }
    }

    fn receive_response(&mut self, now: Instant, flow: Flow, response: Response) {
        if response.vias().map_or(0, |vias| vias.len()) != 1 {
            self.counters.misrouted_responses += 1; // §8.1.3.3: we are no proxy.
            return;
        }
        let key = WireKey::of_response(&response).and_then(|wire| self.clients_by_wire.get(&wire).copied());
        let class = ResponseClass::of(response.status().as_u16());
        match key {
            Some(key) => self.feed_client(now, key, ClientInput::Response(class), Some((flow, response))),
            None if class == ResponseClass::Success
                && response.cseq().is_ok_and(|cseq| cseq.method == Method::Invite) =>
            {
                self.event(Event::StraySuccess { flow, response });
            }
            None => self.counters.stray_responses += 1,
        }
    }

    fn timeout(&mut self, now: Instant) {
        for _ in 0..TIMEOUTS_PER_INPUT_MAX {
            match self.deadlines.pop_due(now) {
                None => return,
                Some(Key::Client(key)) => self.feed_client(now, key, ClientInput::Timeout, None),
                Some(Key::Server(key)) => {
                    self.feed_server(now, key, ServerInput::Timeout);
                }
            }
        }
        // The rest stays due: `next_timeout` is in the past and the driver comes back after other work.
    }

    fn feed_client(
        &mut self,
        now: Instant,
        key: ClientKey,
        input: ClientInput,
        mut heard: Option<(Flow, Response)>,
    ) {
        let Some(entry) = self.clients.get_mut(&key) else { return };
        entry.machine.handle_input(now, input);
        if let (ClientInput::Response(ResponseClass::Failure), Some((_, response))) = (input, &heard) {
            entry.prepare_ack(response);
        }
        self.drain_client(now, key, &mut heard);
    }

    fn drain_client(&mut self, now: Instant, key: ClientKey, heard: &mut Option<(Flow, Response)>) {
        let mut deadline = None;
        while let Some(entry) = self.clients.get_mut(&key) {
            deadline = entry.machine.next_timeout();
            let Some(output) = entry.machine.poll_output() else { break };
            let (flow, internal) = (entry.flow, entry.internal);
            let event = match output {
                ClientOutput::SendRequest => {
                    let bytes = entry.bytes.clone();
                    self.outputs.push_back(Output::Transmit { flow, bytes, key: Some(key) });
                    continue;
                }
                ClientOutput::SendAck => {
                    if let Some(bytes) = entry.ack.clone() {
                        self.outputs.push_back(Output::Transmit { flow, bytes, key: None });
                    }
                    continue;
                }
                ClientOutput::SendCancel => {
                    self.send_cancel(now, key);
                    continue;
                }
                ClientOutput::Terminated => {
                    let wire = entry.wire.clone();
                    self.clients.remove(&key);
                    self.clients_by_wire.remove(&wire);
                    deadline = None;
                    break;
                }
                ClientOutput::Deliver => heard.take().map(|(flow, response)| {
                    let is_final = response.status().is_final();
                    let request = is_final.then(|| entry.request.take()).flatten();
                    Event::Response { key, flow, response, request }
                }),
                ClientOutput::TimedOut(timer) => {
                    Some(Event::Timeout { key, timer, request: entry.request.take() })
                }
                ClientOutput::Unreachable => {
                    Some(Event::TransportError { key, request: entry.request.take() })
                }
            };
            if let Some(event) = event.filter(|_| !internal) {
                self.event(event);
            }
        }
        self.deadlines.set(Key::Client(key), deadline);
    }

    /// Feeds a server transaction; true if it sent the user's response or let an ACK pass.
    fn feed_server(&mut self, now: Instant, key: ServerKey, input: ServerInput) -> bool {
        let Some(entry) = self.servers.get_mut(&key) else { return false };
        entry.machine.handle_input(now, input);
        let mut passed = false;
        let mut deadline = None;
        while let Some(entry) = self.servers.get_mut(&key) {
            deadline = entry.machine.next_timeout();
            let Some(output) = entry.machine.poll_output() else { break };
            match output {
                ServerOutput::DeliverAck => passed = true,
                ServerOutput::NoAck => self.event(Event::AckTimeout { key }),
                ServerOutput::SendResponse | ServerOutput::SendTrying => {
                    if output == ServerOutput::SendTrying {
                        entry.last = entry.trying();
                    }
                    passed = true;
                    let route = entry.route;
                    if let Some(bytes) = entry.last.clone() {
                        self.transmit(route, bytes);
                    }
                }
                ServerOutput::Terminated => {
                    self.remove_server(key);
                    deadline = None;
                    break;
                }
            }
        }
        if let Some(entry) = self.servers.get_mut(&key)
            && !entry.is_pending()
        {
            entry.request = None; // The final response is all that is needed from here on.
        }
        self.deadlines.set(Key::Server(key), deadline);
        passed
    }

    /// §9.1: the CANCEL has the branch of its INVITE and a transaction of its own, whose outcome concerns nobody.
    fn send_cancel(&mut self, now: Instant, invite: ClientKey) {
        let Some(entry) = self.clients.get(&invite) else { return };
        let flow = entry.flow;
        let Some(cancel) = entry.request.as_ref().and_then(|request| outgoing::cancel(request).ok()) else {
            return;
        };
        let Some(wire) = entry.wire_of(&Method::Cancel) else { return };
        self.start_client(now, ClientEntry::new(now, &self.config.timers, flow, wire, cancel, true));
    }

    fn start_client(&mut self, now: Instant, entry: ClientEntry) -> ClientKey {
        self.keys += 1;
        let key = ClientKey(self.keys);
        self.clients_by_wire.insert(entry.wire.clone(), key);
        self.clients.insert(key, entry);
        self.drain_client(now, key, &mut None);
        key
    }

    fn start_server(&mut self, now: Instant, entry: ServerEntry) -> ServerKey {
        self.keys += 1;
        let key = ServerKey(self.keys);
        self.servers_by_wire.insert(entry.wire.clone(), key);
        if let Some(merged) = &entry.merged {
            self.servers_by_merge.insert(merged.clone(), key);
        }
        self.deadlines.set(Key::Server(key), entry.machine.next_timeout());
        debug_assert!(entry.machine.next_timeout().is_none_or(|at| at >= now));
        self.servers.insert(key, entry);
        key
    }

    fn remove_server(&mut self, key: ServerKey) -> Option<ServerEntry> {
        let entry = self.servers.remove(&key)?;
        self.servers_by_wire.remove(&entry.wire);
        if let Some(merged) = &entry.merged {
            self.servers_by_merge.remove(merged);
        }
        self.deadlines.set(Key::Server(key), None);
        Some(entry)
    }

    fn refuse(&mut self, route: Flow, wire: &WireKey, request: &Request, status: StatusCode) {
        if let Ok(response) = outgoing::reply(request, status, &self.tag(wire)) {
            self.transmit(route, response.to_bytes());
        }
    }

    fn add_via(&mut self, flow: &Flow, request: &mut Request) -> Result<String, SendError> {
        let branch = format!("{COOKIE}{:032x}", self.rng.random::<u128>());
        let local = self.config.local.address(flow);
        let transport = Transport::from_token(flow.protocol.as_str());
        request.prepend(Name::Via, Via::new(transport, local.host, local.port, &branch))?;
        Ok(branch)
    }

    fn tag(&self, wire: &WireKey) -> String {
        let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(&self.tag_secret) else { return String::new() };
        mac.update(wire.as_bytes());
        let mut tag = String::with_capacity(16);
        for byte in mac.finalize().into_bytes().iter().take(8) {
            let _ = write!(tag, "{byte:02x}"); // A String takes all.
        }
        tag
    }

    fn event(&mut self, event: Event) {
        self.outputs.push_back(Output::Event(event));
    }
}

/// §18.2.2 and RFC 3581 §4: back to the source; its port only if the client asked for that, else the one of sent-by.
///
/// `maddr` is not followed: it would let a stranger aim our responses at somebody else.
fn response_route(flow: Flow, via: &Via) -> Flow {
    if flow.protocol.is_reliable() || via.wants_rport() {
        return flow;
    }
    Flow { remote: SocketAddr::new(flow.remote.ip(), via.sent_by_port()), ..flow }
}

/// How many timers fire for one input; the others wait for the next, so that messages are never starved.
const TIMEOUTS_PER_INPUT_MAX: usize = 256;
