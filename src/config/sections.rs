//! Reads the sections of the file into settings.

use std::net::{IpAddr, SocketAddr};
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;

use ipnet::IpNet;
use sidetone_media::verdict::{ThresholdError, Thresholds};
use sidetone_model::directory::Network;
use sidetone_model::rules;
use sidetone_sip::auth::Algorithm;
use sidetone_store::{Database, Location};
use toml::{Table, Value};

use crate::config::cluster_section::read_cluster;
use crate::config::log_level::log_filter;
use crate::config::settings::{
    Ai, Config, DATABASE_FILE, Http, Listener, Log, Media, MediaIo, Node, PanelSection, Rating, Recordings,
    Rooms, Sip, Tap, Transport,
};
use crate::config::tls_section::{read_tls, require_certificate};
use crate::fields::{Fields, Problem};
use crate::hep::{HepPassword, HepSettings, parse_server};
use crate::outbound_http::OutboundHttp;
use crate::provision::DefaultPin;
use crate::signalling::SignallingSettings;

/// Reads every section; a wrong value is added to `problems` and keeps its default.
pub(super) fn read(table: Table, problems: &mut Vec<Problem>) -> Config {
    let mut config = Config::default();
    let mut root = Fields::new("", table, problems);
    let mut section =
        |name: &'static str| root.table(name).unwrap_or_else(|| (name.to_owned(), Table::new()));
    let [
        node,
        database,
        sip,
        media,
        http,
        panel,
        tls,
        outbound_http,
        api,
        rating,
        ai,
        recordings,
        rooms,
        hep,
        signalling,
        tap,
        log,
        cluster,
    ] = [
        "node",
        "database",
        "sip",
        "media",
        "http",
        "panel",
        "tls",
        "outbound_http",
        "api",
        "rating",
        "ai",
        "recordings",
        "rooms",
        "hep",
        "signalling",
        "tap",
        "log",
        "cluster",
    ]
    .map(&mut section);
    root.finish();
    read_node(Fields::new(node.0, node.1, problems), &mut config.node);
    config.database.location = Location::Sqlite(config.node.data_dir.join(DATABASE_FILE));
    read_database(Fields::new(database.0, database.1, problems), &mut config.database);
    read_sip(Fields::new(sip.0, sip.1, problems), &mut config.sip);
    read_media(Fields::new(media.0, media.1, problems), &mut config.media);
    read_http(Fields::new(http.0, http.1, problems), &mut config.http);
    read_panel(Fields::new(panel.0, panel.1, problems), &mut config.panel);
    read_tls(Fields::new(tls.0, tls.1, problems), &mut config.tls);
    read_outbound_http(Fields::new(outbound_http.0, outbound_http.1, problems), &mut config.outbound_http);
    read_rating(Fields::new(rating.0, rating.1, problems), &mut config.rating);
    read_recordings(Fields::new(recordings.0, recordings.1, problems), &mut config.recordings);
    read_ai(Fields::new(ai.0, ai.1, problems), &mut config.ai);
    read_rooms(Fields::new(rooms.0, rooms.1, problems), &mut config.rooms);
    config.hep = read_hep(hep, problems);
    read_signalling(Fields::new(signalling.0, signalling.1, problems), &mut config.signalling);
    read_tap(Fields::new(tap.0, tap.1, problems), &mut config.tap);
    read_api(Fields::new(api.0, api.1, problems), &mut config.http);
    read_log(Fields::new(log.0, log.1, problems), &mut config.log);
    config.cluster = read_cluster(Fields::new(cluster.0, cluster.1, problems), &config.database.location);
    require_certificate(&config, problems);
    config
}

