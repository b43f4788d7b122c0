//! Inputs and outputs of a call, with its ports and parties.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use sidetone_call::record::Facts;
use sidetone_media::dtmf::{KeyPress, KeySource, KeyTone};
use sidetone_media::mix::{Formats, Gain, MixId};
use sidetone_media::session::{Description, Report};
use sidetone_media::transcode::TranscodePlan;
use sidetone_media::webrtc::Protection;
use sidetone_model::call::HangupCause;
use sidetone_model::call_operation::RecordStep;
use sidetone_model::call_parking::ParkedIn;
use sidetone_model::call_prompt::{LivePrompt, PlayResult};
use sidetone_model::cdr::Cdr;
use sidetone_model::forwarding::ForwardReason;
use sidetone_model::ids::{CallId, LegId, OrganisationId, TrunkId};
use sidetone_model::language::Language;
use sidetone_model::prompt::{Prompt, SoundName};
use sidetone_model::rating::Price;
use sidetone_model::trunk_address::TrunkAddress;
use sidetone_sip::flow::{Flow, Protocol};
use sidetone_sip::sdp::{CodecPolicy, Direction, KeySeed, Negotiated, SessionDescription, SrtpRule};

use crate::mixing::{MixOrder, SeatHears};
pub use crate::port_id::PortId;

/// A media port and the address that SDP gives for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Port {
    /// The port.
    pub id: PortId,
    /// The address to which the party sends RTP.
    pub advertised: SocketAddr,
    /// The port for its video, if one was requested and free.
    pub video: Option<VideoPort>,
}

/// The port for the video of a leg.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VideoPort {
    /// The port.
    pub id: PortId,
    /// The address to which the party sends RTP.
    pub advertised: SocketAddr,
}

impl Port {
    /// The port, and that of its video.
    pub fn ids(&self) -> impl Iterator<Item = PortId> {
        std::iter::once(self.id).chain(self.video.map(|video| video.id))
    }
}

/// A leg of a call, as its trace is named: `a`, `b`, and `b2` for the second called leg.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LegName {
    /// The call.
    pub call: CallId,
    /// The position among the called legs, in ringing order; `None` is the caller's leg.
    pub fork: Option<usize>,
}

impl fmt::Display for LegName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.fork {
            None => f.write_str("a"),
            Some(0) => f.write_str("b"),
            Some(place) => write!(f, "b{}", place.saturating_add(1)),
        }
    }
}

/// Finds the flow to an address of a trunk's server.
#[derive(Clone)]
pub struct Reach(Arc<FlowTo>);

type FlowTo = dyn Fn(&TrunkAddress, SocketAddr) -> Result<Flow, Unreachable> + Send + Sync;

/// Why an address is not called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unreachable {
    /// No listener of ours reaches it.
    NoRoute,
    /// It is one of our own listeners.
    Ourselves,
}

impl Reach {
    /// Uses `flow_to` for every address.
    pub fn new(
        flow_to: impl Fn(&TrunkAddress, SocketAddr) -> Result<Flow, Unreachable> + Send + Sync + 'static,
    ) -> Self {
        Reach(Arc::new(flow_to))
    }

    /// Returns the flow to an address of a server.
    ///
    /// # Errors
    /// When the address must not or cannot be called.
    pub fn flow_to(&self, server: &TrunkAddress, address: SocketAddr) -> Result<Flow, Unreachable> {
        (self.0)(server, address)
    }
}

