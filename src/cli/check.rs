//! `sidetone check`: checks whether `sidetone serve` would start with this configuration on this machine. It changes
//! nothing (an empty directory that it creates as a test is removed at once) and does not disturb a running engine.
//! With `--call` it places a call through the running engine.

use std::fmt::Write as _;
use std::fs;
use std::io::{self, Write as _};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, UdpSocket};
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use nix::sys::resource::{Resource, getrlimit};
use nix::unistd::{AccessFlags, access};
use sidetone_cluster::nats::probe;
use sidetone_media::net::try_real_time;
use sidetone_model::trunk_address::{TrunkAddress, TrunkTransport};
use sidetone_sip::transport::UdpTransport;
use sidetone_store::{Location, Schema, SrtpParties, Store};

use crate::app::journal_dir;
use crate::cdr::journal::LOCK_FILE;
use crate::cli::holders::{Holder, Process, RunningEngine, holder, running_engine};
use crate::cli::self_test::{SelfTestArgs, place_call};
use crate::cli::{EXIT_FAILED, prepare};
use crate::clock::wall_clock;
use crate::config::{Config, Listener, Transport};
use crate::dead_letters::DeadLetters;
use crate::outbound_http::Roots;
use crate::process::bind_advice;
use crate::recorder::{DataDisk, Disk as _};
use crate::tls::{Remark, review, review_nodes};

/// The arguments of `check`.
#[derive(Debug, clap::Args)]
pub struct CheckArgs {
    /// The configuration file; by default sidetone.toml if it exists, else the built-in defaults.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    #[command(flatten)]
    self_test: SelfTestArgs,
}

/// Checks everything; prints correct items to stdout, every problem and warning to stderr. Fails if `serve` would not
/// start.
pub fn run(args: &CheckArgs) -> ExitCode {
    let (config, runtime) = match prepare(args.config.as_deref()) {
        Ok(prepared) => prepared,
        Err(exit) => return exit,
    };
    let findings = runtime.block_on(look(&config));
    let mut well = String::new();
    let mut problems = 0;
    for finding in findings {
        match finding {
            // Writing to a string cannot fail.
            Finding::Well(text) => drop(writeln!(well, "{text}")),
            Finding::Problem(text) => {
                problems += 1;
                crate::cli::tell!("sidetone: {text}");
            }
            Finding::Warning(text) => crate::cli::tell!("sidetone: warning: {text}"),
        }
    }
    // A closed stdout does not change the result.
    let _ = std::io::stdout().write_all(well.as_bytes());
    if problems == 0
        && args.self_test.call
        && let Err(problem) = runtime.block_on(place_call(&config, &args.self_test))
    {
        problems += 1;
        crate::cli::tell!("sidetone: {problem}");
    }
    if problems == 0 {
        let _ = std::io::stdout().write_all(b"ok\n");
    }
    if problems == 0 { ExitCode::SUCCESS } else { ExitCode::from(EXIT_FAILED) }
}

/// The result of one check.
enum Finding {
    /// `serve` would not start: a line with the key or the file, the problem, and a remedy.
    Problem(String),
    /// `serve` starts, but something is missing: a line with the missing item, and a remedy.
    Warning(String),
    /// A line with the checked item and its state.
    Well(String),
}

impl From<Remark> for Finding {
    fn from(remark: Remark) -> Self {
        match remark {
            Remark::Problem(text) => Finding::Problem(text),
            Remark::Warning(text) => Finding::Warning(text),
            Remark::Well(text) => Finding::Well(text),
        }
    }
}

async fn look(config: &Config) -> Vec<Finding> {
    let engine = running_engine(&journal_dir(config).join(LOCK_FILE));
    let engine = engine.as_ref();
    let mut findings = vec![data_dir(&config.node.data_dir, engine), database(config).await];
    let mut addresses = addresses(config, engine);
    let http = addresses.pop();
    findings.extend(addresses);
    findings.extend(keys_in_clear(config).await);
    findings.extend(letters(config));
    findings.push(recordings(config));
    findings.extend(http);
    findings.extend(review(&config.tls, wall_clock()).into_iter().map(Finding::from));
    findings.extend(media(config, engine));
    findings.push(open_files(config));
    findings.extend(real_time(config));
    findings.extend(authorities(config));
    findings.extend(cluster(config).await);
    findings
}

