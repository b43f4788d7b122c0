//! The transaction layer: all transactions of one element, and the matching of messages (RFC 3261 §17, §18).
//!
//! Below it are sockets, above it a user that creates requests and responses. It does not know dialogs: the
//! ACK of a 2xx and the repetition of a 2xx pass unchanged. Everything is bounded; a message for which there
//! is no space is answered 503 and reported.
//!
//! With [`LayerConfig::forgets_strangers`] responses to unauthenticated senders leave no state: the final
//! response to a request is stored only after [`Layer::prove`], so that unauthenticated senders cannot fill
//! the table of transactions.

use std::collections::{HashMap, VecDeque};
use std::net::IpAddr;
use std::time::{Duration, Instant};

use bytes::Bytes;
use rand::RngExt;
use rand::rngs::StdRng;

use crate::flow::{Flow, source_of};
use crate::message::limits::PEER_DATAGRAM_LEN_MAX;
use crate::message::{
    Datagram, Message, Method, Name, Rejection, Request, Response, StatusCode, parse_datagram,
};
use crate::transaction::deadlines::Deadlines;
use crate::transaction::entry::{ClientEntry, ServerEntry};
use crate::transaction::event::{Counters, Event, Input, Output, SendError};
use crate::transaction::finished::{Answer, Finished};
use crate::transaction::key::{self, COOKIE, ClientKey, ClientWire, Seal, ServerKey, WireId};
use crate::transaction::outgoing::{is_in_dialog, response_route};
use crate::transaction::sealer::{Sealer, tag_of};
use crate::transaction::spent::{Kind, Spent};
use crate::transaction::{
    ClientInput, ClientOutput, LayerConfig, ResponseClass, ServerInput, ServerOutput, modest, outgoing,
};

/// All transactions of one element.
pub struct Layer {
    config: LayerConfig,
    rng: StdRng,
    /// Creates tags and branches that others cannot guess, and that are equal for a retransmission.
    pub(super) sealer: Sealer,
    keys: u64,
    clients: HashMap<ClientKey, ClientEntry>,
    clients_by_wire: HashMap<ClientWire, ClientKey>,
    spent: Spent,
    servers: HashMap<ServerKey, ServerEntry>,
    pub(super) servers_by_wire: HashMap<WireId, ServerKey>,
    servers_by_merge: HashMap<WireId, ServerKey>,
    /// Number of table entries per source.
    servers_by_source: HashMap<IpAddr, usize>,
    pub(super) finished: Finished,
    deadlines: Deadlines<Key>,
    outputs: VecDeque<Output>,
    counters: Counters,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Key {
    Client(ClientKey),
    Server(ServerKey),
}

impl Layer {
    /// A layer without transactions; `rng` makes branches and tags.
    pub fn new(config: LayerConfig, mut rng: StdRng) -> Self {
        Self {
            config,
            sealer: Sealer::new(&mut rng),
            rng,
            keys: 0,
            clients: HashMap::new(),
            clients_by_wire: HashMap::new(),
            spent: Spent::default(),
            servers: HashMap::new(),
            servers_by_wire: HashMap::new(),
            servers_by_merge: HashMap::new(),
            servers_by_source: HashMap::new(),
            finished: Finished::default(),
            deadlines: Deadlines::new(),
            outputs: VecDeque::new(),
            counters: Counters::default(),
        }
    }

    /// Processes one event of the driver.
    pub fn handle_input(&mut self, now: Instant, input: Input) {
        match input {
            // Not answered, because that would require parsing it completely.
            Input::Datagram { flow, bytes } if bytes.len() > PEER_DATAGRAM_LEN_MAX => {
                self.outputs.push_back(Output::Rejected { flow, reason: Rejection::TooLarge });
            }
            Input::Datagram { flow, bytes } => self.receive(now, flow, bytes),
            Input::FlowClosed { flow } => self.close(now, flow, true),
            Input::FlowUnopened { flow } => self.close(now, flow, false),
            Input::Message { flow, message } => self.receive_message(now, flow, message, None),
            Input::Refused { flow, bytes } => self.refused(now, flow, &bytes),
            Input::Timeout => self.timeout(now),
            Input::TransportError { key } => self.feed_client(now, key, ClientInput::TransportError, None),
        }
    }

