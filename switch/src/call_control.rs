//! Live calls and the parts that carry out their outputs: legs, hunts for trunks, billing and conferences.

use sidetone_call::media_plan;
use sidetone_call::record::{Outcome, build};
use sidetone_model::call::{EndedBy, HangupCause};
use sidetone_model::call_request::{
    CallOrder, CancelRefused, PlaceRefused, Placeable, RequestChange, RequestState, RequestedCall,
};
use sidetone_model::cdr::Cdr;
use sidetone_model::forwarding::ForwardReason;
use sidetone_model::ids::{CallId, ExtensionId, NodeId, RoomId};
use sidetone_model::live_call::{self, CallEvent};
use sidetone_model::room::{ControlRefused, LiveRoom, MergeRefused, RoomDialled};
use sidetone_model::time::Now;
use sidetone_sip::flow::{Flow, Protocol};
use sidetone_sip::message::StatusCode;
use sidetone_sip::registrar::BindingId;
use sidetone_sip::sdp::SessionDescription;
use sidetone_sip::transaction::ServerKey;
use sidetone_sip::ua::Reply;

use crate::authentication::Sender;
use crate::billing::{Billing, Unpaid};
use crate::call_queries;
use crate::call_table::CallTable;
use crate::call_to_sip::{CallToSip, RETRY_AFTER_S};
use crate::conference::{self, Dial, DialEnd, Goal};
use crate::conference_adapter::{Conferences, RoomEffect};
use crate::conference_commands;
use crate::dialling::Dialler;
use crate::dialog_credentials::RecentByes;
use crate::diverting;
use crate::hunt::HuntContext;
use crate::io::{self, Limits, MediaCommand, Party, Port, PortId};
use crate::live::{LiveCall, NewCall, prompt_ended};
use crate::merging;
use crate::message_parts::status_code;
use crate::outbound::{self, Hunts};
use crate::outbound_slots::OutboundSlots;
use crate::placement::{Dialled, Onward, PlacementContext, Refused};
use crate::port_requests;
use crate::queries::{DialIntoRoom, Merge};
use crate::rating::credit;
use crate::reason;
use crate::redirected;
use crate::requested::{self, Continued, Requester};
use crate::room_places::Joined;
use crate::shared::Shared;
use crate::star_codes::StarCodes;
use crate::switch_io::{Notice, Output};
use crate::transfers::Transfers;

/// The live calls, and the state that belongs to them.
pub(super) struct CallControl {
    pub(super) node: NodeId,
    /// The time limits of calls that begin from now on.
    pub(super) limits: Limits,
    pub(super) calls_max: usize,
    pub(super) accepts: bool,
    pub(super) calls: CallTable,
    pub(super) hunts: Hunts,
    /// `None` for a single node, which keeps the limits of outbound calls without asking another node.
    pub(super) slots: Option<OutboundSlots>,
    pub(super) recent_byes: RecentByes,
    pub(super) billing: Billing,
    pub(super) conferences: Conferences,
    pub(super) transfers: Transfers,
    pub(super) star_codes: StarCodes,
}

impl CallControl {
    /// Whether a new call is accepted now.
    pub(super) fn has_capacity(&self) -> bool {
        self.accepts && self.calls.len() < self.calls_max
    }

    pub(super) fn refuse(&mut self, now: Now, key: &ServerKey, refused: Refused, shared: &mut Shared) {
        let mut reply = Reply::new(refused.status);
        if let Some(why) = refused.why {
            reply = reply.reason(why);
        }
        if refused.status == StatusCode::SERVICE_UNAVAILABLE {
            reply = reply.header("Retry-After", RETRY_AFTER_S);
        }
        if let Some(reason) = refused.facts.as_ref().and_then(|_| reason::header(refused.cause)) {
            reply = reply.header("Reason", reason);
        }
        shared.respond(now, key, reply);
        if let Some(facts) = refused.facts {
            let by = match refused.cause {
                HangupCause::OriginatorCancel => EndedBy::Caller,
                _ => EndedBy::System,
            };
            let outcome = Outcome {
                ended_after_us: Some(0),
                hangup_cause: Some(refused.cause),
                ended_by: Some(by),
                ..Outcome::default()
            };
            let mut record = Box::new(build(&facts, outcome));
            self.billing.settle(now, &mut record);
            shared.outputs.push_back(Output::Ended(record));
        }
    }