fn read_node(mut fields: Fields<'_>, node: &mut Node) {
    if let Some(name) = fields.text("name") {
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        if name.is_empty() || name.len() > NODE_NAME_LEN_MAX || !name.chars().all(plain) {
            fields.refuse::<()>("name", "must be 1 to 64 letters, digits, '-', '_' or '.'");
        } else {
            node.name = name;
        }
    }
    if let Some(data_dir) = fields.text("data_dir") {
        if data_dir.is_empty() {
            fields.refuse::<()>("data_dir", "must name a directory");
        } else {
            node.data_dir = PathBuf::from(data_dir);
        }
    }
    if let Some(seconds) = fields.integer("drain_seconds", 0..=86_400) {
        node.drain = Duration::from_secs(seconds.unsigned_abs());
    }
    if let Some(mib) = fields.integer("journal_reserve_mb", 1..=1 << 20) {
        node.journal_reserve_bytes = mib.unsigned_abs() << 20;
    }
    for (key, limit) in
        [("busy_cpu_percent", &mut node.busy.cpu_pct), ("busy_late_percent", &mut node.busy.late_pct)]
    {
        if let Some(percent) = fields.integer(key, 0..=100) {
            *limit = u32::try_from(percent).unwrap_or_default();
        }
    }
    fields.finish();
}

/// Reads the Homer server; `None` when `server` is empty or absent.
fn read_hep((path, table): (String, Table), problems: &mut Vec<Problem>) -> Option<HepSettings> {
    let mut fields = Fields::new(path, table, problems);
    let server = fields.text("server");
    let capture_id = fields.integer("capture_id", 0..=i64::from(u32::MAX));
    let password = fields.text("password").unwrap_or_default();
    if password.len() > HEP_PASSWORD_LEN_MAX {
        fields.refuse::<()>("password", "must have 512 bytes or fewer");
    }
    let has_more = capture_id.is_some_and(|id| id != i64::from(HEP_CAPTURE_ID)) || !password.is_empty();
    let server = match server.as_deref() {
        Some("") => None,
        Some(server) => parse_server(server).map_err(|message| fields.refuse::<()>("server", message)).ok(),
        None if has_more => fields.refuse("server", "is missing"),
        None => None,
    };
    fields.finish();
    let (is_udp, server) = server?;
    Some(HepSettings {
        is_udp,
        server,
        capture_id: capture_id.and_then(|id| u32::try_from(id).ok()).unwrap_or(HEP_CAPTURE_ID),
        password: HepPassword(password),
    })
}

/// The capture agent's number that Homer's own agents use by default.
const HEP_CAPTURE_ID: u32 = 2_001;
const HEP_PASSWORD_LEN_MAX: usize = 512;

fn read_signalling(mut fields: Fields<'_>, signalling: &mut SignallingSettings) {
    if let Some(days) = fields.integer("keep_days", 0..=3_650) {
        signalling.keep_days = u32::try_from(days).unwrap_or_default();
    }
    fields.finish();
}

fn read_rating(mut fields: Fields<'_>, rating: &mut Rating) {
    if let Some(seconds) = fields.integer("warning_seconds", 0..=600) {
        rating.warning = Duration::from_secs(seconds.unsigned_abs());
    }
    fields.finish();
}

fn read_recordings(mut fields: Fields<'_>, recordings: &mut Recordings) {
    if let Some(mib) = fields.integer("reserve_mb", 0..=1 << 30) {
        recordings.reserve_bytes = mib.unsigned_abs() << 20;
    }
    fields.finish();
}

fn read_ai(mut fields: Fields<'_>, ai: &mut Ai) {
    if let Some(enabled) = fields.boolean("enabled") {
        ai.enabled = enabled;
    }
    fields.finish();
}

fn read_rooms(mut fields: Fields<'_>, rooms: &mut Rooms) {
    if let Some(name) = fields.text("default_pin") {
        match DefaultPin::from_name(&name) {
            Some(default_pin) => rooms.default_pin = default_pin,
            None => {
                fields.refuse::<()>("default_pin", "must be \"empty\" or \"random6\"");
            }
        }
    }
    fields.finish();
}

fn read_tap(mut fields: Fields<'_>, tap: &mut Tap) {
    tap.organisation = fields.text("organisation").filter(|name| !name.is_empty());
    read_thresholds(&mut fields, &mut tap.verdict);
    fields.finish();
}

