//! Inputs and outputs of a call, with its ports and parties.

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

use crate::mixing::SeatHears;

/// A media port of the relay.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PortId(pub u64);

/// A media port and the address that SDP gives for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Port {
    /// The port.
    pub id: PortId,
    /// The address to which the party sends RTP.
    pub advertised: SocketAddr,
}

/// Opens media ports; the only request of a call that is answered synchronously.
pub trait Ports {
    /// Opens a port for a party whose SIP comes from `towards`; `group` is one per call. Returns `None` when
    /// no port is free.
    fn open(&mut self, leg: LegName, group: u64, towards: IpAddr) -> Option<Port>;
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

/// Finds the flow by which an address is reached.
#[derive(Clone)]
pub struct Reach(Arc<dyn Fn(SocketAddr) -> Result<Flow, Unreachable> + Send + Sync>);

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
    pub fn new(flow_to: impl Fn(SocketAddr) -> Result<Flow, Unreachable> + Send + Sync + 'static) -> Self {
        Reach(Arc::new(flow_to))
    }

    /// Returns the flow to an address.
    ///
    /// # Errors
    /// When the address must not or cannot be called.
    pub fn flow_to(&self, address: SocketAddr) -> Result<Flow, Unreachable> {
        (self.0)(address)
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
    /// Change what the seat hears.
    Hear(SeatHears),
    /// Give the leg a seat in a mix; this ends its bridge, or its seat in another mix.
    Join {
        /// The mix; it is created with its first seat.
        mix: MixId,
        /// The organisation whose prompts and music the party hears.
        organisation: OrganisationId,
        /// The negotiated formats.
        formats: Box<Formats>,
        /// Whether the party is muted.
        muted: bool,
        /// What it hears.
        hears: SeatHears,
    },
    /// Remove the leg's seat.
    Leave,
    /// Mute or unmute the party of the seat.
    Mute(bool),
    /// Play this to the party of the seat alone, after what is being played to it;
    /// [`Input::Played`](crate::machine::Input::Played) tells of the end.
    Play {
        /// The prompts, in order.
        prompts: Vec<Prompt>,
        /// Identifies the end in `Played`.
        token: u64,
    },
    /// Say how the leg does, by [`Input::Snapshot`](crate::machine::Input::Snapshot).
    Snapshot,
    /// Stop the prompts that play to the party only; their end is not reported.
    StopPlaying,
    /// Play a tone into the audio sent to the party.
    Tone,
    /// Transcode packets that the bridge does not map; `None` only relays.
    Transcode(Option<Box<TranscodePlan>>),
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
}

/// The calling party.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallerSide {
    /// The offer of its INVITE; if there was none, our offer is in the 200 (RFC 3261 §13.2.1).
    pub offer: Option<SessionDescription>,
    /// The codecs that it may use.
    pub policy: CodecPolicy,
    /// The address that its SIP comes from.
    pub at: IpAddr,
}

/// The called party.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CalleeSide {
    /// The codecs that it may use.
    pub policy: CodecPolicy,
    /// How it is rung.
    pub callees: Callees,
}

/// The targets that a call rings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Callees {
    /// All at once, by the address of each one's SIP; at least one.
    AtOnce(Vec<IpAddr>),
    /// One after the other, each by an [`Input::Attempt`], until one answers.
    InTurn,
}

/// One attempt to reach a callee whose targets ring in turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attempt {
    /// The trunk, for the record.
    pub trunk: TrunkId,
    /// The address of its SIP.
    pub at: IpAddr,
    /// Our media port for it.
    pub port: Port,
    /// The carrier's price, when the call is rated and the carrier has a rate.
    pub cost: Option<Price>,
    /// The longest duration of an answered call over the trunk, when the trunk has its own limit.
    pub limit: Option<Duration>,
}

/// Time limits of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// From the first fork to an answer.
    pub ring: Duration,
    /// From the end of the caller's leg to its media report.
    pub report: Duration,
    /// From the answer to the end of the call.
    pub call: Duration,
    /// How long both parties of a call may send neither RTP nor RTCP; for a party in a room, the time until
    /// it is probed. `None` means no limit.
    pub silence: Option<Duration>,
    /// The same while a party has put the call on hold.
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

/// Something that happened to a call.
#[derive(Debug)]
pub enum Input {
    /// A 2xx that we sent to `party` was acknowledged; the ACK may carry the answer to our offer.
    Acknowledged(Party, Option<SessionDescription>),
    /// A fork sent a 2xx.
    Answered(usize, Option<SessionDescription>),
    /// Attempt this target: the first, or the one after [`Output::NextAttempt`].
    Attempt(Attempt),
    /// The caller cancelled.
    Cancelled,
    /// Hang up one party, which is in a room.
    Dismiss(Party, HangupCause),
    /// End the call, whatever its state.
    End(HangupCause),
    /// No target is left; the status and cause for the caller if none could be attempted at all.
    Exhausted(u16, HangupCause),
    /// A fork ended with a final response.
    Failed(usize, u16),
    /// A party hung up, or its dialog broke.
    HungUp(Party, HangupCause),
    /// The journal entry that delays the answer is written.
    Journalled,
    /// Put the parties into a room instead of relaying between them; this party is hung up.
    Merge(Option<Party>),
    /// A party sent an offer inside its dialog; without a description it requests our offer.
    Offer(Party, Option<SessionDescription>),
    /// Our offer that clashed with one of the party may be repeated.
    OfferDue(Party),
    /// Our offer inside a party's dialog was answered, or refused with a status.
    Offered(Party, Result<Option<SessionDescription>, u16>),
    /// The result of [`Output::Probe`]: whether the party is still in the dialog.
    Probed(Party, bool),
    /// A fork sent a provisional response above 100.
    Provisional(usize, u16, Option<SessionDescription>),
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
    /// Hang up a confirmed dialog.
    Bye(Party),
    /// Cancel a fork that has no final response.
    Cancel(usize),
    /// The record is complete; the call is over.
    Ended(Box<Cdr>),
    /// A seated party put us on hold, or resumed.
    Held(Party, bool),
    /// Invite a fork with this offer.
    Invite(usize, SessionDescription),
    /// Write to the journal that the call is answered, then feed [`Input::Journalled`].
    Journal(Box<Cdr>),
    /// A seated party is gone.
    Left(Party),
    /// Send a command to a media port.
    Media(PortId, MediaCommand),
    /// The attempt failed with this status, but another trunk may succeed: feed [`Input::Attempt`] or
    /// [`Input::Exhausted`].
    NextAttempt(u16),
    /// Send an offer inside a party's dialog.
    Offer(Party, SessionDescription),
    /// Answer the party's own offer: a 200 with the description, or a failure status.
    OfferResult(Party, Result<SessionDescription, u16>),
    /// Probe inside the dialog whether the party is still there, then feed [`Input::Probed`].
    Probe(Party),
    /// The call was not answered: refuse the caller's INVITE, or report it to the room that placed the call.
    Reject(u16),
    /// Send a provisional response to the caller.
    Ring(u16, Option<SessionDescription>),
    /// The party is answered and goes into a room.
    Seat(Party),
}

/// A call that could not begin.
#[derive(Debug)]
pub struct Stillborn {
    /// The status for the INVITE.
    pub status: u16,
    /// The facts of the call.
    pub facts: Box<Facts>,
    /// Ports to close.
    pub ports: Vec<PortId>,
}
