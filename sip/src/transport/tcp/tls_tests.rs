//! Tests of connections over TLS: accepted and refused peers, and aborted handshakes.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use rcgen::{CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream};
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use tokio_rustls::rustls::{CertificateError, ClientConfig, Error, RootCertStore, ServerConfig};

use super::*;
use crate::flow::{Flow, Protocol};
use crate::message::Message;
use crate::transport::arrival::Arrival;

const OPTIONS: &str = "OPTIONS sip:a@h SIP/2.0\r\nVia: SIP/2.0/TLS h;branch=z9hG4bK1\r\nMax-Forwards: 70\r\n\
                       From: <sip:a@h>;tag=1\r\nTo: <sip:a@h>\r\nCall-ID: c\r\nCSeq: 1 OPTIONS\r\n\
                       Content-Length: 0\r\n\r\n";
/// Far more than any of these tests needs.
const PATIENCE: Duration = Duration::from_secs(30);
const NAME: &str = "sip.example";

/// One certificate for [`NAME`], and trust in its authority.
struct Settings {
    server: Arc<ServerConfig>,
    client: Arc<ClientConfig>,
}

impl Settings {
    fn new() -> Arc<Self> {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        let authority = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        let key = KeyPair::generate().unwrap();
        let own = CertificateParams::new([NAME.to_owned()]).unwrap().signed_by(&key, &authority).unwrap();
        let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
        let server = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![own.der().clone()], key)
            .unwrap();
        let mut roots = RootCertStore::empty();
        roots.add(authority.der().clone()).unwrap();
        let client = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        Arc::new(Self { server: Arc::new(server), client: Arc::new(client) })
    }
}

impl TlsSettings for Settings {
    fn server(&self, _: Protocol) -> Option<Arc<ServerConfig>> {
        Some(Arc::clone(&self.server))
    }

    fn client(&self, _: &str) -> Option<Arc<ClientConfig>> {
        Some(Arc::clone(&self.client))
    }

