//! The bench for ladder tests: two user agents and a network that loses chosen messages.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::{Duration, Instant};

use bytes::Bytes;
use expect_test::Expect;
use rand::SeedableRng;
use rand::rngs::StdRng;

use super::*;
use crate::dialog::{MIN_SE_S, SessionTimerConfig};
use crate::flow::{Flow, ListenerId};
use crate::message::{
    Datagram, Headers, Host, Message, Method, Request, Response, StatusCode, parse_datagram,
};
use crate::transaction::ladder::start;
use crate::transaction::{ClientKey, LayerConfig, Local, ServerKey};

/// Alice (0) and Bob (1), 10 ms apart.
struct Bench {
    ends: [End; 2],
    zero: Instant,
    now: Instant,
    wire: BTreeMap<(Instant, u64), (usize, Bytes)>,
    posted: u64,
    /// Prefixes of messages to lose, each once.
    losses: Vec<String>,
    /// Whether every message is lost.
    is_cut: bool,
    /// The latest INVITE of Alice as Bob received it, for answers of other forks.
    invite: Option<Request>,
    out: String,
}

struct End {
    ua: Ua,
    leg: Option<LegKey>,
    server: Option<ServerKey>,
    client: Option<ClientKey>,
    refused: Option<Request>,
    /// The transaction of the latest datagram.
    sent: Option<ClientKey>,
}

/// Each line is `<ms> a|b VERB [word]`, `<ms> lose TEXT` or `<ms> fork STATUS TAG`.
pub(super) fn check(script: &str, expected: Expect) {
    check_with(LEGS_MAX, script, expected);
}

/// Like [`check`], with a bound for Bob's legs.
pub(super) fn check_with(legs_len_max: usize, script: &str, expected: Expect) {
    let mut bench = Bench::new();
    bench.ends[1].ua.config.legs_len_max = legs_len_max;
    for line in script.lines().map(str::trim).filter(|line| !line.is_empty()) {
        bench.step(line);
    }
    bench.run_until(bench.now + Duration::from_secs(200));
    for (end, name) in bench.ends.iter().zip(NAMES) {
        let left = (end.ua.legs_len(), end.ua.transactions(), end.ua.next_timeout());
        assert_eq!(left, (0, (0, 0), None), "{name} leaves something behind\n{}", bench.out);
        assert!(end.ua.purposes.is_empty() && end.ua.legs_by_tag.is_empty(), "{name} leaves an index behind");
    }
    expected.assert_eq(&bench.out);
}

impl Bench {
    fn new() -> Self {
        let zero = start();
        let end = |n: u8| End {
            ua: Ua::new(
                UaConfig::new(LayerConfig::new(Local::fixed(Host::V4([192, 0, 2, n].into()), None))),
                StdRng::seed_from_u64(n.into()),
            ),
            leg: None,
            server: None,
            client: None,
            refused: None,
            sent: None,
        };
        Self {
            ends: [end(1), end(2)],
            zero,
            now: zero,
            wire: BTreeMap::new(),
            posted: 0,
            losses: Vec::new(),
            is_cut: false,
            invite: None,
            out: String::new(),
        }
    }

    fn step(&mut self, line: &str) {
        let mut words = line.split_whitespace();
        let at_ms = words.next().unwrap().parse().unwrap();
        self.run_until(self.zero + Duration::from_millis(at_ms));
        let (who, what) = (words.next().unwrap(), words.next().unwrap());
        let word = words.next();
        match who {
            "lose" => {
                let text = line.split_once("lose ").unwrap().1;
                self.losses.push(text.to_owned());
            }
            "cut" => self.is_cut = true,
            "fork" => self.fork(what.parse().unwrap(), word.unwrap()),
            _ => {
                self.print(line.split_once(' ').unwrap().1);
                let number = words.next().map(|number| number.parse().unwrap());
                self.user(if who == "a" { 0 } else { 1 }, what, word, number);
            }
        }
        self.drain();
    }

