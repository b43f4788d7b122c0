//! Tests of connections between nodes: accepted and refused peers, and that a node that is down delays no other.

use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use rcgen::{CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream, UdpSocket};
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use tokio_rustls::rustls::server::WebPkiClientVerifier;
use tokio_rustls::rustls::{ClientConfig, RootCertStore, ServerConfig};

use super::*;
use crate::flow::{Flow, ListenerId};

const PATIENCE: Duration = Duration::from_secs(60);
const INTERNAL: ListenerId = ListenerId(0);
const ANY_PORT: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

/// An authority that signs certificates of nodes.
struct Authority(CertifiedIssuer<'static, KeyPair>);

impl Authority {
    fn new() -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        Authority(CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap())
    }

    fn sign(&self) -> (CertificateDer<'static>, PrivateKeyDer<'static>) {
        let key = KeyPair::generate().unwrap();
        let own = CertificateParams::new(["127.0.0.1".to_owned()]).unwrap().signed_by(&key, &self.0).unwrap();
        (own.der().clone(), PrivateKeyDer::try_from(key.serialize_der()).unwrap())
    }

    /// The settings of a node with this certificate, which trusts this authority.
    fn tls(
        &self,
        (own, key): (CertificateDer<'static>, PrivateKeyDer<'static>),
        peers: &Arc<Peers>,
    ) -> NodeTls {
        let mut roots = RootCertStore::empty();
        roots.add(self.0.der().clone()).unwrap();
        let roots = Arc::new(roots);
        let provider = || Arc::new(ring::default_provider());
        let clients =
            WebPkiClientVerifier::builder_with_provider(Arc::clone(&roots), provider()).build().unwrap();
        let server = ServerConfig::builder_with_provider(provider())
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_client_cert_verifier(clients)
            .with_single_cert(vec![own.clone()], key.clone_key())
            .unwrap();
        let client = ClientConfig::builder_with_provider(provider())
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_client_auth_cert(vec![own], key)
            .unwrap();
        NodeTls { server: Arc::new(server), client: Arc::new(client), peers: Arc::clone(peers) as _ }
    }
}

/// The certificates of nodes by their listeners, and the reported failures.
#[derive(Default)]
struct Peers {
    known: Mutex<HashMap<SocketAddr, CertificateDer<'static>>>,
    failed: Mutex<Vec<String>>,
}

impl NodePeers for Peers {
    fn has(&self, address: IpAddr) -> bool {
        self.known.lock().unwrap().keys().any(|known| known.ip() == address)
    }

    fn is_of(&self, certificate: &CertificateDer<'_>, listener: SocketAddr) -> bool {
        self.known.lock().unwrap().get(&listener).is_some_and(|known| known == certificate)
    }

    fn failed(&self, _: SocketAddr, error: &io::Error) {
        self.failed.lock().unwrap().push(error.to_string());
    }
}

/// A node with one listener.
struct Node {
    sockets: Sockets,
    address: SocketAddr,
    task: JoinHandle<()>,
}

impl Drop for Node {
    fn drop(&mut self) {
        self.task.abort();
    }
}

fn bind(configured: SocketAddr) -> Sockets {
    let config = TcpConfig { limits: TcpLimits::default(), tls: None, origins: Vec::new() };
    Sockets::bind(&[configured], &[], config).unwrap()
}

fn address_of(sockets: &Sockets) -> SocketAddr {
    sockets.sender().udp().listeners().next().unwrap().1
}

impl Node {
    async fn at(configured: SocketAddr, tls: NodeTls) -> Node {
        let mut sockets = bind(configured);
        let mut task = sockets.link_nodes(INTERNAL, configured, tls).await.unwrap();
        let address = address_of(&sockets);
        Node { sockets, address, task: tokio::spawn(async move { task.run().await }) }
    }

