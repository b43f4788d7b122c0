//! `sidetone check`: checks whether `sidetone serve` would start with this configuration on this machine. It creates
//! and changes nothing, and does not disturb a running engine. With `--call` it places a call through the running
//! engine.

use std::fmt::Write as _;
use std::io::{self, Write as _};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, UdpSocket};
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
    // Each address separately, so that every address that cannot be bound is reported.
    findings.extend(config.sip.listen.iter().map(|listener| sip(listener, engine)));
    findings.extend(keys_in_clear(config).await);
    findings.extend(letters(config));
    findings.push(recordings(config));
    findings.push(http(config, engine));
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
    if dir.exists() && !dir.is_dir() {
        return Finding::Problem(format!(
            "[node] data_dir {shown}: is not a directory; name one, or move the file away"
        ));
    }
    match not_writable(dir) {
        None => Finding::Well(match engine {
            None => format!("data_dir {shown}"),
            Some(RunningEngine { process: Some(process) }) => {
                format!("data_dir {shown}, an engine runs with it: process {}", process.pid)
            }
            Some(RunningEngine { process: None }) => {
                format!("data_dir {shown}, an engine of another user runs with it")
            }
        }),
        Some(obstacle) => Finding::Problem(format!(
            "[node] data_dir {shown}: {} cannot be written to; choose another one or change its owner",
            obstacle.display()
        )),
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
    if let Some(obstacle) = not_writable(disk.dir()) {
        return Finding::Warning(format!(
            "[node] data_dir: recordings cannot be written, {} is read-only for us; change its owner",
            obstacle.display()
        ));
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
        && let Some(obstacle) = not_writable(path)
    {
        return Finding::Problem(format!(
            "[database] url {location}: {} cannot be written to; choose another file or change its owner",
            obstacle.display()
        ));
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

fn sip(listener: &Listener, engine: Option<&RunningEngine>) -> Finding {
    let bound = match listener.transport {
        Transport::Udp => UdpTransport::bind(&[listener.address]).map(drop).map_err(|error| error.source),
        _ => TcpListener::bind(listener.address).map(drop),
    };
    let key = format!("[sip] listen {listener}");
    address(bound, (listener.transport, listener.address), &key, format!("sip {listener}"), engine)
}

fn http(config: &Config, engine: Option<&RunningEngine>) -> Finding {
    let listen = config.http.listen;
    let bound = TcpListener::bind(listen).map(drop);
    let key = format!("[http] listen {listen}");
    address(
        bound,
        (Transport::Tcp, listen),
        &key,
        format!("http {}://{listen}", config.http.scheme()),
        engine,
    )
}

/// The result of binding an address.
fn address(
    bound: io::Result<()>,
    (transport, address): (Transport, SocketAddr),
    key: &str,
    shown: String,
    engine: Option<&RunningEngine>,
) -> Finding {
    let Err(error) = bound else { return Finding::Well(shown) };
    if error.kind() != io::ErrorKind::AddrInUse {
        return Finding::Problem(format!("{key}: {error}; {}", bind_advice(&error, address.port())));
    }
    match holder(transport, address, engine) {
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
        Some(example) => Finding::Warning(format!(
            "[media] ports {first}-{last}: {} of {} on {host} cannot be bound, the first is {example}; calls get the \
             others; choose another range or stop what uses them",
            taken.len(),
            ports.len(),
        )),
    });
    findings
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

/// Returns what prevents writing to `path`: itself, or the nearest existing directory above it.
fn not_writable(path: &Path) -> Option<PathBuf> {
    let existing = path.ancestors().find(|ancestor| ancestor.exists()).filter(|a| !a.as_os_str().is_empty());
    let existing = existing.unwrap_or(Path::new("."));
    access(existing, AccessFlags::W_OK).is_err().then(|| existing.to_path_buf())
}

/// Connections, the database, the journal, the log.
const OTHER_FILES: u64 = 1_200;
