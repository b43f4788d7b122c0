//! Phones that register with digest; a machine without I/O.
//!
//! A registration begins when it is due, whatever became of the one before. Its request is retransmitted from T1 on
//! (RFC 3261 §17.1.2).

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::net::SocketAddrV4;

use sidetone_sip::auth::Credential;

use crate::program::carrier::{T1, T2};
use crate::program::clock::Nanos;
use crate::program::digest::Challenge;
use crate::program::latency::Latency;
use crate::program::outbox::Outbox;
use crate::program::report::Report;
use crate::program::sip_text::{Header, Message, Start, line, own_number, write_body};

/// How phones register.
#[derive(Clone, Debug)]
pub(crate) struct RegistrationsPlan {
    /// The registrar.
    pub(crate) engine: SocketAddrV4,
    /// The SIP domain.
    pub(crate) domain: String,
    /// The password of every phone.
    pub(crate) password: String,
    /// The number of the first phone.
    pub(crate) first_extension: u32,
    /// The number of phones.
    pub(crate) extensions: u32,
    /// The sockets of the phones with their SIP addresses, assigned round robin.
    pub(crate) sockets: Vec<(usize, SocketAddrV4)>,
    /// `Expires` in seconds.
    pub(crate) expires: u32,
    /// Whether a nonce is used again, with a higher count, until the registrar sends another.
    pub(crate) reuse_nonce: bool,
    /// Distinguishes the messages of this run from those of another.
    pub(crate) run: u32,
}

/// Phones that register.
pub(crate) struct Registrations {
    plan: RegistrationsPlan,
    phones: Vec<Phone>,
    timers: BinaryHeap<Reverse<(Nanos, u32, u32)>>,
    counts: Counts,
    took: Latency,
}

#[derive(Debug, Default)]
struct Counts {
    begun: u64,
    done: u64,
    requests: u64,
    answers: u64,
    challenges: u64,
    retransmissions: u64,
    late: u64,
    failed: BTreeMap<String, u64>,
}

#[derive(Default)]
struct Phone {
    cseq: u32,
    flight: Option<Flight>,
    session: Option<Session>,
}

/// A registration that waits for its response.
#[derive(Clone, Copy)]
struct Flight {
    began: Nanos,
    sent: Nanos,
    is_authorized: bool,
    interval: Nanos,
}

/// The state from the registrar's last challenge to a phone.
struct Session {
    challenge: Challenge,
    credential: Credential,
    count: u32,
}

impl Registrations {
    /// No phone has registered yet.
    pub(crate) fn new(plan: RegistrationsPlan) -> Self {
        Registrations {
            phones: std::iter::repeat_with(Phone::default)
                .take(usize::try_from(plan.extensions).unwrap_or_default())
                .collect(),
            plan,
            timers: BinaryHeap::new(),
            counts: Counts::default(),
            took: Latency::new(),
        }
    }

    /// Begins registration `number`; the phones register in turn.
    pub(crate) fn begin(&mut self, now: Nanos, number: u64, outbox: &mut Outbox) {
        let index = number % u64::from(self.plan.extensions.max(1));
        let index = u32::try_from(index).unwrap_or_default();
        let Some(phone) = phone(&mut self.phones, index) else { return };
        if phone.flight.take().is_some() {
            *self.counts.failed.entry("without an answer".to_owned()).or_default() += 1;
        }
        self.counts.begun += 1;
        let is_authorized = self.plan.reuse_nonce && phone.session.is_some();
        phone.flight = Some(Flight { began: now, sent: now, is_authorized, interval: T1 });
        self.send(now, index, outbox);
    }