    /// The next output; drain after every call that changes the layer.
    pub fn poll_output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    /// When to feed [`Input::Timeout`].
    pub fn next_timeout(&self) -> Option<Instant> {
        // Finished transactions are removed in groups, so that their removal causes no wake-up of its own.
        let forget = [self.finished.next_timeout(), self.spent.next_timeout()].into_iter().flatten().min();
        [self.deadlines.next(), forget.map(|at| at + FORGET_AFTER)].into_iter().flatten().min()
    }

    /// Totals of absorbed messages.
    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// Number of client and server transactions, including those that only handle retransmissions.
    pub fn transactions(&self) -> (usize, usize) {
        (self.clients.len() + self.spent.len(), self.servers.len() + self.finished.len())
    }

    /// Whether there is space for requests that can wait, such as keep-alives: half of the table is reserved for calls.
    pub fn has_spare_room(&self) -> bool {
        self.clients.len() < self.config.client_len_max / 2
    }

    /// Stores no state for unauthenticated senders from now on, see [`LayerConfig::forgets_strangers`].
    pub fn forget_strangers(&mut self) {
        self.config.forgets_strangers = true;
    }

    /// Marks the sender of a request as known: its response is stored, and may have any length.
    pub fn prove(&mut self, key: &ServerKey) {
        if let Some(entry) = self.servers.get_mut(key) {
            entry.is_proven = true;
        }
    }

    /// The settings.
    pub fn config(&self) -> &LayerConfig {
        &self.config
    }

    /// Parses one datagram and processes its message.
    pub fn receive(&mut self, now: Instant, flow: Flow, datagram: Bytes) {
        let budget = modest::budget_of(datagram.len());
        match parse_datagram(datagram) {
            Ok(Datagram::Message(message)) => self.receive_message(now, flow, message, Some(budget)),
            // In RFC 5626 §4.4.1 only streams have the pong; on UDP it keeps a NAT open in both directions.
            Ok(Datagram::Ping) => self.transmit(flow, Bytes::from_static(b"\r\n")),
            Ok(Datagram::Pong) => {}
            Err(rejected) => {
                if let Some(reply) = &rejected.reply {
                    self.transmit_within(Some(budget), flow, reply);
                }
                self.outputs.push_back(Output::Rejected { flow, reason: rejected.reason });
            }
        }
    }

    /// Processes one parsed message; `budget` is the largest length of its response in bytes.
    fn receive_message(&mut self, now: Instant, flow: Flow, message: Message, budget: Option<usize>) {
        match message {
            Message::Request(request) => self.receive_request(now, flow, request, budget),
            Message::Response(response) => self.receive_response(now, flow, response),
        }
    }

    /// Sends a request in its own client transaction; a Via with a new branch is added on top.
    ///
    /// # Errors
    ///
    /// [`SendError::Overload`] when the table is full, [`SendError::InvalidValue`] when the request has no
    /// valid CSeq.
    pub fn request(
        &mut self,
        now: Instant,
        flow: Flow,
        mut request: Request,
    ) -> Result<ClientKey, SendError> {
        let reserve = if is_in_dialog(&request) { self.config.reserve_len } else { 0 };
        if self.clients.len() >= self.config.client_len_max.saturating_add(reserve) {
            return Err(SendError::Overload);
        }
        let wire = self.add_via(&flow, &mut request)?;
        Ok(self.start_client(now, ClientEntry::new(now, &self.config.timers, flow, wire, request, false)))
    }

    /// Cancels an INVITE: sends CANCEL once a provisional response has arrived (§9.1), and absorbs its
    /// response. `reason` is its Reason (RFC 3326).
    pub fn cancel(&mut self, now: Instant, key: &ClientKey, reason: Option<&str>) {
        if let Some(entry) = self.clients.get_mut(key) {
            entry.cancel_reason = reason.map(Box::from);
        }
        self.feed_client(now, *key, ClientInput::Cancel, None);
    }

