//! The settings as the program uses them, and their defaults.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::time::Duration;

use sidetone_api::HttpSettings;
use sidetone_cluster::nats::ClusterSettings;
use sidetone_media::verdict::Thresholds;
use sidetone_model::directory::{Network, StrictSource};
use sidetone_sip::admission::AdmissionConfig;
use sidetone_sip::auth::Algorithm;
use sidetone_sip::flow::{ListenerId, Protocol};
use sidetone_store::Database;

use crate::hep::HepSettings;
use crate::outbound_http::OutboundHttp;
use crate::provision::DefaultPin;
use crate::signalling::SignallingSettings;
use crate::tls::TlsFiles;

/// The whole configuration of one node, validated.
#[derive(Debug, Clone, PartialEq)]
pub struct Config {
    /// This node.
    pub node: Node,
    /// Where records and the directory are stored.
    pub database: Database,
    /// SIP listeners.
    pub sip: Sip,
    /// RTP ports and workers.
    pub media: Media,
    /// The HTTP listener.
    pub http: Http,
    /// The web panel.
    pub panel: PanelSection,
    /// Certificates.
    pub tls: TlsFiles,
    /// The hosts that callbacks and webhooks may reach.
    pub outbound_http: OutboundHttp,
    /// Rating.
    pub rating: Rating,
    /// Whether virtual agents take part in rooms.
    pub ai: Ai,
    /// Recordings of rooms.
    pub recordings: Recordings,
    /// Conference rooms.
    pub rooms: Rooms,
    /// The Homer server that SIP messages and figures are sent to.
    pub hep: Option<HepSettings>,
    /// SIP messages kept with their calls.
    pub signalling: SignallingSettings,
    /// How `sidetone tap` stores the calls it captures.
    pub tap: Tap,
    /// The log.
    pub log: Log,
    /// The cluster that this node is a member of; `None` for a standalone node.
    pub cluster: Option<ClusterSettings>,
}

/// `[tap]`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tap {
    /// The organisation of the records; `None` means the only one that exists.
    pub organisation: Option<String>,
    /// Verdict thresholds for the calls of another switch; the file contains those that differ from their
    /// defaults.
    pub verdict: Thresholds,
}

/// `[ai]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ai {
    /// Whether virtual agents take part in rooms. If not, their meetings are neither accepted nor shown.
    pub enabled: bool,
}

/// `[rooms]`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Rooms {
    /// The participant PIN of a room created without one.
    pub default_pin: DefaultPin,
}

/// `[rating]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rating {
    /// How long before the credit is used up the caller hears a tone; 0 means never.
    pub warning: Duration,
}

/// `[recordings]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Recordings {
    /// Nothing is recorded while the disk has fewer free bytes.
    pub reserve_bytes: u64,
}

/// `[node]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    /// The node's name in logs and records, unique in a cluster.
    pub name: String,
    /// The directory for database, journal, recordings and the node id.
    pub data_dir: PathBuf,
    /// How long calls may continue after SIGTERM.
    pub drain: Duration,
    /// Bytes on the disk that are reserved for the records of live calls when the disk is full.
    pub journal_reserve_bytes: u64,
    /// The load from which on calls are no longer placed for programs.
    pub busy: LoadLimits,
}

/// The load from which on `POST /calls` answers 503; 0 means no limit.
///
/// At the defaults calls are not impaired yet: phones buffer packets for 20 ms or longer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LoadLimits {
    /// Processor time of the process, in percent of all processors.
    pub cpu_pct: u32,
    /// Packets that wait for the relay, or late ticks of rooms, in percent.
    pub late_pct: u32,
}

impl Default for LoadLimits {
    fn default() -> Self {
        LoadLimits { cpu_pct: 90, late_pct: 2 }
    }
}