    /// Handles a response of the registrar.
    pub(crate) fn handle(&mut self, now: Nanos, message: &Message<'_>, outbox: &mut Outbox) {
        let Start::Response(status) = message.start else { return };
        let index = own_number(message.call_id, 'r', self.plan.run);
        let Some((index, phone)) = index.and_then(|index| Some((index, phone(&mut self.phones, index)?)))
        else {
            self.counts.late += 1;
            return;
        };
        let Some(flight) = phone.flight.filter(|_| phone.cseq == message.cseq) else {
            self.counts.late += 1;
            return;
        };
        match status {
            100..=199 => {}
            200..=299 => {
                self.counts.answers += 1;
                self.counts.done += 1;
                self.took.add(now - flight.began);
                phone.flight = None;
            }
            401 => {
                self.counts.answers += 1;
                let challenge = Challenge::read(message.each(Header::WwwAuthenticate));
                let Some(challenge) = challenge.filter(|new| !flight.is_authorized || new.is_stale) else {
                    return self.fail(index, "refused with 401".to_owned());
                };
                self.counts.challenges += 1;
                let user = (self.plan.first_extension + index).to_string();
                let kept = phone.session.take().filter(|session| session.challenge.realm == challenge.realm);
                let credential = kept.map_or_else(
                    || Credential::new(&user, &challenge.realm, &self.plan.password),
                    |session| session.credential,
                );
                phone.session = Some(Session { challenge, credential, count: 0 });
                phone.flight = Some(Flight { sent: now, is_authorized: true, interval: T1, ..flight });
                self.send(now, index, outbox);
            }
            _ => {
                self.counts.answers += 1;
                self.fail(index, format!("refused with {status}"));
            }
        }
    }

    /// Runs what is due.
    pub(crate) fn handle_timeouts(&mut self, now: Nanos, outbox: &mut Outbox) {
        while let Some(Reverse((due, index, cseq))) = self.timers.peek().copied() {
            if due > now {
                break;
            }
            self.timers.pop();
            let Some(phone) = phone(&mut self.phones, index).filter(|phone| phone.cseq == cseq) else {
                continue;
            };
            let Some(flight) = phone.flight.as_mut() else { continue };
            if now - flight.sent >= GIVE_UP {
                self.fail(index, "without an answer".to_owned());
                continue;
            }
            flight.interval = (flight.interval * 2).min(T2);
            self.timers.push(Reverse((now + flight.interval, index, cseq)));
            self.counts.retransmissions += 1;
            self.plan.write(index, phone, outbox);
        }
    }

    /// Returns the time of the next timer.
    pub(crate) fn next_timeout(&self) -> Option<Nanos> {
        self.timers.peek().map(|Reverse((due, ..))| *due)
    }

    /// Returns the number of registrations that were accepted.
    pub(crate) fn done(&self) -> u64 {
        self.counts.done
    }

    /// Returns the number of registrations that failed.
    pub(crate) fn failures(&self) -> u64 {
        self.counts.failed.values().sum()
    }

    /// Returns the number of requests that were answered, challenges included.
    pub(crate) fn answers(&self) -> u64 {
        self.counts.answers
    }

    /// Returns the number of registrations that wait for a response.
    pub(crate) fn waiting(&self) -> u64 {
        self.counts.begun - self.counts.done - self.failures()
    }

    /// Resets the counts to zero; bindings and challenges stay.
    pub(crate) fn forget_figures(&mut self) {
        self.counts = Counts::default();
        self.took = Latency::new();
    }

    /// Writes counts and percentiles into a report.
    pub(crate) fn report(&self, report: &mut Report) {
        let counts = &self.counts;
        report.count("registrations begun", counts.begun);
        report.count("registrations done", counts.done);
        report.failed("registrations failed", self.failures());
        for (why, count) in &counts.failed {
            report.count(&format!("registrations failed: {why}"), *count);
        }
        report.count("REGISTER requests sent", counts.requests);
        report.count("REGISTER requests answered", counts.answers);
        report.count("challenges", counts.challenges);
        report.count("requests sent again", counts.retransmissions);
        report.count("late answers", counts.late);
        self.took.report(report, "REGISTER → 200");
    }

