//! The calls of a phone: placing, answering, holding, ending.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use rand::RngExt;
use sidetone_media::codec::Codec;
use sidetone_media::simulate::Scenario;
use sidetone_media::time::ClockRate;
use sidetone_sip::message::{Request, Response, StatusCode};
use sidetone_sip::sdp::{self, Direction, Negotiated, OfferAnswer, SessionDescription};
use sidetone_sip::transaction::ServerKey;
use sidetone_sip::ua::{Cause, Extra, Invite, LegKey, Reply, Retried};
use tokio::sync::oneshot;

use crate::actor::{ALLOW, Actor, now};
use crate::media::{Media, Speech};
use crate::plan::{Answering, CallOutcome, CallPlan, News, PhoneConfig};
use crate::voice::Format;

/// One call.
pub(super) struct Call {
    exchange: OfferAnswer,
    pub(super) media: Media,
    /// Actions and their times.
    pub(super) agenda: Vec<(Instant, Due)>,
    plan: Option<CallPlan>,
    done: Option<oneshot::Sender<CallOutcome>>,
    outcome: CallOutcome,
    peer: String,
    /// The INVITE of a call that is not answered yet.
    ringing: Option<ServerKey>,
    /// The phone's answer, if it was sent before the call was answered.
    early: Option<SessionDescription>,
    tried: bool,
    /// Whether the other side has sent a 180.
    rings: bool,
    pub(super) up: bool,
    /// Grows with every call: commands apply to the newest.
    pub(super) number: u64,
    /// The direction that was last requested.
    wanted: Direction,
    /// Whether it still has to be offered, because another offer was open.
    owes_offer: bool,
}

#[derive(Clone, Copy)]
pub(super) enum Due {
    Answer(ServerKey),
    HangUp,
    Offer(Direction),
}

impl Actor {
    pub(super) async fn place(&mut self, plan: CallPlan, done: oneshot::Sender<CallOutcome>) {
        let ptime_ms = plan.talk.as_deref().map(Scenario::advertised_ptime_ms);
        let speech = self.speech(plan.talk.clone());
        let Ok(media) = Media::open(self.local().ip(), speech, self.ear()).await else { return };
        let mut exchange = OfferAnswer::new(self.rng.random::<u64>() >> 2);
        let address = SocketAddr::new(plan.advertised.unwrap_or(self.local().ip()), media.local().port());
        let offer = sdp::offer(address, self.config.codecs.codecs(), Direction::SendRecv);
        let Ok(offer) = exchange.send_offer(with_ptime(offer, ptime_ms)) else { return };
        let from = format!("<sip:{}@{}>", self.config.number, self.config.domain);
        let uri = format!("sip:{}@{}", plan.number, self.config.domain);
        let invite = Invite::new(uri.clone(), from, format!("<{uri}>")).header("Allow", ALLOW);
        let Ok(leg) = self.ua.invite(now(), self.flow(), invite.content(SDP, offer.to_bytes())) else {
            return;
        };
        let patience = plan.patience.map(|patience| patience + SILENCE_MAX);
        let agenda = patience.map(|patience| (now() + patience, Due::HangUp)).into_iter().collect();
        let mut call = Call::new(exchange, media, plan.number.clone());
        (call.agenda, call.plan, call.done) = (agenda, Some(plan), Some(done));
        self.insert(leg, call);
    }

    pub(super) async fn ring(&mut self, leg: LegKey, key: ServerKey, request: &Request) {
        if self.calls.len() >= self.config.calls_len_max {
            return self.respond(&key, 486);
        }
        let (after, talk) = match &self.config.answering {
            Answering::Refuse(status) => {
                let status = *status;
                return self.respond(&key, status);
            }
            Answering::Ring => (None, None),
            Answering::Answer { after, talk } => (Some(*after), talk.clone()),
            Answering::Early { after, talk } => (Some(*after), Some(talk.clone())),
        };
        let speech = self.speech(talk);
        let Ok(media) = Media::open(self.local().ip(), speech, self.ear()).await else {
            return self.respond(&key, 500);
        };
        let mut exchange = OfferAnswer::new(self.rng.random::<u64>() >> 2);
        let offered =
            SessionDescription::parse(request.body()).ok().map(|offer| exchange.receive_offer(offer));
        if !matches!(offered, Some(Ok(()))) {
            return self.respond(&key, 488);
        }
        let (peer, name) = caller(request);
        let mut call = Call::new(exchange, media, peer.clone());
        call.agenda = after.map(|after| (now() + after, Due::Answer(key))).into_iter().collect();
        call.ringing = Some(key);
        let is_early = matches!(self.config.answering, Answering::Early { .. });
        let early = is_early.then(|| call.answer(&self.config)).flatten();
        call.early = early.clone();
        self.insert(leg, call);
        match early {
            Some(answer) => {
                let reply = Reply::new(StatusCode::SESSION_PROGRESS).content(SDP, answer.to_bytes());
                let _ = self.ua.respond(now(), &key, reply);
            }
            None => self.respond(&key, 180),
        }
        self.tell(News::Ringing { peer, name });
    }

