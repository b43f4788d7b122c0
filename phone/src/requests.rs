//! A phone's requests other than INVITE: REGISTER and acknowledgements; and the notes that it receives.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rand::RngExt;
use rand::rngs::StdRng;
use sidetone_media::time::Micros;
use sidetone_sip::message::{Method, Request, Response, StatusCode};
use sidetone_sip::transaction::{ClientKey, SendError, ServerKey};
use sidetone_sip::ua::{Content, Draft, LegKey, Reply, Retried};
use tokio::sync::oneshot;

use crate::command::PhoneError;
use crate::config::News;
use crate::endpoint::{Endpoint, now};
use crate::notes::{Arrival, Channel, JSON, Notebook, Noting, Parcel, ShownNote};
use crate::packet_capture::monotonic_wall;

/// A request of the phone that waits for its response, and the receiver of its result.
pub(super) struct Pending {
    waiter: Waiter,
    /// Whether a challenge is answered.
    authenticates: bool,
}

enum Waiter {
    /// No caller waits, such as for an acknowledgement that the phone sends by itself.
    None,
    Register(oneshot::Sender<(u16, Duration)>),
    Status(oneshot::Sender<Result<u16, PhoneError>>),
}

impl Pending {
    pub(super) fn finish(self, status: u16, lasts: Duration) {
        // The owner may have dropped the phone; then no caller waits.
        match self.waiter {
            Waiter::None => {}
            Waiter::Register(done) => drop(done.send((status, lasts))),
            Waiter::Status(done) => drop(done.send(Ok(status))),
        }
    }
}

/// The phone's requests other than INVITE, and the notes that it received.
pub(super) struct Requests {
    notes: Arc<Notebook>,
    /// Requests that wait for their response.
    pending: HashMap<ClientKey, Pending>,
    /// Responses to notes that are sent later.
    owed: Vec<(Instant, ServerKey)>,
    register_cseq: u32,
    /// The Call-ID of all REGISTER requests.
    call_id: String,
}

impl Requests {
    pub(super) fn new(rng: &mut StdRng, notes: Arc<Notebook>) -> Self {
        let call_id = format!("{:032x}", rng.random::<u128>());
        Requests { notes, pending: HashMap::new(), owed: Vec::new(), register_cseq: 0, call_id }
    }

    /// The time of the next delayed response.
    pub(super) fn next_due(&self) -> Option<Instant> {
        self.owed.iter().map(|(at, _)| *at).min()
    }

    /// Sends the responses that are due.
    pub(super) fn timeout(&mut self, phone: &mut Endpoint, now: Instant) {
        while let Some(at) = self.owed.iter().position(|(at, _)| *at <= now) {
            let (_, key) = self.owed.swap_remove(at);
            phone.respond(&key, 200);
        }
    }

    pub(super) fn register(
        &mut self,
        phone: &mut Endpoint,
        seconds: u32,
        done: oneshot::Sender<(u16, Duration)>,
    ) {
        self.register_cseq += 1;
        let aor = format!("<sip:{}@{}>", phone.config.number, phone.config.domain);
        let transport = if phone.transport.is_tcp() { ";transport=tcp" } else { "" };
        let draft = Draft::new(Method::Register, format!("sip:{}", phone.config.domain), aor.clone(), aor)
            .sequence(self.call_id.clone(), self.register_cseq)
            .header("Contact", format!("<sip:{}@{}{transport}>", phone.config.number, phone.local()))
            .header("Expires", seconds.to_string());
        if let Ok(key) = phone.ua.request(now(), phone.flow(), draft) {
            self.pending.insert(key, Pending { waiter: Waiter::Register(done), authenticates: true });
        }
    }

    pub(super) fn acknowledge(
        &mut self,
        phone: &mut Endpoint,
        id: &str,
        at: Micros,
        done: oneshot::Sender<Result<u16, PhoneError>>,
    ) {
        match self.notes.find(id) {
            Some((note, leg)) => self.tap(phone, &note, leg, at, Waiter::Status(done)),
            // The owner may have dropped the phone; then no caller waits.
            None => drop(done.send(Err(PhoneError::NoNote(id.to_owned())))),
        }
    }

    /// Acknowledges over the channel on which the note was received.
    fn tap(
        &mut self,
        phone: &mut Endpoint,
        note: &ShownNote,
        leg: Option<LegKey>,
        at: Micros,
        waiter: Waiter,
    ) {
        let parcel = Parcel::new(note.channel, note.acknowledgement(at).to_string());
        self.dispatch(phone, &parcel, leg, waiter);
    }

