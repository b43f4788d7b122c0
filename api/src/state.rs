//! What the routes work with: ports, a clock, and the limits.

use std::sync::Arc;

use ipnet::IpNet;
use sidetone_model::ports::{ApiKeys, CdrLog, Readiness};
use sidetone_model::time::Timestamp;

use crate::auth::RateLimits;

/// Says what time it is.
pub type Clock = Arc<dyn Fn() -> Timestamp + Send + Sync>;

/// The ports behind the routes; clones share them.
#[derive(Clone)]
pub struct ApiState {
    pub(crate) cdrs: Arc<dyn CdrLog>,
    pub(crate) keys: Arc<dyn ApiKeys>,
    pub(crate) readiness: Arc<dyn Readiness>,
    pub(crate) clock: Clock,
    pub(crate) trusted_proxies: Arc<[IpNet]>,
    pub(crate) limits: Arc<RateLimits>,
    pub(crate) strict_bodies: bool,
}

impl ApiState {
    /// A state over these ports, which believes `X-Forwarded-For` from nobody.
    pub fn new(
        cdrs: Arc<dyn CdrLog>,
        keys: Arc<dyn ApiKeys>,
        readiness: Arc<dyn Readiness>,
        clock: Clock,
    ) -> Self {
        Self {
            cdrs,
            keys,
            readiness,
            clock,
            trusted_proxies: Arc::new([]),
            limits: Arc::new(RateLimits::default()),
            strict_bodies: true,
        }
    }

    /// The same state, which ignores unknown fields of bodies unless `strict`: callers of a later version go on
    /// working while the nodes are replaced one by one.
    #[must_use]
    pub fn with_strict_bodies(mut self, strict: bool) -> Self {
        self.strict_bodies = strict;
        self
    }

    /// The same state, which believes `X-Forwarded-For` from these peers.
    #[must_use]
    pub fn with_trusted_proxies(mut self, proxies: Vec<IpNet>) -> Self {
        self.trusted_proxies = proxies.into();
        self
    }
}
