//! The carrier: places calls over the trunk, holds them and ends them; a machine without I/O.
//!
//! RFC 3261 §17.1 as far as it is needed: requests are retransmitted from T1 on, a final response is acknowledged, and
//! a transaction without a response times out after 64 × T1. Calls are identified by the number in their `Call-ID`.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, HashMap};
use std::net::SocketAddrV4;

use crate::program::clock::{MILLISECOND, Nanos};
use crate::program::latency::Latency;
use crate::program::outbox::Outbox;
use crate::program::report::Report;
use crate::program::sip_text::{Header, Message, Start, line, own_number, write_answer_head, write_body};

/// How calls are placed.
#[derive(Clone, Debug)]
pub(crate) struct CarrierPlan {
    /// Where requests go.
    pub(crate) engine: SocketAddrV4,
    /// The domain in Request-URIs.
    pub(crate) domain: String,
    /// The prefix before the extension in a called number.
    pub(crate) number_prefix: String,
    /// The first extension that is called.
    pub(crate) first_extension: u32,
    /// How many extensions are called in turn.
    pub(crate) extensions: u32,
    /// The carrier's sockets with their SIP addresses.
    pub(crate) sockets: Vec<(usize, SocketAddrV4)>,
    /// Its addresses for RTP.
    pub(crate) media: Vec<SocketAddrV4>,
    /// How long a call is up; `None`: until [`Carrier::hang_up_all`].
    pub(crate) hold: Option<Nanos>,
    /// Whether each call has its own caller number, and the numbers of answered calls are kept.
    pub(crate) numbers_callers: bool,
    /// Distinguishes the messages of this run from those of another.
    pub(crate) run: u32,
}

/// The carrier.
pub(crate) struct Carrier {
    plan: CarrierPlan,
    calls: HashMap<u32, Call>,
    timers: BinaryHeap<Reverse<(Nanos, u32, Timer)>>,
    news: Vec<CallNews>,
    answered_numbers: Vec<u32>,
    counts: Counts,
    ringing: Latency,
    answered: Latency,
    ended: Latency,
}

/// A change of a call, for the senders of its audio.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CallNews {
    /// The call is up; the audio goes to this address.
    Up(u32, Option<SocketAddrV4>),
    /// The call has ended or failed.
    Over(u32),
}

#[derive(Debug, Default)]
struct Counts {
    attempted: u64,
    done: u64,
    answered: u64,
    failed: BTreeMap<String, u64>,
    retransmissions: u64,
    answers_again: u64,
    strays: u64,
    up_max: u64,
    up: u64,
}

struct Call {
    state: State,
    interval: Nanos,
    /// `To` with the tag of the callee.
    to: String,
    target: String,
    /// `Route` lines of requests in the dialog.
    routes: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Inviting { began: Nanos, is_proceeding: bool, is_ringing: bool },
    Up,
    Ending { began: Nanos },
}

/// Ordered only for the heap.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Timer {
    GiveUp,
    HangUp,
    Resend,
}

impl Carrier {
    /// Has placed no call yet.
    pub(crate) fn new(plan: CarrierPlan) -> Self {
        Carrier {
            plan,
            calls: HashMap::new(),
            timers: BinaryHeap::new(),
            news: Vec::new(),
            answered_numbers: Vec::new(),
            counts: Counts::default(),
            ringing: Latency::new(),
            answered: Latency::new(),
            ended: Latency::new(),
        }
    }

    /// Places call `number`.
    pub(crate) fn place(&mut self, now: Nanos, number: u32, outbox: &mut Outbox) {
        let call = Call {
            state: State::Inviting { began: now, is_proceeding: false, is_ringing: false },
            interval: T1,
            to: String::new(),
            target: String::new(),
            routes: String::new(),
        };
        self.counts.attempted += 1;
        self.plan.invite(number, outbox);
        self.calls.insert(number, call);
        self.timers.push(Reverse((now + T1, number, Timer::Resend)));
        self.timers.push(Reverse((now + GIVE_UP, number, Timer::GiveUp)));
    }