/// Commands to a media port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MediaCommand {
    /// The leg was answered.
    Answered,
    /// Relay received packets to `peer`, with payload types renumbered by the map.
    Bridge {
        /// The other leg's port.
        peer: PortId,
        /// Payload type received to payload type sent; `None` is identity.
        payload_map: Option<Box<[u8; 128]>>,
    },
    /// The leg is over: report and free the port.
    Close,
    /// SDP negotiation completed.
    Describe(Box<Description>),
    /// SDP negotiation changed the formats of a leg that has a seat.
    Format(Box<Formats>),
    /// Change how loud the party of the seat is for the others.
    Gain(Gain),
    /// Change what the seat hears.
    Hear(SeatHears),
    /// Give the leg a seat in a mix; this ends its bridge, or its seat in another mix.
    Join {
        /// The mix; it is created with its first seat.
        mix: MixId,
        /// The organisation whose prompts and music the party hears.
        organisation: OrganisationId,
        /// The language of the built-in prompts.
        language: Language,
        /// The negotiated formats.
        formats: Box<Formats>,
        /// Whether the party is muted.
        muted: bool,
        /// The audio that it hears.
        hears: SeatHears,
    },
    /// Put the party of the seat on the left channel of a recording with two, or on the right.
    Left(bool),
    /// Remove the leg's seat; after [`MediaCommand::Listen`] its bridge goes on.
    Leave,
    /// Give the leg a seat at which the mix only listens: its bridge goes on, and the party hears nothing of the mix
    /// but prompts that are played to it alone.
    Listen {
        /// The mix; it is created with its first seat.
        mix: MixId,
        /// The organisation whose prompts the party hears.
        organisation: OrganisationId,
        /// The negotiated formats.
        formats: Box<Formats>,
        /// Whether the party is muted.
        muted: bool,
    },
    /// Mute or unmute the party of the seat.
    Mute(bool),
    /// Play this to the party of the seat alone, after what is being played to it;
    /// [`Input::Played`](crate::machine::Input::Played) reports the end.
    Play {
        /// The prompts, in order.
        prompts: Vec<Prompt>,
        /// Identifies the end in `Played`.
        token: u64,
        /// The silence before the first prompt.
        lead: Duration,
        /// The language of the built-in prompts from now on; `None` keeps that of the seat.
        language: Option<Language>,
    },
    /// Play a sound to the party of the seat alone, in place of an earlier one and beside the prompts.
    PlaySound {
        /// The sound.
        sound: SoundName,
        /// The language of a built-in sound; its length depends on it.
        language: Language,
    },
    /// Play the party this key as tones in its audio.
    PlayKey(KeyTone),
    /// Send the party this key as a telephone event.
    Press(KeyPress),
    /// The negotiated protection of packets, or none; sent before the `Describe` of the same SDP.
    Secure(Option<Box<Protection>>),
    /// Report the quality of the leg by [`Input::Snapshot`](crate::machine::Input::Snapshot).
    Snapshot,
    /// Stop the prompts that play to the party only; their end is not reported.
    StopPlaying,
    /// End the sound that plays to the party only.
    StopSound,
    /// Play a tone into the audio sent to the party.
    Tone,
    /// Transcode packets that the bridge does not map; `None` only relays.
    Transcode(Option<Box<TranscodePlan>>),
    /// Do not relay received packets; the leg continues to receive, and may have a seat that only listens.
    Unbridge,
    /// Report keys from this source by [`Input::Key`](crate::machine::Input::Key), because the peer takes keys in
    /// another form; `None` stops the reports.
    WatchKeys(Option<KeySource>),
    /// Make the party audible only to the party of this seat in the same mix; `None` makes it audible to all.
    Whisper(Option<PortId>),
}

impl MediaCommand {
    /// Whether it sets keys that are also readable in the SDP.
    pub(super) fn has_readable_keys(&self) -> bool {
        let MediaCommand::Secure(Some(protection)) = self else { return false };
        matches!(**protection, Protection::Sdes(_) | Protection::Ice(_, Some(_)))
    }
}

/// A party of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Party {
    /// A called party: the index of the callee's binding, or of the attempt at a trunk.
    Callee(usize),
    /// The calling party.
    Caller,
}

/// Parameters of a new call.
#[derive(Clone, Debug)]
pub struct Setup {
    /// The facts for the record.
    pub facts: Facts,
    /// The time limits.
    pub limits: Limits,
    /// The calling and the called side.
    pub sides: Sides,
    /// SDP session id of the caller's leg; the forks use the numbers after it.
    pub session_id: u64,
    /// The media group of its ports: one worker serves all legs of a group.
    pub group: u64,
    /// The source of the keys of its legs with SRTP.
    pub keys: KeySeed,
}

