//! The state of the routes: ports, a clock, and the limits.

use std::ops::Deref;
use std::sync::Arc;

use ipnet::IpNet;
use sidetone_model::ai_price::AiPrices;
use sidetone_model::call_recording::CallRecordings;
use sidetone_model::call_request::CallRequests;
use sidetone_model::cluster::Nodes;
use sidetone_model::conversation::Conversations;
use sidetone_model::event::EventStreams;
use sidetone_model::ids::RoomId;
use sidetone_model::leg_trace::LegTraces;
use sidetone_model::live_call::LiveCalls;
use sidetone_model::media_quality::{LiveQuality, StoredQuality};
use sidetone_model::note::Notes;
use sidetone_model::prompt::Prompts;
use sidetone_model::recording::Recordings;
use sidetone_model::registration::PhoneRegistrations;
use sidetone_model::room::meeting::Meetings;
use sidetone_model::room::{LiveRooms, Rooms};
use sidetone_model::time::Timestamp;
use sidetone_model::trunk_status::TrunkStatuses;
use sidetone_model::webhook::Webhooks;
use tokio::sync::watch;

use crate::auth::{Attempts, KnownTokens, RateLimits};
use crate::error::ApiError;
use crate::metrics::HttpMetrics;
use crate::ports::{DirectoryPorts, Panel, Ports, RatePorts, RoomHistory};
use crate::server::ServerCounters;
use crate::settings::{HttpSettings, SharedSettings};
use crate::stream::Places;

/// Returns the current time.
pub type Clock = Arc<dyn Fn() -> Timestamp + Send + Sync>;

/// The ports of the routes, and the state that the routes keep between requests; clones share both.
///
/// Dereferences to its [`Ports`]: a route reads `state.cdrs`.
#[derive(Clone)]
pub struct ApiState {
    ports: Arc<Ports>,
    pub(crate) clock: Clock,
    pub(crate) settings: SharedSettings,
    pub(crate) limits: Arc<RateLimits>,
    pub(crate) known_tokens: Arc<KnownTokens>,
    pub(crate) http: Arc<HttpMetrics>,
    pub(crate) server: Arc<ServerCounters>,
    pub(crate) attempts: Arc<Attempts>,
    pub(crate) stream_places: Places,
    /// Counts changes of keys, users and sessions.
    pub(crate) credential_changes: watch::Receiver<u64>,
}

impl Deref for ApiState {
    type Target = Ports;

    fn deref(&self) -> &Ports {
        &self.ports
    }
}

impl ApiState {
    /// A state with these ports, which trusts no `X-Forwarded-For` until [`ApiState::with_settings`].
    pub fn new(ports: Ports, clock: Clock) -> Self {
        let limits = RateLimits::new(ports.peers.clone());
        Self {
            ports: Arc::new(ports),
            clock,
            settings: SharedSettings::default(),
            limits: Arc::new(limits),
            known_tokens: Arc::default(),
            http: Arc::default(),
            server: Arc::default(),
            attempts: Arc::new(Attempts::default()),
            stream_places: Places::default(),
            // Its sender is dropped: no change is ever signalled.
            credential_changes: watch::Sender::new(0).subscribe(),
        }
    }

    /// The panel's ports.
    pub(crate) fn panel(&self) -> Result<&Panel, ApiError> {
        self.panel.as_deref().ok_or_else(|| {
            ApiError::not_found("users cannot log in here: only integration keys are accepted")
        })
    }

    /// The directory's ports.
    pub(crate) fn directory(&self) -> Result<&DirectoryPorts, ApiError> {
        self.directory.as_ref().ok_or_else(|| ApiError::not_found("the directory is not managed here"))
    }

    /// Checks that a URL may be saved; without the port, none may be.
    ///
    /// # Errors
    /// The rule that the text breaks.
    pub fn check_outgoing_url(&self, url: &str) -> Result<(), String> {
        match &self.outgoing_urls {
            Some(urls) => urls.check(url),
            None => Err("must be empty: this process requests no URLs".to_owned()),
        }
    }

    /// Returns the port of live events.
    pub(crate) fn event_streams(&self) -> Result<&dyn EventStreams, ApiError> {
        self.events.as_deref().ok_or_else(|| ApiError::not_found("this process serves no events"))
    }

    /// Returns the ports of rating.
    pub(crate) fn rates(&self) -> Result<&RatePorts, ApiError> {
        self.rates.as_ref().ok_or_else(|| ApiError::not_found("this process manages no rates"))
    }

    /// Returns the live calls.
    pub(crate) fn live_calls(&self) -> Result<&dyn LiveCalls, ApiError> {
        self.live_calls.as_deref().ok_or_else(|| ApiError::not_found("this process carries no calls"))
    }

    /// Returns the registrations of phones.
    pub(crate) fn registrations(&self) -> Result<&dyn PhoneRegistrations, ApiError> {
        self.registrations.as_deref().ok_or_else(|| ApiError::not_found("this process registers no phones"))
    }

