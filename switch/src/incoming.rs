//! Incoming requests: requests that begin no call, and the parts of an INVITE that determine its target.

use std::borrow::Cow;
use std::net::IpAddr;
use std::time::Duration;

use sidetone_model::device;
use sidetone_model::ids::ExtensionId;
use sidetone_model::time::Now;
use sidetone_sip::flow::Flow;
use sidetone_sip::message::{Headers, Method, Name, Request, StatusCode, Uri};
use sidetone_sip::registrar::{Binding, BindingId, Registrar, Registration};
use sidetone_sip::sdp::{KeySeed, SessionDescription};
use sidetone_sip::transaction::ServerKey;
use sidetone_sip::ua::{LegKey, Reply, Ua};

use crate::authentication::Sender;
use crate::call_limits::limits_of;
use crate::call_table::CallTable;
use crate::conference;
use crate::conference_adapter::Conferences;
use crate::converted_keys::key_form;
use crate::denied::{Denial, Denied};
use crate::gruus::Gruus;
use crate::ids::Ids;
use crate::io::{CalleeSide, Callees, CallerSide, KeyForm, Limits, Setup, Sides};
use crate::kept_bindings::bindings_max_of;
use crate::live::{Caller, NewCall};
use crate::message_parts::{SDP, allow, description, dialled, sdp_part, unreachable};
use crate::messaging::{self, InfoContext};
use crate::phone_messages::{MessageContext, PhoneMessages};
use crate::placement::{Onward, Placement};
use crate::registering::Registrations;
use crate::routing::Directory;
use crate::senders::{SenderContext, Senders};
use crate::shared::Shared;
use crate::subscriptions::{SubscribeContext, Subscriptions, notify_phone};
use crate::switch_io::{Notice, Output, Outputs};

/// The lower parts that answer requests which begin no call.
pub(super) struct Requests<'a> {
    pub(super) now: Now,
    /// Whether new calls are accepted.
    pub(super) accepts: bool,
    pub(super) ua: &'a mut Ua,
    pub(super) senders: &'a mut Senders,
    pub(super) registrar: &'a mut Registrar,
    /// The GRUUs, with the generator for their key.
    pub(super) gruus: (&'a mut Gruus, &'a mut Ids),
    pub(super) directory: &'a Directory,
    pub(super) calls: &'a CallTable,
    pub(super) conferences: &'a mut Conferences,
    pub(super) subscriptions: &'a mut Subscriptions,
    pub(super) messages: &'a mut PhoneMessages,
    pub(super) outputs: &'a mut Outputs,
}