/// The two sides of a call. A room is not a party: it has neither dialog nor port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sides {
    /// One party calls another.
    Bridge {
        /// The calling party.
        caller: CallerSide,
        /// The called party.
        callee: CalleeSide,
    },
    /// A transfer calls a party for a party of another call.
    ForPeer {
        /// The party of the other call.
        awaited: Box<Awaited>,
        /// The called party.
        callee: CalleeSide,
    },
    /// A room calls a party.
    FromRoom {
        /// The called party.
        callee: CalleeSide,
    },
    /// A party calls a room, or a number that asks for the room.
    IntoRoom {
        /// The calling party.
        caller: CallerSide,
    },
    /// A program requested the call: the calling party is rung first, and [`Input::Onward`] names the target when it
    /// has answered.
    Requested {
        /// The calling party.
        caller: CalleeSide,
    },
    /// A party calls to replace a party of another call.
    TakeOver {
        /// The calling party.
        caller: CallerSide,
        /// The party of the other call.
        awaited: Box<Awaited>,
    },
}

/// A party of another call, for which this call rings a target or answers a caller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Awaited {
    /// The terms that it negotiated, or offers.
    pub settled: SessionDescription,
    /// The codecs that it may use.
    pub policy: CodecPolicy,
    /// Its call.
    pub from: CallId,
}

/// The properties of a party of another call that a party relayed to it needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Peer {
    /// Its port.
    pub port: PortId,
    /// Its negotiated terms.
    pub negotiated: Negotiated,
    /// The negotiated terms as a description from which an offer or an answer for the other party is created.
    pub settled: SessionDescription,
    /// The codecs that it may use.
    pub policy: CodecPolicy,
    /// The direction that it wants, from its view.
    pub wanted: Direction,
}

/// How a party is linked with a party of another call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Linking {
    /// The other party.
    pub peer: Peer,
    /// The call that the transfer began in, for the record of the call that takes over.
    pub from: Option<CallId>,
    /// The call that takes over, for the record of the call that the transfer began in.
    pub to: Option<CallId>,
    /// Whether the other party of the call also gets a link, and waits for it.
    pub of_both: bool,
}

/// The hold of two parties of linked calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkHold {
    /// The leg that holds.
    pub by: LegId,
    /// Whether that leg is the linked party of this call; else the linked party hears music.
    pub is_own: bool,
}

/// A prompt for the parties of linked calls, from the view of one of the calls: the party of the other call replaces
/// the one that left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkedPrompt {
    /// The prompt; its side refers to this call.
    pub prompt: LivePrompt,
    /// The language of the linked party of this call.
    pub language: Language,
    /// Whether this call reports its end.
    pub reports: bool,
}

/// A step in the mix of two linked calls; both calls get it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkedStep {
    /// End the prompt that plays.
    EndPrompt(PlayResult),
    /// Put the linked party, or the party of the other call, on hold; `None` resumes.
    Hold(Option<LinkHold>),
    /// Play this prompt; it replaces one that plays.
    Play(LinkedPrompt),
    /// A step of the recording; whether this call orders it.
    Record(RecordStep, bool),
}

/// The calling party.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallerSide {
    /// The offer of its INVITE; if there was none, our offer is in the 200 (RFC 3261 §13.2.1).
    pub offer: Option<SessionDescription>,
    /// The codecs that it may use.
    pub policy: CodecPolicy,
    /// The form of its keys without telephone events.
    pub key_form: KeyForm,
    /// The User-Agent of its INVITE, as a record contains it.
    pub user_agent: Option<String>,
    /// Its SRTP rule.
    pub srtp: SrtpRule,
    /// The address that its SIP comes from.
    pub at: IpAddr,
}

