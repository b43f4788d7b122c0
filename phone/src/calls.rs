//! The calls of a phone: placing, answering, holding, ending.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use rand::RngExt;
use sidetone_media::simulate::Scenario;
use sidetone_sip::message::{Request, Response, StatusCode};
use sidetone_sip::sdp::{self, Direction, KeySeed, OfferAnswer, SessionDescription};
use sidetone_sip::transaction::ServerKey;
use sidetone_sip::ua::{Cause, Extra, Invite, LegKey, Reply, Retried};
use tokio::sync::oneshot;

use crate::call::{Call, Due, audio, with_ptime};
use crate::config::{Answering, CallOutcome, CallPlan, Calls, News};
use crate::endpoint::{ALLOW, Endpoint, now};
use crate::media::Media;

/// The calls of a phone.
#[derive(Default)]
pub(super) struct CallTable {
    calls: HashMap<LegKey, Call>,
    /// Finished calls whose last message was not sent yet.
    over: Vec<(oneshot::Sender<CallOutcome>, CallOutcome)>,
}

impl CallTable {
    pub(super) async fn place(
        &mut self,
        phone: &mut Endpoint,
        plan: CallPlan,
        done: oneshot::Sender<CallOutcome>,
    ) {
        let ptime_ms = plan.talk.as_deref().map(Scenario::advertised_ptime_ms);
        let speech = phone.speech(plan.talk.clone());
        let Ok(media) = Media::open(phone.local().ip(), speech, phone.ear()).await else { return };
        let mut exchange = exchange(phone);
        let address = SocketAddr::new(plan.advertised.unwrap_or(phone.local().ip()), media.local().port());
        let offer = sdp::offer(address, phone.config.codecs.codecs(), Direction::SendRecv);
        let Ok(offer) = exchange.send_offer(with_ptime(offer, ptime_ms)) else { return };
        let from = format!("<sip:{}@{}>", phone.config.number, phone.config.domain);
        let uri = format!("sip:{}@{}", plan.number, phone.config.domain);
        let invite = Invite::new(uri.clone(), from, format!("<{uri}>")).header("Allow", ALLOW);
        let Ok(leg) = phone.ua.invite(now(), phone.flow(), invite.content(SDP, offer.to_bytes())) else {
            return;
        };
        let patience = plan.patience.map(|patience| patience + SILENCE_MAX);
        let agenda = patience.map(|patience| (now() + patience, Due::HangUp)).into_iter().collect();
        let mut call = Call::new(exchange, media, plan.number.clone());
        call.spoils_srtp = phone.config.srtp_wrong_key;
        (call.agenda, call.plan, call.done) = (agenda, Some(plan), Some(done));
        self.insert(leg, call);
    }

    pub(super) async fn ring(
        &mut self,
        phone: &mut Endpoint,
        leg: LegKey,
        key: ServerKey,
        request: &Request,
    ) {
        if self.calls.len() >= phone.config.calls_len_max {
            return phone.respond(&key, 486);
        }
        let (after, talk) = match &phone.config.answering {
            Answering::Refuse(status) => {
                let status = *status;
                return phone.respond(&key, status);
            }
            Answering::Redirect(number) => {
                let contact = format!("<sip:{number}@{}>", phone.config.domain);
                return phone
                    .reply(&key, Reply::new(StatusCode::MOVED_TEMPORARILY).header("Contact", contact));
            }
            Answering::Ring => (None, None),
            Answering::Answer { after, talk } => (Some(*after), talk.clone()),
            Answering::Early { after, talk } => (Some(*after), Some(talk.clone())),
        };
        let speech = phone.speech(talk);
        let Ok(media) = Media::open(phone.local().ip(), speech, phone.ear()).await else {
            return phone.respond(&key, 500);
        };
        let mut exchange = exchange(phone);
        let offered = offered(phone, request).map(|offer| exchange.receive_offer(offer));
        if !matches!(offered, Some(Ok(()))) {
            return phone.respond(&key, 488);
        }
        let (peer, name) = caller(request);
        let mut call = Call::new(exchange, media, peer.clone());
        call.spoils_srtp = phone.config.srtp_wrong_key;
        call.agenda = after.map(|after| (now() + after, Due::Answer(key))).into_iter().collect();
        call.ringing = Some(key);
        let is_early = matches!(phone.config.answering, Answering::Early { .. });
        let early = is_early.then(|| call.answer(&phone.config)).flatten();
        call.early = early.clone();
        self.insert(leg, call);
        match early {
            Some(answer) => {
                let reply = Reply::new(StatusCode::SESSION_PROGRESS).content(SDP, answer.to_bytes());
                phone.reply(&key, reply);
            }
            None => phone.respond(&key, 180),
        }
        phone.report(News::Ringing { peer, name });
    }

    /// Sends digits in the call that is up and supports them; `false` if there is none.
    pub(super) fn dial(&self, digits: &str) -> bool {
        let call = self.calls.values().find(|call| call.up && call.media.takes_digits());
        call.is_some_and(|call| call.media.dial(digits))
    }