fn read_database(mut fields: Fields<'_>, database: &mut Database) {
    if let Some(url) = fields.text("url") {
        match url.parse() {
            Ok(location) => database.location = location,
            // The text may contain a password, so it is not repeated.
            Err(error) => {
                fields.refuse::<()>("url", error.to_string());
            }
        }
    }
    let connections = |number: i64| u32::try_from(number).unwrap_or(u32::MAX);
    if let Some(number) = fields.integer("readers_max", 1..=CONNECTIONS_MAX) {
        database.readers_max = connections(number);
    }
    if let Some(number) = fields.integer("writers_max", 1..=CONNECTIONS_MAX) {
        database.writers_max = connections(number);
    }
    if let Some(millis) = fields.integer("statement_timeout_ms", 100..=3_600_000) {
        database.statement_timeout = Duration::from_millis(millis.unsigned_abs());
    }
    fields.finish();
}

fn read_sip(mut fields: Fields<'_>, sip: &mut Sip) {
    read_listeners(&mut fields, sip);
    read_digest(&mut fields, sip);
    if let Some(networks) = read_allowed(&mut fields, "allow_trunk_addresses") {
        sip.allow_trunk_addresses = networks;
    }
    read_name_servers(&mut fields, sip);
    read_origins(&mut fields, sip);
    read_admission(&mut fields, sip);
    read_call_limits(&mut fields, sip);
    fields.finish();
}

/// Reads the addresses that SIP listens on, and the external address.
fn read_listeners(fields: &mut Fields<'_>, sip: &mut Sip) {
    if let Some(listeners) = fields.texts("listen") {
        let mut parsed = Vec::with_capacity(listeners.len());
        for text in &listeners {
            match parse_listener(text) {
                Ok(listener) => parsed.push(listener),
                Err(message) => {
                    fields.refuse::<()>("listen", message);
                }
            }
        }
        if listeners.is_empty() || listeners.len() > LISTENERS_MAX {
            fields.refuse::<()>("listen", format!("must name 1 to {LISTENERS_MAX} listeners"));
        }
        sip.listen = parsed;
    }
    if let Some(address) = fields.text("external_address").filter(|address| !address.is_empty()) {
        match address.parse::<IpAddr>() {
            Ok(ip) if !ip.is_unspecified() && !ip.is_multicast() => sip.external_address = Some(ip),
            _ => {
                fields.refuse::<()>(
                    "external_address",
                    format!("\"{address}\" must be an IP address that peers can reach, such as 203.0.113.5"),
                );
            }
        }
    }
}

/// Reads which digests are offered, and which devices are offered MD5 only.
fn read_digest(fields: &mut Fields<'_>, sip: &mut Sip) {
    if let Some(names) = fields.texts("digest") {
        sip.digest = names.iter().filter_map(|name| Algorithm::from_token(Some(name))).collect();
        let repeated = names.len() == 2 && names.first() == names.last();
        if names.is_empty() || sip.digest.len() != names.len() || names.len() > 2 || repeated {
            fields
                .refuse::<()>("digest", "must name \"SHA-256\", \"MD5\" or both, in the order to offer them");
        }
    }
    if let Some(agents) = fields.texts("md5_only") {
        if agents.iter().any(String::is_empty) {
            fields.refuse::<()>("md5_only", "must name how a User-Agent begins, such as \"baresip v1\"");
        }
        sip.md5_only = agents;
    }
}

/// Reads the name servers for trunks.
fn read_name_servers(fields: &mut Fields<'_>, sip: &mut Sip) {
    if let Some(servers) = fields.texts("dns") {
        let server = |text: &String| {
            text.parse::<SocketAddr>()
                .or_else(|_| text.parse::<IpAddr>().map(|ip| (ip, DNS_PORT).into()))
                .ok()
        };
        sip.dns = servers.iter().filter_map(server).collect();
        if sip.dns.len() != servers.len() || servers.len() > NAME_SERVERS_MAX {
            fields.refuse::<()>(
                "dns",
                format!(
                    "must name at most {NAME_SERVERS_MAX} name servers by address, such as \"192.0.2.53\""
                ),
            );
        }
    }
}

/// Reads which web pages may open a WebSocket.
fn read_origins(fields: &mut Fields<'_>, sip: &mut Sip) {
    let Some(origins) = fields.texts("websocket_origins") else { return };
    let is_origin = |text: &String| {
        let rest = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://"));
        rest.is_some_and(|host| !host.is_empty() && !host.contains(['/', ' ']))
    };
    if origins.len() > ORIGINS_MAX || !origins.iter().all(is_origin) {
        let message = format!("must name at most {ORIGINS_MAX} origins, such as \"https://phone.example\"");
        fields.refuse::<()>("websocket_origins", message);
    }
    sip.websocket_origins = origins;
}