    /// Handles a message that arrived at the carrier.
    pub(crate) fn handle(&mut self, now: Nanos, socket: usize, message: &Message<'_>, outbox: &mut Outbox) {
        match message.start {
            Start::Response(status) => self.answer(now, status, message, outbox),
            Start::Request(method) => self.request(method, socket, message, outbox),
        }
    }

    /// Runs what is due.
    pub(crate) fn handle_timeouts(&mut self, now: Nanos, outbox: &mut Outbox) {
        while let Some(Reverse((due, number, timer))) = self.timers.peek().copied() {
            if due > now {
                break;
            }
            self.timers.pop();
            self.timer(now, number, timer, outbox);
        }
    }

    /// Returns the time of the next timer.
    pub(crate) fn next_timeout(&self) -> Option<Nanos> {
        self.timers.peek().map(|Reverse((due, ..))| *due)
    }

    /// Ends every call that is up.
    pub(crate) fn hang_up_all(&mut self, now: Nanos, outbox: &mut Outbox) {
        let up: Vec<u32> = self
            .calls
            .iter()
            .filter(|(_, call)| call.state == State::Up)
            .map(|(number, _)| *number)
            .collect();
        for number in up {
            self.hang_up(now, number, outbox);
        }
    }

    /// Returns the number of calls that are not over.
    pub(crate) fn live(&self) -> usize {
        self.calls.len()
    }

    /// Returns the number of calls that are up.
    pub(crate) fn up(&self) -> u64 {
        self.counts.up
    }

    /// Returns the number of calls that failed.
    pub(crate) fn failures(&self) -> u64 {
        self.counts.failed.values().sum()
    }

    /// Returns the number of calls that were up and ended as planned.
    pub(crate) fn done(&self) -> u64 {
        self.counts.done
    }

    /// Returns the calls that were answered, also those that have ended, if each has its own number.
    pub(crate) fn answered_numbers(&self) -> &[u32] {
        &self.answered_numbers
    }

    /// Takes the changes of calls since the last time.
    pub(crate) fn take_news(&mut self) -> impl Iterator<Item = CallNews> + use<> {
        std::mem::take(&mut self.news).into_iter()
    }

    /// Writes counts and percentiles into a report.
    pub(crate) fn report(&self, report: &mut Report) {
        let counts = &self.counts;
        report.failed("calls failed", self.failures());
        self.report_calls(report);
        report.count("calls up at once, at most", counts.up_max);
        report.count("requests sent again", counts.retransmissions);
        report.count("200 received again", counts.answers_again);
        report.count("messages of no live call", counts.strays);
        self.ringing.report(report, "INVITE → 180");
        self.answered.report(report, "INVITE → 200");
        self.ended.report(report, "BYE → 200");
    }

    /// Writes the outcome of the calls into a report, where failures are expected.
    pub(crate) fn report_calls(&self, report: &mut Report) {
        let counts = &self.counts;
        report.count("calls attempted", counts.attempted);
        report.count("calls answered", counts.answered);
        report.count("calls done", counts.done);
        for (why, count) in &counts.failed {
            report.count(&format!("calls failed: {why}"), *count);
        }
    }

