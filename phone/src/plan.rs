//! Whose phone it is, how it behaves, what it is to do, and what it tells.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use sidetone_media::simulate::Scenario;
use sidetone_sip::sdp::CodecPolicy;

use crate::heard::Heard;
use crate::notes::{Noting, ShownNote};
use crate::tap::Tap;
use crate::voice::Voice;
use crate::wav::Recorder;
use crate::wire::Carrier;

/// The calls of a phone now, placed and taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Calls {
    /// Calls that nobody has answered yet.
    pub ringing: usize,
    /// Answered calls whose answer was acknowledged.
    pub up: usize,
}

/// Whose phone it is and how it behaves.
#[derive(Clone)]
pub struct PhoneConfig {
    /// The switch.
    pub switch: SocketAddr,
    /// The organisation's SIP domain.
    pub domain: String,
    /// The extension.
    pub number: String,
    /// Its password.
    pub password: String,
    /// The codecs to offer and take.
    pub codecs: CodecPolicy,
    /// What happens when it is called.
    pub answering: Answering,
    /// Where everything sent and heard is noted.
    pub tap: Option<Tap>,
    /// What carries its SIP.
    pub carrier: Carrier,
    /// What becomes of notes.
    pub notes: Noting,
    /// What is said where no scenario is; `None` says nothing.
    pub voice: Option<Voice>,
    /// Where what is heard is written.
    pub recorder: Option<Recorder>,
    /// Where what is heard is kept for a minute, whatever its codec.
    pub heard: Option<Heard>,
    /// Whether what does not come from the switch's address is passed over, as a phone in a strange network should.
    pub only_the_switch: bool,
    /// Calls at a time; one more hears 486.
    pub calls_len_max: usize,
}

impl PhoneConfig {
    /// A phone on any codec over UDP that says nothing, rings when it is called, and shows notes.
    pub fn new(
        switch: SocketAddr,
        domain: impl Into<String>,
        number: impl Into<String>,
        password: impl Into<String>,
    ) -> Self {
        PhoneConfig {
            switch,
            domain: domain.into(),
            number: number.into(),
            password: password.into(),
            codecs: CodecPolicy::ANY,
            answering: Answering::Ring,
            tap: None,
            carrier: Carrier::Udp,
            notes: Noting::Show,
            voice: None,
            recorder: None,
            heard: None,
            only_the_switch: false,
            calls_len_max: usize::MAX,
        }
    }
}

/// What a called phone does.
#[derive(Clone, Debug)]
pub enum Answering {
    /// Rings for a while, answers and talks.
    Answer {
        /// How long it rings.
        after: Duration,
        /// What it says; `None` says nothing.
        talk: Option<Box<Scenario>>,
    },
    /// Talks at once, as an announcement does, and answers later.
    Early {
        /// How long it talks before it answers.
        after: Duration,
        /// What it says, before the answer and behind it.
        talk: Box<Scenario>,
    },
    /// Rings until the caller gives up, or [`Phone::answer`](super::Phone::answer).
    Ring,
    /// Refuses with this status.
    Refuse(u16),
}

/// A call to place.
#[derive(Clone, Debug)]
pub struct CallPlan {
    /// What is dialled.
    pub number: String,
    /// What the caller says; `None` says nothing.
    pub talk: Option<Box<Scenario>>,
    /// How long after the answer to hang up; `None` waits for the other side.
    pub talk_time: Option<Duration>,
    /// How long to let it ring before giving up; ten seconds more where it does not even ring.
    pub patience: Option<Duration>,
    /// How long after the answer to offer hold, and after that again to resume.
    pub hold: Option<(Duration, Duration)>,
    /// What the SDP names as the phone's address, when that is not where it is.
    pub advertised: Option<IpAddr>,
}

impl CallPlan {
    /// A silent call of one second.
    pub fn to(number: impl Into<String>) -> Self {
        CallPlan {
            number: number.into(),
            talk: None,
            talk_time: Some(Duration::from_secs(1)),
            patience: None,
            hold: None,
            advertised: None,
        }
    }
}

/// How a placed call went.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallOutcome {
    /// The final status of the INVITE; 487 after giving up, 408 when nothing came.
    pub status: u16,
    /// RTP datagrams heard.
    pub received: u64,
    /// Whether the other side hung up.
    pub ended_by_peer: bool,
    /// The statuses of the re-INVITEs that the plan asked for.
    pub reinvites: Vec<u16>,
}

/// Something that happened at a phone. Text in it is the other side's own.
#[derive(Clone, Debug, PartialEq)]
pub enum News {
    /// A call is over.
    Ended {
        /// The other party.
        peer: String,
        /// The final status of the INVITE: 200 of a call that was up; 487 given up, 408 unanswered.
        status: u16,
        /// Its phrase.
        reason: String,
        /// Whether the other side hung up.
        by_peer: bool,
        /// RTP datagrams heard.
        received: u64,
    },
    /// The connection to the switch is gone; the next request opens another.
    Lost,
    /// A note came and is shown.
    Note(Box<ShownNote>),
    /// The call that was placed is on its way; 180 rings.
    Progress {
        /// The status.
        status: u16,
    },
    /// Somebody calls.
    Ringing {
        /// Who.
        peer: String,
        /// Their name.
        name: Option<String>,
    },
    /// A call was answered, on either side.
    Up {
        /// The other party.
        peer: String,
        /// The audio codec.
        codec: String,
    },
}