    /// Places a call for a room.
    fn dial(&mut self, now: Now, dial: &Dial, shared: &mut Shared) {
        let limits = self.limits;
        let placed = match self.has_capacity() {
            true => Dialler(self.placing(shared)).place(now, dial, limits),
            false => Err(DialEnd::Status(503)),
        };
        match placed {
            Ok(new) => {
                self.conferences.placed(dial.id, new.setup.facts.call);
                self.begin(now, new, shared);
            }
            Err(end) => {
                let failed = conference::Input::DialFailed { dial: dial.id, end };
                self.conferences.handle_input(now, failed);
            }
        }
    }

    /// Adds a new call to the live ones and carries out its first outputs.
    pub(super) fn begin(&mut self, now: Now, new: NewCall, shared: &mut Shared) {
        let id = new.setup.facts.call;
        self.calls.insert(id, LiveCall::new(now.instant, new));
        self.carry_out(now, id, shared);
    }

    /// Refuses a call that could not begin: answers its INVITE, or reports to the room that requested it.
    fn not_begun(&mut self, now: Now, id: CallId, status: u16, shared: &mut Shared) {
        let Some(live) = self.calls.get(id) else { return };
        if let Some(Goal::Dialled { dial }) = live.goal {
            self.conferences.not_placed(dial);
            self.billing.forget(now, id);
            let end = DialEnd::Status(status);
            return self.conferences.handle_input(now, conference::Input::DialFailed { dial, end });
        }
        if live.request.is_some() {
            return self.request_not_begun(now, id, status, shared);
        }
        self.transfers.failed(id, status);
        // A call placed by a transfer has no INVITE to answer, unless a phone placed it to take over a party.
        let Some(key) = live.caller.as_ref().and_then(|caller| caller.invite) else {
            return self.billing.forget(now, id);
        };
        let cause = match status {
            503 => HangupCause::SwitchCongestion,
            other => HangupCause::from_sip_status(other),
        };
        let refused = Refused::of_call(status_code(status), cause, live.call.facts().clone());
        let why = live.call.parties().lacks_srtp.then_some("SRTP Required");
        let refused = Refused { why, ..refused };
        self.refuse(now, &key, refused, shared);
    }

    /// Reports that the keys of a port's party were in SDP over an unencrypted transport.
    fn note_readable_keys(&self, id: CallId, port: PortId, shared: &mut Shared) {
        let live = self.calls.get(id);
        let leg = live.and_then(|live| live.key_of(live.call.parties().party_with(port)?));
        let flow = leg.and_then(|leg| shared.ua.peer(leg)).map(|(_, flow)| flow);
        if let Some(flow) = flow.filter(|flow| !flow.protocol.is_secure()) {
            shared.notice(Notice::ReadableKeys(flow.remote.ip()));
        }
    }

    /// Handles an opened port.
    pub(super) fn port_opened(&mut self, now: Now, id: CallId, port: Option<Port>, shared: &mut Shared) {
        if self.calls.get(id).is_none() {
            let ids = port.iter().flat_map(Port::ids);
            return shared.outputs.extend(ids.map(|id| Output::Media(id, MediaCommand::Close)));
        }
        port.iter().flat_map(Port::ids).for_each(|port| self.calls.add_port(port, id));
        self.feed(now, id, io::Input::PortOpened(port), shared);
    }

    /// Moves the calls of a phone to its new flow.
    pub(super) fn moved(&mut self, binding: BindingId, flow: Flow, shared: &mut Shared) {
        for leg in self.calls.legs_of(binding) {
            shared.ua.move_to(leg, flow);
            if let Some((id, party)) = self.calls.party_of(leg)
                && let Some(live) = self.calls.get_mut(id)
            {
                live.call.heard_from(party, flow.remote.ip());
            }
        }
    }

