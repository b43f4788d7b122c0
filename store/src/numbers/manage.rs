//! Phone numbers as the API manages them.

use sidetone_model::access::Scope;
use sidetone_model::directory::Destination;
use sidetone_model::ids::NumberId;
use sidetone_model::listing::Listing;
use sidetone_model::number::{NewNumber, NumberChange, NumberRecord, Numbers};
use sidetone_model::page::Page;
use sidetone_model::ports::PortFuture;
use sidetone_model::problem::{FieldProblem, Problem};
use sidetone_model::time::Timestamp;
use uuid::Uuid;

use crate::listing::Table;
use crate::numbers::rows::phone_number;
use crate::paging::SortColumn;
use crate::sql::sql;
use crate::{Change, Store, StoreError, WriteTransaction};

/// Digits need no case folding: the number itself is searched.
const TABLE: Table = Table {
    count: "SELECT COUNT(*) AS total FROM (SELECT *, number AS search FROM numbers) AS own",
    select: "SELECT * FROM (SELECT *, number AS search FROM numbers) AS own",
    team: None,
    by_name: &[SortColumn::Text("number"), SortColumn::Text("id")],
};

impl Numbers for Store {
    fn list<'a>(&'a self, scope: Scope, listing: &'a Listing) -> PortFuture<'a, Page<NumberRecord>> {
        Box::pin(async move { Ok(self.page(scope, listing, &TABLE, phone_number).await?) })
    }

    fn find(&self, id: NumberId) -> PortFuture<'_, Option<NumberRecord>> {
        Box::pin(async move {
            let query = sql("SELECT * FROM numbers WHERE id = $1").bind(id.to_string());
            Ok(self.one(query, phone_number).await?)
        })
    }

    fn create(&self, scope: Scope, new: NewNumber, now: Timestamp) -> PortFuture<'_, NumberRecord> {
        Box::pin(async move {
            let NewNumber { organisation_id, number, destination } = new;
            let id = NumberId(Uuid::new_v4());
            let made =
                NumberRecord { id, organisation_id, number, destination, created_at: now, updated_at: now };
            let mut write = self.write().await?;
            write.require_possible_number(scope, &made).await?;
            write.insert_number(&made).await?;
            write.commit().await?;
            Ok(made)
        })
    }

    fn change(
        &self,
        scope: Scope,
        id: NumberId,
        change: NumberChange,
        now: Timestamp,
    ) -> PortFuture<'_, NumberRecord> {
        Box::pin(async move {
            let mut write = self.write().await?;
            let before = write.number_inside(scope, id).await?;
            let destination = change
                .destination(before.destination)
                .map_err(|problem| Problem::InvalidRequest(vec![problem]))?;
            let after = NumberRecord {
                number: change.number.unwrap_or(before.number),
                destination,
                updated_at: now,
                ..before
            };
            write.require_possible_number(scope, &after).await?;
            write.update_number(&after).await?;
            write.commit().await?;
            Ok(after)
        })
    }

    fn delete(&self, scope: Scope, id: NumberId) -> PortFuture<'_, ()> {
        Box::pin(async move {
            let mut write = self.write().await?;
            let number = write.number_inside(scope, id).await?;
            let statement = sql("DELETE FROM numbers WHERE id = $1 AND organisation_id = $2")
                .bind(id.to_string())
                .bind(number.organisation_id.to_string());
            write.finish(statement, Change::Changed).await?;
            Ok(())
        })
    }
}

impl WriteTransaction {
    async fn number_inside(&mut self, scope: Scope, id: NumberId) -> Result<NumberRecord, Problem> {
        let query = sql("SELECT * FROM numbers WHERE id = $1").bind(id.to_string());
        let found = self.one(query, phone_number).await?;
        found
            .filter(|found| scope.covers(found.organisation_id, None))
            .ok_or_else(|| Problem::NotFound("there is no such number".to_owned()))
    }

    /// Checks that no other organisation has the number, and that the organisation has its destination.
    async fn require_possible_number(&mut self, scope: Scope, number: &NumberRecord) -> Result<(), Problem> {
        if !scope.covers(number.organisation_id, None) {
            return Err(Problem::Forbidden(
                "the numbers of the organisation are not the caller's".to_owned(),
            ));
        }
        self.require_organisation(number.organisation_id).await?;
        if let Some(message) = self.missing_destination(number).await? {
            return Err(Problem::InvalidRequest(vec![FieldProblem {
                field: "destination_id".to_owned(),
                message: message.to_owned(),
            }]));
        }
        // Unique over all organisations; the answer does not name the owner.
        let taken = sql("SELECT organisation_id FROM numbers WHERE number = $1 AND id <> $2")
            .bind(&number.number)
            .bind(number.id.to_string())
            .fetch_optional(&mut *self.transaction)
            .await
            .map_err(StoreError::from)?;
        if taken.is_some() {
            return Err(Problem::Conflict("number: the number is taken".to_owned()));
        }
        Ok(())
    }

    /// Returns the destination that the organisation does not have, if any.
    async fn missing_destination(
        &mut self,
        number: &NumberRecord,
    ) -> Result<Option<&'static str>, StoreError> {
        let (query, id, message) = match number.destination {
            Destination::Conference(None) => return Ok(None),
            Destination::Conference(Some(room)) => (
                "SELECT id FROM conference_rooms WHERE id = $1 AND organisation_id = $2",
                room.0,
                "the organisation has no such conference room",
            ),
            Destination::Extension(extension) => (
                "SELECT id FROM extensions WHERE id = $1 AND organisation_id = $2",
                extension.0,
                "the organisation has no such extension",
            ),
        };
        let found = sql(query)
            .bind(id.to_string())
            .bind(number.organisation_id.to_string())
            .fetch_optional(&mut *self.transaction)
            .await?;
        Ok(found.is_none().then_some(message))
    }
}
