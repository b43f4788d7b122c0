//! One call's RTP on a real socket: sends the audio of a scenario, and counts received packets.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use sidetone_media::simulate::{Scenario, Simulation};
use sidetone_sip::sdp::SrtpTerms;
use tokio::net::UdpSocket;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tokio::time::{Instant, MissedTickBehavior};

use crate::config::PhoneConfig;
use crate::packet_capture::{Tap, monotonic_wall};
use crate::received_audio::Heard;
use crate::srtp::Protection;
use crate::voice::{Format, Speaker, Voice};
use crate::wav::Recorder;

/// The media side of one call; dropping it stops sending.
pub(super) struct Media {
    /// The address in SDP.
    local: SocketAddr,
    /// The socket that the sender uses.
    socket: watch::Sender<Arc<UdpSocket>>,
    /// The socket that it uses once the peer has its address.
    next: Option<Arc<UdpSocket>>,
    /// The destination; `None` before an answer and during hold.
    remote: watch::Sender<Option<SocketAddr>>,
    /// The format of a voice.
    format: watch::Sender<Option<Format>>,
    /// Digits that a voice is to send.
    digits: mpsc::Sender<String>,
    ear: Ear,
    tasks: Vec<JoinHandle<()>>,
}

/// Processes incoming RTP.
#[derive(Clone)]
pub(super) struct Ear {
    /// Datagrams of this call, except those that fail authentication.
    received: Arc<AtomicU64>,
    /// Datagrams of all calls of the phone.
    heard: Arc<AtomicU64>,
    tap: Option<Tap>,
    recorder: Option<Recorder>,
    keeps: Option<Heard>,
    protection: Protection,
}

/// The audio that a call sends.
pub(super) enum Speech {
    Nothing,
    Scenario(Box<Scenario>),
    /// A voice, with the seed of its random values.
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
            protection: Protection::default(),
        }
    }
}

impl Media {
    /// Opens a socket on `ip`. Sending starts once [`Media::send_to`] sets the destination.
    pub(super) async fn open(ip: IpAddr, speech: Speech, ear: Ear) -> io::Result<Media> {
        let socket = Arc::new(UdpSocket::bind(SocketAddr::new(ip, 0)).await?);
        let local = socket.local_addr()?;
        let (remote, remote_seen) = watch::channel(None);
        let (format, format_seen) = watch::channel(None);
        let (digits, dialled) = mpsc::channel(DIGITS_LEN_MAX);
        let listener = tokio::spawn(listen(Arc::clone(&socket), local, ear.clone(), format_seen.clone()));
        let (socket, socket_seen) = watch::channel(socket);
        let mouth = Mouth {
            socket: socket_seen,
            remote: remote_seen,
            tap: ear.tap.clone(),
            protection: ear.protection.clone(),
        };
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

    /// Opens another socket for receiving; sending moves to it with the next [`Media::send_to`].
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

    /// Sets the SRTP keys, or none, from now on; `spoils` sends with another key.
    pub(super) fn secure(&self, terms: Option<&SrtpTerms>, spoils: bool) {
        self.ear.protection.settle(terms, spoils);
    }

    /// Sets the format of a voice from now on.
    pub(super) fn speak_as(&self, format: Option<Format>) {
        self.format.send_replace(format);
    }

    /// Returns whether the peer supports digits.
    pub(super) fn takes_digits(&self) -> bool {
        self.format.borrow().is_some_and(|format| format.events.is_some())
    }

    /// Queues digits for the voice; `false` when too many are queued already.
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
        // An error here is an ICMP message about a sent datagram; the socket remains usable.
        let Ok((length, from)) = socket.recv_from(&mut buffer).await else { continue };
        let Some(bytes) = buffer.get_mut(..length) else { continue };
        if let Some(tap) = &ear.tap {
            tap.note(from, local, bytes);
        }
        let Some(length) = ear.protection.open(bytes) else { continue };
        let Some(bytes) = buffer.get(..length) else { continue };
        ear.received.fetch_add(1, Ordering::Relaxed);
        ear.heard.fetch_add(1, Ordering::Relaxed);
        if let Some(recorder) = &ear.recorder {
            recorder.hear(bytes);
        }
        let known = *format.borrow();
        if let (Some(heard), Some(known)) = (&ear.keeps, known) {
            heard.hear(bytes, known);
        }
    }
}

/// The source and the destination of a sender.
struct Mouth {
    socket: watch::Receiver<Arc<UdpSocket>>,
    remote: watch::Receiver<Option<SocketAddr>>,
    tap: Option<Tap>,
    protection: Protection,
}

impl Mouth {
    /// Waits for a destination; `false` when none can be set any more.
    async fn opens(&mut self) -> bool {
        self.remote.wait_for(Option::is_some).await.is_ok()
    }

    async fn say(&self, datagram: &[u8]) {
        let Some(to) = *self.remote.borrow() else { return };
        let mut sealed = Vec::new();
        let Some(datagram) = self.protection.seal(datagram, &mut sealed) else { return };
        let socket = Arc::clone(&self.socket.borrow());
        // The time is taken directly before sending, so that a tap shows what the peer sees.
        let at = monotonic_wall();
        // If the system refuses a datagram, it is lost, as on any network.
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
    // A delayed phone continues at its normal rate; it does not catch up in a burst.
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

/// Packet duration of a voice.
const PTIME: Duration = Duration::from_millis(20);
/// Strings of digits that wait for the voice.
const DIGITS_LEN_MAX: usize = 16;
/// The largest datagram that a phone accepts.
const DATAGRAM_BYTES_MAX: usize = 2_048;
