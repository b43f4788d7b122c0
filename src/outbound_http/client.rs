//! One request: from the URL to the response.

use std::future::Future;
use std::net::{IpAddr, SocketAddr};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper::header::{
    CONNECTION, CONTENT_LENGTH, CONTENT_TYPE, DATE, HOST, HeaderMap, HeaderName, HeaderValue, RETRY_AFTER,
    USER_AGENT,
};
use hyper::{Method, Request, Response};
use hyper_util::rt::TokioIo;
use rustls::pki_types::ServerName;
use tokio::time::{Instant, timeout_at};
use tokio_rustls::TlsConnector;
use url::{Host, Url};

use crate::outbound_http::bounded::Bounded;
use crate::outbound_http::error::{self, PostError, Stage};
use crate::outbound_http::network::{Network, Stream, System};
use crate::outbound_http::policy::Policy;
use crate::outbound_http::roots::{Roots, RootsError};
use crate::outbound_http::settings::OutboundHttp;

/// Sends requests to hosts that organisations configure; clones share one set of rules.
#[derive(Clone)]
pub struct Client {
    shared: Arc<Shared>,
}

struct Shared {
    policy: Policy,
    network: Box<dyn Network>,
    tls: TlsConnector,
}

/// The limits of one request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Budget {
    /// From the call to the last byte: name lookup, connection, TLS, and the response with its body.
    pub total: Duration,
    /// Bytes of the response's body that are read.
    pub answer_bytes: usize,
}

/// The response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// The status. A redirect is a response like any other: it is not followed.
    pub status: u16,
    /// `Content-Type`, if present and text.
    pub content_type: Option<String>,
    /// `Retry-After`: its seconds, or the time between the response's `Date` and the given date.
    pub retry_after: Option<Duration>,
    /// The body as received, with any compression; no longer than the limit.
    pub body: Bytes,
    /// Whether the body is complete.
    pub end: End,
}

/// How the body of a response ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// The connection broke, or was closed, before the end.
    Broken,
    /// The time limit was reached.
    Late,
    /// It is longer than the limit.
    TooLarge,
    /// It is complete.
    Whole,
}

impl Answer {
    /// Whether the server accepted the request: any 2xx.
    pub fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }
}

impl Client {
    /// A client on this host's network; `own` are the addresses of the host. Must run within a tokio runtime.
    ///
    /// # Errors
    /// When the authorities of `settings` cannot be read.
    pub fn new(settings: &OutboundHttp, own: Vec<IpAddr>) -> Result<Self, RootsError> {
        let roots = Roots::load(settings.extra_ca.as_deref())?;
        Self::over(Policy::new(settings, own), roots, Box::new(System::new()))
    }

    /// A client on another network.
    ///
    /// # Errors
    /// When there is no cryptography for it.
    pub fn over(policy: Policy, roots: Roots, network: Box<dyn Network>) -> Result<Self, RootsError> {
        let tls = TlsConnector::from(Arc::new(roots.client()?));
        Ok(Self { shared: Arc::new(Shared { policy, network, tls }) })
    }

    /// The rules for URLs, to check one when it is saved.
    pub fn policy(&self) -> &Policy {
        &self.shared.policy
    }