fn data_dir(dir: &Path, engine: Option<&RunningEngine>) -> Finding {
    let shown = dir.display();
    match obstacle(dir, true) {
        None => Finding::Well(match engine {
            None => format!("data_dir {shown}"),
            Some(RunningEngine { process: Some(process) }) => {
                format!("data_dir {shown}, an engine runs with it: process {}", process.pid)
            }
            Some(RunningEngine { process: None }) => {
                format!("data_dir {shown}, an engine of another user runs with it")
            }
        }),
        Some(obstacle) => Finding::Problem(format!("[node] data_dir {shown}: {obstacle}")),
    }
}

/// The dead letters; nothing if there are none.
fn letters(config: &Config) -> Option<Finding> {
    let letters = DeadLetters::below(&config.node.data_dir);
    let shown = letters.dir().map(|dir| dir.display().to_string()).unwrap_or_default();
    Some(match letters.files() {
        Ok(files) if files.is_empty() => return None,
        // The data directory is reported as a separate problem.
        Err(error) if error.kind() == std::io::ErrorKind::NotADirectory => return None,
        Ok(files) => Finding::Warning(format!(
            "{} dead letters lie in {shown}: the database refused them; `sidetone dead-letters` says why, repair the \
             cause and run `sidetone dead-letters --replay`",
            files.len()
        )),
        Err(error) => {
            Finding::Warning(format!("dead letters {shown}: cannot be read ({error}); check its owner"))
        }
    })
}

/// The directory of recordings, and its free space.
fn recordings(config: &Config) -> Finding {
    let mut disk = DataDisk::of(&config.node.data_dir);
    let shown = disk.dir().display().to_string();
    // An obstacle of the data directory is reported as a separate problem.
    if obstacle(&config.node.data_dir, true).is_none()
        && let Some(obstacle) = obstacle(disk.dir(), true)
    {
        return Finding::Warning(format!("[node] data_dir: recordings cannot be written: {obstacle}"));
    }
    let reserve = config.recordings.reserve_bytes;
    match disk.free_bytes() {
        Ok(free) if free >= reserve => Finding::Well(format!("recordings {shown}, {} MiB free", free >> 20)),
        Ok(free) => Finding::Warning(format!(
            "[recordings] reserve_mb {}: the disk of {shown} has {} MiB left and nothing would be recorded; make room \
             or keep less free",
            reserve >> 20,
            free >> 20
        )),
        Err(error) => Finding::Warning(format!(
            "recordings {shown}: the free space of the disk cannot be read ({error})"
        )),
    }
}

async fn database(config: &Config) -> Finding {
    let location = &config.database.location;
    if let Location::Sqlite(path) = location
        && let Some(obstacle) = obstacle(path, false)
    {
        return Finding::Problem(format!("[database] url {location}: {obstacle}"));
    }
    match Store::probe(&config.database).await {
        Ok(Schema::Current) => Finding::Well(format!("database {location}")),
        Ok(Schema::Missing) => {
            Finding::Well(format!("database {location}, will be created at the first start"))
        }
        Ok(Schema::Older) => {
            Finding::Well(format!("database {location}, will be migrated to this version at the start"))
        }
        Ok(Schema::Newer) => Finding::Problem(format!(
            "[database] url {location}: a newer version wrote it; use that version, or another database"
        )),
        Err(error) => Finding::Problem(format!(
            "[database] url: failed to {error}; check that the URL is right and that its user may use the database"
        )),
    }
}

