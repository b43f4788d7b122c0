//! The queue to a Homer server and the task that sends it. Lossy by design: a full queue and an unreachable server
//! cost packets, which are counted, and never block a sender.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use sidetone_model::metrics::Family;
use tokio::io::AsyncWriteExt as _;
use tokio::net::{TcpStream, UdpSocket, lookup_host};
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout};

use crate::hep::packet::Packet;
use crate::hep::settings::HepSettings;
use crate::supervise::{Running, Supervisor, Task};

/// Puts packets into the queue; clones share it.
#[derive(Clone, Debug)]
pub struct HepSender {
    settings: Arc<HepSettings>,
    queue: mpsc::Sender<Vec<u8>>,
    counters: Arc<HepCounters>,
}

/// Counts since the start of the engine.
#[derive(Debug, Default)]
pub struct HepCounters {
    sent: AtomicU64,
    dropped: AtomicU64,
}

impl HepCounters {
    /// The counters as metrics for `/metrics`.
    pub fn families(&self) -> Vec<Family> {
        vec![
            Family::counter("sidetone_hep_packets_total", "HEP packets sent to the Homer server.")
                .is(self.sent.load(Relaxed)),
            Family::counter(
                "sidetone_hep_packets_dropped_total",
                "HEP packets that were lost because the Homer server was slow or away, or of RTCP without end.",
            )
            .is(self.dropped.load(Relaxed)),
        ]
    }
}

impl HepSender {
    /// Starts the task, which ends with the last sender.
    pub fn start(settings: HepSettings, supervisor: &Supervisor) -> (Self, Running) {
        let (queue, packets) = mpsc::channel(QUEUE_MAX);
        let (settings, counters) = (Arc::new(settings), Arc::new(HepCounters::default()));
        let link = Link {
            settings: Arc::clone(&settings),
            packets,
            counters: Arc::clone(&counters),
            connection: None,
            opened: None,
            is_away: false,
        };
        let task = supervisor.keep(Task::Hep, link, |link| Box::pin(link.run()));
        (HepSender { settings, queue, counters }, task)
    }

    /// Sends a packet without waiting.
    pub fn send(&self, packet: &Packet<'_>) {
        let encoded = packet.encode(self.settings.capture_id, &self.settings.password.0);
        if self.queue.try_send(encoded).is_err() {
            self.note_dropped();
        }
    }

    /// Sends a packet without waiting if half of the queue is free: parties may send any amount of RTCP, and the
    /// other half is reserved for SIP and figures.
    pub(super) fn send_spare(&self, packet: &Packet<'_>) {
        if self.queue.capacity() < QUEUE_MAX / 2 {
            return self.note_dropped();
        }
        self.send(packet);
    }

    /// Counts a packet that is not sent.
    pub(super) fn note_dropped(&self) {
        self.counters.dropped.fetch_add(1, Relaxed);
    }

    /// Returns the counters.
    pub fn counters(&self) -> Arc<HepCounters> {
        Arc::clone(&self.counters)
    }
}

/// The connection to the server.
enum Connection {
    Tcp(TcpStream),
    Udp(UdpSocket),
}

impl Connection {
    async fn write(&mut self, packet: &[u8]) -> io::Result<()> {
        match self {
            Connection::Tcp(stream) => stream.write_all(packet).await,
            Connection::Udp(socket) => socket.send(packet).await.map(drop),
        }
    }
}

struct Link {
    settings: Arc<HepSettings>,
    packets: mpsc::Receiver<Vec<u8>>,
    counters: Arc<HepCounters>,
    connection: Option<Connection>,
    /// When the connection was last opened or tried.
    opened: Option<Instant>,
    /// Whether the server is unreachable and this was logged.
    is_away: bool,
}

impl Link {
    async fn run(&mut self) {
        while let Some(packet) = self.packets.recv().await {
            let sent = self.send(&packet).await;
            let counter = if sent { &self.counters.sent } else { &self.counters.dropped };
            counter.fetch_add(1, Relaxed);
        }
    }

    async fn send(&mut self, packet: &[u8]) -> bool {
        let age = self.opened.map(|opened| opened.elapsed());
        let is_stale = matches!(self.connection, Some(Connection::Udp(_)))
            && age.is_some_and(|age| age >= RESOLVE_EVERY);
        if self.connection.is_none() && age.is_none_or(|age| age >= RETRY_AFTER) || is_stale {
            self.opened = Some(Instant::now());
            match timeout(WAIT_MAX, open(&self.settings))
                .await
                .unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
            {
                Ok(connection) => self.connection = Some(connection),
                Err(error) => self.note_failure(&error),
            }
        }
        let written = match &mut self.connection {
            None => return false,
            Some(connection) => timeout(WAIT_MAX, connection.write(packet)).await,
        };
        match written.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into())) {
            Ok(()) => {
                if std::mem::take(&mut self.is_away) {
                    tracing::info!("the Homer server takes HEP packets again");
                }
                true
            }
            Err(error) => {
                self.connection = None;
                self.note_failure(&error);
                false
            }
        }
    }

    fn note_failure(&mut self, error: &io::Error) {
        if !std::mem::replace(&mut self.is_away, true) {
            tracing::warn!(%error, "[hep] server cannot be reached; packets to it are dropped until it can");
        }
    }
}