    /// Sends `body` to `url` and reads the response.
    ///
    /// `headers` follow those that the client sends itself: `Host`, `User-Agent`, `Connection: close` and
    /// `Content-Length`. The connection is made to an address that was checked, and is closed afterwards.
    ///
    /// # Errors
    /// Why there is no response. Every response with a complete head is returned, whatever its status.
    pub async fn post(
        &self,
        url: &str,
        headers: &[(&'static str, String)],
        body: Bytes,
        budget: Budget,
    ) -> Result<Answer, PostError> {
        let within = Within { until: Instant::now() + budget.total, limit: budget.total };
        let url = self.shared.policy.check_url(url)?;
        let request = request(&url, headers, body)?;
        let addresses = within.time(Stage::Lookup, self.addresses(&url)).await?;
        let stream = self.connect(&addresses, &within).await?;
        let name = server_name(&url)?;
        let raw = Bounded::new(stream, raw_bytes_max(budget));
        let tls = within
            .time(Stage::Tls, async {
                self.shared.tls.connect(name, raw).await.map_err(|error| error::tls(&error))
            })
            .await?;
        exchange(
            Bounded::new(tls, HEAD_BYTES_MAX.saturating_add(budget.answer_bytes)),
            request,
            budget,
            &within,
        )
        .await
    }

    /// The addresses for the connection: the result of the name lookup, without addresses that are not
    /// public.
    async fn addresses(&self, url: &Url) -> Result<Vec<SocketAddr>, PostError> {
        let port = url.port_or_known_default().unwrap_or_default();
        let host = match url.host() {
            // `check_url` has checked this address.
            Some(Host::Ipv4(address)) => return Ok(vec![SocketAddr::new(address.into(), port)]),
            Some(Host::Ipv6(address)) => {
                return Ok(vec![SocketAddr::new(IpAddr::V6(address).to_canonical(), port)]);
            }
            Some(Host::Domain(host)) => host.trim_end_matches('.'),
            None => "",
        };
        let found = self.shared.network.lookup(host).await;
        let found = found.map_err(|reason| PostError::Lookup { host: host.to_owned(), reason })?;
        let allowed: Vec<SocketAddr> = found
            .into_iter()
            .map(|address| address.to_canonical())
            .filter(|address| self.shared.policy.check_address(*address).is_ok())
            .take(ADDRESSES_MAX)
            .map(|address| SocketAddr::new(address, port))
            .collect();
        if allowed.is_empty() {
            return Err(PostError::NotPublic { host: host.to_owned() });
        }
        Ok(allowed)
    }

    /// Connects to the first address that accepts; each gets an equal part of the remaining time.
    async fn connect(&self, addresses: &[SocketAddr], within: &Within) -> Result<Box<dyn Stream>, PostError> {
        let mut last = within.over(Stage::Connect);
        for (tried, address) in addresses.iter().enumerate() {
            let left = u32::try_from(addresses.len() - tried).unwrap_or(u32::MAX);
            let now = Instant::now();
            let until = now + within.until.saturating_duration_since(now) / left;
            match timeout_at(until, self.shared.network.connect(*address)).await {
                Ok(Ok(stream)) => return Ok(stream),
                Ok(Err(source)) => last = PostError::Connect { address: *address, source },
                Err(_) => last = within.over(Stage::Connect),
            }
        }
        Err(last)
    }
}

/// How long a request may take.
struct Within {
    until: Instant,
    limit: Duration,
}

impl Within {
    async fn time<T>(
        &self,
        stage: Stage,
        work: impl Future<Output = Result<T, PostError>>,
    ) -> Result<T, PostError> {
        timeout_at(self.until, work).await.unwrap_or_else(|_| Err(self.over(stage)))
    }

    fn over(&self, stage: Stage) -> PostError {
        PostError::Timeout { limit: self.limit, stage }
    }
}

fn request(
    url: &Url,
    headers: &[(&'static str, String)],
    body: Bytes,
) -> Result<Request<Full<Bytes>>, PostError> {
    let target = match url.query() {
        Some(query) => format!("{}?{query}", url.path()),
        None => url.path().to_owned(),
    };
    let host = url.host_str().unwrap_or_default();
    let host = url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"));
    let mut all = HeaderMap::new();
    all.insert(HOST, HeaderValue::try_from(host).map_err(|_| PostError::Header("Host"))?);
    all.insert(USER_AGENT, HeaderValue::from_static(AGENT));
    all.insert(CONNECTION, HeaderValue::from_static("close"));
    all.insert(CONTENT_LENGTH, HeaderValue::from(body.len()));
    for (name, value) in headers {
        let unsent = |_| PostError::Header(name);
        let key = HeaderName::try_from(*name).map_err(|_| PostError::Header(name))?;
        all.append(key, HeaderValue::try_from(value.as_str()).map_err(unsent)?);
    }
    let mut request = Request::builder()
        .method(Method::POST)
        .uri(target)
        .body(Full::new(body))
        .map_err(|error| PostError::Answer(error.to_string()))?;
    *request.headers_mut() = all;
    Ok(request)
}

/// The name that the certificate must be for.
fn server_name(url: &Url) -> Result<ServerName<'static>, PostError> {
    let host = url.host_str().unwrap_or_default();
    let plain = host.trim_start_matches('[').trim_end_matches(']').trim_end_matches('.').to_owned();
    ServerName::try_from(plain)
        .map_err(|_| PostError::Tls("no certificate can be for such a name".to_owned()))
}

/// Sends the request and reads the response, while the connection is driven.
async fn exchange(
    stream: impl Stream + 'static,
    request: Request<Full<Bytes>>,
    budget: Budget,
    within: &Within,
) -> Result<Answer, PostError> {
    let handshake = http1::Builder::new()
        .max_headers(HEADERS_MAX)
        .max_header_size(HEAD_BYTES_MAX)
        .max_buf_size(HEAD_BYTES_MAX)
        .handshake(TokioIo::new(stream))
        .await;
    let (mut sender, connection) = handshake.map_err(|error| error::http(&error))?;
    let talk = async {
        let head = within.time(Stage::Answer, async {
            sender.send_request(request).await.map_err(|error| error::http(&error))
        });
        Ok(answer(head.await?, budget, within).await)
    };
    let mut talk = pin!(talk);
    let mut connection = pin!(connection);
    let mut driving = true;
    loop {
        tokio::select! {
            answer = &mut talk => return answer,
            // Its error also reaches the future that waits for the response.
            _ = &mut connection, if driving => driving = false,
        }
    }
}

async fn answer(response: Response<Incoming>, budget: Budget, within: &Within) -> Answer {
    let (head, mut incoming) = response.into_parts();
    let mut body = BytesMut::new();
    let end = loop {
        let frame = match timeout_at(within.until, incoming.frame()).await {
            Err(_) => break End::Late,
            Ok(None) => break End::Whole,
            Ok(Some(Err(error))) => {
                let too_much = matches!(error::http(&error), PostError::Answer(_));
                break if too_much { End::TooLarge } else { End::Broken };
            }
            Ok(Some(Ok(frame))) => frame,
        };
        // Trailers contain nothing that is needed.
        let Ok(data) = frame.into_data() else { continue };
        let room = budget.answer_bytes.saturating_sub(body.len());
        body.extend_from_slice(data.get(..room).unwrap_or(&data));
        if data.len() > room {
            break End::TooLarge;
        }
    };
    let content_type =
        head.headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).map(str::to_owned);
    Answer {
        status: head.status.as_u16(),
        content_type,
        retry_after: retry_after(&head.headers),
        body: body.freeze(),
        end,
    }
}

/// RFC 9110 §10.2.3: seconds, or a date; a date is relative to the response's own date, so that clocks may differ.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let text = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    if text.bytes().all(|byte| byte.is_ascii_digit()) {
        return text.parse().ok().map(Duration::from_secs);
    }
    let now = httpdate::parse_http_date(headers.get(DATE)?.to_str().ok()?).ok()?;
    Some(httpdate::parse_http_date(text).ok()?.duration_since(now).unwrap_or_default())
}

/// Bytes read from the network below TLS, whose records are longer than their content.
fn raw_bytes_max(budget: Budget) -> usize {
    budget.answer_bytes.saturating_mul(2).saturating_add(HANDSHAKE_BYTES_MAX)
}

/// The client's User-Agent.
const AGENT: &str = concat!("sidetone/", env!("CARGO_PKG_VERSION"));
/// Addresses of one name that are tried.
const ADDRESSES_MAX: usize = 4;
/// Header lines of a response.
const HEADERS_MAX: usize = 64;
/// Bytes of a response before its body, including all interim responses (1xx).
const HEAD_BYTES_MAX: usize = 16 * 1024;
/// Bytes of a handshake, certificates included, and of the response's head.
const HANDSHAKE_BYTES_MAX: usize = 128 * 1024;
