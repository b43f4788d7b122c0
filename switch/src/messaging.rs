//! Messages that phones send to the switch: INFO inside a dialog, and MESSAGE to the events identity.
//!
//! Who says it is proved here, by the dialog or by the digest, and what it is written in; what it means is the affair
//! of whoever takes [`Output::Said`] and answers it by [`Input::Answer`](crate::machine::Input::Answer).
//!
//! A request inside a dialog is never answered with 404, 408, 410, 480, 481 or 485: a peer that follows RFC
//! 5057 §5.1 would end the whole call, which a message about a note must not cause. 400, 403, 405, 413 and
//! 415 concern only the request.

use std::sync::Arc;

use bytes::Bytes;
use sidetone_model::ids::{CallId, ExtensionId, LegId, OrganisationId};
use sidetone_sip::flow::Flow;
use sidetone_sip::message::{Name, Request, StatusCode};
use sidetone_sip::transaction::ServerKey;
use sidetone_sip::ua::{Content, LegKey, Reply};

use crate::gate::Sender;
use crate::incoming::allow;
use crate::keys::{Way, digit_of};
use crate::machine::{Now, Output, Switch};
use crate::routing::Directory;

/// A JSON message of a phone that needs an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Said {
    /// The request to be answered.
    pub key: ServerKey,
    /// The sender.
    pub by: Speaker,
    /// The organisation of the extension or call.
    pub organisation: OrganisationId,
    /// The device, if a device sent it.
    pub device: Option<Device>,
    /// The JSON as received, at most [`SAID_BYTES_MAX`].
    pub body: Bytes,
}

/// A device of an extension.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Device {
    /// The extension's address of record as a URI.
    pub address: String,
    /// The contact registered from the address that the message came from; `None` when there is none there,
    /// or several.
    pub contact: Option<String>,
}

/// The sender of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Speaker {
    /// A device of the extension, authenticated by digest, in a MESSAGE to its organisation's events
    /// identity.
    Device(ExtensionId),
    /// The far end of a call's leg, in an INFO inside its dialog.
    Leg(CallId, LegId),
}

impl Switch {
    /// Handles an INFO inside the dialog of a leg (RFC 6086 Appendix A: "legacy" use, without an info
    /// package).
    pub(super) fn informed(&mut self, now: Now, leg: LegKey, key: &ServerKey, request: &Request) {
        let found = self.whose_leg(leg).and_then(|(call, id)| {
            let organisation = self.calls.get(&call)?.call.facts().organisation;
            Some((call, id, organisation))
        });
        let Some((call, id, organisation)) = found else {
            return self.respond(now, key, Reply::new(StatusCode::FORBIDDEN));
        };
        // RFC 2976 §2.2: an INFO without a body only checks that we are there.
        if request.body().is_empty() {
            return self.respond(now, key, Reply::new(StatusCode::OK));
        }
        match digit_of(request) {
            Ok(None) => {}
            // Answer 200, because a phone without one repeats the key.
            Ok(Some(digit)) if self.conferences.seats.contains_key(&id) => {
                self.keyed(now, id, digit, Way::Info);
                return self.respond(now, key, Reply::new(StatusCode::OK));
            }
            Ok(Some(_)) if self.pass_on(now, leg, request) => {
                return self.respond(now, key, Reply::new(StatusCode::OK));
            }
            // There is no other party to pass the key to.
            Ok(Some(_)) => {
                return self.respond(now, key, allow(Reply::new(StatusCode::UNSUPPORTED_MEDIA_TYPE)));
            }
            Err(()) => return self.respond(now, key, Reply::new(StatusCode::BAD_REQUEST)),
        }
        match json(request) {
            Ok(body) => {
                let by = Speaker::Leg(call, id);
                self.push(Output::Said(Said { key: *key, by, organisation, device: None, body }));
            }
            Err(reply) => self.respond(now, key, reply),
        }
    }

    /// Passes an INFO on to the other party of a leg; returns whether there is one.
    fn pass_on(&mut self, now: Now, leg: LegKey, request: &Request) -> bool {
        let Some((id, party)) = self.legs.get(&leg).copied() else { return false };
        let Some(live) = self.calls.get(&id) else { return false };
        let other = live.call.other(party).filter(|_| live.call.is_up()).and_then(|other| live.key_of(other));
        let Some(other) = other else { return false };
        let kind = request.header(Name::ContentType).unwrap_or_default();
        // The other party's response is not passed back: the key was pressed and has been forwarded.
        self.ua.info(now.instant, other, Content::new(kind, request.body().clone())).is_ok()
    }

    /// Handles a MESSAGE outside of dialogs.
    pub(super) fn messaged(&mut self, now: Now, key: &ServerKey, flow: &Flow, request: &Request) {
        let directory = Arc::clone(&self.directory);
        let sender = self.phone(now, flow, request);
        let Some(Sender::Extension(extension)) = self.known(now, key, flow, request, sender) else { return };
        let own = directory.extension(extension).filter(|_| is_for_events(&directory, extension, request));
        let Some((own, aor)) = own.and_then(|own| Some((own, directory.aor(own)?))) else {
            // Messages between phones are not supported.
            return self.respond(now, key, Reply::new(StatusCode::NOT_FOUND));
        };
        match json(request) {
            Ok(body) => {
                let contact = self.contact_at(now, &aor, flow);
                let device = Some(Device { address: format!("sip:{aor}"), contact });
                let by = Speaker::Device(extension);
                let organisation = own.organisation_id;
                self.push(Output::Said(Said { key: *key, by, organisation, device, body }));
            }
            Err(reply) => self.respond(now, key, reply),
        }
    }

    /// Returns the contact registered for `aor` over `flow`, if there is exactly one.
    fn contact_at(&self, now: Now, aor: &str, flow: &Flow) -> Option<String> {
        let bindings = self.registrar.lookup(aor, now.instant);
        let mut there = bindings.iter().filter(|binding| binding.flow == *flow);
        let contact = there.next()?.contact.to_string();
        there.next().is_none().then_some(contact)
    }

    /// Answers a phone's message.
    pub(super) fn answer_said(&mut self, now: Now, key: &ServerKey, status: u16) {
        let status = StatusCode::new(status).filter(|status| status.is_final());
        self.respond(now, key, allow(Reply::new(status.unwrap_or(StatusCode::SERVER_ERROR))));
    }
}

/// The user part of the identity that notes come from; the host is the organisation's domain.
pub const EVENTS_USER: &str = "events";

/// The longest message of a phone, in bytes: the same limit as for a note.
pub const SAID_BYTES_MAX: usize = 4_096;

/// Whether a request addresses the events identity of the extension's own organisation.
fn is_for_events(directory: &Directory, extension: ExtensionId, request: &Request) -> bool {
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
    if request.body().len() > SAID_BYTES_MAX {
        return Err(Reply::new(StatusCode::ENTITY_TOO_LARGE));
    }
    Ok(request.body().clone())
}

const JSON: &str = "application/json";