/// The called party.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CalleeSide {
    /// The codecs that it may use.
    pub policy: CodecPolicy,
    /// Its SRTP rule; an [`Attempt`] has its own rule.
    pub srtp: SrtpRule,
    /// How it is rung.
    pub callees: Callees,
    /// Which results of its phones forward the call.
    pub forwards: Forwards,
}

/// The form of keys for a party without telephone events, according to its Allow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum KeyForm {
    /// By INFO.
    Info,
    /// As tones in its audio, because it does not accept INFO.
    Tones,
    /// It has sent no Allow.
    #[default]
    Unknown,
}

/// Which results of an extension's phones forward a call; redirections by the phones always do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Forwards {
    /// Whether a busy phone forwards the call.
    pub busy: bool,
    /// How long the phones ring without an answer until the call is forwarded; `None` does not forward it.
    pub no_answer: Option<Duration>,
    /// Whether the call is forwarded when no phone can be reached.
    pub unregistered: bool,
}

/// The target of a requested call whose calling party has answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Onward {
    /// A party.
    Callee(CalleeSide),
    /// None: the call ends with this status and cause.
    Refused(u16, HangupCause),
    /// A room, or a number that asks for the room.
    Room,
}

/// The targets that a call rings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Callees {
    /// All at the same time; at least one.
    AtOnce(Vec<CalleeAt>),
    /// One after the other, each by an [`Input::Attempt`], until one answers.
    InTurn,
}

/// A phone that is rung with others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CalleeAt {
    /// The address of its SIP.
    pub at: IpAddr,
    /// Whether it is a browser: its SIP comes over a WebSocket (RFC 7118).
    pub is_browser: bool,
    /// Whether it has ICE and is offered some (RFC 5768).
    pub has_ice: bool,
}

impl CalleeAt {
    /// The phone at the end of a flow.
    pub fn of(flow: &Flow) -> CalleeAt {
        let is_browser = matches!(flow.protocol, Protocol::Ws | Protocol::Wss);
        CalleeAt { at: flow.remote.ip(), is_browser, has_ice: false }
    }
}

/// New targets of a call that was redirected.
#[derive(Clone, Debug, PartialEq)]
pub struct Diverted {
    /// The facts of the call from now on.
    pub facts: Facts,
    /// The new targets.
    pub callee: CalleeSide,
}

/// One attempt to reach a callee whose targets ring in turn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attempt {
    /// The trunk, for the record.
    pub trunk: TrunkId,
    /// The address of its SIP.
    pub at: IpAddr,
    /// The carrier's price, when the call is rated and the carrier has a rate.
    pub cost: Option<Price>,
    /// The longest duration of an answered call over the trunk, when the trunk has its own limit.
    pub limit: Option<Duration>,
    /// The SRTP rule of the trunk.
    pub srtp: SrtpRule,
    /// The codecs that the trunk may use.
    pub policy: CodecPolicy,
}

/// Time limits of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// From the first fork to an answer.
    pub ring: Duration,
    /// From the INVITE to an answer, as its caller requests (RFC 3261 §13.3.1); `None` if it does not.
    pub expires: Option<Duration>,
    /// From the end of the caller's leg to its media report.
    pub report: Duration,
    /// From the answer to the end of the call.
    pub call: Duration,
    /// How long both parties of a call may send neither RTP nor RTCP; `None` means no limit. A party in a room
    /// is probed after this time, at the latest after 15 s.
    pub silence: Option<Duration>,
    /// The same while a party has put the call on hold.
    pub silence_on_hold: Option<Duration>,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            ring: Duration::from_secs(60),
            expires: None,
            report: Duration::from_secs(2),
            call: Duration::from_secs(4 * 60 * 60),
            silence: Some(Duration::from_secs(60)),
            silence_on_hold: Some(Duration::from_secs(30 * 60)),
        }
    }
}