impl Requests<'_> {
    /// Handles a request inside or outside of dialogs, except INVITE.
    pub(super) fn handle(&mut self, leg: Option<LegKey>, key: &ServerKey, flow: &Flow, request: &Request) {
        match (request.method(), leg) {
            // A load balancer in front of the nodes checks whether this one accepts calls.
            (Method::Options, None) if !self.accepts => {
                self.refuse(key, Reply::new(StatusCode::SERVICE_UNAVAILABLE));
            }
            (Method::Options, _) => {
                let mut reply =
                    allow(Reply::new(StatusCode::OK)).header("Accept", "application/sdp, application/json");
                // A response to an unauthenticated sender that is longer than one and a half times its request is cut to
                // the mandatory headers, and Allow says more than Supported.
                if leg.is_some() || request.to_bytes().len() >= WITH_SUPPORTED_MIN {
                    reply = reply.header(Name::Supported.as_str(), self.ua.supported());
                }
                self.respond(key, reply);
            }
            (Method::Register, None) => self.register(key, flow, request),
            (Method::Info, Some(leg)) => self.informed(leg, key, request),
            (Method::Message, None) => self.messaged(key, flow, request),
            (Method::Subscribe, None) => self.subscribed(key, flow, request),
            (Method::Other(_), _) => self.refuse(key, allow(Reply::new(StatusCode::NOT_IMPLEMENTED))),
            (_, Some(_)) => self.respond(key, allow(Reply::new(StatusCode::METHOD_NOT_ALLOWED))),
            // Requests that are valid only inside a dialog.
            (Method::Bye | Method::Info | Method::Notify | Method::Prack | Method::Update, None) => {
                self.refuse(key, Reply::new(StatusCode::NO_TRANSACTION));
            }
            // The sender must authenticate before it gets any information (RFC 3261 §22.1).
            (_, None) => {
                if self.phone(key, flow, request).is_some() {
                    self.respond(key, allow(Reply::new(StatusCode::METHOD_NOT_ALLOWED)));
                }
            }
        }
    }

    fn register(&mut self, key: &ServerKey, flow: &Flow, request: &Request) {
        let Some(id) = self.phone(key, flow, request) else { return };
        let directory = self.directory;
        let Some((extension, aor)) = directory.extension(id).and_then(|e| Some((e, directory.aor(e)?)))
        else {
            return self.refuse(key, Reply::new(StatusCode::FORBIDDEN));
        };
        let to = request.to().ok().map(|to| to.uri);
        // The address of record is of another domain than the account (RFC 3261 §10.3 step 5).
        let host = to.as_ref().and_then(Uri::host);
        if host.is_some_and(|host| directory.is_domain_of_another(host, extension.organisation_id)) {
            return self.refuse(key, Reply::new(StatusCode::NOT_FOUND));
        }
        // An extension may register only its own number (RFC 3261 §10.3 step 3).
        let is_own = to.is_some_and(|to| to.user_decoded().is_some_and(|user| user == extension.number));
        if !is_own {
            let denied = Denied::new(flow.remote.ip(), request, Denial::Forbidden);
            self.outputs.push_back(Output::Notice(Notice::Denied(denied)));
            return self.refuse(key, Reply::new(StatusCode::FORBIDDEN));
        }
        let now = self.now.instant;
        let known: Vec<BindingId> = self.registrar.bindings_of(&aor).iter().map(|known| known.id).collect();
        let result = Registration::from_request(request, *flow)
            .map(|registration| Registration {
                bindings_max: Some(bindings_max_of(extension)),
                ..registration
            })
            .and_then(|registration| self.registrar.register(now, &aor, registration));
        let is_registered = result.as_ref().is_ok_and(|bindings| !bindings.is_empty());
        // A phone that was not registered does not know the state of the mailbox.
        let is_new = |binding: &&Binding| extension.notify_message_waiting && !known.contains(&binding.id);
        let new: Vec<Binding> = result.iter().flat_map(|all| all.iter()).filter(is_new).cloned().collect();
        let (gruus, ids) = &mut self.gruus;
        let (status, headers) = gruus.reply_headers(request, result.as_deref(), now, &aor, ids);
        if is_registered {
            self.conferences.handle_input(self.now, conference::Input::Free(id));
        }
        self.respond(key, Reply::new(status).headers(headers));
        for binding in &new {
            notify_phone(self.now, (extension, &aor), binding, self.ua);
        }
    }

    fn informed(&mut self, leg: LegKey, key: &ServerKey, request: &Request) {
        let Requests { now, calls, .. } = *self;
        let mut context =
            InfoContext { now, ua: self.ua, calls, conferences: self.conferences, outputs: self.outputs };
        if let Some(reply) = context.informed(leg, key, request) {
            self.respond(key, reply);
        }
    }

    fn messaged(&mut self, key: &ServerKey, flow: &Flow, request: &Request) {
        let Some(extension) = self.phone(key, flow, request) else { return };
        if !self.is_from(extension, request) {
            return self.respond(key, Reply::new(StatusCode::FORBIDDEN));
        }
        if !messaging::is_for_events(self.directory, extension, request) {
            let Requests { now, registrar, directory, .. } = self;
            let mut context = MessageContext { now: *now, ua: self.ua, registrar, directory };
            if let Err(reply) = self.messages.forward(extension, key, request, &mut context) {
                self.respond(key, reply);
            }
            return;
        }
        let sender = (key, flow);
        match messaging::message(self.now, extension, sender, request, self.directory, self.registrar) {
            Ok(message) => self.outputs.push_back(Output::IncomingMessage(message)),
            Err(reply) => self.respond(key, reply),
        }
    }

    /// Whether the From of a request names its sender, or is anonymous.
    fn is_from(&self, sender: ExtensionId, request: &Request) -> bool {
        let number = self.directory.extension(sender).map(|own| own.number.as_str());
        let user = request.from().ok().and_then(|from| from.uri.user_decoded().map(Cow::into_owned));
        user.is_none_or(|user| user == "anonymous" || Some(user.as_str()) == number)
    }

    fn subscribed(&mut self, key: &ServerKey, flow: &Flow, request: &Request) {
        let Some(extension) = self.phone(key, flow, request) else { return };
        let Requests { now, directory, .. } = *self;
        let mut context = SubscribeContext { now, ua: self.ua, directory, subscriptions: self.subscriptions };
        if let Err(reply) = context.subscribe(extension, key, flow, request) {
            self.respond(key, reply);
        }
    }

    /// Returns the extension that sent a request; challenges or refuses any other sender.
    fn phone(&mut self, key: &ServerKey, flow: &Flow, request: &Request) -> Option<ExtensionId> {
        let context = SenderContext {
            ua: self.ua,
            registrar: self.registrar,
            directory: self.directory,
            outputs: self.outputs,
        };
        self.senders.phone(self.now, (key, flow), request, context)
    }

    fn respond(&mut self, key: &ServerKey, reply: Reply) {
        // Fails when the transaction is over, for example because a CANCEL or BYE crossed.
        let _ = self.ua.respond(self.now.instant, key, reply);
    }

    /// Refuses an unknown sender without keeping state.
    fn refuse(&mut self, key: &ServerKey, reply: Reply) {
        // Fails when the transaction is already over; then no response is needed.
        let _ = self.ua.refuse(self.now.instant, key, reply);
    }
}

