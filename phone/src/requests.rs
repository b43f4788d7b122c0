//! A phone's requests other than INVITE: REGISTER and acknowledgements; and the notes that it receives.

use std::time::Duration;

use sidetone_media::time::Micros;
use sidetone_sip::message::{Digest, Method, Request, Response, StatusCode};
use sidetone_sip::transaction::{ClientKey, SendError, ServerKey};
use sidetone_sip::ua::{Content, Draft, Extra, LegKey, Reply, Retried};
use tokio::sync::oneshot;

use crate::actor::{Actor, now};
use crate::handset::PhoneError;
use crate::notes::{Arrival, Channel, JSON, Noting, Parcel, ShownNote};
use crate::plan::News;
use crate::tap::monotonic_wall;

/// The waiter for the answer to one of the phone's requests.
pub(super) struct Pending {
    waiter: Waiter,
    /// Whether a challenge is answered.
    authenticates: bool,
}

enum Waiter {
    /// An acknowledgement that no caller waits for.
    Nobody,
    Register(oneshot::Sender<(u16, Duration)>),
    Status(oneshot::Sender<Result<u16, PhoneError>>),
}

impl Pending {
    pub(super) fn finish(self, status: u16, lasts: Duration) {
        // The handset may have been dropped; then no caller waits.
        match self.waiter {
            Waiter::Nobody => {}
            Waiter::Register(done) => drop(done.send((status, lasts))),
            Waiter::Status(done) => drop(done.send(Ok(status))),
        }
    }
}

impl Actor {
    pub(super) fn register(&mut self, seconds: u32, done: oneshot::Sender<(u16, Duration)>) {
        self.register_cseq += 1;
        let aor = format!("<sip:{}@{}>", self.config.number, self.config.domain);
        let transport = if self.is_tcp() { ";transport=tcp" } else { "" };
        let draft = Draft::new(Method::Register, format!("sip:{}", self.config.domain), aor.clone(), aor)
            .sequence(self.call_id.clone(), self.register_cseq)
            .header("Contact", format!("<sip:{}@{}{transport}>", self.config.number, self.local()))
            .header("Expires", seconds.to_string());
        if let Ok(key) = self.ua.request(now(), self.flow(), draft) {
            self.pending.insert(key, Pending { waiter: Waiter::Register(done), authenticates: true });
        }
    }

    pub(super) fn acknowledge(
        &mut self,
        id: &str,
        at: Micros,
        done: oneshot::Sender<Result<u16, PhoneError>>,
    ) {
        match self.lines.notes.find(id) {
            Some((note, leg)) => self.tap(&note, leg, at, Waiter::Status(done)),
            // The handset may have been dropped; then no caller waits.
            None => drop(done.send(Err(PhoneError::NoNote(id.to_owned())))),
        }
    }

    /// Acknowledges over the channel that the note came by.
    fn tap(&mut self, note: &ShownNote, leg: Option<LegKey>, at: Micros, waiter: Waiter) {
        let parcel = Parcel::new(note.channel, note.acknowledgement(at).to_string());
        self.dispatch(&parcel, leg, waiter);
    }

    pub(super) fn send(&mut self, parcel: &Parcel, done: oneshot::Sender<Result<u16, PhoneError>>) {
        let up = self.calls.iter().filter(|(_, call)| call.up);
        let newest = up.max_by_key(|(_, call)| call.number).map(|(leg, _)| *leg);
        self.dispatch(parcel, newest, Waiter::Status(done));
    }

    fn dispatch(&mut self, parcel: &Parcel, leg: Option<LegKey>, waiter: Waiter) {
        let content = Content::new(parcel.content_type.clone(), parcel.body.clone());
        let sent = match (parcel.channel, leg) {
            (Channel::Info, Some(leg)) => self.ua.info(now(), leg, content),
            (Channel::Info, None) => Err(SendError::WrongState),
            (Channel::Message, _) => {
                let domain = &self.config.domain;
                let from = parcel.from.as_ref().unwrap_or(&self.config.number);
                let uri = format!("sip:{}@{domain}", parcel.to);
                let from = format!("<sip:{from}@{domain}>");
                let draft = Draft::message(uri.clone(), from, format!("<{uri}>"), content);
                self.ua.request(now(), self.flow(), draft)
            }
        };
        match (sent, waiter) {
            (Ok(key), waiter) => {
                self.pending.insert(key, Pending { waiter, authenticates: parcel.authenticates });
            }
            // The handset may have been dropped; then no caller waits.
            (Err(_), Waiter::Status(done)) => drop(done.send(Err(PhoneError::NoCall))),
            (Err(_), Waiter::Nobody | Waiter::Register(_)) => {}
        }
    }

