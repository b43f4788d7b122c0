//! The world outside, as the client sees it: names that are looked up, and addresses that are connected to.

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

/// What the client asks of the world. It knows no rules: who may be asked is checked in between.
pub trait Network: Send + Sync {
    /// The addresses of a name, which comes without its last dot.
    fn lookup<'a>(&'a self, name: &'a str) -> Waiting<'a, Result<Vec<IpAddr>, LookupError>>;

    /// A connection to exactly this address.
    fn connect(&self, address: SocketAddr) -> Waiting<'_, io::Result<Box<dyn Stream>>>;
}

/// Why a name has no addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum LookupError {
    /// The name service is away.
    #[error("the name service does not answer")]
    Away,
    /// There is no such name.
    #[error("there is no such name")]
    Unknown,
}

/// The network of this host, with the name servers that the system is configured with.
pub struct System {
    /// Absent where the system names no server.
    resolver: Option<TokioResolver>,
}

impl System {
    /// The network of this host. Runs within a tokio runtime.
    pub fn new() -> Self {
        let resolver = TokioResolver::builder_tokio().and_then(|mut builder| {
            let options = builder.options_mut();
            // An answer that is remembered would outlive what its owner says; the connection is what is pinned.
            options.cache_size = 0;
            options.timeout = Duration::from_secs(2);
            options.attempts = 2;
            builder.build()
        });
        if let Err(error) = &resolver {
            tracing::warn!(%error, "no name server is configured; callbacks and webhooks reach no names");
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
            // With its last dot a name is whole: the search list of this host is not for what tenants write.
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

/// Addresses of one name that are looked at.
const ADDRESSES_MAX: usize = 64;
