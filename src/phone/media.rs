//! One call's RTP on a real socket: sends what a scenario says, counts what comes.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use sidetone_media::simulate::{Scenario, Simulation};
use tokio::net::UdpSocket;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use crate::phone::tap::Tap;

/// The media side of one call; dropping it ends the sending.
pub(super) struct Media {
    local: SocketAddr,
    /// Where to send; `None` before an answer and while holding.
    remote: watch::Sender<Option<SocketAddr>>,
    received: Arc<AtomicU64>,
    tasks: [JoinHandle<()>; 2],
}

impl Media {
    /// Opens a socket on `ip`. Talking begins once [`Media::send_to`] says where.
    pub(super) async fn open(
        ip: IpAddr,
        scenario: Option<Scenario>,
        tap: Option<Tap>,
    ) -> std::io::Result<Media> {
        let socket = Arc::new(UdpSocket::bind(SocketAddr::new(ip, 0)).await?);
        let local = socket.local_addr()?;
        let (remote, remote_seen) = watch::channel(None);
        let received = Arc::new(AtomicU64::new(0));
        let listener = listen(Arc::clone(&socket), local, Arc::clone(&received), tap.clone());
        let talker = talk(socket, local, remote_seen, scenario, tap);
        Ok(Media { local, remote, received, tasks: [tokio::spawn(listener), tokio::spawn(talker)] })
    }

    pub(super) fn local(&self) -> SocketAddr {
        self.local
    }

    pub(super) fn send_to(&self, remote: Option<SocketAddr>) {
        self.remote.send_replace(remote);
    }

    pub(super) fn received(&self) -> u64 {
        self.received.load(Ordering::Relaxed)
    }
}

impl Drop for Media {
    fn drop(&mut self) {
        for task in &self.tasks {
            task.abort();
        }
    }
}

async fn listen(socket: Arc<UdpSocket>, local: SocketAddr, received: Arc<AtomicU64>, tap: Option<Tap>) {
    let mut buffer = vec![0; DATAGRAM_BYTES_MAX];
    loop {
        // An error here is an ICMP message about what was sent; the socket lives on.
        let Ok((length, from)) = socket.recv_from(&mut buffer).await else { continue };
        received.fetch_add(1, Ordering::Relaxed);
        if let (Some(tap), Some(bytes)) = (&tap, buffer.get(..length)) {
            tap.note(from, local, bytes);
        }
    }
}

async fn talk(
    socket: Arc<UdpSocket>,
    local: SocketAddr,
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
        if let Some(tap) = &tap {
            tap.note(local, to, &datagram);
        }
        // What the system refuses is lost like on any network.
        let _ = socket.send_to(&datagram, to).await;
    }
}

/// The largest datagram that a phone takes.
const DATAGRAM_BYTES_MAX: usize = 2_048;
