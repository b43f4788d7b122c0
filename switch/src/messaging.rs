//! Messages that phones send to the switch: INFO inside a dialog, and MESSAGE to the events identity.
//!
//! The dialog or the digest proves the sender here, and the content type is checked. The receiver of
//! [`Output::IncomingMessage`] interprets the message, and answers it by
//! [`Input::Answer`](crate::switch_io::Input::Answer).
//!
//! A request inside a dialog is never answered with 404, 408, 410, 480, 481 or 485: a peer that follows RFC
//! 5057 §5.1 would end the entire call, which a message about a note must not cause. 400, 403, 405, 413 and
//! 415 concern only the request.

use bytes::Bytes;
use sidetone_model::ids::{CallId, ExtensionId, LegId, OrganisationId};
use sidetone_model::time::Now;
use sidetone_sip::flow::Flow;
use sidetone_sip::message::{Name, Request, StatusCode};
use sidetone_sip::registrar::Registrar;
use sidetone_sip::transaction::ServerKey;
use sidetone_sip::ua::{Content, LegKey, Reply, Ua};

use crate::call_table::CallTable;
use crate::conference_adapter::Conferences;
use crate::converted_keys::{self, Passed};
use crate::dtmf::{DtmfSource, digit_of};
use crate::incoming_message::{Device, EVENTS_USER, IncomingMessage, MESSAGE_BYTES_MAX, Speaker};
use crate::io::{MediaCommand, PortId};
use crate::leg::Leg;
use crate::message_parts::allow;
use crate::routing::Directory;
use crate::switch_io::{Output, Outputs};
use crate::transfers::{self, Place};

/// The lower parts that handle an INFO inside a dialog.
pub(super) struct InfoContext<'a> {
    pub(super) now: Now,
    pub(super) ua: &'a mut Ua,
    pub(super) calls: &'a CallTable,
    pub(super) conferences: &'a mut Conferences,
    pub(super) outputs: &'a mut Outputs,
}

impl InfoContext<'_> {
    /// Handles an INFO inside the dialog of a leg (RFC 6086 Appendix A: "legacy" use, without an info
    /// package). Returns the reply, unless the receiver of the message decides it.
    pub(super) fn informed(&mut self, leg: LegKey, key: &ServerKey, request: &Request) -> Option<Reply> {
        let Some((call, id, organisation)) = self.sender(leg) else {
            return Some(Reply::new(StatusCode::FORBIDDEN));
        };
        // RFC 2976 §2.2: an INFO without a body only checks that this end is alive.
        if request.body().is_empty() {
            return Some(Reply::new(StatusCode::OK));
        }
        match digit_of(request) {
            Ok(None) => {}
            // Answer 200, because a phone without one repeats the key.
            Ok(Some(digit)) if self.conferences.has(id) => {
                self.conferences.keyed(self.now, id, digit, DtmfSource::Info);
                return Some(Reply::new(StatusCode::OK));
            }
            Ok(Some(digit)) if self.convert(leg, digit, request) => return Some(Reply::new(StatusCode::OK)),
            Ok(Some(_)) if self.pass_on(leg, request) => return Some(Reply::new(StatusCode::OK)),
            // There is no other party to pass the key to.
            Ok(Some(_)) => return Some(allow(Reply::new(StatusCode::UNSUPPORTED_MEDIA_TYPE))),
            Err(()) => return Some(Reply::new(StatusCode::BAD_REQUEST)),
        }
        match json(request) {
            Ok(body) => {
                let by = Speaker::Leg(call, id);
                let message = IncomingMessage { key: *key, by, organisation, device: None, body };
                self.outputs.push_back(Output::IncomingMessage(message));
                None
            }
            // The content belongs to an info package, and this node takes none.
            Err(_) if request.header(INFO_PACKAGE).is_some() => {
                Some(Reply::new(StatusCode::BAD_INFO_PACKAGE).header("Recv-Info", ""))
            }
            Err(reply) => Some(reply),
        }
    }

    fn sender(&self, leg: LegKey) -> Option<(CallId, LegId, OrganisationId)> {
        let (call, id) = self.calls.identity_of(leg)?;
        Some((call, id, self.calls.get(call)?.call.facts().organisation))
    }

    /// Sends a key to the other party: as a telephone event, if that party has events and the sender has none, or as
    /// tones, if that party has neither events nor INFO.
    fn convert(&mut self, leg: LegKey, digit: char, request: &Request) -> bool {
        let Some(place) = self.calls.party_of(leg) else { return false };
        let other = hears_keys_of(self.calls, place).and_then(|other| leg_of(self.calls, other));
        let Some((own, other)) = leg_of(self.calls, place).zip(other) else { return false };
        let Some((terms, theirs)) = own.exchange.negotiated().zip(other.exchange.negotiated()) else {
            return false;
        };
        let key = converted_keys::pressed(terms, theirs, other.key_form(), digit, request);
        let command = key.and_then(command_of);
        let is_converted = command.is_some();
        self.outputs.extend(command.map(|command| Output::Media(other.port(), command)));
        is_converted
    }

    /// Passes an INFO on to the other party of a leg; returns whether there is one.
    fn pass_on(&mut self, leg: LegKey, request: &Request) -> bool {
        let other = self.calls.party_of(leg).and_then(|place| hears_keys_of(self.calls, place));
        let Some(other) = other.and_then(|(call, other)| self.calls.key_of(call, other)) else {
            return false;
        };
        let kind = request.header(Name::ContentType).unwrap_or_default();
        // The other party's response is not passed back: the key was pressed and has been forwarded.
        self.ua.info(self.now.instant, other, Content::new(kind, request.body().clone())).is_ok()
    }
}

