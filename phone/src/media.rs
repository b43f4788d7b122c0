//! One call's RTP on a real socket: sends what a scenario says, counts what comes.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use sidetone_media::simulate::{Scenario, Simulation};
use tokio::net::UdpSocket;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tokio::time::{Instant, MissedTickBehavior};

use crate::heard::Heard;
use crate::plan::PhoneConfig;
use crate::tap::{Tap, monotonic_wall};
use crate::voice::{Format, Speaker, Voice};
use crate::wav::Recorder;

/// The media side of one call; dropping it ends the sending.
pub(super) struct Media {
    /// Where SDP says that the phone listens.
    local: SocketAddr,
    /// What the talker sends from.
    socket: watch::Sender<Arc<UdpSocket>>,
    /// What it sends from as soon as the peer knows.
    next: Option<Arc<UdpSocket>>,
    /// Where to send; `None` before an answer and while holding.
    remote: watch::Sender<Option<SocketAddr>>,
    /// How a voice sends.
    format: watch::Sender<Option<Format>>,
    /// What a voice is to dial.
    digits: mpsc::Sender<String>,
    ear: Ear,
    tasks: Vec<JoinHandle<()>>,
}

/// What becomes of RTP that comes.
#[derive(Clone)]
pub(super) struct Ear {
    /// Datagrams of this call.
    received: Arc<AtomicU64>,
    /// Datagrams of all calls of the phone.
    heard: Arc<AtomicU64>,
    tap: Option<Tap>,
    recorder: Option<Recorder>,
    keeps: Option<Heard>,
}

/// What a call says.
pub(super) enum Speech {
    Nothing,
    Scenario(Box<Scenario>),
    /// A voice that begins with this random number.
    Voice(Voice, u64),
}

impl Ear {
    pub(super) fn new(heard: Arc<AtomicU64>, config: &PhoneConfig) -> Self {
        let PhoneConfig { tap, recorder, heard: keeps, .. } = config;
        Ear {
            received: Arc::default(),
            heard,
            tap: tap.clone(),
            recorder: recorder.clone(),
            keeps: keeps.clone(),
        }
    }
}

impl Media {
    /// Opens a socket on `ip`. Talking begins once [`Media::send_to`] says where.
    pub(super) async fn open(ip: IpAddr, speech: Speech, ear: Ear) -> io::Result<Media> {
        let socket = Arc::new(UdpSocket::bind(SocketAddr::new(ip, 0)).await?);
        let local = socket.local_addr()?;
        let (remote, remote_seen) = watch::channel(None);
        let (format, format_seen) = watch::channel(None);
        let (digits, dialled) = mpsc::channel(DIGITS_LEN_MAX);
        let listener = tokio::spawn(listen(Arc::clone(&socket), local, ear.clone(), format_seen.clone()));
        let (socket, socket_seen) = watch::channel(socket);
        let mouth = Mouth { socket: socket_seen, remote: remote_seen, tap: ear.tap.clone() };
        let talker = match speech {
            Speech::Nothing => None,
            Speech::Scenario(scenario) => Some(tokio::spawn(talk(mouth, *scenario))),
            Speech::Voice(voice, seed) => {
                Some(tokio::spawn(speak(mouth, Speaker::new(voice, seed), format_seen, dialled)))
            }
        };
        let tasks = [Some(listener), talker].into_iter().flatten().collect();
        Ok(Media { local, socket, next: None, remote, format, digits, ear, tasks })
    }

    /// Opens another socket and listens there; talking moves there with the next [`Media::send_to`].
    pub(super) async fn move_away(&mut self) -> io::Result<()> {
        let socket = Arc::new(UdpSocket::bind(SocketAddr::new(self.local.ip(), 0)).await?);
        self.local = socket.local_addr()?;
        let format = self.format.subscribe();
        self.tasks.push(tokio::spawn(listen(Arc::clone(&socket), self.local, self.ear.clone(), format)));
        self.next = Some(socket);
        Ok(())
    }

    pub(super) fn local(&self) -> SocketAddr {
        self.local
    }

    pub(super) fn send_to(&mut self, remote: Option<SocketAddr>) {
        if let Some(next) = self.next.take() {
            self.socket.send_replace(next);
        }
        self.remote.send_replace(remote);
    }