    fn answer(&mut self, now: Nanos, status: u16, message: &Message<'_>, outbox: &mut Outbox) {
        let number = own_number(message.call_id, 'c', self.plan.run);
        let Some((number, call)) = number.and_then(|number| Some((number, self.calls.get_mut(&number)?)))
        else {
            self.counts.strays += 1;
            return;
        };
        match (call.state, message.method, status) {
            (State::Inviting { began, is_ringing, .. }, "INVITE", 100..=199) => {
                let rings = status >= 180;
                if rings && !is_ringing {
                    self.ringing.add(now - began);
                }
                call.state = State::Inviting { began, is_proceeding: true, is_ringing: is_ringing || rings };
            }
            (State::Inviting { began, .. }, "INVITE", 200..=299) => {
                self.answered.add(now - began);
                call.begin(message);
                self.plan.acknowledge(number, call, outbox);
                self.counts.answered += 1;
                self.counts.up += 1;
                self.counts.up_max = self.counts.up_max.max(self.counts.up);
                self.news.push(CallNews::Up(number, message.audio()));
                if self.plan.numbers_callers {
                    self.answered_numbers.push(number);
                }
                if let Some(hold) = self.plan.hold {
                    self.timers.push(Reverse((now + hold, number, Timer::HangUp)));
                }
            }
            (State::Inviting { .. }, "INVITE", _) => {
                self.plan.acknowledge_failure(number, message.to, outbox);
                self.fail(number, format!("INVITE {status}"));
            }
            // The ACK was lost, or arrived too late.
            (State::Up | State::Ending { .. }, "INVITE", 200..=299) => {
                self.counts.answers_again += 1;
                self.plan.acknowledge(number, call, outbox);
            }
            (State::Ending { began }, "BYE", 200..=299) => {
                self.ended.add(now - began);
                self.counts.done += 1;
                self.over(number);
            }
            (State::Ending { .. }, "BYE", 300..) => self.fail(number, format!("BYE {status}")),
            // A provisional response that arrived after a later one.
            _ => {}
        }
    }

    /// The carrier answers every request of the engine; a BYE from the engine is a failure of the call.
    fn request(&mut self, method: &str, socket: usize, message: &Message<'_>, outbox: &mut Outbox) {
        if method == "ACK" {
            return;
        }
        let number = own_number(message.call_id, 'c', self.plan.run);
        let is_live = number.is_some_and(|number| self.calls.contains_key(&number));
        let status = if is_live { "200 OK" } else { "481 Call Does Not Exist" };
        outbox.push(socket, self.plan.engine, |to| {
            write_answer_head(to, message, status, 0);
            write_body(to, None);
        });
        if let (Some(number), true, "BYE") = (number, is_live, method) {
            let was_ending =
                matches!(self.calls.get(&number), Some(Call { state: State::Ending { .. }, .. }));
            // The BYEs crossed: both sides ended the call.
            if !was_ending {
                self.fail(number, "ended by the engine".to_owned());
            }
        }
    }

    fn timer(&mut self, now: Nanos, number: u32, timer: Timer, outbox: &mut Outbox) {
        let Some(call) = self.calls.get_mut(&number) else { return };
        match (timer, call.state) {
            (Timer::Resend, State::Inviting { is_proceeding: false, .. }) => {
                self.plan.invite(number, outbox);
                call.interval *= 2;
            }
            (Timer::Resend, State::Ending { .. }) => {
                self.plan.bye(number, call, outbox);
                call.interval = (call.interval * 2).min(T2);
            }
            (Timer::HangUp, State::Up) => return self.hang_up(now, number, outbox),
            (Timer::GiveUp, State::Inviting { .. }) => {
                return self.fail(number, "INVITE without an answer".to_owned());
            }
            (Timer::GiveUp, State::Ending { began }) if now - began >= GIVE_UP => {
                return self.fail(number, "BYE without an answer".to_owned());
            }
            // The call has left the state in which the timer was set.
            _ => return,
        }
        self.counts.retransmissions += 1;
        self.timers.push(Reverse((now + call.interval, number, Timer::Resend)));
    }

    fn hang_up(&mut self, now: Nanos, number: u32, outbox: &mut Outbox) {
        let Some(call) = self.calls.get_mut(&number) else { return };
        call.state = State::Ending { began: now };
        call.interval = T1;
        self.plan.bye(number, call, outbox);
        self.counts.up -= 1;
        self.news.push(CallNews::Over(number));
        self.timers.push(Reverse((now + T1, number, Timer::Resend)));
        self.timers.push(Reverse((now + GIVE_UP, number, Timer::GiveUp)));
    }

