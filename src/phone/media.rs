//! One call's RTP on a real socket: sends what a scenario says, counts what comes.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use sidetone_media::simulate::{Scenario, Simulation};
use tokio::net::UdpSocket;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use crate::phone::tap::{Tap, monotonic_wall};

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
}

impl Ear {
    pub(super) fn new(heard: Arc<AtomicU64>, tap: Option<Tap>) -> Self {
        Ear { received: Arc::default(), heard, tap }
    }
}

impl Media {
    /// Opens a socket on `ip`. Talking begins once [`Media::send_to`] says where.
    pub(super) async fn open(ip: IpAddr, scenario: Option<Scenario>, ear: Ear) -> io::Result<Media> {
        let socket = Arc::new(UdpSocket::bind(SocketAddr::new(ip, 0)).await?);
        let local = socket.local_addr()?;
        let (remote, remote_seen) = watch::channel(None);
        let listener = tokio::spawn(listen(Arc::clone(&socket), local, ear.clone()));
        let (socket, socket_seen) = watch::channel(socket);
        let talker = tokio::spawn(talk(socket_seen, remote_seen, scenario, ear.tap.clone()));
        Ok(Media { local, socket, next: None, remote, ear, tasks: vec![listener, talker] })
    }

    /// Opens another socket and listens there; talking moves there with the next [`Media::send_to`].
    pub(super) async fn move_away(&mut self) -> io::Result<()> {
        let socket = Arc::new(UdpSocket::bind(SocketAddr::new(self.local.ip(), 0)).await?);
        self.local = socket.local_addr()?;
        self.tasks.push(tokio::spawn(listen(Arc::clone(&socket), self.local, self.ear.clone())));
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

async fn listen(socket: Arc<UdpSocket>, local: SocketAddr, ear: Ear) {
    let mut buffer = vec![0; DATAGRAM_BYTES_MAX];
    loop {
        // An error here is an ICMP message about what was sent; the socket lives on.
        let Ok((length, from)) = socket.recv_from(&mut buffer).await else { continue };
        ear.received.fetch_add(1, Ordering::Relaxed);
        ear.heard.fetch_add(1, Ordering::Relaxed);
        if let (Some(tap), Some(bytes)) = (&ear.tap, buffer.get(..length)) {
            tap.note(from, local, bytes);
        }
    }
}

async fn talk(
    socket: watch::Receiver<Arc<UdpSocket>>,
    mut remote: watch::Receiver<Option<SocketAddr>>,
    scenario: Option<Scenario>,
    tap: Option<Tap>,
) {
    let Some(scenario) = scenario else { return };
    if remote.wait_for(Option::is_some).await.is_err() {
        return;
    }
    let start = Instant::now();
    let mut datagram = Vec::new();
    for packet in Simulation::new(&scenario) {
        let due = start + Duration::from_micros(u64::try_from(packet.at.0).unwrap_or_default());
        tokio::time::sleep_until(due).await;
        packet.write(&mut datagram);
        let Some(to) = *remote.borrow() else { continue };
        let socket = Arc::clone(&socket.borrow());
        // The time is taken as near to the sending as can be: a tap shall see what the peer sees.
        let at = monotonic_wall();
        // What the system refuses is lost like on any network.
        if socket.try_send_to(&datagram, to).is_err() {
            let _ = socket.send_to(&datagram, to).await;
        }
        if let (Some(tap), Ok(local)) = (&tap, socket.local_addr()) {
            tap.note_at(at, local, to, &datagram);
        }
    }
}

/// The largest datagram that a phone takes.
const DATAGRAM_BYTES_MAX: usize = 2_048;
