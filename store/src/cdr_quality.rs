//! The media quality of a call: written with its record and found by it.

use sidetone_model::cdr::Cdr;
use sidetone_model::media_quality::{CallQuality, StoredQuality};
use sidetone_model::ports::PortFuture;

use crate::sql::{Connection, sql};
use crate::{Store, StoreError};

impl StoredQuality for Store {
    fn of_record<'a>(&'a self, cdr: &'a Cdr) -> PortFuture<'a, Option<CallQuality>> {
        Box::pin(async move { Ok(self.find_quality(cdr).await?) })
    }
}

impl Store {
    async fn find_quality(&self, cdr: &Cdr) -> Result<Option<CallQuality>, StoreError> {
        let row = sql("SELECT body FROM cdr_quality WHERE call_uuid = $1 AND organisation_id = $2")
            .bind(cdr.call_uuid.to_string())
            .bind(cdr.organisation_id.to_string())
            .fetch_optional(self.readers())
            .await?;
        let Some(row) = row else { return Ok(None) };
        let body: String = row.try_get("body")?;
        let quality: CallQuality =
            serde_json::from_str(&body).map_err(|_| StoreError::Corrupt { column: "body" })?;
        Ok(Some(quality.with_callee()))
    }
}

/// Stores the media quality of a new record.
pub(super) async fn insert_quality(connection: &mut Connection, cdr: &Cdr) -> Result<(), StoreError> {
    let Some(media) = &cdr.media else { return Ok(()) };
    let body = match serde_json::to_string(media) {
        Ok(body) => body,
        Err(error) => {
            // Figures, texts and lists can always be written as JSON; if not, the record is stored without
            // its figures.
            tracing::error!(%error, call.id = %cdr.call_uuid, "the quality of a call cannot be stored");
            return Ok(());
        }
    };
    sql("INSERT INTO cdr_quality (call_uuid, organisation_id, at_us, rules_version, body)
         VALUES ($1, $2, $3, $4, $5) ON CONFLICT (call_uuid) DO NOTHING")
    .bind(cdr.call_uuid.to_string())
    .bind(cdr.organisation_id.to_string())
    .bind(media.at.as_micros())
    .bind(media.rules_version.as_deref())
    .bind(body)
    .execute(connection)
    .await?;
    Ok(())
}
