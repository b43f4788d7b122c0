//! Reads and writes the rows of phone numbers.

use sidetone_model::directory::{Destination, DestinationKind};
use sidetone_model::number::NumberRecord;
use uuid::Uuid;

use crate::columns::{instant, parsed, parsed_opt, word};
use crate::sql::{Row, sql};
use crate::{Change, StoreError, WriteTransaction};

impl WriteTransaction {
    pub(super) async fn insert_number(&mut self, made: &NumberRecord) -> Result<(), StoreError> {
        sql("INSERT INTO numbers (id, organisation_id, number, destination, destination_id, created_at_us,
             updated_at_us) VALUES ($1, $2, $3, $4, $5, $6, $6)")
        .bind(made.id.to_string())
        .bind(made.organisation_id.to_string())
        .bind(&made.number)
        .bind(made.destination.kind().as_str())
        .bind(made.destination.id().map(|id| id.to_string()))
        .bind(made.created_at.as_micros())
        .execute(&mut *self.transaction)
        .await?;
        self.note(Change::Created);
        Ok(())
    }

    pub(super) async fn update_number(&mut self, after: &NumberRecord) -> Result<(), StoreError> {
        sql("UPDATE numbers SET number = $1, destination = $2, destination_id = $3, updated_at_us = $4
             WHERE id = $5 AND organisation_id = $6")
        .bind(&after.number)
        .bind(after.destination.kind().as_str())
        .bind(after.destination.id().map(|id| id.to_string()))
        .bind(after.updated_at.as_micros())
        .bind(after.id.to_string())
        .bind(after.organisation_id.to_string())
        .execute(&mut *self.transaction)
        .await?;
        self.note(Change::Changed);
        Ok(())
    }
}

pub(super) fn phone_number(row: &Row) -> Result<NumberRecord, StoreError> {
    Ok(NumberRecord {
        id: parsed(row, "id")?,
        organisation_id: parsed(row, "organisation_id")?,
        number: row.try_get("number")?,
        destination: destination(row)?,
        created_at: instant(row, "created_at_us")?,
        updated_at: instant(row, "updated_at_us")?,
    })
}

/// The destination of a row.
pub(crate) fn destination(row: &Row) -> Result<Destination, StoreError> {
    let kind = word(row, "destination", DestinationKind::from_name)?;
    let id = parsed_opt::<Uuid>(row, "destination_id")?;
    Destination::of(kind, id).map_err(|_| StoreError::Corrupt { column: "destination_id" })
}
