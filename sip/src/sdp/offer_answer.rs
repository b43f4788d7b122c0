//! The offer/answer exchange of one dialog (RFC 3264 §4–§8, RFC 6337): which side must answer, and the
//! current result.
//!
//! It has no timers; the surrounding transactions have them.

use crate::sdp::description::{is_dtls, is_secure};
use crate::sdp::srtp::Srtp;
use crate::sdp::{
    Direction, IceRule, KeySeed, Media, Negotiated, NegotiationError, Role, SessionDescription, SrtpRule,
    Video, audio_place,
};

/// One dialog's exchange of descriptions.
///
/// ```
/// use sidetone_sip::sdp::{CodecPolicy, Direction, OfferAnswer, SessionDescription, answer, offer};
///
/// let (here, there) = ("192.0.2.1:4000".parse()?, "192.0.2.2:5000".parse()?);
/// let mut caller = OfferAnswer::new(1);
/// let mut callee = OfferAnswer::new(2);
/// let offered = caller.send_offer(offer(here, CodecPolicy::ANY.codecs(), Direction::SendRecv))?;
/// callee.receive_offer(SessionDescription::parse(&offered.to_bytes())?)?;
/// let answered = callee.send_answer(answer(&offered, there, &CodecPolicy::ANY, Direction::SendRecv)?)?;
/// let negotiated = caller.receive_answer(SessionDescription::parse(&answered.to_bytes())?)?;
/// assert_eq!(negotiated.remote, Some(there));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct OfferAnswer {
    session_id: u64,
    /// The description that we sent last.
    sent: Option<SessionDescription>,
    /// The description sent before a refused offer, until the next exchange is complete.
    kept: Option<Box<SessionDescription>>,
    state: State,
    /// The last complete exchange.
    settled: Option<Settled>,
    /// Boxed, because most legs have neither.
    srtp: Option<Box<Srtp>>,
}

#[derive(Clone, Debug)]
enum State {
    LocalOffer(Box<LocalOffer>),
    RemoteOffer(SessionDescription),
    Stable,
}

#[derive(Clone, Debug)]
struct LocalOffer {
    offer: SessionDescription,
    /// The description in force before it.
    before: Option<Box<SessionDescription>>,
}

#[derive(Clone, Debug)]
struct Settled {
    offer: SessionDescription,
    role: Role,
    negotiated: Negotiated,
}

/// Why an exchange cannot continue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OfferAnswerError {
    /// An answer was received or should be sent without an offer.
    #[error("take an answer without an offer")]
    NoOffer,
    /// An offer is already open: answer 491 to the peer's, delay our own (RFC 3261 §14.2).
    #[error("start an offer while another is open")]
    Pending,
    /// The answer does not have the offer's sections in order (RFC 3264 §6).
    #[error("match the sections of an answer with those of the offer")]
    Shape,
    /// The descriptions are valid but have no common media.
    #[error(transparent)]
    Negotiation(#[from] NegotiationError),
}

impl OfferAnswer {
    /// An exchange that has not started. `session_id` belongs to the dialog and is unique on this host (RFC
    /// 8866 §5.2).
    pub fn new(session_id: u64) -> Self {
        OfferAnswer { session_id, sent: None, kept: None, state: State::Stable, settled: None, srtp: None }
    }

    /// The same with SRTP by `rule`; our keys are derived from `seed`.
    ///
    /// Offers of the party must have passed [`SrtpRule::admit`].
    #[must_use]
    pub fn with_srtp(self, rule: SrtpRule, seed: KeySeed) -> Self {
        self.with_ice(rule, IceRule::Never, seed)
    }

    /// The same, with ICE by `ice` if the keys do not come from DTLS.
    #[must_use]
    pub fn with_ice(self, rule: SrtpRule, ice: IceRule, seed: KeySeed) -> Self {
        OfferAnswer { srtp: Srtp::new(rule, ice, seed).map(Box::new), ..self }
    }

    /// Makes our next offer contain a new SRTP key, in the agreed suite.
    pub fn renew_key(&mut self) {
        if let Some(srtp) = &mut self.srtp {
            srtp.renew();
        }
    }

    /// Opens an exchange with our offer and returns it ready to send: with our origin, and with its audio in
    /// the section that audio has in this dialog, because sections never move (RFC 3264 §8).
    ///
    /// # Errors
    /// [`OfferAnswerError::Pending`], or [`NegotiationError::NoSrtp`]: UDPTL has no encryption, so T.38 is not offered
    /// to a party that requires SRTP.
    pub fn send_offer(&mut self, offer: SessionDescription) -> Result<SessionDescription, OfferAnswerError> {
        if !matches!(self.state, State::Stable) {
            return Err(OfferAnswerError::Pending);
        }
        if let (Some(srtp), Some((_, fax))) = (&self.srtp, offer.carried_fax()) {
            srtp.without(&fax.protocol)?;
        }
        let mut offer = self.align(offer);
        self.forget_keys(&mut offer);
        if let Some(srtp) = &mut self.srtp {
            srtp.offer(&mut offer, self.settled.as_ref().map(|settled| &settled.negotiated));
        }
        let before = self.kept.take().or_else(|| self.sent.clone().map(Box::new));
        let offer = self.stamp(offer);
        self.state = State::LocalOffer(Box::new(LocalOffer { offer: offer.clone(), before }));
        Ok(offer)
    }

