//! Phone numbers as apply files declare them.

use sidetone_model::directory::Destination;
use sidetone_model::ids::{NumberId, OrganisationId};
use sidetone_model::number::NumberRecord;
use sidetone_model::time::Timestamp;
use uuid::Uuid;

use crate::numbers::rows::phone_number;
use crate::sql::sql;
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
        let query = sql("SELECT id, organisation_id, number, destination, destination_id, created_at_us,
             updated_at_us FROM numbers WHERE number = $1")
        .bind(&declared.number);
        let stored = self.one(query, phone_number).await?;
        if stored.as_ref().is_some_and(|stored| stored.organisation_id != declared.organisation_id) {
            return Err(StoreError::Taken { column: "number" });
        }
        let made = NumberRecord {
            id: stored.as_ref().map_or_else(|| NumberId(Uuid::new_v4()), |stored| stored.id),
            organisation_id: declared.organisation_id,
            number: declared.number.clone(),
            destination: declared.destination,
            created_at: stored.as_ref().map_or(now, |stored| stored.created_at),
            updated_at: now,
        };
        let change = match &stored {
            None => {
                self.insert_number(&made).await?;
                Change::Created
            }
            Some(stored) if stored.destination == made.destination => Change::Unchanged,
            Some(_) => {
                self.update_number(&made).await?;
                Change::Changed
            }
        };
        Ok((made.id, change))
    }
}
