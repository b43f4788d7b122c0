//! A phone of the load tests: one address of its own, one dialog at most, every wait measured.
//!
//! The phone of the engine (`sidetone_phone`) is a complete user agent on the engine's own stack. This one is small
//! enough that a hundred of them use a few per cent of a core, and it shares no transaction code with the engine.

use std::collections::HashMap;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use rand::SeedableRng;
use rand::rngs::StdRng;
use sidetone_sip::auth::{Client, Realm};
use sidetone_sip::message::{Digest, Message, Method, Request, Response, StatusCode};

use crate::long::engine::PASSWORD;
use crate::long::media::Talk;
use crate::long::sip_text::{Ask, audio_of, message, sdp, uri_in};

/// A phone on a loopback address of its own.
pub struct Phone {
    pub number: String,
    pub domain: String,
    pub at: SocketAddr,
    engine: SocketAddr,
    pub sip: UdpSocket,
    pub talk: Arc<Talk>,
    state: Mutex<State>,
}

struct State {
    serial: u32,
    waiting: HashMap<String, Sender<Response>>,
    client: Client,
    dialog: Option<Dialog>,
    /// The 2xx of the last INVITE that was answered, by its Call-ID and CSeq.
    answered: Option<((String, u32), Vec<u8>)>,
    /// BYEs that the engine sent.
    ended: u32,
}

/// One side of an answered call.
#[derive(Clone)]
struct Dialog {
    call_id: String,
    local: String,
    remote: String,
    target: String,
    cseq: u32,
    version: u32,
    /// The ACK of the last 2xx, for its retransmissions.
    ack: Option<String>,
}

/// The response to a request, and the time since it was first sent.
#[derive(Clone, Debug)]
pub struct Answer {
    pub status: u16,
    pub took: Duration,
}

impl Phone {
    /// A phone at `address` with its own sockets; `index` distinguishes its audio from that of others.
    pub fn new(engine: SocketAddr, address: Ipv4Addr, domain: &str, number: u32, index: u32) -> Phone {
        let sip = UdpSocket::bind((address, 0)).unwrap();
        sip.set_nonblocking(true).unwrap();
        let number = number.to_string();
        let realm = Realm::Exactly(domain.to_owned());
        let client = Client::new(&number, PASSWORD, realm, StdRng::seed_from_u64(index.into()));
        Phone {
            domain: domain.to_owned(),
            at: sip.local_addr().unwrap(),
            engine,
            talk: Arc::new(Talk::new(address, index)),
            state: Mutex::new(State {
                serial: 0,
                waiting: HashMap::new(),
                client,
                dialog: None,
                answered: None,
                ended: 0,
            }),
            number,
            sip,
        }
    }

    /// Registers for an hour; returns the status of the last response.
    pub fn register(&self) -> Option<Answer> {
        let uri = format!("sip:{}", self.domain);
        let mut ask = self.ask("REGISTER", &uri, format!("<sip:{}@{}>", self.number, self.domain));
        ask.headers = vec![self.contact(), "Expires: 3600".to_owned()];
        self.authorized(ask, PATIENCE)
            .map(|(_, response, took)| Answer { status: response.status().as_u16(), took })
    }

    /// Calls a number; the call is up when the status is 200.
    pub fn call(&self, number: &str) -> Option<Answer> {
        let uri = format!("sip:{number}@{}", self.domain);
        let mut ask = self.ask("INVITE", &uri, format!("<{uri}>"));
        ask.headers = vec![self.contact(), ALLOW.to_owned()];
        ask.body = sdp(self.talk.at, 1);
        let (ask, response, took) = self.authorized(ask, PATIENCE)?;
        let status = response.status().as_u16();
        if status == 200 {
            self.begin(&ask, &response);
        }
        Some(Answer { status, took })
    }

    /// Repeats the audio offer within the call.
    pub fn reinvite(&self) -> Option<Answer> {
        let mut ask = self.within("INVITE")?;
        let version = {
            let mut state = self.state();
            let dialog = state.dialog.as_mut()?;
            dialog.version += 1;
            dialog.version
        };
        ask.headers = vec![self.contact(), ALLOW.to_owned()];
        ask.body = sdp(self.talk.at, version);
        let (response, took) = self.exchange(&ask, PATIENCE)?;
        let status = response.status().as_u16();
        if status == 200 {
            self.acknowledge(&ask, &response);
        }
        Some(Answer { status, took })
    }

    /// Ends the call.
    pub fn bye(&self) -> Option<Answer> {
        let ask = self.within("BYE")?;
        self.state().dialog = None;
        self.talk.stop();
        let (response, took) = self.exchange(&ask, PATIENCE)?;
        Some(Answer { status: response.status().as_u16(), took })
    }

    /// Sends an OPTIONS to the engine.
    pub fn ping(&self, patience: Duration) -> Option<Answer> {
        let uri = format!("sip:{}", self.domain);
        let ask = self.ask("OPTIONS", &uri, format!("<{uri}>"));
        let (response, took) = self.exchange(&ask, patience)?;
        Some(Answer { status: response.status().as_u16(), took })
    }