async fn open(settings: &HepSettings) -> io::Result<Connection> {
    let mut addresses = lookup_host(&settings.server).await?;
    let address = addresses.next().ok_or(io::ErrorKind::AddrNotAvailable)?;
    if !settings.is_udp {
        return TcpStream::connect(address).await.map(Connection::Tcp);
    }
    let any = if address.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
    let socket = UdpSocket::bind(any).await?;
    socket.connect(address).await?;
    Ok(Connection::Udp(socket))
}

/// Packets that wait: one second of a busy node.
const QUEUE_MAX: usize = 4_096;
/// The pause before an unreachable server is tried again.
const RETRY_AFTER: Duration = Duration::from_secs(5);
/// How often the name of the server is looked up again.
const RESOLVE_EVERY: Duration = Duration::from_secs(60);
/// How long opening a connection and writing a packet may take.
const WAIT_MAX: Duration = Duration::from_secs(5);

#[cfg(test)]
mod tests {
    use sidetone_model::time::Timestamp;
    use tokio::io::AsyncReadExt as _;
    use tokio::net::TcpListener;

    use super::*;
    use crate::hep::packet::Kind;
    use crate::hep::packet::tests::decode;
    use crate::hep::rtcp::RtcpExport;
    use crate::hep::settings::HepPassword;

    fn settings(is_udp: bool, server: String) -> HepSettings {
        HepSettings { is_udp, server, capture_id: 7, password: HepPassword("p".to_owned()) }
    }

    fn packet(payload: &[u8]) -> Packet<'_> {
        Packet {
            kind: Kind::Sip,
            at: Timestamp::from_micros(1),
            source: ([192, 0, 2, 1], 5060).into(),
            destination: ([192, 0, 2, 2], 5060).into(),
            is_udp: true,
            correlation: "",
            payload,
        }
    }

    #[tokio::test]
    async fn packets_arrive_over_udp_and_tcp() {
        let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let server = socket.local_addr().unwrap().to_string();
        let (sender, _task) = HepSender::start(settings(true, server), &Supervisor::default());
        sender.send(&packet(b"one"));
        let mut buffer = [0; 2_048];
        let len = timeout(Duration::from_secs(30), socket.recv(&mut buffer)).await.unwrap().unwrap();
        assert_eq!(decode(&buffer[..len]).unwrap()[&15], b"one");

        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let server = listener.local_addr().unwrap().to_string();
        let (sender, _task) = HepSender::start(settings(false, server), &Supervisor::default());
        sender.send(&packet(b"two"));
        let accepted = timeout(Duration::from_secs(30), listener.accept()).await.unwrap();
        let (mut stream, _) = accepted.unwrap();
        let mut packet = vec![0; 6];
        stream.read_exact(&mut packet).await.unwrap();
        let len = usize::from(u16::from_be_bytes([packet[4], packet[5]]));
        packet.resize(len, 0);
        stream.read_exact(&mut packet[6..]).await.unwrap();
        assert_eq!(decode(&packet).unwrap()[&15], b"two");
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_that_is_away_costs_packets_and_no_time() {
        let closed = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
        let (sender, task) = HepSender::start(settings(false, closed.to_string()), &Supervisor::default());
        // The task does not run between these, so that the queue fills up.
        for _ in 0..QUEUE_MAX + 5 {
            sender.send(&packet(b"x"));
        }
        assert_eq!(sender.counters().dropped.load(Relaxed), 5);
        let counters = sender.counters();
        drop(sender);
        task.await.unwrap();
        assert_eq!(counters.dropped.load(Relaxed), QUEUE_MAX as u64 + 5);
    }

    #[tokio::test(start_paused = true)]
    async fn rtcp_fills_half_of_the_queue_and_the_rest_is_counted() {
        use sidetone_media::net::{RtcpPacket, RtcpSink as _};

        let closed = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
        let (sender, _task) = HepSender::start(settings(false, closed.to_string()), &Supervisor::default());
        let dropped = || sender.counters().dropped.load(Relaxed);
        let export = RtcpExport::new(sender.clone());
        let (source, destination) = (([192, 0, 2, 1], 4_001).into(), ([192, 0, 2, 2], 4_003).into());
        let rtcp = RtcpPacket { wall_us: 1, source, destination, bytes: &[0x80, 201, 0, 1, 0, 0, 0, 7] };
        export.take(&rtcp);
        assert_eq!(dropped(), 1, "no Call-ID yet");
        export.correlate("abc@d");
        // The task does not run between these, so that the queue fills up.
        for _ in 0..QUEUE_MAX {
            export.take(&rtcp);
        }
        let sent = QUEUE_MAX as u64 - (dropped() - 1);
        assert!((QUEUE_MAX as u64 / 2..=QUEUE_MAX as u64 / 2 + 1).contains(&sent), "{sent}");
        for _ in 0..QUEUE_MAX as u64 - sent {
            sender.send(&packet(b"INVITE"));
        }
        assert_eq!(dropped() - 1, QUEUE_MAX as u64 - sent, "SIP has the rest of the queue");
        sender.send(&packet(b"INVITE"));
        assert_eq!(dropped() - 1, QUEUE_MAX as u64 - sent + 1, "a full queue");
    }
}
