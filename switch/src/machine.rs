//! The owner of the switch's parts: routes each input to the part that it concerns, and each effect of one part
//! to another.
//!
//! Parts do not use the owner. They push outputs, and return the remaining action on a call. The driver feeds
//! datagrams, reports and time, and carries out the outputs.

use std::sync::Arc;
use std::time::Instant;

use rand::RngExt;
use rand::rngs::StdRng;
use sidetone_model::call_request::{PlaceRefused, Placeable};
use sidetone_model::ids::CallId;
use sidetone_model::note::Dispatch;
use sidetone_model::page::Page;
use sidetone_model::rating::{Account, Undrawn};
use sidetone_model::registration::RegistrationRecord;
use sidetone_model::room::{Control, ControlDone, ControlRefused, RoomName};
pub use sidetone_model::time::Now;
use sidetone_model::trunk_address::TrunkAddress;
use sidetone_model::trunk_status::TrunkStatus;
use sidetone_sip::admission::Dropped;
use sidetone_sip::auth::Authenticator;
use sidetone_sip::flow::Flow;
use sidetone_sip::message::{Method, Request, StatusCode};
use sidetone_sip::registrar;
use sidetone_sip::transaction::{ClientKey, ServerKey};
use sidetone_sip::ua::{self, Event, LegKey, Receipt, Reply, Ua};

use crate::admitting::Rank;
use crate::billing::Billing;
use crate::call_control::CallControl;
use crate::call_queries;
use crate::call_table::CallTable;
use crate::call_to_sip::RETRY_AFTER_S;
use crate::conference;
use crate::conference_adapter::Conferences;
use crate::conference_commands;
use crate::denied::{Denial, Denied};
use crate::dialog_credentials::{self, RecentByes, RepeatContext};
use crate::ids::Ids;
use crate::incoming::{self, Invitation, PartyHeaders, Requests};
use crate::io;
use crate::kept_bindings::ChangedBindings;
use crate::live_media::MediaQueries;
use crate::messaging;
use crate::node_entry::NodeEntry;
use crate::node_queries;
use crate::notes::{self, NoteContext, NotesInFlight};
use crate::operations;
use crate::outbound::Hunts;
use crate::outbound_decisions;
use crate::outbound_slots::OutboundSlots;
use crate::port_inputs;
use crate::qualifying::{self, Probes};
use crate::queries::{
    Answer, AnswerMessage, CheckCall, ControlRoom, DevicesOf, EndCall, FindRoom, ListCalls,
    ListRegistrations, MembersOfRooms, Operate, PhonesOnCall, Query, ReplyToken, RoomOfCall, SendNotes,
    ShareTrunks, StatusOfTrunk,
};
use crate::rating::Tariffs;
use crate::referring;
use crate::registering::{RegisterContext, Registrations};
use crate::registration_queries;
use crate::replacing;
use crate::room_handover;
use crate::room_owner::RoomOwner;
use crate::room_owners::{self, RoomCaller, RoomOwners};
use crate::room_places::RoomPlaces;
use crate::routing::Directory;
use crate::senders::{SenderContext, Senders};
use crate::shared::Shared;
use crate::sip_to_call::{self, SipToCall};
use crate::star_codes::StarCodes;
use crate::star_dialling;
use crate::star_parking;
use crate::subscriptions;
pub use crate::switch_io::{Input, Notice, Output, Settings, SwitchConfig};
use crate::transferring;
use crate::transfers::Transfers;
use crate::trunk_access::TrunkAccess;
use crate::trunk_dns::{self, Waiter};
use crate::trunk_queries;