    /// Answers a request. Returns whether the response was sent: a transaction accepts only one final
    /// response.
    ///
    /// An unauthenticated sender of a datagram leaves no state with it ([`LayerConfig::forgets_strangers`]).
    pub fn respond(&mut self, now: Instant, key: &ServerKey, response: &Response) -> bool {
        let forgets_strangers = self.config.forgets_strangers;
        let Some(entry) = self.servers.get_mut(key) else { return false };
        let class = ResponseClass::of(response.status().as_u16());
        if forgets_strangers && entry.is_forgettable(class) {
            return self.respond_statelessly(now, key, response);
        }
        let before = entry.last.replace(response.to_bytes());
        if !self.feed_server(now, *key, ServerInput::Response(class)) {
            if let Some(entry) = self.servers.get_mut(key) {
                entry.last = before;
            }
            return false;
        }
        true
    }

    /// Answers a request and removes its transaction (§8.2.7): a retransmission is treated as a new request.
    ///
    /// For challenges and refusals before authentication: nothing is stored and nothing is repeated for an
    /// unauthenticated sender. After a provisional response it works like [`Layer::respond`], because the client no
    /// longer repeats its INVITE and would wait forever for a lost response.
    pub fn respond_statelessly(&mut self, now: Instant, key: &ServerKey, response: &Response) -> bool {
        if self.servers.get(key).is_some_and(|entry| entry.last.is_some()) {
            return self.respond(now, key, response);
        }
        let Some(entry) = self.remove_server(*key) else { return false };
        let budget = entry.budget.filter(|_| self.config.forgets_strangers && !entry.is_proven);
        self.transmit_within(budget, entry.route, response);
        true
    }

    /// The 2xx to an INVITE was acknowledged, so it will not be sent again: until timer L fires, retransmissions of
    /// the INVITE are only absorbed.
    pub fn acknowledged(&mut self, key: &ServerKey) {
        let until = self.servers.get(key).and_then(ServerEntry::accepted_until);
        if let Some(until) = until
            && let Some(ServerEntry { wire, merged, route, .. }) = self.remove_server(*key)
        {
            let (bytes, invite) = (Bytes::new(), Some(wire.tag));
            self.finished.keep(Answer { wire: wire.id, merged, route, bytes, until, invite });
        }
    }

    /// Sends the latest response again: a 2xx without its ACK, or a provisional one, which proxies require.
    pub fn retransmit(&mut self, now: Instant, key: &ServerKey) {
        let Some(entry) = self.servers.get(key).filter(|entry| entry.last.is_some()) else { return };
        let class = if entry.is_pending() { ResponseClass::Provisional } else { ResponseClass::Success };
        self.feed_server(now, *key, ServerInput::Response(class));
    }

    /// Sends a request that waits on a closed connection again on another flow; returns whether there was one.
    pub fn resend(&mut self, key: &ClientKey, closed: &Flow, flow: Flow) -> bool {
        let waiting = self.clients.get_mut(key).filter(|entry| entry.waits_on(closed));
        waiting.map(|entry| self.outputs.push_back(entry.again_by(*key, flow))).is_some()
    }

    /// Sends a request outside transactions, such as the ACK of a 2xx, and returns its bytes for sending it
    /// again.
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

    /// Sends bytes unchanged.
    pub fn transmit(&mut self, flow: Flow, bytes: Bytes) {
        self.outputs.push_back(Output::Transmit { flow, bytes, key: None });
    }

    /// The request of a server transaction, until its user has given the final response.
    pub fn server_request(&self, key: &ServerKey) -> Option<&Request> {
        self.servers.get(key).and_then(|entry| entry.request.as_ref())
    }

    /// The To tag for responses to this request: equal for every retransmission, and unguessable.
    pub fn local_tag(&self, key: &ServerKey) -> Option<String> {
        self.servers.get(key).map(|entry| tag_of(entry.wire.tag))
    }

    /// A random token for Call-IDs and tags.
    pub fn token(&mut self) -> String {
        format!("{:032x}", self.rng.random::<u128>())
    }

    /// The generator, for a user that needs random times.
    pub fn rng(&mut self) -> &mut StdRng {
        &mut self.rng
    }