    /// Hangs up every call, or cancels it while it rings.
    pub(super) fn hang_up(&self, phone: &mut Endpoint) {
        for leg in self.legs() {
            phone.ua.hang_up(now(), leg);
        }
    }

    /// Opens a new media socket in every call that is up and offers its address.
    pub(super) async fn move_media(&mut self, phone: &mut Endpoint) {
        for leg in self.legs() {
            let Some(call) = self.calls.get_mut(&leg).filter(|call| call.up) else { continue };
            if call.media.move_away().await.is_ok() {
                // A new address has new keys.
                call.exchange.renew_key();
                self.offer(phone, leg, Direction::SendRecv);
            }
        }
    }

    /// Offers this direction in every call that is up.
    pub(super) fn offer_all(&mut self, phone: &mut Endpoint, direction: Direction) {
        for leg in self.legs() {
            self.offer(phone, leg, direction);
        }
    }

    fn legs(&self) -> Vec<LegKey> {
        self.calls.keys().copied().collect()
    }

    /// The newest call that is up.
    pub(super) fn newest_up(&self) -> Option<LegKey> {
        let up = self.calls.iter().filter(|(_, call)| call.up);
        up.max_by_key(|(_, call)| call.number).map(|(leg, _)| *leg)
    }

    /// The oldest and the newest call that are up, when there are two.
    pub(super) fn two_up(&self) -> Option<(LegKey, LegKey)> {
        let up = self.calls.iter().filter(|(_, call)| call.up);
        let oldest = up.min_by_key(|(_, call)| call.number).map(|(leg, _)| *leg)?;
        self.newest_up().filter(|newest| *newest != oldest).map(|newest| (oldest, newest))
    }

    /// How many calls ring, and how many are up.
    pub(super) fn count(&self) -> Calls {
        let up = self.calls.values().filter(|call| call.up).count();
        Calls { ringing: self.calls.len() - up, up }
    }

    /// The time of the next action of a call.
    pub(super) fn next_due(&self) -> Option<Instant> {
        self.calls.values().flat_map(|call| call.agenda.iter().map(|(at, _)| *at)).min()
    }

    /// Executes the actions whose time has come.
    pub(super) fn timeout(&mut self, phone: &mut Endpoint, now: Instant) {
        for leg in self.legs() {
            while let Some(due) = self.calls.get_mut(&leg).and_then(|call| call.take_due(now)) {
                match due {
                    Due::Answer(key) => self.take(phone, leg, &key),
                    Due::HangUp => phone.ua.hang_up(now, leg),
                    Due::Offer(direction) => self.offer(phone, leg, direction),
                }
            }
        }
    }

    /// Reports the calls that are over and whose last message was sent.
    pub(super) fn report_outcomes(&mut self) {
        for (done, outcome) in self.over.drain(..) {
            // The owner may have dropped the phone; then no caller waits.
            let _ = done.send(outcome);
        }
    }

    fn insert(&mut self, leg: LegKey, mut call: Call) {
        call.number = 1 + self.calls.values().map(|call| call.number).max().unwrap_or_default();
        self.calls.insert(leg, call);
    }

    pub(super) fn answered(&mut self, phone: &mut Endpoint, leg: LegKey, response: &Response) {
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
        self.up(phone, leg);
    }

    /// Handles that the call was answered and both sides have the answer.
    pub(super) fn up(&mut self, phone: &mut Endpoint, leg: LegKey) {
        let Some(call) = self.calls.get_mut(&leg) else { return };
        if !std::mem::replace(&mut call.up, true) {
            let codec = call.exchange.negotiated().and_then(audio).unwrap_or_default();
            let news = News::Up { peer: call.peer.clone(), codec };
            phone.report(news);
        }
    }

    pub(super) fn progress(&mut self, phone: &mut Endpoint, leg: LegKey, response: &Response) {
        // Early media: the called side may send audio before it answers.
        if let Some(call) = self.calls.get_mut(&leg) {
            call.hear(response.body());
            let patience = call.plan.as_ref().and_then(|plan| plan.patience);
            if let Some(patience) = patience.filter(|_| !std::mem::replace(&mut call.rings, true) && !call.up)
            {
                call.agenda = vec![(now() + patience, Due::HangUp)];
            }
        }
        phone.report(News::Progress { status: response.status().as_u16() });
    }

    pub(super) fn reinvited(
        &mut self,
        phone: &mut Endpoint,
        leg: LegKey,
        key: &ServerKey,
        request: &Request,
    ) {
        let answer = self.calls.get_mut(&leg).and_then(|call| {
            call.exchange.receive_offer(offered(phone, request)?).ok()?;
            call.answer(&phone.config)
        });
        match answer {
            Some(answer) => {
                let reply = Reply::new(StatusCode::OK).content(SDP, answer.to_bytes());
                phone.reply(key, reply);
            }
            None => phone.respond(key, 488),
        }
    }

    pub(super) fn reinvite_answered(&mut self, phone: &mut Endpoint, leg: LegKey, response: &Response) {
        let is_final = response.status().is_final();
        let Some(call) = self.calls.get_mut(&leg).filter(|_| is_final) else { return };
        call.outcome.reinvites.push(response.status().as_u16());
        if response.status().is_success() {
            call.hear(response.body());
        } else {
            call.exchange.roll_back();
        }
        self.offer_owed(phone, leg);
    }