    /// Says how a voice has to send from now on.
    pub(super) fn speak_as(&self, format: Option<Format>) {
        self.format.send_replace(format);
    }

    /// Whether the other side understands digits.
    pub(super) fn takes_digits(&self) -> bool {
        self.format.borrow().is_some_and(|format| format.events.is_some())
    }

    /// Has the voice dial; `false` when it has too much to dial already.
    pub(super) fn dial(&self, digits: &str) -> bool {
        self.digits.try_send(digits.to_owned()).is_ok()
    }

    pub(super) fn received(&self) -> u64 {
        self.ear.received.load(Ordering::Relaxed)
    }
}

impl Drop for Media {
    fn drop(&mut self) {
        for task in &self.tasks {
            task.abort();
        }
    }
}

async fn listen(
    socket: Arc<UdpSocket>,
    local: SocketAddr,
    ear: Ear,
    format: watch::Receiver<Option<Format>>,
) {
    let mut buffer = vec![0; DATAGRAM_BYTES_MAX];
    loop {
        // An error here is an ICMP message about what was sent; the socket lives on.
        let Ok((length, from)) = socket.recv_from(&mut buffer).await else { continue };
        ear.received.fetch_add(1, Ordering::Relaxed);
        ear.heard.fetch_add(1, Ordering::Relaxed);
        let Some(bytes) = buffer.get(..length) else { continue };
        if let Some(tap) = &ear.tap {
            tap.note(from, local, bytes);
        }
        if let Some(recorder) = &ear.recorder {
            recorder.hear(bytes);
        }
        if let (Some(heard), Some(format)) = (&ear.keeps, *format.borrow()) {
            heard.hear(bytes, format);
        }
    }
}

/// Where a talker sends from, and to.
struct Mouth {
    socket: watch::Receiver<Arc<UdpSocket>>,
    remote: watch::Receiver<Option<SocketAddr>>,
    tap: Option<Tap>,
}

impl Mouth {
    /// Waits until there is somebody to talk to; `false` when there never will be.
    async fn opens(&mut self) -> bool {
        self.remote.wait_for(Option::is_some).await.is_ok()
    }

    async fn say(&self, datagram: &[u8]) {
        let Some(to) = *self.remote.borrow() else { return };
        let socket = Arc::clone(&self.socket.borrow());
        // The time is taken as near to the sending as can be: a tap shall see what the peer sees.
        let at = monotonic_wall();
        // What the system refuses is lost like on any network.
        if socket.try_send_to(datagram, to).is_err() {
            let _ = socket.send_to(datagram, to).await;
        }
        if let (Some(tap), Ok(local)) = (&self.tap, socket.local_addr()) {
            tap.note_at(at, local, to, datagram);
        }
    }
}

async fn talk(mut mouth: Mouth, scenario: Scenario) {
    if !mouth.opens().await {
        return;
    }
    let start = Instant::now();
    let mut datagram = Vec::new();
    for packet in Simulation::new(&scenario) {
        let due = start + Duration::from_micros(u64::try_from(packet.at.0).unwrap_or_default());
        tokio::time::sleep_until(due).await;
        packet.write(&mut datagram);
        mouth.say(&datagram).await;
    }
}

async fn speak(
    mut mouth: Mouth,
    mut speaker: Speaker,
    format: watch::Receiver<Option<Format>>,
    mut dialled: mpsc::Receiver<String>,
) {
    if !mouth.opens().await {
        return;
    }
    let mut clock = tokio::time::interval(PTIME);
    // A phone that was held up goes on in its pace; it does not catch up in a burst.
    clock.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut datagram = Vec::new();
    loop {
        clock.tick().await;
        while let Ok(digits) = dialled.try_recv() {
            speaker.dial(&digits);
        }
        let Some(format) = *format.borrow() else { continue };
        speaker.next(format, &mut datagram);
        mouth.say(&datagram).await;
    }
}

/// What a voice's packets last.
const PTIME: Duration = Duration::from_millis(20);
/// Strings of digits that wait for the voice.
const DIGITS_LEN_MAX: usize = 16;
/// The largest datagram that a phone takes.
const DATAGRAM_BYTES_MAX: usize = 2_048;
