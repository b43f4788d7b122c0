//! `sidetone check`: whether `sidetone serve` would start with this configuration on this machine. Nothing is made or
//! changed.

use std::fmt::Write as _;
use std::io::Write as _;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use nix::sys::resource::{Resource, getrlimit};
use nix::unistd::{AccessFlags, access};
use sidetone_sip::transport::UdpTransport;

use crate::cli::{EXIT_FAILED, EXIT_WRONG};
use crate::config::{Config, Listener, Transport};
use crate::dead_letters::DeadLetters;
use crate::outbound_http::Roots;
use crate::recorder::{DataDisk, Disk as _};
use crate::store::{Location, Schema, Store};

/// The arguments of `check`.
#[derive(Debug, clap::Args)]
pub struct CheckArgs {
    /// The configuration; without it sidetone.toml where that exists, else the defaults.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
}

/// Looks at everything, prints what is well to stdout and every problem to stderr.
pub fn run(args: &CheckArgs) -> ExitCode {
    let config = match Config::load(args.config.as_deref(), std::env::vars()) {
        Ok(config) => config,
        Err(error) => {
            eprintln!("sidetone: {error}");
            return ExitCode::from(EXIT_WRONG);
        }
    };
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            eprintln!("sidetone: cannot start the runtime ({error})");
            return ExitCode::from(EXIT_FAILED);
        }
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
                eprintln!("sidetone: {text}");
            }
        }
    }
    if problems == 0 {
        well.push_str("ok\n");
    }
    // A closed stdout changes nothing about what was found.
    let _ = std::io::stdout().write_all(well.as_bytes());
    if problems == 0 { ExitCode::SUCCESS } else { ExitCode::from(EXIT_FAILED) }
}

/// One thing that was looked at.
enum Finding {
    /// A line that names the thing and what it is like.
    Well(String),
    /// A line that names the key or the file, what is wrong, and what to do.
    Problem(String),
}

async fn look(config: &Config) -> Vec<Finding> {
    let mut findings = vec![data_dir(&config.node.data_dir), database(config).await];
    // Each by itself, so that every address that cannot be bound is named.
    findings.extend(config.sip.listen.iter().map(sip));
    findings.extend(letters(config));
    findings.extend([recordings(config), http(config.http.listen), media(config), open_files(config)]);
    findings.extend(authorities(config));
    findings
}

fn data_dir(dir: &Path) -> Finding {
    let shown = dir.display();
    if dir.exists() && !dir.is_dir() {
        return Finding::Problem(format!(
            "[node] data_dir {shown}: is not a directory; name one, or move the file away"
        ));
    }
    match not_writable(dir) {
        None => Finding::Well(format!("data_dir {shown}")),
        Some(obstacle) => Finding::Problem(format!(
            "[node] data_dir {shown}: {} cannot be written to; choose another one or change its owner",
            obstacle.display()
        )),
    }
}

/// What the database refused; nothing when it refused nothing.
fn letters(config: &Config) -> Option<Finding> {
    let letters = DeadLetters::below(&config.node.data_dir);
    let shown = letters.dir().map(|dir| dir.display().to_string()).unwrap_or_default();
    Some(match letters.files() {
        Ok(files) if files.is_empty() => return None,
        // The data directory is named as a problem by itself.
        Err(error) if error.kind() == std::io::ErrorKind::NotADirectory => return None,
        Ok(files) => Finding::Problem(format!(
            "{} dead letters lie in {shown}: the database refused them; `sidetone dead-letters` says why, repair the \
             cause and run `sidetone dead-letters --replay`",
            files.len()
        )),
        Err(error) => {
            Finding::Problem(format!("dead letters {shown}: cannot be read ({error}); check its owner"))
        }
    })
}

