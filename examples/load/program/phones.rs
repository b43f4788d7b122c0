//! The called phones: ring, answer, acknowledge the end; a machine without I/O.
//!
//! A phone keeps the responses of a call that it may have to retransmit until the ACK arrives (RFC 3261 §13.3.1.4);
//! afterwards it keeps only whether the call is up.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::net::SocketAddrV4;

use crate::program::carrier::{CallNews, T1, T2, round_robin};
use crate::program::clock::Nanos;
use crate::program::outbox::Outbox;
use crate::program::report::Report;
use crate::program::sip_text::{Message, Start, line, write_answer_head, write_body};

/// How phones answer.
#[derive(Clone, Debug)]
pub(crate) struct PhonesPlan {
    /// Whether `100 Trying` is sent.
    pub(crate) trying: bool,
    /// How long a phone rings.
    pub(crate) ring: Nanos,
    /// The SIP addresses of the sockets, by socket.
    pub(crate) locals: HashMap<usize, SocketAddrV4>,
    /// The addresses for RTP.
    pub(crate) media: Vec<SocketAddrV4>,
}

/// The called phones.
pub(crate) struct Phones {
    plan: PhonesPlan,
    calls: HashMap<u32, Call>,
    timers: BinaryHeap<Reverse<(Nanos, u32)>>,
    news: Vec<CallNews>,
    serial: u32,
    by_call_id: HashMap<u64, u32>,
    counts: Counts,
}

#[derive(Debug, Default)]
struct Counts {
    invited: u64,
    acknowledged: u64,
    retransmissions: u64,
    unacknowledged: u64,
    cancelled: u64,
}

struct Call {
    key: u64,
    state: State,
    media: Option<SocketAddrV4>,
}

enum State {
    /// The 200 is ready and is sent when the ringing ends.
    Ringing(Ready),
    /// The 200 is retransmitted until the ACK arrives.
    Answered(Ready, Nanos, Nanos),
    Up,
}

/// A 200 with its position.
struct Ready {
    socket: usize,
    to: SocketAddrV4,
    text: Vec<u8>,
}

impl Phones {
    /// Has no call yet.
    pub(crate) fn new(plan: PhonesPlan) -> Self {
        Phones {
            plan,
            calls: HashMap::new(),
            timers: BinaryHeap::new(),
            news: Vec::new(),
            serial: 0,
            by_call_id: HashMap::new(),
            counts: Counts::default(),
        }
    }

    /// Handles a request that arrived for a phone.
    pub(crate) fn handle(
        &mut self,
        now: Nanos,
        socket: usize,
        from: SocketAddrV4,
        message: &Message<'_>,
        outbox: &mut Outbox,
    ) {
        let Start::Request(method) = message.start else { return };
        let key = key(message);
        let number = self.by_call_id.get(&key).copied();
        match (method, number) {
            ("INVITE", None) => self.invited(now, socket, from, (key, message), outbox),
            ("INVITE", Some(number)) => self.invited_again(number, socket, from, message, outbox),
            ("ACK", Some(number)) => self.acknowledged(number),
            // The ACK of a refusal, or of a call that has ended.
            ("ACK", None) => {}
            ("BYE", Some(number)) => {
                answer(outbox, socket, from, message, "200 OK");
                self.over(number);
            }
            ("CANCEL", Some(number)) => {
                answer(outbox, socket, from, message, "200 OK");
                // RFC 3261 §9.2: the INVITE is answered as well; both have the same headers except for the method.
                let invite = Message { method: "INVITE", ..*message };
                answer(outbox, socket, from, &invite, "487 Request Terminated");
                self.counts.cancelled += 1;
                self.over(number);
            }
            ("BYE" | "CANCEL", None) => answer(outbox, socket, from, message, "481 Call Does Not Exist"),
            _ => answer(outbox, socket, from, message, "200 OK"),
        }
    }

    /// Runs what is due.
    pub(crate) fn handle_timeouts(&mut self, now: Nanos, outbox: &mut Outbox) {
        while let Some(Reverse((due, number))) = self.timers.peek().copied() {
            if due > now {
                break;
            }
            self.timers.pop();
            self.timer(now, number, outbox);
        }
    }

    /// Returns the time of the next timer.
    pub(crate) fn next_timeout(&self) -> Option<Nanos> {
        self.timers.peek().map(|Reverse((due, _))| *due)
    }

    /// Takes the changes of calls since the last time.
    pub(crate) fn take_news(&mut self) -> impl Iterator<Item = CallNews> + use<> {
        std::mem::take(&mut self.news).into_iter()
    }

