//! Connects calls with dialogs, the registrar and the directory: SIP in, SIP out, and decisions by [`Call`](crate::call::Call).
//!
//! The driver feeds datagrams, reports and time, and carries out the outputs.

use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use sidetone_media::mix::MixId;
use sidetone_media::session::{Report, Warning};
use sidetone_model::call::HangupCause;
use sidetone_model::cdr::Cdr;
use sidetone_model::guessing::GuessLimit;
use sidetone_model::ids::{CallId, ConferenceSessionId, LegId, NodeId, NoteId, OrganisationId, TrunkId};
use sidetone_model::news::News;
use sidetone_model::note::PhoneAnswer;
use sidetone_model::rating::{Account, Drawn, Undrawn};
use sidetone_model::room::news::RoomNews;
pub use sidetone_model::time::Now;
use sidetone_model::time::Timestamp;
use sidetone_model::trunk_address::TrunkAddress;
use sidetone_sip::admission::{Admission, AdmissionConfig, Dropped};
use sidetone_sip::auth::{Algorithm, Authenticator};
use sidetone_sip::flow::Flow;
use sidetone_sip::message::{Message, Method, Name, Rejection};
use sidetone_sip::registrar::{self, Registrar, RegistrarConfig};
use sidetone_sip::transaction::{ClientKey, ServerKey};
use sidetone_sip::ua::{self, Draft, LegKey, Reply, Ua};

use crate::admitting::TrunkAddresses;
use crate::billing::Billing;
use crate::carriers::{AddressPolicy, CarrierFault, Carriers};
use crate::conferencing::Conferences;
use crate::control::Asked;
use crate::denied::Denied;
use crate::face::{self, Limits, MediaCommand, Party, PortId, Ports, Reach};
use crate::gate::Gate;
use crate::guess_alerts::GuessAlerts;
use crate::keys::Way;
use crate::live::LiveCall;
use crate::live_media::MediaQuestions;
use crate::messaging::Said;
use crate::mixing::{MixOrder, Recording};
use crate::names::{Answer, Names, Waiter};
use crate::notes::NotesInFlight;
use crate::outbound::Farewell;
use crate::rating::Tariffs;
use crate::registering::Registrations;
use crate::rooms::{self, RoomNote, RoomsConfig};
use crate::routing::Directory;
use crate::trunks::Trunks;

/// Something that happened to the switch.
#[derive(Debug)]
pub enum Input {
    /// New credit accounts of the organisations.
    Accounts(Vec<Account>),
    /// The database includes these charges of calls.
    Drawn(Vec<Drawn>),
    /// New prices.
    Tariffs(Arc<Tariffs>),
    /// Whether to accept new calls; initially true.
    Accept(bool),
    /// A question to the switch.
    Ask(Asked),
    /// Answer a phone's message, after [`Output::Said`], with this final status.
    Answer(ServerKey, u16),
    /// Start registrations with trunks and the rooms of the directory. Fed once, at the start.
    Begin,
    /// The party of a port pressed a key.
    Digit(PortId, char),
    /// A datagram arrived, and [`Switch::admit`] admitted it.
    Datagram {
        /// Its source and listener.
        flow: Flow,
        /// Its bytes.
        bytes: Bytes,
    },
    /// A connection is closed.
    Closed(Flow),
    /// The stored directory changed.
    Directory(Arc<Directory>),
    /// End every call.
    EndCalls(HangupCause),
    /// The journal has the answered call on disk.
    Journalled(CallId),
    /// Remove our registrations with trunks: the engine is about to stop.
    LeaveTrunks,
    /// A message arrived on a stream connection.
    Message {
        /// The connection.
        flow: Flow,
        /// The message.
        message: Message,
    },
    /// A prompt to the party of a port ended; carries its token.
    Played(PortId, u64),
    /// The recording of a session is closed.
    Recorded(ConferenceSessionId, Recording),
    /// A media port was closed; its report.
    Report(PortId, Box<Report>),
    /// The answer of DNS, after [`Output::Resolve`].
    Resolved(TrunkAddress, Answer),
    /// How long the party of a port has sent nothing; `None` when packets arrive again.
    Silent(PortId, Option<Duration>),
    /// The settings changed.
    Settings(Settings),
    /// The requested report of a port.
    Snapshot(PortId, Box<Report>),
    /// The party of a port began or stopped to talk.
    Talking(PortId, bool),
    /// The time of [`Switch::next_timeout`] has come.
    Timeout,
    /// A message could not be sent.
    TransportError(ClientKey),
    /// A media problem of a port's party began or ended.
    Warning(PortId, Box<Warning>),
}