/// Returns the number that an INVITE dials. An INVITE for our account at a registrar has the number in To;
/// otherwise the trunk's organisation must have just one number.
pub(super) fn number_dialled(
    now: Now,
    request: &Request,
    source: IpAddr,
    directory: &Directory,
    registrations: &Registrations,
) -> String {
    let user = request.parsed_uri().ok().and_then(|uri| dialled(&uri)).unwrap_or_default();
    let account = registrations.account(now.instant, &user, source);
    let Some(trunk) = account.and_then(|id| directory.trunk(id)) else { return user };
    let to = request.to().ok().and_then(|to| dialled(&to.uri));
    let in_to = to.filter(|number| directory.number_of_carrier(trunk, number).is_some());
    let only = || trunk.organisation_id.and_then(|owner| directory.only_number(owner));
    in_to.or_else(|| only().map(|number| number.number.clone())).unwrap_or(user)
}

/// Returns the offer of an INVITE that arrived from `source`.
///
/// # Errors
/// The refusal of its body.
pub(super) fn offer_of(request: &Request, source: IpAddr) -> Result<Option<SessionDescription>, Reply> {
    if request.body().is_empty() {
        return Ok(None);
    }
    let encoding = request.header(Name::ContentEncoding);
    if encoding.is_some_and(|encoding| !encoding.eq_ignore_ascii_case("identity")) {
        let reply = Reply::new(StatusCode::UNSUPPORTED_MEDIA_TYPE);
        return Err(reply.header(Name::AcceptEncoding.as_str(), "identity"));
    }
    if sdp_part(request.headers(), request.body()).is_none() {
        // The sender does not need this body to be understood (RFC 3261 §8.2.3).
        if is_optional(request.headers()) {
            return Ok(None);
        }
        let reply = Reply::new(StatusCode::UNSUPPORTED_MEDIA_TYPE);
        return Err(reply.header(Name::Accept.as_str(), SDP));
    }
    match description(request.headers(), request.body()) {
        Some(offer) => match unreachable(&offer, request.headers(), Some(source)) {
            Some(refusal) => Err(refusal),
            None => Ok(Some(offer)),
        },
        None => Err(Reply::new(StatusCode::BAD_REQUEST).reason("Bad Session Description")),
    }
}

/// Whether a body may be ignored: `handling=optional` in Content-Disposition (RFC 3204 §6).
fn is_optional(headers: &Headers) -> bool {
    let params = headers.header(Name::ContentDisposition).and_then(|value| value.split_once(';'));
    let handling = params.and_then(|(_, params)| {
        params.split(';').filter_map(|param| param.split_once('=')).find_map(|(name, value)| {
            name.trim().eq_ignore_ascii_case("handling").then(|| value.trim().trim_matches('"'))
        })
    });
    handling.is_some_and(|handling| handling.eq_ignore_ascii_case("optional"))
}

