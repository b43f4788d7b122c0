//! The task of one phone: its user agent, its calls and their clocks.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Instant;

use bytes::Bytes;
use rand::rngs::{StdRng, SysRng};
use rand::{RngExt, SeedableRng};
use sidetone_media::simulate::Scenario;
use sidetone_sip::auth::{Client, Realm};
use sidetone_sip::flow::{Flow, ListenerId};
use sidetone_sip::message::{Digest, Host, Method, Request, Response, StatusCode};
use sidetone_sip::sdp::{self, Direction, OfferAnswer, SessionDescription};
use sidetone_sip::transaction::{ClientKey, LayerConfig, Local, ServerKey};
use sidetone_sip::ua::{
    Cause, Draft, Event, Extra, Input, Invite, LegKey, Output, Reply, Retried, Ua, UaConfig,
};
use tokio::net::UdpSocket;
use tokio::sync::{mpsc, oneshot, watch};

use crate::phone::handset::{Answering, CallOutcome, CallPlan, Calls, Command, PhoneConfig, PhoneError};
use crate::phone::media::{Ear, Media};

/// One phone's state.
pub(super) struct Actor {
    config: PhoneConfig,
    socket: UdpSocket,
    local: SocketAddr,
    inbox: mpsc::Receiver<Command>,
    counted: watch::Sender<Calls>,
    heard: Arc<AtomicU64>,
    ua: Ua,
    client: Client,
    rng: StdRng,
    calls: HashMap<LegKey, Call>,
    /// Calls that are over and whose last message is not sent yet.
    over: Vec<(oneshot::Sender<CallOutcome>, CallOutcome)>,
    registers: HashMap<ClientKey, oneshot::Sender<u16>>,
    register_cseq: u32,
    call_id: String,
}

struct Call {
    exchange: OfferAnswer,
    media: Media,
    /// What is to happen at which time.
    agenda: Vec<(Instant, Due)>,
    plan: Option<CallPlan>,
    done: Option<oneshot::Sender<CallOutcome>>,
    outcome: CallOutcome,
    /// Our answer, when it was given before the call was taken.
    early: Option<SessionDescription>,
    tried: bool,
    up: bool,
    /// The direction that was offered last.
    wanted: Direction,
}

#[derive(Clone, Copy)]
enum Due {
    Answer(ServerKey),
    HangUp,
    Offer(Direction),
}

impl Actor {
    pub(super) fn new(
        config: PhoneConfig,
        socket: UdpSocket,
        local: SocketAddr,
        inbox: mpsc::Receiver<Command>,
        counted: watch::Sender<Calls>,
        heard: Arc<AtomicU64>,
    ) -> Result<Actor, PhoneError> {
        let mut rng = StdRng::try_from_rng(&mut SysRng).map_err(std::io::Error::other)?;
        let host = match local {
            SocketAddr::V4(v4) => Host::V4(*v4.ip()),
            SocketAddr::V6(v6) => Host::V6(*v6.ip()),
        };
        let layer = LayerConfig::new(Local::fixed(host, Some(local.port())));
        let realm = Realm::Exactly(config.domain.clone());
        Ok(Actor {
            ua: Ua::new(UaConfig::new(layer), StdRng::from_rng(&mut rng)),
            client: Client::new(&config.number, &config.password, realm, StdRng::from_rng(&mut rng)),
            call_id: format!("{:032x}", rng.random::<u128>()),
            config,
            socket,
            local,
            inbox,
            counted,
            heard,
            rng,
            calls: HashMap::new(),
            over: Vec::new(),
            registers: HashMap::new(),
            register_cseq: 0,
        })
    }

