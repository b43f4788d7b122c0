//! The client of the HTTP API for CLI commands: one server that the user names, one key, JSON in both directions.
//!
//! It is not the client of [`outbound_http`](crate::outbound_http), which is for tenants' URLs: a user may name any
//! server, including one on this host and one without TLS. A connection is reused while the server keeps it open.
//! Deadlines are up to the caller: dropping a request cancels it.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http1::{self, SendRequest};
use hyper::header::{ACCEPT, AUTHORIZATION, HOST, HeaderValue, RETRY_AFTER, USER_AGENT};
use hyper::{Method, Request, Response, body::Incoming};
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use rustls::ClientConfig;
use rustls::crypto::ring;
use rustls::pki_types::ServerName;
use serde_json::Value;
use sidetone_terminal::Failure;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use url::{Host, Url};

use crate::tls::{read_certificates, system_authorities};

/// A client; clones share a connection.
#[derive(Clone)]
pub(super) struct ApiClient {
    shared: Arc<Shared>,
}

struct Shared {
    /// The URL without a trailing `/`.
    url: Url,
    /// `Bearer` and the key; marked as sensitive.
    authorization: HeaderValue,
    tls: TlsConnector,
    /// The connection, while no request uses it.
    idle: Mutex<Option<Connection>>,
}

struct Connection {
    sender: SendRequest<Full<Bytes>>,
    work: Pin<Box<dyn Future<Output = ()> + Send>>,
}

impl ApiClient {
    /// Builds a client of the server at `url`, such as `https://pbx.example.com`; `ca` is a PEM file with authorities
    /// that are trusted in addition to the system's.
    ///
    /// # Errors
    /// The error in the URL, the key or the file, and a remedy.
    pub(super) fn new(url: &str, key: &str, ca: Option<&std::path::Path>) -> Result<Self, String> {
        let url = checked(url)?;
        let mut authorization = HeaderValue::try_from(format!("Bearer {key}"))
            .map_err(|_| "the key contains characters that no key has; copy it again".to_owned())?;
        authorization.set_sensitive(true);
        let mut roots = system_authorities();
        if let Some(file) = ca {
            let wrong = |reason: String| format!("--ca {}: {reason}", file.display());
            for certificate in read_certificates(file).map_err(|problem| wrong(problem.to_string()))? {
                roots.add(certificate).map_err(|error| wrong(error.to_string()))?;
            }
        }
        let tls = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(|error| format!("TLS cannot be set up: {error}"))?
            .with_root_certificates(roots)
            .with_no_client_auth();
        let tls = TlsConnector::from(Arc::new(tls));
        Ok(ApiClient { shared: Arc::new(Shared { url, authorization, tls, idle: Mutex::new(None) }) })
    }

    /// The URL of the server.
    pub(super) fn url(&self) -> &str {
        self.shared.url.as_str().trim_end_matches('/')
    }

    /// Whether the key is sent unencrypted over a network.
    pub(super) fn is_open(&self) -> bool {
        let url = &self.shared.url;
        let is_near = match url.host() {
            Some(Host::Ipv4(address)) => address.is_loopback(),
            Some(Host::Ipv6(address)) => address.is_loopback(),
            Some(Host::Domain(name)) => name == "localhost",
            None => false,
        };
        url.scheme() == "http" && !is_near
    }

    /// `GET path`, below `/api/v1`.
    ///
    /// # Errors
    /// Why there is no response, or the error in the response.
    pub(super) async fn get(&self, path: &str) -> Result<Value, Failure> {
        self.read(&format!("/api/v1{path}")).await
    }

    /// `GET path`, below the URL.
    ///
    /// # Errors
    /// Why there is no response, or the error in the response.
    pub(super) async fn read(&self, path: &str) -> Result<Value, Failure> {
        let idle = self.shared.idle.lock().take();
        if let Some(connection) = idle {
            match self.exchange(connection, path).await {
                // The server may have closed the connection in the meantime; a new connection decides.
                Err(failure) if failure.status.is_none() => {}
                answer => return answer,
            }
        }
        let connection = self.connect().await?;
        self.exchange(connection, path).await
    }

    async fn connect(&self) -> Result<Connection, Failure> {
        let url = &self.shared.url;
        let port = url.port_or_known_default().unwrap_or_default();
        let name = url.host_str().unwrap_or_default().trim_start_matches('[').trim_end_matches(']');
        let failed = |error: std::io::Error| Failure::unreachable(format!("{name} port {port}: {error}"));
        let stream = TcpStream::connect((name, port)).await.map_err(failed)?;
        // Requests are small, and each waits for the previous one.
        let _ = stream.set_nodelay(true);
        if url.scheme() == "http" {
            return shake_hands(TokioIo::new(stream)).await;
        }
        let server = ServerName::try_from(name.to_owned())
            .map_err(|_| Failure::unreachable(format!("{name}: no certificate can be for such a name")))?;
        let stream = self.shared.tls.connect(server, stream).await.map_err(|error| {
            Failure::unreachable(format!(
                "{name}: TLS failed ({error}); --ca names the certificate authority of the server"
            ))
        })?;
        shake_hands(TokioIo::new(stream)).await
    }

