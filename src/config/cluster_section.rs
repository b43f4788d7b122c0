//! `[cluster]`: the NATS servers that this node shares with others.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use sidetone_cluster::nats::{ClusterSettings, EdgeSettings, NodeTlsFiles};
use sidetone_store::Location;

use crate::fields::Fields;

/// Reads the section; `None` when `nats` is empty or absent.
pub(super) fn read_cluster(mut fields: Fields<'_>, database: &Location) -> Option<ClusterSettings> {
    let servers = fields.text("nats");
    let name = fields.text("name");
    let replicas = fields.integer("replicas", 1..=REPLICAS_MAX);
    let lost_after = fields.integer("lost_after_seconds", 5..=3_600);
    let extra_ca = fields.text("extra_ca").filter(|file| !file.is_empty());
    let edge = read_edge(&mut fields);
    let has_more = name.as_ref().is_some_and(|name| name != NAME)
        || replicas.is_some_and(|replicas| replicas != REPLICAS)
        || lost_after.is_some_and(|seconds| seconds != LOST_AFTER_S)
        || extra_ca.is_some()
        || edge.is_some();
    let settings = match servers.as_deref() {
        // A standalone node.
        Some("") => None,
        Some(servers) => match ClusterSettings::new(servers) {
            Ok(settings) => Some(settings),
            // The text may contain a password, so it is not repeated.
            Err(error) => fields.refuse("nats", error.to_string()),
        },
        None if has_more => fields.refuse("nats", "is missing"),
        None => None,
    };
    if settings.is_some() && !matches!(database, Location::Postgres(_)) {
        fields.refuse::<()>(
            "nats",
            "several nodes need a common database: set [database] url to a PostgreSQL server, or leave nats empty",
        );
    }
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    if let Some(name) = &name
        && (name.is_empty() || name.len() > NAME_LEN_MAX || !name.chars().all(is_plain))
    {
        fields.refuse::<()>("name", "must be 1 to 32 letters, digits, '-' or '_'");
    }
    fields.finish();
    let mut settings = settings?;
    settings.name = name.unwrap_or(settings.name);
    settings.replicas = replicas.and_then(|number| usize::try_from(number).ok()).unwrap_or(1);
    if let Some(seconds) = lost_after {
        settings.lost_after = Duration::from_secs(seconds.unsigned_abs());
    }
    settings.extra_ca = extra_ca.map(PathBuf::from);
    settings.edge = edge;
    Some(settings)
}

/// Reads `listen` and `key`, which belong together, and the files of TLS.
fn read_edge(fields: &mut Fields<'_>) -> Option<EdgeSettings> {
    let tls = read_tls(fields);
    let listen = fields.text("listen").filter(|text| !text.is_empty());
    let key = fields.text("key").filter(|key| !key.is_empty());
    let (listen, key) = match (listen, key) {
        (None, None) if tls.is_some() => {
            return fields
                .refuse("tls_certificate", "is for the listener of other nodes: set listen and key, too");
        }
        (None, None) => return None,
        (Some(_), None) => return fields.refuse("key", "is missing: listen needs it"),
        (None, Some(_)) => return fields.refuse("listen", "is missing: key is of use with it alone"),
        (Some(listen), Some(key)) => (listen, key),
    };
    // The key is not repeated.
    if key.len() < KEY_LEN_MIN {
        return fields.refuse("key", "must have 32 characters or more, the same at every node");
    }
    match listen.parse::<SocketAddr>() {
        Ok(listen) if !listen.ip().is_unspecified() => Some(EdgeSettings { listen, key, tls }),
        _ => fields.refuse(
            "listen",
            "must be the address and port by which other nodes reach this one, such as 10.0.0.11:5070",
        ),
    }
}

/// Reads the files of TLS between nodes, which belong together.
fn read_tls(fields: &mut Fields<'_>) -> Option<NodeTlsFiles> {
    let [certificate, key, authority] = ["tls_certificate", "tls_key", "tls_authority"]
        .map(|name| fields.text(name).filter(|file| !file.is_empty()).map(PathBuf::from));
    match (certificate, key, authority) {
        (None, None, None) => None,
        (Some(certificate), Some(key), Some(authority)) => Some(NodeTlsFiles { certificate, key, authority }),
        (None, ..) => fields.refuse("tls_certificate", TOGETHER),
        (_, None, _) => fields.refuse("tls_key", TOGETHER),
        (.., None) => fields.refuse("tls_authority", TOGETHER),
    }
}

/// The defaults.
const NAME: &str = "sidetone";
const REPLICAS: i64 = 1;
const LOST_AFTER_S: i64 = 60;
const TOGETHER: &str = "is missing: tls_certificate, tls_key and tls_authority belong together";
/// More servers keep no copy of a stream in NATS.
const REPLICAS_MAX: i64 = 5;
const NAME_LEN_MAX: usize = 32;
/// Shorter keys could be guessed.
const KEY_LEN_MIN: usize = 32;