    /// Returns the number of calls that are not over.
    pub(crate) fn live(&self) -> usize {
        self.calls.len()
    }

    /// Writes counts into a report.
    pub(crate) fn report(&self, report: &mut Report) {
        report.count("phones invited", self.counts.invited);
        report.count("phones acknowledged", self.counts.acknowledged);
        report.count("phones cancelled", self.counts.cancelled);
        report.count("200 sent again", self.counts.retransmissions);
        report.count("200 without an ACK", self.counts.unacknowledged);
    }

    fn invited(
        &mut self,
        now: Nanos,
        socket: usize,
        from: SocketAddrV4,
        (key, message): (u64, &Message<'_>),
        outbox: &mut Outbox,
    ) {
        self.counts.invited += 1;
        self.serial += 1;
        let number = self.serial;
        if self.plan.trying {
            answer(outbox, socket, from, message, "100 Trying");
        }
        let local = self.plan.locals.get(&socket).copied().unwrap_or(from);
        outbox.push(socket, from, |to| {
            write_answer_head(to, message, "180 Ringing", tag(message));
            line(to, format_args!("Contact: <sip:phone@{local}>\r\n"));
            write_body(to, None);
        });
        let mut text = Vec::with_capacity(1_024);
        write_answer_head(&mut text, message, "200 OK", tag(message));
        line(
            &mut text,
            format_args!("Contact: <sip:phone@{local}>\r\nAllow: INVITE, ACK, BYE, CANCEL, OPTIONS\r\n"),
        );
        write_body(&mut text, round_robin(&self.plan.media, number).copied());
        let state = State::Ringing(Ready { socket, to: from, text });
        self.calls.insert(number, Call { key, state, media: message.audio() });
        self.by_call_id.insert(key, number);
        if self.plan.ring == 0 {
            self.timer(now, number, outbox);
        } else {
            self.timers.push(Reverse((now + self.plan.ring, number)));
        }
    }

    /// Answers a retransmitted INVITE again; an INVITE within the dialog is answered with the current state.
    fn invited_again(
        &mut self,
        number: u32,
        socket: usize,
        from: SocketAddrV4,
        message: &Message<'_>,
        outbox: &mut Outbox,
    ) {
        match self.calls.get(&number).map(|call| &call.state) {
            Some(State::Ringing(_)) => answer(outbox, socket, from, message, "180 Ringing"),
            Some(State::Answered(ready, ..)) => {
                outbox.push(ready.socket, ready.to, |to| to.extend_from_slice(&ready.text));
            }
            Some(State::Up) => {
                let local = self.plan.locals.get(&socket).copied().unwrap_or(from);
                outbox.push(socket, from, |to| {
                    write_answer_head(to, message, "200 OK", tag(message));
                    line(to, format_args!("Contact: <sip:phone@{local}>\r\n"));
                    write_body(to, round_robin(&self.plan.media, number).copied());
                });
            }
            None => {}
        }
    }

    fn acknowledged(&mut self, number: u32) {
        let Some(call) = self.calls.get_mut(&number) else { return };
        if matches!(call.state, State::Answered(..)) {
            call.state = State::Up;
            self.counts.acknowledged += 1;
            self.news.push(CallNews::Up(number, call.media));
        }
    }

    fn timer(&mut self, now: Nanos, number: u32, outbox: &mut Outbox) {
        let Some(call) = self.calls.get_mut(&number) else { return };
        let send = |ready: &Ready, outbox: &mut Outbox| {
            outbox.push(ready.socket, ready.to, |to| to.extend_from_slice(&ready.text));
        };
        let (ready, answered, interval) = match std::mem::replace(&mut call.state, State::Up) {
            State::Up => return,
            State::Ringing(ready) => (ready, now, T1),
            State::Answered(_, answered, _) if now - answered >= GIVE_UP => {
                self.counts.unacknowledged += 1;
                return self.over(number);
            }
            State::Answered(ready, answered, interval) => {
                self.counts.retransmissions += 1;
                (ready, answered, (interval * 2).min(T2))
            }
        };
        send(&ready, outbox);
        call.state = State::Answered(ready, answered, interval);
        self.timers.push(Reverse((now + interval, number)));
    }

    fn over(&mut self, number: u32) {
        if let Some(call) = self.calls.remove(&number) {
            self.by_call_id.remove(&call.key);
            self.news.push(CallNews::Over(number));
        }
    }
}

fn answer(outbox: &mut Outbox, socket: usize, from: SocketAddrV4, message: &Message<'_>, status: &str) {
    outbox.push(socket, from, |to| {
        write_answer_head(to, message, status, tag(message));
        write_body(to, None);
    });
}

fn key(message: &Message<'_>) -> u64 {
    let mut hasher = DefaultHasher::new();
    message.call_id.hash(&mut hasher);
    hasher.finish()
}

/// The tag of a phone is derived from the call, so that every response to the call has the same one.
fn tag(message: &Message<'_>) -> u32 {
    let [a, b, c, d, ..] = key(message).to_be_bytes();
    u32::from_be_bytes([a, b, c, d])
}

/// 64 × T1.
const GIVE_UP: Nanos = 64 * T1;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::program::clock::MILLISECOND;