/// Warns of SRTP keys that are sent in SDP without TLS (RFC 4568 §7.3). A database that cannot be read, or is of
/// another version, is reported as a separate finding.
async fn keys_in_clear(config: &Config) -> Vec<Finding> {
    let Ok(Schema::Current) = Store::probe(&config.database).await else { return Vec::new() };
    let Ok(SrtpParties { extensions, trunks }) = Store::srtp_parties(&config.database).await else {
        return Vec::new();
    };
    let mut listeners = config.sip.listen.iter();
    let has_tls = listeners.any(|listener| matches!(listener.transport, Transport::Tls | Transport::Wss));
    let mut findings = Vec::new();
    if extensions > 0 && !has_tls {
        findings.push(Finding::Warning(format!(
            "extensions with srtp ({extensions}): their keys travel in SDP, and no address of [sip] listen has TLS: add \
             tls://… or wss://…, and let the phones use it"
        )));
    }
    let is_clear = |address: &Option<String>| match address {
        Some(address) => address.parse::<TrunkAddress>().is_ok_and(|it| it.transport != TrunkTransport::Tls),
        None => !has_tls,
    };
    let clear: Vec<&str> =
        trunks.iter().filter(|(_, address)| is_clear(address)).map(|(name, _)| name.as_str()).collect();
    if !clear.is_empty() {
        findings.push(Finding::Warning(format!(
            "trunks with srtp and without TLS ({}): their keys travel in SDP; write ;transport=tls after the address",
            clear.join(", ")
        )));
    }
    findings
}

/// An address of the configuration.
struct Address {
    transport: Transport,
    address: SocketAddr,
    /// Whether a listener on all IPv6 addresses has the IPv4 ones, too.
    is_dual: bool,
    /// The key with the address.
    key: String,
    shown: String,
}

impl Address {
    /// Whether both cannot be bound at the same time.
    fn clashes(&self, other: &Address) -> bool {
        let is_datagram = |it: &Address| it.transport == Transport::Udp;
        let port = self.address.port();
        if port == 0 || port != other.address.port() || is_datagram(self) != is_datagram(other) {
            return false;
        }
        let (ours, theirs) = (self.address.ip().to_canonical(), other.address.ip().to_canonical());
        let has_all = |it: &Address, ip: IpAddr| it.is_dual && ip.is_ipv6() && ip.is_unspecified();
        ours == theirs
            || has_all(self, ours)
            || has_all(other, theirs)
            || ours.is_ipv4() == theirs.is_ipv4() && (ours.is_unspecified() || theirs.is_unspecified())
    }

    /// Binds it for a moment.
    fn bind(&self) -> io::Result<()> {
        match self.transport {
            Transport::Udp => UdpTransport::bind(&[self.address]).map(drop).map_err(|error| error.source),
            _ => TcpListener::bind(self.address).map(drop),
        }
    }

    /// Whether it can be bound beside the `earlier` ones.
    fn check(&self, earlier: &[Address], engine: Option<&RunningEngine>) -> Finding {
        let Address { transport, address, key, shown, .. } = self;
        if let Some(other) = earlier.iter().find(|other| self.clashes(other)) {
            return Finding::Problem(format!(
                "{key}: {} has this port already; leave one of them out or choose another port",
                other.key
            ));
        }
        let Err(error) = self.bind() else { return Finding::Well(shown.clone()) };
        if error.kind() != io::ErrorKind::AddrInUse {
            return Finding::Problem(format!("{key}: {error}; {}", bind_advice(&error, address.port())));
        }
        match holder(*transport, *address, engine) {
            Holder::Engine => Finding::Well(format!("{shown}, in use by the running engine")),
            Holder::Other(Process { pid, name }) => Finding::Problem(format!(
                "{key}: is in use by {name} (process {pid}); stop that program or choose another address"
            )),
            Holder::Unseen => Finding::Problem(format!(
                "{key}: is in use by a process of another user, which root sees with `ss -lnptu`; stop that program or \
                 choose another address"
            )),
        }
    }
}

