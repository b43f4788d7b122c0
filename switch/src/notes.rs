//! Delivery of notes to phones: INFO inside the dialogs of a call, MESSAGE to the devices of an extension.
//!
//! The result of a note never affects the call: with any response, or with none, the
//! call continues.
//!
//! A leg's phone gets one note at a time; the next one is sent after its response. Two notes at the same time could
//! arrive in reverse order, which RFC 3261 §12.2.2 makes a phone refuse with 500.

use std::collections::{HashMap, VecDeque};

use bytes::Bytes;
use sidetone_model::ids::{CallId, ExtensionId, LegId, NoteId};
use sidetone_model::live_call::CallState;
use sidetone_model::note::{Destination, Dispatch, PhoneAnswer};
use sidetone_model::time::Now;
use sidetone_sip::flow::Flow;
use sidetone_sip::message::Name;
use sidetone_sip::registrar::Registrar;
use sidetone_sip::transaction::{ClientKey, SendError};
use sidetone_sip::ua::{Content, Draft, Receipt, Ua};

use crate::call_queries::{PhoneLeg, phone_legs};
use crate::call_table::CallTable;
use crate::incoming_message::EVENTS_USER;
use crate::routing::Directory;
use crate::switch_io::{Output, Outputs};

/// Notes that were sent and have no answer yet.
#[derive(Default)]
pub(super) struct NotesInFlight {
    sent: HashMap<ClientKey, Flight>,
    /// Notes that wait until the leg's phone has answered the previous one.
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

/// The lower parts by which notes are sent.
pub(super) struct NoteContext<'a> {
    pub(super) now: Now,
    pub(super) ua: &'a mut Ua,
    pub(super) registrar: &'a Registrar,
    pub(super) directory: &'a Directory,
    pub(super) calls: &'a CallTable,
    pub(super) outputs: &'a mut Outputs,
}

/// Returns the contacts registered for an extension.
pub(super) fn devices_of(
    now: Now,
    extension: ExtensionId,
    directory: &Directory,
    registrar: &Registrar,
) -> Vec<String> {
    let aor = directory.extension(extension).and_then(|found| directory.aor(found));
    let bindings = aor.map(|aor| registrar.lookup(&aor, now.instant)).unwrap_or_default();
    bindings.iter().map(|binding| binding.contact.to_string()).collect()
}

impl NoteContext<'_> {
    /// Returns a stream connection to the phone of a leg, for a note that is too long for a datagram.
    fn connection_of(&self, phone: &PhoneLeg) -> Option<Flow> {
        let (contact, flow) = self.ua.peer(phone.key)?;
        let aor = self.directory.aor(self.directory.extension(phone.extension)?)?;
        self.registrar.connection_of(&aor, self.now.instant, contact, &flow)
    }
}

impl NotesInFlight {
    /// Sends a note to its phones; an [`Output::NoteAnswered`] reports the result of each.
    pub(super) fn send(&mut self, dispatch: Dispatch, context: &mut NoteContext<'_>) {
        let Dispatch { note, to, payload } = dispatch;
        match to {
            Destination::Call(call, legs) => {
                for (place, leg) in legs.into_iter().enumerate() {
                    self.inform((call, leg), Waiting { note, place, payload: payload.clone() }, context);
                }
            }
            Destination::Calls(legs) => {
                for (place, leg) in legs.into_iter().enumerate() {
                    self.inform(leg, Waiting { note, place, payload: payload.clone() }, context);
                }
            }
            Destination::Extension(extension, devices) => {
                self.message_devices(note, extension, &devices, payload, context);
            }
        }
    }

    /// Sends a note to the phone of a leg, or queues it until the phone has answered the notes before it.
    fn inform(&mut self, leg: (CallId, LegId), waiting: Waiting, context: &mut NoteContext<'_>) {
        match self.lines.get_mut(&leg.1) {
            Some(line) if line.len() < LINE_LEN_MAX => line.push_back(waiting),
            Some(_) => context.outputs.push_back(Output::NoteAnswered(
                waiting.note,
                waiting.place,
                PhoneAnswer::Overload,
            )),
            None => {
                if self.inform_now(leg, waiting, context) {
                    self.lines.insert(leg.1, VecDeque::new());
                }
            }
        }
    }

