//! One call as seen in its messages: offer and answer, the time of the answer, the end and its cause.
//!
//! The observer is no party. It sees the requests and responses of one hop, possibly late, twice or not at
//! all, so nothing here requires an order that a lost packet could break.

use std::borrow::Cow;
use std::net::SocketAddr;
use std::sync::Arc;

use sidetone_call::media_plan;
use sidetone_media::session::Description;
use sidetone_media::time::Micros;
use sidetone_model::call::HangupCause;
use sidetone_model::failure::Failure;
use sidetone_sip::message::{Message, Method, Request};
use sidetone_sip::sdp::{Negotiated, Role, SessionDescription, audio_place};

use super::announcements::{Announcement, announcements, first_audio, shares_addresses};
use super::attempt::Attempt;
use super::embedded_sdp::described;
use super::endpoints::Standing;
use super::ladder::{Ladder, short};
use super::payloads::{Announced, Meanings, is_same};
use super::signal::LegSignal;

/// One call between the party that sent the first INVITE and the party that answered it.
#[derive(Debug)]
pub(super) struct Dialog {
    pub(super) call_id: String,
    pub(super) from: String,
    pub(super) to: String,
    pub(super) started: Micros,
    pub(super) answered: Option<Micros>,
    pub(super) ended: Option<Micros>,
    pub(super) status: Option<u16>,
    pub(super) cause: Option<HangupCause>,
    /// The codec that offer and answer agreed on.
    pub(super) codec: Option<String>,
    /// The packet durations that the caller and the called party advertised, in milliseconds; `None` before offer
    /// and answer agreed.
    pub(super) ptime_ms: Option<(Option<u32>, Option<u32>)>,
    /// The last message of the call.
    pub(super) last: Micros,
    /// Its position among all calls, by first INVITE.
    pub(super) serial: u64,
    /// Its messages, when they are to be kept.
    pub(super) ladder: Ladder,
    /// The INVITEs and their responses, until one is answered.
    attempt: Option<Box<Attempt>>,
    /// Flows that were bound to it; recorded only when calls are evicted.
    pub(super) flows: Vec<u32>,
    /// Addresses that it announced: all when calls are evicted, otherwise those that other calls announced too.
    pub(super) addresses: Vec<SocketAddr>,
    caller_tag: String,
    /// The tag of the party that answered, once it has; empty when it gave none.
    called_tag: String,
    /// Whether the first INVITE was seen on another hop as well.
    is_forwarded: bool,
    invite_number: u32,
    /// The first INVITE went from the first to the second of these.
    hop: (SocketAddr, SocketAddr),
    pending: Option<Offer>,
    /// The last agreed description, with its payload types apart.
    settled: Option<(Description, Meanings)>,
    /// The same for the called party's leg.
    far_settled: Option<(Description, Meanings)>,
    /// Messages with SDP so far; limits what an endless dialog may add.
    exchanges: u32,
}

#[derive(Debug)]
struct Offer {
    by_caller: bool,
    /// The transaction that carried it: whether it is the caller's, and its CSeq number.
    transaction: (bool, u32),
    answered: bool,
    sdp: Arc<SessionDescription>,
}

/// The role of a message in offer and answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    /// ACK or PRACK: answers the offer of a response.
    Closing,
    /// Another request: makes an offer.
    Request,
    /// A response: answers the offer of its request, or makes one if the request did not.
    Response,
}

/// The sender of a session description, and the message that carried it.
#[derive(Clone, Copy, Debug)]
struct Exchange {
    by_caller: bool,
    /// As [`Offer::transaction`].
    transaction: (bool, u32),
    part: Part,
}

