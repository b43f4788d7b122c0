//! Notes on their way to phones: INFO inside the dialogs of a call, MESSAGE to the devices of an extension.
//!
//! What becomes of a note concerns the note alone: whatever a phone answers to it, or not, the call goes on.

use std::collections::HashMap;
use std::sync::Arc;

use bytes::Bytes;
use sidetone_model::ids::{CallId, ExtensionId, LegId, NoteId};
use sidetone_model::live_call::CallState;
use sidetone_model::ports::PortFuture;
use sidetone_sip::flow::Flow;
use sidetone_sip::message::Name;
use sidetone_sip::transaction::{ClientKey, SendError, ServerKey};
use sidetone_sip::ua::{Content, Draft, Receipt};

use crate::notes::{CallPhones, Destination, Dispatch, Phone, PhoneAnswer, Phones};
use crate::switch::control::{PhoneLeg, Question};
use crate::switch::driver::Handle;
use crate::switch::machine::{Now, Output, Switch};
use crate::switch::messaging::EVENTS_USER;

/// The notes that wait for the answer of a phone, each with the phone's place.
#[derive(Default)]
pub(super) struct NotesInFlight(HashMap<ClientKey, (NoteId, usize)>);

/// The phones on a call.
struct OnCall(CallId);

impl Question for OnCall {
    type Answer = Option<CallPhones>;

    fn put(self, _now: Now, switch: &mut Switch) -> Option<CallPhones> {
        switch.phones_on(self.0)
    }
}

/// The devices of an extension.
struct DevicesOf(ExtensionId);

impl Question for DevicesOf {
    type Answer = Vec<String>;

    fn put(self, now: Now, switch: &mut Switch) -> Vec<String> {
        switch.devices_of(now, self.0)
    }
}

/// Notes to be sent.
struct Send(Vec<Dispatch>);

impl Question for Send {
    type Answer = ();

    fn put(self, now: Now, switch: &mut Switch) {
        for dispatch in self.0 {
            switch.send_note(now, dispatch);
        }
    }
}

/// The answer to what a phone said.
struct AnswerSaid(ServerKey, u16);

impl Question for AnswerSaid {
    type Answer = ();

    fn put(self, now: Now, switch: &mut Switch) {
        switch.answer_said(now, &self.0, self.1);
    }
}

impl Phones for Handle {
    fn on_call(&self, call: CallId) -> PortFuture<'_, Option<CallPhones>> {
        Box::pin(async move { Ok(self.ask(OnCall(call)).await?) })
    }

    fn devices_of(&self, extension: ExtensionId) -> PortFuture<'_, Vec<String>> {
        Box::pin(async move { Ok(self.ask(DevicesOf(extension)).await?) })
    }

    fn send(&self, notes: Vec<Dispatch>) -> PortFuture<'_, ()> {
        Box::pin(async move { Ok(self.ask(Send(notes)).await?) })
    }
}

impl Handle {
    /// Answers what a phone said. A switch that cannot be asked lets the phone say it again.
    pub async fn answer_said(&self, key: ServerKey, status: u16) {
        if let Err(error) = self.ask(AnswerSaid(key, status)).await {
            tracing::warn!(%error, "a phone gets no answer to what it said");
        }
    }
}

impl Switch {
    /// The phones on a live call; `None` when no such call is up.
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

    /// The contacts that are registered for an extension.
    pub fn devices_of(&self, now: Now, extension: ExtensionId) -> Vec<String> {
        let aor = self.directory.extension(extension).and_then(|found| self.directory.aor(found));
        let bindings = aor.map(|aor| self.registrar.lookup(&aor, now.instant)).unwrap_or_default();
        bindings.iter().map(|binding| binding.contact.to_string()).collect()
    }

    /// Sends a note to the phones that it is for; what comes of each is an [`Output::NoteAnswered`].
    pub fn send_note(&mut self, now: Now, dispatch: Dispatch) {
        let Dispatch { note, to, payload } = dispatch;
        match to {
            Destination::Call(call, legs) => self.inform_legs(now, note, call, &legs, payload),
            Destination::Extension(extension, devices) => {
                self.message_devices(now, note, extension, &devices, payload);
            }
        }
    }

    fn inform_legs(&mut self, now: Now, note: NoteId, call: CallId, legs: &[LegId], payload: Bytes) {
        let mut phones = self.phone_legs(call).unwrap_or_default();
        phones.retain(|phone| phone.state == CallState::Answered);
        for (place, leg) in legs.iter().enumerate() {
            let phone = phones.iter().find(|phone| phone.id == *leg);
            let sent = match phone.map(|phone| (phone.key, self.connection_of(now, phone))) {
                Some((key, wide)) => {
                    self.ua.info_by(now.instant, key, Content::new(JSON, payload.clone()), wide)
                }
                None => Err(SendError::WrongState),
            };
            self.note_sent(note, place, sent);
        }
    }

    /// A connection of the phone on a leg, for a note that is too long for a datagram.
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
            self.note_sent(note, place, sent);
        }
    }

    fn note_sent(&mut self, note: NoteId, place: usize, sent: Result<ClientKey, SendError>) {
        let answer = match sent {
            Ok(key) => {
                self.notes.0.insert(key, (note, place));
                return;
            }
            Err(SendError::WrongState) => PhoneAnswer::Gone,
            Err(SendError::Overload) => PhoneAnswer::Overload,
            Err(_) => PhoneAnswer::Unreachable,
        };
        self.push(Output::NoteAnswered(note, place, answer));
    }

    /// What came of an INFO or MESSAGE of ours.
    pub(super) fn note_answered(&mut self, key: ClientKey, receipt: &Receipt) {
        let Some((note, place)) = self.notes.0.remove(&key) else { return };
        let answer = match (receipt, receipt.status()) {
            (_, Some(status)) => PhoneAnswer::Status(status.as_u16()),
            (Receipt::Unreachable, _) => PhoneAnswer::Unreachable,
            (Receipt::Answered { .. } | Receipt::TimedOut, None) => PhoneAnswer::Silence,
        };
        self.push(Output::NoteAnswered(note, place, answer));
    }
}

const JSON: &str = "application/json";