/// The machine of the whole switch.
pub struct Switch {
    pub(super) shared: Shared,
    pub(super) control: CallControl,
    senders: Senders,
    registrations: Registrations,
    changed_bindings: ChangedBindings,
    notes: NotesInFlight,
    media_queries: MediaQueries,
    probes: Probes,
    pub(super) room_owners: RoomOwners,
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
        let trunks = TrunkAccess::new(config.reach, config.trunk_addresses, &directory, &mut rng);
        // Responses before authentication leave no state, because the number of unknown senders has no bound.
        ua.forget_strangers();
        let admission = (config.admission, config.epoch);
        let known = (&*directory, config.nodes.clone());
        let senders = Senders::new(authenticator, admission, config.md5_only, known, rng.random());
        let mut conferences = Conferences::new(config.rooms, rng.random());
        if config.nodes.is_some() {
            conferences.rooms.seek_owners();
        }
        Switch {
            control: CallControl {
                node: config.node,
                limits: config.limits,
                calls_max: config.calls_max,
                accepts: true,
                calls: CallTable::new(config.media_ports),
                hunts: Hunts::default(),
                slots: config.shares_limits.then(OutboundSlots::default),
                recent_byes: RecentByes::default(),
                billing: Billing::new(config.credit_warning, config.shares_limits),
                conferences,
                transfers: Transfers::default(),
                star_codes: StarCodes::default(),
            },
            shared: Shared::new(
                ua,
                config.qualify,
                directory,
                trunks,
                (Ids::new(rng, config.media_workers), RoomPlaces::new(config.nodes)),
            ),
            senders,
            registrations: Registrations::new(config.shares_limits),
            changed_bindings: ChangedBindings::default(),
            notes: NotesInFlight::default(),
            media_queries: MediaQueries::default(),
            probes: Probes::default(),
            room_owners: RoomOwners::default(),
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
        self.control.billing.replace_tariffs(tariffs);
        self.control.billing.replace_accounts(now, accounts);
        self.control.billing.carry_over(&undrawn);
    }

    /// Decides whether a received datagram is read, and when.
    ///
    /// Takes a token from the sender's buckets; allocates nothing.
    ///
    /// # Errors
    /// Why the datagram is dropped.
    pub fn admit(&mut self, now: Instant, flow: &Flow, datagram: &[u8]) -> Result<Rank, Dropped> {
        let known = (&self.registrations, &self.shared.trunks);
        self.senders.admit(now, flow, datagram, &self.shared.ua, known)
    }

    /// Handles an input; drain [`Switch::poll_output`] afterwards.
    pub fn handle_input(&mut self, now: Now, input: Input) {
        match input {
            Input::Accept(accepts) => self.control.accepts = accepts,
            Input::Accounts(accounts) => self.control.billing.replace_accounts(now.instant, accounts),
            Input::Answer(key, status) => self.shared.respond(now, &key, messaging::reply(status)),
            Input::Begin => {
                let directory = Arc::clone(&self.shared.directory);
                self.follow_registrations(now, &directory);
                self.control.conferences.replace_directory(now, &directory);
            }
            Input::Closed(flow) => self.closed(now, flow),
            Input::Unopened(flow) => {
                self.shared.ua.handle_input(now.instant, ua::Input::FlowUnopened { flow });
            }
            Input::Datagram { flow, bytes } => {
                self.shared.ua.handle_input(now.instant, ua::Input::Datagram { flow, bytes });
            }
            Input::Directory(directory) => self.replace_directory(now, directory),
            Input::Drawn(drawn) => self.control.billing.drawn(now, &drawn),
            Input::EndCalls(cause) => self.control.end_all(now, cause, &mut self.shared),
            Input::ExtensionChanged(by, result) => {
                star_dialling::changed(now, by, result, &mut self.control, &mut self.shared);
            }
            Input::Identified(flow, names) => self.senders.identified(flow, names),
            Input::Journalled(call) => self.control.feed(now, call, io::Input::Journalled, &mut self.shared),
            Input::LeaveTrunks => {
                let (registrations, mut context) = self.registering();
                registrations.leave(now, &mut context);
            }
            Input::Message { flow, message } => {
                self.shared.ua.handle_input(now.instant, ua::Input::Message { flow, message });
            }
            Input::PortOpened(leg, port) => self.control.port_opened(now, leg.call, port, &mut self.shared),
            Input::Query(token, query) => self.query(now, token, query),
            Input::Recorded(session, recording) => {
                operations::recorded(now, session, recording, &mut self.control, &mut self.shared);
            }
            Input::Name(leg, is_known) => {
                self.control.conferences.handle_input(now, conference::Input::Name(leg, is_known));
            }
            Input::Refused(flow, bytes) => {
                self.shared.ua.handle_input(now.instant, ua::Input::Refused { flow, bytes });
            }
            Input::Resolved(address, answer) => self.resolved(now, &address, answer),
            Input::Settings(settings) => {
                self.senders.configure(settings.digest, settings.md5_only);
                self.control.limits = settings.limits;
            }
            Input::Tariffs(tariffs) => self.control.billing.replace_tariffs(tariffs),
            Input::Timeout => self.timeout(now),
            Input::TransportError(key) => {
                self.shared.ua.handle_input(now.instant, ua::Input::TransportError { key });
            }
            Input::Digit(..)
            | Input::Key(..)
            | Input::Played(..)
            | Input::Report(..)
            | Input::Silent(..)
            | Input::Snapshot(..)
            | Input::Talking(..)
            | Input::Warning(..) => {
                let (control, shared) = (&mut self.control, &mut self.shared);
                port_inputs::handle(now, input, control, shared, &mut self.media_queries);
            }
        }
        self.settle(now);
    }