    fn insert(&mut self, leg: LegKey, mut call: Call) {
        call.number = 1 + self.calls.values().map(|call| call.number).max().unwrap_or_default();
        self.calls.insert(leg, call);
    }

    fn speech(&mut self, talk: Option<Box<Scenario>>) -> Speech {
        talk.map_or_else(|| self.voice(), Speech::Scenario)
    }

    pub(super) fn answered(&mut self, leg: LegKey, response: &Response) {
        let Some(call) = self.calls.get_mut(&leg) else { return };
        call.outcome.status = 200;
        call.hear(response.body());
        call.agenda.clear();
        if let Some(plan) = &call.plan {
            call.agenda.extend(plan.talk_time.map(|talk_time| (now() + talk_time, Due::HangUp)));
            if let Some((hold, resume)) = plan.hold {
                call.agenda.push((now() + hold, Due::Offer(Direction::SendOnly)));
                call.agenda.push((now() + hold + resume, Due::Offer(Direction::SendRecv)));
            }
        }
        self.up(leg);
    }

    /// Handles that the call is answered and both sides know the answer.
    pub(super) fn up(&mut self, leg: LegKey) {
        let Some(call) = self.calls.get_mut(&leg) else { return };
        if !std::mem::replace(&mut call.up, true) {
            let codec = call.exchange.negotiated().and_then(audio).unwrap_or_default();
            let news = News::Up { peer: call.peer.clone(), codec };
            self.tell(news);
        }
    }

    pub(super) fn progress(&mut self, leg: LegKey, response: &Response) {
        // Early media: the called side may send audio before it answers.
        if let Some(call) = self.calls.get_mut(&leg) {
            call.hear(response.body());
            let patience = call.plan.as_ref().and_then(|plan| plan.patience);
            if let Some(patience) = patience.filter(|_| !std::mem::replace(&mut call.rings, true) && !call.up)
            {
                call.agenda = vec![(now() + patience, Due::HangUp)];
            }
        }
        self.tell(News::Progress { status: response.status().as_u16() });
    }

    pub(super) fn reinvited(&mut self, leg: LegKey, key: &ServerKey, request: &Request) {
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

    pub(super) fn reinvite_answered(&mut self, leg: LegKey, response: &Response) {
        let is_final = response.status().is_final();
        let Some(call) = self.calls.get_mut(&leg).filter(|_| is_final) else { return };
        call.outcome.reinvites.push(response.status().as_u16());
        if response.status().is_success() {
            call.hear(response.body());
        } else {
            call.exchange.roll_back();
        }
        self.offer_owed(leg);
    }

    /// Sends a re-INVITE in a call that is up.
    pub(super) fn offer(&mut self, leg: LegKey, direction: Direction) {
        let Some(call) = self.calls.get_mut(&leg).filter(|call| call.up) else { return };
        (call.wanted, call.owes_offer) = (direction, false);
        let offer = sdp::offer(call.media.local(), self.config.codecs.codecs(), direction);
        if let Ok(offer) = call.exchange.send_offer(offer) {
            let extra = Extra::new().content(SDP, offer.to_bytes());
            if self.ua.reinvite(now(), leg, &extra).is_err() {
                call.exchange.roll_back();
                call.owes_offer = true;
            }
        } else {
            call.owes_offer = true;
        }
    }

    /// Sends the offer that had to wait while another offer was open.
    fn offer_owed(&mut self, leg: LegKey) {
        if let Some(direction) = self.calls.get(&leg).filter(|call| call.owes_offer).map(|call| call.wanted) {
            self.offer(leg, direction);
        }
    }

    /// Both sides had sent an offer at once; the phone's was refused and is repeated now (RFC 3261 §14.1).
    pub(super) fn offer_again(&mut self, leg: LegKey) {
        let Some(call) = self.calls.get_mut(&leg) else { return };
        call.exchange.roll_back();
        let direction = call.wanted;
        self.offer(leg, direction);
    }

    /// Answers the newest ringing call; `false` when none rings.
    pub(super) fn answer_ringing(&mut self) -> bool {
        let ringing = self.calls.iter().filter_map(|(leg, call)| Some((call.number, *leg, call.ringing?)));
        let Some((_, leg, key)) = ringing.max_by_key(|(number, ..)| *number) else { return false };
        if let Some(call) = self.calls.get_mut(&leg) {
            call.agenda.clear();
        }
        self.take(leg, &key);
        true
    }

    /// Declines every ringing call.
    pub(super) fn decline(&mut self) {
        let ringing = self.calls.values_mut().filter_map(|call| Some((call.ringing.take()?, call)));
        let declined = ringing.map(|(key, call)| {
            call.outcome.status = StatusCode::DECLINE.as_u16();
            key
        });
        for key in declined.collect::<Vec<ServerKey>>() {
            self.respond(&key, StatusCode::DECLINE.as_u16());
        }
    }

    /// Answers a call.
    pub(super) fn take(&mut self, leg: LegKey, key: &ServerKey) {
        let Some(call) = self.calls.get_mut(&leg) else { return };
        call.ringing = None;
        // An early answer stays valid, and is repeated (RFC 3261 §13.2.1).
        let answer = call.early.take().or_else(|| call.answer(&self.config));
        let Some(answer) = answer else { return self.respond(key, 488) };
        call.outcome.status = 200;
        let reply = Reply::new(StatusCode::OK).header("Allow", ALLOW).content(SDP, answer.to_bytes());
        let _ = self.ua.respond(now(), key, reply);
    }

    pub(super) fn ended(&mut self, leg: LegKey, cause: Cause) {
        let Some(mut call) = self.calls.remove(&leg) else { return };
        let mut reason = None;
        if let Cause::Refused { response, request, .. } = cause {
            let status = response.status().as_u16();
            let again = request.filter(|_| matches!(status, 401 | 407) && !call.tried);
            if let Some(Retried::Leg(leg)) = again.and_then(|request| self.authorized(&response, request)) {
                call.tried = true;
                self.calls.insert(leg, call);
                return;
            }
            call.outcome.status = status;
            reason = Some(response.reason().into_owned());
        } else if call.outcome.status == 0 {
            call.outcome.status = if matches!(cause, Cause::TimedOut) { 408 } else { 487 };
        } else {
            call.outcome.ended_by_peer = matches!(cause, Cause::Bye(_));
        }
        call.outcome.received = call.media.received();
        let CallOutcome { status, received, ended_by_peer, .. } = call.outcome;
        let usual = || StatusCode::new(status).map_or("", StatusCode::default_reason).to_owned();
        let reason = reason.unwrap_or_else(usual);
        let by_peer = ended_by_peer || (call.plan.is_none() && status == 487);
        self.tell(News::Ended { peer: call.peer, status, reason, by_peer, received });
        self.over.extend(call.done.take().map(|done| (done, call.outcome)));
    }
}

impl Call {
    fn new(exchange: OfferAnswer, media: Media, peer: String) -> Self {
        let outcome = CallOutcome { status: 0, received: 0, ended_by_peer: false, reinvites: Vec::new() };
        Call {
            exchange,
            media,
            agenda: Vec::new(),
            plan: None,
            done: None,
            outcome,
            peer,
            ringing: None,
            early: None,
            tried: false,
            rings: false,
            up: false,
            number: 0,
            wanted: Direction::SendRecv,
            owes_offer: false,
        }
    }