    fn user(&mut self, who: usize, what: &str, word: Option<&str>, number: Option<u32>) {
        let now = self.now;
        let to_peer = flow(1 - who);
        let End { ua, leg, server, client, refused, sent } = &mut self.ends[who];
        let sdp = |extra: Extra| extra.content("application/sdp", "v=0\r\n");
        let result = match (what, word) {
            ("invite", late) => {
                let invite = Invite::new("sip:bob@192.0.2.2", "<sip:alice@192.0.2.1>", "<sip:bob@192.0.2.2>");
                let invite =
                    if late.is_some() { invite } else { invite.content("application/sdp", "v=0\r\n") };
                ua.invite(now, to_peer, invite).map(|key| *leg = Some(key))
            }
            ("reinvite", late) => {
                let extra = if late.is_some() { Extra::new() } else { sdp(Extra::new()) };
                ua.reinvite(now, leg.unwrap(), &extra).map(|key| *client = Some(key))
            }
            // Session timers of this many seconds, also as the minimum.
            ("timer", Some("off")) => {
                ua.config.session_timer = None;
                Ok(())
            }
            ("timer", Some(expires)) => {
                let expires_s = expires.parse().unwrap();
                ua.config.session_timer =
                    Some(SessionTimerConfig { expires_s, min_se_s: number.unwrap_or(MIN_SE_S) });
                Ok(())
            }
            ("updates", _) => {
                let invite = Invite::new("sip:bob@192.0.2.2", "<sip:alice@192.0.2.1>", "<sip:bob@192.0.2.2>")
                    .header("Allow", "INVITE, UPDATE")
                    .content("application/sdp", "v=0\r\n");
                ua.invite(now, to_peer, invite).map(|key| *leg = Some(key))
            }
            // Accepts this option tag from now on.
            ("extension", Some(tag)) => {
                ua.config.extensions.push(tag.to_owned());
                Ok(())
            }
            ("info", _) => ua.info(now, leg.unwrap(), note()).map(|_| ()),
            ("message", _) => {
                let (from, to) = ("<sip:events@acme.test>", "<sip:bob@acme.test>");
                let draft = Draft::message("sip:bob@192.0.2.2", from, to, note());
                ua.request(now, to_peer, draft.header("Route", "<sip:edge.acme.test;lr>")).map(|_| ())
            }
            ("options", _) => {
                let draft =
                    Draft::new(Method::Options, "sip:b@192.0.2.2", "sip:a@192.0.2.1", "sip:b@192.0.2.2");
                ua.request(now, to_peer, draft).map(|_| ())
            }
            ("require", Some(tag)) => {
                let invite = Invite::new("sip:bob@192.0.2.2", "<sip:alice@192.0.2.1>", "<sip:bob@192.0.2.2>");
                ua.invite(now, to_peer, invite.header("Require", tag)).map(|key| *leg = Some(key))
            }
            ("retry", _) => {
                let extra = Extra::new().header("Authorization", "Digest response=\"x\"");
                ua.retry(now, to_peer, refused.take().unwrap(), &extra).map(|retried| match retried {
                    Retried::Leg(key) => *leg = Some(key),
                    Retried::Transaction(key) => *client = Some(key),
                })
            }
            ("update", _) => ua
                .request_within(now, leg.unwrap(), Method::Update, &sdp(Extra::new()))
                .map(|key| *client = Some(key)),
            ("ack", _) => ua.ack(now, leg.unwrap(), &sdp(Extra::new())),
            ("hangup", _) => {
                ua.hang_up(now, leg.unwrap());
                Ok(())
            }
            ("refuse", Some(status)) => ua.refuse(now, &server.unwrap(), reply(status)),
            ("respond", Some(status)) => ua.respond(now, &server.unwrap(), reply(status)),
            ("unreachable", _) => {
                ua.handle_input(now, Input::TransportError { key: sent.unwrap() });
                Ok(())
            }
            // This agent loses its state.
            ("restart", _) => {
                *ua = Ua::new(ua.config.clone(), StdRng::seed_from_u64(99));
                Ok(())
            }
            // A request in the peer's dialog that this agent's own dialog would not create.
            ("raw", Some(method)) => {
                let leg = ua.legs.values().next().unwrap();
                let method = Method::from_bytes(method.as_bytes()).unwrap();
                let mut request = leg.dialogs[0].request(method, number.unwrap()).unwrap();
                let via = format!("SIP/2.0/UDP 192.0.2.2;rport;branch=z9hG4bKraw{}", number.unwrap());
                request.prepend("Via", via).unwrap();
                let bytes = request.to_bytes();
                self.post(1 - who, bytes);
                Ok(())
            }
            ("stranger", Some(method)) => {
                let text = format!(
                    "{method} sip:bob@192.0.2.2 SIP/2.0\r\nVia: SIP/2.0/UDP 192.0.2.1;branch=z9hG4bKx\r\n\
                     Max-Forwards: 70\r\nFrom: <sip:x@y>;tag=1\r\nTo: <sip:b@h>;tag=guess\r\n\
                     Call-ID: c\r\nCSeq: 9 {method}\r\n\r\n"
                );
                self.post(1 - who, text.into());
                Ok(())
            }
            other => panic!("no such verb: {other:?}"),
        };
        if let Err(error) = result {
            self.print(&format!("  {}: {error}", NAMES[who]));
        }
    }