/// An event of a call.
#[derive(Debug)]
pub enum Input {
    /// A 2xx that we sent to `party` was acknowledged; the ACK may carry the answer to our offer.
    Acknowledged(Party, Option<SessionDescription>),
    /// A fork sent a 2xx.
    Answered(usize, Option<SessionDescription>),
    /// Attempt this target: the first, or the one after [`Output::NextAttempt`].
    Attempt(Attempt),
    /// The caller cancelled, with this cause.
    Cancelled(HangupCause),
    /// Hang up one party, which is in a room.
    Dismiss(Party, HangupCause),
    /// Ring these targets instead: the called extension has forwarded the call.
    Divert(Box<Diverted>),
    /// A party did not answer a request inside its dialog, or calls again: probe it if it is in a room and silent.
    Doubted(Party),
    /// End the call, whatever its state.
    End(HangupCause),
    /// Answer the caller for a room: the called extension has forwarded the call there, and these are its facts.
    EnterRoom(Box<Facts>),
    /// No target is left; the status and cause for the caller if none could be attempted at all.
    Exhausted(u16, HangupCause),
    /// A fork ended with a final response of this status and cause.
    Failed(usize, u16, HangupCause),
    /// Put the party that this one talks to on hold, with music; `None` resumes.
    Hold(Option<Party>),
    /// A party hung up, or its dialog broke.
    HungUp(Party, HangupCause),
    /// The journal entry that delays the answer is written.
    Journalled,
    /// Relay a party of the call to a party of another call; the other party of this call stays until it is dismissed.
    Link(Party, Box<Linking>),
    /// A step in this mix, which the linked calls share.
    Linked(MixId, LinkedStep),
    /// Put the parties into a room instead of relaying between them; this party is hung up.
    Merge(Option<Party>),
    /// Put the party that is linked with another call into a room.
    SeatLinked(Party),
    /// The call is not forwarded.
    NotDiverted,
    /// A party sent an offer inside its dialog; without a description it requests our offer.
    Offer(Party, Option<SessionDescription>),
    /// Our offer that collided with one of the party may be repeated.
    OfferDue(Party),
    /// Our offer inside a party's dialog was answered, or refused with a status.
    Offered(Party, Result<Option<SessionDescription>, u16>),
    /// The target, after [`Output::CallerAnswered`].
    Onward(Onward),
    /// Let this party wait with music in a slot until this time; the other party is dismissed, or was in another call.
    Park(Party, ParkedIn, Instant),
    /// The linked party of another call now has these terms; `None` when it has left and another is awaited.
    PeerChanged(Party, Option<Box<Peer>>),
    /// The linked party of another call has left for this cause: hang this one up too.
    PeerLeft(Party, HangupCause),
    /// A party of another call answers instead of the ringing targets, with these negotiated terms.
    PickUp(Box<Awaited>),
    /// The party cancelled its offer inside its dialog, and has the response to it.
    OfferWithdrawn(Party),
    /// Play this prompt in the languages of the caller and the callee, and replace one that plays; `None` stops it.
    Play(Option<LivePrompt>, [Language; 2]),
    /// A prompt ended at a port; carries its token.
    Played(PortId, u64),
    /// The media port after [`Output::OpenPort`]; `None` when no port is free.
    PortOpened(Option<Port>),
    /// The result of [`Output::Probe`]: whether the party is still in the dialog.
    Probed(Party, bool),
    /// A fork sent a provisional response above 100.
    Provisional(usize, u16, Option<SessionDescription>),
    /// A transfer by this party is in progress, or has failed. During it, the other party waits if this one leaves.
    Referring(Option<Party>),
    /// A step of the recording of the call.
    Record(RecordStep),
    /// The dialog of a party must be refreshed by repeating the present SDP as an offer.
    Refresh(Party),
    /// A port was closed; its report.
    Report(PortId, Box<Report>),
    /// How long the party of a port has sent nothing; `None` when packets arrive again.
    Silent(PortId, Option<Duration>),
    /// The time of [`Call::next_timeout`](crate::call::Call::next_timeout) has come.
    Timeout,
    /// The call's credit is nearly used up: play the warning to the caller.
    Warn,
    /// The result of [`Output::AskHeard`]: the fork has sent no response at all.
    Unheard(usize),
    /// A fork ended without a final response: the status is 408 when there was no response, 503 when it was
    /// unreachable.
    Unreached(usize, u16),
}