/// Reads how many requests are served.
fn read_admission(fields: &mut Fields<'_>, sip: &mut Sip) {
    let admission = &mut sip.admission;
    let rates = [
        ("requests_per_source", &mut admission.per_source.per_second),
        ("burst_per_source", &mut admission.per_source.burst),
        ("requests_of_strangers", &mut admission.strangers_per_second),
    ];
    for (name, rate) in rates {
        if let Some(number) = fields.integer(name, 1..=REQUESTS_PER_SECOND_MAX) {
            *rate = u32::try_from(number).unwrap_or(*rate);
        }
    }
}

/// Reads the longest duration of a call, and of a dialog without a refresh.
fn read_call_limits(fields: &mut Fields<'_>, sip: &mut Sip) {
    if let Some(seconds) = fields.integer("max_call_seconds", rules::CALL_SECONDS) {
        sip.max_call = Duration::from_secs(seconds.unsigned_abs());
    }
    if let Some(seconds) = fields.integer("qualify_seconds", 0..=3_600) {
        match seconds.unsigned_abs() {
            0 => sip.qualify = None,
            seconds @ 5.. => sip.qualify = Some(Duration::from_secs(seconds)),
            _ => {
                fields.refuse::<()>("qualify_seconds", "must be 5 to 3600, or 0 to probe no phone");
            }
        }
    }
    if let Some(seconds) = fields.integer("session_expires_seconds", 0..=86_400) {
        match seconds.unsigned_abs() {
            0 => sip.session_expires = None,
            // RFC 4028 §5: no peer has to accept less.
            seconds @ 90.. => sip.session_expires = Some(Duration::from_secs(seconds)),
            _ => {
                fields.refuse::<()>(
                    "session_expires_seconds",
                    "must be 90 to 86400, or 0 for no session timer",
                );
            }
        }
    }
    // RFC 4028 §5: no peer has to accept less than 90 seconds.
    if let Some(seconds) = fields.integer("min_se_seconds", 90..=86_400) {
        sip.min_se = Duration::from_secs(seconds.unsigned_abs());
    }
    if let Some(expires) = sip.session_expires.filter(|expires| *expires < sip.min_se) {
        let most = expires.as_secs();
        fields.refuse::<()>(
            "min_se_seconds",
            format!("must be at most session_expires_seconds, which is {most}"),
        );
    }
}

fn parse_listener(text: &str) -> Result<Listener, String> {
    let Some((scheme, address)) = text.split_once("://") else {
        return Err(format!("\"{text}\" must be written like udp://0.0.0.0:5060"));
    };
    let transport = match scheme {
        "udp" => Transport::Udp,
        "tcp" => Transport::Tcp,
        "tls" => Transport::Tls,
        "ws" => Transport::Ws,
        "wss" => Transport::Wss,
        _ => {
            let known = "use udp://, tcp://, tls://, ws:// or wss://";
            return Err(format!("\"{text}\" has an unknown transport: {known}"));
        }
    };
    address
        .parse()
        .map(|address| Listener { transport, address })
        .map_err(|_| format!("\"{text}\" needs an IP address and a port, such as {scheme}://0.0.0.0:5060"))
}

