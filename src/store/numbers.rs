//! Phone numbers and where they lead.

use sidetone_model::directory::Destination;
use sidetone_model::ids::{NumberId, OrganisationId};
use sidetone_model::time::Timestamp;
use uuid::Uuid;

use crate::store::columns::parsed;
use crate::store::sql::sql;
use crate::store::{Change, StoreError, WriteTransaction};

/// A phone number as it is declared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NumberRow {
    /// Whose it is.
    pub organisation_id: OrganisationId,
    /// E.164 with `+`, the natural key.
    pub number: String,
    /// Where a call to it goes.
    pub destination: Destination,
}

impl WriteTransaction {
    /// Makes the number lead where it is declared to.
    ///
    /// # Errors
    /// [`StoreError::Taken`] when another organisation has it; else when the database refuses.
    pub async fn declare_number(
        &mut self,
        declared: &NumberRow,
        now: Timestamp,
    ) -> Result<(NumberId, Change), StoreError> {
        let organisation = declared.organisation_id.to_string();
        let (destination, destination_id) = match declared.destination {
            Destination::Extension(id) => (DESTINATION_EXTENSION, id.to_string()),
        };
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
            && row.try_get::<Option<&str>>("destination_id")? == Some(destination_id.as_str());
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

/// The stored word of a number that leads to an extension.
pub(super) const DESTINATION_EXTENSION: &str = "extension";