    /// §18.4: requests that wait on this connection fail. If we opened it, the peer may just have closed it as idle, so
    /// they are first sent once more (RFC 5923). Rare, so it checks all of them.
    fn close(&mut self, now: Instant, flow: Flow, was_open: bool) {
        let mut waiting: Vec<ClientKey> =
            self.clients.iter().filter(|(_, entry)| entry.flow == flow).map(|(key, _)| *key).collect();
        waiting.sort_unstable();
        for key in waiting {
            match self.clients.get_mut(&key).filter(|entry| was_open && entry.may_reopen()) {
                Some(entry) => self.outputs.push_back(entry.again(key)),
                None => self.feed_client(now, key, ClientInput::TransportError, None),
            }
        }
    }

    /// §18.4: a request that its destination refused fails. Its branch shows that we sent it there.
    fn refused(&mut self, now: Instant, flow: Flow, bytes: &[u8]) {
        let key = ClientWire::of_start(bytes).and_then(|wire| self.clients_by_wire.get(&wire).copied());
        if let Some(key) = key.filter(|key| self.clients.get(key).is_some_and(|entry| entry.flow == flow)) {
            self.feed_client(now, key, ClientInput::TransportError, None);
        }
    }

    fn receive_request(&mut self, now: Instant, flow: Flow, mut request: Request, budget: Option<usize>) {
        // §18.2.1: the Via is completed before the request is passed on.
        let Ok(response_to) = request.note_source(flow.remote) else { return };
        let route = response_route(flow, response_to);
        let method = request.method();
        let Some(wire) = self.sealer.seal_with(|mac| key::write_request(mac, &request, method)) else {
            return;
        };
        let known = self.servers_by_wire.get(&wire.id).copied();

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
        if let Some((route, bytes)) = self.finished.answer(wire.id) {
            self.counters.retransmitted_requests += 1;
            if !bytes.is_empty() {
                self.transmit(route, bytes);
            }
            return;
        }
        if *request.method() == Method::Cancel {
            return self.receive_cancel(now, wire, route, budget, flow, request);
        }
        let merged = self.sealer.seal_with(|mac| key::write_merged(mac, &request)).map(|merged| merged.id);
        let came_before =
            |merged| self.servers_by_merge.contains_key(&merged) || self.finished.is_merged(merged);
        if merged.is_some_and(came_before) {
            self.counters.merged_requests += 1;
            self.refuse(route, wire, budget, &request, StatusCode::LOOP_DETECTED);
            return;
        }
        let source = (!is_in_dialog(&request)).then(|| source_of(flow.remote.ip()));
        if !self.has_place(source) {
            self.refuse(route, wire, budget, &request, StatusCode::SERVICE_UNAVAILABLE);
            self.outputs.push_back(Output::Overload { flow });
            return;
        }
        let mut entry =
            ServerEntry::new(now, &self.config.timers, route, (wire, merged), budget, request.clone());
        entry.source = source;
        let key = self.start_server(now, entry);
        self.event(Event::Request { key, flow, request });
    }

    /// Whether the table has space for a request of that source, or inside a dialog.
    fn has_place(&self, source: Option<IpAddr>) -> bool {
        let limit = self.config.server_len_max;
        match source {
            None => self.servers.len() < limit.saturating_add(self.config.reserve_len),
            Some(source) => {
                let here = self.servers_by_source.get(&source).copied().unwrap_or_default();
                self.servers.len() < limit && here < self.config.server_len_per_source
            }
        }
    }

    fn receive_ack(&mut self, now: Instant, key: ServerKey, flow: Flow, request: Request) {
        let delivered = self.feed_server(now, key, ServerInput::Ack);
        if delivered {
            self.event(Event::Ack { flow, request });
        }
    }

