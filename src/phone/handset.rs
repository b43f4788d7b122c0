//! The phone as its user sees it.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use sidetone_media::simulate::Scenario;
use sidetone_sip::sdp::{CodecPolicy, Direction};
use tokio::net::UdpSocket;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinHandle;

use crate::phone::actor::Actor;
use crate::phone::tap::Tap;

/// A phone on a loopback socket. Dropping it switches it off without a word, as a power cut would.
pub struct Phone {
    commands: mpsc::Sender<Command>,
    calls: watch::Receiver<Calls>,
    heard: Arc<AtomicU64>,
    task: JoinHandle<()>,
    local: SocketAddr,
}

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
    HangUp,
    Move,
    Offer(Direction),
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
        let (counted, calls) = watch::channel(Calls::default());
        let heard = Arc::new(AtomicU64::new(0));
        let actor = Actor::new(config, socket, local, inbox, counted, Arc::clone(&heard))?;
        Ok(Phone { commands, calls, heard, task: tokio::spawn(actor.run()), local })
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

    /// Hangs up every call, or gives it up while it rings.
    ///
    /// # Errors
    /// When the phone is switched off.
    pub async fn hang_up(&self) -> Result<(), PhoneError> {
        self.command(Command::HangUp).await
    }

    /// Offers this direction in every call that is up: hold, or its end.
    ///
    /// # Errors
    /// When the phone is switched off.
    pub async fn offer(&self, direction: Direction) -> Result<(), PhoneError> {
        self.command(Command::Offer(direction)).await
    }

    /// Takes a new media socket in every call that is up and offers its address.
    ///
    /// # Errors
    /// When the phone is switched off.
    pub async fn move_media(&self) -> Result<(), PhoneError> {
        self.command(Command::Move).await
    }

    /// The phone's calls, now and whenever they change.
    pub fn calls(&self) -> watch::Receiver<Calls> {
        self.calls.clone()
    }

    /// RTP datagrams heard in all calls so far.
    pub fn heard(&self) -> u64 {
        self.heard.load(Ordering::Relaxed)
    }

    /// Where the phone's SIP comes from.
    pub fn local(&self) -> SocketAddr {
        self.local
    }

    async fn command(&self, command: Command) -> Result<(), PhoneError> {
        self.commands.send(command).await.map_err(|_| PhoneError::SwitchedOff)
    }
}

impl Drop for Phone {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Commands that wait for the actor.
const COMMANDS_MAX: usize = 64;