    pub(super) async fn run(mut self) {
        let mut buffer = vec![0; DATAGRAM_BYTES_MAX];
        loop {
            self.settle().await;
            self.count();
            let agenda = self.calls.values().flat_map(|call| call.agenda.iter().map(|(at, _)| *at)).min();
            let due = [self.ua.next_timeout(), agenda].into_iter().flatten().min();
            let due = due.unwrap_or_else(|| now() + std::time::Duration::from_secs(3_600));
            tokio::select! {
                received = self.socket.recv_from(&mut buffer) => {
                    if let Ok((length, from)) = received {
                        let bytes = Bytes::copy_from_slice(buffer.get(..length).unwrap_or_default());
                        if let Some(tap) = &self.config.tap {
                            tap.note(from, self.local, &bytes);
                        }
                        self.ua.handle_input(now(), Input::Datagram { flow: Flow::udp(ListenerId(0), from), bytes });
                    }
                }
                command = self.inbox.recv() => match command {
                    Some(command) => self.command(command).await,
                    None => return,
                },
                () = tokio::time::sleep_until(due.into()) => self.timeout(),
            }
        }
    }

    async fn command(&mut self, command: Command) {
        match command {
            Command::Register(done) => {
                if let Some(key) = self.register() {
                    self.registers.insert(key, done);
                }
            }
            Command::Call(plan, done) => self.place(plan, done).await,
            Command::HangUp => {
                for leg in self.legs() {
                    self.ua.hang_up(now(), leg);
                }
            }
            Command::Move => {
                for leg in self.legs() {
                    let Some(call) = self.calls.get_mut(&leg).filter(|call| call.up) else { continue };
                    if call.media.move_away().await.is_ok() {
                        self.offer(leg, Direction::SendRecv);
                    }
                }
            }
            Command::Offer(direction) => {
                for leg in self.legs() {
                    self.offer(leg, direction);
                }
            }
        }
    }

    fn legs(&self) -> Vec<LegKey> {
        self.calls.keys().copied().collect()
    }

    /// Tells the handset how many calls there are.
    fn count(&self) {
        let up = self.calls.values().filter(|call| call.up).count();
        let calls = Calls { ringing: self.calls.len() - up, up };
        self.counted.send_if_modified(|counted| std::mem::replace(counted, calls) != calls);
    }

    fn ear(&self) -> Ear {
        Ear::new(Arc::clone(&self.heard), self.config.tap.clone())
    }

    /// Offers anew inside a call that is up.
    fn offer(&mut self, leg: LegKey, direction: Direction) {
        let Some(call) = self.calls.get_mut(&leg).filter(|call| call.up) else { return };
        call.wanted = direction;
        let offer = sdp::offer(call.media.local(), self.config.codecs.codecs(), direction);
        if let Ok(offer) = call.exchange.send_offer(offer) {
            let extra = Extra::new().content(SDP, offer.to_bytes());
            if self.ua.reinvite(now(), leg, &extra).is_err() {
                call.exchange.roll_back();
            }
        }
    }

    fn register(&mut self) -> Option<ClientKey> {
        self.register_cseq += 1;
        let aor = format!("<sip:{}@{}>", self.config.number, self.config.domain);
        let draft = Draft::new(Method::Register, format!("sip:{}", self.config.domain), aor.clone(), aor)
            .sequence(self.call_id.clone(), self.register_cseq)
            .header("Contact", format!("<sip:{}@{}>", self.config.number, self.local))
            .header("Expires", "600");
        self.ua.request(now(), self.flow(), draft).ok()
    }

    async fn place(&mut self, plan: CallPlan, done: oneshot::Sender<CallOutcome>) {
        let talk = plan.talk.as_deref().cloned();
        let ptime_ms = talk.as_ref().map(Scenario::advertised_ptime_ms);
        let Ok(media) = Media::open(self.local.ip(), talk, self.ear()).await else { return };
        let mut exchange = OfferAnswer::new(self.rng.random::<u64>() >> 2);
        let address = SocketAddr::new(plan.advertised.unwrap_or(self.local.ip()), media.local().port());
        let offer = sdp::offer(address, self.config.codecs.codecs(), Direction::SendRecv);
        let Ok(offer) = exchange.send_offer(with_ptime(offer, ptime_ms)) else { return };
        let from = format!("<sip:{}@{}>", self.config.number, self.config.domain);
        let uri = format!("sip:{}@{}", plan.number, self.config.domain);
        let invite = Invite::new(uri.clone(), from, format!("<{uri}>")).content(SDP, offer.to_bytes());
        let Ok(leg) = self.ua.invite(now(), self.flow(), invite) else { return };
        let agenda = plan.patience.map(|patience| (now() + patience, Due::HangUp)).into_iter().collect();
        let call = Call::new(exchange, media, agenda, Some(plan), Some(done));
        self.calls.insert(leg, call);
    }

