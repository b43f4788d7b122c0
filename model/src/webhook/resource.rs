//! A webhook as the API manages it, without its secrets.

use serde::{Deserialize, Serialize};

use crate::event::EventPattern;
use crate::ids::{OrganisationId, WebhookId};
use crate::time::Timestamp;

/// A stored webhook; never its secrets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WebhookRecord {
    /// Primary key.
    pub id: WebhookId,
    /// The organisation whose events are sent.
    pub organisation_id: OrganisationId,
    /// The validated URL.
    pub url: String,
    /// The patterns of the events.
    pub events: Vec<EventPattern>,
    /// A description for people; may be empty.
    pub description: String,
    /// Whether events are sent.
    pub active: bool,
    /// Why it was disabled, unless this was requested.
    pub disabled_reason: Option<DisabledReason>,
    /// The first failure since the last success.
    pub failing_since: Option<Timestamp>,
    /// The instant until which the previous secret stays in use.
    pub old_secret_until: Option<Timestamp>,
    /// When it was made.
    pub created_at: Timestamp,
    /// The last change.
    pub updated_at: Timestamp,
}

/// Why a webhook was switched off.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum DisabledReason {
    /// Its endpoint failed for three days.
    Failing,
}

impl DisabledReason {
    /// The name in the database and in JSON.
    pub const fn as_str(self) -> &'static str {
        match self {
            DisabledReason::Failing => "failing",
        }
    }

    /// The reason of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        (name == "failing").then_some(DisabledReason::Failing)
    }
}

impl WebhookRecord {
    /// The webhook as clients see it at `now`.
    pub fn view(&self, now: Timestamp) -> WebhookView {
        WebhookView {
            id: self.id,
            organisation_id: self.organisation_id,
            url: self.url.clone(),
            events: self.events.iter().map(ToString::to_string).collect(),
            description: self.description.clone(),
            active: self.active,
            disabled_reason: self.disabled_reason,
            failing_since: self.failing_since,
            old_secret_until: self.old_secret_until.filter(|until| *until > now),
            created_at: self.created_at,
            updated_at: self.updated_at,
        }
    }
}

/// A webhook as callers see it.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = Webhook))]
pub struct WebhookView {
    /// The webhook.
    id: WebhookId,
    /// The organisation whose events are sent.
    organisation_id: OrganisationId,
    /// The URL that events are sent to.
    #[cfg_attr(feature = "openapi", schema(example = "https://crm.example.com/sidetone"))]
    url: String,
    /// The events to send: names, or patterns such as `call.info.*`.
    #[cfg_attr(feature = "openapi", schema(example = json!(["conference.*", "call.info.acked"])))]
    events: Vec<String>,
    /// For people.
    description: String,
    /// Whether events are sent.
    active: bool,
    /// `failing` when three days of failures switched it off; otherwise null.
    #[cfg_attr(feature = "openapi", schema(required))]
    disabled_reason: Option<DisabledReason>,
    /// The first failure since the last success; null when the last delivery succeeded.
    #[cfg_attr(feature = "openapi", schema(required))]
    failing_since: Option<Timestamp>,
    /// Until when the secret before the last rotation also signs; null without one.
    #[cfg_attr(feature = "openapi", schema(required))]
    old_secret_until: Option<Timestamp>,
    /// When it was made.
    created_at: Timestamp,
    /// The last change.
    updated_at: Timestamp,
}

/// A new webhook.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewWebhook {
    /// See [`WebhookRecord`].
    pub organisation_id: OrganisationId,
    /// See [`WebhookRecord`].
    pub url: String,
    /// See [`WebhookRecord`].
    pub events: Vec<EventPattern>,
    /// See [`WebhookRecord`].
    pub description: String,
    /// See [`WebhookRecord`].
    pub active: bool,
}

/// The changes of a webhook; `None` keeps the stored value.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WebhookChange {
    /// Another address.
    pub url: Option<String>,
    /// Other events.
    pub events: Option<Vec<EventPattern>>,
    /// Another description.
    pub description: Option<String>,
    /// Enabled, which resets the failures, or disabled, which cancels waiting deliveries.
    pub active: Option<bool>,
}
