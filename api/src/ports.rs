//! The ports of the routes, which a composition of the process provides.

use std::sync::Arc;

use sidetone_model::ai_price::AiPrices;
use sidetone_model::call_recording::CallRecordings;
use sidetone_model::call_request::CallRequests;
use sidetone_model::cluster::{Nodes, Peers};
use sidetone_model::conversation::Conversations;
use sidetone_model::event::EventStreams;
use sidetone_model::extension::Extensions;
use sidetone_model::field_check::FieldChecks;
use sidetone_model::idempotency::{Claim, Idempotency, KeptAnswer, Once};
use sidetone_model::ids::OrganisationId;
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
use sidetone_model::registration::PhoneRegistrations;
use sidetone_model::room::meeting::Meetings;
use sidetone_model::room::session::RoomSessions;
use sidetone_model::room::{LiveRooms, Rooms};
use sidetone_model::signalling::SignallingLog;
use sidetone_model::team::{Agents, Teams};
use sidetone_model::time::Timestamp;
use sidetone_model::trunk::Trunks;
use sidetone_model::trunk_status::TrunkStatuses;
use sidetone_model::user::{Accounts, Users};
use sidetone_model::webhook::Webhooks;

use crate::auth::TokenKey;

/// Every port that the routes use.
///
/// `None` means that the process lacks a part; the routes of that part answer 404. The struct has no default, so that a
/// composition cannot forget a port.
pub struct Ports {
    /// Prices of AI models.
    pub ai_prices: Option<Arc<dyn AiPrices>>,
    /// Recordings of calls.
    pub call_recordings: Option<Arc<dyn CallRecordings>>,
    /// Placing calls.
    pub call_requests: Option<Arc<dyn CallRequests>>,
    /// The call log.
    pub cdrs: Arc<dyn CdrLog>,
    /// Conversations of calls.
    pub conversations: Option<Arc<dyn Conversations>>,
    /// The managed resources of the directory.
    pub directory: Option<DirectoryPorts>,
    /// Live events.
    pub events: Option<Arc<dyn EventStreams>>,
    /// Checks values of requests against the stored data; without it, each operation checks its own values
    /// only.
    pub field_checks: Option<Arc<dyn FieldChecks>>,
    /// The answers to requests with an `Idempotency-Key`.
    pub idempotency: Arc<dyn Idempotency>,
    /// Authentication of integration keys.
    pub keys: Arc<dyn ApiKeys>,
    /// Packet traces of legs.
    pub leg_traces: Option<Arc<dyn LegTraces>>,
    /// Live calls.
    pub live_calls: Option<Arc<dyn LiveCalls>>,
    /// The media of live calls.
    pub live_quality: Option<Arc<dyn LiveQuality>>,
    /// Live conference rooms.
    pub live_rooms: Option<Arc<dyn LiveRooms>>,
    /// The counters of the other parts, for `/metrics`.
    pub metrics: Arc<dyn Metrics>,
    /// The nodes of the installation.
    pub nodes: Option<Arc<dyn Nodes>>,
    /// Notes to phones.
    pub notes: Option<Arc<dyn Notes>>,
    /// The rules for the URLs of organisations that this process requests.
    pub outgoing_urls: Option<Arc<dyn OutgoingUrls>>,
    /// The login of users, and the resources that they manage.
    pub panel: Option<Arc<Panel>>,
    /// The other nodes of the cluster; `None` without a cluster.
    pub peers: Option<Arc<dyn Peers>>,
    /// The organisations' own prompts.
    pub prompts: Option<Arc<dyn Prompts>>,
    /// Prices and conversion rates.
    pub rates: Option<RatePorts>,
    /// Whether the process is ready for work.
    pub readiness: Arc<dyn Readiness>,
    /// Recordings.
    pub recordings: Option<Arc<dyn Recordings>>,
    /// The registrations of phones.
    pub registrations: Option<Arc<dyn PhoneRegistrations>>,
    /// The kept SIP messages of calls.
    pub signalling: Option<Arc<dyn SignallingLog>>,
    /// The state of trunks at the switch.
    pub trunk_statuses: Option<Arc<dyn TrunkStatuses>>,
    /// The history of conference rooms.
    pub room_history: Option<RoomHistory>,
    /// Stored conference rooms.
    pub rooms: Option<Arc<dyn Rooms>>,
    /// The media of finished calls.
    pub stored_quality: Option<Arc<dyn StoredQuality>>,
    /// A share of the store for each organisation.
    pub tenants: Arc<dyn Tenants>,
    /// Webhooks.
    pub webhooks: Option<Arc<dyn Webhooks>>,
}

impl Ports {
    /// The call log and nothing else: only keys are accepted, and nothing is stored for an `Idempotency-Key`.
    pub fn of_log(cdrs: Arc<dyn CdrLog>, keys: Arc<dyn ApiKeys>, readiness: Arc<dyn Readiness>) -> Self {
        Self {
            ai_prices: None,
            call_recordings: None,
            call_requests: None,
            cdrs,
            conversations: None,
            directory: None,
            events: None,
            field_checks: None,
            idempotency: Arc::new(Nowhere),
            keys,
            leg_traces: None,
            live_calls: None,
            live_quality: None,
            live_rooms: None,
            metrics: Arc::new(Nowhere),
            nodes: None,
            notes: None,
            outgoing_urls: None,
            panel: None,
            peers: None,
            prompts: None,
            rates: None,
            readiness,
            recordings: None,
            registrations: None,
            signalling: None,
            trunk_statuses: None,
            room_history: None,
            rooms: None,
            stored_quality: None,
            tenants: Arc::new(Nowhere),
            webhooks: None,
        }
    }
}

/// The ports for users who log in: authentication and managed resources.
pub struct Panel {
    /// Authentication of users.
    pub accounts: Arc<dyn Accounts>,
    /// Agents.
    pub agents: Arc<dyn Agents>,
    /// Integration keys.
    pub keys: Arc<dyn Keys>,
    /// Teams.
    pub teams: Arc<dyn Teams>,
    /// Signs the users' sessions.
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
    /// The sessions of rooms.
    pub sessions: Arc<dyn RoomSessions>,
    /// The reports of virtual agents on these sessions; `None` without the AI module.
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

/// Stores and counts nothing. A request with an `Idempotency-Key` fails, because it could be executed twice.
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
