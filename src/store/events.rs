//! The outbox: what happened, written in the transaction of what it tells of.

use serde_json::Value;
use sidetone_model::event::EventKind;
use sidetone_model::ids::OrganisationId;
use sidetone_model::time::Timestamp;
use uuid::Uuid;

use crate::store::StoreError;
use crate::store::sql::{Connection, sql};

/// Stores an event of `organisation` that happened at `at`.
pub(super) async fn insert_event(
    connection: &mut Connection,
    organisation: OrganisationId,
    kind: EventKind,
    at: Timestamp,
    data: &Value,
) -> Result<(), StoreError> {
    sql("INSERT INTO events (id, organisation_id, kind, at_us, data) VALUES ($1, $2, $3, $4, $5)")
        .bind(Uuid::now_v7().to_string())
        .bind(organisation.to_string())
        .bind(kind.as_str())
        .bind(at.as_micros())
        .bind(data.to_string())
        .execute(connection)
        .await?;
    Ok(())
}