    fn fail(&mut self, number: u32, why: String) {
        *self.counts.failed.entry(why).or_default() += 1;
        if matches!(self.calls.get(&number), Some(Call { state: State::Up, .. })) {
            self.counts.up -= 1;
            self.news.push(CallNews::Over(number));
        }
        self.over(number);
    }

    fn over(&mut self, number: u32) {
        self.calls.remove(&number);
    }
}

impl Call {
    /// Keeps what later requests of the dialog need (RFC 3261 §12.1.2).
    fn begin(&mut self, answer: &Message<'_>) {
        self.state = State::Up;
        self.to = answer.to.to_owned();
        self.target = answer.contact().unwrap_or_default().to_owned();
        self.routes = answer
            .each(Header::RecordRoute)
            .rev()
            .flat_map(|value| value.rsplit(','))
            .map(|route| format!("Route: {}\r\n", route.trim()))
            .collect();
    }
}

impl CarrierPlan {
    fn place_of(&self, number: u32) -> (usize, SocketAddrV4) {
        let unknown = (0, self.engine);
        round_robin(&self.sockets, number).copied().unwrap_or(unknown)
    }

    fn invite(&self, number: u32, outbox: &mut Outbox) {
        let (socket, local) = self.place_of(number);
        let called = self.first_extension + number % self.extensions.max(1);
        let uri = format!("sip:{}{called}@{}", self.number_prefix, self.domain);
        outbox.push(socket, self.engine, |to| {
            line(to, format_args!("INVITE {uri} SIP/2.0\r\n"));
            self.write_head(to, number, local, "i", &format!("<{uri}>"), "1 INVITE");
            line(
                to,
                format_args!(
                    "Contact: <sip:carrier@{local}>\r\nAllow: INVITE, ACK, BYE, CANCEL, OPTIONS\r\n"
                ),
            );
            write_body(to, round_robin(&self.media, number).copied());
        });
    }

    fn acknowledge(&self, number: u32, call: &Call, outbox: &mut Outbox) {
        self.in_dialog(number, call, "ACK", ("a", "1 ACK"), outbox);
    }

    fn bye(&self, number: u32, call: &Call, outbox: &mut Outbox) {
        self.in_dialog(number, call, "BYE", ("b", "2 BYE"), outbox);
    }

    fn in_dialog(&self, number: u32, call: &Call, method: &str, ids: (&str, &str), outbox: &mut Outbox) {
        let (socket, local) = self.place_of(number);
        outbox.push(socket, self.engine, |to| {
            line(to, format_args!("{method} {} SIP/2.0\r\n", call.target));
            self.write_head(to, number, local, ids.0, &call.to, ids.1);
            to.extend_from_slice(call.routes.as_bytes());
            write_body(to, None);
        });
    }

    /// The ACK of a refusal belongs to the transaction of the INVITE (RFC 3261 §17.1.1.3).
    fn acknowledge_failure(&self, number: u32, answered: &str, outbox: &mut Outbox) {
        let (socket, local) = self.place_of(number);
        let called = self.first_extension + number % self.extensions.max(1);
        outbox.push(socket, self.engine, |to| {
            line(to, format_args!("ACK sip:{}{called}@{} SIP/2.0\r\n", self.number_prefix, self.domain));
            self.write_head(to, number, local, "i", answered, "1 ACK");
            write_body(to, None);
        });
    }

    fn write_head(
        &self,
        to: &mut Vec<u8>,
        number: u32,
        local: SocketAddrV4,
        branch: &str,
        callee: &str,
        cseq: &str,
    ) {
        let run = self.run;
        let caller = if self.numbers_callers { caller_number(number) } else { "+447700900123".to_owned() };
        line(
            to,
            format_args!(
                "Via: SIP/2.0/UDP {local};branch=z9hG4bK{branch}{number}-{run:x};rport\r\nMax-Forwards: 70\r\n\
                 From: <sip:{caller}@{}>;tag=c{number}-{run:x}\r\nTo: {callee}\r\nCall-ID: c{number}-{run:x}@load\r\n\
                 CSeq: {cseq}\r\n",
                local.ip()
            ),
        );
    }
}