    /// Ends forks of a binding that another node no longer has: those without any response; if the node is lost, all
    /// ringing forks, because no answer can arrive.
    pub(super) fn lose(&mut self, now: Now, binding: BindingId, is_node_lost: bool, shared: &mut Shared) {
        for leg in self.calls.legs_of(binding) {
            let Some((id, Party::Callee(fork))) = self.calls.party_of(leg) else { continue };
            let is_ringing = self.calls.get(id).is_some_and(|live| live.call.is_ringing());
            if is_ringing && (is_node_lost || !shared.ua.is_heard(leg)) {
                self.calls.remove_leg(leg);
                shared.ua.hang_up(now.instant, leg);
                self.feed(now, id, io::Input::Unreached(fork, UNAVAILABLE), shared);
            }
        }
    }

    /// Reopens the TLS connections of trunks that closed during calls. That needs the names of their servers, which the
    /// user agent does not have. It reopens TCP connections by itself.
    pub(super) fn reopen(&mut self, closed: &Flow, shared: &mut Shared) {
        if closed.protocol != Protocol::Tls {
            return;
        }
        for leg in shared.ua.legs_on(closed) {
            let Some((id, Party::Caller)) = self.calls.party_of(leg) else { continue };
            let trunk = self.calls.get(id).map(|live| live.call.facts()).and_then(|facts| facts.trunk);
            let trunk = trunk.and_then(|trunk| shared.directory.trunk(trunk));
            let contact = shared.ua.peer(leg).map(|(contact, _)| contact);
            if let (Some(trunk), Some(contact)) = (trunk, contact)
                && let Some(way) = shared.trunks.way_back(trunk, contact, closed)
            {
                shared.ua.move_to(leg, way);
            }
        }
    }

    /// Takes the next step of a call's hunt.
    fn hunt(&mut self, now: Now, id: CallId, shared: &mut Shared) {
        if self.billing.is_reserving(id) {
            return;
        }
        let calls = &self.calls;
        if self.slots.as_mut().is_some_and(|slots| slots.waits(now.instant, id, calls, &shared.directory)) {
            return;
        }
        let context = HuntContext {
            trunks: &mut shared.trunks,
            directory: &shared.directory,
            ids: &mut shared.ids,
            outputs: &mut shared.outputs,
        };
        match outbound::step(now, id, &mut self.calls, &self.billing, context) {
            Some(Some(input)) => self.feed(now, id, input, shared),
            Some(None) => self.carry_out(now, id, shared),
            None => {}
        }
    }

    /// Feeds an input to a call and carries out its outputs.
    pub(super) fn feed(&mut self, now: Now, id: CallId, input: io::Input, shared: &mut Shared) {
        if self.calls.feed(now.instant, id, input) {
            self.carry_out(now, id, shared);
        }
    }

    /// Carries out the outputs of a call until it has none.
    fn carry_out(&mut self, now: Now, id: CallId, shared: &mut Shared) {
        self.touch(id, shared);
        while let Some(output) = self.calls.poll_output(id) {
            if let Some(input) = self.carry_out_one(now, id, output, shared) {
                self.calls.feed(now.instant, id, input);
            }
        }
        if self.calls.get(id).is_some_and(|live| live.call.has_ended() && !live.call.is_refused()) {
            self.billing.over(now, id);
            self.transfers.over(id);
            self.star_codes.over(id);
        }
        let Some(live) = self.calls.schedule(id) else { return };
        if let (Some(slots), Some(hunt)) = (&mut self.slots, &live.hunt) {
            slots.over(hunt.organisation, id);
        }
        if !live.call.is_refused() {
            self.conferences.call_over(now, &live);
        }
    }

    /// Notes that the state of the extensions in a call may have changed.
    fn touch(&self, id: CallId, shared: &mut Shared) {
        if shared.subscriptions.is_empty() {
            return;
        }
        if let Some(live) = self.calls.get(id) {
            live.extensions().for_each(|extension| shared.subscriptions.touch(extension));
        }
    }

