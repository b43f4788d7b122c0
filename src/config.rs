//! `sidetone.toml`: every key, its default, and what its value may be.
//!
//! Every key is optional. Unknown keys are refused by name; an environment variable
//! `SIDETONE_SECTION__KEY` overrides the file; `SIDETONE_CONFIG` names the file. What a later
//! version will understand (TCP and TLS listeners, PostgreSQL, a cluster) is refused in words
//! rather than ignored.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::time::Duration;

use ipnet::IpNet;
use sidetone_sip::auth::Algorithm;
use toml::{Table, Value};

use crate::fields::{Fields, Problem};

/// The whole configuration of one node, validated.
#[derive(Debug, Clone, PartialEq)]
pub struct Config {
    /// This node.
    pub node: Node,
    /// Where records and the directory are kept.
    pub database: Database,
    /// SIP listeners.
    pub sip: Sip,
    /// RTP ports and workers.
    pub media: Media,
    /// The HTTP listener.
    pub http: Http,
}

/// `[node]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    /// The node's name in logs and records, unique in a cluster.
    pub name: String,
    /// Database, journal, recordings and the node id live here.
    pub data_dir: PathBuf,
    /// How long calls may go on after SIGTERM.
    pub drain: Duration,
}

/// `[database]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Database {
    /// The SQLite file.
    pub path: PathBuf,
}

/// `[sip]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sip {
    /// Where requests are received.
    pub listen: Vec<Listener>,
    /// What Via, Contact and SDP advertise; `None` is the local address towards the peer.
    pub external_address: Option<IpAddr>,
    /// The digest algorithms that phones are offered, in this order.
    pub digest: Vec<Algorithm>,
}

/// One SIP listener, such as `udp://0.0.0.0:5060`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Listener {
    /// How datagrams or bytes travel.
    pub transport: Transport,
    /// The address to bind; port 0 takes a free one.
    pub address: SocketAddr,
}

/// The transports of this build.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transport {
    /// UDP, RFC 3261 §18.
    Udp,
}

/// `[media]`.
#[derive(Debug, Clone, PartialEq)]
pub struct Media {
    /// The ports RTP and RTCP are received on; pairs begin at even ports.
    pub ports: RangeInclusive<u16>,
    /// Worker threads; `None` is one per core.
    pub workers: Option<usize>,
    /// Thresholds of the verdicts that differ from their defaults, by name.
    pub verdict: BTreeMap<String, f64>,
}

/// `[http]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Http {
    /// The address to bind; port 0 takes a free one.
    pub listen: SocketAddr,
    /// Peers whose `X-Forwarded-For` is believed.
    pub trusted_proxies: Vec<IpNet>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            node: Node {
                name: "node-1".to_owned(),
                data_dir: PathBuf::from(DATA_DIR),
                drain: Duration::from_secs(30),
            },
            database: Database { path: Path::new(DATA_DIR).join(DATABASE_FILE) },
            // The contract's default adds tcp://0.0.0.0:5060; TCP comes in a later version.
            sip: Sip {
                listen: vec![Listener {
                    transport: Transport::Udp,
                    address: SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 5060),
                }],
                external_address: None,
                // RFC 8760 would have the stronger first. Phones and test tools in wide use look at the first
                // challenge alone and know MD5 alone; those that know more find it behind.
                digest: vec![Algorithm::Md5, Algorithm::Sha256],
            },
            media: Media { ports: 20_000..=29_999, workers: None, verdict: BTreeMap::new() },
            http: Http {
                listen: SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 8080),
                trusted_proxies: Vec::new(),
            },
        }
    }
}

/// Why the configuration cannot be used; one line, naming the file and every wrong key.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("{}: cannot be read ({source}); give --config FILE or SIDETONE_CONFIG", file.display())]
    Read {
        /// The file.
        file: PathBuf,
        /// What the system said.
        #[source]
        source: std::io::Error,
    },
    /// The file is not TOML.
    #[error("{}: line {line}: {message}", file.display())]
    Syntax {
        /// The file.
        file: PathBuf,
        /// The line, counted from 1.
        line: usize,
        /// What the parser wanted.
        message: String,
    },
    /// Keys or values are wrong.
    #[error("{origin}: {}", join(problems))]
    Wrong {
        /// The file, or `defaults and environment` when there is none.
        origin: String,
        /// All that is wrong.
        problems: Vec<Problem>,
    },
}