/// `[sip]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sip {
    /// The listeners.
    pub listen: Vec<Listener>,
    /// The address in Via, Contact and SDP; `None` means the local address towards the peer.
    pub external_address: Option<IpAddr>,
    /// The digest algorithms offered to phones, in this order.
    pub digest: Vec<Algorithm>,
    /// Prefixes of the User-Agent of phones that are offered only MD5.
    pub md5_only: Vec<String>,
    /// Addresses that names of organisations' trunks may resolve to although they are not public.
    pub allow_trunk_addresses: Vec<Network>,
    /// The name servers for trunks; empty means those of the system.
    pub dns: Vec<SocketAddr>,
    /// The origins of web pages that may open a WebSocket; empty means any.
    pub websocket_origins: Vec<String>,
    /// The rate limits of unauthenticated senders.
    pub admission: AdmissionConfig,
    /// The longest duration of an answered call, unless its organisation or trunk sets another.
    pub max_call: Duration,
    /// How often registered phones are probed; `None` sends only keep-alives.
    pub qualify: Option<Duration>,
    /// How long a dialog remains without a refresh (RFC 4028); `None` offers no session timer.
    pub session_expires: Option<Duration>,
    /// The shortest session timer that is accepted (RFC 4028 §5).
    pub min_se: Duration,
}

impl Sip {
    /// The addresses to listen on over one transport.
    pub fn listeners(&self, over: Transport) -> impl Iterator<Item = SocketAddr> {
        self.listen.iter().filter(move |listener| listener.transport == over).map(|listener| listener.address)
    }

    /// The listeners for connections: those of TCP, and of the protocols over it.
    pub fn connection_listeners(&self) -> impl Iterator<Item = (Protocol, SocketAddr)> {
        let of_connections = |listener: &&Listener| listener.transport != Transport::Udp;
        self.listen
            .iter()
            .filter(of_connections)
            .map(|listener| (listener.transport.protocol(), listener.address))
    }
}

impl Config {
    /// The addresses to listen on over UDP: those for phones and trunks, then the one for other nodes.
    pub fn datagram_listeners(&self) -> Vec<SocketAddr> {
        let internal = self.cluster.iter().filter_map(|cluster| Some(cluster.edge.as_ref()?.listen));
        self.sip.listeners(Transport::Udp).chain(internal).collect()
    }

    /// The UDP listener for the other nodes of the cluster.
    pub fn internal_listener(&self) -> Option<ListenerId> {
        self.cluster.as_ref()?.edge.as_ref()?;
        u32::try_from(self.sip.listeners(Transport::Udp).count()).ok().map(ListenerId)
    }
}

/// One SIP listener, such as `udp://0.0.0.0:5060`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Listener {
    /// The transport protocol.
    pub transport: Transport,
    /// The address to bind; port 0 takes a free one.
    pub address: SocketAddr,
}

/// The transports of this build.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transport {
    /// TCP, RFC 3261 §18.
    Tcp,
    /// TLS over TCP, RFC 3261 §26.2.1.
    Tls,
    /// UDP, RFC 3261 §18.
    Udp,
    /// WebSocket over TCP, RFC 7118.
    Ws,
    /// WebSocket over TLS, RFC 7118.
    Wss,
}

impl Transport {
    /// The transport as flows name it.
    pub const fn protocol(self) -> Protocol {
        match self {
            Transport::Tcp => Protocol::Tcp,
            Transport::Tls => Protocol::Tls,
            Transport::Udp => Protocol::Udp,
            Transport::Ws => Protocol::Ws,
            Transport::Wss => Protocol::Wss,
        }
    }

    /// Whether a listener needs a certificate.
    pub const fn is_secure(self) -> bool {
        self.protocol().is_secure()
    }
}

impl fmt::Display for Listener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = self.transport.protocol().as_str().to_ascii_lowercase();
        write!(f, "{scheme}://{}", self.address)
    }
}

/// The kernel interface of the relay's threads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MediaIo {
    /// io_uring if the system supports it, otherwise `epoll`.
    Auto,
    /// `epoll`.
    Epoll,
    /// io_uring; `epoll` with a warning if the system does not support it.
    IoUring,
}

