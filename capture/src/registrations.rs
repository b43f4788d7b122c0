//! The registrations of a capture: which device registered where, the number of attempts, and the result.

use std::collections::HashMap;
use std::net::SocketAddr;

use serde::Serialize;
use sidetone_media::time::Micros;
use sidetone_model::failure::{Failure, Request};
use sidetone_model::time::Timestamp;
use sidetone_sip::message::{Contacts, Message, Method};

use super::attempt::Attempt;
use super::ladder::short;

/// The registrations of a capture by Call-ID and address of record.
#[derive(Debug, Default)]
pub(super) struct Registrations {
    by_id: HashMap<String, usize>,
    all: Vec<Registration>,
}

/// One device at one registrar, under one address of record.
#[derive(Debug)]
struct Registration {
    aor: String,
    user_agent: Option<String>,
    /// The first REGISTER went from the first to the second of these.
    hop: (SocketAddr, SocketAddr),
    first: Micros,
    last: Micros,
    attempt: Attempt,
    tries: u32,
    accepted: u32,
    /// The requested duration of the latest request, in seconds.
    asked: Option<u32>,
    purpose: Purpose,
    granted: Option<u32>,
    state: State,
}

/// The purpose of a REGISTER.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Purpose {
    Bind,
    Query,
    Unbind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Accepted,
    Open,
}

/// One registration as it is reported.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RegistrationReport {
    /// The address of record, as `1001@example.org`.
    pub aor: String,
    /// The source of the requests.
    pub from: String,
    /// Their destination.
    pub registrar: String,
    /// The device's User-Agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user_agent: Option<String>,
    /// The first request.
    pub first_at: Timestamp,
    /// The last message.
    pub last_at: Timestamp,
    /// Requests with a CSeq number of their own.
    pub tries: u32,
    /// How often it was accepted.
    pub accepted: u32,
    /// `registered`, `unregistered`, `queried`; otherwise how the last attempt failed: `challenged`,
    /// `no_final_response`, `no_response`, `redirected`, `refused`.
    pub result: &'static str,
    /// The last final response.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sip_status: Option<u16>,
    /// The duration that the registrar granted, in seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires_s: Option<u32>,
    /// Why it was not accepted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure: Option<Box<Failure>>,
    /// The result as a sentence.
    pub sentence: String,
}

impl RegistrationReport {
    /// Whether the last attempt was not accepted.
    pub fn is_failed(&self) -> bool {
        self.failure.is_some()
    }
}

impl Registrations {
    /// Takes a REGISTER or its response; false when there are too many registrations already.
    pub(super) fn message(&mut self, at: Micros, hop: (SocketAddr, SocketAddr), message: &Message) -> bool {
        let headers = message.headers();
        let (Ok(to), Ok(cseq)) = (headers.to(), headers.cseq()) else { return true };
        let user = to.uri.user_decoded().map(|user| user.into_owned()).unwrap_or_default();
        let host = to.uri.host().map(ToString::to_string).unwrap_or_default();
        let aor = if user.is_empty() { host } else { format!("{user}@{host}") };
        let key = format!("{} {aor}", headers.call_id());
        let place = match (self.by_id.get(&key).copied(), message) {
            (Some(place), _) => place,
            // A response whose request was not captured is ignored.
            (None, Message::Response(_)) => return true,
            (None, Message::Request(_)) if self.all.len() >= REGISTRATIONS_MAX => return false,
            (None, Message::Request(_)) => {
                self.by_id.insert(key, self.all.len());
                self.all.push(Registration::begin(at, hop, short(&aor)));
                self.all.len() - 1
            }
        };
        if let Some(registration) = self.all.get_mut(place).filter(|known| known.is_its_hop(hop)) {
            registration.message(at, hop, message, cseq.number);
        }
        true
    }

    /// Returns the results of all registrations, by their first request.
    pub(super) fn reports(&self) -> Vec<RegistrationReport> {
        self.all.iter().filter(|known| known.attempt.tries() > 0).map(Registration::report).collect()
    }
}

impl Registration {
    fn begin(at: Micros, hop: (SocketAddr, SocketAddr), aor: String) -> Self {
        Registration {
            aor,
            user_agent: None,
            hop,
            first: at,
            last: at,
            attempt: Attempt::default(),
            tries: 0,
            accepted: 0,
            asked: None,
            purpose: Purpose::Query,
            granted: None,
            state: State::Open,
        }
    }

