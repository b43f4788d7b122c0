//! The phone as its user sees it.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use sidetone_media::time::Micros;
use sidetone_sip::sdp::Direction;
use tokio::sync::{broadcast, mpsc, oneshot, watch};
use tokio::task::JoinHandle;

use crate::actor::{Actor, Lines};
use crate::notes::{Notebook, Noting, Parcel, ShownNote};
use crate::plan::{CallOutcome, CallPlan, Calls, News, PhoneConfig};
use crate::tap::monotonic_wall;
use crate::wire::Wire;

/// A phone on a socket of its own. Dropping it switches it off without a word, as a power cut would.
pub struct Phone {
    commands: mpsc::Sender<Command>,
    calls: watch::Receiver<Calls>,
    heard: Arc<AtomicU64>,
    notes: Arc<Notebook>,
    news: broadcast::Sender<News>,
    task: JoinHandle<()>,
    local: SocketAddr,
}

/// Why a phone did not do it.
#[derive(Debug, thiserror::Error)]
pub enum PhoneError {
    /// A socket failed.
    #[error("open a socket: {0}")]
    Io(#[from] io::Error),
    /// There is no call for it.
    #[error("do it: the phone has no such call")]
    NoCall,
    /// The phone was never shown this note.
    #[error("acknowledge {0}: no such note was shown")]
    NoNote(String),
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
    Acknowledge(String, Micros, oneshot::Sender<Result<u16, PhoneError>>),
    Answer(oneshot::Sender<bool>),
    Call(CallPlan, oneshot::Sender<CallOutcome>),
    Decline,
    Dial(String, oneshot::Sender<bool>),
    HangUp,
    Move,
    Notes(Noting),
    Offer(Direction),
    /// For so many seconds; 0 takes the binding away.
    Register(u32, oneshot::Sender<(u16, Duration)>),
    Send(Parcel, oneshot::Sender<Result<u16, PhoneError>>),
}

impl Phone {
    /// Switches a phone on. Runs within a tokio runtime.
    ///
    /// # Errors
    /// When no socket can be opened, or over TCP nobody listens.
    pub async fn start(config: PhoneConfig) -> Result<Phone, PhoneError> {
        let wire = Wire::open(config.carrier, config.switch).await?;
        let local = wire.local();
        let (commands, inbox) = mpsc::channel(COMMANDS_MAX);
        let (counted, calls) = watch::channel(Calls::default());
        let (heard, notes) = (Arc::new(AtomicU64::new(0)), Arc::new(Notebook::new()));
        let news = broadcast::Sender::new(NEWS_MAX);
        let lines = Lines {
            inbox,
            counted,
            heard: Arc::clone(&heard),
            notes: Arc::clone(&notes),
            news: news.clone(),
        };
        let actor = Actor::new(config, wire, lines)?;
        Ok(Phone { commands, calls, heard, notes, news, task: tokio::spawn(actor.run()), local })
    }

    /// Registers, and tells how long the binding lasts.
    ///
    /// # Errors
    /// When the switch refuses or does not answer.
    pub async fn register(&self, number: &str) -> Result<Duration, PhoneError> {
        self.bind(number, REGISTER_SECONDS).await
    }

    /// Takes the phone's binding away.
    ///
    /// # Errors
    /// When the switch refuses or does not answer.
    pub async fn unregister(&self, number: &str) -> Result<(), PhoneError> {
        self.bind(number, 0).await.map(drop)
    }

    async fn bind(&self, number: &str, seconds: u32) -> Result<Duration, PhoneError> {
        match self.ask(|done| Command::Register(seconds, done)).await? {
            (200..=299, lasts) => Ok(lasts),
            (status, _) => Err(PhoneError::Refused { number: number.to_owned(), status }),
        }
    }

    /// The notes that were shown so far, oldest first; a note that came twice is there twice.
    pub fn notes(&self) -> Vec<ShownNote> {
        self.notes.all()
    }

    /// How many notes were shown, now and whenever it changes.
    pub fn notes_count(&self) -> watch::Receiver<u64> {
        self.notes.count()
    }

    /// The person taps Acknowledge now: the same way as the note came. Tells what the switch answered; 408 nothing.
    ///
    /// # Errors
    /// [`PhoneError::NoNote`], and [`PhoneError::NoCall`] when the call of a note by INFO is over.
    pub async fn acknowledge(&self, id: &str) -> Result<u16, PhoneError> {
        self.acknowledge_at(id, monotonic_wall()).await
    }

    /// The same with another moment of the tap, Unix time.
    ///
    /// # Errors
    /// As [`Phone::acknowledge`].
    pub async fn acknowledge_at(&self, id: &str, at: Micros) -> Result<u16, PhoneError> {
        self.ask(|done| Command::Acknowledge(id.to_owned(), at, done)).await?
    }

    /// Sends what no honest phone sends, or one of another make. Tells what the switch answered; 408 nothing.
    ///
    /// # Errors
    /// [`PhoneError::NoCall`] for an INFO without a call that is up.
    pub async fn send(&self, parcel: Parcel) -> Result<u16, PhoneError> {
        self.ask(|done| Command::Send(parcel, done)).await?
    }

    /// Treats notes otherwise from now on.
    ///
    /// # Errors
    /// When the phone is switched off.
    pub async fn treat_notes(&self, notes: Noting) -> Result<(), PhoneError> {
        self.command(Command::Notes(notes)).await
    }

    /// Takes the call that rings.
    ///
    /// # Errors
    /// [`PhoneError::NoCall`] when none rings.
    pub async fn answer(&self) -> Result<(), PhoneError> {
        self.ask(Command::Answer).await?.then_some(()).ok_or(PhoneError::NoCall)
    }

    /// Declines every call that rings.
    ///
    /// # Errors
    /// When the phone is switched off.
    pub async fn decline(&self) -> Result<(), PhoneError> {
        self.command(Command::Decline).await
    }

    /// Dials digits inside the call that is up (RFC 4733); needs a [`Voice`](super::Voice).
    ///
    /// # Errors
    /// [`PhoneError::NoCall`] when no call is up whose other side understands them.
    pub async fn dial(&self, digits: &str) -> Result<(), PhoneError> {
        let dialled = self.ask(|done| Command::Dial(digits.to_owned(), done)).await?;
        dialled.then_some(()).ok_or(PhoneError::NoCall)
    }

    /// What happens from now on. Who reads slowly misses the oldest.
    pub fn news(&self) -> broadcast::Receiver<News> {
        self.news.subscribe()
    }

    /// Places a call and tells how it went, once it is over.
    ///
    /// # Errors
    /// When the phone is switched off.
    pub async fn call(&self, plan: CallPlan) -> Result<CallOutcome, PhoneError> {
        self.ask(|done| Command::Call(plan, done)).await
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

    /// Gives the actor a command and waits for what becomes of it.
    async fn ask<T>(&self, command: impl FnOnce(oneshot::Sender<T>) -> Command) -> Result<T, PhoneError> {
        let (done, result) = oneshot::channel();
        self.command(command(done)).await?;
        result.await.map_err(|_| PhoneError::SwitchedOff)
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
/// News that wait for a slow reader.
const NEWS_MAX: usize = 256;
/// What a phone asks for.
const REGISTER_SECONDS: u32 = 600;
