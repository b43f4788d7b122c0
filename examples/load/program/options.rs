//! The command line.

use std::net::SocketAddrV4;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::program::error::LoadError;
use crate::program::process::Watch;
use crate::program::site::{DOMAIN, FIRST_EXTENSION, NUMBER_PREFIX, PASSWORD};

/// Generates SIP and RTP at a fixed rate, and shows what that costs a process.
///
/// Work is begun by the clock, whatever became of the work before. The carrier has addresses in 127.80.0.0/16, the phones in
/// 127.81.0.0/16; nothing leaves this machine. Exit status: 0 when everything succeeded, 2 when some of it failed, 1 when
/// there is no report.
#[derive(Debug, Parser)]
#[command(name = "load", after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// What to do.
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Relays datagrams between pairs of ports with as little work as possible, as a measure of other relays
    Bare(BareOptions),
    /// Places calls over the trunk to registered phones, holds and ends them
    Calls(CallsOptions),
    /// Kills an engine in the middle of calls, starts it again, and looks for the record of each answered call
    Crash(CrashOptions),
    /// Writes the configuration and the apply file of an engine that the other commands can call
    Provision(ProvisionOptions),
    /// Registers phones with digest
    Register(RegisterOptions),
    /// Sets up calls and sends RTP packets through them
    Relay(RelayOptions),
}

/// Whom the load is for.
#[derive(Args, Clone, Debug)]
pub(crate) struct Target {
    /// Where SIP requests go
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:5060")]
    pub(crate) engine: SocketAddrV4,
    /// Where the phones register, when that is another node of the cluster
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub(crate) registrar: Option<SocketAddrV4>,
    /// SIP domain of the phones
    #[arg(long, default_value = DOMAIN)]
    pub(crate) domain: String,
    /// Password of every phone
    #[arg(long, default_value = PASSWORD)]
    pub(crate) password: String,
    /// What stands before an extension in the number that the carrier calls; empty for none
    #[arg(long, default_value = NUMBER_PREFIX)]
    pub(crate) number_prefix: String,
    /// Number of the first phone
    #[arg(long, default_value_t = FIRST_EXTENSION)]
    pub(crate) first_extension: u32,
}

/// The process whose cost is shown, and how.
#[derive(Args, Clone, Debug)]
pub(crate) struct Watched {
    /// Show what these processes use; several count as one
    #[arg(long, value_name = "PID", value_delimiter = ',')]
    pid: Vec<u32>,
    /// Show what all processes of this name use
    #[arg(long, value_name = "NAME")]
    process: Option<String>,
    /// Print the figures as one JSON object
    #[arg(long)]
    json: bool,
}

/// Options of `calls`.
#[derive(Args, Clone, Debug)]
pub(crate) struct CallsOptions {
    /// Whom the load is for.
    #[command(flatten)]
    pub(crate) target: Target,
    /// Which process is watched.
    #[command(flatten)]
    pub(crate) watched: Watched,
    /// New calls per second
    #[arg(long, value_name = "NUMBER", default_value = "100", value_parser = rate)]
    pub(crate) rate: f64,
    /// How long new calls are placed
    #[arg(long, default_value = "10", value_parser = seconds)]
    pub(crate) seconds: Duration,
    /// How long each call is up, in seconds
    #[arg(long, value_name = "SECONDS", default_value = "1", value_parser = seconds)]
    pub(crate) hold: Duration,
    /// How long each phone rings, in seconds
    #[arg(long, value_name = "SECONDS", default_value = "0", value_parser = seconds)]
    pub(crate) ring: Duration,
    /// Do not send 100 Trying from the phones
    #[arg(long)]
    pub(crate) no_trying: bool,
    /// Phones that are called in turn
    #[arg(long, value_name = "NUMBER", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) phones: u32,
    /// Do not register the phones first: they are still registered
    #[arg(long)]
    pub(crate) skip_registration: bool,
    /// Registrations per second before the calls
    #[arg(long, value_name = "NUMBER", default_value = "200", value_parser = rate)]
    pub(crate) register_rate: f64,
    /// Addresses of the carrier; one for every 250 calls a second when left out
    #[arg(long, value_name = "NUMBER")]
    pub(crate) trunk_addresses: Option<usize>,
    /// SIP sockets of the phones
    #[arg(long, value_name = "NUMBER", default_value_t = 8)]
    pub(crate) phone_sockets: usize,
    /// Pairs of sockets for RTP on either side
    #[arg(long, value_name = "NUMBER", default_value_t = 8)]
    pub(crate) media_sockets: usize,
    /// Send RTP both ways while a call is up, 50 packets a second
    #[arg(long)]
    pub(crate) rtp: bool,
}