/// The properties of a party from the headers of its message.
#[derive(Debug)]
pub(super) struct PartyHeaders {
    /// The form of its keys without telephone events.
    pub(super) key_form: KeyForm,
    /// Its User-Agent, as a record contains it.
    pub(super) user_agent: Option<String>,
    /// The time in which its INVITE may be answered, if it sets one.
    pub(super) expires: Option<Duration>,
}

impl PartyHeaders {
    pub(super) fn of(headers: &Headers) -> Self {
        let user_agent = headers.user_agent().and_then(|text| device::user_agent(&text));
        // 0 is the value of devices that do not know the header.
        let expires = headers.expires().filter(|seconds| *seconds > 0);
        let expires = expires.map(|seconds| Duration::from_secs(seconds.into()));
        Self { key_form: key_form(headers), user_agent, expires }
    }
}

/// An INVITE whose sender is identified: its leg and transaction, its source and its offer.
#[derive(Debug)]
pub(super) struct Invitation {
    pub(super) leg: LegKey,
    pub(super) key: ServerKey,
    pub(super) source: IpAddr,
    pub(super) offer: Option<SessionDescription>,
    pub(super) party: PartyHeaders,
    /// The binding of the phone that calls, if it is registered.
    pub(super) binding: Option<BindingId>,
}

/// Returns the call for an INVITE that passed all checks.
pub(super) fn call_of(
    invitation: Invitation,
    placement: Placement,
    (session_id, keys): (u64, KeySeed),
    limits: Limits,
    directory: &Directory,
    conferences: &Conferences,
) -> NewCall {
    let Invitation { leg, key, source, offer, party, binding } = invitation;
    let PartyHeaders { key_form, user_agent, expires } = party;
    let Placement { facts, caller, caller_policy, callee_policy, srtp, onward, asked, forwards, diverted } =
        placement;
    let side = CallerSide { offer, policy: caller_policy, key_form, user_agent, srtp: srtp.0, at: source };
    let bridge = |caller, callees| Sides::Bridge {
        caller,
        callee: CalleeSide { policy: callee_policy, srtp: srtp.1, callees, forwards },
    };
    let (sides, callees, hunt, goal) = match onward {
        Onward::Bindings(callees) => {
            let at_once = callees.iter().map(|callee| callee.at).collect();
            (bridge(side, Callees::AtOnce(at_once)), callees, None, None)
        }
        Onward::Room(goal) => (Sides::IntoRoom { caller: side }, Vec::new(), None, Some(goal)),
        Onward::World(hunt) => (bridge(side, Callees::InTurn), Vec::new(), Some(*hunt), None),
    };
    let group = goal.as_ref().and_then(|goal| conferences.group_of(goal)).unwrap_or(session_id);
    let limits = Limits { expires, ..limits_of(limits, directory, &facts) };
    let setup = Setup { limits, facts, sides, session_id, group, keys };
    let caller = Caller { invite: Some(key), key: leg, identity: caller, binding };
    NewCall { setup, caller: Some(caller), callees, hunt, goal, asked: Some(asked), diverted, request: None }
}

/// Returns the binding of the phone that called. The requests of its call are sent to the source of its INVITE, or to
/// the source of a later REGISTER, because the phone may be behind a NAT.
pub(super) fn binding_of(
    now: Now,
    leg: LegKey,
    sender: &Sender,
    flow: &Flow,
    request: &Request,
    shared: &mut Shared,
) -> Option<BindingId> {
    let Sender::Extension(id) = sender else { return None };
    shared.ua.keep_to_flow(leg);
    let directory = &shared.directory;
    let aor = directory.extension(*id).and_then(|extension| directory.aor(extension))?;
    let contacts = request.contacts().ok();
    let contact = contacts.as_ref().and_then(|contacts| contacts.first());
    shared.registrar.binding_of(&aor, now.instant, contact, flow)
}

/// The response to a shorter OPTIONS has no Supported: with it, it could exceed the limit for unauthenticated senders.
const WITH_SUPPORTED_MIN: usize = 400;
