//! A request in progress, as its messages show it: how often it was sent, which host sent which response, and why it
//! failed.

use std::net::SocketAddr;

use sidetone_media::time::Micros;
use sidetone_model::failure::{Failure, FailureKind, Reason};
use sidetone_sip::message::{Contacts, Headers, Name, Request, Response};

use super::ladder::short;

/// The attempts at one call, or at one registration.
#[derive(Debug, Default)]
pub(super) struct Attempt {
    /// The destination of the last request.
    to: Option<SocketAddr>,
    /// The number of the latest request, and the branch of its topmost Via.
    number: Option<u32>,
    branch: String,
    began: Option<Micros>,
    tries: u32,
    sent: u32,
    challenges: u32,
    credentials: u32,
    /// The highest provisional response to the latest request.
    provisional: u16,
    rang: bool,
    /// The latest final response, and how often it was repeated in a row.
    latest: (u16, u32),
    /// The response that ended the latest request, and the earlier response of a later hop.
    refusal: Option<Box<Refusal>>,
    behind: Option<Box<Refusal>>,
    /// Whether and why the caller gave up.
    cancelled: bool,
    cancel_reasons: Vec<Reason>,
}

/// A final response other than success.
#[derive(Clone, Debug)]
struct Refusal {
    status: u16,
    phrase: String,
    by: SocketAddr,
    server: Option<String>,
    reasons: Vec<Reason>,
    warnings: Vec<String>,
    details: Vec<String>,
}

impl Attempt {
    /// Takes a request, which was sent to `to`.
    pub(super) fn request(&mut self, at: Micros, to: SocketAddr, number: u32, request: &Request) {
        self.began.get_or_insert(at);
        self.to = Some(to);
        self.sent = self.sent.saturating_add(1);
        if self.number == Some(number) {
            return;
        }
        self.number = Some(number);
        self.branch = branch(request);
        self.tries = self.tries.saturating_add(1);
        (self.provisional, self.refusal, self.behind, self.cancelled) = (0, None, None, false);
        let headers = request.headers();
        if headers.contains(Name::Authorization) || headers.contains(Name::ProxyAuthorization) {
            self.credentials = self.credentials.saturating_add(1);
        }
    }

    /// Takes a response to the request with that CSeq number.
    pub(super) fn response(&mut self, by: SocketAddr, number: u32, response: &Response) {
        let status = response.status().as_u16();
        if self.number != Some(number) || self.refusal.is_some() {
            return;
        }
        match status {
            100..=199 => {
                self.provisional = self.provisional.max(status);
                self.rang |= matches!(status, 180 | 183);
            }
            200..=299 => {}
            _ => {
                let before = if self.latest.0 == status { self.latest.1 } else { 0 };
                self.latest = (status, before.saturating_add(1));
                self.challenges = self.challenges.saturating_add(u32::from(is_challenge(status)));
                let seen_behind = self.behind.take().filter(|behind| behind.status == status);
                self.refusal = Some(seen_behind.unwrap_or_else(|| Box::new(Refusal::of(by, response))));
            }
        }
    }

    /// Takes a response on a later hop than the one observed: it may show where a refusal comes from.
    pub(super) fn response_behind(&mut self, by: SocketAddr, response: &Response) {
        let status = response.status().as_u16();
        if status >= 300 && !is_challenge(status) && status != CANCELLED && self.behind.is_none() {
            self.behind = Some(Box::new(Refusal::of(by, response)));
        }
    }

    /// Whether an ACK shows that the latest request was accepted, although its response was not captured: the ACK of a
    /// refusal has the branch of its request, the ACK of a 2xx another one (RFC 3261 §17.1.1.3, §13.2.2.4).
    pub(super) fn is_accepted_by(&self, number: u32, ack: &Request) -> bool {
        let own = branch(ack);
        let is_another = !own.is_empty() && !self.branch.is_empty() && own != self.branch;
        self.number == Some(number) && self.refusal.is_none() && is_another
    }

    /// Takes the caller's CANCEL.
    pub(super) fn cancel(&mut self, request: &Request) {
        (self.cancelled, self.cancel_reasons) = (true, reasons(request.headers()));
    }

    /// Returns the number of requests with a CSeq number of their own.
    pub(super) fn tries(&self) -> u32 {
        self.tries
    }

    /// Returns the final response to the latest request, unless it is a success.
    pub(super) fn status(&self) -> Option<u16> {
        self.refusal.as_ref().map(|refusal| refusal.status)
    }