impl Dialog {
    /// The call that this INVITE begins; `None` for any other message.
    pub(super) fn begin(at: Micros, hop: (SocketAddr, SocketAddr), message: &Message) -> Option<Self> {
        let request = message.as_request().filter(|request| *request.method() == Method::Invite)?;
        let headers = request.headers();
        let (from, to) = (headers.from().ok()?, headers.to().ok()?);
        // A To tag makes it a re-INVITE of a call whose beginning was not captured.
        if to.tag().is_some() {
            return None;
        }
        let name = |address: &sidetone_sip::message::NameAddr| {
            let user = address.uri.user_decoded().map(|user| user.into_owned());
            user.filter(|user| !user.is_empty())
                .or_else(|| address.uri.host().map(ToString::to_string))
                .unwrap_or_else(|| address.uri.to_string())
        };
        Some(Dialog {
            call_id: headers.call_id().to_owned(),
            from: name(&from),
            to: name(&to),
            started: at,
            answered: None,
            ended: None,
            status: None,
            cause: None,
            codec: None,
            ptime_ms: None,
            last: at,
            serial: 0,
            ladder: Ladder::default(),
            flows: Vec::new(),
            addresses: Vec::new(),
            caller_tag: from.tag().unwrap_or_default().to_owned(),
            called_tag: String::new(),
            is_forwarded: false,
            invite_number: headers.cseq().map_or(0, |cseq| cseq.number),
            hop,
            pending: None,
            settled: None,
            far_settled: None,
            exchanges: 0,
            attempt: Some(Box::default()),
        })
    }

    /// Whether a message with this Call-ID starts another call: this one was answered and is over, and the
    /// message has another From tag. Some test tools never change their Call-ID.
    pub(super) fn is_followed_by(
        &self,
        (source, destination): (SocketAddr, SocketAddr),
        message: &Message,
    ) -> bool {
        if self.answered.is_none() || self.ended.is_none() || !self.is_callers_hop(source, destination) {
            return false;
        }
        let invite = message.as_request().filter(|request| *request.method() == Method::Invite);
        invite.is_some_and(|request| {
            let (from, to) = (request.headers().from(), request.headers().to());
            to.is_ok_and(|to| to.tag().is_none())
                && from.is_ok_and(|from| from.tag().unwrap_or_default() != self.caller_tag)
        })
    }

    /// Its state, as far as it decides which packets are its own.
    pub(super) fn standing(&self) -> Standing {
        Standing { started: self.started, answered: self.answered, ended: self.ended }
    }

    /// Whether [`Dialog::message`] takes a message with this Call-ID; [`Dialog::behind`] takes the others.
    ///
    /// Without a Record-Route of the proxy, the parties talk to each other directly once the call is answered.
    pub(super) fn takes(&self, (source, destination): (SocketAddr, SocketAddr), message: &Message) -> bool {
        self.is_callers_hop(source, destination)
            || (!self.is_forwarded && self.is_within(message) == Some(true))
    }

    /// Takes a message with this Call-ID; returns the media addresses that it announces, and adds the changes
    /// to `leg`.
    pub(super) fn message(
        &mut self,
        at: Micros,
        (source, destination): (SocketAddr, SocketAddr),
        message: &Message,
        known: &mut Announced,
        leg: &mut Vec<LegSignal>,
    ) -> Vec<Announcement> {
        // A fork that answered later, or a request that the called party will not know: another dialog (RFC 3261 §12).
        if self.is_within(message) == Some(false) {
            return Vec::new();
        }
        let headers = message.headers();
        let (Ok(from_tag), Ok(cseq)) = (headers.from_tag(), headers.cseq()) else {
            return Vec::new();
        };
        self.last = self.last.max(at);
        let of_caller = from_tag == self.caller_tag;
        let sdp = described(message).filter(|_| self.exchanges < EXCHANGES_MAX);
        match message {
            Message::Request(request) => {
                if of_caller && let Some(attempt) = &mut self.attempt {
                    match request.method() {
                        Method::Cancel => attempt.cancel(request),
                        Method::Invite => attempt.request(at, destination, cseq.number, request),
                        _ => {}
                    }
                }
                if of_caller && *request.method() == Method::Ack {
                    self.acknowledged(at, cseq.number, request, leg);
                }
                self.request(at, request.method(), cseq.number, of_caller, leg);
                let part = match request.method() {
                    Method::Ack | Method::Prack => Part::Closing,
                    _ => Part::Request,
                };
                let transaction = (of_caller, cseq.number);
                self.media(sdp, Exchange { by_caller: of_caller, transaction, part }, known, leg)
            }
            Message::Response(response) => {
                let status = response.status().as_u16();
                if cseq.method == Method::Invite {
                    if let Some(attempt) = self.attempt.as_mut().filter(|_| of_caller) {
                        attempt.response(source, cseq.number, response);
                    }
                    if self.invite_response(at, status, cseq.number, of_caller, leg) {
                        self.called_tag = headers.to_tag().map(Cow::into_owned).unwrap_or_default();
                    }
                }
                let usable =
                    status < 300 && matches!(cseq.method, Method::Invite | Method::Prack | Method::Update);
                // A response carries the From of its request, but comes from the other party.
                let sdp = sdp.filter(|_| usable);
                let (by_caller, transaction) = (!of_caller, (of_caller, cseq.number));
                self.media(sdp, Exchange { by_caller, transaction, part: Part::Response }, known, leg)
            }
        }
    }