    pub(super) fn unanswered(&mut self, key: ClientKey) {
        if let Some(pending) = self.pending.remove(&key) {
            pending.finish(StatusCode::REQUEST_TIMEOUT.as_u16(), Duration::ZERO);
        }
    }

    pub(super) fn response(&mut self, key: ClientKey, response: &Response, request: Option<Request>) {
        if !response.status().is_final() {
            return;
        }
        let Some(pending) = self.pending.remove(&key) else { return };
        let status = response.status().as_u16();
        let is_challenge = matches!(status, 401 | 407) && pending.authenticates;
        let again = request.filter(|_| is_challenge).and_then(|request| self.authorized(response, request));
        match again {
            Some(Retried::Transaction(key)) => {
                if matches!(pending.waiter, Waiter::Register(_)) {
                    self.register_cseq += 1;
                }
                self.pending.insert(key, pending);
            }
            _ => pending.finish(status, self.granted(response)),
        }
    }

    /// The duration that the switch grants the binding (RFC 3261 §10.2.4).
    fn granted(&self, response: &Response) -> Duration {
        let own = self.local().to_string();
        let contact = response.list("Contact").find(|contact| contact.contains(&own));
        let parameter = contact.and_then(|contact| {
            let (_, value) = contact.split_once(";expires=")?;
            value.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
        });
        Duration::from_secs(parameter.or(response.expires()).unwrap_or_default().into())
    }

    /// Sends a challenged request again with credentials.
    pub(super) fn authorized(&mut self, response: &Response, request: Request) -> Option<Retried> {
        let is_proxy = response.status() == StatusCode::PROXY_AUTHENTICATION_REQUIRED;
        let (challenges, header): (Vec<Digest>, _) = if is_proxy {
            (response.proxy_authenticate().filter_map(Result::ok).collect(), "Proxy-Authorization")
        } else {
            (response.www_authenticate().filter_map(Result::ok).collect(), "Authorization")
        };
        let tried = request.header(header).is_some();
        let answer = self.client.answer(&challenges, tried, request.method().as_str(), request.uri())?;
        let extra = Extra::new().header(header, answer);
        self.ua.retry(now(), self.flow(), request, &extra).ok()
    }

    /// A request that may be a note.
    pub(super) fn note(&mut self, leg: Option<LegKey>, key: ServerKey, request: &Request) {
        let channel = if *request.method() == Method::Info { Channel::Info } else { Channel::Message };
        let after = match self.config.notes {
            Noting::Ignore => return,
            Noting::Refuse(status) => return self.respond(&key, status),
            Noting::Late(after) => Some(after),
            Noting::Show | Noting::Tap => None,
        };
        // An INFO without a body only checks that the call exists (RFC 6086 §4.2.1 requires a 200).
        if request.body().is_empty() && channel == Channel::Info {
            return self.respond(&key, 200);
        }
        if !request.is_content_type(JSON) {
            let reply = Reply::new(StatusCode::UNSUPPORTED_MEDIA_TYPE).header("Accept", JSON);
            let _ = self.ua.respond(now(), &key, reply);
            return;
        }
        let from = request.from().map(|from| from.uri.to_string()).unwrap_or_default();
        let call_id = leg.map(|_| request.call_id().to_owned());
        let arrival = Arrival { channel, from, call_id, at: monotonic_wall() };
        let Some(note) = ShownNote::read(request.body(), arrival) else {
            return self.respond(&key, 400);
        };
        self.tell(News::Note(Box::new(note.clone())));
        self.lines.notes.keep(note.clone(), leg);
        match after {
            Some(after) => self.owed.push((now() + after, key)),
            None => self.respond(&key, 200),
        }
        if note.ack && self.config.notes == Noting::Tap {
            self.tap(&note, leg, monotonic_wall(), Waiter::Nobody);
        }
    }
}