    /// A node of this authority that the others know.
    async fn new(authority: &Authority, peers: &Arc<Peers>) -> Node {
        let own = authority.sign();
        let certificate = own.0.clone();
        let node = Node::at(ANY_PORT, authority.tls(own, peers)).await;
        peers.known.lock().unwrap().insert(node.address, certificate);
        node
    }

    /// Closes its sockets.
    async fn ends(mut self) {
        self.task.abort();
        assert!((&mut self.task).await.is_err());
    }

    fn send(&self, to: SocketAddr, text: &str) -> Result<(), SendError> {
        self.sockets.sender().try_send(&Flow::udp(INTERNAL, to), &Bytes::from(text.to_owned()))
    }

    async fn hears(&mut self) -> (SocketAddr, String) {
        match timeout(PATIENCE, self.sockets.recv()).await.expect("nothing has come") {
            Arrival::Datagram { flow, bytes } => {
                assert_eq!(flow.listener, INTERNAL);
                (flow.remote, String::from_utf8(bytes.to_vec()).unwrap())
            }
            _ => panic!("another arrival"),
        }
    }

    /// Sends until the other node receives it: datagrams sent while a connection is lost are lost, as over UDP.
    async fn reaches(&self, other: &mut Node, text: &str) {
        let to = other.address;
        let mut again = tokio::time::interval(Duration::from_millis(200));
        loop {
            tokio::select! {
                // Datagrams that waited in the queue may arrive, too.
                (from, heard) = other.hears() => {
                    assert_eq!(from, self.address);
                    if heard == text {
                        break;
                    }
                }
                _ = again.tick() => drop(self.send(to, text)),
            }
        }
    }
}

#[tokio::test]
async fn a_port_that_is_in_use_for_tcp_is_replaced_if_the_system_selected_it() {
    let (authority, peers) = (Authority::new(), Arc::default());
    let tls = || authority.tls(authority.sign(), &peers);
    let (mut sockets, selected, in_use) = loop {
        let sockets = bind(ANY_PORT);
        let selected = address_of(&sockets);
        // Another program may have the port for TCP already.
        if let Ok(in_use) = TcpListener::bind(selected).await {
            break (sockets, selected, in_use);
        }
    };
    let error = sockets.link_nodes(INTERNAL, selected, tls()).await.err().unwrap();
    assert_eq!((error.source.kind(), error.address), (io::ErrorKind::AddrInUse, selected));
    let task = sockets.link_nodes(INTERNAL, ANY_PORT, tls()).await.unwrap();
    assert_ne!(address_of(&sockets), selected);
    assert!(TcpListener::bind(address_of(&sockets)).await.is_err(), "it is bound for TCP, too");
    drop((in_use, task));
}

#[tokio::test]
async fn datagrams_of_nodes_pass_both_ways_and_those_over_udp_do_not() {
    let (authority, peers) = (Authority::new(), Arc::default());
    let (mut one, mut other) = (Node::new(&authority, &peers).await, Node::new(&authority, &peers).await);
    let stranger = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    stranger.send_to(b"in the clear", other.address).await.unwrap();
    one.send(other.address, "one").unwrap();
    one.send(other.address, "two").unwrap();
    assert_eq!(other.hears().await, (one.address, "one".to_owned()));
    assert_eq!(other.hears().await, (one.address, "two".to_owned()));
    // The answer is sent to the listener of the sending node.
    other.send(one.address, "three").unwrap();
    assert_eq!(one.hears().await, (other.address, "three".to_owned()));
    assert_eq!(peers.failed.lock().unwrap().as_slice(), [""; 0]);
    let counters = one.sockets.sender().links().unwrap().counters();
    assert_eq!((counters.opened, counters.refused, counters.dropped), (2, 0, 0));
}

