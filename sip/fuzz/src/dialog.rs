//! A user agent with any inputs in any order: transactions and dialogs.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use rand::SeedableRng;
use rand::rngs::StdRng;
use sidetone_sip::flow::{Flow, ListenerId};
use sidetone_sip::message::{Host, StatusCode};
use sidetone_sip::transaction::{LayerConfig, Local, ServerKey};
use sidetone_sip::ua::{Content, Event, Extra, Input, Invite, LegKey, Output, Reply, Ua, UaConfig};

/// Every leg ends exactly once for all inputs; afterwards no state is left.
pub fn sip_dialog(data: &[u8]) {
    let mut world = World::new();
    let mut rest = data;
    for _ in 0..STEPS_MAX {
        let Some((what, tail)) = rest.split_first() else { break };
        rest = world.step(*what, tail);
    }
    world.end();
}

struct World {
    ua: Ua,
    now: Instant,
    /// The number of times each leg has ended.
    legs: HashMap<LegKey, u32>,
    servers: Vec<ServerKey>,
    /// Sent messages, which the peer answers or repeats.
    sent: Vec<String>,
}

impl World {
    fn new() -> World {
        let local = Local::fixed(Host::V4([192, 0, 2, 1].into()), None);
        let ua = Ua::new(UaConfig::new(LayerConfig::new(local)), StdRng::seed_from_u64(1));
        World { ua, now: any_instant(), legs: HashMap::new(), servers: Vec::new(), sent: Vec::new() }
    }

