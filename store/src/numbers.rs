//! Phone numbers and their destinations.

use sidetone_model::directory::{Destination, DestinationKind};
use sidetone_model::ids::{NumberId, OrganisationId};
use sidetone_model::time::Timestamp;
use uuid::Uuid;

use crate::columns::{parsed, parsed_opt, word};
use crate::sql::{Row, sql};
use crate::{Change, StoreError, WriteTransaction};

/// A phone number as it is declared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NumberRow {
    /// The organisation it belongs to.
    pub organisation_id: OrganisationId,
    /// E.164 with `+`, the natural key.
    pub number: String,
    /// The destination of a call to it.
    pub destination: Destination,
}

impl WriteTransaction {
    /// Sets the number's destination as declared.
    ///
    /// # Errors
    /// [`StoreError::Taken`] when another organisation has it; otherwise when the database fails.
    pub async fn declare_number(
        &mut self,
        declared: &NumberRow,
        now: Timestamp,
    ) -> Result<(NumberId, Change), StoreError> {
        let organisation = declared.organisation_id.to_string();
        let (destination, destination_id) = stored_destination(declared.destination);
        let row =
            sql("SELECT id, organisation_id, destination, destination_id FROM numbers WHERE number = $1")
                .bind(&declared.number)
                .fetch_optional(&mut *self.transaction)
                .await?;
        let Some(row) = row else {
            let id = NumberId(Uuid::new_v4());
            sql("INSERT INTO numbers (id, organisation_id, number, destination, destination_id,
                 created_at_us, updated_at_us) VALUES ($1, $2, $3, $4, $5, $6, $6)")
            .bind(id.to_string())
            .bind(organisation)
            .bind(&declared.number)
            .bind(destination)
            .bind(destination_id)
            .bind(now.as_micros())
            .execute(&mut *self.transaction)
            .await?;
            return Ok((id, self.note(Change::Created)));
        };
        if row.try_get::<&str>("organisation_id")? != organisation {
            return Err(StoreError::Taken { column: "number" });
        }
        let id: NumberId = parsed(&row, "id")?;
        let same = row.try_get::<&str>("destination")? == destination
            && row.try_get::<Option<String>>("destination_id")? == destination_id;
        if same {
            return Ok((id, Change::Unchanged));
        }
        sql("UPDATE numbers SET destination = $1, destination_id = $2, updated_at_us = $3 WHERE id = $4")
            .bind(destination)
            .bind(destination_id)
            .bind(now.as_micros())
            .bind(id.to_string())
            .execute(&mut *self.transaction)
            .await?;
        Ok((id, self.note(Change::Changed)))
    }
}

/// The columns of a destination.
pub(super) fn stored_destination(destination: Destination) -> (&'static str, Option<String>) {
    (destination.kind().as_str(), destination.id().map(|id| id.to_string()))
}

/// The destination of a row.
pub(super) fn destination(row: &Row) -> Result<Destination, StoreError> {
    let kind = word(row, "destination", DestinationKind::from_name)?;
    let id = parsed_opt::<Uuid>(row, "destination_id")?;
    Destination::of(kind, id).map_err(|_| StoreError::Corrupt { column: "destination_id" })
}
