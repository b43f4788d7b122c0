//! Tables of valid and wrong values in the file and the environment.

use std::path::Path;
use std::time::Duration;

use sidetone_api::HttpSettings;
use sidetone_media::stats::Hundredths;
use sidetone_model::directory::StrictSource;
use sidetone_store::Location;

use crate::config::{Config, MediaIo, parse_toml};
use crate::outbound_http::OutboundHttp;

fn load(text: &str, environment: &[(&str, &str)]) -> Result<Config, String> {
    let environment =
        environment.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    let table = parse_toml(Path::new("sidetone.toml"), text).map_err(|error| error.to_string())?;
    Config::from_table(table, &environment, "sidetone.toml").map_err(|error| error.to_string())
}

#[test]
fn an_empty_file_is_the_defaults() {
    assert_eq!(load("", &[]), Ok(Config::default()));
    assert_eq!(Config::default().database.location, Location::Sqlite("data/sidetone.db".into()));
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
        listen = ["udp://127.0.0.1:0", "tcp://[::1]:5070"]
        external_address = "203.0.113.5"
        [media]
        ports = "30000-30099"
        workers = 2
        io = "epoll"
        strict_source = "any"
        real_time = false
        verdict = { loss_pct = 3.5, lost_packets = 4, strict_address = true }
        [http]
        listen = "[::1]:0"
        trusted_proxies = ["10.0.0.0/8", "192.0.2.1"]
        metrics_allow = ["192.0.2.9"]
        cors_origins = ["https://panel.example.com", "http://localhost:5173"]
        connections_max = 10
        connections_per_address_max = 2
        header_seconds = 1
        body_seconds = 2
        idle_seconds = 3
        stall_seconds = 4
        [panel]
        enabled = false
        [hep]
        server = "tcp:homer.example.com:9061"
        capture_id = 7
        password = "secret"
        [signalling]
        keep_days = 30
        [outbound_http]
        allow_addresses = ["127.0.0.1/32", "fd00::/8"]
        extra_ca = "/etc/ca.pem"
        ports = [443, 9443]
        [api]
        strict_bodies = false
        [log]
        level = "info,sidetone_sip=debug"
        [cluster]
        nats = ""
        "#,
        &[],
    )
    .unwrap();
    assert_eq!(config.node.name, "edge-2");
    let OutboundHttp { allow_addresses, extra_ca, ports } = config.outbound_http.clone();
    let allowed: Vec<String> = allow_addresses.iter().map(ToString::to_string).collect();
    assert_eq!(allowed, ["127.0.0.1/32", "fd00::/8"]);
    assert_eq!((extra_ca, ports), (Some("/etc/ca.pem".into()), vec![443, 9443]));
    assert_eq!(config.node.drain, Duration::from_secs(5));
    assert_eq!(config.database.location, Location::Sqlite("/srv/db.sqlite".into()));
    assert_eq!(config.sip.listen.len(), 2);
    assert_eq!(config.sip.external_address, Some("203.0.113.5".parse().unwrap()));
    assert_eq!(config.media.ports, 30_000..=30_099);
    assert_eq!(config.media.workers, Some(2));
    assert_eq!(config.media.io, MediaIo::Epoll);
    assert_eq!(config.media.strict_source, StrictSource::Any);
    assert_eq!(config.media.verdict.get("loss_pct"), Some(Hundredths(350)));
    assert_eq!(config.media.verdict.get("lost_packets"), Some(Hundredths(400)));
    assert!(config.media.verdict.strict_address);
    let expected = HttpSettings {
        trusted_proxies: vec!["10.0.0.0/8".parse().unwrap(), "192.0.2.1/32".parse().unwrap()],
        metrics_allow: vec!["192.0.2.9/32".parse().unwrap()],
        cors_origins: vec!["https://panel.example.com".to_owned(), "http://localhost:5173".to_owned()],
        connections_max: 10,
        connections_per_address_max: 2,
        header_time: Duration::from_secs(1),
        body_time: Duration::from_secs(2),
        idle_time: Duration::from_secs(3),
        stall_time: Duration::from_secs(4),
        strict_bodies: false,
    };
    assert_eq!(config.http.settings, expected);
    let hep = config.hep.clone().unwrap();
    assert_eq!((hep.is_udp, hep.server.as_str(), hep.capture_id), (false, "homer.example.com:9061", 7));
    assert!(!format!("{config:?}").contains("\"secret\"") && Config::default().hep.is_none());
    assert_eq!((config.signalling.keep_days, Config::default().signalling.keep_days), (30, 0));
    assert!(!config.panel.enabled && Config::default().panel.enabled);
    assert!(!config.media.real_time && Config::default().media.real_time);
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
    assert_eq!(config.database.location, Location::Sqlite("b/sidetone.db".into()));
    assert_eq!(config.sip.listen.len(), 2);
    assert_eq!(config.media.workers, Some(3));
    assert_eq!(config.media.verdict.get("loss_pct"), Some(Hundredths(100)));
}