/// Options of `crash`.
#[derive(Args, Clone, Debug)]
pub(crate) struct CrashOptions {
    /// Program that is provisioned, started and killed
    #[arg(long, value_name = "FILE", default_value = "target/release/sidetone")]
    pub(crate) sidetone: PathBuf,
    /// Empty folder for its configuration, data and log
    #[arg(long)]
    pub(crate) dir: PathBuf,
    /// New calls per second
    #[arg(long, value_name = "NUMBER", default_value = "100", value_parser = rate)]
    pub(crate) rate: f64,
    /// How long new calls are placed
    #[arg(long, default_value = "30", value_parser = seconds)]
    pub(crate) seconds: Duration,
    /// When the engine is killed, in seconds
    #[arg(long, value_name = "SECONDS", default_value = "15", value_parser = seconds)]
    pub(crate) kill_after: Duration,
    /// How long each call is up, in seconds
    #[arg(long, value_name = "SECONDS", default_value = "1", value_parser = seconds)]
    pub(crate) hold: Duration,
    /// Phones that are called in turn
    #[arg(long, value_name = "NUMBER", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) phones: u32,
    /// Address of SIP
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:5060")]
    pub(crate) sip: SocketAddrV4,
    /// Address of the API
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:8080")]
    pub(crate) http: SocketAddrV4,
    /// Database; SQLite below the folder when left out
    #[arg(long, value_name = "URL")]
    pub(crate) database_url: Option<String>,
    /// Print the figures as one JSON object
    #[arg(long)]
    json: bool,
}

/// Options of `register`.
#[derive(Args, Clone, Debug)]
pub(crate) struct RegisterOptions {
    /// Whom the load is for.
    #[command(flatten)]
    pub(crate) target: Target,
    /// Which process is watched.
    #[command(flatten)]
    pub(crate) watched: Watched,
    /// Registrations per second; each is two requests, unless nonces are used again
    #[arg(long, value_name = "NUMBER", default_value = "500", value_parser = rate)]
    pub(crate) rate: f64,
    /// How long phones register
    #[arg(long, default_value = "10", value_parser = seconds)]
    pub(crate) seconds: Duration,
    /// Phones that register in turn
    #[arg(long, value_name = "NUMBER", default_value_t = 1_000, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) extensions: u32,
    /// Addresses and ports that the phones have
    #[arg(long, value_name = "NUMBER", default_value_t = 64, value_parser = clap::builder::RangedU64ValueParser::<usize>::new().range(1..=60_000))]
    pub(crate) sources: usize,
    /// Use a nonce again, with a higher count, until it is refused
    #[arg(long)]
    pub(crate) reuse_nonce: bool,
    /// Registrations per second before the measurement, one for each phone; as --rate when left out
    #[arg(long, value_name = "NUMBER", value_parser = rate)]
    pub(crate) register_rate: Option<f64>,
}

/// What packets go through.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Through {
    /// `load bare`
    Bare,
    /// rtpengine, over its NG protocol
    Ng,
    /// calls over SIP
    Sip,
}

/// Options of `relay`.
#[derive(Args, Clone, Debug)]
pub(crate) struct RelayOptions {
    /// Whom the load is for.
    #[command(flatten)]
    pub(crate) target: Target,
    /// Which process is watched.
    #[command(flatten)]
    pub(crate) watched: Watched,
    /// Packets per second, of all legs together
    #[arg(long, value_name = "NUMBER", default_value = "5000", value_parser = rate)]
    pub(crate) rate: f64,
    /// How long packets are sent and measured
    #[arg(long, default_value = "10", value_parser = seconds)]
    pub(crate) seconds: Duration,
    /// How long packets are sent before that, in seconds
    #[arg(long, value_name = "SECONDS", default_value = "1", value_parser = seconds)]
    pub(crate) warm_up: Duration,
    /// Calls that are up; as many as need 50 packets a second and leg when left out
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..=20_000))]
    pub(crate) calls: Option<u32>,
    /// What packets go through
    #[arg(long, value_enum, default_value_t = Through::Sip)]
    pub(crate) through: Through,
    /// Control port of rtpengine
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:2223")]
    pub(crate) ng: SocketAddrV4,
    /// First port of `load bare`
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:22000")]
    pub(crate) bare: SocketAddrV4,
    /// Calls, and registrations before them, per second while calls are set up
    #[arg(long, value_name = "NUMBER", default_value = "50", value_parser = rate)]
    pub(crate) set_up_rate: f64,
    /// Phones that are called in turn
    #[arg(long, value_name = "NUMBER", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) phones: u32,
    /// Pairs of sockets for RTP on either side
    #[arg(long, value_name = "NUMBER", default_value_t = 8, value_parser = clap::builder::RangedU64ValueParser::<usize>::new().range(1..=1_000))]
    pub(crate) media_sockets: usize,
}

