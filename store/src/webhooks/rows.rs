//! Reads rows of webhooks and deliveries.

use sidetone_model::event::EventPattern;
use sidetone_model::webhook::{Attempt, DeliveryRecord, DeliveryStatus, DisabledReason, WebhookRecord};

use crate::StoreError;
use crate::columns::{instant, instant_opt, items, number, number_opt, parsed, word, word_opt};
use crate::sql::Row;

/// A webhook without its secrets.
pub(super) fn webhook(row: &Row) -> Result<WebhookRecord, StoreError> {
    Ok(WebhookRecord {
        id: parsed(row, "id")?,
        organisation_id: parsed(row, "organisation_id")?,
        url: row.try_get("url")?,
        events: patterns(row)?,
        description: row.try_get("description")?,
        active: row.try_get::<i64>("active")? != 0,
        disabled_reason: word_opt(row, "disabled_reason", DisabledReason::from_name)?,
        failing_since: instant_opt(row, "failing_since_us")?,
        old_secret_until: instant_opt(row, "old_secret_until_us")?,
        created_at: instant(row, "created_at_us")?,
        updated_at: instant(row, "updated_at_us")?,
    })
}

/// The patterns of a webhook.
pub(super) fn patterns(row: &Row) -> Result<Vec<EventPattern>, StoreError> {
    items(row, "events")?
        .iter()
        .map(|text| text.parse().map_err(|_| StoreError::Corrupt { column: "events" }))
        .collect()
}

/// The stored form of patterns.
pub(super) fn patterns_text(patterns: &[EventPattern]) -> String {
    let texts: Vec<String> = patterns.iter().map(ToString::to_string).collect();
    texts.join(",")
}

/// A delivery without its attempts.
pub(super) fn delivery(row: &Row) -> Result<DeliveryRecord, StoreError> {
    let status = word(row, "status", DeliveryStatus::from_name)?;
    // While an attempt runs, the column is the end of its lease.
    let waits = status != DeliveryStatus::Delivering;
    Ok(DeliveryRecord {
        id: parsed(row, "id")?,
        webhook_id: parsed(row, "webhook_id")?,
        organisation_id: parsed(row, "organisation_id")?,
        event_id: parsed(row, "event_id")?,
        kind: row.try_get("kind")?,
        status,
        attempts: Vec::new(),
        next_attempt_at: instant_opt(row, "next_at_us")?.filter(|_| waits),
        body: row.try_get("body")?,
        created_at: instant(row, "created_at_us")?,
        updated_at: instant(row, "updated_at_us")?,
    })
}

/// One attempt.
pub(super) fn attempt(row: &Row) -> Result<Attempt, StoreError> {
    Ok(Attempt {
        at: instant(row, "at_us")?,
        status_code: number_opt(row, "status_code")?,
        duration_ms: number(row, "duration_ms")?,
        error: row.try_get("error")?,
        answer: row.try_get("answer")?,
    })
}