fn read_media(mut fields: Fields<'_>, media: &mut Media) {
    if let Some(text) = fields.text("ports") {
        match parse_ports(&text) {
            Some(ports) => media.ports = ports,
            None => {
                fields.refuse::<()>(
                    "ports",
                    format!("\"{text}\" must be FIRST-LAST with 1024 <= FIRST < LAST, such as 20000-29999"),
                );
            }
        }
    }
    if let Some(workers) = fields.integer("workers", 0..=1024) {
        media.workers = usize::try_from(workers).ok().filter(|workers| *workers > 0);
    }
    if let Some(io) = fields.checked("io", media_io) {
        media.io = io;
    }
    if let Some(rule) = fields.checked("strict_source", rules::strict_source) {
        media.strict_source = rule;
    }
    if let Some(real_time) = fields.boolean("real_time") {
        media.real_time = real_time;
    }
    if let Some(audio_evidence) = fields.boolean("audio_evidence") {
        media.audio_evidence = audio_evidence;
    }
    if let Some(trace) = fields.boolean("trace") {
        media.trace = trace;
    }
    if let Some(days) = fields.integer("trace_days", 1..=3_650) {
        media.trace_days = u32::try_from(days).unwrap_or(media.trace_days);
    }
    let silence =
        |seconds: i64| Some(Duration::from_secs(seconds.unsigned_abs())).filter(|time| !time.is_zero());
    if let Some(seconds) = fields.integer("timeout_seconds", 0..=86_400) {
        media.timeout = silence(seconds);
    }
    if let Some(seconds) = fields.integer("hold_timeout_seconds", 0..=86_400) {
        media.hold_timeout = silence(seconds);
    }
    read_thresholds(&mut fields, &mut media.verdict);
    fields.finish();
}

fn media_io(text: &str) -> Result<MediaIo, String> {
    match text {
        "auto" => Ok(MediaIo::Auto),
        "epoll" => Ok(MediaIo::Epoll),
        "io_uring" => Ok(MediaIo::IoUring),
        _ => Err("must be one of auto, epoll, io_uring".to_owned()),
    }
}

/// Reads the table `verdict`: thresholds that differ from the default, by name.
fn read_thresholds(fields: &mut Fields<'_>, thresholds: &mut Thresholds) {
    let Some((path, table)) = fields.table("verdict") else { return };
    for (name, value) in table {
        let number = match value {
            Value::Boolean(flag) => f64::from(u8::from(flag)),
            Value::Float(number) => number,
            // Thresholds are small numbers, so they are exact in a double.
            Value::Integer(number) => i32::try_from(number).map_or(f64::NAN, f64::from),
            _ => f64::NAN,
        };
        let message = match thresholds.set(&name, number) {
            Ok(()) => continue,
            Err(ThresholdError::Name) => {
                format!("unknown threshold, known are: {}", Thresholds::NAMES.join(", "))
            }
            Err(ThresholdError::Value) => "must be a number between 0 and 10,000,000".to_owned(),
        };
        fields.problems().push(Problem::new(format!("{path}.{name}"), message));
    }
}

fn parse_ports(text: &str) -> Option<RangeInclusive<u16>> {
    let (first, last) = text.split_once('-')?;
    let (first, last): (u16, u16) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
    (first >= 1024 && first < last).then_some(first..=last)
}

fn read_http(mut fields: Fields<'_>, http: &mut Http) {
    if let Some(text) = fields.text("listen") {
        match text.parse() {
            Ok(address) => http.listen = address,
            Err(_) => {
                fields.refuse::<()>(
                    "listen",
                    format!("\"{text}\" must be an IP address and a port, such as 127.0.0.1:8080"),
                );
            }
        }
    }
    if let Some(tls) = fields.boolean("tls") {
        http.tls = tls;
    }
    let settings = &mut http.settings;
    read_networks(&mut fields, "trusted_proxies", &mut settings.trusted_proxies);
    read_networks(&mut fields, "metrics_allow", &mut settings.metrics_allow);
    read_cors_origins(&mut fields, &mut settings.cors_origins);
    let counts = [
        ("connections_max", &mut settings.connections_max),
        ("connections_per_address_max", &mut settings.connections_per_address_max),
    ];
    for (name, count) in counts {
        if let Some(number) = fields.integer(name, 1..=HTTP_CONNECTIONS_MAX) {
            *count = usize::try_from(number).unwrap_or(*count);
        }
    }
    let times = [
        ("header_seconds", &mut settings.header_time),
        ("body_seconds", &mut settings.body_time),
        ("idle_seconds", &mut settings.idle_time),
        ("stall_seconds", &mut settings.stall_time),
    ];
    for (name, time) in times {
        if let Some(seconds) = fields.integer(name, 1..=HTTP_SECONDS_MAX) {
            *time = Duration::from_secs(seconds.unsigned_abs());
        }
    }
    fields.finish();
}