/// Options of `bare`.
#[derive(Args, Clone, Debug)]
pub(crate) struct BareOptions {
    /// First of the ports, two for each pair
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:22000")]
    pub(crate) listen: SocketAddrV4,
    /// Pairs of ports
    #[arg(long, value_name = "NUMBER", default_value_t = 100, value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) pairs: u16,
    /// When the loop ends by itself, in seconds
    #[arg(long, value_name = "SECONDS", default_value = "600", value_parser = seconds)]
    pub(crate) lifetime: Duration,
}

/// Options of `provision`.
#[derive(Args, Clone, Debug)]
pub(crate) struct ProvisionOptions {
    /// Folder for both files and for the data of the engine
    #[arg(long)]
    pub(crate) dir: PathBuf,
    /// Phones; the first thousand have a number of the public network as well
    #[arg(long, value_name = "NUMBER", default_value_t = 1_000, value_parser = clap::value_parser!(u32).range(1..=800_000))]
    pub(crate) extensions: u32,
    /// Calls that the media ports are enough for
    #[arg(long, value_name = "NUMBER", default_value_t = 2_500, value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) calls: u16,
    /// First media port
    #[arg(long, value_name = "PORT", default_value_t = 20_000)]
    pub(crate) first_port: u16,
    /// Threads of the relay; 0 is one per core
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    pub(crate) workers: u16,
    /// Address of SIP; port 0 is one of the system's choosing
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:5060")]
    pub(crate) sip: SocketAddrV4,
    /// Address of the API
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:8080")]
    pub(crate) http: SocketAddrV4,
    /// Database; SQLite below the folder when left out
    #[arg(long, value_name = "URL")]
    pub(crate) database_url: Option<String>,
}

impl Arguments {
    /// Whether the report is printed as JSON.
    pub(crate) fn wants_json(&self) -> bool {
        match &self.command {
            Command::Bare(_) | Command::Provision(_) => false,
            Command::Calls(options) => options.watched.json,
            Command::Crash(options) => options.json,
            Command::Register(options) => options.watched.json,
            Command::Relay(options) => options.watched.json,
        }
    }
}

impl Target {
    /// The provisioned phones of the engine at this address.
    pub(crate) fn of(engine: SocketAddrV4) -> Target {
        Target {
            engine,
            registrar: None,
            domain: DOMAIN.to_owned(),
            password: PASSWORD.to_owned(),
            number_prefix: NUMBER_PREFIX.to_owned(),
            first_extension: FIRST_EXTENSION,
        }
    }
}

impl Watched {
    /// Finds the processes.
    ///
    /// # Errors
    /// One of them does not run.
    pub(crate) fn watch(&self) -> Result<Watch, LoadError> {
        Watch::find(&self.pid, self.process.as_deref())
    }
}

fn rate(text: &str) -> Result<f64, String> {
    let rate: f64 = text.parse().map_err(|_| "must be a number".to_owned())?;
    if (RATE_MIN..=RATE_MAX).contains(&rate) {
        return Ok(rate);
    }
    Err(format!("must be {RATE_MIN} to {RATE_MAX}"))
}

fn seconds(text: &str) -> Result<Duration, String> {
    let seconds: f64 = text.parse().map_err(|_| "must be a number of seconds".to_owned())?;
    if (0.0..=SECONDS_MAX).contains(&seconds) {
        return Ok(Duration::from_secs_f64(seconds));
    }
    Err(format!("must be 0 to {SECONDS_MAX} seconds"))
}

const RATE_MIN: f64 = 0.01;
const RATE_MAX: f64 = 1_000_000.0;
const SECONDS_MAX: f64 = 86_400.0;

const EXAMPLES: &str = "\
Examples:
  load provision --dir /tmp/site --extensions 1000     # then run the two commands that it prints
  load calls --rate 100 --seconds 30 --hold 5 --process sidetone
  load calls --rate 20 --seconds 10 --rtp --pid 4711 --json
  load crash --sidetone target/release/sidetone --dir /tmp/crash --rate 200 --seconds 60 --kill-after 30
  load register --rate 500 --extensions 1000 --process sidetone
  load relay --rate 25000 --seconds 20 --process sidetone
  load relay --rate 25000 --through ng --ng 127.0.0.1:2223 --process rtpengine
  load bare --pairs 250 &
  load relay --rate 25000 --through bare --pid $!";

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn rates_and_durations_have_limits() {
        for (text, expected) in [
            ("0.5", Some(0.5)),
            ("1000000", Some(1e6)),
            ("0", None),
            ("-1", None),
            ("NaN", None),
            ("x", None),
        ] {
            assert_eq!(rate(text).ok(), expected, "{text}");
        }
        for (text, expected) in
            [("1.5", Some(1_500)), ("0", Some(0)), ("-1", None), ("inf", None), ("1e9", None)]
        {
            assert_eq!(seconds(text).ok().map(|found| found.as_millis()), expected, "{text}");
        }
    }
}
