//! A phone, as its owner uses it.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use sidetone_media::time::Micros;
use sidetone_sip::sdp::Direction;
use tokio::sync::{broadcast, mpsc, oneshot, watch};
use tokio::task::JoinHandle;

use crate::actor::{Actor, Owner};
use crate::command::{Command, PhoneError};
use crate::config::{CallOutcome, CallPlan, Calls, News, PhoneConfig};
use crate::endpoint::Endpoint;
use crate::notes::{Notebook, Noting, Parcel, ShownNote};
use crate::packet_capture::monotonic_wall;
use crate::requests::Requests;
use crate::transport::Connection;

/// A phone with its own socket. Dropping it stops it without sending any message, like a power failure.
pub struct Phone {
    commands: mpsc::Sender<Command>,
    calls: watch::Receiver<Calls>,
    heard: Arc<AtomicU64>,
    notes: Arc<Notebook>,
    news: broadcast::Sender<News>,
    task: JoinHandle<()>,
    local: SocketAddr,
}

impl Phone {
    /// Starts a phone. Must run within a tokio runtime.
    ///
    /// # Errors
    /// When no socket can be opened, or a TCP connection is refused.
    pub async fn start(config: PhoneConfig) -> Result<Phone, PhoneError> {
        let transport = Connection::open(config.carrier, config.switch).await?;
        let local = transport.local();
        let (commands, inbox) = mpsc::channel(COMMANDS_MAX);
        let (counted, calls) = watch::channel(Calls::default());
        let (heard, notes) = (Arc::new(AtomicU64::new(0)), Arc::new(Notebook::new()));
        let news = broadcast::Sender::new(NEWS_MAX);
        let mut endpoint = Endpoint::new(config, transport, news.clone(), Arc::clone(&heard))?;
        let requests = Requests::new(&mut endpoint.rng, Arc::clone(&notes));
        let actor = Actor::new(endpoint, requests, Owner { inbox, counted });
        Ok(Phone { commands, calls, heard, notes, news, task: tokio::spawn(actor.run()), local })
    }

    /// Registers; returns how long the binding lasts.
    ///
    /// # Errors
    /// When the switch refuses or does not answer.
    pub async fn register(&self, number: &str) -> Result<Duration, PhoneError> {
        self.bind(number, REGISTER_SECONDS).await
    }

    /// Removes the phone's binding.
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

    /// Returns the notes shown so far, oldest first; a note that was received twice is listed twice.
    pub fn notes(&self) -> Vec<ShownNote> {
        self.notes.all()
    }

    /// Returns the number of shown notes, now and after every change.
    pub fn notes_count(&self) -> watch::Receiver<u64> {
        self.notes.count()
    }

    /// Acknowledges a note as if the user pressed the button, over the channel on which it was received. Returns the
    /// status of the response; 408 without a response.
    ///
    /// # Errors
    /// [`PhoneError::NoNote`], and [`PhoneError::NoCall`] when the call of a note by INFO is over.
    pub async fn acknowledge(&self, id: &str) -> Result<u16, PhoneError> {
        self.acknowledge_at(id, monotonic_wall()).await
    }

    /// The same with another time of the acknowledgement, Unix time.
    ///
    /// # Errors
    /// Like [`Phone::acknowledge`].
    pub async fn acknowledge_at(&self, id: &str, at: Micros) -> Result<u16, PhoneError> {
        self.ask(|done| Command::Acknowledge(id.to_owned(), at, done)).await?
    }

    /// Sends a request that a correct phone would not send, or one of another manufacturer's phone. Returns the
    /// status of the response; 408 without a response.
    ///
    /// # Errors
    /// [`PhoneError::NoCall`] for an INFO without a call that is up.
    pub async fn send(&self, parcel: Parcel) -> Result<u16, PhoneError> {
        self.ask(|done| Command::Send(parcel, done)).await?
    }

