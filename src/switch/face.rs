//! What a call is told and what it says: its ports, parties, inputs and outputs.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use sidetone_call::record::Facts;
use sidetone_media::mix::{Formats, MixId};
use sidetone_media::session::{Description, Report};
use sidetone_media::transcode::TranscodePlan;
use sidetone_model::call::HangupCause;
use sidetone_model::cdr::Cdr;
use sidetone_model::ids::{CallId, OrganisationId, TrunkId};
use sidetone_model::prompt::Prompt;
use sidetone_model::rating::Price;
use sidetone_sip::flow::Flow;
use sidetone_sip::sdp::{CodecPolicy, SessionDescription};

use crate::switch::mixing::SeatHears;

/// A media port of the relay.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PortId(pub u64);

/// A media port and the address that a description names for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Port {
    /// The port.
    pub id: PortId,
    /// Where the party shall send RTP.
    pub advertised: SocketAddr,
}

/// Hands out media ports; the one thing that a call needs an answer to at once.
pub trait Ports {
    /// A port for a party whose SIP comes from `towards`; `group` is one per call. `None` when none is left.
    fn open(&mut self, leg: LegName, group: u64, towards: IpAddr) -> Option<Port>;
}

/// Which leg of which call, as its trace is called: `a`, `b`, and `b2` for the second that rings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LegName {
    /// The call.
    pub call: CallId,
    /// Which of the far legs it is, in the order in which they ring; `None` is the caller's.
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

/// Tells by which flow an address is reached.
#[derive(Clone)]
pub struct Reach(Arc<dyn Fn(SocketAddr) -> Result<Flow, Unreachable> + Send + Sync>);

/// Why an address is not called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unreachable {
    /// No listener of ours gets there.
    NoRoute,
    /// It is one of our own listeners.
    Ourselves,
}

impl Reach {
    /// Asks `flow_to` for every address.
    pub fn new(flow_to: impl Fn(SocketAddr) -> Result<Flow, Unreachable> + Send + Sync + 'static) -> Self {
        Reach(Arc::new(flow_to))
    }

    /// The flow to an address.
    ///
    /// # Errors
    /// When it must not or cannot be called.
    pub fn flow_to(&self, address: SocketAddr) -> Result<Flow, Unreachable> {
        (self.0)(address)
    }
}

/// What a media port is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MediaCommand {
    /// The leg was answered.
    Answered,
    /// What arrives goes to `peer`, its payload types renumbered by the map.
    Bridge {
        /// The other leg's port.
        peer: PortId,
        /// Payload type received to payload type sent; `None` is identity.
        payload_map: Option<Box<[u8; 128]>>,
    },
    /// The leg is over: report and free the port.
    Close,
    /// SDP settled something.
    Describe(Box<Description>),
    /// SDP settled something else for a leg that has a seat.
    Format(Box<Formats>),
    /// The seat hears something else.
    Hear(SeatHears),
    /// Give the leg a seat in a mix; what bridged it, and a seat in another mix, end.
    Join {
        /// Which mix; one that nobody sits in begins with its first seat.
        mix: MixId,
        /// Whose prompts and music the party hears.
        organisation: OrganisationId,
        /// What SDP settled.
        formats: Box<Formats>,
        /// Whether nobody hears the party.
        muted: bool,
        /// What it hears.
        hears: SeatHears,
    },
    /// Take the leg's seat away.
    Leave,
    /// Let nobody hear the party of the seat, or everybody again.
    Mute(bool),
    /// Play this to the party of the seat alone, after what is being played to it;
    /// [`Input::Played`](crate::switch::machine::Input::Played) tells of the end.
    Play {
        /// One after the other.
        prompts: Vec<Prompt>,
        /// What the end is told by.
        token: u64,
    },
    /// Say how the leg does, by [`Input::Snapshot`](crate::switch::machine::Input::Snapshot).
    Snapshot,
    /// Cease to play to the party alone; no end is told of what was under way.
    StopPlaying,
    /// Let the party hear a tone in what is sent to it.
    Tone,
    /// Make of what the bridge does not map something that the peer's party knows; `None` relays alone.
    Transcode(Option<Box<TranscodePlan>>),
}

/// A party of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Party {
    /// A binding of the callee by its place in the fork, or an attempt at a trunk by its number.
    Callee(usize),
    /// Who called.
    Caller,
}

/// What a call begins with.
#[derive(Clone, Debug)]
pub struct Setup {
    /// What is known of it for the record.
    pub facts: Facts,
    /// How long things may take.
    pub limits: Limits,
    /// Who calls whom.
    pub sides: Sides,
    /// SDP session id of the caller's leg, those of the forks follow it.
    pub session_id: u64,
    /// The media group of its ports: the legs of one group are served by one worker.
    pub group: u64,
}

/// The two sides of a call. A room is no party: it has neither dialog nor port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sides {
    /// A party calls another.
    Bridge {
        /// Who calls.
        caller: CallerSide,
        /// Who is called.
        callee: CalleeSide,
    },
    /// A room calls a party.
    FromRoom {
        /// Who is called.
        callee: CalleeSide,
    },
    /// A party calls a room, or whoever leads it to one.
    IntoRoom {
        /// Who calls.
        caller: CallerSide,
    },
}

/// A party that calls.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallerSide {
    /// The offer of its INVITE; without one ours goes out with the 200 (RFC 3261 §13.2.1).
    pub offer: Option<SessionDescription>,
    /// The codecs that it may use.
    pub policy: CodecPolicy,
    /// Where its SIP comes from.
    pub at: IpAddr,
}