/// Actions that the switch carries out.
#[derive(Clone, Debug, PartialEq)]
pub enum Output {
    /// Both sides answered: answer the caller's INVITE with 200 and this description; `None` if a room placed
    /// the call.
    Answer(Option<SessionDescription>),
    /// Feed [`Input::Unheard`] if this fork has sent no response at all, not even 100.
    AskHeard(usize),
    /// Hang up a confirmed dialog, and give the party this cause.
    Bye(Party, HangupCause),
    /// Cancel a fork that has no final response, and give it this cause.
    Cancel(usize, HangupCause),
    /// Cancel our offer inside a party's dialog, if it has no final response; then feed [`Input::Offered`] as usual.
    CancelOffer(Party),
    /// The calling party of a requested call answered at this fork: the other forks are cancelled. Make its leg the
    /// caller's, forget the other legs, and feed [`Input::Onward`].
    CallerAnswered(usize),
    /// The record is complete; the call is over.
    Ended(Box<Cdr>),
    /// The call waits for its first [`Input::Attempt`].
    FirstAttempt,
    /// A seated party put us on hold, or resumed.
    Held(Party, bool),
    /// Invite a fork with this offer.
    Invite(usize, SessionDescription),
    /// Write to the journal that the call is answered, then feed [`Input::Journalled`].
    Journal(Box<Cdr>),
    /// A seated party has left, for this cause.
    Left(Party, HangupCause),
    /// Send a command to a media port.
    Media(PortId, MediaCommand),
    /// Send an order to the mix of the call's own.
    Mix(MixId, MixOrder),
    /// The attempt failed with this status, but another trunk may succeed: feed [`Input::Attempt`] or
    /// [`Input::Exhausted`].
    NextAttempt(u16),
    /// Send an offer inside a party's dialog.
    Offer(Party, SessionDescription),
    /// Answer the party's own offer: a 200 with the description, or a failure status.
    OfferResult(Party, Result<SessionDescription, u16>),
    /// Open a media port for a party whose SIP comes from `towards`, then feed [`Input::PortOpened`]. The call
    /// requests the next port only after that.
    OpenPort {
        /// The position among the called legs; `None` is the caller's leg.
        fork: Option<usize>,
        /// The address that its SIP comes from.
        towards: IpAddr,
        /// Whether it needs a port for video too.
        video: bool,
    },
    /// The parked party was not picked up in time: return it to the extension that parked it.
    ParkExpired,
    /// Probe inside the dialog whether the party is still there, then feed [`Input::Probed`].
    Probe(Party),
    /// A prompt that a program played is over.
    PromptEnded(LivePrompt, PlayResult),
    /// The party that was called for a party of another call has answered: link them.
    Reached(Party),
    /// The called extension forwards the call for this reason: feed [`Input::Divert`], [`Input::EnterRoom`] or
    /// [`Input::NotDiverted`].
    Redirected(ForwardReason),
    /// The call could not begin, and leaves no outputs after this one: refuse the caller's INVITE with this
    /// status, or report it to the room. It is 488 when there is no common codec, and 503 when there is no free
    /// port.
    Refused(u16),
    /// The call was not answered: refuse the caller's INVITE, or report it to the room that placed the call. The
    /// caller is given the cause, if any.
    Reject(u16, Option<HangupCause>),
    /// Send a provisional response to the caller.
    Ring(u16, Option<SessionDescription>),
    /// The party is answered and goes into a room.
    Seat(Party),
    /// The linked party has these terms now: notify the other call.
    Terms(Party, Box<Peer>),
    /// The linked party has left for this cause: notify the other call.
    Unlinked(Party, HangupCause),
}