    fn client_names(&self, _: &[CertificateDer<'_>]) -> Vec<String> {
        Vec::new()
    }
}

/// Limits that no test reaches.
fn patient() -> TcpLimits {
    TcpLimits {
        handshake_max: PATIENCE,
        message_max: PATIENCE,
        idle_max: PATIENCE,
        stranger_max: PATIENCE,
        ..TcpLimits::default()
    }
}

fn listen(settings: &Arc<Settings>, limits: TcpLimits) -> (TcpTransport, SocketAddr) {
    let tls: Arc<dyn TlsSettings> = Arc::clone(settings) as _;
    let config = TcpConfig { limits, tls: Some(tls), ..TcpConfig::default() };
    let transport = TcpTransport::bind(&[(Protocol::Tls, (Ipv4Addr::LOCALHOST, 0).into())], config).unwrap();
    let local = transport.sender().listeners().next().unwrap().1;
    (transport, local)
}

async fn next(transport: &mut TcpTransport) -> Arrival {
    tokio::time::timeout(PATIENCE, transport.recv()).await.expect("something comes")
}

async fn message(transport: &mut TcpTransport) -> (Flow, Message) {
    match next(transport).await {
        Arrival::Message { flow, message } => (flow, message),
        other => panic!("{other:?}"),
    }
}

async fn until(what: &str, condition: impl Fn() -> bool) {
    let waited = async {
        while !condition() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(PATIENCE, waited).await.unwrap_or_else(|_| panic!("{what} does not happen"));
}

async fn dial_from(source: [u8; 4], to: SocketAddr) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind((source, 0).into()).unwrap();
    socket.connect(to).await.unwrap()
}

/// Everything that the peer sends before it closes.
async fn rest(stream: &mut TcpStream) -> Vec<u8> {
    let mut bytes = Vec::new();
    // A reset is an end too.
    let _ = tokio::time::timeout(PATIENCE, stream.read_to_end(&mut bytes)).await.expect("it ends");
    bytes
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn messages_pass_over_a_connection_that_a_client_opened() {
    let settings = Settings::new();
    let (mut transport, local) = listen(&settings, patient());
    let stream = TcpStream::connect(local).await.unwrap();
    let remote = stream.local_addr().unwrap();
    let connector = TlsConnector::from(Arc::clone(&settings.client));
    let mut client = connector.connect(ServerName::try_from(NAME).unwrap(), stream).await.unwrap();
    client.write_all(OPTIONS.repeat(2).as_bytes()).await.unwrap();
    let (flow, _) = message(&mut transport).await;
    assert_eq!((flow.protocol, flow.remote), (Protocol::Tls, remote));
    assert_eq!(message(&mut transport).await.0, flow);
    let sender = transport.sender();
    assert_eq!(sender.local_address(&flow).unwrap(), local);
    sender.try_send(&flow, Bytes::from_static(b"pong")).unwrap();
    let mut answer = [0; 4];
    client.read_exact(&mut answer).await.unwrap();
    assert_eq!(&answer, b"pong");
    drop(transport);
    // The end is announced: an end without `close_notify` would be an error.
    assert_eq!(client.read(&mut answer).await.unwrap(), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_connection_to_a_server_is_verified_by_its_name() {
    let settings = Settings::new();
    let (mut far, at) = listen(&settings, patient());
    let (mut near, _) = listen(&settings, patient());
    let sender = near.sender();
    let flow = sender.tls_to(NAME, at).unwrap();
    assert_ne!(sender.tls_to("other.example", at), Some(flow), "a connection for each name");
    sender.try_send(&flow, Bytes::from_static(OPTIONS.as_bytes())).unwrap();
    let (back, _) = message(&mut far).await;
    far.sender().try_send(&back, Bytes::from_static(OPTIONS.as_bytes())).unwrap();
    assert_eq!(message(&mut near).await.0, flow);

    let other = sender.tls_to("other.example", at).unwrap();
    sender.try_send(&other, Bytes::from_static(OPTIONS.as_bytes())).unwrap();
    match next(&mut near).await {
        Arrival::Unsecured { flow, server, error } => {
            assert_eq!((flow, server.as_deref()), (other, Some("other.example")));
            let inner = error.get_ref().and_then(|inner| inner.downcast_ref::<Error>());
            let wrong_name = |reason: &CertificateError| {
                matches!(
                    reason,
                    CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. }
                )
            };
            assert!(
                matches!(inner, Some(Error::InvalidCertificate(reason)) if wrong_name(reason)),
                "{error:?}"
            );
        }
        arrival => panic!("{arrival:?}"),
    }
    assert!(matches!(next(&mut near).await, Arrival::Unopened(closed) if closed == other));
    assert_eq!(sender.counters().unsecured, 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_handshake_that_stalls_ends_at_its_deadline() {
    let settings = Settings::new();
    let handshake_max = Duration::from_millis(300);
    let (mut transport, local) = listen(&settings, TcpLimits { handshake_max, ..patient() });
    let (mut silent, mut half) =
        (TcpStream::connect(local).await.unwrap(), TcpStream::connect(local).await.unwrap());
    half.write_all(&client_hello(0x03, 0x03)[..20]).await.unwrap();
    rest(&mut silent).await;
    rest(&mut half).await;
    for _ in 0..2 {
        assert!(matches!(next(&mut transport).await, Arrival::Unsecured { server: None, .. }));
    }
    let sender = transport.sender();
    until("both places are free", || sender.counters().open == 0).await;
    assert_eq!((sender.counters().timeouts, sender.counters().unsecured), (2, 2));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn half_handshakes_of_one_source_leave_others_their_place() {
    let settings = Settings::new();
    let (mut transport, local) = listen(&settings, TcpLimits { per_source_max: 3, ..patient() });
    let sender = transport.sender();
    let mut half = Vec::new();
    for _ in 0..10 {
        let mut stream = dial_from([127, 0, 0, 2], local).await;
        // A connection that is refused immediately may be reset before this is written.
        let _ = stream.write_all(&client_hello(0x03, 0x03)[..20]).await;
        half.push(stream);
    }
    until("seven are refused", || sender.counters().refused == 7).await;
    let stream = dial_from([127, 0, 0, 1], local).await;
    let connector = TlsConnector::from(Arc::clone(&settings.client));
    let mut client = connector.connect(ServerName::try_from(NAME).unwrap(), stream).await.unwrap();
    client.write_all(OPTIONS.as_bytes()).await.unwrap();
    message(&mut transport).await;
    assert_eq!(sender.counters().open, 4);
}

/// S12: versions before 1.2 get the alert `protocol_version`.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s12_older_versions_of_tls_are_refused() {
    let settings = Settings::new();
    let (mut transport, local) = listen(&settings, patient());
    for (major, minor) in [(0x03, 0x00), (0x03, 0x01), (0x03, 0x02)] {
        let mut stream = TcpStream::connect(local).await.unwrap();
        stream.write_all(&client_hello(major, minor)).await.unwrap();
        let answer = rest(&mut stream).await;
        assert_eq!((answer.first(), answer.get(5..7)), (Some(&21), Some(&[2, 70][..])), "{answer:?}");
        assert!(matches!(next(&mut transport).await, Arrival::Unsecured { .. }));
    }
    // The same with version 1.2 gets a ServerHello.
    let mut stream = TcpStream::connect(local).await.unwrap();
    stream.write_all(&client_hello(0x03, 0x03)).await.unwrap();
    let mut answer = [0; 6];
    stream.read_exact(&mut answer).await.unwrap();
    assert_eq!((answer[0], answer[5]), (22, 2));
    drop(stream);
    assert!(matches!(next(&mut transport).await, Arrival::Unsecured { .. }));
    // Data that is not TLS.
    let mut plain = TcpStream::connect(local).await.unwrap();
    plain.write_all(OPTIONS.as_bytes()).await.unwrap();
    assert!(!rest(&mut plain).await.starts_with(b"SIP/2.0"));
    assert!(matches!(next(&mut transport).await, Arrival::Unsecured { .. }));
    assert_eq!(transport.sender().counters().unsecured, 5);
}

/// A ClientHello of this version (RFC 4346 §7.4.1.2) with cipher suites of TLS 1.2 and 1.0.
fn client_hello(major: u8, minor: u8) -> Vec<u8> {
    let mut body = vec![major, minor];
    body.extend([7; 32]);
    body.extend([0, 0, 4, 0xc0, 0x2b, 0xc0, 0x09, 1, 0]);
    // Groups and signature algorithms (RFC 8422 §5.1.1, RFC 5246 §7.4.1.4.1).
    body.extend([0, 20, 0, 10, 0, 6, 0, 4, 0, 29, 0, 23, 0, 13, 0, 6, 0, 4, 4, 3, 8, 4]);
    let length = u8::try_from(body.len()).unwrap();
    let mut record = vec![22, 3, 1, 0, length + 4, 1, 0, 0, length];
    record.extend(body);
    record
}
