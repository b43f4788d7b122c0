//! Live calls: feeds them inputs and carries out their outputs.

use sidetone_call::media_plan;
use sidetone_model::cdr::Cdr;
use sidetone_model::directory::StrictSource;
use sidetone_model::ids::CallId;
use sidetone_model::live_call::{self, CallNews};
use sidetone_sip::message::StatusCode;

use crate::events::status_code;
use crate::face::{self, MediaCommand, Party, PortId};
use crate::live::LiveCall;
use crate::machine::{Now, Output, Switch};
use crate::outbound::Hunt;

impl Switch {
    /// Adds a new call to the live ones and carries out its first outputs.
    pub(super) fn adopt(&mut self, now: Now, id: CallId, live: LiveCall) {
        for port in live.call.ports() {
            self.ports.insert(port, id);
        }
        if let Some(caller) = &live.caller {
            self.legs.insert(caller.key, (id, Party::Caller));
        }
        if let Some(hunt) = &live.hunt {
            *self.outbound.entry(hunt.organisation).or_default() += 1;
            self.hunts.push_back(id);
        }
        self.calls.insert(id, live);
        self.carry_out(now, id);
    }

    /// Feeds an input to a call and carries out its outputs.
    pub(super) fn tell_call(&mut self, now: Now, id: CallId, input: face::Input) {
        if let Some(live) = self.calls.get_mut(&id) {
            live.call.handle_input(now.instant, input);
            self.carry_out(now, id);
        }
    }

    pub(super) fn carry_out(&mut self, now: Now, id: CallId) {
        while let Some(output) = self.calls.get_mut(&id).and_then(|live| live.call.poll_output()) {
            self.carry_out_one(now, id, output);
        }
        if self.calls.get(&id).is_some_and(|live| live.call.has_ended()) {
            self.stop_meter(now, id);
        }
        let Some(live) = self.calls.get_mut(&id) else { return };
        let hunt = live.hunt.as_ref().filter(|_| live.call.is_ringing()).and_then(Hunt::due);
        let due = live.call.next_timeout().into_iter().chain(hunt).min();
        if let Some(before) = std::mem::replace(&mut live.due, due) {
            self.timers.remove(&(before, id));
        }
        if let Some(due) = due {
            self.timers.insert((due, id));
        }
        if live.call.is_over() {
            self.forget(now, id);
        }
    }

    fn forget(&mut self, now: Now, id: CallId) {
        let Some(live) = self.calls.remove(&id) else { return };
        self.free_extensions(now, &live);
        let Some(organisation) = live.hunt.map(|hunt| hunt.organisation) else { return };
        if let Some(up) = self.outbound.get_mut(&organisation) {
            *up -= 1;
            if *up == 0 {
                self.outbound.remove(&organisation);
            }
        }
    }

    fn carry_out_one(&mut self, now: Now, id: CallId, output: face::Output) {
        match output {
            face::Output::Answer(description) => {
                self.meter(now, id);
                if let Some(description) = description {
                    self.answer(now, id, StatusCode::OK, Some(&description));
                }
                self.tell_news(id, CallNews::Answered);
            }
            face::Output::Bye(party) => self.hang_up(now, id, party),
            face::Output::Cancel(fork) => self.hang_up(now, id, Party::Callee(fork)),
            face::Output::Ended(mut record) => {
                self.name_parties(id, &mut record);
                self.give_record(now, record);
            }
            face::Output::Held(party, holds) => self.seat_held(now, id, party, holds),
            face::Output::Invite(fork, offer) => self.invite(now, id, fork, &offer),
            face::Output::Journal(record) => self.push(Output::Answered(id, record)),
            face::Output::Left(party) => self.seat_left(now, id, party),
            face::Output::Media(port, mut command) => {
                if let MediaCommand::Describe(description) = &mut command {
                    description.strict_source = self.strict_source(id, port).map(media_plan::strict_source);
                }
                self.push(Output::Media(port, command));
            }
            face::Output::NextAttempt(status) => self.next_attempt(id, status),
            face::Output::Offer(party, offer) => self.offer(now, id, party, &offer),
            face::Output::OfferResult(party, result) => self.offer_result(now, id, party, result),
            face::Output::Probe(party) => self.probe(now, id, party),
            face::Output::Reject(status) => {
                self.answer(now, id, status_code(status), None);
                self.dial_failed(now, id, status);
            }
            face::Output::Ring(status, description) => {
                self.answer(now, id, status_code(status), description.as_ref());
                if let Some(live) = self.calls.get_mut(&id)
                    && live.ringing_at.is_none()
                {
                    live.ringing_at = Some(now.wall);
                    self.tell_news(id, CallNews::Ringing);
                    self.dial_rings(now, id);
                }
            }
            face::Output::Seat(party) => self.seat(now, id, party),
        }
    }

    /// Returns the strict source check for the leg of a port, if its extension or trunk sets one.
    fn strict_source(&self, id: CallId, port: PortId) -> Option<StrictSource> {
        let live = self.calls.get(&id)?;
        let identity = live.identity_of(live.call.party_at(port)?)?;
        match identity.extension {
            Some(extension) => self.directory.extension(extension)?.strict_source,
            None => self.directory.trunk(live.call.facts().trunk?)?.strict_source,
        }
    }

    /// Adds the numbers of the far ends to the media legs of a record.
    fn name_parties(&self, id: CallId, record: &mut Cdr) {
        let (Some(live), Some(media)) = (self.calls.get(&id), &mut record.media) else { return };
        for leg in &mut media.legs {
            leg.party = live.number_of(leg.leg);
        }
    }

    fn tell_news(&mut self, id: CallId, news: fn(live_call::LiveCall) -> CallNews) {
        if let Some(call) = self.find_call(id) {
            self.push(Output::News(Box::new(news(call).into())));
        }
    }
}
