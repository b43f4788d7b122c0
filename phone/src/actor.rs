//! The task of one phone: its user agent, its timers, and its reactions to events.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::{Duration, Instant};

use rand::rngs::{StdRng, SysRng};
use rand::{RngExt, SeedableRng};
use sidetone_sip::auth::{Client, Realm};
use sidetone_sip::flow::Flow;
use sidetone_sip::message::{Host, Method, StatusCode};
use sidetone_sip::sdp::Direction;
use sidetone_sip::transaction::{ClientKey, LayerConfig, Local, ServerKey};
use sidetone_sip::ua::{Event, Input, LegKey, Output, Receipt, Reply, Ua, UaConfig};
use tokio::sync::{broadcast, mpsc, oneshot, watch};

use crate::dialling::{Call, Due};
use crate::handset::{Command, PhoneError};
use crate::media::{Ear, Speech};
use crate::notes::Notebook;
use crate::plan::{CallOutcome, Calls, News, PhoneConfig};
use crate::requests::Pending;
use crate::wire::{Arrived, Wire};

/// One phone's state.
pub(super) struct Actor {
    pub(super) config: PhoneConfig,
    wire: Wire,
    pub(super) lines: Lines,
    pub(super) ua: Ua,
    pub(super) client: Client,
    pub(super) rng: StdRng,
    pub(super) calls: HashMap<LegKey, Call>,
    /// Finished calls whose last message is not sent yet.
    pub(super) over: Vec<(oneshot::Sender<CallOutcome>, CallOutcome)>,
    /// The phone's requests, other than INVITE, that wait for their answer.
    pub(super) pending: HashMap<ClientKey, Pending>,
    /// Answers to notes that are sent later.
    pub(super) owed: Vec<(Instant, ServerKey)>,
    pub(super) register_cseq: u32,
    pub(super) call_id: String,
}

/// The channels between the actor and its handset.
pub(super) struct Lines {
    pub(super) inbox: mpsc::Receiver<Command>,
    pub(super) counted: watch::Sender<Calls>,
    pub(super) heard: Arc<AtomicU64>,
    pub(super) notes: Arc<Notebook>,
    pub(super) news: broadcast::Sender<News>,
}

impl Actor {
    pub(super) fn new(config: PhoneConfig, wire: Wire, lines: Lines) -> Result<Actor, PhoneError> {
        let mut rng = StdRng::try_from_rng(&mut SysRng).map_err(std::io::Error::other)?;
        let host = match wire.local() {
            SocketAddr::V4(v4) => Host::V4(*v4.ip()),
            SocketAddr::V6(v6) => Host::V6(*v6.ip()),
        };
        let layer = LayerConfig::new(Local::fixed(host, Some(wire.local().port())));
        let realm = Realm::Exactly(config.domain.clone());
        Ok(Actor {
            ua: Ua::new(UaConfig::new(layer), StdRng::from_rng(&mut rng)),
            client: Client::new(&config.number, &config.password, realm, StdRng::from_rng(&mut rng)),
            call_id: format!("{:032x}", rng.random::<u128>()),
            config,
            wire,
            lines,
            rng,
            calls: HashMap::new(),
            over: Vec::new(),
            pending: HashMap::new(),
            owed: Vec::new(),
            register_cseq: 0,
        })
    }

    pub(super) async fn run(mut self) {
        loop {
            self.settle().await;
            self.count();
            let agenda = self.calls.values().flat_map(|call| call.agenda.iter().map(|(at, _)| *at)).min();
            let owed = self.owed.iter().map(|(at, _)| *at).min();
            let due = [self.ua.next_timeout(), agenda, owed].into_iter().flatten().min();
            let due = due.unwrap_or_else(|| now() + IDLE);
            tokio::select! {
                arrived = self.wire.receive() => self.arrived(arrived),
                command = self.lines.inbox.recv() => match command {
                    Some(command) => self.command(command).await,
                    None => return,
                },
                () = tokio::time::sleep_until(due.into()) => self.timeout(),
            }
        }
    }

    fn arrived(&mut self, arrived: Arrived) {
        match arrived {
            Arrived::Closed => self.tell(News::Lost),
            Arrived::Message { from, .. }
                if self.config.only_the_switch && from.ip() != self.config.switch.ip() => {}
            Arrived::Message { from, bytes } => {
                if let Some(tap) = &self.config.tap {
                    tap.note(from, self.local(), &bytes);
                }
                let flow = self.wire.flow_of(from);
                self.ua.handle_input(now(), Input::Datagram { flow, bytes });
            }
        }
    }

    async fn command(&mut self, command: Command) {
        match command {
            Command::Acknowledge(id, at, done) => self.acknowledge(&id, at, done),
            Command::Answer(done) => {
                // The handset may have been dropped; then no caller waits.
                let _ = done.send(self.answer_ringing());
            }
            Command::Call(plan, done) => self.place(plan, done).await,
            Command::Decline => self.decline(),
            Command::Dial(digits, done) => {
                let call = self.calls.values().find(|call| call.up && call.media.takes_digits());
                let _ = done.send(call.is_some_and(|call| call.media.dial(&digits)));
            }
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
            Command::Notes(notes) => self.config.notes = notes,
            Command::Offer(direction) => {
                for leg in self.legs() {
                    self.offer(leg, direction);
                }
            }
            Command::Register(seconds, done) => self.register(seconds, done),
            Command::Send(parcel, done) => self.send(&parcel, done),
        }
    }