    /// Whether a call is up.
    pub fn is_up(&self) -> bool {
        self.state().dialog.is_some()
    }

    /// The number of calls that the peer or the engine has ended.
    pub fn ended(&self) -> u32 {
        self.state().ended
    }

    /// Handles one datagram that arrived for the phone.
    pub fn take(&self, bytes: &[u8]) {
        match message(bytes) {
            Some(Message::Request(request)) => self.asked(&request),
            Some(Message::Response(response)) => self.answered(response),
            None => {}
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    fn contact(&self) -> String {
        format!("Contact: <sip:{}@{}>", self.number, self.at)
    }

    fn send(&self, bytes: &[u8]) {
        // A full socket buffer is a lost datagram.
        let _ = self.sip.send_to(bytes, self.engine);
    }

    /// A request outside of dialogs.
    fn ask(&self, method: &'static str, uri: &str, to: String) -> Ask {
        let mut state = self.state();
        state.serial += 1;
        let unique =
            format!("{}x{}x{}", self.at.ip().to_string().replace('.', "-"), self.at.port(), state.serial);
        Ask {
            method,
            uri: uri.to_owned(),
            via: format!("SIP/2.0/UDP {};rport", self.at),
            branch: format!("z9hG4bK{unique}"),
            from: format!("<sip:{}@{}>;tag={unique}", self.number, self.domain),
            to,
            call_id: unique,
            cseq: 1,
            headers: Vec::new(),
            body: String::new(),
        }
    }

    /// A request within the dialog.
    fn within(&self, method: &'static str) -> Option<Ask> {
        let mut state = self.state();
        state.serial += 1;
        let serial = state.serial;
        let dialog = state.dialog.as_mut()?;
        dialog.cseq += 1;
        Some(Ask {
            method,
            uri: dialog.target.clone(),
            via: format!("SIP/2.0/UDP {};rport", self.at),
            branch: format!("z9hG4bKd{}x{serial}", self.at.port()),
            from: dialog.local.clone(),
            to: dialog.remote.clone(),
            call_id: dialog.call_id.clone(),
            cseq: dialog.cseq,
            headers: vec![self.contact()],
            body: String::new(),
        })
    }

    /// Sends a request, with the last nonce or credentials for a challenge; returns the request with the final
    /// response.
    fn authorized(&self, mut ask: Ask, patience: Duration) -> Option<(Ask, Response, Duration)> {
        let began = Instant::now();
        let known = self.state().client.next(ask.method, &ask.uri);
        let plain = ask.headers.clone();
        ask.headers.extend(known.map(|value| format!("Authorization: {value}")));
        for round in 0..2 {
            let (response, _) = self.exchange(&ask, patience)?;
            let challenges: Vec<Digest> = response.www_authenticate().filter_map(Result::ok).collect();
            let answer = match response.status().as_u16() {
                401 if round == 0 => self.state().client.answer(&challenges, false, ask.method, &ask.uri),
                _ => None,
            };
            let Some(answer) = answer else { return Some((ask, response, began.elapsed())) };
            ask.headers = plain.clone();
            ask.headers.push(format!("Authorization: {answer}"));
            ask.cseq += 1;
            ask.branch += "a";
        }
        None
    }

    /// Sends a request as in RFC 3261 §17.1 over UDP, and waits for its final response.
    fn exchange(&self, ask: &Ask, patience: Duration) -> Option<(Response, Duration)> {
        let (sender, receiver) = channel();
        self.state().waiting.insert(ask.branch.clone(), sender);
        let answer = self.retransmitted(ask, patience, &receiver);
        self.state().waiting.remove(&ask.branch);
        let (response, took) = answer?;
        if ask.method == "INVITE" && response.status().as_u16() >= 300 {
            let to = response.header("To").unwrap_or_default().to_owned();
            let ack = Ask { method: "ACK", to, headers: Vec::new(), body: String::new(), ..ask.clone() };
            self.send(ack.text().as_bytes());
        }
        Some((response, took))
    }

    fn retransmitted(
        &self,
        ask: &Ask,
        patience: Duration,
        receiver: &Receiver<Response>,
    ) -> Option<(Response, Duration)> {
        let text = ask.text();
        let began = Instant::now();
        let mut interval = T1;
        let mut rings = false;
        loop {
            if !rings {
                self.send(text.as_bytes());
            }
            let until = Instant::now() + interval;
            loop {
                let left = until.saturating_duration_since(Instant::now());
                match receiver.recv_timeout(left) {
                    Ok(response) if response.status().is_final() => return Some((response, began.elapsed())),
                    // An INVITE is not retransmitted after a provisional response.
                    Ok(_) => rings |= ask.method == "INVITE",
                    Err(_) => break,
                }
            }
            if began.elapsed() >= patience {
                return None;
            }
            interval = if ask.method == "INVITE" { interval * 2 } else { (interval * 2).min(T2) };
        }
    }

    /// The call established by a 200.
    fn begin(&self, ask: &Ask, response: &Response) {
        let dialog = Dialog {
            call_id: ask.call_id.clone(),
            local: ask.from.clone(),
            remote: response.header("To").unwrap_or_default().to_owned(),
            target: uri_in(response.header("Contact").unwrap_or_default()),
            cseq: ask.cseq,
            version: 1,
            ack: None,
        };
        self.state().dialog = Some(dialog);
        self.acknowledge(ask, response);
    }

    fn acknowledge(&self, ask: &Ask, response: &Response) {
        if let Some(to) = audio_of(response.body()) {
            self.talk.talk_to(to);
        }
        let mut state = self.state();
        let Some(dialog) = state.dialog.as_mut() else { return };
        let ack = Ask {
            method: "ACK",
            uri: dialog.target.clone(),
            branch: format!("{}k", ask.branch),
            to: dialog.remote.clone(),
            headers: Vec::new(),
            body: String::new(),
            ..ask.clone()
        };
        let text = ack.text();
        self.send(text.as_bytes());
        dialog.ack = Some(text);
    }

    fn answered(&self, response: Response) {
        let state = self.state();
        let branch =
            response.via_top().ok().and_then(|via| via.branch().map(str::to_owned)).unwrap_or_default();
        if let Some(waiting) = state.waiting.get(&branch) {
            // The waiting request may just have timed out.
            let _ = waiting.send(response);
            return;
        }
        let is_2xx = (200..300).contains(&response.status().as_u16());
        let ack = state.dialog.as_ref().filter(|dialog| dialog.call_id == response.call_id());
        if let Some(ack) = ack.and_then(|dialog| dialog.ack.as_ref()).filter(|_| is_2xx) {
            self.send(ack.as_bytes());
        }
    }

    fn asked(&self, request: &Request) {
        let mut reply = Response::reply_to(request, StatusCode::OK);
        match request.method() {
            Method::Ack => return,
            Method::Invite => return self.invited(request, reply),
            Method::Bye => {
                let mut state = self.state();
                if state.dialog.as_ref().is_some_and(|dialog| dialog.call_id == request.call_id()) {
                    state.dialog = None;
                    state.ended += 1;
                    drop(state);
                    self.talk.stop();
                }
            }
            _ => {}
        }
        if let Some(timer) = request.header("Session-Expires") {
            reply.push("Session-Expires", timer).unwrap();
            reply.push("Require", "timer").unwrap();
        }
        self.send(&reply.to_bytes());
    }

    /// Answers an INVITE: the first one of a call, one within it, or a retransmission of the one answered last.
    fn invited(&self, request: &Request, mut reply: Response) {
        let which = (request.call_id().to_owned(), request.cseq().map_or(0, |cseq| cseq.number));
        let mut state = self.state();
        if let Some((_, text)) = state.answered.as_ref().filter(|(known, _)| *known == which) {
            return self.send(text);
        }
        let known = state.dialog.as_ref().is_some_and(|dialog| dialog.call_id == which.0);
        if state.dialog.is_some() && !known {
            return self.send(&Response::reply_to(request, StatusCode::new(486).unwrap()).to_bytes());
        }
        reply.set_to_tag(&format!("p{}x{}", self.at.port(), which.1)).unwrap();
        reply.push("Contact", format!("<sip:{}@{}>", self.number, self.at)).unwrap();
        if let Some(timer) = request.header("Session-Expires") {
            reply.push("Session-Expires", timer).unwrap();
            reply.push("Require", "timer").unwrap();
        }
        let version = state.dialog.as_ref().map_or(1, |dialog| dialog.version + 1);
        reply.set_body("application/sdp", sdp(self.talk.at, version)).unwrap();
        match state.dialog.as_mut() {
            Some(dialog) => dialog.version = version,
            None => {
                state.dialog = Some(Dialog {
                    call_id: which.0.clone(),
                    local: reply.header("To").unwrap_or_default().to_owned(),
                    remote: request.header("From").unwrap_or_default().to_owned(),
                    target: uri_in(request.header("Contact").unwrap_or_default()),
                    cseq: 0,
                    version,
                    ack: None,
                });
            }
        }
        let text = reply.to_bytes().to_vec();
        self.send(&text);
        state.answered = Some((which, text));
        drop(state);
        if let Some(to) = audio_of(request.body()) {
            self.talk.talk_to(to);
        }
    }
}

/// RFC 3261 §17.1.1.1.
const T1: Duration = Duration::from_millis(500);
const T2: Duration = Duration::from_secs(4);
/// Timers B and F.
const PATIENCE: Duration = Duration::from_secs(32);
const ALLOW: &str = "Allow: INVITE, ACK, BYE, CANCEL, OPTIONS, UPDATE, INFO";