/// A party that is called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CalleeSide {
    /// The codecs that it may use.
    pub policy: CodecPolicy,
    /// How it is rung.
    pub callees: Callees,
}

/// Whom a call rings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Callees {
    /// All at once: where the SIP of each comes from and goes to; at least one.
    AtOnce(Vec<IpAddr>),
    /// One after the other, each by an [`Input::Attempt`], until one takes the call.
    InTurn,
}

/// One way to try to a callee that is rung in turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attempt {
    /// The trunk, for the record.
    pub trunk: TrunkId,
    /// Where its SIP goes.
    pub at: IpAddr,
    /// Our media port towards it.
    pub port: Port,
    /// What the carrier charges, when the call is rated and it has a rate.
    pub cost: Option<Price>,
    /// How long an answered call over the trunk lasts at most, when the trunk has a limit of its own.
    pub limit: Option<Duration>,
}

/// How long things may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// From the first fork to an answer.
    pub ring: Duration,
    /// From the end of the caller's leg to its media report.
    pub report: Duration,
    /// From the answer to the end of the call.
    pub call: Duration,
    /// How long both parties of a call may send neither RTP nor RTCP; of a party in a room, before it is asked whether
    /// it is there. `None` is without end.
    pub silence: Option<Duration>,
    /// The same while a party holds the call.
    pub silence_on_hold: Option<Duration>,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            ring: Duration::from_secs(60),
            report: Duration::from_secs(2),
            call: Duration::from_secs(4 * 60 * 60),
            silence: Some(Duration::from_secs(60)),
            silence_on_hold: Some(Duration::from_secs(30 * 60)),
        }
    }
}

/// What happened to a call.
#[derive(Debug)]
pub enum Input {
    /// A 2xx that we sent to `party` was acknowledged; the ACK may carry the answer to our offer.
    Acknowledged(Party, Option<SessionDescription>),
    /// A fork answered with a 2xx.
    Answered(usize, Option<SessionDescription>),
    /// Try this way, after [`Output::NextAttempt`] or as the first.
    Attempt(Attempt),
    /// The caller gave up.
    Cancelled,
    /// Hang up one party, which sits in a room.
    Dismiss(Party, HangupCause),
    /// End the call, whatever its state.
    End(HangupCause),
    /// There is no way left to try; what to tell the caller when none could be tried at all.
    Exhausted(u16, HangupCause),
    /// A fork ended with a final response.
    Failed(usize, u16),
    /// A party hung up, or its dialog broke.
    HungUp(Party, HangupCause),
    /// The answer that the call waits to give is on the disk.
    Journalled,
    /// Put the parties into a room instead of through to each other; this one is hung up.
    Merge(Option<Party>),
    /// A party offers anew inside its dialog; without a description it wants our offer.
    Offer(Party, Option<SessionDescription>),
    /// Our own offer that clashed with one of the party may be made again.
    OfferDue(Party),
    /// Our own offer inside a party's dialog was answered, or refused with a status.
    Offered(Party, Result<Option<SessionDescription>, u16>),
    /// Whether the party answered, after [`Output::Probe`], as one does that is in the dialog.
    Probed(Party, bool),
    /// A fork sent a provisional response above 100.
    Provisional(usize, u16, Option<SessionDescription>),
    /// The dialog of a party has to be refreshed by an offer of what holds.
    Refresh(Party),
    /// A port was closed; its report.
    Report(PortId, Box<Report>),
    /// For how long nothing has come from the party of a port; `None` when it is heard again.
    Silent(PortId, Option<Duration>),
    /// The time of [`Call::next_timeout`](crate::switch::call::Call::next_timeout) has come.
    Timeout,
    /// The credit for the call is nearly used up: let the caller hear it.
    Warn,
    /// A fork ended without a final response: 408 in effect when nothing came, 503 when it could not be reached.
    Unreached(usize, u16),
}

/// What the switch shall do.
#[derive(Clone, Debug, PartialEq)]
pub enum Output {
    /// Both sides are there: answer the caller's INVITE with 200 and this description. Without one a room called.
    Answer(Option<SessionDescription>),
    /// Hang up a confirmed dialog.
    Bye(Party),
    /// Cancel a fork that has no final response.
    Cancel(usize),
    /// The record is complete; the call is over.
    Ended(Box<Cdr>),
    /// The party that is seated holds, or no longer.
    Held(Party, bool),
    /// Invite a fork with this offer.
    Invite(usize, SessionDescription),
    /// Note on disk that the call is answered, then feed [`Input::Journalled`].
    Journal(Box<Cdr>),
    /// The party that was seated is gone.
    Left(Party),
    /// Tell a media port.
    Media(PortId, MediaCommand),
    /// The attempt failed, with this status in effect, in a way that another trunk may mend: feed
    /// [`Input::Attempt`] or [`Input::Exhausted`].
    NextAttempt(u16),
    /// Offer anew inside a party's dialog.
    Offer(Party, SessionDescription),
    /// Answer the party's own offer: a 200 with the description, or a failure status.
    OfferResult(Party, Result<SessionDescription, u16>),
    /// Ask the party inside its dialog whether it is there, then feed [`Input::Probed`].
    Probe(Party),
    /// Nobody answers: refuse the caller's INVITE, or tell the room that called.
    Reject(u16),
    /// Tell the caller how far it is.
    Ring(u16, Option<SessionDescription>),
    /// The party is up and shall be in a room.
    Seat(Party),
}

/// A call that could not begin.
#[derive(Debug)]
pub struct Stillborn {
    /// What to refuse the INVITE with.
    pub status: u16,
    /// What is known of the call.
    pub facts: Box<Facts>,
    /// Ports to close.
    pub ports: Vec<PortId>,
}