    pub(super) fn legs(&self) -> Vec<LegKey> {
        self.calls.keys().copied().collect()
    }

    /// Updates the handset's number of calls.
    fn count(&self) {
        let up = self.calls.values().filter(|call| call.up).count();
        let calls = Calls { ringing: self.calls.len() - up, up };
        self.lines.counted.send_if_modified(|counted| std::mem::replace(counted, calls) != calls);
    }

    /// Sends news to all listeners.
    pub(super) fn tell(&self, news: News) {
        let _ = self.lines.news.send(news);
    }

    pub(super) fn ear(&self) -> Ear {
        Ear::new(Arc::clone(&self.lines.heard), &self.config)
    }

    /// The voice that is used without a scenario.
    pub(super) fn voice(&mut self) -> Speech {
        match self.config.voice {
            Some(voice) => Speech::Voice(voice, self.rng.random()),
            None => Speech::Nothing,
        }
    }

    /// Executes the outputs of the user agent.
    async fn settle(&mut self) {
        while let Some(output) = self.ua.poll_output() {
            match output {
                Output::Transmit { flow, bytes, .. } => {
                    if let Some(tap) = &self.config.tap {
                        tap.note(self.local(), flow.remote, &bytes);
                    }
                    // A datagram that the system refuses is lost, as on any network.
                    let _ = self.wire.send(flow.remote, &bytes).await;
                }
                Output::Event(event) => self.event(event).await,
                Output::Overload { .. } | Output::Rejected { .. } | Output::Withheld { .. } => {}
            }
        }
        for (done, outcome) in self.over.drain(..) {
            // The handset may have been dropped; then no caller waits.
            let _ = done.send(outcome);
        }
    }

    async fn event(&mut self, event: Event) {
        match event {
            Event::Invited { leg, key, request, .. } => self.ring(leg, key, &request).await,
            Event::Answered { leg, response } => self.answered(leg, &response),
            Event::Progress { leg, response } => self.progress(leg, &response),
            Event::Reinvited { leg, key, request, .. } => self.reinvited(leg, &key, &request),
            Event::Response { leg, key, response, request, .. } => {
                let is_invite = response.cseq().is_ok_and(|cseq| cseq.method == Method::Invite);
                match leg.filter(|_| is_invite) {
                    Some(leg) => self.reinvite_answered(leg, &response),
                    None => self.response(key, &response, request),
                }
            }
            Event::InfoAnswered { key, receipt, .. } | Event::MessageAnswered { key, receipt } => {
                match receipt {
                    Receipt::Answered { response, request, .. } => self.response(key, &response, request),
                    Receipt::TimedOut | Receipt::Unreachable => self.unanswered(key),
                }
            }
            Event::Unanswered { key, .. } => self.unanswered(key),
            Event::Request { leg, key, request, .. } => match request.method() {
                Method::Info | Method::Message => self.note(leg, key, &request),
                Method::Options => self.respond(&key, 200),
                _ => self.respond(&key, 405),
            },
            Event::Ended { leg, cause } => self.ended(leg, cause),
            Event::Acked { leg, .. } => self.up(leg),
            Event::ReinviteCancelled { .. } => {}
            Event::ReinviteDue { leg } => self.offer_again(leg),
            // Only with session timers, which this phone does not support.
            Event::RefreshDue { .. } => {}
        }
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
        while let Some(at) = self.owed.iter().position(|(at, _)| *at <= now) {
            let (_, key) = self.owed.swap_remove(at);
            self.respond(&key, 200);
        }
    }

    fn due(&mut self, leg: LegKey, due: Due) {
        match due {
            Due::Answer(key) => self.take(leg, &key),
            Due::HangUp => self.ua.hang_up(now(), leg),
            Due::Offer(direction) => self.offer(leg, direction),
        }
    }

    pub(super) fn respond(&mut self, key: &ServerKey, status: u16) {
        let status = StatusCode::new(status).unwrap_or(StatusCode::SERVER_ERROR);
        let mut reply = Reply::new(status);
        if matches!(status.as_u16(), 200 | 405) {
            reply = reply.header("Allow", ALLOW);
        }
        // Refused when the transaction is over, after a CANCEL.
        let _ = self.ua.respond(now(), key, reply);
    }

    pub(super) fn local(&self) -> SocketAddr {
        self.wire.local()
    }

    pub(super) fn flow(&self) -> Flow {
        self.wire.flow()
    }

    pub(super) fn is_tcp(&self) -> bool {
        self.wire.is_tcp()
    }
}

#[expect(clippy::disallowed_methods, reason = "a phone is a driver: it reads the clock")]
pub(super) fn now() -> Instant {
    Instant::now()
}

/// Methods that the phone supports (RFC 3261 §20.5).
pub(super) const ALLOW: &str = "INVITE, ACK, CANCEL, BYE, OPTIONS, INFO, MESSAGE";
/// How long a phone sleeps that waits for nothing.
const IDLE: Duration = Duration::from_secs(3_600);