    /// Takes a message of a hop after the caller's: the caller's refusal may originate there.
    pub(super) fn behind(&mut self, source: SocketAddr, message: &Message) {
        let invite = message.as_request().filter(|request| *request.method() == Method::Invite);
        self.is_forwarded |= invite.is_some_and(|invite| tag(invite.headers().to_tag()).is_empty());
        let invites = message.headers().cseq().is_ok_and(|cseq| cseq.method == Method::Invite);
        if let (Message::Response(response), Some(attempt), true) = (message, &mut self.attempt, invites) {
            attempt.response_behind(source, response);
        }
    }

    /// Whether the caller offered audio over RTP and has a port for it.
    pub(super) fn offers_audio(&self) -> bool {
        let mut offers = self.pending.iter().filter(|offer| offer.by_caller);
        offers.any(|offer| offer.sdp.media.iter().any(|media| media.is_rtp_audio() && media.port != 0))
    }

    /// Why the call was not answered; `None` when it was.
    pub(super) fn failure(&self) -> Option<Box<Failure>> {
        let attempt = self.attempt.as_ref()?;
        let offered = self.pending.iter().filter(|offer| offer.by_caller).flat_map(|offer| &offer.sdp.media);
        let codecs = offered.filter(|media| media.is_rtp_audio()).flat_map(|media| &media.codecs);
        let audio = codecs.filter(|codec| !NO_AUDIO.iter().any(|name| codec.name.eq_ignore_ascii_case(name)));
        let offered: Vec<String> = audio.take(CODECS_MAX).map(|codec| short(&codec.name)).collect();
        Some(Box::new(attempt.failure(self.ended.unwrap_or(self.last), &offered)))
    }

    /// Whether a message belongs to the caller's hop.
    ///
    /// After a proxy the same Call-ID appears on further hops, whose answers and refusals are not the
    /// caller's. A BYE may bypass the proxy, so within the call the caller's own address is sufficient.
    fn is_callers_hop(&self, source: SocketAddr, destination: SocketAddr) -> bool {
        let (caller, peer) = self.hop;
        let between_hosts = caller.ip() != peer.ip();
        source == caller
            || destination == caller
            || (between_hosts && (source.ip() == caller.ip() || destination.ip() == caller.ip()))
    }

    /// Whether a message belongs to the dialog of the first 2xx; `None` when it lacks a tag, or the call is not
    /// answered.
    fn is_within(&self, message: &Message) -> Option<bool> {
        let headers = message.headers();
        let (from, to) = (tag(headers.from_tag()), tag(headers.to_tag()));
        if [&self.caller_tag, &self.called_tag].iter().any(|tag| tag.is_empty())
            || from.is_empty()
            || to.is_empty()
        {
            return None;
        }
        let is_pair = |one: &str, other: &str| one == self.caller_tag && other == self.called_tag;
        Some(is_pair(&from, &to) || is_pair(&to, &from))
    }