    /// Handles a closed connection: waiting messages to its peer are sent over another one.
    fn closed(&mut self, now: Now, flow: Flow) {
        self.senders.closed(&flow);
        self.shared.registrar.handle_input(now.instant, registrar::Input::FlowFailed(&flow));
        self.control.reopen(&flow, &mut self.shared);
        self.shared.ua.handle_input(now.instant, ua::Input::FlowClosed { flow });
    }

    /// Returns the next action; drain to `None` after every input.
    pub fn poll_output(&mut self) -> Option<Output> {
        self.shared.outputs.pop_front()
    }

    /// Returns when to feed [`Input::Timeout`].
    pub fn next_timeout(&self) -> Option<Instant> {
        [
            self.shared.ua.next_timeout(),
            self.shared.registrar.next_timeout(),
            self.control.calls.next_timeout(),
            self.control.slots.as_ref().and_then(OutboundSlots::next_timeout),
            self.registrations.next_timeout(),
            self.control.billing.next_timeout(),
            self.control.conferences.next_timeout(),
            self.shared.subscriptions.next_timeout(),
            self.shared.messages.next_timeout(),
            self.room_owners.next_timeout(),
        ]
        .into_iter()
        .flatten()
        .min()
    }

    /// Returns the number of calls, counted from the first INVITE to the record.
    pub fn live_calls(&self) -> usize {
        self.control.calls.len()
    }

    /// Returns the number of legs, including those whose CANCEL or BYE is not answered yet.
    pub fn legs(&self) -> usize {
        self.shared.ua.legs_len()
    }

    /// Returns the number of client and server transactions, including those kept only for retransmissions.
    pub fn transactions(&self) -> (usize, usize) {
        self.shared.ua.transactions()
    }

    /// Returns the number of registered bindings.
    pub fn bindings(&self) -> usize {
        self.shared.registrar.bindings()
    }

    /// Returns the number of live conference rooms.
    pub fn live_rooms(&self) -> usize {
        self.control.conferences.rooms.live_len()
    }

    /// Returns the number of recordings of ended rooms that are not closed yet.
    pub fn open_recordings(&self) -> usize {
        self.control.conferences.open_recordings()
    }

    /// Returns the number of registrations with trunks, including those that are being removed.
    pub fn registrations(&self) -> usize {
        self.registrations.len()
    }

    /// Carries out the outputs of all parts until none has any.
    fn settle(&mut self, now: Now) {
        loop {
            if let Some(output) = self.shared.ua.poll_output() {
                match output {
                    ua::Output::Event(event) => self.event(now, event),
                    ua::Output::Hold { flow, is_held } => {
                        self.shared.outputs.push_back(Output::Hold(flow, is_held));
                    }
                    ua::Output::Overload { flow } => self.shared.notice(Notice::Overload(flow.remote.ip())),
                    ua::Output::Rejected { flow, reason } => {
                        self.shared.notice(Notice::Rejected(flow.remote.ip(), reason));
                    }
                    ua::Output::Transmit { flow, bytes, key } => {
                        self.shared.outputs.push_back(Output::Transmit { flow, bytes, key });
                    }
                    ua::Output::Withheld { flow } => self.shared.notice(Notice::Withheld(flow.remote.ip())),
                }
            } else if let Some(output) = self.shared.registrar.poll_output() {
                self.changed_bindings.note(&output);
                self.registrar_output(now, output);
            } else if transferring::step(now, &mut self.control, &mut self.shared)
                || self.control.step(now, &mut self.shared)
                || room_handover::seek(now, &mut self.control, &mut self.shared)
                || subscriptions::notify(now, &self.control.calls, &mut self.shared)
            {
                // More may follow.
            } else if let Some(address) = self.shared.trunks.poll_question() {
                self.shared.outputs.push_back(Output::Resolve(address));
            } else if !self.control.charge(now, &mut self.shared) {
                return;
            }
        }
    }