/// Actions that the driver carries out.
#[derive(Debug)]
pub enum Output {
    /// Write to the journal that the call is answered, then feed [`Input::Journalled`].
    Answered(CallId, Box<Cdr>),
    /// The call is over: write its record to the journal and store it.
    Ended(Box<Cdr>),
    /// Send a command to a media port.
    Media(PortId, MediaCommand),
    /// Send an order to a mix.
    Mix(MixId, MixOrder),
    /// Something changed in a live room.
    RoomNews(Box<RoomNews>),
    /// Send a note to phones in a room.
    RoomNote(Box<RoomNote>),
    /// An event to store beside the records.
    News(Box<News>),
    /// What came of sending a note to the phone at that place; once for each.
    NoteAnswered(NoteId, usize, PhoneAnswer),
    /// A notice for the operator's log.
    Notice(Notice),
    /// The peer of this connection has authenticated.
    Proven(Flow),
    /// Close this connection: the credential of its account changed, or the account was deleted.
    Close(Flow),
    /// A phone sent a message. Feed [`Input::Answer`] within half a second, else the phone retransmits.
    Said(Said),
    /// Look up this address in DNS (RFC 3263), then feed [`Input::Resolved`] with any result.
    Resolve(TrunkAddress),
    /// Send these bytes.
    Transmit {
        /// The destination.
        flow: Flow,
        /// One complete message.
        bytes: Bytes,
        /// The transaction to name in [`Input::TransportError`].
        key: Option<ClientKey>,
    },
}

/// Events for the operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Notice {
    /// A trunk may not use one of its addresses.
    Carrier(TrunkId, IpAddr, CarrierFault),
    /// The trunk rejects our credentials, or asks for credentials that we must not send.
    Credentials(TrunkId),
    /// A request was refused because of its sender.
    Denied(Denied),
    /// A message from this address was dropped unread.
    Dropped(IpAddr, Dropped),
    /// Wrong passwords reached this limit; the last came from there.
    Guessing(IpAddr, GuessLimit),
    /// A table is full; a message from there was answered 503.
    Overload(IpAddr),
    /// A datagram from this address was not a SIP message.
    Rejected(IpAddr, Rejection),
    /// We are registered with the trunk.
    Registered(TrunkId),
    /// The trunk refused our registration; with its status, if it sent one.
    Unregistered(TrunkId, Option<u16>),
    /// A request from an unknown sender got no response, because even the shortest one would be more than one
    /// and a half times as long.
    Withheld(IpAddr),
}

/// Settings that may change while calls are up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The digest algorithms that phones are offered, in this order.
    pub digest: Vec<Algorithm>,
    /// See [`SwitchConfig::md5_only`].
    pub md5_only: Vec<String>,
    /// See [`SwitchConfig::limits`]; for calls that begin from now on.
    pub limits: Limits,
}

/// Configuration of the switch.
pub struct SwitchConfig {
    /// This node, for records.
    pub node: NodeId,
    /// The time limits of calls.
    pub limits: Limits,
    /// The most calls at once; further calls are refused with 503.
    pub calls_max: usize,
    /// User-Agent prefixes of phones that fail when a challenge offers other algorithms than MD5.
    pub md5_only: Vec<String>,
    /// Finds the flow to a trunk's address.
    pub reach: Reach,
    /// The addresses that trunks may have.
    pub trunk_addresses: AddressPolicy,
    /// How long before its credit is used up a call gets the warning.
    pub credit_warning: Duration,
    /// The limits of rooms.
    pub rooms: RoomsConfig,
    /// The limits of reading messages from unknown senders.
    pub admission: AdmissionConfig,
    /// Any instant not after the first input.
    pub epoch: Instant,
}

/// The machine of the whole switch.
pub struct Switch {
    pub(super) config: SwitchConfig,
    pub(super) ua: Ua,
    pub(super) gate: Gate,
    pub(super) guess_alerts: GuessAlerts,
    pub(super) admission: Admission,
    pub(super) trunk_addresses: TrunkAddresses,
    pub(super) registrar: Registrar,
    pub(super) directory: Arc<Directory>,
    pub(super) calls: HashMap<CallId, LiveCall>,
    pub(super) legs: HashMap<LegKey, (CallId, Party)>,
    pub(super) ports: HashMap<PortId, CallId>,
    /// Calls that wait for their next trunk.
    pub(super) hunts: VecDeque<CallId>,
    /// Numbers of live outbound calls.
    pub(super) outbound: HashMap<OrganisationId, usize>,
    pub(super) trunks: Trunks,
    pub(super) billing: Billing,
    pub(super) names: Names,
    carriers: Carriers,
    pub(super) notes: NotesInFlight,
    pub(super) conferences: Conferences,
    pub(super) registrations: Registrations,
    /// Recent calls with trunks that we hung up.
    pub(super) farewells: VecDeque<Farewell>,
    /// Questions that wait for media reports.
    pub(super) media_questions: MediaQuestions,
    pub(super) timers: BTreeSet<(Instant, CallId)>,
    pub(super) rng: StdRng,
    pub(super) accepts: bool,
    outputs: VecDeque<Output>,
}