    /// Another fork answers Alice's INVITE.
    fn fork(&mut self, status: u16, tag: &str) {
        let mut response =
            Response::reply_to(self.invite.as_ref().unwrap(), StatusCode::new(status).unwrap());
        response.set_to_tag(tag).unwrap();
        response.push("Contact", "<sip:fork@192.0.2.2>").unwrap();
        self.print(&format!("fork>a {status} {tag}"));
        let bytes = response.to_bytes();
        self.post(0, bytes);
    }

    fn run_until(&mut self, until: Instant) {
        loop {
            let timer = self.ends.iter().filter_map(|end| end.ua.next_timeout()).min();
            let arrival = self.wire.keys().next().map(|(at, _)| *at);
            let Some(at) = [timer, arrival].into_iter().flatten().min().filter(|at| *at <= until) else {
                break;
            };
            self.now = self.now.max(at);
            if let Some(entry) = self.wire.first_entry().filter(|entry| entry.key().0 <= self.now) {
                let (who, bytes) = entry.remove();
                self.ends[who].ua.handle_input(self.now, Input::Datagram { flow: flow(1 - who), bytes });
            } else {
                for end in &mut self.ends {
                    end.ua.handle_input(self.now, Input::Timeout);
                }
            }
            self.drain();
        }
        self.now = self.now.max(until);
    }

    fn drain(&mut self) {
        for who in 0..2 {
            while let Some(output) = self.ends[who].ua.poll_output() {
                match output {
                    Output::Transmit { flow: to, bytes, key } => {
                        self.ends[who].sent = key;
                        let text = self.summary(who, &bytes);
                        assert_eq!(to, flow(1 - who), "{text}");
                        let lost = self.losses.iter().position(|loss| text.starts_with(loss.as_str()));
                        let note = if lost.is_some() || self.is_cut { "   (lost)" } else { "" };
                        self.print(&format!("  {}>{} {text}{note}", NAMES[who], NAMES[1 - who]));
                        match lost {
                            Some(at) => {
                                self.losses.remove(at);
                            }
                            None if self.is_cut => {}
                            None => self.post(1 - who, bytes),
                        }
                    }
                    Output::Event(event) => {
                        let text = self.describe(who, event);
                        self.print(&format!("  {}: {text}", NAMES[who]));
                    }
                    Output::Hold { flow, .. } => panic!("{flow}"),
                    Output::Overload { .. } => self.print(&format!("  {}: overload", NAMES[who])),
                    Output::Rejected { reason, .. } => panic!("{reason}"),
                    Output::Withheld { flow } => panic!("{flow}"),
                }
            }
        }
    }

    fn post(&mut self, to: usize, bytes: Bytes) {
        self.posted += 1;
        self.wire.insert((self.now + Duration::from_millis(10), self.posted), (to, bytes));
    }

    fn summary(&mut self, who: usize, bytes: &Bytes) -> String {
        match parse_datagram(bytes.clone()).expect("we send what we would accept") {
            Datagram::Message(Message::Request(request)) => {
                let cseq = request.cseq().unwrap().number;
                let body = match request.header("Content-Type") {
                    _ if request.body().is_empty() => "",
                    Some("application/json") => " +note",
                    _ => " +sdp",
                };
                let line = format!("{} {cseq}{body}{}", request.method(), session(request.headers()));
                if who == 0 && *request.method() == Method::Invite {
                    self.invite = Some(request);
                }
                line
            }
            Datagram::Message(Message::Response(response)) => {
                let cseq = response.cseq().unwrap();
                let extra = response.header("Retry-After").map_or("", |_| " +Retry-After");
                let extra = response.header("Unsupported").unwrap_or(extra);
                let session = session(response.headers());
                format!("{} ({} {}){extra}{session}", response.status().as_u16(), cseq.number, cseq.method)
            }
            Datagram::Ping | Datagram::Pong => "CRLF".to_owned(),
        }
    }