impl Config {
    /// Loads `file`, or `SIDETONE_CONFIG` of `environment`, or `sidetone.toml` where it exists,
    /// and applies the overrides of `environment` (`SIDETONE_SECTION__KEY`).
    ///
    /// # Errors
    /// When a named file cannot be read, is not TOML, or any key or value is wrong.
    pub fn load(
        file: Option<&Path>,
        environment: impl IntoIterator<Item = (String, String)>,
    ) -> Result<Self, ConfigError> {
        let environment: BTreeMap<String, String> =
            environment.into_iter().filter(|(name, _)| name.starts_with(ENV_PREFIX)).collect();
        let named = file
            .map(Path::to_path_buf)
            .or_else(|| environment.get(ENV_CONFIG).filter(|name| !name.is_empty()).map(PathBuf::from));
        let file = named.or_else(|| Some(PathBuf::from(DEFAULT_FILE)).filter(|file| file.exists()));
        let Some(file) = file else {
            return Self::from_table(Table::new(), &environment, "defaults and environment");
        };
        let text = std::fs::read_to_string(&file)
            .map_err(|source| ConfigError::Read { file: file.clone(), source })?;
        let table = parse_toml(&file, &text)?;
        Self::from_table(table, &environment, &file.display().to_string())
    }

    fn from_table(
        mut table: Table,
        environment: &BTreeMap<String, String>,
        origin: &str,
    ) -> Result<Self, ConfigError> {
        let mut problems = Vec::new();
        override_by(&mut table, environment, &mut problems);
        let config = read(table, &mut problems);
        if problems.is_empty() {
            Ok(config)
        } else {
            Err(ConfigError::Wrong { origin: origin.to_owned(), problems })
        }
    }
}

/// Parses `text` of `file` as TOML.
///
/// # Errors
/// [`ConfigError::Syntax`] with the line.
pub fn parse_toml(file: &Path, text: &str) -> Result<Table, ConfigError> {
    text.parse::<Table>().map_err(|error| ConfigError::Syntax {
        file: file.to_path_buf(),
        line: error
            .span()
            .map_or(1, |span| text.get(..span.start).map_or(1, |head| head.matches('\n').count() + 1)),
        message: error.message().replace('\n', ", "),
    })
}

/// Puts the values of `SIDETONE_SECTION__KEY` into `table`, converted to what the key holds.
fn override_by(table: &mut Table, environment: &BTreeMap<String, String>, problems: &mut Vec<Problem>) {
    for (name, text) in environment {
        let Some((section, key)) = name.get(ENV_PREFIX.len()..).and_then(|rest| rest.split_once("__")) else {
            continue;
        };
        let (section, key) = (section.to_ascii_lowercase(), key.to_ascii_lowercase());
        let Some(&(_, _, kind)) = KEYS.iter().find(|known| known.0 == section && known.1 == key) else {
            problems.push(Problem::new(name, format!("there is no key {section}.{key} to override")));
            continue;
        };
        let value = match from_text(kind, text) {
            Ok(value) => value,
            Err(message) => {
                problems.push(Problem::new(name, message));
                continue;
            }
        };
        let section = table.entry(section).or_insert_with(|| Value::Table(Table::new()));
        if let Value::Table(section) = section {
            section.insert(key, value);
        }
    }
}

fn from_text(kind: Kind, text: &str) -> Result<Value, &'static str> {
    match kind {
        Kind::Integer => text.trim().parse().map(Value::Integer).map_err(|_| "must be a whole number"),
        Kind::List => {
            let items = text.split(',').map(str::trim).filter(|item| !item.is_empty());
            Ok(Value::Array(items.map(|item| Value::String(item.to_owned())).collect()))
        }
        Kind::Table => format!("value = {text}")
            .parse::<Table>()
            .ok()
            .and_then(|mut table| table.remove("value"))
            .ok_or("must be an inline table such as { loss_pct = 3.0 }"),
        Kind::Text => Ok(Value::String(text.to_owned())),
    }
}