    /// Returns why the request had failed by `last`; `offered` are the codecs of the offer.
    pub(super) fn failure(&self, last: Micros, offered: &[String]) -> Failure {
        let refusal = self.refusal.as_deref();
        let kind = match refusal.map(|refusal| refusal.status) {
            _ if self.cancelled => FailureKind::Cancelled,
            Some(status) if is_challenge(status) => FailureKind::Challenged,
            Some(300..=399) => FailureKind::Redirected,
            Some(_) => FailureKind::Refused,
            None if self.provisional > 0 => FailureKind::NoFinalResponse,
            None => FailureKind::NoResponse,
        };
        let mut failure = Failure {
            rang: self.rang,
            tries: self.tries,
            sent: self.sent,
            challenges: self.challenges,
            credentials: self.credentials,
            lasted_ms: self.began.map_or(0, |began| last.since(began) / 1_000),
            refused_by: self.to.map(|to| to.to_string()),
            reasons: self.cancel_reasons.clone(),
            ..Failure::of(kind)
        };
        let Some(refusal) = refusal else { return failure };
        failure.status = Some(refusal.status);
        if self.cancelled {
            return failure;
        }
        failure.phrase = Some(refusal.phrase.clone()).filter(|phrase| !phrase.is_empty());
        failure.refused_by = Some(refusal.by.to_string());
        failure.server = refusal.server.clone();
        failure.repeated = self.latest.1.max(1);
        failure.reasons = refusal.reasons.clone();
        failure.warnings = refusal.warnings.clone();
        failure.details = refusal.details.clone();
        if matches!(refusal.status, 415 | 488 | 606) && !offered.is_empty() {
            failure.details.push(format!("The caller offered {}.", offered.join(", ")));
        }
        failure
    }
}

impl Refusal {
    fn of(by: SocketAddr, response: &Response) -> Refusal {
        let headers = response.headers();
        let warnings = headers.header_all(Name::Warning).take(TEXTS_MAX).map(short).collect();
        Refusal {
            status: response.status().as_u16(),
            phrase: short(&response.reason()),
            by,
            server: headers.user_agent().map(|server| short(&server)).filter(|server| !server.is_empty()),
            reasons: reasons(headers),
            warnings,
            details: details(response),
        }
    }
}

/// Details that the headers of a refusal give in addition to its status.
fn details(response: &Response) -> Vec<String> {
    let headers = response.headers();
    let mut details = Vec::new();
    let status = response.status().as_u16();
    if let Some(seconds) = headers.min_se().filter(|_| status == 422) {
        details.push(format!("It wants a session timer of {seconds} seconds or more (Min-SE)."));
    }
    if let Some(seconds) = headers.min_expires().filter(|_| status == 423) {
        details.push(format!("It wants {seconds} seconds or more (Min-Expires)."));
    }
    if let Some(after) = headers.header(Name::RetryAfter) {
        details.push(format!("It asks to try again after {} seconds (Retry-After).", short(after)));
    }
    let challenge = headers.www_authenticate().chain(headers.proxy_authenticate()).find_map(Result::ok);
    if let Some(realm) = challenge.as_ref().and_then(|challenge| challenge.get("realm")) {
        details.push(format!("The password is that of the realm \"{}\".", short(&realm)));
    }
    if let (300..=399, Ok(Contacts::List(contacts))) = (status, headers.contacts())
        && let Some(contact) = contacts.first()
    {
        details.push(format!("It names {} instead.", short(&contact.uri.to_string())));
    }
    details
}

fn reasons(headers: &Headers) -> Vec<Reason> {
    let reasons = headers.reasons().take(TEXTS_MAX);
    reasons
        .map(|reason| Reason {
            protocol: short(&reason.protocol),
            cause: reason.cause,
            text: reason.text.map(|text| short(&text)).filter(|text| !text.is_empty()),
        })
        .collect()
}

/// The branch of the topmost Via; empty without one.
fn branch(request: &Request) -> String {
    request.headers().via_top().ok().and_then(|via| via.branch().map(str::to_owned)).unwrap_or_default()
}

fn is_challenge(status: u16) -> bool {
    matches!(status, 401 | 407)
}

/// Request Terminated: the response to a cancelled INVITE.
const CANCELLED: u16 = 487;
/// Headers of one kind that are reported.
const TEXTS_MAX: usize = 4;
