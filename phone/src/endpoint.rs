//! The shared state of all parts of a phone: its configuration, transport, user agent and credentials.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Instant;

use rand::rngs::{StdRng, SysRng};
use rand::{RngExt, SeedableRng};
use sidetone_media::simulate::Scenario;
use sidetone_sip::auth::{Client, Realm};
use sidetone_sip::flow::Flow;
use sidetone_sip::message::{Digest, Host, Request, Response, StatusCode};
use sidetone_sip::transaction::{LayerConfig, Local, ServerKey};
use sidetone_sip::ua::{Extra, Reply, Retried, Ua, UaConfig};
use tokio::sync::broadcast;

use crate::command::PhoneError;
use crate::config::{News, PhoneConfig};
use crate::media::{Ear, Speech};
use crate::transport::Connection;

/// One phone as a SIP endpoint, without its calls and its other requests.
pub(super) struct Endpoint {
    pub(super) config: PhoneConfig,
    pub(super) transport: Connection,
    pub(super) ua: Ua,
    client: Client,
    pub(super) rng: StdRng,
    news: broadcast::Sender<News>,
    /// RTP datagrams received in all calls.
    heard: Arc<AtomicU64>,
}

impl Endpoint {
    pub(super) fn new(
        config: PhoneConfig,
        transport: Connection,
        news: broadcast::Sender<News>,
        heard: Arc<AtomicU64>,
    ) -> Result<Endpoint, PhoneError> {
        let mut rng = StdRng::try_from_rng(&mut SysRng).map_err(std::io::Error::other)?;
        let host = match transport.local() {
            SocketAddr::V4(v4) => Host::V4(*v4.ip()),
            SocketAddr::V6(v6) => Host::V6(*v6.ip()),
        };
        let layer = LayerConfig::new(Local::fixed(host, Some(transport.local().port())));
        let realm = Realm::Exactly(config.domain.clone());
        Ok(Endpoint {
            ua: Ua::new(UaConfig::new(layer), StdRng::from_rng(&mut rng)),
            client: Client::new(&config.number, &config.password, realm, StdRng::from_rng(&mut rng)),
            config,
            transport,
            rng,
            news,
            heard,
        })
    }

    /// Sends an event to all listeners.
    pub(super) fn report(&self, news: News) {
        let _ = self.news.send(news);
    }

    pub(super) fn ear(&self) -> Ear {
        Ear::new(Arc::clone(&self.heard), &self.config)
    }

    /// The audio that is sent in a call: the scenario, otherwise the configured voice.
    pub(super) fn speech(&mut self, talk: Option<Box<Scenario>>) -> Speech {
        match (talk, self.config.voice) {
            (Some(talk), _) => Speech::Scenario(talk),
            (None, Some(voice)) => Speech::Voice(voice, self.rng.random()),
            (None, None) => Speech::Nothing,
        }
    }

    pub(super) fn respond(&mut self, key: &ServerKey, status: u16) {
        let status = StatusCode::new(status).unwrap_or(StatusCode::SERVER_ERROR);
        let mut reply = Reply::new(status);
        if matches!(status.as_u16(), 200 | 405) {
            reply = reply.header("Allow", ALLOW);
        }
        self.reply(key, reply);
    }

    pub(super) fn reply(&mut self, key: &ServerKey, reply: Reply) {
        // This fails if the transaction has ended, after a CANCEL.
        let _ = self.ua.respond(now(), key, reply);
    }

    /// Sends a challenged request again with credentials.
    pub(super) fn authorized(&mut self, response: &Response, request: Request) -> Option<Retried> {
        let is_proxy = response.status() == StatusCode::PROXY_AUTHENTICATION_REQUIRED;
        let (challenges, header): (Vec<Digest>, _) = if is_proxy {
            (response.proxy_authenticate().filter_map(Result::ok).collect(), "Proxy-Authorization")
        } else {
            (response.www_authenticate().filter_map(Result::ok).collect(), "Authorization")
        };
        let tried = request.header(header).is_some();
        let answer = self.client.answer(&challenges, tried, request.method().as_str(), request.uri())?;
        let extra = Extra::new().header(header, answer);
        self.ua.retry(now(), self.flow(), request, &extra).ok()
    }

    pub(super) fn local(&self) -> SocketAddr {
        self.transport.local()
    }

    /// The flow to the switch.
    pub(super) fn flow(&self) -> Flow {
        self.transport.flow()
    }
}

#[expect(clippy::disallowed_methods, reason = "a phone is a driver: it reads the clock")]
pub(super) fn now() -> Instant {
    Instant::now()
}

/// Methods that the phone supports (RFC 3261 §20.5).
pub(super) const ALLOW: &str = "INVITE, ACK, CANCEL, BYE, OPTIONS, INFO, MESSAGE, NOTIFY";
