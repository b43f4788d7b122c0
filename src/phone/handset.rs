//! The phone as its user sees it.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use sidetone_media::simulate::Scenario;
use sidetone_sip::sdp::CodecPolicy;
use tokio::net::UdpSocket;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;

use crate::phone::actor::Actor;
use crate::phone::tap::Tap;

/// A phone on a loopback socket. Dropping it switches it off without a word, as a power cut would.
pub struct Phone {
    commands: mpsc::Sender<Command>,
    task: JoinHandle<()>,
    local: SocketAddr,
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
    /// Rings until the caller gives up.
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
    /// How long to let it ring before giving up.
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

/// Why a phone did not do it.
#[derive(Debug, thiserror::Error)]
pub enum PhoneError {
    /// A socket failed.
    #[error("open a socket: {0}")]
    Io(#[from] io::Error),
    /// The switch refused or did not answer.
    #[error("register {number}: the switch answered {status}")]
    Refused {
        /// The extension.
        number: String,
        /// The status; 408 when nothing came.
        status: u16,
    },
    /// The phone was switched off.
    #[error("use a phone that is switched off")]
    SwitchedOff,
}

/// What the handset asks of its actor.
pub(super) enum Command {
    Call(CallPlan, oneshot::Sender<CallOutcome>),
    Register(oneshot::Sender<u16>),
}

impl Phone {
    /// Switches a phone on. Runs within a tokio runtime.
    ///
    /// # Errors
    /// When no socket can be opened.
    pub async fn start(config: PhoneConfig) -> Result<Phone, PhoneError> {
        let any: SocketAddr = if config.switch.is_ipv4() {
            ([127, 0, 0, 1], 0).into()
        } else {
            "[::1]:0".parse().map_err(|_| PhoneError::SwitchedOff)?
        };
        let socket = UdpSocket::bind(any).await?;
        let local = socket.local_addr()?;
        let (commands, inbox) = mpsc::channel(COMMANDS_MAX);
        let actor = Actor::new(config, socket, local, inbox)?;
        Ok(Phone { commands, task: tokio::spawn(actor.run()), local })
    }

    /// Registers.
    ///
    /// # Errors
    /// When the switch refuses or does not answer.
    pub async fn register(&self, number: &str) -> Result<(), PhoneError> {
        let (done, result) = oneshot::channel();
        self.commands.send(Command::Register(done)).await.map_err(|_| PhoneError::SwitchedOff)?;
        match result.await {
            Ok(200..=299) => Ok(()),
            Ok(status) => Err(PhoneError::Refused { number: number.to_owned(), status }),
            Err(_) => Err(PhoneError::SwitchedOff),
        }
    }

    /// Places a call and tells how it went, once it is over.
    ///
    /// # Errors
    /// When the phone is switched off.
    pub async fn call(&self, plan: CallPlan) -> Result<CallOutcome, PhoneError> {
        let (done, result) = oneshot::channel();
        self.commands.send(Command::Call(plan, done)).await.map_err(|_| PhoneError::SwitchedOff)?;
        result.await.map_err(|_| PhoneError::SwitchedOff)
    }

    /// Where the phone's SIP comes from.
    pub fn local(&self) -> SocketAddr {
        self.local
    }
}

impl Drop for Phone {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Commands that wait for the actor.
const COMMANDS_MAX: usize = 64;