    /// Opens an exchange with the party's offer.
    ///
    /// # Errors
    /// [`OfferAnswerError::Pending`]: two offers cross, or theirs follows before ours is answered.
    pub fn receive_offer(&mut self, offer: SessionDescription) -> Result<(), OfferAnswerError> {
        if !matches!(self.state, State::Stable) {
            return Err(OfferAnswerError::Pending);
        }
        self.state = State::RemoteOffer(offer);
        Ok(())
    }

    /// Closes the exchange that the party opened and returns our answer ready to send.
    ///
    /// A second answer to the same offer replaces the first: a provisional response may have carried the
    /// answer of another branch of a fork.
    ///
    /// # Errors
    /// When there was no offer, the sections do not match, or there are no common media.
    pub fn send_answer(
        &mut self,
        mut answer: SessionDescription,
    ) -> Result<SessionDescription, OfferAnswerError> {
        let offer = self.open_offer(Role::Answerer)?;
        same_sections(&offer, &answer)?;
        self.forget_keys(&mut answer);
        if let (Some(srtp), Some(place)) = (&mut self.srtp, audio_place(&offer, &answer)) {
            let before = self.settled.as_ref().map(|settled| &settled.negotiated);
            srtp.answer(&offer, &mut answer, place, before)?;
        } else if audio_place(&offer, &answer)
            .and_then(|place| offer.media.get(place))
            .is_some_and(|offered| is_secure(&offered.protocol) || is_dtls(&offered.protocol))
        {
            // SRTP without our own key would be silence.
            return Err(NegotiationError::NoAudio.into());
        }
        let shown = answer.media.iter().position(Media::is_video);
        if let (Some(srtp), Some(place)) = (&mut self.srtp, shown) {
            srtp.answer_video(&offer, &mut answer, place, self.settled.as_ref().map(|s| &s.negotiated));
        }
        let mut negotiated = Negotiated::with_fax(&offer, &answer, Role::Answerer)?;
        negotiated.video = Video::new(&offer, &answer, Role::Answerer, &negotiated);
        if negotiated.video.is_none() {
            answer.refuse_video();
        }
        let answer = self.stamp(answer);
        self.settle(offer, Role::Answerer, negotiated);
        Ok(answer)
    }

    /// Closes the exchange that we opened. As with [`OfferAnswer::send_answer`], a later answer replaces an
    /// earlier one: for example the 200 after a 183.
    ///
    /// # Errors
    /// When we made no offer, the sections do not match, or there are no common media. The exchange stays
    /// open.
    pub fn receive_answer(&mut self, answer: SessionDescription) -> Result<&Negotiated, OfferAnswerError> {
        let offer = self.open_offer(Role::Offerer)?;
        same_sections(&offer, &answer)?;
        let mut negotiated = Negotiated::with_fax(&offer, &answer, Role::Offerer)?;
        negotiated.video = Video::new(&offer, &answer, Role::Offerer, &negotiated);
        if let Some(srtp) = self.srtp.as_ref().filter(|srtp| srtp.lacks_keys(&negotiated)) {
            let place = audio_place(&offer, &answer).and_then(|place| offer.media.get(place));
            place.map_or(Ok(()), |offered| srtp.without(&offered.protocol))?;
        }
        self.settle(offer, Role::Offerer, negotiated);
        self.negotiated().ok_or(OfferAnswerError::NoOffer)
    }

    /// Drops an open offer of either side: its request failed, and the earlier result stays valid (RFC 6337
    /// §2.3).
    pub fn roll_back(&mut self) {
        if let State::LocalOffer(refused) = std::mem::replace(&mut self.state, State::Stable) {
            self.kept = refused.before;
        }
    }

    /// The current result; `None` before the first complete exchange.
    pub fn negotiated(&self) -> Option<&Negotiated> {
        self.settled.as_ref().map(|settled| &settled.negotiated)
    }

    /// The direction that the party itself requested last, from its view. An answer to a restricted offer of ours does
    /// not show a request, and counts as `sendrecv`.
    pub fn wanted_by_party(&self) -> Direction {
        let direction = |offer: &SessionDescription| Some(offer.direction_of(offer.carried()?.1));
        let wanted =
            self.settled.as_ref().and_then(|settled| match (settled.role, direction(&settled.offer)) {
                (Role::Answerer, offered) => offered,
                (Role::Offerer, Some(Direction::SendRecv)) => Some(settled.negotiated.direction.reversed()),
                (Role::Offerer, _) => None,
            });
        wanted.unwrap_or(Direction::SendRecv)
    }

    /// The party's offer that waits for our answer.
    pub fn remote_offer(&self) -> Option<&SessionDescription> {
        match &self.state {
            State::RemoteOffer(offer) => Some(offer),
            State::LocalOffer(_) | State::Stable => None,
        }
    }

