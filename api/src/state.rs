//! The state of the routes: ports, a clock, and the limits.

use std::sync::Arc;

use ipnet::IpNet;
use sidetone_model::ai_price::AiPrices;
use sidetone_model::conversation::Conversations;
use sidetone_model::event::EventStreams;
use sidetone_model::extension::Extensions;
use sidetone_model::idempotency::{Claim, Idempotency, KeptAnswer, Once};
use sidetone_model::ids::{OrganisationId, RoomId};
use sidetone_model::key::Keys;
use sidetone_model::leg_trace::LegTraces;
use sidetone_model::live_call::LiveCalls;
use sidetone_model::media_quality::{LiveQuality, StoredQuality};
use sidetone_model::metrics::{Family, Metrics};
use sidetone_model::note::Notes;
use sidetone_model::number::Numbers;
use sidetone_model::organisation::Organisations;
use sidetone_model::ports::{ApiKeys, CdrLog, OutgoingUrls, PortFuture, Readiness, Tenants};
use sidetone_model::problem::Problem;
use sidetone_model::prompt::Prompts;
use sidetone_model::rate_book::RateBook;
use sidetone_model::rating::{CostRate, FxRate, SellRate};
use sidetone_model::recording::Recordings;
use sidetone_model::room::meeting::Meetings;
use sidetone_model::room::session::RoomSessions;
use sidetone_model::room::{LiveRooms, Rooms};
use sidetone_model::team::{Agents, Teams};
use sidetone_model::time::Timestamp;
use sidetone_model::trunk::Trunks;
use sidetone_model::user::{Accounts, Users};
use sidetone_model::webhook::Webhooks;

use crate::auth::{Attempts, KnownTokens, RateLimits, TokenKey};
use crate::error::ApiError;
use crate::metrics::HttpMetrics;
use crate::server::ServerCounters;
use crate::settings::{HttpSettings, SharedSettings};
use crate::stream::Places;

/// Returns the current time.
pub type Clock = Arc<dyn Fn() -> Timestamp + Send + Sync>;

/// The ports of the routes; clones share them.
#[derive(Clone)]
pub struct ApiState {
    pub(crate) cdrs: Arc<dyn CdrLog>,
    conversations: Option<Arc<dyn Conversations>>,
    ai_prices: Option<Arc<dyn AiPrices>>,
    notes: Option<Arc<dyn Notes>>,
    pub(crate) keys: Arc<dyn ApiKeys>,
    pub(crate) readiness: Arc<dyn Readiness>,
    pub(crate) idempotency: Arc<dyn Idempotency>,
    pub(crate) clock: Clock,
    pub(crate) settings: SharedSettings,
    pub(crate) limits: Arc<RateLimits>,
    pub(crate) known_tokens: Arc<KnownTokens>,
    pub(crate) tenants: Arc<dyn Tenants>,
    pub(crate) metrics: Arc<dyn Metrics>,
    pub(crate) http: Arc<HttpMetrics>,
    pub(crate) server: Arc<ServerCounters>,
    pub(crate) attempts: Arc<Attempts>,
    pub(crate) panel: Option<Arc<Panel>>,
    pub(crate) directory: Option<DirectoryPorts>,
    pub(crate) rates: Option<RatePorts>,
    events: Option<Arc<dyn EventStreams>>,
    pub(crate) stream_places: Places,
    outgoing_urls: Option<Arc<dyn OutgoingUrls>>,
    live_calls: Option<Arc<dyn LiveCalls>>,
    live_quality: Option<Arc<dyn LiveQuality>>,
    stored_quality: Option<Arc<dyn StoredQuality>>,
    leg_traces: Option<Arc<dyn LegTraces>>,
    webhooks: Option<Arc<dyn Webhooks>>,
    prompts: Option<Arc<dyn Prompts>>,
    room_history: Option<RoomHistory>,
    rooms: Option<Arc<dyn Rooms>>,
    live_rooms: Option<Arc<dyn LiveRooms>>,
    recordings: Option<Arc<dyn Recordings>>,
}

/// The ports for users who log in: authentication, and what they manage.
pub struct Panel {
    /// Authentication of users.
    pub accounts: Arc<dyn Accounts>,
    /// Agents.
    pub agents: Arc<dyn Agents>,
    /// Integration keys.
    pub keys: Arc<dyn Keys>,
    /// Teams.
    pub teams: Arc<dyn Teams>,
    /// Signs their sessions.
    pub token_key: TokenKey,
    /// Users.
    pub users: Arc<dyn Users>,
}

