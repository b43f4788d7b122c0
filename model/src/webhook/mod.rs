//! Webhooks: the URLs to which an organisation's events are sent, and the result of each delivery.

mod delivery;
mod port;
mod resource;
mod rules;

pub use delivery::{Attempt, DeliveryRecord, DeliveryStatus, DeliveryView};
pub use port::{DeliveryFilter, Webhooks};
pub use resource::{DisabledReason, NewWebhook, WebhookChange, WebhookRecord, WebhookView};
pub use rules::{
    ANSWER_BYTES_KEPT_MAX, ATTEMPTS_KEPT_MAX, DESCRIPTION_LEN_MAX, FAILING_MAX_US, KEPT_FOR_US,
    SECRET_OVERLAP_US, TEST_KIND, WEBHOOKS_MAX, is_hopeless, require_readable,
};