    /// Whether a message is on the hop between the device and its first destination, not on a later hop.
    fn is_its_hop(&self, (source, destination): (SocketAddr, SocketAddr)) -> bool {
        let (device, registrar) = self.hop;
        let ends = |one: SocketAddr, other: SocketAddr| {
            one == device || (one.ip() == device.ip() && other.ip() == registrar.ip())
        };
        ends(source, destination) || ends(destination, source)
    }

    fn message(
        &mut self,
        at: Micros,
        (source, destination): (SocketAddr, SocketAddr),
        message: &Message,
        number: u32,
    ) {
        self.last = self.last.max(at);
        match message {
            Message::Request(request) => {
                if self.state == State::Accepted {
                    // Another registration, or the same one again: it is judged by its own result.
                    self.tries = self.tries.saturating_add(self.attempt.tries());
                    (self.attempt, self.state) = (Attempt::default(), State::Open);
                }
                self.attempt.request(at, destination, number, request);
                let headers = request.headers();
                if let Some(agent) = headers.user_agent() {
                    self.user_agent = Some(short(&agent)).filter(|agent| !agent.is_empty());
                }
                let in_contact = longest(headers.contacts().ok());
                self.asked = in_contact.or_else(|| headers.expires());
                self.purpose = match headers.contacts() {
                    Ok(Contacts::List(list)) if list.is_empty() => Purpose::Query,
                    Ok(Contacts::Star) => Purpose::Unbind,
                    _ if self.asked == Some(0) => Purpose::Unbind,
                    _ => Purpose::Bind,
                };
            }
            Message::Response(response) => {
                let is_success = (200..300).contains(&response.status().as_u16());
                if is_success && self.state == State::Open {
                    self.state = State::Accepted;
                    self.accepted = self.accepted.saturating_add(1);
                    let headers = response.headers();
                    let granted = longest(headers.contacts().ok()).or_else(|| headers.expires());
                    self.granted = granted.or(self.asked).filter(|_| self.purpose == Purpose::Bind);
                }
                self.attempt.response(source, number, response);
            }
        }
    }

    fn report(&self) -> RegistrationReport {
        let failure = (self.state == State::Open).then(|| Box::new(self.attempt.failure(self.last, &[])));
        let tries = self.tries.saturating_add(self.attempt.tries());
        let (result, sentence) = match (&failure, self.purpose) {
            (Some(failure), _) => (failure.kind.as_str(), failure.sentence(Request::Registration)),
            (None, Purpose::Query) => {
                ("queried", format!("The device asked {} what is registered, and was answered.", self.hop.1))
            }
            (None, Purpose::Unbind) => ("unregistered", format!("The device logged out at {}.", self.hop.1)),
            (None, Purpose::Bind) => ("registered", self.accepted_words()),
        };
        let sentence = match (&failure, self.accepted) {
            (Some(_), 1..) => format!("It was accepted before, and then no more. {sentence}"),
            _ => sentence,
        };
        let timestamp = |at: Micros| Timestamp::from_micros(at.0);
        RegistrationReport {
            aor: self.aor.clone(),
            from: self.hop.0.to_string(),
            registrar: self.hop.1.to_string(),
            user_agent: self.user_agent.clone(),
            first_at: timestamp(self.first),
            last_at: timestamp(self.last),
            tries,
            accepted: self.accepted,
            result,
            sip_status: if failure.is_some() { self.attempt.status() } else { Some(200) },
            expires_s: self.granted.filter(|_| failure.is_none()),
            failure,
            sentence,
        }
    }

    fn accepted_words(&self) -> String {
        let until = match self.granted {
            Some(seconds) => format!(" for {seconds} seconds"),
            None => String::new(),
        };
        let again = match self.accepted {
            0 | 1 => String::new(),
            count => format!(", {count} times in this capture"),
        };
        format!("{} accepted the registration{until}{again}.", self.hop.1)
    }
}

/// The longest duration of several contacts; `None` if none has one.
fn longest(contacts: Option<Contacts>) -> Option<u32> {
    match contacts? {
        Contacts::List(list) => list.iter().filter_map(sidetone_sip::message::NameAddr::expires).max(),
        Contacts::Star => Some(0),
    }
}

/// Whether a message is a REGISTER, or a response to one.
pub(super) fn is_registration(message: &Message) -> bool {
    message.headers().cseq().is_ok_and(|cseq| cseq.method == Method::Register)
}

/// Largest number of registrations of one capture.
const REGISTRATIONS_MAX: usize = 100_000;