    /// Carries out an output of a call; returns the input with its result, if there is one.
    fn carry_out_one(
        &mut self,
        now: Now,
        id: CallId,
        output: io::Output,
        shared: &mut Shared,
    ) -> Option<io::Input> {
        match output {
            io::Output::Answer(description) => {
                self.billing.answered(now, id);
                if let Some(description) = description {
                    self.legs(now, shared).answer(id, StatusCode::OK, Some(&description));
                }
                self.event(id, CallEvent::Answered, shared);
                self.request_changed(now, id, RequestState::Answered, shared);
                self.transfers.answered(id, &self.calls);
            }
            io::Output::AskHeard(fork) => return self.legs(now, shared).ask_heard(id, fork),
            io::Output::CallerAnswered(place) => return self.caller_answered(now, id, place, shared),
            io::Output::Bye(party, cause) => self.legs(now, shared).hang_up(id, party, cause),
            io::Output::Cancel(fork, cause) => self.legs(now, shared).cancel(id, fork, cause),
            io::Output::CancelOffer(party) => self.legs(now, shared).cancel_offer(id, party),
            io::Output::Ended(record) => self.ended(now, id, record, shared),
            io::Output::FirstAttempt => self.hunts.queue(id),
            io::Output::Invite(fork, offer) => return self.legs(now, shared).invite(id, fork, &offer),
            io::Output::Journal(mut record) => {
                requested::refer_to(self.calls.get(id), &mut record);
                shared.outputs.push_back(Output::Answered(id, record));
            }
            io::Output::Media(port, mut command) => {
                if let MediaCommand::Describe(description) = &mut command {
                    let strict =
                        self.calls.get(id).and_then(|live| live.strict_source(port, &shared.directory));
                    description.strict_source = strict.map(media_plan::strict_source);
                }
                if command.has_readable_keys() {
                    self.note_readable_keys(id, port, shared);
                }
                shared.outputs.push_back(Output::Media(port, command));
            }
            io::Output::NextAttempt(status) => self.hunts.failed(id, status, &mut self.calls),
            io::Output::Offer(party, offer) => return self.legs(now, shared).offer(id, party, &offer),
            io::Output::OfferResult(party, result) => self.legs(now, shared).offer_result(id, party, result),
            io::Output::OpenPort { fork, towards, video } => {
                return port_requests::request(id, (fork, towards, video), &self.calls, shared);
            }
            io::Output::Probe(party) => return self.legs(now, shared).probe(id, party),
            io::Output::Reached(party) => self.transfers.reached(id, party),
            io::Output::Redirected(reason) => {
                return Some(self.diverted(now, id, reason, shared).unwrap_or(io::Input::NotDiverted));
            }
            io::Output::Refused(status) => self.not_begun(now, id, status, shared),
            io::Output::Reject(status, cause) => {
                self.legs(now, shared).reject(id, status, cause);
                self.transfers.failed(id, status);
                if let Some(live) = self.calls.get(id) {
                    self.conferences.not_answered(now, live, status, cause);
                }
            }
            io::Output::Ring(status, description) => {
                self.transfers.rings(id, status);
                self.ring(now, id, (status, description), shared);
            }
            output => self.report(now, id, output, shared),
        }
        None
    }

    /// Reports the progress of a call to the journal, the rooms and the transfers.
    fn report(&mut self, now: Now, id: CallId, output: io::Output, shared: &mut Shared) {
        match output {
            io::Output::Mix(mix, order) => shared.outputs.push_back(Output::Mix(mix, order)),
            io::Output::Held(party, holds) => {
                if let Some(leg) = self.calls.leg_id(id, party) {
                    self.conferences.handle_input(now, conference::Input::Held(leg, holds));
                }
            }
            io::Output::Left(party, cause) => {
                if let Some(leg) = self.calls.leg_id(id, party) {
                    self.conferences.left(now, leg, cause);
                }
            }
            io::Output::ParkExpired => self.transfers.park_expired(id),
            io::Output::PromptEnded(prompt, result) => {
                let ended = self.calls.get(id).map(|live| prompt_ended(now, live, prompt, result));
                shared.outputs.extend(ended.map(|ended| Output::News(Box::new(ended.into()))));
            }
            io::Output::Seat(party) => {
                if let Some(live) = self.calls.get(id) {
                    self.conferences.seat(now, live, party, &shared.directory);
                    self.star_codes.confirm(live, party, &mut shared.outputs);
                }
            }
            io::Output::Terms(party, peer) => self.transfers.terms((id, party), peer, &self.calls),
            io::Output::Unlinked(party, cause) => {
                self.transfers.unlinked((id, party), cause, &mut self.calls);
            }
            _ => {} // The caller passes only the outputs above.
        }
    }