    fn request(
        &mut self,
        at: Micros,
        method: &Method,
        number: u32,
        of_caller: bool,
        leg: &mut Vec<LegSignal>,
    ) {
        match method {
            Method::Bye if self.ended.is_none() => self.end(at, HangupCause::NormalClearing, leg),
            Method::Cancel if self.answered.is_none() && self.ended.is_none() => {
                self.end(at, HangupCause::OriginatorCancel, leg);
            }
            // Another attempt after a challenge or a redirection (RFC 3261 §22.2): the call continues.
            Method::Invite if of_caller && self.answered.is_none() && number > self.invite_number => {
                self.invite_number = number;
                self.status = None;
                self.cause = None;
                if self.ended.take().is_some() {
                    leg.push(LegSignal::Resumed);
                }
            }
            _ => {}
        }
    }

    /// Takes a response to an INVITE; returns whether it answers the call.
    fn invite_response(
        &mut self,
        at: Micros,
        status: u16,
        number: u32,
        of_caller: bool,
        leg: &mut Vec<LegSignal>,
    ) -> bool {
        if !of_caller || number != self.invite_number || self.answered.is_some() || status < 200 {
            return false;
        }
        self.status = Some(status);
        if status < 300 {
            self.answer(at, leg);
        } else if self.cause != Some(HangupCause::OriginatorCancel) {
            self.end(at, HangupCause::from_sip_status(status), leg);
        }
        status < 300
    }

    /// The ACK of a 200 that was not captured: the call was answered before it.
    fn acknowledged(&mut self, at: Micros, number: u32, ack: &Request, leg: &mut Vec<LegSignal>) {
        let called_tag = tag(ack.headers().to_tag());
        let attempt =
            self.attempt.as_ref().filter(|_| number == self.invite_number && !called_tag.is_empty());
        if attempt.is_some_and(|attempt| attempt.is_accepted_by(number, ack)) {
            self.called_tag = called_tag.into_owned();
            self.answer(at, leg);
        }
    }

    /// The call was answered. A 200 may cross a CANCEL; a BYE will follow then.
    fn answer(&mut self, at: Micros, leg: &mut Vec<LegSignal>) {
        self.answered = Some(at);
        self.attempt = None;
        if self.ended.take().is_some() {
            leg.push(LegSignal::Resumed);
        }
        self.cause = None;
        leg.push(LegSignal::Answered);
    }

    /// Ends the call. The leg of an answered call is judged now; an unanswered call may still resume.
    fn end(&mut self, at: Micros, cause: HangupCause, leg: &mut Vec<LegSignal>) {
        self.ended = Some(at);
        self.cause = Some(cause);
        leg.push(LegSignal::Ended);
        if self.answered.is_some() {
            leg.push(LegSignal::Closed);
        }
    }

    /// Takes the SDP of a message: an offer, or the answer to one (RFC 3264 §5, RFC 3261 §13.2.1).
    fn media(
        &mut self,
        sdp: Option<SessionDescription>,
        Exchange { by_caller, transaction, part }: Exchange,
        known: &mut Announced,
        leg: &mut Vec<LegSignal>,
    ) -> Vec<Announcement> {
        let Some(sdp) = sdp.map(kept) else { return Vec::new() };
        self.exchanges += 1;
        let mut announced = announcements(&sdp, by_caller, first_audio(&sdp), None);
        let answers = self.pending.as_ref().is_some_and(|offer| {
            offer.by_caller != by_caller
                && match part {
                    Part::Closing => !offer.answered,
                    Part::Request => false,
                    // 183 and 200 may both answer one offer; the later one applies.
                    Part::Response => offer.transaction == transaction,
                }
        });
        match &mut self.pending {
            Some(offer) if answers => {
                offer.answered = true;
                // The answer may refuse the first audio section, or list the audio at another index.
                let (judged, answer) = (audio_place(&offer.sdp, &sdp), &*sdp);
                for (sdp, by_caller) in [(&offer.sdp, offer.by_caller), (&sdp, by_caller)] {
                    let is_another = judged != first_audio(sdp) || shares_addresses(sdp);
                    if judged.is_some() && is_another {
                        announced.extend(announcements(sdp, by_caller, judged, Some(answer)));
                    }
                }
                let (role, far_role) = if offer.by_caller {
                    (Role::Answerer, Role::Offerer)
                } else {
                    (Role::Offerer, Role::Answerer)
                };
                let far = Negotiated::new(&offer.sdp, &sdp, far_role);
                match Negotiated::new(&offer.sdp, &sdp, role) {
                    Ok(negotiated) => self.settle(&negotiated, known, leg),
                    Err(_) if judged.is_none() => self.fall_silent(leg),
                    Err(_) => {}
                }
                if let Ok(negotiated) = far {
                    self.settle_far(&negotiated, known, leg);
                }
            }
            // Without an offer to answer, the SDP of an ACK means nothing.
            _ if part == Part::Closing => {}
            _ => self.pending = Some(Offer { by_caller, transaction, answered: false, sdp }),
        }
        announced
    }