/// The ports for managing the directory.
#[derive(Clone)]
pub struct DirectoryPorts {
    /// Extensions.
    pub extensions: Arc<dyn Extensions>,
    /// Phone numbers.
    pub numbers: Arc<dyn Numbers>,
    /// Organisations.
    pub organisations: Arc<dyn Organisations>,
    /// Trunks.
    pub trunks: Arc<dyn Trunks>,
}

/// The stored history of conference rooms.
#[derive(Clone)]
pub struct RoomHistory {
    /// Their sessions.
    pub sessions: Arc<dyn RoomSessions>,
    /// The reports of virtual agents on them; `None` without the AI module.
    pub meetings: Option<Arc<dyn Meetings>>,
}

/// The ports of rating.
#[derive(Clone)]
pub struct RatePorts {
    /// The prices of carriers.
    pub cost: Arc<dyn RateBook<CostRate>>,
    /// Conversion rates between currencies.
    pub fx: Arc<dyn RateBook<FxRate>>,
    /// The prices that organisations pay.
    pub sell: Arc<dyn RateBook<SellRate>>,
}

impl ApiState {
    /// A state with these ports, which trusts no `X-Forwarded-For` and authenticates only keys.
    pub fn new(
        cdrs: Arc<dyn CdrLog>,
        keys: Arc<dyn ApiKeys>,
        readiness: Arc<dyn Readiness>,
        clock: Clock,
    ) -> Self {
        Self {
            cdrs,
            conversations: None,
            ai_prices: None,
            notes: None,
            keys,
            readiness,
            idempotency: Arc::new(Nowhere),
            clock,
            settings: SharedSettings::default(),
            limits: Arc::new(RateLimits::default()),
            known_tokens: Arc::default(),
            tenants: Arc::new(Nowhere),
            metrics: Arc::new(Nowhere),
            http: Arc::default(),
            server: Arc::default(),
            attempts: Arc::new(Attempts::default()),
            panel: None,
            directory: None,
            rates: None,
            events: None,
            stream_places: Places::default(),
            outgoing_urls: None,
            live_calls: None,
            live_quality: None,
            stored_quality: None,
            leg_traces: None,
            webhooks: None,
            prompts: None,
            room_history: None,
            rooms: None,
            live_rooms: None,
            recordings: None,
        }
    }

    /// Returns the state with the login of users.
    #[must_use]
    pub fn with_panel(mut self, panel: Panel) -> Self {
        self.panel = Some(Arc::new(panel));
        self
    }

    /// Returns the state with a share of the store for each organisation.
    #[must_use]
    pub fn with_tenants(mut self, tenants: Arc<dyn Tenants>) -> Self {
        self.tenants = tenants;
        self
    }

    /// The panel's ports.
    pub(crate) fn panel(&self) -> Result<&Panel, ApiError> {
        self.panel.as_deref().ok_or_else(|| ApiError::not_found("nobody logs in here, there are keys alone"))
    }

    /// Returns the state with management of the directory.
    #[must_use]
    pub fn with_directory(mut self, directory: DirectoryPorts) -> Self {
        self.directory = Some(directory);
        self
    }

    /// The directory's ports.
    pub(crate) fn directory(&self) -> Result<&DirectoryPorts, ApiError> {
        self.directory.as_ref().ok_or_else(|| ApiError::not_found("the directory is not managed here"))
    }

    /// Returns the state with URLs that organisations may have requested.
    #[must_use]
    pub fn with_outgoing_urls(mut self, urls: Arc<dyn OutgoingUrls>) -> Self {
        self.outgoing_urls = Some(urls);
        self
    }

    /// Checks that a URL may be saved; without a port that decides, none may.
    ///
    /// # Errors
    /// The rule that the text breaks.
    pub fn check_outgoing_url(&self, url: &str) -> Result<(), String> {
        match &self.outgoing_urls {
            Some(urls) => urls.check(url),
            None => Err("must be empty: no URL is asked from here".to_owned()),
        }
    }

    /// Returns the state with live events.
    #[must_use]
    pub fn with_events(mut self, events: Arc<dyn EventStreams>) -> Self {
        self.events = Some(events);
        self
    }

    /// Returns the port of live events.
    pub(crate) fn event_streams(&self) -> Result<&dyn EventStreams, ApiError> {
        self.events.as_deref().ok_or_else(|| ApiError::not_found("no events are shown here"))
    }