/// Every address separately, so that each one that cannot be bound is reported; the last is that of HTTP.
fn addresses(config: &Config, engine: Option<&RunningEngine>) -> Vec<Finding> {
    let mut all: Vec<Address> = config.sip.listen.iter().map(|listener| sip(config, listener)).collect();
    let edge = config.cluster.as_ref().and_then(|cluster| cluster.edge.as_ref());
    all.extend(edge.map(|edge| Address {
        transport: if edge.tls.is_some() { Transport::Tls } else { Transport::Udp },
        address: edge.listen,
        is_dual: false,
        key: format!("[cluster] listen {}", edge.listen),
        shown: format!("sip between nodes {}", edge.listen),
    }));
    let listen = config.http.listen;
    all.push(Address {
        transport: Transport::Tcp,
        address: listen,
        is_dual: true,
        key: format!("[http] listen {listen}"),
        shown: format!("http {}://{listen}", config.http.scheme()),
    });
    let parts = (0..all.len()).filter_map(|at| all.split_at_checked(at));
    parts.filter_map(|(earlier, rest)| Some(rest.first()?.check(earlier, engine))).collect()
}

/// A listener on all IPv6 addresses has the IPv4 ones, too, unless that port has its own IPv4 listener.
fn sip(config: &Config, listener: &Listener) -> Address {
    let others: Vec<SocketAddr> = match listener.transport {
        Transport::Udp => config.datagram_listeners(),
        _ => config.sip.connection_listeners().map(|(_, address)| address).collect(),
    };
    let has_v4 = others.iter().any(|other| other.is_ipv4() && other.port() == listener.address.port());
    Address {
        transport: listener.transport,
        address: listener.address,
        is_dual: !has_v4,
        key: format!("[sip] listen {listener}"),
        shown: format!("sip {listener}"),
    }
}

/// The authorities that callbacks and webhooks trust in addition to the system's.
fn authorities(config: &Config) -> Option<Finding> {
    let file = config.outbound_http.extra_ca.as_deref()?;
    Some(match Roots::load(Some(file)) {
        Ok(_) => Finding::Well(format!("extra_ca {}", file.display())),
        Err(error) => Finding::Problem(error.to_string()),
    })
}

/// Whether NATS answers, and which uses of it are unsafe without encryption.
async fn cluster(config: &Config) -> Vec<Finding> {
    let Some(settings) = &config.cluster else { return Vec::new() };
    let mut findings = Vec::new();
    if settings.is_open() {
        findings.push(Finding::Warning(format!(
            "[cluster] nats {settings}: passwords and messages travel without TLS; use tls://, or a network that only the \
             nodes can read"
        )));
    }
    findings.extend(settings.edge.iter().flat_map(|edge| match &edge.tls {
        Some(files) => {
            let remarks = review_nodes(files, (&config.node.name, edge.listen), wall_clock());
            remarks.into_iter().map(Finding::from).collect()
        }
        None => vec![Finding::Well(format!(
            "SIP between nodes over UDP at {}, which is not encrypted: for TLS set [cluster] tls_certificate, tls_key and \
             tls_authority",
            edge.listen
        ))],
    }));
    findings.push(match probe(settings.clone()).await {
        Ok(()) => Finding::Well(format!("cluster {} at {settings}", settings.name)),
        // The node starts, and joins once NATS answers.
        Err(error) => Finding::Warning(format!("{error}; the node would start and see no other node")),
    });
    findings
}

