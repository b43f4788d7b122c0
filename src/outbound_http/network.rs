//! The network as the client uses it: name lookups and connections.

use std::future::Future;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::time::Duration;

use hickory_resolver::TokioResolver;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;

/// A future that a network returns.
pub type Waiting<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// A connection.
pub trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

/// The network functions that the client needs. There are no rules here: addresses are checked in between.
pub trait Network: Send + Sync {
    /// Looks up the addresses of a name, which is given without its last dot.
    fn lookup<'a>(&'a self, name: &'a str) -> Waiting<'a, Result<Vec<IpAddr>, LookupError>>;

    /// Connects to exactly this address.
    fn connect(&self, address: SocketAddr) -> Waiting<'_, io::Result<Box<dyn Stream>>>;
}

/// Why a name has no addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum LookupError {
    /// The name service is unavailable.
    #[error("the name service does not answer")]
    Away,
    /// There is no such name.
    #[error("there is no such name")]
    Unknown,
}

/// The network of this host, with the system's name servers.
pub struct System {
    /// Absent if the system has no name server.
    resolver: Option<TokioResolver>,
}

impl System {
    /// The network of this host. Must run within a tokio runtime.
    pub fn new() -> Self {
        let resolver = TokioResolver::builder_tokio().and_then(|mut builder| {
            let options = builder.options_mut();
            // A cached result could outlive its TTL; connections are made to the checked address anyway.
            options.cache_size = 0;
            options.timeout = Duration::from_secs(2);
            options.attempts = 2;
            builder.build()
        });
        if let Err(error) = &resolver {
            tracing::warn!(%error, "no name server is configured; callbacks and webhooks cannot resolve names");
        }
        Self { resolver: resolver.ok() }
    }
}

impl Default for System {
    fn default() -> Self {
        Self::new()
    }
}

impl Network for System {
    fn lookup<'a>(&'a self, name: &'a str) -> Waiting<'a, Result<Vec<IpAddr>, LookupError>> {
        Box::pin(async move {
            let resolver = self.resolver.as_ref().ok_or(LookupError::Away)?;
            // With its last dot a name is complete: the host's search list must not apply to names from
            // organisations.
            let whole = format!("{name}.");
            match resolver.lookup_ip(whole).await {
                Ok(found) => Ok(found.iter().take(ADDRESSES_MAX).collect()),
                Err(error) if error.is_no_records_found() => Err(LookupError::Unknown),
                Err(_) => Err(LookupError::Away),
            }
        })
    }

    fn connect(&self, address: SocketAddr) -> Waiting<'_, io::Result<Box<dyn Stream>>> {
        Box::pin(async move {
            let stream = TcpStream::connect(address).await?;
            stream.set_nodelay(true)?;
            Ok(Box::new(stream) as Box<dyn Stream>)
        })
    }
}

/// Addresses of one name that are examined.
const ADDRESSES_MAX: usize = 64;
