//! The switch and the relay according to the configuration, and their addresses.

use std::net::{IpAddr, SocketAddr};
use std::ops::RangeInclusive;
use std::sync::Arc;

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use sidetone_call::media_plan;
use sidetone_media::net::{Relay, RelayConfig, RelayError, RelayIo};
use sidetone_media::session::SessionConfig;
use sidetone_model::ids::NodeId;
use sidetone_model::trunk_address::{TrunkAddress, TrunkTransport};
use sidetone_sip::auth::Authenticator;
use sidetone_sip::dialog::SessionTimerConfig;
use sidetone_sip::edge::NodePass;
use sidetone_sip::flow::{Flow, ListenerId, Protocol};
use sidetone_sip::message::Host;
use sidetone_sip::transaction::{HostPort, LayerConfig, Local};
use sidetone_sip::transport::{Sender, local_address_towards};
use sidetone_sip::ua::Ua;
use sidetone_switch::carriers::AddressPolicy;
use sidetone_switch::conference::RoomsConfig;
use sidetone_switch::io::{Limits, Reach, Unreachable};
use sidetone_switch::machine::{Switch, SwitchConfig};
use sidetone_switch::node_entry::NodeEntries;
use sidetone_switch::routing::Directory;
use sidetone_switch::user_agent::ua_config;
use tokio::sync::Notify;

use crate::clock::instant;
use crate::config::{Config, MediaIo};
use crate::supervise::Beat;

/// The relay of calls; it signals its notices through `notices`.
pub(super) fn start_relay(
    config: &Config,
    rng: &mut StdRng,
    notices: &Arc<Notify>,
    beat: Beat,
) -> Result<Relay, RelayError> {
    let thresholds = config.media.verdict.clone();
    let audio_evidence = config.media.audio_evidence;
    let session = SessionConfig {
        strict_source: media_plan::strict_source(config.media.strict_source),
        thresholds,
        own_addresses: our_addresses(config),
        audio_evidence,
        ..SessionConfig::default()
    };
    let bind = config.sip.listen.first().map_or(IpAddr::from([0, 0, 0, 0]), |listener| listener.address.ip());
    let relay = RelayConfig {
        bind,
        ports: config.media.ports.clone(),
        workers: config.media.workers.unwrap_or(0),
        io: match config.media.io {
            MediaIo::Auto => RelayIo::Auto,
            MediaIo::Epoll => RelayIo::Epoll,
            MediaIo::IoUring => RelayIo::IoUring,
        },
        session,
        seed: rng.random(),
    };
    let notify = Arc::clone(notices);
    let relay = Relay::start(
        relay,
        Arc::new(move || {
            notify.notify_one();
            beat.beat();
        }),
    )?;
    relay.warn(true);
    if config.media.real_time
        && let Err(error) = relay.run_in_real_time()
    {
        tracing::warn!(%error, "the RTP threads have no real-time priority (LimitRTPRIO=10, or [media] real_time = false)");
    }
    Ok(relay)
}

/// This host's addresses: the local ones, and the external one.
pub(super) fn our_addresses(config: &Config) -> Vec<IpAddr> {
    let mut addresses = own_addresses();
    addresses.extend(config.sip.external_address);
    addresses
}

/// The addresses of this host's interfaces, which no remote party can reasonably advertise.
fn own_addresses() -> Vec<IpAddr> {
    let Ok(interfaces) = nix::ifaddrs::getifaddrs() else { return Vec::new() };
    interfaces
        .filter_map(|interface| interface.address)
        .filter_map(|address| {
            let v4 = address.as_sockaddr_in().map(|v4| IpAddr::V4(v4.ip()));
            v4.or_else(|| address.as_sockaddr_in6().map(|v6| IpAddr::V6(v6.ip())))
        })
        .collect()
}

/// The switch, which sends with `sender`.
pub(super) fn switch(
    config: &Config,
    node: NodeId,
    directory: Directory,
    sender: Sender,
    media_workers: usize,
    rng: &mut StdRng,
) -> Switch {
    let addresses = (config.sip.external_address, config.internal_listener());
    let reach = {
        let sender = sender.clone();
        Reach::new(move |server, address| flow_to(&sender, addresses, server, address))
    };
    let layer = LayerConfig::new(Local::new(move |flow| local_towards(&sender, addresses, flow)));
    let session_timer = config.sip.session_expires.map(|expires| SessionTimerConfig {
        expires_s: u32::try_from(expires.as_secs()).unwrap_or(u32::MAX),
        min_se_s: u32::try_from(config.sip.min_se.as_secs()).unwrap_or(u32::MAX),
    });
    let ua = Ua::new(ua_config(layer, session_timer), StdRng::from_rng(rng));
    let authenticator = Authenticator::new(rng.random(), instant()).offering(config.sip.digest.clone());
    let settings = SwitchConfig {
        node,
        limits: limits(config),
        calls_max: CALLS_MAX,
        media_ports: port_pairs(&config.media.ports),
        md5_only: config.sip.md5_only.clone(),
        reach,
        qualify: config.sip.qualify,
        trunk_addresses: AddressPolicy::new(config.sip.allow_trunk_addresses.clone(), our_addresses(config)),
        credit_warning: config.rating.warning,
        rooms: RoomsConfig::default(),
        media_workers,
        admission: config.sip.admission,
        nodes: node_entries(config),
        shares_limits: config.cluster.is_some(),
        epoch: instant(),
    };
    Switch::new(settings, ua, authenticator, Arc::new(directory), StdRng::from_rng(rng))
}