    /// Sends a re-INVITE in a call that is up.
    pub(super) fn offer(&mut self, phone: &mut Endpoint, leg: LegKey, direction: Direction) {
        let Some(call) = self.calls.get_mut(&leg).filter(|call| call.up) else { return };
        (call.wanted, call.owes_offer) = (direction, false);
        let offer = sdp::offer(call.media.local(), phone.config.codecs.codecs(), direction);
        if let Ok(offer) = call.exchange.send_offer(offer) {
            let extra = Extra::new().content(SDP, offer.to_bytes());
            if phone.ua.reinvite(now(), leg, &extra).is_err() {
                call.exchange.roll_back();
                call.owes_offer = true;
            }
        } else {
            call.owes_offer = true;
        }
    }

    /// Sends the offer that was delayed while another offer was open.
    fn offer_owed(&mut self, phone: &mut Endpoint, leg: LegKey) {
        if let Some(direction) = self.calls.get(&leg).filter(|call| call.owes_offer).map(|call| call.wanted) {
            self.offer(phone, leg, direction);
        }
    }

    /// Both sides sent an offer at the same time; the phone's was refused and is repeated now (RFC 3261 §14.1).
    pub(super) fn offer_again(&mut self, phone: &mut Endpoint, leg: LegKey) {
        let Some(call) = self.calls.get_mut(&leg) else { return };
        call.exchange.roll_back();
        let direction = call.wanted;
        self.offer(phone, leg, direction);
    }

    /// Answers the newest ringing call; `false` when none rings.
    pub(super) fn answer_ringing(&mut self, phone: &mut Endpoint) -> bool {
        let ringing = self.calls.iter().filter_map(|(leg, call)| Some((call.number, *leg, call.ringing?)));
        let Some((_, leg, key)) = ringing.max_by_key(|(number, ..)| *number) else { return false };
        if let Some(call) = self.calls.get_mut(&leg) {
            call.agenda.clear();
        }
        self.take(phone, leg, &key);
        true
    }

    /// Declines every ringing call.
    pub(super) fn decline(&mut self, phone: &mut Endpoint) {
        let ringing = self.calls.values_mut().filter_map(|call| Some((call.ringing.take()?, call)));
        let declined = ringing.map(|(key, call)| {
            call.outcome.status = StatusCode::DECLINE.as_u16();
            key
        });
        for key in declined.collect::<Vec<ServerKey>>() {
            phone.respond(&key, StatusCode::DECLINE.as_u16());
        }
    }

    /// Answers a call.
    pub(super) fn take(&mut self, phone: &mut Endpoint, leg: LegKey, key: &ServerKey) {
        let Some(call) = self.calls.get_mut(&leg) else { return };
        call.ringing = None;
        // An early answer stays valid, and is repeated (RFC 3261 §13.2.1).
        let answer = call.early.take().or_else(|| call.answer(&phone.config));
        let Some(answer) = answer else { return phone.respond(key, 488) };
        call.outcome.status = 200;
        let reply = Reply::new(StatusCode::OK).header("Allow", ALLOW).content(SDP, answer.to_bytes());
        phone.reply(key, reply);
    }

    pub(super) fn ended(&mut self, phone: &mut Endpoint, leg: LegKey, cause: Cause) {
        let Some(mut call) = self.calls.remove(&leg) else { return };
        let mut reason = None;
        if let Cause::Refused { response, request, .. } = cause {
            let status = response.status().as_u16();
            let again = request.filter(|_| matches!(status, 401 | 407) && !call.tried);
            if let Some(Retried::Leg(leg)) = again.and_then(|request| phone.authorized(&response, request)) {
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
        phone.report(News::Ended { peer: call.peer, status, reason, by_peer, received });
        self.over.extend(call.done.take().map(|done| (done, call.outcome)));
    }
}

/// The exchange of a new call, with the phone's rule for SRTP.
fn exchange(phone: &mut Endpoint) -> OfferAnswer {
    let (session, seed) = (phone.rng.random::<u64>() >> 2, KeySeed::new(phone.rng.random()));
    OfferAnswer::new(session).with_srtp(phone.config.srtp, seed)
}

/// The offer in a request, if the phone's rule for SRTP accepts it.
fn offered(phone: &Endpoint, request: &Request) -> Option<SessionDescription> {
    let offer = SessionDescription::parse(request.body()).ok()?;
    phone.config.srtp.admit(offer).ok()
}

/// The caller: the user of From and the display name.
fn caller(request: &Request) -> (String, Option<String>) {
    let Ok(from) = request.from() else { return ("anonymous".to_owned(), None) };
    let user = from.uri.user_decoded().map_or_else(|| from.uri.to_string(), |user| user.into_owned());
    (user, from.display)
}

/// Additional time that a caller waits for an answer without a 180.
const SILENCE_MAX: Duration = Duration::from_secs(10);
const SDP: &str = "application/sdp";
