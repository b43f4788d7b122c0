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
        }
    }

    /// The same state, which believes `X-Forwarded-For` from these peers.
    #[must_use]
    pub fn with_trusted_proxies(mut self, proxies: Vec<IpNet>) -> Self {
        self.trusted_proxies = proxies.into();
        self
    }
}