#[test]
fn every_mistake_is_one_line_that_names_the_key() {
    let cases = [
        (
            "unknown section",
            "[sipp]\n",
            "sipp: unknown key, known here are: node, database, sip, media, http, panel, tls, outbound_http, \
             api, rating, ai, recordings, rooms, hep, signalling, tap, log, cluster",
        ),
        (
            "unknown key",
            "[sip]\nlistn = []\n",
            "sip.listn: unknown key, known here are: listen, external_address, digest, md5_only",
        ),
        ("section is no table", "sip = 1\n", "sip: must be a table, not a number"),
        (
            "node name",
            "[node]\nname = \"a b\"\n",
            "node.name: must be 1 to 64 letters, digits, '-', '_' or '.'",
        ),
        ("drain", "[node]\ndrain_seconds = -1\n", "node.drain_seconds: -1 is out of range, write 0 to 86400"),
        (
            "tls",
            "[sip]\nlisten = [\"udp://0.0.0.0:5060\", \"tls://0.0.0.0:5061\"]\n",
            "sip.listen: tls://0.0.0.0:5061 needs a certificate: add [[tls.certificates]] with certificate and key",
        ),
        (
            "https",
            "[http]\ntls = true\n",
            "http.tls: needs a certificate: add [[tls.certificates]] with certificate and key",
        ),
        (
            "an origin",
            "[sip]\nwebsocket_origins = [\"phone.example/\"]\n",
            "sip.websocket_origins: must name at most 64 origins, such as \"https://phone.example\"",
        ),
        (
            "half a certificate",
            "[[tls.certificates]]\ncertificate = \"a.pem\"\n",
            "tls: certificate (no. 1): key: is missing",
        ),
        (
            "half a certificate of a trunk",
            "[[tls.trunks]]\nhost = \"carrier.example\"\nkey = \"a.pem\"\n",
            "tls: trunk (no. 1): certificate: is missing: a key needs its certificate",
        ),
        (
            "a trunk's host",
            "[[tls.trunks]]\nhost = \"sip:carrier.example\"\n",
            "tls: trunk (no. 1): host: must be the host of a trunk's address, such as \"carrier.example\"",
        ),
        (
            "a trunk's host twice",
            "[[tls.trunks]]\nhost = \"carrier.example\"\n[[tls.trunks]]\nhost = \"Carrier.Example\"\n",
            "tls: trunk (no. 2): host: \"carrier.example\" has settings already; write them together",
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
            "verdict of a tap",
            "[tap]\nverdict = { loss = 1.0 }\n",
            "tap.verdict.loss: unknown threshold, known are: media_packets, ",
        ),
        (
            "verdict",
            "[media]\nverdict = { loss_pct = \"a\" }\n",
            "media.verdict.loss_pct: must be a number between 0 and 10,000,000",
        ),
        ("way to the kernel", "[media]\nio = \"uring\"\n", "media.io: must be one of auto, epoll, io_uring"),
        (
            "strict source",
            "[media]\nstrict_source = \"anyone\"\n",
            "media.strict_source: must be one of any, sdp, signalling",
        ),
        (
            "unknown threshold",
            "[media]\nverdict = { loss = 1.0 }\n",
            "media.verdict.loss: unknown threshold, known are: media_packets, ",
        ),
        (
            "postgres",
            "[database]\nurl = \"postgres://u:secret@h:port/d\"\nreaders_max = 0\n",
            "database.url: must be a URL such as postgres://user:password@host/database; \
             database.readers_max: 0 is out of range, write 1 to 1000",
        ),
        (
            "homer",
            "[hep]\nserver = \"homer:9060\"\n",
            "hep.server: \"homer:9060\" must be udp:HOST:PORT or tcp:HOST:PORT, such as udp:homer.example.com:9060",
        ),
        ("no homer", "[hep]\ncapture_id = 3\n", "hep.server: is missing"),
        (
            "days of SIP messages",
            "[signalling]\nkeep_days = -1\n",
            "signalling.keep_days: -1 is out of range, write 0 to 3650",
        ),
        (
            "nats without a common database",
            "[cluster]\nnats = \"nats://x\"\n",
            "cluster.nats: several nodes need a common database: set [database] url to a PostgreSQL server",
        ),
        (
            "nats",
            "[database]\nurl = \"postgres://db/sidetone\"\n[cluster]\nnats = \"http://u:hunter2@x\"\n",
            "cluster.nats: must be URLs of NATS servers, separated by commas, such as nats://10.0.0.5:4222",
        ),
        ("cluster without nats", "[cluster]\nname = \"b\"\n", "cluster.nats: is missing"),
        (
            "name of the cluster",
            "[database]\nurl = \"postgres://db/sidetone\"\n[cluster]\nnats = \"nats://x\"\nname = \"a.b\"\n",
            "cluster.name: must be 1 to 32 letters, digits, '-' or '_'",
        ),
        (
            "listener for nodes everywhere",
            "[database]\nurl = \"postgres://db/sidetone\"\n[cluster]\nnats = \"nats://x\"\nlisten = \"0.0.0.0:5070\"\n\
             key = \"0123456789012345678901234567890123456789\"\n",
            "cluster.listen: must be the address and port by which other nodes reach this one, such as 10.0.0.11:5070",
        ),
        (
            "short key",
            "[database]\nurl = \"postgres://db/sidetone\"\n[cluster]\nnats = \"nats://x\"\nlisten = \"10.0.0.1:5070\"\n\
             key = \"hunter2\"\n",
            "cluster.key: must have 32 characters or more, the same at every node",
        ),
        (
            "listener without key",
            "[database]\nurl = \"postgres://db/sidetone\"\n[cluster]\nnats = \"nats://x\"\nlisten = \"10.0.0.1:5070\"\n",
            "cluster.key: is missing: listen needs it",
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
        (
            "origin",
            "[http]\ncors_origins = [\"https://panel.example.com/\"]\n",
            "http.cors_origins: \"https://panel.example.com/\" must be an origin in lower case without a path, such as \
             https://panel.example.com",
        ),
        (
            "addresses",
            "[outbound_http]\nallow_addresses = [\"localhost\"]\n",
            "outbound_http.allow_addresses: must name at most 64 addresses or networks, such as \"127.0.0.1/32\"",
        ),
        (
            "no port",
            "[outbound_http]\nports = []\n",
            "outbound_http.ports: must name 1 to 64 ports, such as [443, 8443]",
        ),
        (
            "port",
            "[outbound_http]\nports = [443, 65536]\n",
            "outbound_http.ports: must be a list of ports between 1 and 65535, such as [443, 8443]",
        ),
        (
            "probes of phones in too short intervals",
            "[sip]\nqualify_seconds = 4\n",
            "sip.qualify_seconds: must be 5 to 3600, or 0 to probe no phone",
        ),
        (
            "a session timer longer than its session",
            "[sip]\nsession_expires_seconds = 120\nmin_se_seconds = 121\n",
            "sip.min_se_seconds: must be at most session_expires_seconds, which is 120",
        ),
        (
            "a session timer that RFC 4028 forbids",
            "[sip]\nmin_se_seconds = 89\n",
            "sip.min_se_seconds: 89 is out of range, write 90 to 86400",
        ),
        ("no time", "[http]\nidle_seconds = 0\n", "http.idle_seconds: 0 is out of range, write 1 to 3600"),
        (
            "a mistyped level",
            "[log]\nlevel = \"wran\"\n",
            "log.level: \"wran\" is not a level: write off, error, warn, info, debug, trace, or levels by module",
        ),
        (
            "a level of a module",
            "[log]\nlevel = \"info,sidetone_sip=loud\"\n",
            "log.level: \"sidetone_sip=loud\" is not",
        ),
        (
            "a database in memory",
            "[database]\nurl = \"sqlite://:memory:\"\n",
            "database.url: must name a file, such as ",
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
        "environment variable SIDETONE_SIP__LISTN: there is no key sip.listn to override"
    );
    let wrong = [("SIDETONE_HTTP__LISTEN", "x"), ("SIDETONE_MEDIA__VERDICT", "{ loss = 1 }")];
    let error = load("[media]\nworkers = -1\n", &wrong).unwrap_err();
    assert!(
        error.starts_with(
            "sidetone.toml: media.workers: -1 is out of range, write 0 to 1024; \
             environment variable SIDETONE_MEDIA__VERDICT.loss: unknown threshold, known are: "
        ),
        "{error}"
    );
    assert!(
        error.contains("; environment variable SIDETONE_HTTP__LISTEN: \"x\" must be an IP address"),
        "{error}"
    );
}

#[test]
fn every_default_can_be_written() {
    let cases = [
        "[cluster]\nnats = \"\"\nname = \"sidetone\"\nreplicas = 1\nlost_after_seconds = 60\n",
        "[cluster]\nname = \"sidetone\"\n[hep]\ncapture_id = 2001\n",
        "[cluster]\nreplicas = 1\n[hep]\npassword = \"\"\n",
        "[cluster]\nlost_after_seconds = 60\n[hep]\nserver = \"\"\ncapture_id = 2001\npassword = \"\"\n",
        // Empty is off, whatever else is prepared.
        "[cluster]\nnats = \"\"\nname = \"b\"\n[hep]\nserver = \"\"\ncapture_id = 3\n",
        "[log]\nlevel = \"\"\n",
    ];
    for text in cases {
        assert_eq!(load(text, &[]), Ok(Config::default()), "{text}");
    }
    let levels = "WARN,sidetone_sip=debug,hyper=off";
    assert_eq!(
        load(&format!("[log]\nlevel = \"{levels}\"\n"), &[]).unwrap().log.level.as_deref(),
        Some(levels)
    );
}

#[test]
fn a_list_of_the_environment_is_written_with_commas_or_as_in_the_file() {
    let listen = |text: &str| load("", &[("SIDETONE_SIP__LISTEN", text)]).map(|config| config.sip.listen);
    let plain = listen("udp://127.0.0.1:1,tcp://127.0.0.1:2").unwrap();
    assert_eq!(listen(" [\"udp://127.0.0.1:1\", \"tcp://127.0.0.1:2\"] "), Ok(plain));
    let error = listen("[udp://127.0.0.1:1]").unwrap_err();
    assert!(
        error.starts_with("environment variable SIDETONE_SIP__LISTEN: must be a list such as"),
        "{error}"
    );
}

#[test]
fn a_named_file_must_exist() {
    let error = Config::load(Some(Path::new("/nonexistent/sidetone.toml")), []).unwrap_err().to_string();
    assert!(error.starts_with("/nonexistent/sidetone.toml: cannot be read"), "{error}");
}