    /// Routes an event of the user agent to the part that it concerns.
    fn event(&mut self, now: Now, event: Event) {
        if let Some((id, doubted)) = sip_to_call::doubted(&event, &self.control.calls) {
            self.control.feed(now, id, doubted, &mut self.shared);
        }
        match event {
            Event::Invited { leg, key, flow, request } => self.invited(now, (leg, key), &flow, &request),
            Event::Request { leg: Some(leg), key, flow, request } if *request.method() == Method::Refer => {
                self.referred(now, (leg, &key), &flow, &request);
            }
            Event::Request { leg, key, flow, request } => {
                let mut requests = Requests {
                    now,
                    accepts: self.control.accepts,
                    ua: &mut self.shared.ua,
                    senders: &mut self.senders,
                    registrar: &mut self.shared.registrar,
                    gruus: (&mut self.shared.gruus, &mut self.shared.ids),
                    directory: &self.shared.directory,
                    calls: &self.control.calls,
                    conferences: &mut self.control.conferences,
                    subscriptions: &mut self.shared.subscriptions,
                    messages: &mut self.shared.messages,
                    outputs: &mut self.shared.outputs,
                };
                requests.handle(leg, &key, &flow, &request);
            }
            event @ (Event::NotifyAnswered { .. } | Event::Resubscribed { .. }) => {
                subscriptions::event(now, event, &mut self.shared);
            }
            Event::InfoAnswered { key, receipt, .. } | Event::MessageAnswered { key, receipt } => {
                self.message_answered(now, key, &receipt);
            }
            Event::Response { leg: None, key, response, .. }
                if self.probes.answered(now.instant, key, response.status(), &mut self.shared.registrar) => {}
            Event::Unanswered { leg: None, key, unreachable }
                if self.probes.unanswered(now.instant, key, unreachable, &mut self.shared.registrar) => {}
            Event::Response { leg: None, key, flow, response, request } => match request {
                Some(bye) if *bye.method() == Method::Bye => {
                    let Shared { ua, trunks, outputs, .. } = &mut self.shared;
                    let context = RepeatContext { ua, trunks, outputs };
                    let (answer, recent) = ((&flow, &response), &self.control.recent_byes);
                    dialog_credentials::repeat_bye(now.instant, answer, bye, recent, context);
                }
                request => {
                    let (registrations, mut context) = self.registering();
                    registrations.answered(now, key, &flow, &response, request, &mut context);
                }
            },
            Event::Unanswered { leg: None, key, .. } => {
                let (registrations, mut context) = self.registering();
                registrations.unanswered(now, key, &mut context);
            }
            event => {
                if let Event::Ended { leg, cause } = &event {
                    qualifying::ended(now.instant, *leg, cause, &self.control.calls, &mut self.shared);
                }
                let mut legs = SipToCall {
                    now,
                    ua: &mut self.shared.ua,
                    calls: &mut self.control.calls,
                    trunks: &mut self.shared.trunks,
                    outputs: &mut self.shared.outputs,
                };
                if let Some((id, input)) = legs.event(event) {
                    transferring::feed(now, id, input, &mut self.control, &mut self.shared);
                }
            }
        }
    }

    /// Handles the result of our INFO or MESSAGE: of a phone's message, or of a note.
    fn message_answered(&mut self, now: Now, key: ClientKey, receipt: &Receipt) {
        if !self.shared.messages.answered(now.instant, key, receipt, &mut self.shared.ua) {
            let (notes, mut context) = self.noting(now);
            notes.answered(key, receipt, &mut context);
        }
    }

