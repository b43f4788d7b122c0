//! A node serves the panel in front of its API, unless it is switched off.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::time::Duration;

use sidetone::app::Engine;
use sidetone::config::{Config, Listener, Transport};

use crate::common::records::TempDir;

/// The response to `GET path` with this `Accept` header, as text.
fn get(address: SocketAddr, path: &str, accept: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    let request = format!(
        "GET {path} HTTP/1.1\r\nHost: sidetone.test\r\nAccept: {accept}\r\nConnection: close\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    text
}

#[test]
fn a_node_serves_the_panel_unless_it_is_switched_off() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    for enabled in [true, false] {
        let dir = TempDir::new();
        let mut config = Config::default();
        config.node.data_dir = dir.path().to_path_buf();
        config.database = (&dir.path().join("sidetone.db")).into();
        config.sip.listen = vec![Listener { transport: Transport::Udp, address: any }];
        config.http.listen = any;
        config.panel.enabled = enabled;
        let engine = runtime.block_on(Engine::start(&config)).unwrap();
        let login = get(engine.http, "/login", "text/html");
        let status = if enabled { "HTTP/1.1 200" } else { "HTTP/1.1 404" };
        assert!(login.starts_with(status) && login.contains("name=\"password\"") == enabled, "{login}");
        let start = get(engine.http, "/", "text/html");
        assert_eq!(start.starts_with("HTTP/1.1 303"), enabled, "{start}");
        // A client that does not accept HTML gets the start page of the API.
        assert!(get(engine.http, "/", "*/*").contains("API reference"));
        assert!(get(engine.http, "/healthz", "*/*").starts_with("HTTP/1.1 200"));
        runtime.block_on(engine.stop(Duration::ZERO));
    }
}