fn read_panel(mut fields: Fields<'_>, panel: &mut PanelSection) {
    if let Some(enabled) = fields.boolean("enabled") {
        panel.enabled = enabled;
    }
    fields.finish();
}

fn read_outbound_http(mut fields: Fields<'_>, settings: &mut OutboundHttp) {
    if let Some(networks) = read_allowed(&mut fields, "allow_addresses") {
        settings.allow_addresses = networks;
    }
    if let Some(file) = fields.text("extra_ca").filter(|file| !file.is_empty()) {
        settings.extra_ca = Some(PathBuf::from(file));
    }
    if let Some(ports) = fields.ports("ports") {
        if ports.is_empty() || ports.len() > OutboundHttp::PORTS_MAX {
            let most = OutboundHttp::PORTS_MAX;
            fields.refuse::<()>("ports", format!("must name 1 to {most} ports, such as [443, 8443]"));
        }
        settings.ports = ports;
    }
    fields.finish();
}

/// Reads addresses and networks that are allowed although they are not public.
fn read_allowed(fields: &mut Fields<'_>, name: &'static str) -> Option<Vec<Network>> {
    let texts = fields.texts(name)?;
    let networks: Vec<Network> = texts.iter().filter_map(|text| text.parse().ok()).collect();
    if networks.len() != texts.len() || texts.len() > NETWORKS_MAX {
        let message =
            format!("must name at most {NETWORKS_MAX} addresses or networks, such as \"127.0.0.1/32\"");
        fields.refuse::<()>(name, message);
    }
    Some(networks)
}

fn read_api(mut fields: Fields<'_>, http: &mut Http) {
    if let Some(strict) = fields.boolean("strict_bodies") {
        http.settings.strict_bodies = strict;
    }
    fields.finish();
}

fn read_networks(fields: &mut Fields<'_>, name: &'static str, networks: &mut Vec<IpNet>) {
    for text in fields.texts(name).unwrap_or_default() {
        match text.parse::<IpNet>().or_else(|_| text.parse::<IpAddr>().map(IpNet::from)) {
            Ok(network) => networks.push(network),
            Err(_) => {
                fields.refuse::<()>(
                    name,
                    format!("\"{text}\" must be an address or a network, such as 10.0.0.0/8"),
                );
            }
        }
    }
}

/// Reads origins as browsers send them (RFC 6454 §6.2).
fn read_cors_origins(fields: &mut Fields<'_>, origins: &mut Vec<String>) {
    for text in fields.texts("cors_origins").unwrap_or_default() {
        let origin = url::Url::parse(&text).ok().map(|url| url.origin().ascii_serialization());
        match origin.filter(|origin| *origin == text && text.starts_with("http")) {
            Some(origin) => origins.push(origin),
            None => {
                fields.refuse::<()>(
                    "cors_origins",
                    format!(
                        "\"{text}\" must be an origin in lower case without a path, such as https://panel.example.com"
                    ),
                );
            }
        }
    }
}

fn read_log(mut fields: Fields<'_>, log: &mut Log) {
    if let Some(level) = fields.text("level").filter(|level| !level.is_empty()) {
        match log_filter(&level) {
            Ok(_) => log.level = Some(level),
            Err(message) => {
                fields.refuse::<()>("level", message);
            }
        }
    }
    fields.finish();
}

/// More than the number of open files that a system allows.
const HTTP_CONNECTIONS_MAX: i64 = 1_000_000;
/// An hour: a longer value would be no limit in practice.
const HTTP_SECONDS_MAX: i64 = 3_600;
const DNS_PORT: u16 = 53;
const LISTENERS_MAX: usize = 64;
/// Origins of web pages.
const ORIGINS_MAX: usize = 64;
const NAME_SERVERS_MAX: usize = 8;
/// Connections of one kind to the database.
const CONNECTIONS_MAX: i64 = 1000;
/// Networks in one list.
const NETWORKS_MAX: usize = 64;
const NODE_NAME_LEN_MAX: usize = 64;
/// Requests a second, of one source or in total.
const REQUESTS_PER_SECOND_MAX: i64 = 1_000_000;
