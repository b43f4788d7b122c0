//! A tenant's server: an https receiver with a certificate of an authority made for the test. It responds as configured
//! and records the requests.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use sidetone::outbound_http::{OutboundHttp, Roots};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;

use super::waiting::PATIENCE;

/// A certificate authority of one test.
pub struct Authority(CertifiedIssuer<'static, KeyPair>);

impl Authority {
    pub fn new() -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, "an authority of a test");
        Self(CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap())
    }

    /// Its certificate, for clients that trust it.
    pub fn pem(&self) -> String {
        self.0.pem()
    }

    /// Its certificate in a file of `dir`, for `[outbound_http] extra_ca`.
    pub fn file_in(&self, dir: &Path) -> PathBuf {
        let file = dir.join("authority.pem");
        std::fs::write(&file, self.pem()).unwrap();
        file
    }

    /// A trust store with only this authority.
    pub fn roots(&self) -> Roots {
        Roots::only([CertificateDer::from_pem_slice(self.pem().as_bytes()).unwrap()])
    }

    /// The files of a certificate for these names and addresses, and of its key, in `dir`.
    pub fn issue(&self, dir: &Path, stem: &str, names: &[&str], expired: bool) -> (PathBuf, PathBuf) {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(names).unwrap();
        if expired {
            params.not_after = rcgen::date_time_ymd(2020, 1, 1);
        }
        let signed = params.signed_by(&key, &self.0).unwrap();
        let (certificate, key_file) = (dir.join(format!("{stem}.pem")), dir.join(format!("{stem}.key")));
        std::fs::write(&certificate, signed.pem()).unwrap();
        std::fs::write(&key_file, key.serialize_pem()).unwrap();
        (certificate, key_file)
    }

    /// A TLS acceptor with a certificate for these names and addresses.
    pub fn certified(&self, names: &[&str]) -> TlsAcceptor {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let key = KeyPair::generate().unwrap();
        let certificate = CertificateParams::new(names).unwrap().signed_by(&key, &self.0).unwrap();
        let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
        let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![certificate.der().clone()], key)
            .unwrap();
        TlsAcceptor::from(Arc::new(config))
    }
}

/// A request as it was received.
#[derive(Clone, Debug)]
pub struct Received {
    /// Such as `POST /hook?x=1 HTTP/1.1`.
    pub line: String,
    /// Names in lower case, in the order sent.
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Received {
    /// The one header of that name.
    pub fn header(&self, name: &str) -> &str {
        let mut values = self.headers.iter().filter(|(known, _)| known == name);
        let value = values.next().unwrap_or_else(|| panic!("{name} was not sent: {self:?}"));
        assert!(values.next().is_none(), "{name} was sent twice");
        &value.1
    }

    /// The body as JSON.
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).unwrap()
    }
}

/// The response to a request.
#[derive(Clone, Debug)]
pub struct Reply {
    after: Duration,
    bytes: Vec<u8>,
    then: Then,
}

/// The action after the bytes of a reply.
#[derive(Clone, Debug)]
pub enum Then {
    /// The connection is closed.
    Close,
    /// These bytes, repeated with a pause before each time, until the client disconnects.
    Endless(Vec<u8>, Duration),
    /// Nothing is sent, and the connection stays open.
    Hang,
}

impl Reply {
    /// An answer with a body of that type.
    pub fn new(status: u16, content_type: &str, body: impl AsRef<[u8]>) -> Self {
        Self::with(status, &[("Content-Type", content_type)], body)
    }

    /// An answer with these headers beside `Content-Length`.
    pub fn with(status: u16, headers: &[(&str, &str)], body: impl AsRef<[u8]>) -> Self {
        let body = body.as_ref();
        let mut head = format!("HTTP/1.1 {status} Whatever\r\n");
        for (name, value) in headers {
            head += &format!("{name}: {value}\r\n");
        }
        if status != 204 {
            head += &format!("Content-Length: {}\r\n", body.len());
        }
        head += "Connection: close\r\n\r\n";
        Self::raw([head.as_bytes(), body].concat())
    }

    /// A status without a body.
    pub fn status(status: u16) -> Self {
        Self::with(status, &[], "")
    }

    /// Exactly these bytes.
    pub fn raw(bytes: impl Into<Vec<u8>>) -> Self {
        Self { after: Duration::ZERO, bytes: bytes.into(), then: Then::Close }
    }

    /// Never a response.
    pub fn never() -> Self {
        Self::raw("").then(Then::Hang)
    }

    /// The same, delayed.
    #[must_use]
    pub fn after(mut self, after: Duration) -> Self {
        self.after = after;
        self
    }

    /// The same, followed by `then`.
    #[must_use]
    pub fn then(mut self, then: Then) -> Self {
        self.then = then;
        self
    }
}

/// Chooses the response to a request.
pub type Script = Arc<dyn Fn(&Received) -> Reply + Send + Sync>;

