//! MESSAGE from phone to phone of one organisation (RFC 3428): to every device of the called extension, and the final
//! response back to the sender.
//!
//! The sender has authenticated, and this module sets its From. No message is stored: a message for an extension
//! without a registered device is answered with 480. Messages to the events identity are in `messaging.rs`.

use std::collections::{BTreeMap, HashMap};
use std::time::{Duration, Instant};

use sidetone_model::directory::{Extension, Organisation};
use sidetone_model::ids::{ExtensionId, OrganisationId};
use sidetone_model::time::Now;
use sidetone_sip::admission::{Bucket, Rate};
use sidetone_sip::message::{Host, Name, NameAddr, Request, StatusCode, Uri};
use sidetone_sip::registrar::Registrar;
use sidetone_sip::transaction::{ClientKey, ServerKey};
use sidetone_sip::ua::{Content, Draft, Receipt, Reply, Ua};

use crate::incoming_message::MESSAGE_BYTES_MAX;
use crate::message_parts::{allow, dialled, status_code};
use crate::outcome::{better, refusal};
use crate::routing::Directory;

/// Messages between phones that wait for a final response, and the rates of their senders.
#[derive(Debug, Default)]
pub(super) struct PhoneMessages {
    /// By their serial numbers, and so in the order of their deadlines.
    waiting: BTreeMap<u64, Waiting>,
    /// The message of each request that we sent.
    sent: HashMap<ClientKey, u64>,
    serial: u64,
    senders: HashMap<ExtensionId, Bucket>,
    organisations: HashMap<OrganisationId, Bucket>,
}

/// A message whose sender waits for a response.
#[derive(Debug)]
struct Waiting {
    key: ServerKey,
    deadline: Instant,
    /// Devices that have not answered.
    open: usize,
    /// The best refusal so far, and the content types that its device accepts.
    refused: Option<(u16, Option<String>)>,
}

/// The lower parts by which messages are sent.
pub(super) struct MessageContext<'a> {
    pub(super) now: Now,
    pub(super) ua: &'a mut Ua,
    pub(super) registrar: &'a Registrar,
    pub(super) directory: &'a Directory,
}

impl PhoneMessages {
    /// Sends a message of an extension to the devices of another one of its organisation. The sender is answered when
    /// a device accepts, when all have refused, or after [`ANSWER_WITHIN`].
    ///
    /// # Errors
    /// The refusal for the sender.
    pub(super) fn forward(
        &mut self,
        sender: ExtensionId,
        key: &ServerKey,
        request: &Request,
        context: &mut MessageContext<'_>,
    ) -> Result<(), Reply> {
        let MessageContext { now, registrar, directory, .. } = *context;
        let not_found = || allow(Reply::new(StatusCode::NOT_FOUND));
        let own = directory.extension(sender).ok_or_else(not_found)?;
        let organisation = directory.organisation(own.organisation_id).ok_or_else(not_found)?;
        let called = called(request, organisation, directory).ok_or_else(not_found)?;
        let content = content_of(request)?;
        self.take_tokens(now.instant, own)?;
        let aor = directory.aor(called).ok_or_else(not_found)?;
        let (from, to) = (from_of(own, organisation), format!("<sip:{aor}>"));
        let bindings = registrar.lookup(&aor, now.instant);
        let mut open = 0;
        for binding in &bindings {
            let target = binding.contact.to_string();
            let mut draft = Draft::message(target, from.as_str(), to.as_str(), content.clone());
            for route in &binding.path {
                draft = draft.header(Name::Route.as_str(), route.to_string());
            }
            for (name, value) in CARRIED.iter().filter_map(|name| Some((name, request.header(*name)?))) {
                draft = draft.header(name, value);
            }
            draft = draft.wide(registrar.connection_of(&aor, now.instant, &binding.contact, &binding.flow));
            if let Ok(sent) = context.ua.request(now.instant, binding.way(), draft) {
                self.sent.insert(sent, self.serial);
                open += 1;
            }
        }
        if open == 0 {
            return Err(Reply::new(StatusCode::TEMPORARILY_UNAVAILABLE));
        }
        let deadline = now.instant + ANSWER_WITHIN;
        self.waiting.insert(self.serial, Waiting { key: *key, deadline, open, refused: None });
        self.serial += 1;
        Ok(())
    }

    /// Handles the response of a device; returns whether the request was one of these messages.
    pub(super) fn answered(&mut self, now: Instant, key: ClientKey, receipt: &Receipt, ua: &mut Ua) -> bool {
        let Some(serial) = self.sent.remove(&key) else { return false };
        let Some(waiting) = self.waiting.get_mut(&serial) else { return true };
        waiting.open = waiting.open.saturating_sub(1);
        let status = receipt.status().map_or(480, |status| refusal(status.as_u16()));
        if status < 300 {
            return self.answer(now, serial, Reply::new(status_code(status)), ua);
        }
        let before = waiting.refused.as_ref().map(|(status, _)| *status);
        if before.is_none_or(|before| better(before, status) == status) {
            let accepts = match receipt {
                Receipt::Answered { response, .. } => response.header(Name::Accept).map(str::to_owned),
                Receipt::TimedOut | Receipt::Unreachable => None,
            };
            waiting.refused = Some((status, accepts));
        }
        if waiting.open > 0 {
            return true;
        }
        let reply = waiting.reply();
        self.answer(now, serial, reply, ua)
    }

