//! Notes on their way to phones: INFO inside the dialogs of a call, MESSAGE to the devices of an extension.
//!
//! The result of a note never affects the call: whatever the phone answers, or if it does not answer, the
//! call continues.
//!
//! A leg's phone gets one note at a time, and the next one after it answered. Two notes at once could arrive
//! in reverse order, which RFC 3261 §12.2.2 makes a phone refuse with 500.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use bytes::Bytes;
use sidetone_model::ids::{CallId, ExtensionId, LegId, NoteId};
use sidetone_model::live_call::CallState;
use sidetone_model::note::{CallPhones, Destination, Dispatch, Phone, PhoneAnswer};
use sidetone_sip::flow::Flow;
use sidetone_sip::message::Name;
use sidetone_sip::transaction::{ClientKey, SendError, ServerKey};
use sidetone_sip::ua::{Content, Draft, Receipt};

use crate::control::{PhoneLeg, Question};
use crate::machine::{Now, Output, Switch};
use crate::messaging::EVENTS_USER;

/// Notes that were sent and have no answer yet.
#[derive(Default)]
pub(super) struct NotesInFlight {
    sent: HashMap<ClientKey, Flight>,
    /// Notes that wait until the leg's phone has answered the present one.
    lines: HashMap<LegId, VecDeque<Waiting>>,
}

/// A note that was sent to a phone.
struct Flight {
    note: NoteId,
    /// The index of the phone among the note's targets.
    place: usize,
    /// The leg, if it was sent inside a dialog.
    leg: Option<(CallId, LegId)>,
}

/// A waiting note for the phone of a leg.
struct Waiting {
    note: NoteId,
    place: usize,
    payload: Bytes,
}

/// The phones on a call.
#[derive(Debug)]
pub struct PhonesOnCall(pub CallId);

impl Question for PhonesOnCall {
    type Answer = Option<CallPhones>;

    fn put(self, _now: Now, switch: &mut Switch) -> Option<CallPhones> {
        switch.phones_on(self.0)
    }
}

/// The devices of an extension.
#[derive(Debug)]
pub struct DevicesOf(pub ExtensionId);

impl Question for DevicesOf {
    type Answer = Vec<String>;

    fn put(self, now: Now, switch: &mut Switch) -> Vec<String> {
        switch.devices_of(now, self.0)
    }
}

/// Notes to be sent.
#[derive(Debug)]
pub struct SendNotes(pub Vec<Dispatch>);

impl Question for SendNotes {
    type Answer = ();

    fn put(self, now: Now, switch: &mut Switch) {
        for dispatch in self.0 {
            switch.send_note(now, dispatch);
        }
    }
}

/// The answer to what a phone said.
#[derive(Debug)]
pub struct AnswerSaid(pub ServerKey, pub u16);

impl Question for AnswerSaid {
    type Answer = ();

    fn put(self, now: Now, switch: &mut Switch) {
        switch.answer_said(now, &self.0, self.1);
    }
}

impl Switch {
    /// Returns the phones on a live call; `None` when the call is not live.
    pub fn phones_on(&self, call: CallId) -> Option<CallPhones> {
        let live = self.calls.get(&call)?;
        let (facts, state) = (live.call.facts(), live.state()?);
        let legs = self.phone_legs(call)?.into_iter().filter(|leg| leg.state == CallState::Answered);
        Some(CallPhones {
            organisation: facts.organisation,
            team: facts.team,
            is_answered: state == CallState::Answered,
            phones: legs
                .map(|leg| Phone {
                    leg: leg.id,
                    name: Some(leg.name).filter(|name| !name.is_empty()).or(leg.number).unwrap_or_default(),
                })
                .collect(),
        })
    }

    /// Returns the contacts registered for an extension.
    pub fn devices_of(&self, now: Now, extension: ExtensionId) -> Vec<String> {
        let aor = self.directory.extension(extension).and_then(|found| self.directory.aor(found));
        let bindings = aor.map(|aor| self.registrar.lookup(&aor, now.instant)).unwrap_or_default();
        bindings.iter().map(|binding| binding.contact.to_string()).collect()
    }

    /// Sends a note to its phones; an [`Output::NoteAnswered`] reports the result of each.
    pub fn send_note(&mut self, now: Now, dispatch: Dispatch) {
        let Dispatch { note, to, payload } = dispatch;
        match to {
            Destination::Call(call, legs) => {
                for (place, leg) in legs.into_iter().enumerate() {
                    self.inform(now, (call, leg), Waiting { note, place, payload: payload.clone() });
                }
            }
            Destination::Calls(legs) => {
                for (place, leg) in legs.into_iter().enumerate() {
                    self.inform(now, leg, Waiting { note, place, payload: payload.clone() });
                }
            }
            Destination::Extension(extension, devices) => {
                self.message_devices(now, note, extension, &devices, payload);
            }
        }
    }