/// `[media]`.
#[derive(Debug, Clone, PartialEq)]
pub struct Media {
    /// The ports for RTP and RTCP; pairs begin at even ports.
    pub ports: RangeInclusive<u16>,
    /// Worker threads; `None` means one per core.
    pub workers: Option<usize>,
    /// The kernel interface of the relay's threads.
    pub io: MediaIo,
    /// Which source address a leg accepts, unless its extension or trunk sets it.
    pub strict_source: StrictSource,
    /// Thresholds of the verdicts; the file contains those that differ from their defaults.
    pub verdict: Thresholds,
    /// Whether the threads of the relay request real-time priority.
    pub real_time: bool,
    /// Whether samples of G.711 are decoded, so that silence in intact packets is detected.
    pub audio_evidence: bool,
    /// Whether legs are traced: headers and times of their packets, on disk.
    pub trace: bool,
    /// How many days a trace is kept.
    pub trace_days: u32,
    /// How long both parties of a call may send nothing; `None` means no limit.
    pub timeout: Option<Duration>,
    /// The same during hold.
    pub hold_timeout: Option<Duration>,
}

/// `[http]` and `[api]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Http {
    /// The address to bind; port 0 takes a free one.
    pub listen: SocketAddr,
    /// Whether connections are encrypted, with the certificates of `[tls]`.
    pub tls: bool,
    /// Trusted proxies, and the limits of clients.
    pub settings: HttpSettings,
}

impl Http {
    /// The scheme of its URLs.
    pub fn scheme(&self) -> &'static str {
        if self.tls { "https" } else { "http" }
    }
}

/// `[panel]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PanelSection {
    /// Whether the HTTP listener serves the panel.
    pub enabled: bool,
}

/// `[log]`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Log {
    /// Which lines are written, as in `RUST_LOG`, which takes precedence; `None` means `info`.
    pub level: Option<String>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            node: Node {
                name: "node-1".to_owned(),
                data_dir: PathBuf::from(DATA_DIR),
                drain: Duration::from_secs(30),
                journal_reserve_bytes: 16 << 20,
                busy: LoadLimits::default(),
            },
            database: Database::from(&Path::new(DATA_DIR).join(DATABASE_FILE)),
            sip: Sip {
                listen: [Transport::Udp, Transport::Tcp]
                    .map(|transport| Listener {
                        transport,
                        address: SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 5060),
                    })
                    .to_vec(),
                external_address: None,
                // RFC 8760 requires the stronger one first. Common phones and test tools look only at the first
                // challenge and support only MD5; those that support more find the other one after it.
                digest: vec![Algorithm::Md5, Algorithm::Sha256],
                // baresip 1.0 fails on a challenge that contains SHA-256 at all ("Function not implemented"),
                // although RFC 8760 §2.4 requires it to use the one it supports.
                md5_only: ["baresip v0", "baresip v1", "JsSIP", "SIP.js"].map(str::to_owned).to_vec(),
                allow_trunk_addresses: Vec::new(),
                dns: Vec::new(),
                websocket_origins: Vec::new(),
                admission: AdmissionConfig::default(),
                max_call: Duration::from_secs(14_400),
                qualify: Some(Duration::from_secs(60)),
                session_expires: Some(Duration::from_secs(1_800)),
                min_se: Duration::from_secs(90),
            },
            media: Media {
                ports: 20_000..=29_999,
                workers: None,
                io: MediaIo::Epoll,
                strict_source: StrictSource::Signalling,
                verdict: Thresholds::default(),
                real_time: true,
                audio_evidence: false,
                trace: false,
                trace_days: 7,
                timeout: Some(Duration::from_secs(60)),
                hold_timeout: Some(Duration::from_secs(1_800)),
            },
            http: Http {
                listen: SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 8080),
                tls: false,
                settings: HttpSettings::default(),
            },
            panel: PanelSection { enabled: true },
            tls: TlsFiles::default(),
            outbound_http: OutboundHttp::default(),
            ai: Ai { enabled: true },
            rating: Rating { warning: Duration::from_secs(10) },
            recordings: Recordings { reserve_bytes: 256 << 20 },
            rooms: Rooms::default(),
            hep: None,
            signalling: SignallingSettings::default(),
            tap: Tap::default(),
            log: Log::default(),
            cluster: None,
        }
    }
}

const DATA_DIR: &str = "data";
/// The database's file in the data directory, unless its URL names another.
pub(super) const DATABASE_FILE: &str = "sidetone.db";
