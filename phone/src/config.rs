//! The configuration of a phone, its behaviour, its tasks and its events.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use sidetone_media::simulate::Scenario;
use sidetone_sip::sdp::{CodecPolicy, SrtpRule};

use crate::notes::{Noting, ShownNote};
use crate::packet_capture::Tap;
use crate::received_audio::Heard;
use crate::transport::Carrier;
use crate::voice::Voice;
use crate::wav::Recorder;

/// The current calls of a phone, placed and received.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Calls {
    /// Unanswered calls.
    pub ringing: usize,
    /// Answered calls whose answer was acknowledged.
    pub up: usize,
}

/// The identity and the behaviour of a phone.
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
    /// The codecs to offer and accept.
    pub codecs: CodecPolicy,
    /// Whether its audio is encrypted.
    pub srtp: SrtpRule,
    /// A fault for tests: whether it encrypts with another key than the one in its SDP.
    pub srtp_wrong_key: bool,
    /// The behaviour when it is called.
    pub answering: Answering,
    /// A capture of everything that is sent and received.
    pub tap: Option<Tap>,
    /// The transport of its SIP.
    pub carrier: Carrier,
    /// How notes are handled.
    pub notes: Noting,
    /// The audio without a scenario; `None` sends nothing.
    pub voice: Option<Voice>,
    /// The file for received audio.
    pub recorder: Option<Recorder>,
    /// A buffer for the last minute of received audio, for any codec.
    pub heard: Option<Heard>,
    /// Whether messages from addresses other than the switch's are ignored, as a phone in an untrusted network should
    /// do.
    pub only_the_switch: bool,
    /// Maximum simultaneous calls; a further one gets 486.
    pub calls_len_max: usize,
}

impl PhoneConfig {
    /// A phone with every codec over UDP that sends nothing, rings when it is called, and shows notes.
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
            srtp: SrtpRule::Off,
            srtp_wrong_key: false,
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

/// The behaviour of a called phone.
#[derive(Clone, Debug)]
pub enum Answering {
    /// Rings for a while, answers and sends audio.
    Answer {
        /// How long it rings.
        after: Duration,
        /// Its audio; `None` sends nothing.
        talk: Option<Box<Scenario>>,
    },
    /// Sends audio immediately, like an announcement, and answers later.
    Early {
        /// How long it sends audio before it answers.
        after: Duration,
        /// Its audio, before and after the answer.
        talk: Box<Scenario>,
    },
    /// Rings until the caller gives up, or [`Phone::answer`](super::Phone::answer).
    Ring,
    /// Redirects the call to this number (302).
    Redirect(String),
    /// Refuses with this status.
    Refuse(u16),
}

/// A call to place.
#[derive(Clone, Debug)]
pub struct CallPlan {
    /// The dialled number.
    pub number: String,
    /// The caller's audio; `None` sends nothing.
    pub talk: Option<Box<Scenario>>,
    /// When to hang up after the answer; `None` waits for the peer to hang up.
    pub talk_time: Option<Duration>,
    /// How long to let it ring before cancelling; ten seconds more without a 180.
    pub patience: Option<Duration>,
    /// How long after the answer to offer hold, and how long after that to resume.
    pub hold: Option<(Duration, Duration)>,
    /// The address in the SDP, if it differs from the real one.
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

/// The outcome of a placed call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallOutcome {
    /// The final status of the INVITE; 487 after cancelling, 408 without an answer.
    pub status: u16,
    /// Received RTP datagrams.
    pub received: u64,
    /// Whether the peer hung up.
    pub ended_by_peer: bool,
    /// The statuses of the re-INVITEs in the plan.
    pub reinvites: Vec<u16>,
}

/// An event of a phone. Texts in it are from the remote end.
#[derive(Clone, Debug, PartialEq)]
pub enum News {
    /// A call is over.
    Ended {
        /// The other party.
        peer: String,
        /// The final status of the INVITE: 200 for a call that was up; 487 cancelled, 408 unanswered.
        status: u16,
        /// Its phrase.
        reason: String,
        /// Whether the peer hung up.
        by_peer: bool,
        /// Received RTP datagrams.
        received: u64,
    },
    /// The connection to the switch is closed; the next request opens another.
    Lost,
    /// A note arrived and is shown.
    Note(Box<ShownNote>),
    /// A provisional response to the placed call; 180 means ringing.
    Progress {
        /// The status.
        status: u16,
    },
    /// An incoming call.
    Ringing {
        /// The caller.
        peer: String,
        /// The caller's name.
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