    fn phones(ring: Nanos) -> (Phones, Outbox) {
        let locals = HashMap::from([(3, "127.81.0.1:5080".parse().unwrap())]);
        let media = vec!["127.81.0.1:6000".parse().unwrap()];
        (Phones::new(PhonesPlan { trying: true, ring, locals, media }), Outbox::default())
    }

    fn request(method: &str, tag: &str) -> String {
        format!(
            "{method} sip:1@127.81.0.1:5080 SIP/2.0\r\nVia: v\r\nFrom: <sip:a>;tag=f\r\nTo: <sip:1@load.test>{tag}\r\n\
             Call-ID: theirs\r\nCSeq: 1 {method}\r\nContent-Type: application/sdp\r\n\r\n\
             v=0\r\nc=IN IP4 127.0.0.1\r\nm=audio 20000 RTP/AVP 0\r\n"
        )
    }

    fn feed(phones: &mut Phones, outbox: &mut Outbox, now: Nanos, text: &str) -> Vec<String> {
        let message = Message::read(text.as_bytes()).unwrap();
        phones.handle(now, 3, "127.0.0.1:5060".parse().unwrap(), &message, outbox);
        first_lines(outbox)
    }

    fn first_lines(outbox: &mut Outbox) -> Vec<String> {
        let first = |text: &str| text.lines().next().unwrap().to_owned();
        outbox.drain_texts().iter().map(|(_, _, text)| first(text)).collect()
    }

    #[test]
    fn a_phone_rings_answers_and_hangs_up() {
        let (mut phones, mut outbox) = phones(100 * MILLISECOND);
        let invite = request("INVITE", "");
        assert_eq!(feed(&mut phones, &mut outbox, 0, &invite), ["SIP/2.0 100 Trying", "SIP/2.0 180 Ringing"]);
        assert_eq!(feed(&mut phones, &mut outbox, 1, &invite), ["SIP/2.0 180 Ringing"]);
        assert_eq!(phones.next_timeout(), Some(100 * MILLISECOND));
        phones.handle_timeouts(100 * MILLISECOND, &mut outbox);
        assert_eq!(first_lines(&mut outbox), ["SIP/2.0 200 OK"]);
        assert!(phones.take_news().next().is_none(), "not before the ACK");
        feed(&mut phones, &mut outbox, 101 * MILLISECOND, &request("ACK", ";tag=p"));
        let up = CallNews::Up(1, Some("127.0.0.1:20000".parse().unwrap()));
        assert_eq!(phones.take_news().collect::<Vec<_>>(), [up]);
        phones.handle_timeouts(60_000 * MILLISECOND, &mut outbox);
        assert_eq!(outbox.len(), 0, "an acknowledged answer is not sent again");
        assert_eq!(feed(&mut phones, &mut outbox, 2, &request("BYE", ";tag=p")), ["SIP/2.0 200 OK"]);
        assert_eq!(phones.take_news().collect::<Vec<_>>(), [CallNews::Over(1)]);
        assert_eq!(
            feed(&mut phones, &mut outbox, 3, &request("BYE", ";tag=p")),
            ["SIP/2.0 481 Call Does Not Exist"]
        );
        assert_eq!(phones.live(), 0);
    }

    #[test]
    fn an_answer_without_ack_is_sent_again_for_32_seconds() {
        let (mut phones, mut outbox) = phones(0);
        assert_eq!(
            feed(&mut phones, &mut outbox, 0, &request("INVITE", "")).last().unwrap(),
            "SIP/2.0 200 OK"
        );
        let mut sent = 0;
        while let Some(due) = phones.next_timeout() {
            phones.handle_timeouts(due, &mut outbox);
            sent += first_lines(&mut outbox).len();
        }
        assert_eq!((sent, phones.live()), (10, 0));
        let mut report = Report::new("phones");
        phones.report(&mut report);
        assert_eq!(report.value("200 without an ACK"), Some(&1.into()));
    }
}