    /// Takes the peer's answer and sends audio to its address.
    fn hear(&mut self, body: &[u8]) {
        if let Ok(answer) = SessionDescription::parse(body)
            && self.exchange.receive_answer(answer).is_ok()
        {
            self.aim();
        }
    }

    /// The phone's answer to the peer's open offer.
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
        self.media.speak_as(negotiated.and_then(format));
        self.media.send_to(negotiated.filter(|n| n.direction.sends()).and_then(|n| n.remote));
    }

    pub(super) fn take_due(&mut self, now: Instant) -> Option<Due> {
        let place = self.agenda.iter().position(|(at, _)| *at <= now)?;
        Some(self.agenda.remove(place).1)
    }
}

/// The format of a voice: G.711 if it was negotiated, otherwise the first codec that it supports; `None` if
/// it supports none.
fn format(negotiated: &Negotiated) -> Option<Format> {
    let known = |payload: &sdp::Payload| {
        let clock = ClockRate::new(payload.codec.clock_rate)?;
        let codec = Codec::find(&payload.codec.name, clock, payload.codec.channels)?;
        Some(Format { codec, audio: payload.send, heard: payload.receive, events: None })
    };
    let is_g711 = |format: &Format| matches!(format.codec, Codec::Pcmu | Codec::Pcma);
    let mut formats = negotiated.payloads.iter().filter_map(known);
    let first = formats.next()?;
    let chosen = if is_g711(&first) { first } else { formats.find(is_g711).unwrap_or(first) };
    let events = negotiated.payloads.iter().find(|payload| payload.codec.is("telephone-event"));
    Some(Format { events: events.map(|payload| payload.send), ..chosen })
}

/// The name of the audio codec.
fn audio(negotiated: &Negotiated) -> Option<String> {
    let audio = negotiated.payloads.iter().find(|payload| !payload.codec.is_auxiliary())?;
    Some(audio.codec.name.clone())
}

/// The caller: the user of From and the display name.
fn caller(request: &Request) -> (String, Option<String>) {
    let Ok(from) = request.from() else { return ("anonymous".to_owned(), None) };
    let user = from.uri.user_decoded().map_or_else(|| from.uri.to_string(), |user| user.into_owned());
    (user, from.display)
}

fn with_ptime(mut description: SessionDescription, ptime_ms: Option<u32>) -> SessionDescription {
    for media in description.media.iter_mut().filter(|media| media.port != 0) {
        media.ptime_ms = ptime_ms.or(media.ptime_ms);
    }
    description
}

/// Additional time that a caller waits for an answer without a 180.
const SILENCE_MAX: Duration = Duration::from_secs(10);
const SDP: &str = "application/sdp";