/// The number of complete pairs in a range of media ports: an even port and the odd one after it.
fn port_pairs(ports: &RangeInclusive<u16>) -> usize {
    let first = usize::from(*ports.start()).next_multiple_of(2);
    (usize::from(*ports.end()) + 1).saturating_sub(first) / 2
}

/// The settings for calls of other nodes; `None` without `[cluster] listen`.
fn node_entries(config: &Config) -> Option<NodeEntries> {
    let key = &config.cluster.as_ref()?.edge.as_ref()?.key;
    Some(NodeEntries { pass: NodePass::new(key.as_bytes()), internal: config.internal_listener()? })
}

/// The timeouts of calls.
pub(super) fn limits(config: &Config) -> Limits {
    Limits {
        call: config.sip.max_call,
        silence: config.media.timeout,
        silence_on_hold: config.media.hold_timeout,
        ..Limits::default()
    }
}

/// The flow to an address of a trunk's server.
///
/// # Errors
/// When it cannot be reached, or is one of this node's listeners.
fn flow_to(
    sender: &Sender,
    (external, internal): (Option<IpAddr>, Option<ListenerId>),
    server: &TrunkAddress,
    address: SocketAddr,
) -> Result<Flow, Unreachable> {
    let local = local_address_towards(address.ip()).map_err(|_| Unreachable::NoRoute)?;
    let is_ours = |listener: SocketAddr| {
        let here = if listener.ip().is_unspecified() { local } else { listener.ip().to_canonical() };
        listener.port() == address.port() && (here == address.ip() || external == Some(address.ip()))
    };
    let over = |protocol| sender.tcp().listeners().filter(move |(own, _)| *own == protocol);
    match server.transport {
        TrunkTransport::Preferred | TrunkTransport::Udp => {
            // The listener for other nodes is the last, and is found only if there is no other.
            let listener = sender.listener_towards(address.ip()).filter(|found| Some(*found) != internal);
            let listener = listener.ok_or(Unreachable::NoRoute)?;
            if sender.udp().listeners().any(|(_, listener)| is_ours(listener)) {
                return Err(Unreachable::Ourselves);
            }
            Ok(Flow::udp(listener, address))
        }
        TrunkTransport::Tcp if over(Protocol::Tcp).any(|(_, listener)| is_ours(listener)) => {
            Err(Unreachable::Ourselves)
        }
        TrunkTransport::Tcp => Ok(Flow::tcp_to(address)),
        TrunkTransport::Tls if over(Protocol::Tls).any(|(_, listener)| is_ours(listener)) => {
            Err(Unreachable::Ourselves)
        }
        TrunkTransport::Tls => sender.tcp().tls_to(&server.host, address).ok_or(Unreachable::NoRoute),
    }
}

/// The address in Via and Contact towards the remote end of `flow`. Other nodes use the address of the internal
/// listener.
pub(super) fn local_towards(
    sender: &Sender,
    (external, internal): (Option<IpAddr>, Option<ListenerId>),
    flow: &Flow,
) -> HostPort {
    let local = sender.local_address(flow).ok();
    let port = local.map(|local| local.port());
    let is_internal = flow.protocol == Protocol::Udp && Some(flow.listener) == internal;
    let ip = external
        .filter(|_| !flow.remote.ip().is_loopback() && !is_internal)
        .or(local.map(|local| local.ip()))
        // There is no route back to the source of a message, so the address in it does not matter.
        .unwrap_or(IpAddr::from([0, 0, 0, 0]));
    let host = match ip {
        IpAddr::V4(v4) => Host::V4(v4),
        IpAddr::V6(v6) => Host::V6(v6),
    };
    HostPort { host, port }
}

/// The limit of simultaneous calls; each takes two port pairs and some kilobytes.
const CALLS_MAX: usize = 20_000;
