//! Ladder tests of the whole layer: messages as input, messages and events as result.

use std::fmt::Write as _;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use bytes::Bytes;
use expect_test::{Expect, expect};
use rand::SeedableRng;
use rand::rngs::StdRng;

use super::*;
use crate::flow::{Flow, ListenerId};
use crate::message::{Datagram, Host, Message, Method, Request, Response, StatusCode, parse_datagram};
use crate::transaction::ladder::start;

/// A layer, a peer at 192.0.2.1:5060 with text messages, and the ladder of events.
struct Bench {
    layer: Layer,
    zero: Instant,
    now: Instant,
    client: Option<ClientKey>,
    server: Option<ServerKey>,
    invite: Option<ServerKey>,
    sent: Option<Request>,
    out: String,
}

/// Each line of `script` is `<ms> net METHOD BRANCH [word]…`, `<ms> net STATUS [METHOD]` or `<ms> tu WORD`.
fn check(script: &str, expected: Expect) {
    check_with(TRANSACTIONS_MAX, script, expected);
}

fn check_with(len_max: usize, script: &str, expected: Expect) {
    check_by(|config| (config.server_len_max, config.client_len_max) = (len_max, len_max), script, expected);
}

fn check_by(change: impl FnOnce(&mut LayerConfig), script: &str, expected: Expect) {
    let zero = start();
    let mut config = LayerConfig::new(Local::fixed(Host::V4([198, 51, 100, 1].into()), None));
    change(&mut config);
    let mut bench = Bench {
        layer: Layer::new(config, StdRng::seed_from_u64(1)),
        zero,
        now: zero,
        client: None,
        server: None,
        invite: None,
        sent: None,
        out: String::new(),
    };
    for line in script.lines().map(str::trim).filter(|line| !line.is_empty()) {
        bench.step(line);
    }
    bench.run_until(zero + Duration::from_secs(100));
    let (clients, servers) = bench.layer.transactions();
    assert_eq!(
        (clients, servers, bench.layer.next_timeout()),
        (0, 0, None),
        "nothing is left behind\n{}",
        bench.out
    );
    expected.assert_eq(&bench.out);
}

impl Bench {
    fn step(&mut self, line: &str) {
        let mut words = line.split_whitespace();
        let at_ms = words.next().unwrap().parse().unwrap();
        self.run_until(self.zero + Duration::from_millis(at_ms));
        self.print(&line[line.find(' ').unwrap()..]);
        let (who, what) = (words.next().unwrap(), words.next().unwrap());
        let words: Vec<&str> = words.collect();
        match (who, what.parse::<u16>()) {
            ("net", Ok(status)) => self.hear_response(status, words.first().copied()),
            ("net", Err(_)) => self.hear_request(what, &words),
            ("tu", Ok(status)) => self.answer(status, words.first().copied()),
            _ => self.user(what),
        }
        self.drain();
    }

    fn hear_request(&mut self, method: &str, words: &[&str]) {
        let option = |name: &str| words.iter().find_map(|word| word.strip_prefix(name)?.strip_prefix('='));
        let via = option("via").unwrap_or("192.0.2.1;rport");
        let to_tag = option("tag").map_or(String::new(), |tag| format!(";tag={tag}"));
        let cseq = if method == "ACK" || method == "CANCEL" { "1" } else { option("cseq").unwrap_or("1") };
        let branch = words.first().filter(|word| !word.contains('=')).unwrap();
        let branch = if *branch == "-" { String::new() } else { format!(";branch={branch}") };
        let text = format!(
            "{method} sip:b@198.51.100.1 SIP/2.0\r\nVia: SIP/2.0/UDP {via}{branch}\r\nMax-Forwards: 70\r\n\
             From: <sip:a@192.0.2.1>;tag=a\r\nTo: <sip:b@198.51.100.1>{to_tag}\r\nCall-ID: c\r\n\
             CSeq: {cseq} {method}\r\nContact: <sip:a@192.0.2.1>\r\nContent-Length: 0\r\n\r\n"
        );
        let source = option("from").unwrap_or("192.0.2.1:5060").parse().unwrap();
        self.layer.receive(self.now, flow(source), Bytes::from(text));
    }