    /// Changes how notes are handled from now on.
    ///
    /// # Errors
    /// When the phone is switched off.
    pub async fn treat_notes(&self, notes: Noting) -> Result<(), PhoneError> {
        self.command(Command::Notes(notes)).await
    }

    /// Answers the ringing call.
    ///
    /// # Errors
    /// [`PhoneError::NoCall`] when none rings.
    pub async fn answer(&self) -> Result<(), PhoneError> {
        self.ask(Command::Answer).await?.then_some(()).ok_or(PhoneError::NoCall)
    }

    /// Declines every ringing call.
    ///
    /// # Errors
    /// When the phone is switched off.
    pub async fn decline(&self) -> Result<(), PhoneError> {
        self.command(Command::Decline).await
    }

    /// Sends digits in the call that is up (RFC 4733); needs a [`Voice`](super::Voice).
    ///
    /// # Errors
    /// [`PhoneError::NoCall`] if no call is up, or its peer does not support digits.
    pub async fn dial(&self, digits: &str) -> Result<(), PhoneError> {
        let dialled = self.ask(|done| Command::Dial(digits.to_owned(), done)).await?;
        dialled.then_some(()).ok_or(PhoneError::NoCall)
    }

    /// Transfers the remote party of the newest call that is up to a number (REFER), and returns the status of the
    /// result: that of the target's response, or of a refusal.
    ///
    /// # Errors
    /// [`PhoneError::NoCall`] when no call is up, or the call ends before the result.
    pub async fn refer(&self, number: &str) -> Result<u16, PhoneError> {
        self.ask(|done| Command::Refer(number.to_owned(), done)).await?
    }

    /// Transfers the remote party of the oldest call that is up to that of the newest (REFER with Replaces), and
    /// returns the status of the result.
    ///
    /// # Errors
    /// [`PhoneError::NoCall`] unless two calls are up, or when the first ends before the result.
    pub async fn refer_to_call(&self) -> Result<u16, PhoneError> {
        self.ask(Command::ReferToCall).await?
    }

    /// Returns the events from now on. A slow reader loses the oldest.
    pub fn news(&self) -> broadcast::Receiver<News> {
        self.news.subscribe()
    }

    /// Places a call, and returns its outcome when it is over.
    ///
    /// # Errors
    /// When the phone is switched off.
    pub async fn call(&self, plan: CallPlan) -> Result<CallOutcome, PhoneError> {
        self.ask(|done| Command::Call(plan, done)).await
    }

    /// Hangs up every call, or cancels it while it rings.
    ///
    /// # Errors
    /// When the phone is switched off.
    pub async fn hang_up(&self) -> Result<(), PhoneError> {
        self.command(Command::HangUp).await
    }

    /// Offers this direction in every call that is up: hold, or resume.
    ///
    /// # Errors
    /// When the phone is switched off.
    pub async fn offer(&self, direction: Direction) -> Result<(), PhoneError> {
        self.command(Command::Offer(direction)).await
    }

    /// Opens a new media socket in every call that is up and offers its address.
    ///
    /// # Errors
    /// When the phone is switched off.
    pub async fn move_media(&self) -> Result<(), PhoneError> {
        self.command(Command::Move).await
    }

    /// Returns the numbers of calls, now and after every change.
    pub fn calls(&self) -> watch::Receiver<Calls> {
        self.calls.clone()
    }

    /// Returns the number of RTP datagrams received in all calls so far.
    pub fn heard(&self) -> u64 {
        self.heard.load(Ordering::Relaxed)
    }

    /// Returns the source address of the phone's SIP.
    pub fn local(&self) -> SocketAddr {
        self.local
    }

    /// Sends a command to the task and waits for its result.
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

/// Commands that wait for the task.
const COMMANDS_MAX: usize = 64;
/// Events that are queued for a slow reader.
const NEWS_MAX: usize = 256;
/// The registration time that a phone requests.
const REGISTER_SECONDS: u32 = 600;