    async fn exchange(&self, mut connection: Connection, path: &str) -> Result<Value, Failure> {
        let request = self.request(path)?;
        let Connection { sender, work } = &mut connection;
        let talk = async {
            sender.ready().await.map_err(broken)?;
            let response = sender.send_request(request).await.map_err(broken)?;
            let status = response.status().as_u16();
            let retry_after = seconds(&response);
            let body = whole(response.into_body()).await?;
            let is_success = (200..300).contains(&status);
            match serde_json::from_slice::<Value>(&body) {
                Ok(value) if is_success => Ok(value),
                Err(_) if is_success => Err(Failure::unreachable(
                    "the answer is not JSON; check that the URL is that of a Sidetone server",
                )),
                value => Err(Failure::of(status, &value.unwrap_or_default(), retry_after)),
            }
        };
        let answer = alongside(talk, work).await;
        if answer.as_ref().map_or_else(|failure| failure.status.is_some(), |_| true) && !sender.is_closed() {
            *self.shared.idle.lock() = Some(connection);
        }
        answer
    }

    fn request(&self, path: &str) -> Result<Request<Full<Bytes>>, Failure> {
        let url = &self.shared.url;
        let host = url.host_str().unwrap_or_default();
        let host = url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"));
        Request::builder()
            .method(Method::GET)
            .uri(format!("{}{path}", url.path().trim_end_matches('/')))
            .header(HOST, host)
            .header(USER_AGENT, AGENT)
            .header(ACCEPT, "application/json")
            .header(AUTHORIZATION, self.shared.authorization.clone())
            .body(Full::default())
            .map_err(|error| Failure::unreachable(error.to_string()))
    }
}

/// The URL of a server, or the error in it.
fn checked(text: &str) -> Result<Url, String> {
    let wrong =
        |what: &str| format!("{text}: {what}, such as https://pbx.example.com or http://127.0.0.1:8080");
    let url = Url::parse(text).map_err(|_| wrong("give the URL of the server"))?;
    if !matches!(url.scheme(), "http" | "https") || url.host().is_none() {
        return Err(wrong("the URL must begin with https:// or http://"));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(
            "the URL must not contain a user or a password; the key is given by --key-file".to_owned()
        );
    }
    if url.query().is_some() || url.fragment().is_some() {
        return Err(wrong("the URL must have no ? and no #"));
    }
    Ok(url)
}

async fn shake_hands<S>(stream: TokioIo<S>) -> Result<Connection, Failure>
where
    S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Send + Unpin + 'static,
{
    let (sender, work) = http1::handshake(stream).await.map_err(broken)?;
    // Its error also fails the request.
    Ok(Connection { sender, work: Box::pin(async { drop(work.await) }) })
}

/// Waits for `talk` while driving the connection.
async fn alongside<T>(
    talk: impl Future<Output = T>,
    work: &mut Pin<Box<dyn Future<Output = ()> + Send>>,
) -> T {
    let mut talk = std::pin::pin!(talk);
    tokio::select! {
        biased;
        answer = &mut talk => return answer,
        () = work => {}
    }
    // The connection is closed: the data received before is read, or the request fails.
    talk.await
}

/// The body of a response, up to its limit.
async fn whole(mut incoming: Incoming) -> Result<Bytes, Failure> {
    let mut body = BytesMut::new();
    while let Some(frame) = incoming.frame().await {
        let Ok(data) = frame.map_err(broken)?.into_data() else { continue };
        if body.len() + data.len() > ANSWER_BYTES_MAX {
            return Err(Failure::unreachable("the answer is longer than any of a Sidetone server"));
        }
        body.extend_from_slice(&data);
    }
    Ok(body.freeze())
}

fn broken(error: hyper::Error) -> Failure {
    Failure::unreachable(format!("the connection failed ({error})"))
}

/// `Retry-After` in seconds.
fn seconds(response: &Response<Incoming>) -> Option<Duration> {
    let text = response.headers().get(RETRY_AFTER)?.to_str().ok()?;
    text.trim().parse().ok().map(Duration::from_secs)
}

/// The client's User-Agent.
const AGENT: &str = concat!("sidetone/", env!("CARGO_PKG_VERSION"));
/// Ten times the longest page of the API.
const ANSWER_BYTES_MAX: usize = 32 * 1024 * 1024;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_url_is_answered_with_what_to_do() {
        let cases = [
            ("https://pbx.example.com", None),
            ("http://[::1]:8080/sub/", None),
            ("pbx.example.com:8080", Some("must begin with https://")),
            ("", Some("give the URL")),
            ("ftp://x", Some("must begin with https://")),
            ("https://a:b@x", Some("must not contain a user")),
            ("https://x/?a=1", Some("no ?")),
        ];
        for (url, expected) in cases {
            let problem = ApiClient::new(url, "tel_x", None).err();
            match expected {
                None => assert_eq!(problem, None, "{url}"),
                Some(part) => {
                    assert!(problem.as_ref().is_some_and(|text| text.contains(part)), "{url}: {problem:?}")
                }
            }
        }
        assert!(ApiClient::new("http://x", "a\nb", None).is_err());
        let is_open = |url: &str| ApiClient::new(url, "tel_x", None).unwrap().is_open();
        assert!(is_open("http://pbx.example.com") && !is_open("https://pbx.example.com"));
        assert!(!is_open("http://127.0.0.1:1") && !is_open("http://[::1]:1") && !is_open("http://localhost"));
    }
}