    /// Returns the state with management of rates.
    #[must_use]
    pub fn with_rates(mut self, rates: RatePorts) -> Self {
        self.rates = Some(rates);
        self
    }

    /// Returns the ports of rating.
    pub(crate) fn rates(&self) -> Result<&RatePorts, ApiError> {
        self.rates.as_ref().ok_or_else(|| ApiError::not_found("rates are not managed here"))
    }

    /// Returns the state with live calls.
    #[must_use]
    pub fn with_live_calls(mut self, calls: Arc<dyn LiveCalls>) -> Self {
        self.live_calls = Some(calls);
        self
    }

    /// Returns the live calls.
    pub(crate) fn live_calls(&self) -> Result<&dyn LiveCalls, ApiError> {
        self.live_calls.as_deref().ok_or_else(|| ApiError::not_found("no calls are carried here"))
    }

    /// Returns the state with the media of live calls.
    #[must_use]
    pub fn with_live_quality(mut self, quality: Arc<dyn LiveQuality>) -> Self {
        self.live_quality = Some(quality);
        self
    }

    /// Returns the media of live calls.
    pub(crate) fn live_quality(&self) -> Result<&dyn LiveQuality, ApiError> {
        self.live_quality.as_deref().ok_or_else(|| ApiError::not_found("no calls are carried here"))
    }

    /// Returns the state with the media of finished calls.
    #[must_use]
    pub fn with_stored_quality(mut self, quality: Arc<dyn StoredQuality>) -> Self {
        self.stored_quality = Some(quality);
        self
    }

    /// Returns the media of finished calls; `None` if it is not stored.
    pub(crate) fn stored_quality(&self) -> Option<&dyn StoredQuality> {
        self.stored_quality.as_deref()
    }

    /// Returns the state with the traces of legs.
    #[must_use]
    pub fn with_leg_traces(mut self, traces: Arc<dyn LegTraces>) -> Self {
        self.leg_traces = Some(traces);
        self
    }

    /// Returns the traces of legs; `None` if there are none.
    pub(crate) fn leg_traces(&self) -> Option<&dyn LegTraces> {
        self.leg_traces.as_deref()
    }

    /// Returns the state with management of conference rooms.
    #[must_use]
    pub fn with_rooms(mut self, rooms: Arc<dyn Rooms>) -> Self {
        self.rooms = Some(rooms);
        self
    }

    /// The stored conference rooms.
    pub(crate) fn rooms(&self) -> Result<&dyn Rooms, ApiError> {
        self.rooms.as_deref().ok_or_else(|| ApiError::not_found("no conference rooms are kept here"))
    }

    /// Returns the state with live rooms.
    #[must_use]
    pub fn with_live_rooms(mut self, rooms: Arc<dyn LiveRooms>) -> Self {
        self.live_rooms = Some(rooms);
        self
    }

    /// Returns the live rooms.
    pub(crate) fn live_rooms(&self) -> Result<&dyn LiveRooms, ApiError> {
        self.live_rooms.as_deref().ok_or_else(|| ApiError::not_found("no conferences are held here"))
    }

    /// Returns the current number of members of each of `rooms`, in order; 0 without conferences.
    pub(crate) async fn live_members(&self, rooms: &[RoomId]) -> Result<Vec<u32>, ApiError> {
        match &self.live_rooms {
            Some(live) if !rooms.is_empty() => Ok(live.live_members(rooms).await?),
            _ => Ok(vec![0; rooms.len()]),
        }
    }

    /// Returns the state with management of webhooks.
    #[must_use]
    pub fn with_webhooks(mut self, webhooks: Arc<dyn Webhooks>) -> Self {
        self.webhooks = Some(webhooks);
        self
    }

    /// The webhooks.
    pub(crate) fn webhooks(&self) -> Result<&dyn Webhooks, ApiError> {
        self.webhooks.as_deref().ok_or_else(|| ApiError::not_found("webhooks are not managed here"))
    }

    /// Returns the state with the organisations' own prompts.
    #[must_use]
    pub fn with_prompts(mut self, prompts: Arc<dyn Prompts>) -> Self {
        self.prompts = Some(prompts);
        self
    }

    /// Returns the prompts.
    pub(crate) fn prompts(&self) -> Result<&dyn Prompts, ApiError> {
        self.prompts.as_deref().ok_or_else(|| ApiError::not_found("nothing is played here"))
    }