/// The requests that a receiver got.
#[derive(Clone)]
pub struct Seen {
    requests: watch::Sender<Vec<Received>>,
    sent_bytes: Arc<AtomicUsize>,
}

impl Seen {
    pub fn new() -> Self {
        Self { requests: watch::Sender::new(Vec::new()), sent_bytes: Arc::default() }
    }

    /// The requests so far.
    pub fn now(&self) -> Vec<Received> {
        self.requests.borrow().clone()
    }

    /// Waits for this many requests.
    pub async fn count(&self, count: usize) -> Vec<Received> {
        let mut requests = self.requests.subscribe();
        let waiting = requests.wait_for(|requests| requests.len() >= count);
        match tokio::time::timeout(PATIENCE, waiting).await {
            Ok(found) => found.unwrap().clone(),
            Err(_) => panic!("{} of {count} requests came", self.now().len()),
        }
    }

    /// Bytes of responses that the client has accepted.
    pub fn sent_bytes(&self) -> usize {
        self.sent_bytes.load(Ordering::Relaxed)
    }
}

/// Serves one connection as `script` defines.
pub async fn serve(
    stream: impl AsyncRead + AsyncWrite + Unpin,
    tls: TlsAcceptor,
    script: Script,
    seen: Seen,
) {
    // A client that does not trust the certificate disconnects during the handshake.
    let Ok(mut stream) = tls.accept(stream).await else { return };
    let Some(received) = receive(&mut stream).await else { return };
    let reply = script(&received);
    seen.requests.send_modify(|requests| requests.push(received));
    tokio::time::sleep(reply.after).await;
    for chunk in reply.bytes.chunks(4_096) {
        if stream.write_all(chunk).await.is_err() || stream.flush().await.is_err() {
            return;
        }
        seen.sent_bytes.fetch_add(chunk.len(), Ordering::Relaxed);
    }
    match reply.then {
        Then::Close => drop(stream.shutdown().await),
        Then::Endless(bytes, pause) => loop {
            tokio::time::sleep(pause).await;
            if stream.write_all(&bytes).await.is_err() || stream.flush().await.is_err() {
                return;
            }
            seen.sent_bytes.fetch_add(bytes.len(), Ordering::Relaxed);
        },
        // Until the client disconnects.
        Then::Hang => drop(stream.read(&mut [0; 1]).await),
    }
}

async fn receive(stream: &mut (impl AsyncRead + Unpin)) -> Option<Received> {
    let mut bytes = Vec::new();
    let end = loop {
        if let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            break end;
        }
        if stream.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    };
    let mut body = bytes.split_off(end + 4);
    let head = String::from_utf8(bytes).unwrap();
    let mut lines = head.split("\r\n");
    let line = lines.next()?.to_owned();
    let headers: Vec<(String, String)> = lines
        .filter_map(|line| line.split_once(": "))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()))
        .collect();
    let length = headers.iter().find(|(name, _)| name == "content-length")?.1.parse::<usize>().unwrap();
    while body.len() < length {
        if stream.read_buf(&mut body).await.ok()? == 0 {
            return None;
        }
    }
    Some(Received { line, headers, body })
}

/// A receiver on loopback; it stops when the value is dropped.
pub struct Receiver {
    pub authority: Authority,
    pub address: SocketAddr,
    pub seen: Seen,
    connections: Arc<AtomicUsize>,
    task: JoinHandle<()>,
}

impl Receiver {
    /// A receiver that responds as `script` defines, with a certificate for 127.0.0.1 and localhost.
    pub async fn start(script: impl Fn(&Received) -> Reply + Send + Sync + 'static) -> Self {
        let authority = Authority::new();
        let tls = authority.certified(&["127.0.0.1", "localhost"]);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let script: Script = Arc::new(script);
        let seen = Seen::new();
        let connections = Arc::new(AtomicUsize::new(0));
        let (counted, noted) = (Arc::clone(&connections), seen.clone());
        let task = tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                counted.fetch_add(1, Ordering::SeqCst);
                tokio::spawn(serve(stream, tls.clone(), Arc::clone(&script), noted.clone()));
            }
        });
        Self { authority, address, seen, connections, task }
    }

    /// A URL of this receiver, such as `https://127.0.0.1:12345/hook`.
    pub fn url(&self, path: &str) -> String {
        format!("https://{}{path}", self.address)
    }

    /// Settings with which a client reaches this receiver and trusts it; the authority's file is in `dir`.
    pub fn settings(&self, dir: &Path) -> OutboundHttp {
        OutboundHttp {
            allow_addresses: vec!["127.0.0.1/32".parse().unwrap()],
            extra_ca: Some(self.authority.file_in(dir)),
            ports: vec![self.address.port()],
        }
    }

    /// The number of connections, including failed ones.
    pub fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.task.abort();
    }
}