    /// Sends a new request of the phone: with the next `CSeq`, and the next count of the nonce.
    fn send(&mut self, now: Nanos, index: u32, outbox: &mut Outbox) {
        let Some(phone) = phone(&mut self.phones, index) else { return };
        phone.cseq += 1;
        if let (Some(Flight { is_authorized: true, .. }), Some(session)) = (&phone.flight, &mut phone.session)
        {
            session.count += 1;
        }
        self.counts.requests += 1;
        self.timers.push(Reverse((now + T1, index, phone.cseq)));
        self.plan.write(index, phone, outbox);
    }

    fn fail(&mut self, index: u32, why: String) {
        *self.counts.failed.entry(why).or_default() += 1;
        if let Some(phone) = phone(&mut self.phones, index) {
            (phone.flight, phone.session) = (None, None);
        }
    }
}

impl RegistrationsPlan {
    fn write(&self, index: u32, phone: &Phone, outbox: &mut Outbox) {
        let Some((socket, local)) = crate::program::carrier::round_robin(&self.sockets, index).copied()
        else {
            return;
        };
        let (run, domain, number, cseq) = (self.run, &self.domain, self.first_extension + index, phone.cseq);
        outbox.push(socket, self.engine, |to| {
            line(
                to,
                format_args!(
                    "REGISTER sip:{domain} SIP/2.0\r\nVia: SIP/2.0/UDP {local};branch=z9hG4bKr{index}-{cseq}-{run:x};rport\r\n\
                     Max-Forwards: 70\r\nFrom: <sip:{number}@{domain}>;tag=r{index}-{run:x}\r\nTo: <sip:{number}@{domain}>\r\n\
                     Call-ID: r{index}-{run:x}@load\r\nCSeq: {cseq} REGISTER\r\nContact: <sip:{number}@{local}>\r\n\
                     Expires: {}\r\n",
                    self.expires
                ),
            );
            if let (Some(Flight { is_authorized: true, .. }), Some(session)) = (&phone.flight, &phone.session) {
                let (user, uri) = (number.to_string(), format!("sip:{domain}"));
                session.challenge.write_answer(to, &user, &session.credential, session.count, &uri);
            }
            write_body(to, None);
        });
    }
}

fn phone(phones: &mut [Phone], index: u32) -> Option<&mut Phone> {
    phones.get_mut(usize::try_from(index).ok()?)
}