    /// A response to the layer's last request, or to its branch with another method.
    fn hear_response(&mut self, status: u16, method: Option<&str>) {
        let mut response = Response::reply_to(self.sent.as_ref().unwrap(), StatusCode::new(status).unwrap());
        response.set_to_tag("peer").unwrap();
        if let Some(method) = method {
            response.set("CSeq", format!("1 {method}")).unwrap();
        }
        self.layer.receive(self.now, flow("192.0.2.1:5060".parse().unwrap()), response.to_bytes());
    }

    fn answer(&mut self, status: u16, word: Option<&str>) {
        let key = if word == Some("invite") { self.invite.unwrap() } else { self.server.unwrap() };
        let Some(request) = self.layer.server_request(&key) else { return self.print("  (too late)") };
        let mut response = Response::reply_to(request, StatusCode::new(status).unwrap());
        response.set_to_tag(&self.layer.local_tag(&key).unwrap()).unwrap();
        match word {
            Some("stateless") => assert!(self.layer.respond_statelessly(self.now, &key, &response)),
            _ => {
                self.layer.respond(self.now, &key, &response);
            }
        }
    }

    fn user(&mut self, what: &str) {
        match what {
            "cancel" => self.layer.cancel(self.now, &self.client.unwrap(), None),
            "prove" => self.layer.prove(&self.server.unwrap()),
            "retransmit" => self.layer.retransmit(self.now, &self.server.unwrap()),
            "unreachable" => {
                self.layer.handle_input(self.now, Input::TransportError { key: self.client.unwrap() });
            }
            method => {
                let request =
                    Request::builder(Method::from_bytes(method.as_bytes()).unwrap(), "sip:a@192.0.2.1")
                        .header("Max-Forwards", 70)
                        .header("From", "<sip:b@198.51.100.1>;tag=b")
                        .header("To", "<sip:a@192.0.2.1>")
                        .header("Call-ID", "d")
                        .header("CSeq", format!("1 {method}"))
                        .header("Route", "<sip:192.0.2.1;lr>")
                        .build()
                        .unwrap();
                match self.layer.request(self.now, flow("192.0.2.1:5060".parse().unwrap()), request) {
                    Ok(key) => self.client = Some(key),
                    Err(error) => self.print(&format!("  >tu  {error}")),
                }
            }
        }
    }

    fn run_until(&mut self, until: Instant) {
        while let Some(at) = self.layer.next_timeout().filter(|at| *at <= until) {
            self.now = self.now.max(at);
            self.layer.handle_input(self.now, Input::Timeout);
            self.drain();
        }
        self.now = self.now.max(until);
    }

    fn drain(&mut self) {
        while let Some(output) = self.layer.poll_output() {
            let line = match output {
                Output::Event(event) => format!("  >tu  {}", self.describe(event)),
                Output::Overload { .. } => "  >tu  overload".to_owned(),
                Output::Withheld { .. } => "  >tu  withheld".to_owned(),
                Output::Rejected { reason, .. } => format!("  >tu  rejected: {reason}"),
                Output::Transmit { flow, bytes, .. } => {
                    format!("  >net {} {}", flow.remote, self.sent(bytes))
                }
            };
            self.print(&line);
        }
    }

    fn sent(&mut self, bytes: Bytes) -> String {
        match parse_datagram(bytes).expect("we send what we would accept") {
            Datagram::Message(Message::Request(request)) => {
                let line = format!("{} {}", request.method(), request.header("To").unwrap_or_default());
                if *request.method() != Method::Ack {
                    self.sent = Some(request);
                }
                line
            }
            Datagram::Message(Message::Response(response)) => {
                let cseq = response.cseq().unwrap();
                let params = response.via_top().unwrap().params;
                format!("{} {} {} via{params}", response.status().as_u16(), response.reason(), cseq.method)
            }
            Datagram::Ping | Datagram::Pong => "CRLF".to_owned(),
        }
    }