fn read(table: Table, problems: &mut Vec<Problem>) -> Config {
    let mut config = Config::default();
    let mut root = Fields::new("", table, problems);
    let mut section =
        |name: &'static str| root.table(name).unwrap_or_else(|| (name.to_owned(), Table::new()));
    let [node, database, sip, media, http, cluster] =
        ["node", "database", "sip", "media", "http", "cluster"].map(&mut section);
    root.finish();
    read_node(Fields::new(node.0, node.1, problems), &mut config.node);
    config.database.path = config.node.data_dir.join(DATABASE_FILE);
    read_database(Fields::new(database.0, database.1, problems), &mut config.database);
    read_sip(Fields::new(sip.0, sip.1, problems), &mut config.sip);
    read_media(Fields::new(media.0, media.1, problems), &mut config.media);
    read_http(Fields::new(http.0, http.1, problems), &mut config.http);
    read_cluster(Fields::new(cluster.0, cluster.1, problems));
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
    fields.finish();
}

fn read_database(mut fields: Fields<'_>, database: &mut Database) {
    if let Some(url) = fields.text("url") {
        match url.strip_prefix("sqlite://") {
            Some(path) if !path.is_empty() && !path.contains('?') => database.path = PathBuf::from(path),
            Some(_) => {
                fields.refuse::<()>("url", "must name a file, such as sqlite://data/sidetone.db");
            }
            None if url.starts_with("postgres://") || url.starts_with("postgresql://") => {
                // The text may hold a password: it is not repeated.
                fields.refuse::<()>(
                    "url",
                    "PostgreSQL is not supported by this build yet: use sqlite://data/sidetone.db",
                );
            }
            None => {
                fields.refuse::<()>("url", "must begin with sqlite://, such as sqlite://data/sidetone.db");
            }
        }
    }
    fields.finish();
}

fn read_sip(mut fields: Fields<'_>, sip: &mut Sip) {
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
    if let Some(names) = fields.texts("digest") {
        sip.digest = names.iter().filter_map(|name| Algorithm::from_token(Some(name))).collect();
        let repeated = names.len() == 2 && names.first() == names.last();
        if names.is_empty() || sip.digest.len() != names.len() || names.len() > 2 || repeated {
            fields
                .refuse::<()>("digest", "must name \"SHA-256\", \"MD5\" or both, in the order to offer them");
        }
    }
    fields.finish();
}

fn parse_listener(text: &str) -> Result<Listener, String> {
    let Some((scheme, address)) = text.split_once("://") else {
        return Err(format!("\"{text}\" must be written like udp://0.0.0.0:5060"));
    };
    match scheme {
        "udp" => address
            .parse()
            .map(|address| Listener { transport: Transport::Udp, address })
            .map_err(|_| format!("\"{text}\" needs an IP address and a port, such as udp://0.0.0.0:5060")),
        "tcp" | "tls" | "ws" | "wss" => {
            Err(format!("{scheme}:// in \"{text}\" is not supported by this build yet: use udp://"))
        }
        _ => Err(format!("\"{text}\" has an unknown transport: use udp://")),
    }
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
    if let Some((path, table)) = fields.table("verdict") {
        for (name, value) in table {
            let number = match value {
                Value::Float(number) => Some(number),
                // Thresholds are small numbers: exact in a double.
                Value::Integer(number) => i32::try_from(number).ok().map(f64::from),
                _ => None,
            };
            match number.filter(|number| number.is_finite() && *number >= 0.0) {
                Some(number) => {
                    media.verdict.insert(name, number);
                }
                None => fields
                    .problems()
                    .push(Problem::new(format!("{path}.{name}"), "must be a number that is not negative")),
            }
        }
    }
    fields.finish();
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
    if let Some(proxies) = fields.texts("trusted_proxies") {
        for text in proxies {
            match text.parse::<IpNet>().or_else(|_| text.parse::<IpAddr>().map(IpNet::from)) {
                Ok(network) => http.trusted_proxies.push(network),
                Err(_) => {
                    fields.refuse::<()>(
                        "trusted_proxies",
                        format!("\"{text}\" must be an address or a network, such as 10.0.0.0/8"),
                    );
                }
            }
        }
    }
    fields.finish();
}