    /// Sends a note to the phone of a leg; returns whether it was sent.
    fn inform_now(&mut self, leg: (CallId, LegId), waiting: Waiting, context: &mut NoteContext<'_>) -> bool {
        let phones = phone_legs(context.calls, leg.0).unwrap_or_default();
        let phone = phones.iter().find(|phone| phone.id == leg.1 && phone.state == CallState::Answered);
        let sent = match phone.map(|phone| (phone.key, context.connection_of(phone))) {
            Some((key, wide)) => {
                let content = Content::new(JSON, waiting.payload);
                context.ua.info_by(context.now.instant, key, content, wide)
            }
            None => Err(SendError::WrongState),
        };
        self.record((waiting.note, waiting.place), Some(leg), sent, context)
    }

    /// Sends the next waiting note after the phone of a leg answered. If the phone did not answer, all
    /// waiting notes fail.
    fn inform_next(&mut self, leg: (CallId, LegId), is_silent: bool, context: &mut NoteContext<'_>) {
        while let Some(waiting) = self.lines.get_mut(&leg.1).and_then(VecDeque::pop_front) {
            if is_silent {
                context.outputs.push_back(Output::NoteAnswered(
                    waiting.note,
                    waiting.place,
                    PhoneAnswer::Silence,
                ));
            } else if self.inform_now(leg, waiting, context) {
                return;
            }
        }
        self.lines.remove(&leg.1);
    }

    fn message_devices(
        &mut self,
        note: NoteId,
        extension: ExtensionId,
        devices: &[String],
        payload: Bytes,
        context: &mut NoteContext<'_>,
    ) {
        let NoteContext { now, directory, registrar, .. } = *context;
        let aor = directory.extension(extension).and_then(|found| directory.aor(found)).unwrap_or_default();
        let domain = aor.split_once('@').map_or("", |(_, domain)| domain);
        let (from, to) = (format!("<sip:{EVENTS_USER}@{domain}>"), format!("<sip:{aor}>"));
        // The devices were listed before; another flow of one may have been refreshed since.
        let bindings = registrar.flows(&aor, now.instant);
        for (place, device) in devices.iter().enumerate() {
            let sent = match bindings.iter().find(|binding| binding.contact.to_string() == *device) {
                Some(binding) => {
                    let content = Content::new(JSON, payload.clone());
                    let mut draft = Draft::message(device.as_str(), from.as_str(), to.as_str(), content);
                    for route in &binding.path {
                        draft = draft.header(Name::Route.as_str(), route.to_string());
                    }
                    let (way, contact) = (binding.way(), &binding.contact);
                    draft = draft.wide(registrar.connection_of(&aor, now.instant, contact, &binding.flow));
                    context.ua.request(now.instant, way, draft)
                }
                None => Err(SendError::WrongState),
            };
            self.record((note, place), None, sent, context);
        }
    }

    /// Records a sent note, or outputs why it was not sent; returns whether it was sent.
    fn record(
        &mut self,
        (note, place): (NoteId, usize),
        leg: Option<(CallId, LegId)>,
        sent: Result<ClientKey, SendError>,
        context: &mut NoteContext<'_>,
    ) -> bool {
        let answer = match sent {
            Ok(key) => {
                self.sent.insert(key, Flight { note, place, leg });
                return true;
            }
            Err(SendError::WrongState) => PhoneAnswer::Gone,
            Err(SendError::Overload) => PhoneAnswer::Overload,
            Err(_) => PhoneAnswer::Unreachable,
        };
        context.outputs.push_back(Output::NoteAnswered(note, place, answer));
        false
    }

    /// Handles the result of our INFO or MESSAGE.
    pub(super) fn answered(&mut self, key: ClientKey, receipt: &Receipt, context: &mut NoteContext<'_>) {
        let Some(Flight { note, place, leg }) = self.sent.remove(&key) else { return };
        let answer = match (receipt, receipt.status()) {
            (_, Some(status)) => PhoneAnswer::Status(status.as_u16()),
            (Receipt::Unreachable, _) => PhoneAnswer::Unreachable,
            (Receipt::Answered { .. } | Receipt::TimedOut, None) => PhoneAnswer::Silence,
        };
        context.outputs.push_back(Output::NoteAnswered(note, place, answer));
        if let Some(leg) = leg {
            self.inform_next(leg, answer == PhoneAnswer::Silence, context);
        }
    }
}

const JSON: &str = "application/json";
/// Most notes that may wait for the phone of one leg: enough for a large room that all members join at the same time.
const LINE_LEN_MAX: usize = 256;