    fn describe(&mut self, event: Event) -> String {
        match event {
            Event::Ack { .. } => "ACK".to_owned(),
            Event::AckTimeout { .. } => "no ACK".to_owned(),
            Event::Cancelled { .. } => "cancelled".to_owned(),
            Event::Request { key, request, .. } => {
                self.server = Some(key);
                if *request.method() == Method::Invite {
                    self.invite = Some(key);
                }
                format!("{} request", request.method())
            }
            Event::Response { response, request, .. } => {
                let handed_back = if request.is_some() { ", request handed back" } else { "" };
                format!("{} response{handed_back}", response.status().as_u16())
            }
            Event::StraySuccess { .. } => "stray 2xx".to_owned(),
            Event::Timeout { timer, .. } => format!("timeout {timer}"),
            Event::TransportError { .. } => "transport error".to_owned(),
        }
    }

    fn print(&mut self, text: &str) {
        writeln!(self.out, "{:<8}{text}", format!("{}ms", (self.now - self.zero).as_millis())).unwrap();
    }
}

fn flow(remote: SocketAddr) -> Flow {
    Flow::udp(ListenerId(0), remote)
}

#[test]
fn an_invite_is_answered_and_its_retransmissions_absorbed() {
    check(
        "0 net INVITE z9hG4bK1
         100 net INVITE z9hG4bK1
         300 tu 180
         600 net INVITE z9hG4bK1
         900 tu 200
         1000 net INVITE z9hG4bK1
         1400 tu retransmit
         1500 net ACK z9hG4bK2 tag=x",
        expect![[r#"
            0ms      net INVITE z9hG4bK1
            0ms       >tu  INVITE request
            100ms    net INVITE z9hG4bK1
            100ms     >net 192.0.2.1:5060 100 Trying INVITE via;rport=5060;branch=z9hG4bK1;received=192.0.2.1
            300ms    tu 180
            300ms     >net 192.0.2.1:5060 180 Ringing INVITE via;rport=5060;branch=z9hG4bK1;received=192.0.2.1
            600ms    net INVITE z9hG4bK1
            600ms     >net 192.0.2.1:5060 180 Ringing INVITE via;rport=5060;branch=z9hG4bK1;received=192.0.2.1
            900ms    tu 200
            900ms     >net 192.0.2.1:5060 200 OK INVITE via;rport=5060;branch=z9hG4bK1;received=192.0.2.1
            1000ms   net INVITE z9hG4bK1
            1400ms   tu retransmit
            1400ms    >net 192.0.2.1:5060 200 OK INVITE via;rport=5060;branch=z9hG4bK1;received=192.0.2.1
            1500ms   net ACK z9hG4bK2 tag=x
            1500ms    >tu  ACK
        "#]],
    );
}

#[test]
fn a_failure_is_repeated_until_its_own_ack() {
    check(
        "0 net INVITE z9hG4bK1
         50 tu 404
         900 net ACK z9hG4bK1 tag=x
         950 net ACK z9hG4bK1 tag=x",
        expect![[r#"
            0ms      net INVITE z9hG4bK1
            0ms       >tu  INVITE request
            50ms     tu 404
            50ms      >net 192.0.2.1:5060 404 Not Found INVITE via;rport=5060;branch=z9hG4bK1;received=192.0.2.1
            550ms     >net 192.0.2.1:5060 404 Not Found INVITE via;rport=5060;branch=z9hG4bK1;received=192.0.2.1
            900ms    net ACK z9hG4bK1 tag=x
            950ms    net ACK z9hG4bK1 tag=x
        "#]],
    );
}

#[test]
fn a_challenge_to_a_stranger_leaves_nothing_behind() {
    check(
        "0 net INVITE z9hG4bK1
         10 tu 401 stateless
         20 net ACK z9hG4bK1 tag=x
         500 net INVITE z9hG4bK1
         510 tu 401 stateless",
        expect![[r#"
            0ms      net INVITE z9hG4bK1
            0ms       >tu  INVITE request
            10ms     tu 401 stateless
            10ms      >net 192.0.2.1:5060 401 Unauthorized INVITE via;rport=5060;branch=z9hG4bK1;received=192.0.2.1
            20ms     net ACK z9hG4bK1 tag=x
            20ms      >tu  ACK
            500ms    net INVITE z9hG4bK1
            500ms     >tu  INVITE request
            510ms    tu 401 stateless
            510ms     >net 192.0.2.1:5060 401 Unauthorized INVITE via;rport=5060;branch=z9hG4bK1;received=192.0.2.1
        "#]],
    );
}

#[test]
fn cancel_in_time() {
    check(
        "0 net INVITE z9hG4bK1
         300 net CANCEL z9hG4bK1
         310 tu 487 invite
         320 net CANCEL z9hG4bK1
         330 net ACK z9hG4bK1 tag=x",
        expect![[r#"
            0ms      net INVITE z9hG4bK1
            0ms       >tu  INVITE request
            200ms     >net 192.0.2.1:5060 100 Trying INVITE via;rport=5060;branch=z9hG4bK1;received=192.0.2.1
            300ms    net CANCEL z9hG4bK1
            300ms     >net 192.0.2.1:5060 200 OK CANCEL via;rport=5060;branch=z9hG4bK1;received=192.0.2.1
            300ms     >tu  cancelled
            310ms    tu 487 invite
            310ms     >net 192.0.2.1:5060 487 Request Terminated INVITE via;rport=5060;branch=z9hG4bK1;received=192.0.2.1
            320ms    net CANCEL z9hG4bK1
            320ms     >net 192.0.2.1:5060 200 OK CANCEL via;rport=5060;branch=z9hG4bK1;received=192.0.2.1
            330ms    net ACK z9hG4bK1 tag=x
        "#]],
    );
}

#[test]
fn cancel_too_late_or_of_nothing_or_by_a_stranger() {
    check(
        "0 net INVITE z9hG4bK1
         10 tu 200
         20 net CANCEL z9hG4bK1
         30 net CANCEL z9hG4bK7
         40 net INVITE z9hG4bK3 cseq=2
         50 net CANCEL z9hG4bK3 from=203.0.113.9:5060
         60 tu 486 invite
         70 net ACK z9hG4bK3 tag=x",
        expect![[r#"
            0ms      net INVITE z9hG4bK1
            0ms       >tu  INVITE request
            10ms     tu 200
            10ms      >net 192.0.2.1:5060 200 OK INVITE via;rport=5060;branch=z9hG4bK1;received=192.0.2.1
            20ms     net CANCEL z9hG4bK1
            20ms      >net 192.0.2.1:5060 200 OK CANCEL via;rport=5060;branch=z9hG4bK1;received=192.0.2.1
            30ms     net CANCEL z9hG4bK7
            30ms      >net 192.0.2.1:5060 481 Call/Transaction Does Not Exist CANCEL via;rport=5060;branch=z9hG4bK7;received=192.0.2.1
            40ms     net INVITE z9hG4bK3 cseq=2
            40ms      >tu  INVITE request
            50ms     net CANCEL z9hG4bK3 from=203.0.113.9:5060
            50ms      >net 203.0.113.9:5060 481 Call/Transaction Does Not Exist CANCEL via;rport=5060;branch=z9hG4bK3;received=203.0.113.9
            60ms     tu 486 invite
            60ms      >net 192.0.2.1:5060 486 Busy Here INVITE via;rport=5060;branch=z9hG4bK3;received=192.0.2.1
            70ms     net ACK z9hG4bK3 tag=x
        "#]],
    );
}

#[test]
fn responses_follow_rport_received_and_sent_by() {
    check(
        "0 net OPTIONS z9hG4bK1 via=10.0.0.7:5070;rport from=192.0.2.1:40000
         1 tu 200
         2 net OPTIONS z9hG4bK2 via=10.0.0.7:5070 from=192.0.2.1:40000 cseq=2
         3 tu 200
         4 net OPTIONS z9hG4bK3 via=pc.example;received=203.0.113.9 from=192.0.2.1:40000 cseq=3
         5 tu 200",
        expect![[r#"
            0ms      net OPTIONS z9hG4bK1 via=10.0.0.7:5070;rport from=192.0.2.1:40000
            0ms       >tu  OPTIONS request
            1ms      tu 200
            1ms       >net 192.0.2.1:40000 200 OK OPTIONS via;rport=40000;branch=z9hG4bK1;received=192.0.2.1
            2ms      net OPTIONS z9hG4bK2 via=10.0.0.7:5070 from=192.0.2.1:40000 cseq=2
            2ms       >tu  OPTIONS request
            3ms      tu 200
            3ms       >net 192.0.2.1:5070 200 OK OPTIONS via;branch=z9hG4bK2;received=192.0.2.1
            4ms      net OPTIONS z9hG4bK3 via=pc.example;received=203.0.113.9 from=192.0.2.1:40000 cseq=3
            4ms       >tu  OPTIONS request
            5ms      tu 200
            5ms       >net 192.0.2.1:5060 200 OK OPTIONS via;received=192.0.2.1;branch=z9hG4bK3
        "#]],
    );
}

#[test]
fn a_request_that_came_by_two_paths_is_merged() {
    check(
        "0 net OPTIONS z9hG4bK1
         1 net OPTIONS z9hG4bK2
         2 tu 200",
        expect![[r#"
            0ms      net OPTIONS z9hG4bK1
            0ms       >tu  OPTIONS request
            1ms      net OPTIONS z9hG4bK2
            1ms       >net 192.0.2.1:5060 482 Loop Detected OPTIONS via;rport=5060;branch=z9hG4bK2;received=192.0.2.1
            2ms      tu 200
            2ms       >net 192.0.2.1:5060 200 OK OPTIONS via;rport=5060;branch=z9hG4bK1;received=192.0.2.1
        "#]],
    );
}

#[test]
fn an_element_of_rfc_2543_sends_no_branch() {
    check(
        "0 net INVITE -
         10 net INVITE -
         20 tu 486
         30 net ACK - tag=x
         40 net OPTIONS 1 cseq=2
         50 net OPTIONS 1 cseq=2
         60 tu 200
         70 net OPTIONS 1 cseq=2",
        expect![[r#"
            0ms      net INVITE -
            0ms       >tu  INVITE request
            10ms     net INVITE -
            10ms      >net 192.0.2.1:5060 100 Trying INVITE via;rport=5060;received=192.0.2.1
            20ms     tu 486
            20ms      >net 192.0.2.1:5060 486 Busy Here INVITE via;rport=5060;received=192.0.2.1
            30ms     net ACK - tag=x
            40ms     net OPTIONS 1 cseq=2
            40ms      >tu  OPTIONS request
            50ms     net OPTIONS 1 cseq=2
            60ms     tu 200
            60ms      >net 192.0.2.1:5060 200 OK OPTIONS via;rport=5060;branch=1;received=192.0.2.1
            70ms     net OPTIONS 1 cseq=2
            70ms      >net 192.0.2.1:5060 200 OK OPTIONS via;rport=5060;branch=1;received=192.0.2.1
        "#]],
    );
}

#[test]
fn a_full_table_answers_503_and_says_so() {
    check_with(
        1,
        "0 net OPTIONS z9hG4bK1
         1 net OPTIONS z9hG4bK2 cseq=2
         2 net ACK z9hG4bK3 tag=x
         3 tu 200
         4 tu OPTIONS
         5 tu OPTIONS
         6 net 200",
        expect![[r#"
            0ms      net OPTIONS z9hG4bK1
            0ms       >tu  OPTIONS request
            1ms      net OPTIONS z9hG4bK2 cseq=2
            1ms       >net 192.0.2.1:5060 503 Service Unavailable OPTIONS via;rport=5060;branch=z9hG4bK2;received=192.0.2.1
            1ms       >tu  overload
            2ms      net ACK z9hG4bK3 tag=x
            2ms       >tu  ACK
            3ms      tu 200
            3ms       >net 192.0.2.1:5060 200 OK OPTIONS via;rport=5060;branch=z9hG4bK1;received=192.0.2.1
            4ms      tu OPTIONS
            4ms       >net 192.0.2.1:5060 OPTIONS <sip:a@192.0.2.1>
            5ms      tu OPTIONS
            5ms       >tu  too many transactions or legs are open
            6ms      net 200
            6ms       >tu  200 response, request handed back
        "#]],
    );
}

/// A full table has space for requests inside a dialog, and each source has its share of the rest.
#[test]
fn the_table_keeps_a_reserve_for_dialogs_and_a_share_for_each_source() {
    check_by(
        |config| (config.server_len_max, config.server_len_per_source, config.reserve_len) = (2, 1, 1),
        "0 net OPTIONS z9hG4bK1
         1 net OPTIONS z9hG4bK2 cseq=2
         2 net OPTIONS z9hG4bK3 cseq=3 from=192.0.2.2:5060
         3 net OPTIONS z9hG4bK4 cseq=4 from=192.0.2.3:5060
         4 net BYE z9hG4bK5 cseq=5 tag=x
         5 tu 200
         6 net BYE z9hG4bK6 cseq=6 tag=x
         7 tu 200
         8 net BYE z9hG4bK5 cseq=5 tag=x",
        expect![[r#"
            0ms      net OPTIONS z9hG4bK1
            0ms       >tu  OPTIONS request
            1ms      net OPTIONS z9hG4bK2 cseq=2
            1ms       >net 192.0.2.1:5060 503 Service Unavailable OPTIONS via;rport=5060;branch=z9hG4bK2;received=192.0.2.1
            1ms       >tu  overload
            2ms      net OPTIONS z9hG4bK3 cseq=3 from=192.0.2.2:5060
            2ms       >tu  OPTIONS request
            3ms      net OPTIONS z9hG4bK4 cseq=4 from=192.0.2.3:5060
            3ms       >net 192.0.2.3:5060 503 Service Unavailable OPTIONS via;rport=5060;branch=z9hG4bK4;received=192.0.2.3
            3ms       >tu  overload
            4ms      net BYE z9hG4bK5 cseq=5 tag=x
            4ms       >tu  BYE request
            5ms      tu 200
            5ms       >net 192.0.2.1:5060 200 OK BYE via;rport=5060;branch=z9hG4bK5;received=192.0.2.1
            6ms      net BYE z9hG4bK6 cseq=6 tag=x
            6ms       >tu  BYE request
            7ms      tu 200
            7ms       >net 192.0.2.1:5060 200 OK BYE via;rport=5060;branch=z9hG4bK6;received=192.0.2.1
            8ms      net BYE z9hG4bK5 cseq=5 tag=x
            8ms       >net 192.0.2.1:5060 200 OK BYE via;rport=5060;branch=z9hG4bK5;received=192.0.2.1
            3500ms    >net 192.0.2.1:5060 100 Trying OPTIONS via;rport=5060;branch=z9hG4bK1;received=192.0.2.1
            3502ms    >net 192.0.2.2:5060 100 Trying OPTIONS via;rport=5060;branch=z9hG4bK3;received=192.0.2.2
        "#]],
    );
}

/// §8.2.7: each request of an unauthenticated sender is new and its response the same; a repeated request of an
/// authenticated sender is absorbed.
#[test]
fn strangers_are_forgotten_and_who_is_known_is_not() {
    check_by(
        |config| config.forgets_strangers = true,
        "0 net OPTIONS z9hG4bK1
         1 tu 200
         500 net OPTIONS z9hG4bK1
         501 tu 200
         1000 net OPTIONS z9hG4bK2 cseq=2
         1001 tu prove
         1002 tu 200
         1500 net OPTIONS z9hG4bK2 cseq=2
         2000 net INVITE z9hG4bK3 cseq=3
         2001 tu 403
         2002 net ACK z9hG4bK3 tag=x
         3000 net INVITE z9hG4bK4 cseq=4
         3001 tu 180
         3002 tu 403
         3003 net ACK z9hG4bK4 tag=x
         4000 net INVITE z9hG4bK5 cseq=5
         4001 tu 200",
        expect![[r#"
            0ms      net OPTIONS z9hG4bK1
            0ms       >tu  OPTIONS request
            1ms      tu 200
            1ms       >net 192.0.2.1:5060 200 OK OPTIONS via;rport=5060;branch=z9hG4bK1;received=192.0.2.1
            500ms    net OPTIONS z9hG4bK1
            500ms     >tu  OPTIONS request
            501ms    tu 200
            501ms     >net 192.0.2.1:5060 200 OK OPTIONS via;rport=5060;branch=z9hG4bK1;received=192.0.2.1
            1000ms   net OPTIONS z9hG4bK2 cseq=2
            1000ms    >tu  OPTIONS request
            1001ms   tu prove
            1002ms   tu 200
            1002ms    >net 192.0.2.1:5060 200 OK OPTIONS via;rport=5060;branch=z9hG4bK2;received=192.0.2.1
            1500ms   net OPTIONS z9hG4bK2 cseq=2
            1500ms    >net 192.0.2.1:5060 200 OK OPTIONS via;rport=5060;branch=z9hG4bK2;received=192.0.2.1
            2000ms   net INVITE z9hG4bK3 cseq=3
            2000ms    >tu  INVITE request
            2001ms   tu 403
            2001ms    >net 192.0.2.1:5060 403 Forbidden INVITE via;rport=5060;branch=z9hG4bK3;received=192.0.2.1
            2002ms   net ACK z9hG4bK3 tag=x
            2002ms    >tu  ACK
            3000ms   net INVITE z9hG4bK4 cseq=4
            3000ms    >tu  INVITE request
            3001ms   tu 180
            3001ms    >net 192.0.2.1:5060 180 Ringing INVITE via;rport=5060;branch=z9hG4bK4;received=192.0.2.1
            3002ms   tu 403
            3002ms    >net 192.0.2.1:5060 403 Forbidden INVITE via;rport=5060;branch=z9hG4bK4;received=192.0.2.1
            3003ms   net ACK z9hG4bK4 tag=x
            4000ms   net INVITE z9hG4bK5 cseq=5
            4000ms    >tu  INVITE request
            4001ms   tu 200
            4001ms    >net 192.0.2.1:5060 200 OK INVITE via;rport=5060;branch=z9hG4bK5;received=192.0.2.1
        "#]],
    );
}

#[test]
fn our_invite_is_refused_and_acknowledged_here() {
    check(
        "0 tu INVITE
         100 net 100
         700 net 486
         1200 net 486",
        expect![[r#"
            0ms      tu INVITE
            0ms       >net 192.0.2.1:5060 INVITE <sip:a@192.0.2.1>
            100ms    net 100
            100ms     >tu  100 response
            700ms    net 486
            700ms     >net 192.0.2.1:5060 ACK <sip:a@192.0.2.1>;tag=peer
            700ms     >tu  486 response, request handed back
            1200ms   net 486
            1200ms    >net 192.0.2.1:5060 ACK <sip:a@192.0.2.1>;tag=peer
        "#]],
    );
}

#[test]
fn our_invite_is_answered_twice_and_late() {
    check(
        "0 tu INVITE
         100 net 180
         700 net 200
         1200 net 200
         50000 net 200
         50001 net 486",
        expect![[r#"
            0ms      tu INVITE
            0ms       >net 192.0.2.1:5060 INVITE <sip:a@192.0.2.1>
            100ms    net 180
            100ms     >tu  180 response
            700ms    net 200
            700ms     >tu  200 response, request handed back
            1200ms   net 200
            1200ms    >tu  200 response
            50000ms  net 200
            50000ms   >tu  stray 2xx
            50001ms  net 486
        "#]],
    );
}

#[test]
fn our_cancel_waits_and_its_answer_concerns_nobody() {
    check(
        "0 tu INVITE
         10 tu cancel
         300 net 180
         310 net 200 CANCEL
         320 net 487 INVITE",
        expect![[r#"
            0ms      tu INVITE
            0ms       >net 192.0.2.1:5060 INVITE <sip:a@192.0.2.1>
            10ms     tu cancel
            300ms    net 180
            300ms     >tu  180 response
            300ms     >net 192.0.2.1:5060 CANCEL <sip:a@192.0.2.1>
            310ms    net 200 CANCEL
            320ms    net 487 INVITE
            320ms     >net 192.0.2.1:5060 ACK <sip:a@192.0.2.1>;tag=peer
            320ms     >tu  487 response, request handed back
        "#]],
    );
}

#[test]
fn nobody_answers_our_request() {
    check(
        "0 tu OPTIONS",
        expect![[r#"
            0ms      tu OPTIONS
            0ms       >net 192.0.2.1:5060 OPTIONS <sip:a@192.0.2.1>
            500ms     >net 192.0.2.1:5060 OPTIONS <sip:a@192.0.2.1>
            1500ms    >net 192.0.2.1:5060 OPTIONS <sip:a@192.0.2.1>
            3500ms    >net 192.0.2.1:5060 OPTIONS <sip:a@192.0.2.1>
            7500ms    >net 192.0.2.1:5060 OPTIONS <sip:a@192.0.2.1>
            11500ms   >net 192.0.2.1:5060 OPTIONS <sip:a@192.0.2.1>
            15500ms   >net 192.0.2.1:5060 OPTIONS <sip:a@192.0.2.1>
            19500ms   >net 192.0.2.1:5060 OPTIONS <sip:a@192.0.2.1>
            23500ms   >net 192.0.2.1:5060 OPTIONS <sip:a@192.0.2.1>
            27500ms   >net 192.0.2.1:5060 OPTIONS <sip:a@192.0.2.1>
            31500ms   >net 192.0.2.1:5060 OPTIONS <sip:a@192.0.2.1>
            32000ms   >tu  timeout F
        "#]],
    );
}

#[test]
fn our_request_cannot_be_sent() {
    check(
        "0 tu OPTIONS\n 1 tu unreachable",
        expect![[r#"
            0ms      tu OPTIONS
            0ms       >net 192.0.2.1:5060 OPTIONS <sip:a@192.0.2.1>
            1ms      tu unreachable
            1ms       >tu  transport error
        "#]],
    );
}

#[test]
fn many_timers_due_at_once_are_served_in_turns() {
    let zero = start();
    let config = LayerConfig::new(Local::fixed(Host::V4([198, 51, 100, 1].into()), None));
    let mut layer = Layer::new(config, StdRng::seed_from_u64(1));
    for n in 0..1_000 {
        let request = Request::builder(Method::Options, "sip:a@192.0.2.1")
            .header("From", "<sip:b@198.51.100.1>;tag=b")
            .header("To", "<sip:a@192.0.2.1>")
            .header("Call-ID", n)
            .header("CSeq", "1 OPTIONS")
            .build()
            .unwrap();
        layer.request(zero, flow("192.0.2.1:5060".parse().unwrap()), request).unwrap();
    }
    while layer.poll_output().is_some() {}
    let late = zero + Duration::from_secs(60);
    let mut turns = 0;
    while layer.next_timeout().is_some_and(|at| at <= late) {
        layer.handle_input(late, Input::Timeout);
        turns += 1;
    }
    let timeouts = std::iter::from_fn(|| layer.poll_output())
        .filter(|o| matches!(o, Output::Event(Event::Timeout { .. })));
    assert_eq!((timeouts.count(), turns, layer.transactions()), (1_000, 4, (0, 0)));
}