#[tokio::test]
async fn a_stranger_is_refused_as_client_and_as_server() {
    let (authority, peers) = (Authority::new(), Arc::default());
    let node = Node::new(&authority, &peers).await;
    // Its certificate is from another authority, which it trusts.
    let (foreign, theirs) = (Authority::new(), Arc::default());
    let own = foreign.sign();
    let stranger = Node::at(ANY_PORT, foreign.tls(own, &theirs)).await;
    theirs.known.lock().unwrap().insert(node.address, foreign.sign().0);
    stranger.send(node.address, "hello").unwrap();
    fails(&theirs, "invalid peer certificate").await;
    peers.known.lock().unwrap().insert(stranger.address, authority.sign().0);
    node.send(stranger.address, "hello").unwrap();
    fails(&peers, "invalid peer certificate").await;
    // A node that trusts the cluster's authority, and presents a certificate of its own.
    let tls = authority.tls(foreign.sign(), &peers);
    peers.failed.lock().unwrap().clear();
    is_cut_off(&node, tls, node.address).await;
    fails(&peers, "invalid peer certificate").await;
}

/// Waits until a connection has failed for this reason.
async fn fails(peers: &Peers, reason: &str) {
    let mut look = tokio::time::interval(Duration::from_millis(20));
    let found = async {
        while !peers.failed.lock().unwrap().iter().any(|failed| failed.contains(reason)) {
            look.tick().await;
        }
    };
    if timeout(PATIENCE, found).await.is_err() {
        panic!("{reason}: {:?}", peers.failed.lock().unwrap());
    }
}

/// Connects to a node as if from the one that listens at `claimed`, and waits until the node closes the connection.
async fn is_cut_off(node: &Node, tls: NodeTls, claimed: SocketAddr) {
    let stream = TcpStream::connect(node.address).await.unwrap();
    let name = ServerName::from(node.address.ip());
    let mut stream = TlsConnector::from(tls.client).connect(name, stream).await.unwrap();
    let hello = claimed.to_string();
    let mut frame = u16::try_from(hello.len()).unwrap().to_be_bytes().to_vec();
    frame.extend_from_slice(hello.as_bytes());
    // The node may have closed it already.
    let _ = stream.write_all(&frame).await;
    let read = timeout(PATIENCE, stream.read(&mut [0; 1])).await.expect("the connection is open");
    assert!(matches!(read, Ok(0) | Err(_)), "{read:?}");
}

#[tokio::test]
async fn a_node_cannot_speak_for_another_one() {
    let (authority, peers) = (Authority::new(), Arc::<Peers>::default());
    let (node, other) = (Node::new(&authority, &peers).await, Node::new(&authority, &peers).await);
    // A certificate of the cluster, but not of the node whose listener it names.
    is_cut_off(&node, authority.tls(authority.sign(), &peers), other.address).await;
    fails(&peers, "is not one of the node").await;
}

#[tokio::test]
async fn a_node_that_is_gone_delays_no_other_and_is_reached_again_when_it_is_back() {
    let (authority, peers) = (Authority::new(), Arc::<Peers>::default());
    let one = Node::new(&authority, &peers).await;
    let mut there = Node::new(&authority, &peers).await;
    let own = authority.sign();
    let again = own.0.clone();
    let key = own.1.clone_key();
    let mut gone = Node::at(ANY_PORT, authority.tls(own, &peers)).await;
    peers.known.lock().unwrap().insert(gone.address, again.clone());
    one.reaches(&mut gone, "before").await;
    let address = gone.address;
    gone.ends().await;
    // Until it is back, no other socket gets its port.
    let kept = UdpSocket::bind(address).await.unwrap();
    // In its place, a node that accepts connections and sends nothing: the handshake does not end.
    let silent = TcpListener::bind(address).await.unwrap();
    let held = tokio::spawn(async move {
        let mut streams = Vec::new();
        loop {
            streams.extend(silent.accept().await);
        }
    });
    let sent = (0..5_000).filter(|_| one.send(address, "lost").is_ok()).count();
    assert!(sent < 5_000, "its queue has a bound");
    one.reaches(&mut there, "at once").await;
    held.abort();
    let _ = held.await;
    drop(kept);
    let mut back = Node::at(address, authority.tls((again, key), &peers)).await;
    one.reaches(&mut back, "after").await;
}