    /// Sends a note to the phone of a leg, or queues it until the phone has answered the notes before it.
    fn inform(&mut self, now: Now, leg: (CallId, LegId), waiting: Waiting) {
        match self.notes.lines.get_mut(&leg.1) {
            Some(line) if line.len() < LINE_LEN_MAX => line.push_back(waiting),
            Some(_) => self.push(Output::NoteAnswered(waiting.note, waiting.place, PhoneAnswer::Overload)),
            None => {
                if self.inform_now(now, leg, waiting) {
                    self.notes.lines.insert(leg.1, VecDeque::new());
                }
            }
        }
    }

    /// Sends a note to the phone of a leg; returns whether it was sent.
    fn inform_now(&mut self, now: Now, leg: (CallId, LegId), waiting: Waiting) -> bool {
        let phones = self.phone_legs(leg.0).unwrap_or_default();
        let phone = phones.iter().find(|phone| phone.id == leg.1 && phone.state == CallState::Answered);
        let sent = match phone.map(|phone| (phone.key, self.connection_of(now, phone))) {
            Some((key, wide)) => self.ua.info_by(now.instant, key, Content::new(JSON, waiting.payload), wide),
            None => Err(SendError::WrongState),
        };
        self.note_sent(waiting.note, waiting.place, Some(leg), sent)
    }

    /// Sends the next waiting note after the phone of a leg answered. If the phone did not answer, all
    /// waiting notes fail.
    fn inform_next(&mut self, now: Now, leg: (CallId, LegId), is_silent: bool) {
        while let Some(waiting) = self.notes.lines.get_mut(&leg.1).and_then(VecDeque::pop_front) {
            if is_silent {
                self.push(Output::NoteAnswered(waiting.note, waiting.place, PhoneAnswer::Silence));
            } else if self.inform_now(now, leg, waiting) {
                return;
            }
        }
        self.notes.lines.remove(&leg.1);
    }

    /// Returns a stream connection to the phone of a leg, for a note that is too long for a datagram.
    fn connection_of(&self, now: Now, phone: &PhoneLeg) -> Option<Flow> {
        let (contact, flow) = self.ua.peer(phone.key)?;
        let aor = self.directory.aor(self.directory.extension(phone.extension)?)?;
        self.registrar.connection_of(&aor, now.instant, contact, &flow)
    }

    fn message_devices(
        &mut self,
        now: Now,
        note: NoteId,
        extension: ExtensionId,
        devices: &[String],
        payload: Bytes,
    ) {
        let directory = Arc::clone(&self.directory);
        let aor = directory.extension(extension).and_then(|found| directory.aor(found)).unwrap_or_default();
        let domain = aor.split_once('@').map_or("", |(_, domain)| domain);
        let (from, to) = (format!("<sip:{EVENTS_USER}@{domain}>"), format!("<sip:{aor}>"));
        let bindings = self.registrar.lookup(&aor, now.instant);
        for (place, device) in devices.iter().enumerate() {
            let sent = match bindings.iter().find(|binding| binding.contact.to_string() == *device) {
                Some(binding) => {
                    let content = Content::new(JSON, payload.clone());
                    let mut draft = Draft::message(device.as_str(), from.as_str(), to.as_str(), content);
                    for route in &binding.path {
                        draft = draft.header(Name::Route.as_str(), route.to_string());
                    }
                    let (way, contact) = (binding.way(), &binding.contact);
                    draft =
                        draft.wide(self.registrar.connection_of(&aor, now.instant, contact, &binding.flow));
                    self.ua.request(now.instant, way, draft)
                }
                None => Err(SendError::WrongState),
            };
            self.note_sent(note, place, None, sent);
        }
    }

    /// Records a sent note, or outputs why it was not sent; returns whether it was sent.
    fn note_sent(
        &mut self,
        note: NoteId,
        place: usize,
        leg: Option<(CallId, LegId)>,
        sent: Result<ClientKey, SendError>,
    ) -> bool {
        let answer = match sent {
            Ok(key) => {
                self.notes.sent.insert(key, Flight { note, place, leg });
                return true;
            }
            Err(SendError::WrongState) => PhoneAnswer::Gone,
            Err(SendError::Overload) => PhoneAnswer::Overload,
            Err(_) => PhoneAnswer::Unreachable,
        };
        self.push(Output::NoteAnswered(note, place, answer));
        false
    }

    /// Handles the result of our INFO or MESSAGE.
    pub(super) fn note_answered(&mut self, now: Now, key: ClientKey, receipt: &Receipt) {
        let Some(Flight { note, place, leg }) = self.notes.sent.remove(&key) else { return };
        let answer = match (receipt, receipt.status()) {
            (_, Some(status)) => PhoneAnswer::Status(status.as_u16()),
            (Receipt::Unreachable, _) => PhoneAnswer::Unreachable,
            (Receipt::Answered { .. } | Receipt::TimedOut, None) => PhoneAnswer::Silence,
        };
        self.push(Output::NoteAnswered(note, place, answer));
        if let Some(leg) = leg {
            self.inform_next(now, leg, answer == PhoneAnswer::Silence);
        }
    }
}

const JSON: &str = "application/json";
/// Notes that may wait for the phone of one leg: enough for a large room in which all members join at once.
const LINE_LEN_MAX: usize = 256;