impl Switch {
    /// Creates a switch with no registered phones.
    pub fn new(
        config: SwitchConfig,
        mut ua: Ua,
        authenticator: Authenticator,
        directory: Arc<Directory>,
        mut rng: StdRng,
    ) -> Self {
        let mut trunks = Trunks::default();
        trunks.replace(&directory, &mut rng);
        // Responses before authentication leave no state, because the number of unknown senders has no bound.
        ua.forget_strangers();
        let admission =
            Admission::new(config.admission, config.epoch, &mut StdRng::seed_from_u64(rng.random()));
        let billing = Billing::new(config.credit_warning);
        let names = Names::default();
        let mut carriers = Carriers::new(config.trunk_addresses.clone());
        carriers.replace(&directory, &names);
        let conferences = Conferences::new(config.rooms, rng.random());
        Switch {
            config,
            ua,
            gate: Gate::new(authenticator),
            guess_alerts: GuessAlerts::default(),
            admission,
            trunk_addresses: TrunkAddresses::of(&directory),
            registrar: Registrar::new(RegistrarConfig::default()),
            directory,
            calls: HashMap::new(),
            legs: HashMap::new(),
            ports: HashMap::new(),
            hunts: VecDeque::new(),
            outbound: HashMap::new(),
            trunks,
            billing,
            names,
            carriers,
            notes: NotesInFlight::default(),
            conferences,
            registrations: Registrations::default(),
            farewells: VecDeque::new(),
            media_questions: MediaQuestions::default(),
            timers: BTreeSet::new(),
            rng,
            accepts: true,
            outputs: VecDeque::new(),
        }
    }

    /// Sets, before the first call, the prices, the credit accounts, and the charges of an earlier run that
    /// may not be in the database yet. Without it, calls are not billed.
    pub fn bill_by(
        &mut self,
        now: Instant,
        tariffs: Arc<Tariffs>,
        accounts: Vec<Account>,
        undrawn: Vec<Undrawn>,
    ) {
        self.replace_tariffs(tariffs);
        self.replace_accounts(now, accounts);
        self.carry_over(&undrawn);
    }

    /// Handles an input; drain [`Switch::poll_output`] afterwards.
    pub fn handle_input(&mut self, now: Now, input: Input, ports: &mut dyn Ports) {
        match input {
            Input::Datagram { flow, bytes } => {
                self.ua.handle_input(now.instant, ua::Input::Datagram { flow, bytes });
            }
            Input::Message { flow, message } => {
                self.ua.handle_input(now.instant, ua::Input::Message { flow, message });
            }
            Input::Closed(flow) => {
                self.registrar.handle_input(now.instant, registrar::Input::FlowFailed(&flow));
                self.ua.handle_input(now.instant, ua::Input::FlowClosed { flow });
            }
            Input::Directory(directory) => self.replace_directory(now, directory),
            Input::Accept(accepts) => self.accepts = accepts,
            Input::Ask(asked) => asked.put(now, self),
            Input::Answer(key, status) => self.answer_said(now, &key, status),
            Input::Begin => {
                let directory = Arc::clone(&self.directory);
                self.follow_registrations(now, &directory);
                self.replace_book(now, &directory);
            }
            Input::Accounts(accounts) => self.replace_accounts(now.instant, accounts),
            Input::Drawn(drawn) => self.drawn(now, &drawn),
            Input::Tariffs(tariffs) => self.replace_tariffs(tariffs),
            Input::EndCalls(cause) => self.end_calls(now, cause),
            Input::LeaveTrunks => self.leave_trunks(now),
            Input::Journalled(call) => self.tell_call(now, call, face::Input::Journalled),
            Input::Digit(port, digit) => {
                if let Some(leg) = self.seat_at(port) {
                    self.keyed(now, leg, digit, Way::Media);
                }
            }
            Input::Played(port, token) => {
                self.tell_of_seat(now, port, |leg| rooms::Input::Played(leg, token));
            }
            Input::Talking(port, talks) => {
                self.tell_of_seat(now, port, |leg| rooms::Input::Talking(leg, talks));
            }
            Input::Recorded(session, Recording { bytes, error }) => {
                self.tell_rooms(now, rooms::Input::Recorded { session, bytes, error });
            }
            Input::Report(port, report) => {
                if let Some(call) = self.ports.remove(&port) {
                    self.heard_of_media(now, call, port, &report);
                    self.tell_call(now, call, face::Input::Report(port, report));
                }
            }
            Input::Resolved(address, answer) => self.resolved(now, &address, answer),
            Input::Settings(settings) => {
                self.gate.offer(settings.digest);
                self.config.md5_only = settings.md5_only;
                self.config.limits = settings.limits;
            }
            Input::Silent(port, silent_for) => {
                if let Some(call) = self.ports.get(&port).copied() {
                    self.tell_call(now, call, face::Input::Silent(port, silent_for));
                }
            }
            Input::Snapshot(port, report) => {
                if let Some(call) = self.ports.get(&port).copied() {
                    self.heard_of_media(now, call, port, &report);
                }
            }
            Input::Warning(port, warning) => self.warned_of_media(now, port, &warning),
            Input::Timeout => self.timeout(now),
            Input::TransportError(key) => {
                self.ua.handle_input(now.instant, ua::Input::TransportError { key })
            }
        }
        self.settle(now, ports);
    }

