//! The delivery of one event to one webhook.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::ids::{DeliveryId, EventId, OrganisationId, WebhookId};
use crate::time::Timestamp;

/// The status of a delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum DeliveryStatus {
    /// Its webhook was switched off before it arrived.
    Cancelled,
    /// The endpoint answered 2xx.
    Delivered,
    /// An attempt runs.
    Delivering,
    /// The last attempt of the schedule failed.
    Failed,
    /// No attempt yet.
    Pending,
    /// An attempt failed, another will follow.
    Retrying,
}

impl DeliveryStatus {
    /// Every status with its name.
    pub const ALL: [(Self, &'static str); 6] = [
        (DeliveryStatus::Cancelled, "cancelled"),
        (DeliveryStatus::Delivered, "delivered"),
        (DeliveryStatus::Delivering, "delivering"),
        (DeliveryStatus::Failed, "failed"),
        (DeliveryStatus::Pending, "pending"),
        (DeliveryStatus::Retrying, "retrying"),
    ];

    /// The name in the database and in JSON.
    pub const fn as_str(self) -> &'static str {
        match self {
            DeliveryStatus::Cancelled => "cancelled",
            DeliveryStatus::Delivered => "delivered",
            DeliveryStatus::Delivering => "delivering",
            DeliveryStatus::Failed => "failed",
            DeliveryStatus::Pending => "pending",
            DeliveryStatus::Retrying => "retrying",
        }
    }

    /// The status of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().find(|(_, known)| *known == name).map(|(status, _)| *status)
    }
}

/// One POST to the endpoint.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = WebhookAttempt))]
pub struct Attempt {
    /// When it began.
    pub at: Timestamp,
    /// The status of the answer; null when there was none.
    #[cfg_attr(feature = "openapi", schema(required))]
    pub status_code: Option<u16>,
    /// The duration.
    pub duration_ms: u32,
    /// Why it counts as failed; null when it succeeded.
    #[cfg_attr(feature = "openapi", schema(required))]
    pub error: Option<String>,
    /// The first 1 KiB of the answer; null without an answer.
    #[cfg_attr(feature = "openapi", schema(required))]
    pub answer: Option<String>,
}

/// The delivery of one event to one webhook.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeliveryRecord {
    /// Primary key.
    pub id: DeliveryId,
    /// The webhook.
    pub webhook_id: WebhookId,
    /// The organisation of both.
    pub organisation_id: OrganisationId,
    /// The delivered event; `webhook-id` in the request.
    pub event_id: EventId,
    /// The event's type.
    pub kind: String,
    /// The status.
    pub status: DeliveryStatus,
    /// The attempts, oldest first.
    pub attempts: Vec<Attempt>,
    /// The time of the next attempt.
    pub next_attempt_at: Option<Timestamp>,
    /// The request body, byte for byte.
    pub body: String,
    /// When it was queued.
    pub created_at: Timestamp,
    /// When it last changed.
    pub updated_at: Timestamp,
}

impl DeliveryRecord {
    /// The delivery as clients see it; the body is shown only for a single delivery.
    pub fn view(self, with_payload: bool) -> DeliveryView {
        DeliveryView {
            id: self.id,
            webhook_id: self.webhook_id,
            event_id: self.event_id,
            kind: self.kind,
            status: self.status,
            attempts: self.attempts,
            next_attempt_at: self.next_attempt_at,
            payload: with_payload.then(|| serde_json::from_str(&self.body).unwrap_or(Value::Null)),
            created_at: self.created_at,
            updated_at: self.updated_at,
        }
    }
}

/// A delivery as callers see it.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = WebhookDelivery))]
pub struct DeliveryView {
    /// The delivery; `X-Service-Delivery` on the wire.
    id: DeliveryId,
    /// The URL.
    webhook_id: WebhookId,
    /// The event; `webhook-id` on the wire.
    event_id: EventId,
    /// The event's type; `X-Service-Event` on the wire.
    #[serde(rename = "type")]
    #[cfg_attr(feature = "openapi", schema(example = "call.info.acked"))]
    kind: String,
    /// The status. Clients ignore values that they do not know.
    status: DeliveryStatus,
    /// The latest twenty attempts, oldest first.
    attempts: Vec<Attempt>,
    /// The next attempt; null when there is none, or one is running.
    #[cfg_attr(feature = "openapi", schema(required))]
    next_attempt_at: Option<Timestamp>,
    /// The payload. Absent in lists.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<Object>))]
    payload: Option<Value>,
    /// When it was queued.
    created_at: Timestamp,
    /// When it last changed.
    updated_at: Timestamp,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_round_trip() {
        for (status, word) in DeliveryStatus::ALL {
            assert_eq!((status.as_str(), DeliveryStatus::from_name(word)), (word, Some(status)));
            assert_eq!(serde_json::to_value(status).unwrap(), word);
        }
    }
}