fn read_cluster(mut fields: Fields<'_>) {
    if fields.text("nats").is_some_and(|url| !url.is_empty()) {
        fields.refuse::<()>("nats", "a cluster is not supported by this build yet: leave it empty");
    }
    fields.finish();
}

fn join(problems: &[Problem]) -> String {
    problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

/// What a key holds, so that a variable of the environment can be converted.
#[derive(Debug, Clone, Copy)]
enum Kind {
    Integer,
    List,
    Table,
    Text,
}

/// Every key that an environment variable may override.
const KEYS: [(&str, &str, Kind); 13] = [
    ("node", "name", Kind::Text),
    ("node", "data_dir", Kind::Text),
    ("node", "drain_seconds", Kind::Integer),
    ("database", "url", Kind::Text),
    ("sip", "listen", Kind::List),
    ("sip", "external_address", Kind::Text),
    ("sip", "digest", Kind::List),
    ("media", "ports", Kind::Text),
    ("media", "workers", Kind::Integer),
    ("media", "verdict", Kind::Table),
    ("http", "listen", Kind::Text),
    ("http", "trusted_proxies", Kind::List),
    ("cluster", "nats", Kind::Text),
];

const DATABASE_FILE: &str = "sidetone.db";
const DATA_DIR: &str = "data";
const DEFAULT_FILE: &str = "sidetone.toml";
const ENV_CONFIG: &str = "SIDETONE_CONFIG";
const ENV_PREFIX: &str = "SIDETONE_";
const LISTENERS_MAX: usize = 64;
const NODE_NAME_LEN_MAX: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    fn load(text: &str, environment: &[(&str, &str)]) -> Result<Config, String> {
        let environment =
            environment.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let table = parse_toml(Path::new("sidetone.toml"), text).map_err(|error| error.to_string())?;
        Config::from_table(table, &environment, "sidetone.toml").map_err(|error| error.to_string())
    }

    #[test]
    fn an_empty_file_is_the_defaults() {
        assert_eq!(load("", &[]), Ok(Config::default()));
        assert_eq!(Config::default().database.path, Path::new("data/sidetone.db"));
    }

    #[test]
    fn the_file_of_the_contract_is_read_whole() {
        let config = load(
            r#"
            [node]
            name = "edge-2"
            data_dir = "/var/lib/sidetone"
            drain_seconds = 5
            [database]
            url = "sqlite:///srv/db.sqlite"
            [sip]
            listen = ["udp://127.0.0.1:0", "udp://[::1]:5070"]
            external_address = "203.0.113.5"
            [media]
            ports = "30000-30099"
            workers = 2
            verdict = { loss_pct = 3.5, lost_min = 4 }
            [http]
            listen = "[::1]:0"
            trusted_proxies = ["10.0.0.0/8", "192.0.2.1"]
            [cluster]
            nats = ""
            "#,
            &[],
        )
        .unwrap();
        assert_eq!(config.node.name, "edge-2");
        assert_eq!(config.node.drain, Duration::from_secs(5));
        assert_eq!(config.database.path, Path::new("/srv/db.sqlite"));
        assert_eq!(config.sip.listen.len(), 2);
        assert_eq!(config.sip.external_address, Some("203.0.113.5".parse().unwrap()));
        assert_eq!(config.media.ports, 30_000..=30_099);
        assert_eq!(config.media.workers, Some(2));
        assert_eq!(config.media.verdict.get("lost_min"), Some(&4.0));
        assert_eq!(config.http.trusted_proxies.len(), 2);
    }

    #[test]
    fn the_environment_overrides_the_file() {
        let config = load(
            "[node]\ndata_dir = \"a\"\n",
            &[
                ("SIDETONE_NODE__DATA_DIR", "b"),
                ("SIDETONE_SIP__LISTEN", "udp://127.0.0.1:1, udp://127.0.0.1:2"),
                ("SIDETONE_MEDIA__WORKERS", "3"),
                ("SIDETONE_MEDIA__VERDICT", "{ loss_pct = 1.0 }"),
                ("SIDETONE_CONFIG", "ignored.toml"),
                ("SIDETONE_SHARED", "ignored"),
            ],
        )
        .unwrap();
        assert_eq!(config.database.path, Path::new("b/sidetone.db"));
        assert_eq!(config.sip.listen.len(), 2);
        assert_eq!(config.media.workers, Some(3));
        assert_eq!(config.media.verdict.len(), 1);
    }

    #[test]
    fn every_mistake_is_one_line_that_names_the_key() {
        let cases = [
            (
                "unknown section",
                "[sipp]\n",
                "sipp: unknown key, known here are: node, database, sip, media, http, cluster",
            ),
            (
                "unknown key",
                "[sip]\nlistn = []\n",
                "sip.listn: unknown key, known here are: listen, external_address, digest",
            ),
            ("section is no table", "sip = 1\n", "sip: must be a table, not a number"),
            (
                "node name",
                "[node]\nname = \"a b\"\n",
                "node.name: must be 1 to 64 letters, digits, '-', '_' or '.'",
            ),
            (
                "drain",
                "[node]\ndrain_seconds = -1\n",
                "node.drain_seconds: -1 is out of range, write 0 to 86400",
            ),
            (
                "tcp",
                "[sip]\nlisten = [\"tcp://0.0.0.0:5060\"]\n",
                "sip.listen: tcp:// in \"tcp://0.0.0.0:5060\" is not supported by this build yet: use udp://",
            ),
            (
                "no scheme",
                "[sip]\nlisten = [\"0.0.0.0:5060\"]\n",
                "sip.listen: \"0.0.0.0:5060\" must be written like udp://0.0.0.0:5060",
            ),
            (
                "no port",
                "[sip]\nlisten = [\"udp://0.0.0.0\"]\n",
                "sip.listen: \"udp://0.0.0.0\" needs an IP address and a port, such as udp://0.0.0.0:5060",
            ),
            ("no listener", "[sip]\nlisten = []\n", "sip.listen: must name 1 to 64 listeners"),
            (
                "external",
                "[sip]\nexternal_address = \"0.0.0.0\"\n",
                "sip.external_address: \"0.0.0.0\" must be an IP address that peers can reach, such as 203.0.113.5",
            ),
            (
                "ports",
                "[media]\nports = \"300-200\"\n",
                "media.ports: \"300-200\" must be FIRST-LAST with 1024 <= FIRST < LAST, such as 20000-29999",
            ),
            (
                "verdict",
                "[media]\nverdict = { x = \"a\" }\n",
                "media.verdict.x: must be a number that is not negative",
            ),
            (
                "postgres",
                "[database]\nurl = \"postgres://u:secret@h/d\"\n",
                "database.url: PostgreSQL is not supported by this build yet: use sqlite://data/sidetone.db",
            ),
            (
                "nats",
                "[cluster]\nnats = \"nats://x\"\n",
                "cluster.nats: a cluster is not supported by this build yet: leave it empty",
            ),
            (
                "http",
                "[http]\nlisten = \"localhost\"\n",
                "http.listen: \"localhost\" must be an IP address and a port, such as 127.0.0.1:8080",
            ),
            (
                "proxy",
                "[http]\ntrusted_proxies = [\"x\"]\n",
                "http.trusted_proxies: \"x\" must be an address or a network, such as 10.0.0.0/8",
            ),
            ("syntax", "[node]\nname = \n", "line 2: "),
        ];
        for (name, text, expected) in cases {
            let error = load(text, &[]).expect_err(name);
            assert!(error.starts_with(&format!("sidetone.toml: {expected}")), "{name}: {error}");
            assert!(!error.contains('\n') && !error.contains("secret"), "{name}: {error}");
        }
        assert_eq!(
            load("", &[("SIDETONE_SIP__LISTN", "x")]).unwrap_err(),
            "sidetone.toml: SIDETONE_SIP__LISTN: there is no key sip.listn to override"
        );
    }

    #[test]
    fn a_named_file_must_exist() {
        let error = Config::load(Some(Path::new("/nonexistent/sidetone.toml")), []).unwrap_err().to_string();
        assert!(error.starts_with("/nonexistent/sidetone.toml: cannot be read"), "{error}");
    }
}