    /// Places a call again that the called extension forwards; `None` if it is not forwarded.
    fn diverted(
        &mut self,
        now: Now,
        id: CallId,
        reason: ForwardReason,
        shared: &mut Shared,
    ) -> Option<io::Input> {
        let transferred = self.transfers.transferee_of(id);
        let transferred =
            transferred.and_then(|(call, party)| self.calls.get(call)?.identity_of(party).cloned());
        let live = self.calls.get_mut(id).filter(|live| !live.call.parties().rings_caller())?;
        let asked = live.asked?;
        let redirect = diverting::take_target(live, &shared.directory, reason)?;
        diverting::follow(live, &shared.directory, &redirect, reason)?;
        let shown = redirected::shown(live, transferred, &mut shared.ids);
        let dialled = Dialled {
            number: &redirect.target,
            call: Some(id),
            diverted: live.diverted.clone(),
            device: None,
        };
        let placed = self.placing(shared).place_forward(now, redirect.by, &shown, asked, dialled).ok()?;
        if let Onward::Room(goal) = &placed.onward
            && self.transfers.enter_room_of(id, goal, &mut self.calls)
        {
            return Some(io::Input::End(HangupCause::RedirectionToNewDestination));
        }
        redirected::redirect(&mut self.calls, id, placed)
    }

    /// Completes the record of a call and outputs it.
    fn ended(&mut self, now: Now, id: CallId, mut record: Box<Cdr>, shared: &mut Shared) {
        if let Some(live) = self.calls.get(id) {
            live.name_parties(&mut record);
            requested::complete(live, &mut record, &mut shared.outputs);
        }
        self.billing.settle(now, &mut record);
        shared.outputs.push_back(Output::Ended(record));
    }

    /// Sends a provisional response to the caller; reports the first one.
    fn ring(
        &mut self,
        now: Now,
        id: CallId,
        (status, description): (u16, Option<SessionDescription>),
        shared: &mut Shared,
    ) {
        if self.calls.get(id).is_some_and(|live| live.call.parties().rings_caller()) {
            return self.caller_rings(now, id, shared);
        }
        self.legs(now, shared).answer(id, status_code(status), description.as_ref());
        let Some(live) = self.calls.get_mut(id).filter(|live| live.ringing_at.is_none()) else { return };
        live.ringing_at = Some(now.wall);
        self.event(id, CallEvent::Ringing, shared);
        if let Some(live) = self.calls.get(id) {
            self.conferences.rings(now, live);
        }
    }

    /// Outputs an event of a live call.
    fn event(&self, id: CallId, event: fn(live_call::LiveCall) -> CallEvent, shared: &mut Shared) {
        let call = call_queries::find(&self.calls, id);
        shared.outputs.extend(call.map(|call| Output::News(Box::new(event(call).into()))));
    }

    /// Performs every check of a requested call.
    ///
    /// # Errors
    /// Why it would not be placed.
    pub(super) fn check(
        &mut self,
        now: Now,
        from: ExtensionId,
        requested: &RequestedCall,
        shared: &mut Shared,
    ) -> Result<Placeable, PlaceRefused> {
        let placeable = Requester(self.placing(shared)).check(now, from, requested)?;
        if self.has_capacity() { Ok(placeable) } else { Err(PlaceRefused::Busy) }
    }

    /// Places a requested call.
    ///
    /// # Errors
    /// Why it is not placed.
    pub(super) fn place(
        &mut self,
        now: Now,
        order: &CallOrder,
        shared: &mut Shared,
    ) -> Result<(), PlaceRefused> {
        if !self.has_capacity() || self.calls.get(order.call).is_some() {
            return Err(PlaceRefused::Busy);
        }
        let limits = self.limits;
        let new = Requester(self.placing(shared)).place(now, order, limits)?;
        self.begin(now, new, shared);
        Ok(())
    }

    /// Cancels a requested call.
    ///
    /// # Errors
    /// When it is over, or both sides have answered.
    pub(super) fn cancel(&mut self, now: Now, id: CallId, shared: &mut Shared) -> Result<(), CancelRefused> {
        let live = self.calls.get_mut(id).filter(|live| !live.call.has_ended()).ok_or(CancelRefused::Gone)?;
        let is_up = live.call.parties().is_up();
        let request = live.request.as_mut().ok_or(CancelRefused::Gone)?;
        if is_up {
            return Err(CancelRefused::Answered);
        }
        request.cancelled = true;
        self.feed(now, id, io::Input::Cancelled(HangupCause::OriginatorCancel), shared);
        Ok(())
    }