    /// Our offer that waits for an answer.
    pub fn local_offer(&self) -> Option<&SessionDescription> {
        match &self.state {
            State::LocalOffer(local) => Some(&local.offer),
            State::RemoteOffer(_) | State::Stable => None,
        }
    }

    /// Our last sent description, refused or not.
    pub fn local(&self) -> Option<&SessionDescription> {
        self.sent.as_ref()
    }

    /// Our description in force: the last one that was not in a refused offer. A refresh repeats it.
    pub fn in_force(&self) -> Option<&SessionDescription> {
        self.kept.as_deref().or(self.sent.as_ref())
    }

    /// The offer for an answer with this `role`: the open one, or that of the last exchange.
    fn open_offer(&self, role: Role) -> Result<SessionDescription, OfferAnswerError> {
        match (&self.state, role, &self.settled) {
            (State::LocalOffer(local), Role::Offerer, _) => Ok(local.offer.clone()),
            (State::RemoteOffer(offer), Role::Answerer, _) => Ok(offer.clone()),
            (State::Stable, _, Some(settled)) if settled.role == role => Ok(settled.offer.clone()),
            _ => Err(OfferAnswerError::NoOffer),
        }
    }

    /// Removes the keys of an earlier exchange from our description, and the lines for browsers unless the party is
    /// one.
    fn forget_keys(&self, description: &mut SessionDescription) {
        let is_browser = self.srtp.as_ref().is_some_and(|srtp| srtp.is_webrtc());
        for media in &mut description.media {
            media.crypto.clear();
            media.webrtc.take_if(|_| !is_browser);
        }
    }

    fn settle(&mut self, offer: SessionDescription, role: Role, negotiated: Negotiated) {
        self.settled = Some(Settled { offer, role, negotiated });
        self.kept = None;
        self.state = State::Stable;
    }

    /// Adds our session id and version to a description: the version increases by one unless nothing changed
    /// (RFC 3264 §8).
    fn stamp(&mut self, mut description: SessionDescription) -> SessionDescription {
        description.origin.session_id = self.session_id.to_string().into();
        description.origin.version = match &self.sent {
            None => FIRST_VERSION,
            Some(sent) => {
                description.origin.version = sent.origin.version;
                sent.origin.version.wrapping_add(u64::from(*sent != description))
            }
        };
        self.sent = Some(description.clone());
        description
    }

    /// Moves the audio of our offer into the section that audio has in this dialog. T.38 goes into its earlier section,
    /// or otherwise into that of the audio, whose media type changes (RFC 3264 §8.3.3). Video goes into a section of
    /// video, or becomes the last one (§8.1). The other sections stay refused.
    fn align(&self, mut offer: SessionDescription) -> SessionDescription {
        let Some(sent) = &self.sent else {
            return offer;
        };
        let video = offer.media.iter().position(Media::is_video).map(|at| offer.media.remove(at));
        let from = offer.carried().map_or(0, |(at, _)| at);
        let Some(kind) = offer.media.get(from).map(|media| media.kind.clone()) else { return offer };
        let carried = sent.carried().map(|(at, media)| (at, media.kind == kind));
        let place = carried
            .and_then(|(at, is_same)| is_same.then_some(at))
            .or_else(|| sent.media.iter().position(|media| media.kind == kind))
            .or(carried.map(|(at, _)| at));
        let mut sections: Vec<Media> = sent.media.iter().map(Media::refused).collect();
        let Some(section) = place.and_then(|place| sections.get_mut(place)) else { return offer };
        let wanted = offer.media.swap_remove(from);
        let protocol = if section.kind == kind { &section.protocol } else { &wanted.protocol }.clone();
        *section = Media { protocol, ..wanted };
        if let Some(video) = video {
            place_video(&mut sections, video, sent);
        }
        SessionDescription { media: sections, ..offer }
    }
}

/// Puts our video into the video section of `sent`, whose transport it keeps, else into a refused section, else at the
/// end.
fn place_video(sections: &mut Vec<Media>, video: Media, sent: &SessionDescription) {
    let present = sent.media.iter().position(Media::is_video);
    let place = present.or_else(|| sent.media.iter().position(|media| media.kind == video.kind));
    match place.and_then(|place| sections.get_mut(place)) {
        Some(section) if present.is_some() => {
            let protocol = section.protocol.clone();
            *section = Media { protocol, ..video };
        }
        Some(section) => *section = video,
        None => sections.push(video),
    }
}

/// Checks that an answer has the offer's sections, in number, order and kind (RFC 3264 §6).
fn same_sections(offer: &SessionDescription, answer: &SessionDescription) -> Result<(), OfferAnswerError> {
    let same = offer.media.len() == answer.media.len()
        && offer.media.iter().zip(&answer.media).all(|(offered, answered)| offered.kind == answered.kind);
    if same { Ok(()) } else { Err(OfferAnswerError::Shape) }
}

/// The version of the first description that we send in a dialog.
const FIRST_VERSION: u64 = 1;