/// The number of the caller of call `number`.
pub(crate) fn caller_number(number: u32) -> String {
    format!("+4479{number:08}")
}

/// Returns the list entry for a number, round robin.
pub(crate) fn round_robin<T>(list: &[T], number: u32) -> Option<&T> {
    let place = usize::try_from(number).unwrap_or_default().checked_rem(list.len())?;
    list.get(place)
}

/// RFC 3261 §17.1.1.1.
pub(crate) const T1: Nanos = 500 * MILLISECOND;
/// RFC 3261 §17.1.2.2.
pub(crate) const T2: Nanos = 4_000 * MILLISECOND;
/// 64 × T1.
const GIVE_UP: Nanos = 64 * T1;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::program::clock::SECOND;

    fn carrier(hold: Option<Nanos>) -> (Carrier, Outbox) {
        let plan = CarrierPlan {
            engine: "127.0.0.1:5060".parse().unwrap(),
            domain: "load.test".to_owned(),
            number_prefix: "+44207".to_owned(),
            first_extension: 100_000,
            extensions: 2,
            sockets: vec![(0, "127.80.0.1:5070".parse().unwrap()), (1, "127.80.0.2:5070".parse().unwrap())],
            media: vec!["127.80.0.1:4000".parse().unwrap()],
            hold,
            numbers_callers: false,
            run: 0x2a,
        };
        (Carrier::new(plan), Outbox::default())
    }

    fn answer(number: u32, status: &str, method: &str) -> String {
        format!(
            "SIP/2.0 {status}\r\nRecord-Route: <sip:10.0.0.1;lr>, <sip:10.0.0.2;lr>\r\nRecord-Route: <sip:10.0.0.3;lr>\r\n\
             To: <sip:x>;tag=t\r\nCall-ID: c{number}-2a@load\r\nCSeq: 1 {method}\r\n\
             Contact: <sip:phone@127.0.0.1:5060>\r\nContent-Length: 0\r\n\r\n"
        )
    }

    fn feed(carrier: &mut Carrier, outbox: &mut Outbox, now: Nanos, text: &str) -> Vec<String> {
        carrier.handle(now, 0, &Message::read(text.as_bytes()).unwrap(), outbox);
        outbox.drain_texts().into_iter().map(|(_, _, text)| text).collect()
    }

    #[test]
    fn a_call_is_placed_held_and_ended() {
        let (mut carrier, mut outbox) = carrier(Some(SECOND));
        carrier.place(0, 1, &mut outbox);
        let sent = outbox.drain_texts();
        assert_eq!(sent[0].0, 1, "the second socket");
        assert!(sent[0].2.starts_with("INVITE sip:+44207100001@load.test SIP/2.0\r\n"), "{}", sent[0].2);
        assert!(sent[0].2.contains("\r\nm=audio 4000 RTP/AVP 0\r\n"));
        assert!(
            feed(&mut carrier, &mut outbox, 10 * MILLISECOND, &answer(1, "180 Ringing", "INVITE")).is_empty()
        );
        let ack = feed(&mut carrier, &mut outbox, 20 * MILLISECOND, &answer(1, "200 OK", "INVITE"));
        assert!(ack[0].starts_with("ACK sip:phone@127.0.0.1:5060 SIP/2.0\r\n"), "{ack:?}");
        assert!(ack[0].contains(
            "Route: <sip:10.0.0.3;lr>\r\nRoute: <sip:10.0.0.2;lr>\r\nRoute: <sip:10.0.0.1;lr>\r\n"
        ));
        assert_eq!((carrier.up(), carrier.live()), (1, 1));
        // A retransmitted 200 is acknowledged again and is no second call.
        assert_eq!(feed(&mut carrier, &mut outbox, 30 * MILLISECOND, &answer(1, "200 OK", "INVITE")), ack);
        assert_eq!(carrier.up(), 1);
        carrier.handle_timeouts(SECOND + 19 * MILLISECOND, &mut outbox);
        assert_eq!(outbox.len(), 0, "the timer of the INVITE is void, the hold is not over");
        carrier.handle_timeouts(SECOND + 20 * MILLISECOND, &mut outbox);
        assert!(outbox.drain_texts()[0].2.starts_with("BYE sip:phone@127.0.0.1:5060 SIP/2.0\r\n"));
        feed(&mut carrier, &mut outbox, SECOND + 25 * MILLISECOND, &answer(1, "200 OK", "BYE"));
        assert_eq!((carrier.done(), carrier.failures(), carrier.live(), carrier.up()), (1, 0, 0, 0));
        assert_eq!(carrier.take_news().collect::<Vec<_>>(), [CallNews::Up(1, None), CallNews::Over(1)]);
        let mut report = Report::new("calls");
        carrier.report(&mut report);
        assert_eq!(report.value("INVITE → 200 p50 [ms]").unwrap().as_f64().map(f64::round), Some(20.0));
        assert_eq!(report.value("200 received again"), Some(&1.into()));
    }

    #[test]
    fn silence_is_asked_again_and_then_a_failure() {
        let (mut carrier, mut outbox) = carrier(None);
        carrier.place(0, 0, &mut outbox);
        outbox.clear();
        let mut sent = Vec::new();
        while let Some(due) = carrier.next_timeout() {
            carrier.handle_timeouts(due, &mut outbox);
            sent.extend(outbox.drain_texts().iter().map(|_| due / MILLISECOND));
        }
        assert_eq!(sent, [500, 1_500, 3_500, 7_500, 15_500, 31_500]);
        assert_eq!((carrier.failures(), carrier.live()), (1, 0));
        let mut report = Report::new("calls");
        carrier.report(&mut report);
        assert_eq!(report.value("calls failed: INVITE without an answer"), Some(&1.into()));
    }

    #[test]
    fn a_refusal_is_acknowledged_and_counted_by_its_status() {
        let (mut carrier, mut outbox) = carrier(None);
        carrier.place(0, 0, &mut outbox);
        let invite = outbox.drain_texts().remove(0).2;
        let ack = feed(&mut carrier, &mut outbox, 1, &answer(0, "503 Service Unavailable", "INVITE"));
        let via = |text: &str| text.lines().find(|line| line.starts_with("Via:")).map(str::to_owned);
        assert_eq!(via(&ack[0]), via(&invite));
        assert!(ack[0].starts_with("ACK sip:+44207100000@load.test SIP/2.0\r\n"));
        assert_eq!((carrier.failures(), carrier.live()), (1, 0));
        // Later responses are counted as belonging to no call.
        feed(&mut carrier, &mut outbox, 2, &answer(0, "503 Service Unavailable", "INVITE"));
        let mut report = Report::new("calls");
        carrier.report(&mut report);
        assert_eq!(report.value("calls failed: INVITE 503"), Some(&1.into()));
        assert_eq!(report.value("messages of no live call"), Some(&1.into()));
    }

    #[test]
    fn a_bye_of_the_engine_fails_the_call() {
        let (mut carrier, mut outbox) = carrier(None);
        carrier.place(0, 0, &mut outbox);
        feed(&mut carrier, &mut outbox, 1, &answer(0, "200 OK", "INVITE"));
        let bye = "BYE sip:carrier@127.80.0.1 SIP/2.0\r\nVia: v\r\nFrom: f\r\nTo: t\r\nCall-ID: c0-2a@load\r\n\
             CSeq: 9 BYE\r\nContent-Length: 0\r\n\r\n";
        let answers = feed(&mut carrier, &mut outbox, 2, bye);
        assert!(answers[0].starts_with("SIP/2.0 200 OK\r\nVia: v\r\n"));
        assert_eq!((carrier.failures(), carrier.up(), carrier.live()), (1, 0, 0));
        assert!(feed(&mut carrier, &mut outbox, 3, bye)[0].starts_with("SIP/2.0 481 "));
    }
}