    /// Ends a live call; returns whether there was one.
    pub(super) fn end(&mut self, now: Now, id: CallId, shared: &mut Shared) -> bool {
        let is_live = self.calls.get(id).is_some_and(|live| !live.call.has_ended());
        self.feed(now, id, io::Input::End(HangupCause::NormalClearing), shared);
        is_live
    }

    /// Continues a requested call whose calling party answered at fork `place`.
    fn caller_answered(
        &mut self,
        now: Now,
        id: CallId,
        place: usize,
        shared: &mut Shared,
    ) -> Option<io::Input> {
        self.calls.promote(id, place);
        let live = self.calls.get_mut(id)?;
        let target = live.request.as_ref()?.target.clone();
        live.call.calls(target.called());
        let facts = live.call.facts().clone();
        let next = Requester(self.placing(shared)).go_on(now, &facts, target);
        self.request_changed(now, id, RequestState::Calling, shared);
        match next {
            Continued::Now { goal: Some(Goal::Room(room)), .. } if shared.rooms.there(room).is_some() => {
                self.ring_owner(id, room, shared)
            }
            Continued::Now { onward, goal } => {
                self.calls.get_mut(id)?.goal = goal;
                Some(io::Input::Onward(onward))
            }
            Continued::Placed(placed) => redirected::ring_target(&mut self.calls, id, *placed),
        }
    }

    /// Rings the node that owns a room, for the calling party of a requested call.
    fn ring_owner(&mut self, id: CallId, room: RoomId, shared: &mut Shared) -> Option<io::Input> {
        let Shared { rooms, ids, directory, .. } = shared;
        let live = self.calls.get_mut(id)?;
        let sender = Sender::Extension(live.call.facts().extension?);
        let dialled = directory.room(room)?.number.clone();
        let joined = Joined::new(room, sender, dialled);
        let shown = live.identity_of(Party::Caller)?.clone();
        let callee = rooms.callee(&joined, &shown, rooms.there(room)?, (ids, directory))?;
        let rung = redirected::ring(live, callee);
        rooms.join(id, joined);
        Some(rung)
    }

    /// Ends a requested call that could not ring its calling party or its target.
    fn request_not_begun(&mut self, now: Now, id: CallId, status: u16, shared: &mut Shared) {
        let cause = match status {
            503 => HangupCause::SwitchCongestion,
            other => HangupCause::from_sip_status(other),
        };
        self.legs(now, shared).hang_up(id, Party::Caller, cause);
        let Some(live) = self.calls.get(id) else { return };
        let ended = now.wall.since(live.call.facts().started_at);
        let outcome = Outcome {
            ended_after_us: Some(ended),
            hangup_cause: Some(cause),
            ended_by: Some(EndedBy::System),
            ..Outcome::default()
        };
        let mut record = Box::new(build(live.call.facts(), outcome));
        requested::complete(live, &mut record, &mut shared.outputs);
        self.billing.settle(now, &mut record);
        shared.outputs.push_back(Output::Ended(record));
    }

    /// Reports that the calling party of a requested call rings, once.
    fn caller_rings(&mut self, now: Now, id: CallId, shared: &mut Shared) {
        let request = self.calls.get_mut(id).and_then(|live| live.request.as_mut());
        if request.is_some_and(|request| !std::mem::replace(&mut request.rang, true)) {
            self.request_changed(now, id, RequestState::Ringing, shared);
        }
    }

    /// Reports a new state of a requested call.
    fn request_changed(&self, now: Now, id: CallId, state: RequestState, shared: &mut Shared) {
        if self.calls.get(id).is_some_and(|live| live.request.is_some()) {
            let change = RequestChange { call: id, state, reason: None, at: now.wall };
            shared.outputs.push_back(Output::News(Box::new(change.into())));
        }
    }

    /// Ends every call.
    pub(super) fn end_all(&mut self, now: Now, cause: HangupCause, shared: &mut Shared) {
        for id in self.calls.ids() {
            self.feed(now, id, io::Input::End(cause), shared);
        }
    }