    /// The parties removed the audio, for a fax or altogether: from now on no audio is expected.
    fn fall_silent(&mut self, leg: &mut Vec<LegSignal>) {
        if let Some((description, payloads)) = silenced(&mut self.settled) {
            leg.push(LegSignal::Described(description, payloads));
        }
        if let Some((description, payloads)) = silenced(&mut self.far_settled) {
            leg.push(LegSignal::FarDescribed(description, payloads));
        }
    }

    fn settle(&mut self, negotiated: &Negotiated, known: &mut Announced, leg: &mut Vec<LegSignal>) {
        self.codec = negotiated.codec().map(|codec| media_plan::canonical_name(&codec.name));
        self.ptime_ms = Some((negotiated.ptime_ms, negotiated.own_ptime_ms));
        let mut description = media_plan::description(negotiated, Some(self.hop.0.ip()));
        let payloads = known.settled(std::mem::take(&mut description.payloads));
        if is_unchanged(&self.settled, &description, &payloads) {
            return;
        }
        leg.push(LegSignal::Described(Box::new(description.clone()), Arc::clone(&payloads)));
        self.settled = Some((description, payloads));
    }

    /// The same for the called party's leg.
    fn settle_far(&mut self, negotiated: &Negotiated, known: &mut Announced, leg: &mut Vec<LegSignal>) {
        let mut description = media_plan::description(negotiated, Some(self.hop.1.ip()));
        let payloads = known.settled(std::mem::take(&mut description.payloads));
        if is_unchanged(&self.far_settled, &description, &payloads) {
            return;
        }
        leg.push(LegSignal::FarDescribed(Box::new(description.clone()), Arc::clone(&payloads)));
        self.far_settled = Some((description, payloads));
    }
}

fn is_unchanged(
    settled: &Option<(Description, Meanings)>,
    description: &Description,
    payloads: &Meanings,
) -> bool {
    settled.as_ref().is_some_and(|(before, meant)| before == description && is_same(meant, payloads))
}

/// The last agreed description without any audio; `None` when it already has none.
fn silenced(settled: &mut Option<(Description, Meanings)>) -> Option<(Box<Description>, Meanings)> {
    let (description, payloads) =
        settled.as_mut().filter(|(description, _)| description.receive || description.send)?;
    (description.receive, description.send) = (false, false);
    Some((Box::new(description.clone()), Arc::clone(payloads)))
}

/// A description without the fields that are not needed later: calls keep theirs as long as they last.
fn kept(mut sdp: SessionDescription) -> Arc<SessionDescription> {
    (sdp.origin.username, sdp.origin.session_id, sdp.name) = Default::default();
    for media in &mut sdp.media {
        media.codecs.shrink_to_fit();
    }
    Arc::new(sdp)
}

/// A tag of From or To; empty without one.
fn tag<E>(tag: Result<Cow<'_, str>, E>) -> Cow<'_, str> {
    tag.unwrap_or_default()
}

/// SDP bodies of one call that are read; each costs memory and time.
const EXCHANGES_MAX: u32 = 1_000;
/// Codecs of an offer that are reported.
const CODECS_MAX: usize = 12;
/// Encodings that are not the audio itself.
const NO_AUDIO: [&str; 2] = ["CN", "telephone-event"];