    /// Returns the nodes of the installation.
    pub(crate) fn nodes(&self) -> Result<&dyn Nodes, ApiError> {
        self.nodes.as_deref().ok_or_else(|| ApiError::not_found("this process is no node of a switch"))
    }

    /// Returns the state of trunks at the switch.
    pub(crate) fn trunk_statuses(&self) -> Result<&dyn TrunkStatuses, ApiError> {
        self.trunk_statuses.as_deref().ok_or_else(|| ApiError::not_found("this process carries no calls"))
    }

    /// Returns the media of live calls.
    pub(crate) fn live_quality(&self) -> Result<&dyn LiveQuality, ApiError> {
        self.live_quality.as_deref().ok_or_else(|| ApiError::not_found("this process carries no calls"))
    }

    /// Returns the media of finished calls; `None` if it is not stored.
    pub(crate) fn stored_quality(&self) -> Option<&dyn StoredQuality> {
        self.stored_quality.as_deref()
    }

    /// Returns the traces of legs; `None` if there are none.
    pub(crate) fn leg_traces(&self) -> Option<&dyn LegTraces> {
        self.leg_traces.as_deref()
    }

    /// Recordings of calls.
    pub(crate) fn call_recordings(&self) -> Result<&dyn CallRecordings, ApiError> {
        self.call_recordings.as_deref().ok_or_else(|| ApiError::not_found("this process records no calls"))
    }

    /// Placing calls.
    pub(crate) fn call_requests(&self) -> Result<&dyn CallRequests, ApiError> {
        self.call_requests.as_deref().ok_or_else(|| ApiError::not_found("this process places no calls"))
    }

    /// The stored conference rooms.
    pub(crate) fn rooms(&self) -> Result<&dyn Rooms, ApiError> {
        self.rooms.as_deref().ok_or_else(|| ApiError::not_found("this process has no conference rooms"))
    }

    /// Returns the live rooms.
    pub(crate) fn live_rooms(&self) -> Result<&dyn LiveRooms, ApiError> {
        self.live_rooms.as_deref().ok_or_else(|| ApiError::not_found("this process has no live conferences"))
    }

    /// Returns the current number of members of each of `rooms`, in order; 0 without conferences.
    pub(crate) async fn live_members(&self, rooms: &[RoomId]) -> Result<Vec<u32>, ApiError> {
        match &self.live_rooms {
            Some(live) if !rooms.is_empty() => Ok(live.live_members(rooms).await?),
            _ => Ok(vec![0; rooms.len()]),
        }
    }

    /// The webhooks.
    pub(crate) fn webhooks(&self) -> Result<&dyn Webhooks, ApiError> {
        self.webhooks.as_deref().ok_or_else(|| ApiError::not_found("webhooks are not managed here"))
    }

    /// Returns the prompts.
    pub(crate) fn prompts(&self) -> Result<&dyn Prompts, ApiError> {
        self.prompts.as_deref().ok_or_else(|| ApiError::not_found("this process plays no prompts"))
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

    /// The recordings.
    pub(crate) fn recordings(&self) -> Result<&dyn Recordings, ApiError> {
        self.recordings.as_deref().ok_or_else(|| ApiError::not_found("this process has no recordings"))
    }

    /// Returns the state that trusts `X-Forwarded-For` from these peers.
    #[must_use]
    pub fn with_trusted_proxies(self, proxies: Vec<IpNet>) -> Self {
        self.with_settings(HttpSettings { trusted_proxies: proxies, ..HttpSettings::default() })
    }

    /// The conversations.
    pub(crate) fn conversations(&self) -> Result<&dyn Conversations, ApiError> {
        self.conversations
            .as_deref()
            .ok_or_else(|| ApiError::not_found("this process stores no conversations"))
    }

    /// The prices of AI models.
    pub(crate) fn ai_prices(&self) -> Result<&dyn AiPrices, ApiError> {
        self.ai_prices.as_deref().ok_or_else(|| ApiError::not_found("this process has no AI prices"))
    }

    /// The notes.
    pub(crate) fn notes(&self) -> Result<&dyn Notes, ApiError> {
        self.notes.as_deref().ok_or_else(|| ApiError::not_found("this process sends no notes"))
    }

    /// Returns the state with these limits.
    #[must_use]
    pub fn with_settings(self, settings: HttpSettings) -> Self {
        self.settings.replace(settings);
        self
    }

    /// The same state; its streams check their callers immediately when `changes` counts a change of keys, users or
    /// sessions.
    pub fn with_credential_changes(self, changes: watch::Receiver<u64>) -> Self {
        Self { credential_changes: changes, ..self }
    }

    /// Returns the current limits, to be replaced while the server runs.
    pub fn settings(&self) -> SharedSettings {
        self.settings.clone()
    }
}