    /// Returns the state with the history of conference rooms.
    #[must_use]
    pub fn with_room_history(mut self, history: RoomHistory) -> Self {
        self.room_history = Some(history);
        self
    }

    /// Returns the history of conference rooms.
    pub(crate) fn room_history(&self) -> Result<&RoomHistory, ApiError> {
        self.room_history.as_ref().ok_or_else(|| ApiError::not_found("there are no conference rooms here"))
    }

    /// Returns the reports of virtual agents on the sessions of rooms.
    pub(crate) fn meetings(&self) -> Result<&dyn Meetings, ApiError> {
        let meetings = self.room_history()?.meetings.as_deref();
        meetings
            .ok_or_else(|| ApiError::not_found("there is no AI module here, no virtual agent sits in rooms"))
    }

    /// Returns the state with recordings.
    #[must_use]
    pub fn with_recordings(mut self, recordings: Arc<dyn Recordings>) -> Self {
        self.recordings = Some(recordings);
        self
    }

    /// The recordings.
    pub(crate) fn recordings(&self) -> Result<&dyn Recordings, ApiError> {
        self.recordings.as_deref().ok_or_else(|| ApiError::not_found("no recordings are kept here"))
    }

    /// Returns the state that trusts `X-Forwarded-For` from these peers.
    #[must_use]
    pub fn with_trusted_proxies(self, proxies: Vec<IpNet>) -> Self {
        self.with_settings(HttpSettings { trusted_proxies: proxies, ..HttpSettings::default() })
    }

    /// Returns the state with conversations and the prices of AI models.
    #[must_use]
    pub fn with_conversations(
        mut self,
        conversations: Arc<dyn Conversations>,
        ai_prices: Arc<dyn AiPrices>,
    ) -> Self {
        (self.conversations, self.ai_prices) = (Some(conversations), Some(ai_prices));
        self
    }

    /// The conversations.
    pub(crate) fn conversations(&self) -> Result<&dyn Conversations, ApiError> {
        self.conversations.as_deref().ok_or_else(|| ApiError::not_found("no conversations are kept here"))
    }

    /// The prices of AI models.
    pub(crate) fn ai_prices(&self) -> Result<&dyn AiPrices, ApiError> {
        self.ai_prices.as_deref().ok_or_else(|| ApiError::not_found("no prices are kept here"))
    }

    /// Returns the state with notes to phones.
    #[must_use]
    pub fn with_notes(mut self, notes: Arc<dyn Notes>) -> Self {
        self.notes = Some(notes);
        self
    }

    /// The notes.
    pub(crate) fn notes(&self) -> Result<&dyn Notes, ApiError> {
        self.notes.as_deref().ok_or_else(|| ApiError::not_found("no notes are sent from here"))
    }

    /// Returns the state that stores the answers to requests with an `Idempotency-Key`.
    #[must_use]
    pub fn with_idempotency(mut self, idempotency: Arc<dyn Idempotency>) -> Self {
        self.idempotency = idempotency;
        self
    }

    /// Returns the state with the engine's counters in `/metrics`.
    #[must_use]
    pub fn with_metrics(mut self, metrics: Arc<dyn Metrics>) -> Self {
        self.metrics = metrics;
        self
    }

    /// Returns the state with these limits.
    #[must_use]
    pub fn with_settings(self, settings: HttpSettings) -> Self {
        self.settings.replace(settings);
        self
    }

    /// Returns the current limits, to be replaced while the server runs.
    pub fn settings(&self) -> SharedSettings {
        self.settings.clone()
    }
}

/// Stores and counts nothing: a request that must be executed once is not executed.
struct Nowhere;

impl Tenants for Nowhere {
    fn acting_for(&self, _organisation: OrganisationId, work: &mut dyn FnMut()) {
        work();
    }
}

impl Idempotency for Nowhere {
    fn once<'a>(
        &'a self,
        _claim: Claim,
        _now: Timestamp,
        _work: PortFuture<'a, Option<KeptAnswer>>,
    ) -> PortFuture<'a, Once> {
        Box::pin(async { Err(Problem::Internal("there is no store for Idempotency-Keys".to_owned())) })
    }
}

impl Metrics for Nowhere {
    fn families(&self) -> PortFuture<'_, Vec<Family>> {
        Box::pin(async { Ok(Vec::new()) })
    }
}