    /// Sends a parcel; an INFO in the call `leg`.
    pub(super) fn send(
        &mut self,
        phone: &mut Endpoint,
        parcel: &Parcel,
        leg: Option<LegKey>,
        done: oneshot::Sender<Result<u16, PhoneError>>,
    ) {
        self.dispatch(phone, parcel, leg, Waiter::Status(done));
    }

    fn dispatch(&mut self, phone: &mut Endpoint, parcel: &Parcel, leg: Option<LegKey>, waiter: Waiter) {
        let content = Content::new(parcel.content_type.clone(), parcel.body.clone());
        let sent = match (parcel.channel, leg) {
            (Channel::Info, Some(leg)) => phone.ua.info(now(), leg, content),
            (Channel::Info, None) => Err(SendError::WrongState),
            (Channel::Message, _) => {
                let domain = &phone.config.domain;
                let from = parcel.from.as_ref().unwrap_or(&phone.config.number);
                let uri = format!("sip:{}@{domain}", parcel.to);
                let from = format!("<sip:{from}@{domain}>");
                let draft = Draft::message(uri.clone(), from, format!("<{uri}>"), content);
                phone.ua.request(now(), phone.flow(), draft)
            }
        };
        match (sent, waiter) {
            (Ok(key), waiter) => {
                self.pending.insert(key, Pending { waiter, authenticates: parcel.authenticates });
            }
            // The owner may have dropped the phone; then no caller waits.
            (Err(_), Waiter::Status(done)) => drop(done.send(Err(PhoneError::NoCall))),
            (Err(_), Waiter::None | Waiter::Register(_)) => {}
        }
    }

    pub(super) fn unanswered(&mut self, key: ClientKey) {
        if let Some(pending) = self.pending.remove(&key) {
            pending.finish(StatusCode::REQUEST_TIMEOUT.as_u16(), Duration::ZERO);
        }
    }

    pub(super) fn response(
        &mut self,
        phone: &mut Endpoint,
        key: ClientKey,
        response: &Response,
        request: Option<Request>,
    ) {
        if !response.status().is_final() {
            return;
        }
        let Some(pending) = self.pending.remove(&key) else { return };
        let status = response.status().as_u16();
        let is_challenge = matches!(status, 401 | 407) && pending.authenticates;
        let again = request.filter(|_| is_challenge).and_then(|request| phone.authorized(response, request));
        match again {
            Some(Retried::Transaction(key)) => {
                if matches!(pending.waiter, Waiter::Register(_)) {
                    self.register_cseq += 1;
                }
                self.pending.insert(key, pending);
            }
            _ => pending.finish(status, granted(phone, response)),
        }
    }

    /// Handles a request that may be a note.
    pub(super) fn note(
        &mut self,
        phone: &mut Endpoint,
        leg: Option<LegKey>,
        key: ServerKey,
        request: &Request,
    ) {
        let channel = if *request.method() == Method::Info { Channel::Info } else { Channel::Message };
        let after = match phone.config.notes {
            Noting::Ignore => return,
            Noting::Refuse(status) => return phone.respond(&key, status),
            Noting::Late(after) => Some(after),
            Noting::Show | Noting::Tap => None,
        };
        // An INFO without a body only checks that the call exists (RFC 6086 §4.2.1 requires a 200).
        if request.body().is_empty() && channel == Channel::Info {
            return phone.respond(&key, 200);
        }
        if !request.is_content_type(JSON) {
            let reply = Reply::new(StatusCode::UNSUPPORTED_MEDIA_TYPE).header("Accept", JSON);
            phone.reply(&key, reply);
            return;
        }
        let from = request.from().map(|from| from.uri.to_string()).unwrap_or_default();
        let call_id = leg.map(|_| request.call_id().to_owned());
        let arrival = Arrival { channel, from, call_id, at: monotonic_wall() };
        let Some(note) = ShownNote::read(request.body(), arrival) else {
            return phone.respond(&key, 400);
        };
        phone.report(News::Note(Box::new(note.clone())));
        self.notes.keep(note.clone(), leg);
        match after {
            Some(after) => self.owed.push((now() + after, key)),
            None => phone.respond(&key, 200),
        }
        if note.ack && phone.config.notes == Noting::Tap {
            self.tap(phone, &note, leg, monotonic_wall(), Waiter::None);
        }
    }
}

/// The duration that the switch grants the binding (RFC 3261 §10.2.4).
fn granted(phone: &Endpoint, response: &Response) -> Duration {
    let own = phone.local().to_string();
    let contact = response.list("Contact").find(|contact| contact.contains(&own));
    let parameter = contact.and_then(|contact| {
        let (_, value) = contact.split_once(";expires=")?;
        value.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
    });
    Duration::from_secs(parameter.or(response.expires()).unwrap_or_default().into())
}