    /// Handles a new INVITE.
    fn invited(&mut self, now: Now, (leg, key): (LegKey, ServerKey), flow: &Flow, request: &Request) {
        let source = flow.remote.ip();
        let entry = self.shared.rooms.entry_of(flow, request);
        if !self.control.has_capacity() && !self.takes_entry(entry.as_ref()) {
            let reply = Reply::new(StatusCode::SERVICE_UNAVAILABLE).header("Retry-After", RETRY_AFTER_S);
            return self.shared.refuse(now, &key, reply);
        }
        if request.max_forwards() == Some(0) {
            return self.shared.refuse(now, &key, Reply::new(StatusCode::TOO_MANY_HOPS));
        }
        if request.is_sips() && !flow.protocol.is_secure() {
            // It was readable on the path to this node, which `sips:` forbids (RFC 3261 §26.2.2).
            return self.shared.refuse(now, &key, Reply::new(StatusCode::UNSUPPORTED_URI_SCHEME));
        }
        let dialled =
            incoming::number_dialled(now, request, source, &self.shared.directory, &self.registrations);
        let context = SenderContext {
            ua: &mut self.shared.ua,
            registrar: &self.shared.registrar,
            directory: &self.shared.directory,
            outputs: &mut self.shared.outputs,
        };
        let (sent, known) = ((&key, flow), (&self.registrations, &self.shared.trunks));
        let Some(sender) = self.senders.caller(now, sent, request, &dialled, known, context) else {
            return self.shared.trunks.refresh(now.instant);
        };
        let offer = match incoming::offer_of(request, source) {
            Ok(offer) => offer,
            Err(reply) => return self.shared.respond(now, &key, reply),
        };
        let binding = incoming::binding_of(now, leg, &sender, flow, request, &mut self.shared);
        let party = PartyHeaders::of(request.headers());
        let invitation = Invitation { leg, key, source, offer, party, binding };
        let (control, shared) = (&mut self.control, &mut self.shared);
        let invitation = replacing::replace(now, &sender, request, invitation, control, shared)
            .and_then(|new| star_dialling::dial(now, &sender, &dialled, new, control, shared));
        let Some(invitation) = invitation else { return };
        let mut placing = self.control.placing(&mut self.shared);
        let placed = match &entry {
            Some(entry) => placing.place_entry(now, entry, request, &dialled),
            None => placing.place(now, &sender, request, &dialled),
        };
        let placement = match placed {
            Ok(placement) => placement,
            Err(refused) => {
                self.shared.notice(Notice::Denied(Denied::new(source, request, Denial::Call(refused.cause))));
                return self.control.refuse(now, &key, refused, &mut self.shared);
            }
        };
        let caller = RoomCaller { sender, dialled, entry, invitation, placement };
        room_owners::begin(now, caller, &mut self.room_owners, &mut self.control, &mut self.shared);
    }

    /// Whether another node may connect a party although this node drains: to a room that this node still owns.
    fn takes_entry(&self, entry: Option<&NodeEntry>) -> bool {
        let is_here = |entry: &NodeEntry| matches!(self.shared.rooms.owner(entry.room), RoomOwner::Here(_));
        self.control.calls.len() < self.control.calls_max && entry.is_some_and(is_here)
    }

    /// Handles a REFER inside a dialog; it needs credentials if its source is not that of the party's other requests.
    fn referred(&mut self, now: Now, (leg, key): (LegKey, &ServerKey), flow: &Flow, request: &Request) {
        let extension = referring::extension_of(&self.control.calls, leg);
        if !referring::comes_from_its_party(&self.control.calls, leg, flow) {
            if extension.is_none() {
                return self.shared.respond(now, key, Reply::new(StatusCode::FORBIDDEN));
            }
            let context = SenderContext {
                ua: &mut self.shared.ua,
                registrar: &self.shared.registrar,
                directory: &self.shared.directory,
                outputs: &mut self.shared.outputs,
            };
            let Some(sender) = self.senders.phone(now, (key, flow), request, context) else { return };
            if Some(sender) != extension {
                return self.shared.respond(now, key, Reply::new(StatusCode::FORBIDDEN));
            }
        }
        star_parking::refer(now, (leg, key), request, &mut self.control, &mut self.shared);
    }