    fn describe(&mut self, who: usize, event: Event) -> String {
        let end = &mut self.ends[who];
        match event {
            Event::Acked { request, .. } => {
                format!("Acked{}", if request.body().is_empty() { "" } else { " +sdp" })
            }
            Event::Answered { .. } => "Answered".to_owned(),
            Event::Ended { cause, .. } => match cause {
                Cause::Bye(_) => "Ended by BYE".to_owned(),
                Cause::Cancelled(_) => "Ended by CANCEL".to_owned(),
                Cause::Refused { response, request, .. } => {
                    end.refused = request;
                    format!("Ended: refused {}", response.status().as_u16())
                }
                other => format!("Ended: {other:?}"),
            },
            Event::InfoAnswered { receipt, .. } => format!("InfoAnswered {}", end.receipt(receipt)),
            Event::MessageAnswered { receipt, .. } => format!("MessageAnswered {}", end.receipt(receipt)),
            Event::Invited { leg, key, request, .. } => {
                (end.leg, end.server) = (Some(leg), Some(key));
                let credentials = request.header("Authorization").map_or("", |_| " +Authorization");
                format!("Invited{credentials}")
            }
            Event::NotifyAnswered { status, .. } => {
                let status = status.map_or("none".to_owned(), |status| status.as_u16().to_string());
                format!("NotifyAnswered {status}")
            }
            Event::Progress { response, .. } => format!("Progress {}", response.status().as_u16()),
            Event::Reinvited { key, .. } => {
                end.server = Some(key);
                "Reinvited".to_owned()
            }
            Event::ReinviteCancelled { .. } => "ReinviteCancelled".to_owned(),
            Event::ReinviteClashed { .. } => "ReinviteClashed".to_owned(),
            Event::ReinviteDue { .. } => "ReinviteDue".to_owned(),
            Event::RefreshDue { .. } => "RefreshDue".to_owned(),
            Event::Request { key, request, leg, .. } => {
                end.server = Some(key);
                let route = request.header("Route").map_or("", |_| " +Route");
                let credentials = request.header("Authorization").map_or("", |_| " +Authorization");
                let leg = leg.map_or("", |_| " of the leg");
                format!("{} request{leg}{route}{credentials}", request.method())
            }
            Event::Resubscribed { key, .. } => {
                end.server = Some(key);
                "Resubscribed".to_owned()
            }
            Event::Response { response, request, .. } => {
                end.refused = request;
                format!("{} response", response.status().as_u16())
            }
            Event::Unanswered { .. } => "Unanswered".to_owned(),
            Event::OfferUnanswered { .. } => "Offer unanswered".to_owned(),
            Event::Updated { key, .. } => {
                end.server = Some(key);
                "Updated".to_owned()
            }
        }
    }

    fn print(&mut self, text: &str) {
        writeln!(self.out, "{:<10}{text}", format!("{}ms", (self.now - self.zero).as_millis())).unwrap();
    }
}

impl End {
    fn receipt(&mut self, receipt: Receipt) -> String {
        match receipt {
            Receipt::Answered { response, request, .. } => {
                self.refused = request;
                response.status().as_u16().to_string()
            }
            other => format!("{other:?}"),
        }
    }
}

/// The session timer headers of a message.
fn session(headers: &Headers) -> String {
    let mut text = String::new();
    for (name, short) in [("Session-Expires", "x"), ("Min-SE", "min-se"), ("Require", "require")] {
        if let Some(value) = headers.header(name).filter(|value| *value != "100rel") {
            write!(text, " {short}={value}").unwrap();
        }
    }
    // RSeq numbers begin at random.
    text += headers.header("RSeq").map_or("", |_| " +RSeq");
    text += headers.header("RAck").map_or("", |_| " +RAck");
    text + headers.header("Reason").map_or("", |_| " +Reason")
}

fn note() -> Content {
    Content::new("application/json", "{\"title\":\"Lunch\"}")
}

fn flow(to: usize) -> Flow {
    let last = u8::try_from(to + 1).unwrap();
    Flow::udp(ListenerId(0), ([192, 0, 2, last], 5060).into())
}

fn reply(status: &str) -> Reply {
    let reply = Reply::new(StatusCode::new(status.parse().unwrap()).unwrap());
    if status.starts_with('2') { reply.content("application/sdp", "v=0\r\n") } else { reply }
}

const NAMES: [&str; 2] = ["a", "b"];