/// Where rooms are recorded to, and whether there is room.
fn recordings(config: &Config) -> Finding {
    let mut disk = DataDisk::of(&config.node.data_dir);
    let shown = disk.dir().display().to_string();
    if let Some(obstacle) = not_writable(disk.dir()) {
        return Finding::Problem(format!(
            "[node] data_dir: recordings cannot be written, {} is read-only for us; change its owner",
            obstacle.display()
        ));
    }
    let reserve = config.recordings.reserve_bytes;
    match disk.free_bytes() {
        Ok(free) if free >= reserve => Finding::Well(format!("recordings {shown}, {} MiB free", free >> 20)),
        Ok(free) => Finding::Problem(format!(
            "[recordings] reserve_mb {}: the disk of {shown} has {} MiB left and nothing would be recorded; make room \
             or keep less free",
            reserve >> 20,
            free >> 20
        )),
        Err(error) => {
            Finding::Problem(format!("recordings {shown}: the disk cannot be asked for its room ({error})"))
        }
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
        Ok(Schema::Missing) => Finding::Well(format!("database {location}, made at the first start")),
        Ok(Schema::Older) => {
            Finding::Well(format!("database {location}, brought to this version at the start"))
        }
        Ok(Schema::Newer) => Finding::Problem(format!(
            "[database] url {location}: a newer version wrote it; use that version, or another database"
        )),
        Err(error) => Finding::Problem(format!(
            "[database] url: failed to {error}; is it what the URL says, and does it let us in?"
        )),
    }
}

fn sip(listener: &Listener) -> Finding {
    let bound = match listener.transport {
        Transport::Tcp => TcpListener::bind(listener.address).map(drop),
        Transport::Udp => UdpTransport::bind(&[listener.address]).map(drop).map_err(|error| error.source),
    };
    match bound {
        Ok(()) => Finding::Well(format!("sip {listener}")),
        Err(error) => Finding::Problem(format!(
            "[sip] listen {listener}: {error}; choose another address or stop what uses it"
        )),
    }
}

fn http(address: SocketAddr) -> Finding {
    match TcpListener::bind(address) {
        Ok(_) => Finding::Well(format!("http http://{address}")),
        Err(error) => Finding::Problem(format!(
            "[http] listen {address}: {error}; choose another address or stop what uses it"
        )),
    }
}

/// Whom callbacks and webhooks trust beside those that the system does.
fn authorities(config: &Config) -> Option<Finding> {
    let file = config.outbound_http.extra_ca.as_deref()?;
    Some(match Roots::load(Some(file)) {
        Ok(_) => Finding::Well(format!("extra_ca {}", file.display())),
        Err(error) => Finding::Problem(error.to_string()),
    })
}

/// Every port is bound once, one after the other.
fn media(config: &Config) -> Finding {
    let host = config.sip.listen.first().map_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED), |sip| sip.address.ip());
    let ports = &config.media.ports;
    let (first, last) = (ports.start(), ports.end());
    if let Some(sip) = config.sip.listeners(Transport::Udp).find(|sip| ports.contains(&sip.port())) {
        return Finding::Problem(format!(
            "[media] ports {first}-{last}: udp://{} of [sip] listen is one of them; choose another range",
            sip
        ));
    }
    let taken: Vec<u16> = ports.clone().filter(|port| UdpSocket::bind((host, *port)).is_err()).collect();
    let Some(example) = taken.first() else {
        return Finding::Well(format!("media ports {first}-{last}, all free"));
    };
    Finding::Problem(format!(
        "[media] ports {first}-{last}: {} of {} on {host} are in use, the first is {example}; choose another range or \
         stop what uses them",
        taken.len(),
        ports.len(),
    ))
}

/// A socket for every media port, and what else is open.
fn open_files(config: &Config) -> Finding {
    let needed = u64::try_from(config.media.ports.len()).unwrap_or(u64::MAX).saturating_add(OTHER_FILES);
    match getrlimit(Resource::RLIMIT_NOFILE) {
        Ok((_, hard)) if hard >= needed => Finding::Well(format!("open files {hard}")),
        Ok((_, hard)) => Finding::Problem(format!(
            "open files: the system grants {hard}, and {needed} are needed when every media port is in use; raise it \
             (ulimit -Hn, LimitNOFILE=) or shorten [media] ports"
        )),
        Err(error) => Finding::Problem(format!("open files: the limit cannot be read ({error})")),
    }
}

/// What stands in the way of writing to `path`: it, or the nearest directory above it that exists.
fn not_writable(path: &Path) -> Option<PathBuf> {
    let existing = path.ancestors().find(|ancestor| ancestor.exists()).filter(|a| !a.as_os_str().is_empty());
    let existing = existing.unwrap_or(Path::new("."));
    access(existing, AccessFlags::W_OK).is_err().then(|| existing.to_path_buf())
}

/// Connections, the database, the journal, the log.
const OTHER_FILES: u64 = 1_200;