    /// Carries out what the user agent says.
    async fn settle(&mut self) {
        while let Some(output) = self.ua.poll_output() {
            match output {
                Output::Transmit { flow, bytes, .. } => {
                    if let Some(tap) = &self.config.tap {
                        tap.note(self.local, flow.remote, &bytes);
                    }
                    // What the system refuses is lost like on any network.
                    let _ = self.socket.send_to(&bytes, flow.remote).await;
                }
                Output::Event(event) => self.event(event).await,
                Output::Overload { .. } | Output::Rejected { .. } => {}
            }
        }
        for (done, outcome) in self.over.drain(..) {
            // Nobody waits any more when the handset was dropped.
            let _ = done.send(outcome);
        }
    }

    async fn event(&mut self, event: Event) {
        match event {
            Event::Invited { leg, key, request, .. } => self.ring(leg, key, &request).await,
            Event::Answered { leg, response } => self.answered(leg, &response),
            Event::Progress { leg, response } => {
                // Early media: the caller may speak before the answer.
                if let Some(call) = self.calls.get_mut(&leg) {
                    call.hear(response.body());
                }
            }
            Event::Reinvited { leg, key, request } => self.reinvited(leg, &key, &request),
            Event::Response { leg: Some(leg), response, .. } => {
                let is_invite = response.cseq().is_ok_and(|cseq| cseq.method == Method::Invite);
                if let Some(call) =
                    self.calls.get_mut(&leg).filter(|_| is_invite && response.status().is_final())
                {
                    call.outcome.reinvites.push(response.status().as_u16());
                    if response.status().is_success() {
                        call.hear(response.body());
                    } else {
                        call.exchange.roll_back();
                    }
                }
            }
            Event::Response { leg: None, key, response, request, .. } => {
                self.response(key, &response, request)
            }
            Event::Unanswered { leg: None, key, .. } => {
                if let Some(done) = self.registers.remove(&key) {
                    let _ = done.send(408);
                }
            }
            Event::Request { key, request, .. } => {
                let status = if *request.method() == Method::Options { 200 } else { 405 };
                self.respond(&key, status);
            }
            Event::Ended { leg, cause } => self.ended(leg, cause),
            Event::Acked { leg, .. } => {
                if let Some(call) = self.calls.get_mut(&leg) {
                    call.up = true;
                }
            }
            Event::ReinviteCancelled { .. } => {}
            // Both sides had offered at once; ours has its turn now (RFC 3261 §14.1).
            Event::ReinviteDue { leg } => {
                if let Some(direction) = self.calls.get(&leg).map(|call| call.wanted) {
                    self.offer(leg, direction);
                }
            }
            Event::InfoAnswered { .. }
            | Event::MessageAnswered { .. }
            | Event::Unanswered { leg: Some(_), .. } => {}
        }
    }

    fn response(&mut self, key: ClientKey, response: &Response, request: Option<Request>) {
        if !response.status().is_final() {
            return;
        }
        let Some(done) = self.registers.remove(&key) else { return };
        let status = response.status().as_u16();
        let again = request.filter(|_| status == 401).and_then(|request| self.authorized(response, request));
        match again {
            Some(Retried::Transaction(key)) => {
                self.register_cseq += 1;
                self.registers.insert(key, done);
            }
            // Nobody waits any more when the handset was dropped.
            _ => drop(done.send(status)),
        }
    }