    /// §9.2. The CANCEL must come from the source of its INVITE, so that others who know the branch cannot
    /// end the call. The response to a CANCEL without an INVITE leaves no state.
    fn receive_cancel(
        &mut self,
        now: Instant,
        wire: Seal,
        route: Flow,
        budget: Option<usize>,
        flow: Flow,
        request: Request,
    ) {
        let of_invite = self.sealer.seal_with(|mac| key::write_request(mac, &request, &Method::Invite));
        let invite = of_invite.and_then(|seal| self.invite_to_cancel(seal.id, flow.remote.ip()));
        let Some((tag, pending)) = invite else {
            return self.refuse(route, wire, budget, &request, StatusCode::NO_TRANSACTION);
        };
        // The To tag is that of the INVITE's responses (§9.2).
        if let Ok(response) = outgoing::reply(&request, StatusCode::OK, &tag_of(tag)) {
            let bytes = response.to_bytes();
            if !route.protocol.is_reliable() {
                let until = now + self.config.timers.give_up();
                self.finished.keep(Answer {
                    wire: wire.id,
                    merged: None,
                    route,
                    bytes: bytes.clone(),
                    until,
                    invite: None,
                });
            }
            self.transmit(route, bytes);
        }
        // After the final response a CANCEL has no effect.
        if let Some(key) = pending {
            self.event(Event::Cancelled { key, request });
        }
    }

    /// The To tag of an INVITE from this source, and its key while it has no final response.
    fn invite_to_cancel(&self, wire: WireId, source: IpAddr) -> Option<(u64, Option<ServerKey>)> {
        let known = self.servers_by_wire.get(&wire).and_then(|key| Some((*key, self.servers.get(key)?)));
        if let Some((key, entry)) = known {
            let found = (entry.wire.tag, entry.is_pending().then_some(key));
            return (entry.route.remote.ip() == source).then_some(found);
        }
        let (route, tag) = self.finished.invite(wire)?;
        (route.remote.ip() == source).then_some((tag, None))
    }

    fn receive_response(&mut self, now: Instant, flow: Flow, response: Response) {
        if !response.has_one_hop() {
            self.counters.misrouted_responses += 1; // §8.1.3.3: we are no proxy.
            return;
        }
        let class = ResponseClass::of(response.status().as_u16());
        let Ok(method) = response.cseq().map(|cseq| cseq.method) else {
            self.counters.stray_responses += 1;
            return;
        };
        let branch = response.hop_top().and_then(|hop| hop.branch());
        let wire = branch.and_then(|branch| ClientWire::of_branch(branch, &method));
        let key = wire.and_then(|wire| self.clients_by_wire.get(&wire).copied());
        if let Some(key) = key.filter(|key| self.clients.get(key).is_some_and(|entry| entry.method == method))
        {
            return self.feed_client(now, key, ClientInput::Response(class), Some((flow, response)));
        }
        let is_accepted = class == ResponseClass::Success && method == Method::Invite;
        match wire.and_then(|wire| self.spent.get(wire)) {
            Some(Kind::Invite(key)) if is_accepted => {
                self.event(Event::Response { key, flow, response, request: None });
            }
            Some(_) => {} // Absorbed.
            None if is_accepted => self.event(Event::StraySuccess { flow, response }),
            None => self.counters.stray_responses += 1,
        }
    }

    fn timeout(&mut self, now: Instant) {
        self.finished.expire(now);
        self.spent.expire(now);
        for _ in 0..TIMEOUTS_PER_INPUT_MAX {
            match self.deadlines.pop_due(now) {
                None => return,
                Some(Key::Client(key)) => self.feed_client(now, key, ClientInput::Timeout, None),
                Some(Key::Server(key)) => {
                    self.feed_server(now, key, ServerInput::Timeout);
                }
            }
        }
        // The rest stays due: `next_timeout` is in the past, and the driver calls again after other work.
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
                    let wire = entry.wire;
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
        let spent =
            self.clients.get(&key).and_then(|entry| Some((entry.spent()?, entry.wire, &entry.method)));
        if let Some((until, wire, method)) = spent {
            let kind = if *method == Method::Invite { Kind::Invite(key) } else { Kind::Other };
            self.spent.keep(until, wire, kind);
            self.clients.remove(&key);
            self.clients_by_wire.remove(&wire);
            deadline = None;
        }
        self.deadlines.set(Key::Client(key), deadline);
    }

    /// Processes an input of a server transaction; returns true when it sent the user's response or passed an
    /// ACK on.
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
        let finished = self.servers.get(&key).and_then(ServerEntry::finished);
        if let Some((bytes, until)) = finished
            && let Some(ServerEntry { wire, merged, route, .. }) = self.remove_server(key)
        {
            self.finished.keep(Answer { wire: wire.id, merged, route, bytes, until, invite: None });
            return passed;
        }
        self.deadlines.set(Key::Server(key), deadline);
        passed
    }