/// The command for a key that is sent in the media; `None` for INFO.
fn command_of(key: Passed) -> Option<MediaCommand> {
    match key {
        Passed::Event(event) => Some(MediaCommand::Press(event)),
        Passed::Info => None,
        Passed::Tone(tone) => Some(MediaCommand::PlayKey(tone)),
    }
}

/// Sends a key of the party at a port to the other party, in the form that the other party takes.
pub(super) fn keyed(
    now: Now,
    port: PortId,
    key: (char, u32),
    calls: &CallTable,
    (ua, outputs): (&mut Ua, &mut Outputs),
) {
    let Some((id, live)) = calls.call_at(port).and_then(|id| Some((id, calls.get(id)?))) else { return };
    let Some(place) = live.call.parties().party_at(port).map(|party| (id, party)) else { return };
    let Some(other) = hears_keys_of(calls, place) else { return };
    let Some((own, theirs)) = leg_of(calls, place).zip(leg_of(calls, other)) else { return };
    let Some((terms, their_terms)) = own.exchange.negotiated().zip(theirs.exchange.negotiated()) else {
        return;
    };
    match command_of(converted_keys::passed(terms, their_terms, theirs.key_form(), key)) {
        Some(command) => outputs.push_back(Output::Media(theirs.port(), command)),
        None => {
            if let Some(other) = calls.key_of(other.0, other.1) {
                // Fails when the other party hangs up at this moment.
                let _ = ua.info(now.instant, other, converted_keys::info_of(key.0, key.1));
            }
        }
    }
}

/// Returns the party that receives the keys of a party; after a transfer it is in another call.
fn hears_keys_of(calls: &CallTable, place: Place) -> Option<Place> {
    let is_up = |call: CallId| calls.get(call).is_some_and(|live| live.call.parties().is_up());
    transfers::far_of(calls, place).filter(|other| is_up(place.0) && is_up(other.0))
}

fn leg_of(calls: &CallTable, (call, party): Place) -> Option<&Leg> {
    calls.get(call)?.call.parties().leg(party)
}

/// Returns the message in a MESSAGE of an extension outside of dialogs.
///
/// # Errors
/// The refusal.
pub(super) fn message(
    now: Now,
    extension: ExtensionId,
    (key, flow): (&ServerKey, &Flow),
    request: &Request,
    directory: &Directory,
    registrar: &Registrar,
) -> Result<IncomingMessage, Reply> {
    let own = directory.extension(extension).filter(|_| is_for_events(directory, extension, request));
    let Some((own, aor)) = own.and_then(|own| Some((own, directory.aor(own)?))) else {
        return Err(Reply::new(StatusCode::NOT_FOUND));
    };
    let body = json(request)?;
    let contact = contact_at(now, &aor, flow, registrar);
    let device = Some(Device { address: format!("sip:{aor}"), contact });
    let by = Speaker::Device(extension);
    Ok(IncomingMessage { key: *key, by, organisation: own.organisation_id, device, body })
}

/// Returns the contact registered for `aor` over `flow`, if there is exactly one.
fn contact_at(now: Now, aor: &str, flow: &Flow, registrar: &Registrar) -> Option<String> {
    let bindings = registrar.flows(aor, now.instant);
    let mut there = bindings.iter().filter(|binding| binding.flow == *flow);
    let contact = there.next()?.contact.to_string();
    there.next().is_none().then_some(contact)
}

/// Returns the reply to a phone's message with the receiver's status.
pub(super) fn reply(status: u16) -> Reply {
    let status = StatusCode::new(status).filter(|status| status.is_final());
    allow(Reply::new(status.unwrap_or(StatusCode::SERVER_ERROR)))
}

/// Whether a request addresses the events identity of the extension's own organisation.
pub(super) fn is_for_events(directory: &Directory, extension: ExtensionId, request: &Request) -> bool {
    let own = directory.extension(extension).and_then(|known| directory.organisation(known.organisation_id));
    let Some(own) = own else { return false };
    request.parsed_uri().is_ok_and(|uri| {
        uri.user_decoded().as_deref() == Some(EVENTS_USER)
            && uri.host().is_some_and(|host| host.to_string().eq_ignore_ascii_case(&own.sip_domain))
    })
}

/// Returns the body of a request with JSON.
fn json(request: &Request) -> Result<Bytes, Reply> {
    if !request.headers().is_content_type(JSON) {
        let reply = Reply::new(StatusCode::UNSUPPORTED_MEDIA_TYPE);
        return Err(reply.header(Name::Accept.as_str(), JSON));
    }
    if request.body().len() > MESSAGE_BYTES_MAX {
        return Err(Reply::new(StatusCode::ENTITY_TOO_LARGE));
    }
    Ok(request.body().clone())
}

/// RFC 6086 §4.2.
const INFO_PACKAGE: &str = "Info-Package";
const JSON: &str = "application/json";
