//! A network without sockets: names that resolve as configured, and receivers at any address, so that outgoing
//! requests can be counted while time is paused.

use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use sidetone::outbound_http::{Client, LookupError, Network, OutboundHttp, Policy, Stream, Waiting};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};
use tokio_rustls::TlsAcceptor;

use super::receiver::{Authority, Received, Reply, Script, Seen, serve};

/// The Internet of one test; clones share it.
#[derive(Clone)]
pub struct Elsewhere(Arc<Shared>);

struct Shared {
    authority: Authority,
    tls: TlsAcceptor,
    script: Script,
    seen: Seen,
    names: Mutex<HashMap<String, Vec<Vec<IpAddr>>>>,
    /// Addresses that accept no connection.
    dead: Mutex<Vec<IpAddr>>,
    /// Addresses that accept connections and send nothing.
    slow: Mutex<Vec<IpAddr>>,
    lookup_time: Mutex<Duration>,
    lookups: Mutex<Vec<String>>,
    connects: Mutex<Vec<SocketAddr>>,
    server: Server,
}

/// The server at every address.
pub enum Server {
    /// https, with the responses of the script.
    Https,
    /// These bytes instead of TLS.
    Junk(Vec<u8>),
    /// Accepts the connection and sends nothing.
    Silent,
}

impl Elsewhere {
    /// Every address has a receiver that responds as `script` defines, with a certificate for `names`.
    pub fn new(names: &[&str], script: impl Fn(&Received) -> Reply + Send + Sync + 'static) -> Self {
        Self::with(Server::Https, names, script)
    }

    /// The same, with another server.
    pub fn with(
        server: Server,
        names: &[&str],
        script: impl Fn(&Received) -> Reply + Send + Sync + 'static,
    ) -> Self {
        let authority = Authority::new();
        let tls = authority.certified(names);
        Self(Arc::new(Shared {
            authority,
            tls,
            script: Arc::new(script),
            seen: Seen::new(),
            names: Mutex::default(),
            dead: Mutex::default(),
            slow: Mutex::default(),
            lookup_time: Mutex::default(),
            lookups: Mutex::default(),
            connects: Mutex::default(),
            server,
        }))
    }

    /// The addresses of a name: the first answer, then the next one; the last one is repeated.
    #[must_use]
    pub fn name(self, name: &str, answers: &[&[&str]]) -> Self {
        let answers =
            answers.iter().map(|answer| answer.iter().map(|ip| ip.parse().unwrap()).collect()).collect();
        self.0.names.lock().insert(name.to_owned(), answers);
        self
    }

    /// Connections to this address fail.
    #[must_use]
    pub fn dead(self, address: &str) -> Self {
        self.0.dead.lock().push(address.parse().unwrap());
        self
    }

    /// Connections to this address are accepted, and nothing is sent.
    #[must_use]
    pub fn slow(self, address: &str) -> Self {
        self.0.slow.lock().push(address.parse().unwrap());
        self
    }

    /// The name service takes this time for a lookup.
    #[must_use]
    pub fn lookups_take(self, time: Duration) -> Self {
        *self.0.lookup_time.lock() = time;
        self
    }

    /// A client that uses only this network.
    pub fn client(&self, settings: &OutboundHttp, own: &[&str]) -> Client {
        let own = own.iter().map(|address| address.parse().unwrap()).collect();
        Client::over(Policy::new(settings, own), self.0.authority.roots(), Box::new(self.clone())).unwrap()
    }

    /// The names that were looked up.
    pub fn lookups(&self) -> Vec<String> {
        self.0.lookups.lock().clone()
    }

    /// The addresses of connection attempts.
    pub fn connects(&self) -> Vec<String> {
        self.0.connects.lock().iter().map(ToString::to_string).collect()
    }

    pub fn seen(&self) -> &Seen {
        &self.0.seen
    }
}

impl Network for Elsewhere {
    fn lookup<'a>(&'a self, name: &'a str) -> Waiting<'a, Result<Vec<IpAddr>, LookupError>> {
        self.0.lookups.lock().push(name.to_owned());
        let mut names = self.0.names.lock();
        let answer = names
            .get_mut(name)
            .map(|answers| if answers.len() > 1 { answers.remove(0) } else { answers[0].clone() });
        let time = *self.0.lookup_time.lock();
        Box::pin(async move {
            tokio::time::sleep(time).await;
            answer.ok_or(LookupError::Unknown)
        })
    }

    fn connect(&self, address: SocketAddr) -> Waiting<'_, io::Result<Box<dyn Stream>>> {
        self.0.connects.lock().push(address);
        if self.0.dead.lock().contains(&address.ip()) {
            return Box::pin(async { Err(io::ErrorKind::ConnectionRefused.into()) });
        }
        let (near, far) = tokio::io::duplex(64 * 1024);
        let shared = Arc::clone(&self.0);
        let silent = shared.slow.lock().contains(&address.ip());
        Box::pin(async move {
            match &shared.server {
                _ if silent => drop(tokio::spawn(swallow(far))),
                Server::Https => {
                    let (tls, script, seen) =
                        (shared.tls.clone(), Arc::clone(&shared.script), shared.seen.clone());
                    tokio::spawn(serve(far, tls, script, seen));
                }
                Server::Junk(bytes) => {
                    let bytes = bytes.clone();
                    tokio::spawn(async move {
                        let mut far = far;
                        // The client may close the connection before all of it is sent.
                        let _ = far.write_all(&bytes).await;
                        swallow(far).await;
                    });
                }
                Server::Silent => drop(tokio::spawn(swallow(far))),
            }
            Ok(Box::new(near) as Box<dyn Stream>)
        })
    }
}

/// Reads until the peer disconnects.
async fn swallow(mut far: DuplexStream) {
    while far.read(&mut [0; 4_096]).await.is_ok_and(|read| read > 0) {}
}