    /// Answers a query.
    fn query(&mut self, now: Now, token: ReplyToken, query: Query) {
        let answer = match query {
            Query::AnswerMessage(AnswerMessage(key, status)) => {
                self.shared.respond(now, &key, messaging::reply(status));
                Answer::AnswerMessage(())
            }
            Query::CallQuality(query) => return self.ask_quality(now, token, query.0),
            Query::CancelCall(query) => {
                Answer::CancelCall(self.control.cancel(now, query.0, &mut self.shared))
            }
            Query::CheckCall(query) => Answer::CheckCall(self.check(now, &query)),
            Query::ControlRoom(ControlRoom(room, control)) => {
                Answer::ControlRoom(self.control_room(now, room, control))
            }
            Query::DevicesOf(DevicesOf(extension)) => {
                let (directory, registrar) = (&self.shared.directory, &self.shared.registrar);
                Answer::DevicesOf(notes::devices_of(now, extension, directory, registrar))
            }
            Query::DialIntoRoom(query) => {
                Answer::DialIntoRoom(self.control.dial_into(now, query, &mut self.shared))
            }
            Query::EndCall(EndCall(call)) => Answer::EndCall(self.control.end(now, call, &mut self.shared)),
            Query::FindCall(query) => {
                Answer::FindCall(call_queries::find(&self.control.calls, query.0).map(Box::new))
            }
            Query::FindRoom(FindRoom(room)) => {
                Answer::FindRoom(conference_commands::find(&self.control.conferences, now, room))
            }
            Query::ListCalls(ListCalls(scope, query)) => {
                Answer::ListCalls(call_queries::list(&self.control.calls, scope, &query))
            }
            Query::ListRegistrations(query) => Answer::ListRegistrations(self.registered(now, &query)),
            Query::ListRooms(query) => {
                Answer::ListRooms(conference_commands::list(&self.control.conferences, now, &query))
            }
            Query::MembersOfRooms(MembersOfRooms(rooms)) => {
                Answer::MembersOfRooms(conference_commands::members(&self.control.conferences, &rooms))
            }
            Query::Merge(merge) => Answer::Merge(self.control.merge(now, merge, &mut self.shared)),
            Query::Operate(Operate(operation)) => {
                Answer::Operate(operations::operate(now, operation, &mut self.control, &mut self.shared))
            }
            Query::PhonesOnCall(PhonesOnCall(call)) => {
                Answer::PhonesOnCall(call_queries::phones_on(&self.control.calls, call))
            }
            Query::PlaceCall(query) => Answer::PlaceCall(self.control.place(now, &query.0, &mut self.shared)),
            Query::RoomOfCall(RoomOfCall(call)) => {
                Answer::RoomOfCall(conference_commands::of_call(&self.control.conferences, now, call))
            }
            Query::SendNotes(SendNotes(notes)) => self.send_notes(now, notes),
            Query::ShareTrunks(ShareTrunks(homes)) => {
                let directory = Arc::clone(&self.shared.directory);
                let (registrations, mut context) = self.registering();
                registrations.share(now, homes, &directory, &mut context);
                Answer::ShareTrunks(())
            }
            Query::StatusOfTrunk(query) => Answer::StatusOfTrunk(self.status_of_trunk(now, &query)),
            Query::WrongFields(query) => {
                Answer::WrongFields(operations::judge(now, query.0, &mut self.control, &mut self.shared))
            }
            // Queries of the tasks that exchange state with other nodes or store bindings.
            query => match self.about_nodes(now, query) {
                Some(answer) => answer,
                None => return,
            },
        };
        self.shared.outputs.push_back(Output::Reply(token, answer));
    }

    fn control_room(
        &mut self,
        now: Now,
        room: RoomName,
        control: Control,
    ) -> Result<ControlDone, ControlRefused> {
        if room_handover::is_handed_over(&self.room_owners.handovers, room) {
            return Err(ControlRefused::Busy);
        }
        conference_commands::control(&mut self.control.conferences, now, room, control)
    }

    fn send_notes(&mut self, now: Now, notes: Vec<Dispatch>) -> Answer {
        let (in_flight, mut context) = self.noting(now);
        notes.into_iter().for_each(|note| in_flight.send(note, &mut context));
        Answer::SendNotes(())
    }

    fn registered(&self, now: Now, query: &ListRegistrations) -> Page<RegistrationRecord> {
        let ListRegistrations(scope, query) = query;
        registration_queries::list(now, *scope, query, &self.shared.directory, &self.shared.registrar)
    }

    fn status_of_trunk(&self, now: Now, StatusOfTrunk(trunk): &StatusOfTrunk) -> Option<TrunkStatus> {
        let (calls, registrations) = (&self.control.calls, &self.registrations);
        trunk_queries::status(now, *trunk, calls, registrations, &self.shared)
    }