    /// §9.1: the CANCEL has the branch of its INVITE and its own transaction, whose result is not reported.
    fn send_cancel(&mut self, now: Instant, invite: ClientKey) {
        let Some(entry) = self.clients.get(&invite) else { return };
        let flow = entry.flow;
        let Some(cancel) = entry.cancel() else { return };
        let wire = entry.wire.of_cancel();
        self.start_client(now, ClientEntry::new(now, &self.config.timers, flow, wire, cancel, true));
    }

    fn start_client(&mut self, now: Instant, entry: ClientEntry) -> ClientKey {
        self.keys += 1;
        let key = ClientKey(self.keys);
        self.clients_by_wire.insert(entry.wire, key);
        self.clients.insert(key, entry);
        self.drain_client(now, key, &mut None);
        key
    }

    fn start_server(&mut self, now: Instant, entry: ServerEntry) -> ServerKey {
        self.keys += 1;
        let key = ServerKey(self.keys);
        self.servers_by_wire.insert(entry.wire.id, key);
        if let Some(merged) = entry.merged {
            self.servers_by_merge.insert(merged, key);
        }
        if let Some(source) = entry.source {
            *self.servers_by_source.entry(source).or_default() += 1;
        }
        self.deadlines.set(Key::Server(key), entry.machine.next_timeout());
        debug_assert!(entry.machine.next_timeout().is_none_or(|at| at >= now));
        self.servers.insert(key, entry);
        key
    }

    fn remove_server(&mut self, key: ServerKey) -> Option<ServerEntry> {
        let entry = self.servers.remove(&key)?;
        self.servers_by_wire.remove(&entry.wire.id);
        if let Some(merged) = entry.merged {
            self.servers_by_merge.remove(&merged);
        }
        if let Some(source) = entry.source
            && let Some(here) = self.servers_by_source.get_mut(&source)
        {
            *here = here.saturating_sub(1);
            if *here == 0 {
                self.servers_by_source.remove(&source);
            }
        }
        self.deadlines.set(Key::Server(key), None);
        Some(entry)
    }

    /// Answers without a transaction and leaves no state.
    fn refuse(
        &mut self,
        route: Flow,
        wire: Seal,
        budget: Option<usize>,
        request: &Request,
        status: StatusCode,
    ) {
        if let Ok(response) = outgoing::reply(request, status, &tag_of(wire.tag)) {
            let budget = budget.filter(|_| self.config.forgets_strangers);
            self.transmit_within(budget, route, &response);
        }
    }

    fn transmit_within(&mut self, budget: Option<usize>, flow: Flow, response: &Response) {
        match modest::within(budget, response) {
            Some(bytes) => self.transmit(flow, bytes),
            None => self.outputs.push_back(Output::Withheld { flow }),
        }
    }

    /// Adds a Via with a new branch, which this layer can recognise without storing it: 64 random bits and a seal
    /// of 64 bits.
    fn add_via(&mut self, flow: &Flow, request: &mut Request) -> Result<ClientWire, SendError> {
        let [random, _] = self.rng.random::<[u64; 2]>();
        let seal = self.sealer.seal_of(&random.to_be_bytes()).tag;
        let (local, transport) = (self.config.local.address(flow), flow.protocol.as_str());
        // `rport` is empty, as a client sends it (RFC 3581 §3).
        let branch = format_args!("{COOKIE}{random:016x}{seal:016x}");
        request.prepend(Name::Via, format_args!("SIP/2.0/{transport} {local};rport;branch={branch}"))?;
        Ok(ClientWire::new(random, seal, request.method()))
    }

    fn event(&mut self, event: Event) {
        self.outputs.push_back(Output::Event(event));
    }
}

/// How long transactions that only handle retransmissions may stay after their end.
const FORGET_AFTER: Duration = Duration::from_millis(500);
/// Timers that fire for one input; the others wait for the next input, so that messages are not delayed.
const TIMEOUTS_PER_INPUT_MAX: usize = 256;