    /// Answers the senders whose deadline has passed.
    pub(super) fn timeout(&mut self, now: Instant, ua: &mut Ua) {
        while let Some((serial, waiting)) = self.waiting.first_key_value().filter(|(_, w)| w.deadline <= now)
        {
            let (serial, reply) = (*serial, waiting.reply());
            self.answer(now, serial, reply, ua);
        }
    }

    /// Returns when to call [`PhoneMessages::timeout`].
    pub(super) fn next_timeout(&self) -> Option<Instant> {
        self.waiting.first_key_value().map(|(_, waiting)| waiting.deadline)
    }

    /// The number of messages and requests that are kept.
    #[cfg(test)]
    pub(super) fn kept(&self) -> usize {
        self.waiting.len() + self.sent.len()
    }

    /// Answers the sender of a message; always true.
    fn answer(&mut self, now: Instant, serial: u64, reply: Reply, ua: &mut Ua) -> bool {
        if let Some(waiting) = self.waiting.remove(&serial) {
            let status = reply.status();
            if ua.respond(now, &waiting.key, reply).is_err() {
                // Fails when a header of the device cannot be copied, or the transaction is over.
                let _ = ua.respond(now, &waiting.key, Reply::new(status));
            }
        }
        true
    }

    /// Takes a rate token of the sender and of its organisation.
    fn take_tokens(&mut self, now: Instant, own: &Extension) -> Result<(), Reply> {
        if self.senders.len() >= SENDERS_MAX {
            self.senders.retain(|_, bucket| !bucket.is_well_filled(now));
        }
        let sender = self.senders.entry(own.id).or_insert_with(|| Bucket::new(RATE_OF_SENDER));
        let organisation = self.organisations.entry(own.organisation_id);
        let organisation = organisation.or_insert_with(|| Bucket::new(RATE_OF_ORGANISATION));
        if sender.take(now) && organisation.take(now) {
            return Ok(());
        }
        let reply = Reply::new(StatusCode::TEMPORARILY_UNAVAILABLE).reason("Too Many Messages");
        Err(reply.header(Name::RetryAfter.as_str(), "5"))
    }
}

impl Waiting {
    /// The refusal for the sender: the best one of the devices, or 480 if none has answered. A 408 would arrive too
    /// late (RFC 4320 §4.2).
    fn reply(&self) -> Reply {
        let (status, accepts) =
            self.refused.as_ref().map_or((480, None), |(status, types)| (*status, types.as_deref()));
        let reply = Reply::new(status_code(if status == 408 { 480 } else { status }));
        match accepts {
            Some(accepts) => reply.header(Name::Accept.as_str(), accepts),
            None => reply,
        }
    }
}

/// The extension that a request addresses in the sender's own domain.
fn called<'d>(request: &Request, own: &Organisation, directory: &'d Directory) -> Option<&'d Extension> {
    let uri = request.parsed_uri().ok()?;
    let is_own = uri.host().is_some_and(|host| host.to_string().eq_ignore_ascii_case(&own.sip_domain));
    directory.line(own.id, &dialled(&uri).filter(|_| is_own)?)
}

/// The text of a message.
fn content_of(request: &Request) -> Result<Content, Reply> {
    if request.max_forwards() == Some(0) {
        return Err(Reply::new(StatusCode::TOO_MANY_HOPS));
    }
    if request.body().len() > MESSAGE_BYTES_MAX {
        return Err(Reply::new(StatusCode::ENTITY_TOO_LARGE));
    }
    // Only the engine sends notes: a phone's message must not look like a note to another phone.
    if request.headers().is_content_type(NOTE_TYPE) {
        let reply = Reply::new(StatusCode::UNSUPPORTED_MEDIA_TYPE);
        return Err(reply.header(Name::Accept.as_str(), "text/plain, message/cpim"));
    }
    match request.header(Name::ContentType) {
        Some(kind) if !request.body().is_empty() => Ok(Content::new(kind, request.body().clone())),
        _ => Err(Reply::new(StatusCode::BAD_REQUEST).reason("Missing Content-Type Or Body")),
    }
}

fn from_of(own: &Extension, organisation: &Organisation) -> String {
    let host = Host::parse(&organisation.sip_domain);
    let host = host.unwrap_or_else(|_| Host::Name("anonymous.invalid".to_owned()));
    let address = NameAddr::new(Uri::sip(host, None).with_user(&own.number));
    if own.name.is_empty() { address.to_string() } else { address.with_display(&own.name).to_string() }
}

/// The type of a note in a MESSAGE.
const NOTE_TYPE: &str = "application/json";
/// Headers that reach the called phone as they are; they describe the content.
const CARRIED: [&str; 5] = ["Content-Disposition", "Content-Encoding", "Content-Language", "Date", "Subject"];
/// How long a sender waits: less than the 32 s of its timer F, so that it gets a response.
const ANSWER_WITHIN: Duration = Duration::from_secs(20);
/// Message rate of one extension. A message has up to [`MESSAGE_BYTES_MAX`] bytes and is sent to each device of the
/// called extension.
const RATE_OF_SENDER: Rate = Rate { per_second: 1, burst: 20 };
/// Message rate of all extensions of one organisation.
const RATE_OF_ORGANISATION: Rate = Rate { per_second: 20, burst: 200 };
/// Number of senders above which those with little traffic are forgotten.
const SENDERS_MAX: usize = 4_096;
