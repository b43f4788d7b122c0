//! The media quality of a call: written together with its record, and read by it.

use sidetone_model::cdr::Cdr;
use sidetone_model::media_quality::{CallQuality, StoredQuality};
use sidetone_model::ports::PortFuture;

use crate::packed::{pack, unpack};
use crate::sql::{Connection, sql};
use crate::statement::{Statement, parts};
use crate::{Store, StoreError};

impl StoredQuality for Store {
    fn of_record<'a>(&'a self, cdr: &'a Cdr) -> PortFuture<'a, Option<CallQuality>> {
        Box::pin(async move { Ok(self.find_quality(cdr).await?) })
    }
}

impl Store {
    async fn find_quality(&self, cdr: &Cdr) -> Result<Option<CallQuality>, StoreError> {
        let row = sql("SELECT body, packed FROM cdr_quality WHERE call_uuid = $1 AND organisation_id = $2")
            .bind(cdr.call_uuid.to_string())
            .bind(cdr.organisation_id.to_string())
            .fetch_optional(self.readers())
            .await?;
        let Some(row) = row else { return Ok(None) };
        let body = match row.try_get::<Option<Vec<u8>>>("packed")? {
            Some(packed) => unpack(&packed).ok_or(StoreError::Corrupt { column: "packed" })?,
            None => row.try_get("body")?,
        };
        let quality: CallQuality =
            serde_json::from_str(&body).map_err(|_| StoreError::Corrupt { column: "body" })?;
        Ok(Some(quality.with_callee()))
    }
}

/// Stores the media quality of new records.
pub(super) async fn insert_qualities(
    connection: &mut Connection,
    records: &[&Cdr],
) -> Result<(), StoreError> {
    let rows: Vec<(&Cdr, &CallQuality, String)> =
        records.iter().filter_map(|cdr| quality_text(cdr).map(|(media, body)| (*cdr, media, body))).collect();
    for part in parts(&rows) {
        let mut statement = Statement::new(
            "INSERT INTO cdr_quality (call_uuid, organisation_id, at_us, rules_version, body, packed) VALUES ",
        );
        statement.rows(part.iter().map(|(cdr, media, body)| {
            let packed = pack(body);
            let body = if packed.is_some() { "" } else { body };
            [
                cdr.call_uuid.to_string().into(),
                cdr.organisation_id.to_string().into(),
                media.at.as_micros().into(),
                media.rules_version.as_deref().into(),
                body.into(),
                packed.into(),
            ]
        }));
        statement.push(" ON CONFLICT (call_uuid) DO NOTHING");
        statement.query().execute(&mut *connection).await?;
    }
    Ok(())
}

/// The quality of a record and its stored form; `None` when the call had no media.
fn quality_text(cdr: &Cdr) -> Option<(&CallQuality, String)> {
    let media = cdr.media.as_deref()?;
    match serde_json::to_string(media) {
        Ok(body) => Some((media, body)),
        Err(error) => {
            // Figures, texts and lists can always be written as JSON; if not, the record is stored without
            // its figures.
            tracing::error!(%error, call.id = %cdr.call_uuid, "the quality of a call cannot be stored");
            None
        }
    }
}