    /// Dials a target for a room.
    pub(super) fn dial_into(
        &mut self,
        now: Now,
        query: DialIntoRoom,
        shared: &mut Shared,
    ) -> Result<RoomDialled, ControlRefused> {
        let DialIntoRoom(room, request) = query;
        let organisation = shared.directory.room(room).ok_or(ControlRefused::NoRoom)?.organisation_id;
        if !self.has_capacity() {
            return Err(ControlRefused::Busy);
        }
        Dialler(self.placing(shared)).may_dial(now, organisation, &request)?;
        conference_commands::dial(&mut self.conferences, now, room, request)
    }

    /// Puts the parties of two calls into one room.
    pub(super) fn merge(
        &mut self,
        now: Now,
        merge: Merge,
        shared: &mut Shared,
    ) -> Result<LiveRoom, MergeRefused> {
        let plan = merging::plan(&self.calls, merge)?;
        if !self.conferences.takes_another_room() {
            return Err(MergeRefused::Full);
        }
        for part in plan.parts {
            if let Some(live) = self.calls.get_mut(part.call) {
                live.goal = Some(plan.goal.clone());
            }
            self.feed(now, part.call, io::Input::Merge(part.without), shared);
        }
        conference_commands::find(&self.conferences, now, plan.room).ok_or(MergeRefused::Full)
    }

    fn legs<'a>(&'a mut self, now: Now, shared: &'a mut Shared) -> CallToSip<'a> {
        CallToSip { now, ua: &mut shared.ua, calls: &mut self.calls, recent_byes: &mut self.recent_byes }
    }

    /// Returns the parts that decide where a call goes.
    pub(super) fn placing<'a>(&'a mut self, shared: &'a mut Shared) -> PlacementContext<'a> {
        PlacementContext {
            node: self.node,
            directory: &shared.directory,
            registrar: &shared.registrar,
            gruus: &shared.gruus,
            calls: &self.calls,
            conferences: &mut self.conferences,
            billing: &mut self.billing,
            ids: &mut shared.ids,
        }
    }

    /// Handles the timeouts of calls and of their credit.
    pub(super) fn timeout(&mut self, now: Now, shared: &mut Shared) {
        while let Some(id) = self.calls.pop_due(now.instant) {
            let (ua, trunks) = (&mut shared.ua, &mut shared.trunks);
            if let Some(input) = self.hunts.timeout(now, id, &mut self.calls, ua, trunks) {
                self.feed(now, id, input, shared);
            }
            self.feed(now, id, io::Input::Timeout, shared);
        }
        self.billing.timeout(now);
    }

    /// Carries out one output of the rooms, or one step of a hunt; returns whether there was one.
    pub(super) fn step(&mut self, now: Now, shared: &mut Shared) -> bool {
        if let Some(output) = self.conferences.poll_output() {
            match self.conferences.carry_out(now.instant, output, &self.calls, &mut shared.outputs) {
                Some(RoomEffect::Call(id, input)) => self.feed(now, id, input, shared),
                Some(RoomEffect::Dial(dial)) => self.dial(now, &dial, shared),
                None => {}
            }
        } else if let Some(id) = self.hunts.poll() {
            self.hunt(now, id, shared);
        } else {
            return false;
        }
        true
    }

    /// Warns or ends one call without credit, or continues one that waited for credit; returns whether there was one.
    pub(super) fn charge(&mut self, now: Now, shared: &mut Shared) -> bool {
        match self.billing.poll_output() {
            Some(credit::Output::End(id)) => {
                self.feed(now, id, io::Input::End(HangupCause::AllottedTimeout), shared);
            }
            Some(credit::Output::GoOn(id)) => self.hunts.queue(id),
            Some(credit::Output::Refuse(id)) => {
                let unpaid = Unpaid::NoCredit;
                let input = io::Input::Exhausted(unpaid.status().as_u16(), unpaid.cause());
                self.feed(now, id, input, shared);
            }
            Some(credit::Output::Warn(id)) => self.feed(now, id, io::Input::Warn, shared),
            None => return false,
        }
        true
    }
}

/// 480, for a phone that cannot be reached any more.
const UNAVAILABLE: u16 = 480;