    /// Sends a challenged request again with an answer to the challenge.
    fn authorized(&mut self, response: &Response, request: Request) -> Option<Retried> {
        let challenges: Vec<Digest> = response.www_authenticate().filter_map(Result::ok).collect();
        let tried = request.authorization().next().is_some();
        let answer = self.client.answer(&challenges, tried, request.method().as_str(), request.uri())?;
        let extra = Extra::new().header("Authorization", answer);
        self.ua.retry(now(), self.flow(), request, &extra).ok()
    }

    async fn ring(&mut self, leg: LegKey, key: ServerKey, request: &Request) {
        let (after, talk) = match &self.config.answering {
            Answering::Refuse(status) => {
                let status = *status;
                return self.respond(&key, status);
            }
            Answering::Ring => (None, None),
            Answering::Answer { after, talk } => (Some(*after), talk.as_deref().cloned()),
            Answering::Early { after, talk } => (Some(*after), Some(talk.as_ref().clone())),
        };
        let Ok(media) = Media::open(self.local.ip(), talk, self.ear()).await else {
            return self.respond(&key, 500);
        };
        let mut exchange = OfferAnswer::new(self.rng.random::<u64>() >> 2);
        let offered =
            SessionDescription::parse(request.body()).ok().map(|offer| exchange.receive_offer(offer));
        if !matches!(offered, Some(Ok(()))) {
            return self.respond(&key, 488);
        }
        let agenda = after.map(|after| (now() + after, Due::Answer(key))).into_iter().collect();
        let mut call = Call::new(exchange, media, agenda, None, None);
        let is_early = matches!(self.config.answering, Answering::Early { .. });
        let early = is_early.then(|| call.answer(&self.config)).flatten();
        call.early = early.clone();
        self.calls.insert(leg, call);
        match early {
            Some(answer) => {
                let reply = Reply::new(StatusCode::SESSION_PROGRESS).content(SDP, answer.to_bytes());
                let _ = self.ua.respond(now(), &key, reply);
            }
            None => self.respond(&key, 180),
        }
    }

    fn answered(&mut self, leg: LegKey, response: &Response) {
        let Some(call) = self.calls.get_mut(&leg) else { return };
        call.outcome.status = 200;
        call.up = true;
        call.hear(response.body());
        call.agenda.clear();
        let Some(plan) = &call.plan else { return };
        call.agenda.extend(plan.talk_time.map(|talk_time| (now() + talk_time, Due::HangUp)));
        if let Some((hold, resume)) = plan.hold {
            call.agenda.push((now() + hold, Due::Offer(Direction::SendOnly)));
            call.agenda.push((now() + hold + resume, Due::Offer(Direction::SendRecv)));
        }
    }

    fn reinvited(&mut self, leg: LegKey, key: &ServerKey, request: &Request) {
        let answer = self.calls.get_mut(&leg).and_then(|call| {
            call.exchange.receive_offer(SessionDescription::parse(request.body()).ok()?).ok()?;
            call.answer(&self.config)
        });
        match answer {
            Some(answer) => {
                let reply = Reply::new(StatusCode::OK).content(SDP, answer.to_bytes());
                let _ = self.ua.respond(now(), key, reply);
            }
            None => self.respond(key, 488),
        }
    }

    fn ended(&mut self, leg: LegKey, cause: Cause) {
        let Some(mut call) = self.calls.remove(&leg) else { return };
        if let Cause::Refused { response, request, .. } = cause {
            let status = response.status().as_u16();
            let again = request.filter(|_| status == 401 && !call.tried);
            if let Some(Retried::Leg(leg)) = again.and_then(|request| self.authorized(&response, request)) {
                call.tried = true;
                self.calls.insert(leg, call);
                return;
            }
            call.outcome.status = status;
        } else if call.outcome.status == 0 {
            call.outcome.status = if matches!(cause, Cause::TimedOut) { 408 } else { 487 };
        } else {
            call.outcome.ended_by_peer = matches!(cause, Cause::Bye(_));
        }
        call.outcome.received = call.media.received();
        self.over.extend(call.done.take().map(|done| (done, call.outcome)));
    }