    fn ask_quality(&mut self, now: Now, token: ReplyToken, call: CallId) {
        let (calls, outputs) = (&self.control.calls, &mut self.shared.outputs);
        self.media_queries.ask(now, token, call, calls, outputs);
    }

    fn about_nodes(&mut self, now: Now, query: Query) -> Option<Answer> {
        let own = (&mut self.room_owners, &mut self.changed_bindings);
        node_queries::answer(now, query, own, &mut self.control, &mut self.shared)
    }

    fn check(&mut self, now: Now, CheckCall(from, requested): &CheckCall) -> Result<Placeable, PlaceRefused> {
        self.control.check(now, *from, requested, &mut self.shared)
    }

    fn registrar_output(&mut self, now: Now, output: registrar::Output) {
        match output {
            registrar::Output::KeepAlive { aor, binding, contact, flow } => {
                self.probes.send(now.instant, (aor, binding), (&contact, flow), &mut self.shared.ua);
            }
            registrar::Output::Moved { binding, flow } => self.control.moved(binding, flow, &mut self.shared),
            registrar::Output::Reachability { aor, .. }
            | registrar::Output::Registered { aor, .. }
            | registrar::Output::Removed { aor, .. } => self.shared.touch(&aor),
        }
    }

    fn timeout(&mut self, now: Now) {
        let is_due = |at: Option<Instant>| at.is_some_and(|at| at <= now.instant);
        if is_due(self.shared.ua.next_timeout()) {
            self.shared.ua.handle_input(now.instant, ua::Input::Timeout);
        }
        if is_due(self.shared.registrar.next_timeout()) {
            self.shared.registrar.handle_input(now.instant, registrar::Input::Timeout);
        }
        if is_due(self.control.conferences.next_timeout()) {
            self.control.conferences.handle_input(now, conference::Input::Timeout);
        }
        self.shared.subscriptions.timeout(now.instant);
        self.shared.messages.timeout(now.instant, &mut self.shared.ua);
        let (registrations, mut context) = self.registering();
        registrations.timeout(now, &mut context);
        self.control.timeout(now, &mut self.shared);
        outbound_decisions::timeout(now, &mut self.control, &mut self.shared);
        room_owners::timeout(now, &mut self.room_owners, &mut self.control, &mut self.shared);
    }

    fn follow_registrations(&mut self, now: Now, directory: &Directory) {
        let (registrations, mut context) = self.registering();
        registrations.follow(now, directory, &mut context);
    }

    fn replace_directory(&mut self, now: Now, directory: Arc<Directory>) {
        self.senders.forget_changed_lines(now, &directory, &mut self.shared);
        subscriptions::mailboxes_changed(now, &directory, &mut self.shared);
        self.shared.trunks.replace_addresses(&directory);
        // Removing a registration uses the credentials that it was made with.
        self.follow_registrations(now, &directory);
        self.control.conferences.replace_directory(now, &directory);
        self.shared.directory = directory;
        self.senders.replace(&self.shared.directory);
        self.shared.trunks.replace_credentials(&self.shared.directory, self.shared.ids.rng());
    }

    fn resolved(&mut self, now: Now, address: &TrunkAddress, answer: trunk_dns::Answer) {
        for waiter in self.shared.trunks.resolved(now.instant, address, answer) {
            match waiter {
                Waiter::Call(id) => self.control.hunts.queue(id),
                Waiter::Trunk(id) => {
                    let (registrations, mut context) = self.registering();
                    registrations.resolved(now, id, &mut context);
                }
            }
        }
    }

    fn noting(&mut self, now: Now) -> (&mut NotesInFlight, NoteContext<'_>) {
        let context = NoteContext {
            now,
            ua: &mut self.shared.ua,
            registrar: &self.shared.registrar,
            directory: &self.shared.directory,
            calls: &self.control.calls,
            outputs: &mut self.shared.outputs,
        };
        (&mut self.notes, context)
    }

    fn registering(&mut self) -> (&mut Registrations, RegisterContext<'_>) {
        let context = RegisterContext {
            ua: &mut self.shared.ua,
            trunks: &mut self.shared.trunks,
            ids: &mut self.shared.ids,
            outputs: &mut self.shared.outputs,
        };
        (&mut self.registrations, context)
    }
}