/// 64 × T1.
const GIVE_UP: Nanos = 64 * T1;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::program::clock::{MILLISECOND, SECOND};

    fn registrations(reuse_nonce: bool) -> (Registrations, Outbox) {
        let plan = RegistrationsPlan {
            engine: "127.0.0.1:5060".parse().unwrap(),
            domain: "load.test".to_owned(),
            password: "correct horse battery staple".to_owned(),
            first_extension: 100_000,
            extensions: 2,
            sockets: vec![(5, "127.81.0.1:5080".parse().unwrap())],
            expires: 3_600,
            reuse_nonce,
            run: 0x2a,
        };
        (Registrations::new(plan), Outbox::default())
    }

    fn answer(index: u32, cseq: u32, status: &str, more: &str) -> String {
        format!(
            "SIP/2.0 {status}\r\nTo: <sip:x>\r\nCall-ID: r{index}-2a@load\r\nCSeq: {cseq} REGISTER\r\n{more}\r\n\r\n"
        )
    }

    fn feed(machine: &mut Registrations, outbox: &mut Outbox, now: Nanos, text: &str) -> Option<String> {
        machine.handle(now, &Message::read(text.as_bytes()).unwrap(), outbox);
        outbox.drain_texts().pop().map(|(_, _, text)| text)
    }

    const CHALLENGE: &str = "WWW-Authenticate: Digest realm=\"load.test\", nonce=\"n1\", qop=\"auth\"";
    const STALE: &str =
        "WWW-Authenticate: Digest realm=\"load.test\", nonce=\"n2\", qop=\"auth\", stale=true";

    #[test]
    fn a_phone_answers_the_challenge_each_time() {
        let (mut machine, mut outbox) = registrations(false);
        for round in 0..2_u32 {
            machine.begin(u64::from(round), u64::from(round) * 2, &mut outbox);
            let (socket, _, bare) = outbox.drain_texts().remove(0);
            assert_eq!((socket, bare.contains("Authorization")), (5, false), "{bare}");
            let first = round * 2 + 1;
            let request =
                feed(&mut machine, &mut outbox, 10, &answer(0, first, "401 Unauthorized", CHALLENGE))
                    .unwrap();
            assert!(request.contains(&format!("CSeq: {} REGISTER", first + 1)), "{request}");
            assert!(request.contains("username=\"100000\"") && request.contains("nc=00000001"), "{request}");
            assert_eq!(
                feed(&mut machine, &mut outbox, 20, &answer(0, first + 1, "200 OK", "Expires: 60")),
                None
            );
        }
        assert_eq!((machine.done(), machine.failures(), machine.answers(), machine.waiting()), (2, 0, 4, 0));
    }

    #[test]
    fn a_nonce_is_used_again_until_it_is_stale() {
        let (mut machine, mut outbox) = registrations(true);
        machine.begin(0, 0, &mut outbox);
        feed(&mut machine, &mut outbox, 1, &answer(0, 1, "401 Unauthorized", CHALLENGE));
        feed(&mut machine, &mut outbox, 2, &answer(0, 2, "200 OK", "Expires: 60"));
        machine.begin(3, 2, &mut outbox);
        let again = outbox.drain_texts().remove(0).2;
        assert!(again.contains("nonce=\"n1\"") && again.contains("nc=00000002"), "{again}");
        let fresh = feed(&mut machine, &mut outbox, 4, &answer(0, 3, "401 Unauthorized", STALE)).unwrap();
        assert!(fresh.contains("nonce=\"n2\"") && fresh.contains("nc=00000001"), "{fresh}");
        feed(&mut machine, &mut outbox, 5, &answer(0, 4, "200 OK", "Expires: 60"));
        assert_eq!((machine.done(), machine.failures()), (2, 0));
    }

    #[test]
    fn wrong_credentials_and_refusals_are_failures() {
        let (mut machine, mut outbox) = registrations(false);
        machine.begin(0, 0, &mut outbox);
        feed(&mut machine, &mut outbox, 1, &answer(0, 1, "401 Unauthorized", CHALLENGE));
        assert_eq!(feed(&mut machine, &mut outbox, 2, &answer(0, 2, "401 Unauthorized", CHALLENGE)), None);
        machine.begin(0, 1, &mut outbox);
        feed(&mut machine, &mut outbox, 1, &answer(1, 1, "503 Service Unavailable", "Retry-After: 1"));
        let mut report = Report::new("register");
        machine.report(&mut report);
        for why in ["refused with 401", "refused with 503"] {
            assert_eq!(report.value(&format!("registrations failed: {why}")), Some(&1.into()));
        }
    }

    #[test]
    fn silence_is_asked_again_and_a_new_turn_ends_the_old_one() {
        let (mut machine, mut outbox) = registrations(false);
        machine.begin(0, 0, &mut outbox);
        let first = outbox.drain_texts().remove(0).2;
        machine.handle_timeouts(500 * MILLISECOND, &mut outbox);
        assert_eq!(outbox.drain_texts().remove(0).2, first);
        machine.begin(SECOND, 2, &mut outbox);
        outbox.clear();
        feed(&mut machine, &mut outbox, SECOND, &answer(0, 1, "200 OK", "Expires: 60"));
        assert_eq!((machine.done(), machine.failures(), machine.waiting()), (0, 1, 1));
        while let Some(due) = machine.next_timeout() {
            machine.handle_timeouts(due, &mut outbox);
        }
        assert_eq!((machine.failures(), machine.waiting()), (2, 0));
    }
}
