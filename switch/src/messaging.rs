//! What phones say to the switch beside calls: INFO inside a dialog, MESSAGE to the events identity.
//!
//! Who says it is proved here, by the dialog or by the digest, and what it is written in; what it means is the affair
//! of whoever takes [`Output::Said`] and answers it by [`Input::Answer`](crate::machine::Input::Answer).
//!
//! Nothing here answers a request inside a dialog with 404, 408, 410, 480, 481 or 485: to a peer that follows
//! RFC 5057 §5.1 those end the whole call, and no word about a note shall do that. 400, 403, 405, 413 and 415 concern
//! the request alone.

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

/// Something that a phone said in JSON, and that wants an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Said {
    /// The request to be answered.
    pub key: ServerKey,
    /// Who said it.
    pub by: Speaker,
    /// Whose extension or call that is.
    pub organisation: OrganisationId,
    /// More of a device.
    pub device: Option<Device>,
    /// The JSON as it came, at most [`SAID_BYTES_MAX`].
    pub body: Bytes,
}

/// A device of an extension.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Device {
    /// The extension's address of record as a URI.
    pub address: String,
    /// The contact that it registered from where it speaks; `None` when it registered none there, or several.
    pub contact: Option<String>,
}

/// Who said something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Speaker {
    /// A device that proved by digest to be the extension's, in a MESSAGE to its organisation's events identity.
    Device(ExtensionId),
    /// The far end of a call's leg, in an INFO inside its dialog.
    Leg(CallId, LegId),
}

impl Switch {
    /// An INFO inside the dialog of a leg (RFC 6086 Appendix A: "legacy" use, without an info package).
    pub(super) fn informed(&mut self, now: Now, leg: LegKey, key: &ServerKey, request: &Request) {
        let found = self.whose_leg(leg).and_then(|(call, id)| {
            let organisation = self.calls.get(&call)?.call.facts().organisation;
            Some((call, id, organisation))
        });
        let Some((call, id, organisation)) = found else {
            return self.respond(now, key, Reply::new(StatusCode::FORBIDDEN));
        };
        // RFC 2976 §2.2: an INFO without a body asks whether we are there.
        if request.body().is_empty() {
            return self.respond(now, key, Reply::new(StatusCode::OK));
        }
        match digit_of(request) {
            Ok(None) => {}
            // A phone that hears no 200 presses the key again.
            Ok(Some(digit)) if self.conferences.seats.contains_key(&id) => {
                self.keyed(now, id, digit, Way::Info);
                return self.respond(now, key, Reply::new(StatusCode::OK));
            }
            Ok(Some(_)) if self.pass_on(now, leg, request) => {
                return self.respond(now, key, Reply::new(StatusCode::OK));
            }
            // Without another party there is nobody whom a key means anything to.
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

    /// Passes an INFO on to the party that a leg talks to; whether there is one.
    fn pass_on(&mut self, now: Now, leg: LegKey, request: &Request) -> bool {
        let Some((id, party)) = self.legs.get(&leg).copied() else { return false };
        let Some(live) = self.calls.get(&id) else { return false };
        let other = live.call.other(party).filter(|_| live.call.is_up()).and_then(|other| live.key_of(other));
        let Some(other) = other else { return false };
        let kind = request.header(Name::ContentType).unwrap_or_default();
        // What the other says to it is its own affair: the key was pressed, and is told as it came.
        self.ua.info(now.instant, other, Content::new(kind, request.body().clone())).is_ok()
    }

    /// A MESSAGE outside of dialogs.
    pub(super) fn messaged(&mut self, now: Now, key: &ServerKey, flow: &Flow, request: &Request) {
        let directory = Arc::clone(&self.directory);
        let sender = self.phone(now, flow, request);
        let Some(Sender::Extension(extension)) = self.known(now, key, flow, request, sender) else { return };
        let own = directory.extension(extension).filter(|_| is_for_events(&directory, extension, request));
        let Some((own, aor)) = own.and_then(|own| Some((own, directory.aor(own)?))) else {
            // Messages from phone to phone are not carried.
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

    /// The contact that was registered for `aor` from where `flow` leads, when it is the only one.
    fn contact_at(&self, now: Now, aor: &str, flow: &Flow) -> Option<String> {
        let bindings = self.registrar.lookup(aor, now.instant);
        let mut there = bindings.iter().filter(|binding| binding.flow == *flow);
        let contact = there.next()?.contact.to_string();
        there.next().is_none().then_some(contact)
    }

    /// Answers what was said.
    pub(super) fn answer_said(&mut self, now: Now, key: &ServerKey, status: u16) {
        let status = StatusCode::new(status).filter(|status| status.is_final());
        self.respond(now, key, allow(Reply::new(status.unwrap_or(StatusCode::SERVER_ERROR))));
    }
}

/// The identity that notes come from, beside the domain of an organisation.
pub const EVENTS_USER: &str = "events";

/// The longest that a phone may say, in bytes: as long as a note.
pub const SAID_BYTES_MAX: usize = 4_096;

/// Whether a request is for the events identity of the extension's own organisation.
fn is_for_events(directory: &Directory, extension: ExtensionId, request: &Request) -> bool {
    let own = directory.extension(extension).and_then(|known| directory.organisation(known.organisation_id));
    let Some(own) = own else { return false };
    request.parsed_uri().is_ok_and(|uri| {
        uri.user_decoded().as_deref() == Some(EVENTS_USER)
            && uri.host().is_some_and(|host| host.to_string().eq_ignore_ascii_case(&own.sip_domain))
    })
}

/// The body of a request that carries JSON.
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
