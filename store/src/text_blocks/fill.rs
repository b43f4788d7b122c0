//! Creates the blocks of records that were stored before blocks existed.

use std::collections::BTreeMap;

use sidetone_model::ids::OrganisationId;
use uuid::Uuid;

use super::block::{Block, Entry, RECORDS_MAX};
use super::write::insert;
use crate::columns::{number, parsed};
use crate::search::folded;
use crate::sql::{Row, sql};
use crate::{Store, StoreError};

/// The progress with the blocks of old records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Filled {
    /// Blocks for this many more records were stored.
    Some(u64),
    /// Every record is in a block.
    All,
}

impl Store {
    /// Stores blocks of some old records; a search reads the records of an organisation directly until all of them
    /// are in blocks.
    ///
    /// # Errors
    /// When the database fails; nothing is then stored, and the next call tries again.
    pub async fn fill_text_blocks(&self) -> Result<Filled, StoreError> {
        let row = sql("SELECT is_done FROM cdr_text_fill WHERE id = 1").fetch_one(self.readers()).await?;
        if number::<i64>(&row, "is_done")? == 1 {
            return Ok(Filled::All);
        }
        let mut transaction = self.writer().begin_write().await?;
        // If there are several nodes, one fills at a time.
        let after = sql("UPDATE cdr_text_fill SET id = 1 WHERE id = 1
             RETURNING organisation_id, started_at_us, call_uuid")
        .fetch_one(&mut *transaction)
        .await?;
        let rows = sql("SELECT call_uuid, organisation_id, team_id, direction, hangup_cause, started_at_us,
             caller_number, destination_number, dialled_number, search_packed FROM cdrs
             WHERE (organisation_id, started_at_us, call_uuid) > ($1, $2, $3)
             ORDER BY organisation_id ASC, started_at_us ASC, call_uuid ASC LIMIT $4")
        .bind(after.try_get::<&str>("organisation_id")?)
        .bind(after.try_get::<i64>("started_at_us")?)
        .bind(after.try_get::<&str>("call_uuid")?)
        .bind(i64::try_from(RECORDS_MAX).unwrap_or(i64::MAX))
        .fetch_all(&mut *transaction)
        .await?;
        let mut entries: BTreeMap<OrganisationId, Vec<Entry>> = BTreeMap::new();
        for row in &rows {
            if number::<i64>(row, "search_packed")? == 0 {
                entries.entry(parsed(row, "organisation_id")?).or_default().push(entry(row)?);
            }
        }
        let mut records = 0;
        for (organisation, entries) in &entries {
            records += entries.len() as u64;
            insert(&mut transaction, &[(*organisation, Block::of(entries))]).await?;
        }
        if let Some(last) = rows.last() {
            sql("UPDATE cdr_text_fill SET organisation_id = $1, started_at_us = $2, call_uuid = $3 WHERE id = 1")
                .bind(last.try_get::<&str>("organisation_id")?)
                .bind(last.try_get::<i64>("started_at_us")?)
                .bind(last.try_get::<&str>("call_uuid")?)
                .execute(&mut *transaction)
                .await?;
        }
        let is_done = rows.len() < RECORDS_MAX;
        if is_done {
            sql("UPDATE cdr_text_fill SET is_done = 1 WHERE id = 1").execute(&mut *transaction).await?;
        }
        transaction.commit().await?;
        Ok(if is_done { Filled::All } else { Filled::Some(records) })
    }
}

fn entry(row: &Row) -> Result<Entry, StoreError> {
    let text = |column| row.try_get::<Option<String>>(column);
    let number = |column| Ok::<_, StoreError>(folded(&text(column)?.unwrap_or_default()));
    let call: Uuid = parsed(row, "call_uuid")?;
    Ok(Entry {
        call,
        started_us: row.try_get("started_at_us")?,
        facets: [text("direction")?, text("hangup_cause")?, text("team_id")?],
        numbers: [number("caller_number")?, number("destination_number")?, number("dialled_number")?],
    })
}