    /// Returns the next action; drain to `None` after every input.
    pub fn poll_output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    /// Returns when to feed [`Input::Timeout`].
    pub fn next_timeout(&self) -> Option<Instant> {
        let call = self.timers.first().map(|(due, _)| *due);
        let (registration, credit) = (self.registrations.next_timeout(), self.billing.next_timeout());
        let rooms = self.conferences.next_timeout();
        [self.ua.next_timeout(), self.registrar.next_timeout(), call, registration, credit, rooms]
            .into_iter()
            .flatten()
            .min()
    }

    /// Returns the number of calls, counted from the first INVITE to the record.
    pub fn live_calls(&self) -> usize {
        self.calls.len()
    }

    /// Returns the number of legs, including those whose CANCEL or BYE is not answered yet.
    pub fn legs(&self) -> usize {
        self.ua.legs_len()
    }

    /// Returns the number of client and server transactions, including those kept only for retransmissions.
    pub fn transactions(&self) -> (usize, usize) {
        self.ua.transactions()
    }

    /// Returns the number of registered bindings.
    pub fn bindings(&self) -> usize {
        self.registrar.bindings()
    }

    /// Returns the number of recordings of ended rooms that are not closed yet.
    pub fn open_recordings(&self) -> usize {
        self.conferences.rooms.open_recordings()
    }

    /// Returns the number of registrations with trunks, including those that are being removed.
    pub fn registrations(&self) -> usize {
        self.registrations.len()
    }

    pub(super) fn push(&mut self, output: Output) {
        self.outputs.push_back(output);
    }

    /// Creates a call id that sorts by time (RFC 9562 §5.7).
    pub(super) fn call_id(&mut self, wall: Timestamp) -> CallId {
        let millis = u64::try_from(wall.as_micros() / 1000).unwrap_or_default();
        let random: [u8; 10] = self.rng.random();
        CallId(uuid::Builder::from_unix_timestamp_millis(millis, &random).into_uuid())
    }

    /// Creates a leg id; random, so that it cannot be guessed.
    pub(super) fn leg_id(&mut self) -> LegId {
        LegId(uuid::Builder::from_random_bytes(self.rng.random()).into_uuid())
    }

    /// Creates an SDP session id and media group for a call: below 2⁶², so that a few may be added (RFC 8866
    /// §5.2).
    pub(super) fn session_id(&mut self) -> u64 {
        self.rng.random::<u64>() >> 2
    }

    pub(super) fn respond(&mut self, now: Now, key: &ServerKey, reply: Reply) {
        // Fails when the transaction is over, for example because a CANCEL or BYE crossed.
        let _ = self.ua.respond(now.instant, key, reply);
    }