/// The port range; every port is bound once, one after the other, unless an engine uses them.
fn media(config: &Config, engine: Option<&RunningEngine>) -> Vec<Finding> {
    let host = config.sip.listen.first().map_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED), |sip| sip.address.ip());
    let ports = &config.media.ports;
    let (first, last) = (ports.start(), ports.end());
    let pairs = ports.clone().filter(|port| port % 2 == 0 && port < last).count();
    if pairs == 0 {
        return vec![Finding::Problem(format!(
            "[media] ports {first}-{last}: holds no pair of an even port and the odd one above it; choose a longer range"
        ))];
    }
    let mut findings = Vec::new();
    if let Some(sip) = config.sip.listeners(Transport::Udp).find(|sip| ports.contains(&sip.port())) {
        findings.push(Finding::Warning(format!(
            "[media] ports {first}-{last}: udp://{sip} of [sip] listen is one of them, and no call gets that port; \
             choose another range"
        )));
    }
    if engine.is_some() {
        findings.push(Finding::Well(format!(
            "media ports {first}-{last}, not checked: the running engine uses them"
        )));
        return findings;
    }
    let taken: Vec<u16> = ports.clone().filter(|port| UdpSocket::bind((host, *port)).is_err()).collect();
    findings.push(match taken.first() {
        None => Finding::Well(format!("media ports {first}-{last}, all free")),
        Some(example) if !has_free_pair(ports, &taken) => Finding::Warning(format!(
            "[media] ports {first}-{last}: no pair of an even port and the odd one above it can be bound on {host} ({} of \
             {} ports are taken, the first is {example}), and no call gets audio; choose another range or stop what uses \
             them",
            taken.len(),
            ports.len(),
        )),
        Some(example) => Finding::Warning(format!(
            "[media] ports {first}-{last}: {} of {} on {host} cannot be bound, the first is {example}; calls get the \
             others; choose another range or stop what uses them",
            taken.len(),
            ports.len(),
        )),
    });
    findings
}

/// Whether a call could get ports; `taken` is in order.
fn has_free_pair(ports: &RangeInclusive<u16>, taken: &[u16]) -> bool {
    let is_free = |port: u16| ports.contains(&port) && taken.binary_search(&port).is_err();
    ports.clone().any(|port| port % 2 == 0 && is_free(port) && port.checked_add(1).is_some_and(is_free))
}

/// A socket for every media port, and other open files.
fn open_files(config: &Config) -> Finding {
    let needed = u64::try_from(config.media.ports.len()).unwrap_or(u64::MAX).saturating_add(OTHER_FILES);
    match getrlimit(Resource::RLIMIT_NOFILE) {
        Ok((_, hard)) if hard >= needed => Finding::Well(format!("open files {hard}")),
        Ok((_, hard)) => Finding::Warning(format!(
            "open files: the system grants {hard}, and {needed} are needed when every media port is in use; raise it \
             (ulimit -Hn, LimitNOFILE=) or shorten [media] ports"
        )),
        Err(error) => Finding::Warning(format!("open files: the limit cannot be read ({error})")),
    }
}

/// Whether the RTP threads get the configured priority.
fn real_time(config: &Config) -> Option<Finding> {
    config.media.real_time.then(|| match try_real_time() {
        Ok(()) => Finding::Well("RTP threads get real-time priority".to_owned()),
        Err(error) => Finding::Warning(format!(
            "[media] real_time: the system refuses it ({error}), so other programs on this host may delay audio; allow \
             it (LimitRTPRIO=10 in systemd, ulimit -r 10), or set it to false"
        )),
    })
}

/// Returns what prevents writing to `path`, a directory or a file that may not exist yet, and a remedy.
fn obstacle(path: &Path, is_dir: bool) -> Option<String> {
    let existing = path.ancestors().find(|ancestor| ancestor.exists()).filter(|a| !a.as_os_str().is_empty());
    let existing = existing.unwrap_or(Path::new("."));
    let shown = existing.display();
    let remedy = if is_dir {
        "choose another directory or change its owner"
    } else {
        "choose another file or change its owner"
    };
    if existing.is_dir() {
        // Read-only file systems and /proc refuse what the permissions allow.
        let tried = existing.join(format!(".sidetone-check-{}", std::process::id()));
        return match fs::create_dir(&tried).and_then(|()| fs::remove_dir(&tried)) {
            Ok(()) => None,
            // The engine starts with a full disk.
            Err(error)
                if matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded) =>
            {
                None
            }
            Err(error) => Some(format!("{shown} cannot be written to ({error}); {remedy}")),
        };
    }
    if is_dir || existing != path {
        return Some(format!("{shown} is not a directory; choose another one, or move the file away"));
    }
    let refused = access(existing, AccessFlags::W_OK).err()?;
    Some(format!("{shown} cannot be written to ({}); {remedy}", refused.desc()))
}

/// Connections, the database, the journal, the log.
const OTHER_FILES: u64 = 1_200;