    fn timeout(&mut self) {
        let now = now();
        if self.ua.next_timeout().is_some_and(|at| at <= now) {
            self.ua.handle_input(now, Input::Timeout);
        }
        for leg in self.legs() {
            while let Some(due) = self.calls.get_mut(&leg).and_then(|call| call.take_due(now)) {
                self.due(leg, due);
            }
        }
    }

    fn due(&mut self, leg: LegKey, due: Due) {
        let Some(call) = self.calls.get_mut(&leg) else { return };
        match due {
            Due::Answer(key) => {
                // What was said early holds, and is repeated (RFC 3261 §13.2.1).
                let answer = call.early.take().or_else(|| call.answer(&self.config));
                let Some(answer) = answer else { return self.respond(&key, 488) };
                call.outcome.status = 200;
                let reply = Reply::new(StatusCode::OK).content(SDP, answer.to_bytes());
                let _ = self.ua.respond(now(), &key, reply);
            }
            Due::HangUp => self.ua.hang_up(now(), leg),
            Due::Offer(direction) => self.offer(leg, direction),
        }
    }

    fn respond(&mut self, key: &ServerKey, status: u16) {
        let status = StatusCode::new(status).unwrap_or(StatusCode::SERVER_ERROR);
        // Refused when the transaction is over, after a CANCEL.
        let _ = self.ua.respond(now(), key, Reply::new(status));
    }

    fn flow(&self) -> Flow {
        Flow::udp(ListenerId(0), self.config.switch)
    }
}

impl Call {
    fn new(
        exchange: OfferAnswer,
        media: Media,
        agenda: Vec<(Instant, Due)>,
        plan: Option<CallPlan>,
        done: Option<oneshot::Sender<CallOutcome>>,
    ) -> Self {
        let outcome = CallOutcome { status: 0, received: 0, ended_by_peer: false, reinvites: Vec::new() };
        Call {
            exchange,
            media,
            agenda,
            plan,
            done,
            outcome,
            early: None,
            tried: false,
            up: false,
            wanted: Direction::SendRecv,
        }
    }

    /// Takes the peer's answer and talks to where it says.
    fn hear(&mut self, body: &[u8]) {
        if let Ok(answer) = SessionDescription::parse(body)
            && self.exchange.receive_answer(answer).is_ok()
        {
            self.aim();
        }
    }

    /// Our answer to the peer's open offer.
    fn answer(&mut self, config: &PhoneConfig) -> Option<SessionDescription> {
        let offer = self.exchange.remote_offer()?.clone();
        let answer = sdp::answer(&offer, self.media.local(), &config.codecs, Direction::SendRecv).ok()?;
        let talk = match &config.answering {
            Answering::Answer { talk, .. } => talk.as_deref(),
            Answering::Early { talk, .. } => Some(talk.as_ref()),
            Answering::Refuse(_) | Answering::Ring => None,
        };
        let answer =
            self.exchange.send_answer(with_ptime(answer, talk.map(Scenario::advertised_ptime_ms))).ok()?;
        self.aim();
        Some(answer)
    }

    fn aim(&mut self) {
        let negotiated = self.exchange.negotiated();
        self.media.send_to(negotiated.filter(|n| n.direction.sends()).and_then(|n| n.remote));
    }

    fn take_due(&mut self, now: Instant) -> Option<Due> {
        let place = self.agenda.iter().position(|(at, _)| *at <= now)?;
        Some(self.agenda.remove(place).1)
    }
}

fn with_ptime(mut description: SessionDescription, ptime_ms: Option<u32>) -> SessionDescription {
    for media in description.media.iter_mut().filter(|media| media.port != 0) {
        media.ptime_ms = ptime_ms.or(media.ptime_ms);
    }
    description
}

#[expect(clippy::disallowed_methods, reason = "a phone is a driver: it reads the clock")]
fn now() -> Instant {
    Instant::now()
}

const SDP: &str = "application/sdp";
/// The largest SIP datagram that a phone takes.
const DATAGRAM_BYTES_MAX: usize = 65_535;