    /// Performs one input, chosen by a byte and the bytes after it; returns the remaining bytes.
    fn step<'a>(&mut self, what: u8, rest: &'a [u8]) -> &'a [u8] {
        let (which, rest) = rest.split_first().map_or((0, rest), |(which, rest)| (usize::from(*which), rest));
        let leg = self.leg(which);
        match (what % 12, leg) {
            (0, _) => return self.datagram(rest),
            (1 | 2, _) => self.request(which, rest),
            (3, _) => self.response(which, rest),
            (4, _) => {
                let invite = Invite::new("sip:b@192.0.2.2", "<sip:a@192.0.2.1>", "<sip:b@192.0.2.2>");
                let invite = invite.content("application/sdp", "v=0\r\n");
                if let Ok(leg) = self.ua.invite(self.now, flow(), invite) {
                    self.legs.entry(leg).or_default();
                }
            }
            (5, Some(leg)) => self.ua.hang_up(self.now, leg),
            (6, Some(leg)) => drop(self.ua.reinvite(self.now, leg, &offer())),
            (7, Some(leg)) => drop(self.ua.ack(self.now, leg, &offer())),
            (8, Some(leg)) => drop(self.ua.info(self.now, leg, Content::new("text/plain", "x"))),
            (9, _) => self.answer(which),
            _ => self.wait(Duration::from_millis(1 << (which % 16))),
        }
        self.drain();
        rest.get(1..).unwrap_or_default()
    }

    /// Raw bytes: eight times the first byte's value.
    fn datagram<'a>(&mut self, rest: &'a [u8]) -> &'a [u8] {
        let (length, rest) =
            rest.split_first().map_or((0, rest), |(length, rest)| (usize::from(*length) * 8, rest));
        let (bytes, rest) = rest.split_at(length.min(rest.len()));
        self.hear(bytes.to_vec());
        rest
    }

    /// A request of the peer; the bytes decide its transaction, CSeq and dialog.
    fn request(&mut self, which: usize, rest: &[u8]) {
        let byte = rest.first().copied().unwrap_or_default();
        let method = METHODS[which % METHODS.len()];
        let (call, number) = (byte & 3, (byte >> 2 & 7) + 1);
        let tag = match (byte >> 5 & 3, self.sent.last()) {
            (0, _) | (_, None) => String::new(),
            (1, _) => ";tag=none".to_owned(),
            (_, Some(sent)) => local_tag(sent),
        };
        let call_id = match self.sent.last().filter(|_| byte >> 7 == 1) {
            Some(sent) => header(sent, "Call-ID").to_owned(),
            None => format!("call{call}"),
        };
        let branch = format!(
            "{}{call}x{number}",
            if method == "CANCEL" || method == "ACK" { "INVITE" } else { method }
        );
        self.hear(
            format!(
                "{method} sip:a@192.0.2.1 SIP/2.0\r\nVia: SIP/2.0/UDP 192.0.2.2;branch=z9hG4bK{branch}\r\n\
                 Max-Forwards: 70\r\nFrom: <sip:b@192.0.2.2>;tag=peer{call}\r\nTo: <sip:a@192.0.2.1>{tag}\r\n\
                 Call-ID: {call_id}\r\nCSeq: {number} {method}\r\nContact: <sip:b@192.0.2.2>\r\n\
                 Content-Length: 0\r\n\r\n"
            )
            .into_bytes(),
        );
    }

    /// A response of the peer to a sent request.
    fn response(&mut self, which: usize, rest: &[u8]) {
        let Some(sent) = self.sent.get(which % self.sent.len().max(1)) else { return };
        let byte = usize::from(rest.first().copied().unwrap_or_default());
        let status = STATUSES[byte % STATUSES.len()];
        let tag =
            if header(sent, "To").contains("tag=") { "" } else { [";tag=p1", ";tag=p2"][byte >> 7 & 1] };
        let text = format!(
            "SIP/2.0 {status} X\r\nVia: {}\r\nFrom: {}\r\nTo: {}{tag}\r\nCall-ID: {}\r\nCSeq: {}\r\n\
             Contact: <sip:b@192.0.2.2>\r\nContent-Length: 0\r\n\r\n",
            header(sent, "Via"),
            header(sent, "From"),
            header(sent, "To"),
            header(sent, "Call-ID"),
            header(sent, "CSeq"),
        );
        self.hear(text.into_bytes());
    }

    /// Answers a request of the peer.
    fn answer(&mut self, which: usize) {
        let Some(key) = self.servers.get(which % self.servers.len().max(1)).cloned() else { return };
        let status = StatusCode::new(STATUSES[which % STATUSES.len()]).expect("a status");
        // A transaction that has ended accepts no response.
        let _ = self.ua.respond(self.now, &key, Reply::new(status));
    }

    fn hear(&mut self, bytes: Vec<u8>) {
        self.ua.handle_input(self.now, Input::Datagram { flow: flow(), bytes: bytes.into() });
        self.drain();
    }

    fn wait(&mut self, time: Duration) {
        let until = self.now + time;
        while let Some(at) = self.ua.next_timeout().filter(|at| *at <= until) {
            self.now = self.now.max(at);
            self.ua.handle_input(self.now, Input::Timeout);
            self.drain();
        }
        self.now = until;
    }

    fn drain(&mut self) {
        while let Some(output) = self.ua.poll_output() {
            match output {
                Output::Transmit { bytes, .. } => {
                    self.sent.push(String::from_utf8_lossy(&bytes).into_owned());
                    if self.sent.len() > SENT_MAX {
                        self.sent.remove(0);
                    }
                }
                Output::Event(event) => self.event(event),
                Output::Hold { .. }
                | Output::Overload { .. }
                | Output::Rejected { .. }
                | Output::Withheld { .. } => {}
            }
        }
    }

    fn event(&mut self, event: Event) {
        match event {
            Event::Invited { leg, key, .. } => {
                assert_eq!(self.legs.insert(leg, 0), None, "a leg began twice");
                self.servers.push(key);
            }
            Event::Reinvited { leg, key, .. } => {
                assert_eq!(self.legs.get(&leg), Some(&0), "a dialog without a living leg");
                self.servers.push(key);
            }
            Event::Request { key, .. } => self.servers.push(key),
            Event::Ended { leg, .. } => {
                let ended = self.legs.get_mut(&leg).expect("a leg that began");
                *ended += 1;
                assert_eq!(*ended, 1, "a leg ended twice");
            }
            _ => {}
        }
    }

    fn leg(&self, which: usize) -> Option<LegKey> {
        let mut legs: Vec<LegKey> = self.legs.keys().copied().collect();
        legs.sort();
        legs.get(which % legs.len().max(1)).copied()
    }

    fn end(&mut self) {
        for _ in 0..4 {
            let legs: Vec<LegKey> = self.legs.keys().copied().collect();
            legs.into_iter().for_each(|leg| self.ua.hang_up(self.now, leg));
            self.drain();
            self.wait(Duration::from_secs(70));
        }
        assert!(self.legs.values().all(|ended| *ended == 1), "each leg ends once: {:?}", self.legs);
        assert_eq!((self.ua.legs_len(), self.ua.transactions()), (0, (0, 0)), "something is left");
    }
}

/// The value of a header as it was written.
fn header<'a>(message: &'a str, name: &str) -> &'a str {
    let line = message
        .lines()
        .find(|line| line.split(':').next().is_some_and(|found| found.eq_ignore_ascii_case(name)));
    line.and_then(|line| line.split_once(':')).map_or("", |(_, value)| value.trim())
}

/// The local tag: of From in sent requests, of To in sent responses.
fn local_tag(sent: &str) -> String {
    let ours = header(sent, if sent.starts_with("SIP/2.0") { "To" } else { "From" });
    ours.split_once(";tag=").map_or_else(String::new, |(_, tag)| format!(";tag={tag}"))
}

fn offer() -> Extra {
    Extra::new().content("application/sdp", "v=0\r\n")
}

fn flow() -> Flow {
    Flow::udp(ListenerId(0), ([192, 0, 2, 2], 5060).into())
}

#[allow(clippy::disallowed_methods, reason = "an instant is needed to count from")]
fn any_instant() -> Instant {
    Instant::now()
}

const METHODS: [&str; 10] =
    ["INVITE", "ACK", "BYE", "CANCEL", "OPTIONS", "INFO", "UPDATE", "MESSAGE", "REFER", "UNKNOWN"];
const STATUSES: [u16; 12] = [100, 180, 183, 200, 202, 302, 401, 408, 481, 486, 491, 503];
const SENT_MAX: usize = 32;
const STEPS_MAX: usize = 200;