    /// Dispatches the events of the user agent and the registrar until both have none.
    fn settle(&mut self, now: Now, ports: &mut dyn Ports) {
        loop {
            if let Some(output) = self.ua.poll_output() {
                match output {
                    ua::Output::Event(event) => self.event(now, event, ports),
                    ua::Output::Overload { flow } => {
                        self.push(Output::Notice(Notice::Overload(flow.remote.ip())))
                    }
                    ua::Output::Rejected { flow, reason } => {
                        self.push(Output::Notice(Notice::Rejected(flow.remote.ip(), reason)));
                    }
                    ua::Output::Transmit { flow, bytes, key } => {
                        self.push(Output::Transmit { flow, bytes, key })
                    }
                    ua::Output::Withheld { flow } => {
                        self.push(Output::Notice(Notice::Withheld(flow.remote.ip())));
                    }
                }
            } else if let Some(output) = self.registrar.poll_output() {
                self.keep_alive(now, output);
            } else if let Some(output) = self.conferences.rooms.poll_output() {
                self.obey_rooms(now, output, ports);
            } else if let Some(id) = self.hunts.pop_front() {
                self.hunt(now, id, ports);
            } else if let Some(address) = self.names.poll_question() {
                self.push(Output::Resolve(address));
            } else if !self.obey_ledger(now) {
                return;
            }
        }
    }

    fn keep_alive(&mut self, now: Now, output: registrar::Output) {
        if let registrar::Output::KeepAlive { contact, flow, .. } = output
            && self.ua.has_spare_room()
        {
            let to = format!("<{contact}>");
            let draft =
                Draft::new(Method::Options, contact.to_string(), "<sip:keepalive@sidetone.invalid>", to)
                    .header(Name::Accept.as_str(), "application/sdp");
            // A full table skips one keep-alive; the next follows within seconds.
            let _ = self.ua.request(now.instant, flow, draft);
        }
    }

    fn timeout(&mut self, now: Now) {
        let is_due = |at: Option<Instant>| at.is_some_and(|at| at <= now.instant);
        if is_due(self.ua.next_timeout()) {
            self.ua.handle_input(now.instant, ua::Input::Timeout);
        }
        if is_due(self.registrar.next_timeout()) {
            self.registrar.handle_input(now.instant, registrar::Input::Timeout);
        }
        if is_due(self.conferences.next_timeout()) {
            self.tell_rooms(now, rooms::Input::Timeout);
        }
        self.wake_registrants(now);
        while let Some((due, id)) = self.timers.first().copied()
            && due <= now.instant
        {
            self.timers.remove(&(due, id));
            self.hunt_timeout(now, id);
            self.tell_call(now, id, face::Input::Timeout);
        }
        self.credit_timeout(now);
    }

    fn end_calls(&mut self, now: Now, cause: HangupCause) {
        let ids: Vec<CallId> = self.calls.keys().copied().collect();
        for id in ids {
            self.tell_call(now, id, face::Input::End(cause));
        }
    }

    fn replace_directory(&mut self, now: Now, directory: Arc<Directory>) {
        self.forget_changed_lines(now, &directory);
        self.carriers.replace(&directory, &self.names);
        // Removing a registration uses the credentials that it was made with.
        self.follow_registrations(now, &directory);
        self.replace_book(now, &directory);
        self.directory = directory;
        self.trunk_addresses = TrunkAddresses::of(&self.directory);
        self.trunks.replace(&self.directory, &mut self.rng);
    }

    /// Removes what the former credentials of extensions authenticated: bindings, and connections that no
    /// other binding uses.
    fn forget_changed_lines(&mut self, now: Now, after: &Directory) {
        let before = Arc::clone(&self.directory);
        let mut flows = HashSet::new();
        for line in before.lines_changed_in(after) {
            let Some(organisation) = before.organisation(line.organisation_id) else { continue };
            // The failures were counted against the former password.
            self.gate.forget_failures(&organisation.sip_domain, &line.number);
            let Some(aor) = before.aor(line) else { continue };
            let bindings = self.registrar.lookup(&aor, now.instant).into_iter().map(|binding| binding.flow);
            flows.extend(bindings.filter(|flow| flow.protocol.is_reliable()));
            self.registrar.handle_input(now.instant, registrar::Input::Forget { aor: &aor });
        }
        for flow in self.registrar.unused(flows) {
            self.push(Output::Close(flow));
        }
    }

    /// Returns the addresses of a trunk that it may reach.
    pub(super) fn reachable(&mut self, trunk: TrunkId, addresses: Vec<SocketAddr>) -> Vec<SocketAddr> {
        let (permitted, fault) = self.carriers.permitted(trunk, addresses);
        if let Some((address, fault)) = fault {
            self.push(Output::Notice(Notice::Carrier(trunk, address, fault)));
        }
        permitted
    }

    fn resolved(&mut self, now: Now, address: &TrunkAddress, answer: Answer) {
        let waiters = self.names.answered(now.instant, address, answer);
        self.carriers.follow(&self.names);
        for waiter in waiters {
            match waiter {
                Waiter::Call(id) => self.hunts.push_back(id),
                Waiter::Trunk(id) => self.registrant_resolved(now, id),
            }
        }
    }
}
