//! Reads deliveries, and queues deliveries on request.

use std::collections::HashMap;

use serde_json::json;
use sidetone_model::access::Scope;
use sidetone_model::ids::{DeliveryId, EventId, WebhookId};
use sidetone_model::page::{Page, Window};
use sidetone_model::problem::Problem;
use sidetone_model::time::Timestamp;
use sidetone_model::webhook::{
    Attempt, DeliveryFilter, DeliveryRecord, DeliveryStatus, TEST_KIND, WebhookRecord,
};
use uuid::Uuid;

use crate::columns::parsed;
use crate::paging::{List, SortColumn, Sorting, rows};
use crate::scope::within_organisation;
use crate::sql::{Connection, sql};
use crate::statement::Statement;
use crate::webhooks::queue::{Queued, due_at, queue};
use crate::webhooks::rows::{attempt, delivery};
use crate::{Store, StoreError, WriteTransaction};

impl Store {
    /// The deliveries of a webhook inside `scope`, those of the newest event first.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn webhook_deliveries(
        &self,
        scope: Scope,
        webhook: WebhookId,
        filter: DeliveryFilter,
        window: Window,
    ) -> Result<Page<DeliveryRecord>, StoreError> {
        let list = List {
            count: "SELECT COUNT(*) AS total FROM webhook_deliveries",
            // A list does not contain the bodies.
            items: "SELECT id, webhook_id, organisation_id, event_id, kind, status, next_at_us,
                '' AS body, created_at_us, updated_at_us FROM webhook_deliveries",
            matching: &|statement| matching(statement, scope, webhook, filter),
            // A webhook has one delivery for each event.
            sorting: Sorting::descending(&[SortColumn::Text("event_id")]),
        };
        let mut transaction = self.readers().begin_read().await?;
        let page = rows(&mut transaction, &list, &window).await?;
        let items = page.items.iter().map(delivery).collect::<Result<Vec<_>, _>>()?;
        let items = with_attempts(&mut transaction, items).await?;
        Ok(page.with(items))
    }

    /// Returns one delivery of a webhook inside `scope`, with its body.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn webhook_delivery(
        &self,
        scope: Scope,
        webhook: WebhookId,
        id: DeliveryId,
    ) -> Result<Option<DeliveryRecord>, StoreError> {
        let mut transaction = self.readers().begin_read().await?;
        one(&mut transaction, scope, webhook, id).await
    }

    /// Queues a test event for a webhook inside `scope`.
    ///
    /// # Errors
    /// As [`sidetone_model::webhook::Webhooks::test`].
    pub async fn test_webhook(
        &self,
        scope: Scope,
        id: WebhookId,
        now: Timestamp,
    ) -> Result<DeliveryRecord, Problem> {
        let mut write = self.write().await?;
        let webhook = write.webhook_inside(scope, id).await?;
        require_active(&webhook)?;
        let event = EventId(Uuid::now_v7());
        let body = json!({
            "id": event,
            "type": TEST_KIND,
            "timestamp": now,
            "organisation_id": webhook.organisation_id,
            "data": {"webhook_id": webhook.id},
        });
        let queued = Queued {
            webhook: id,
            organisation: webhook.organisation_id,
            event,
            kind: TEST_KIND,
            body: &body.to_string(),
        };
        let connection = &mut write.transaction;
        queue(connection, &queued, now).await?;
        due_at(connection, id, now).await?;
        let row = sql("SELECT * FROM webhook_deliveries
             WHERE webhook_id = $1 AND event_id = $2 AND organisation_id = $3")
        .bind(id.to_string())
        .bind(event.to_string())
        .bind(webhook.organisation_id.to_string())
        .fetch_one(&mut **connection)
        .await
        .map_err(StoreError::from)?;
        let made = delivery(&row)?;
        write.commit().await?;
        Ok(made)
    }

    /// Restarts the schedule of a delivery.
    ///
    /// # Errors
    /// As [`sidetone_model::webhook::Webhooks::redeliver`].
    pub async fn redeliver_webhook(
        &self,
        scope: Scope,
        webhook: WebhookId,
        id: DeliveryId,
        now: Timestamp,
    ) -> Result<DeliveryRecord, Problem> {
        let mut write = self.write().await?;
        let found = write.webhook_inside(scope, webhook).await?;
        let before = write.delivery_inside(scope, webhook, id).await?;
        require_active(&found)?;
        if before.status == DeliveryStatus::Delivering {
            // It is already being sent again.
            return Ok(before);
        }
        sql("UPDATE webhook_deliveries SET status = 'pending', next_at_us = $1, round_at_us = $1,
             round_attempts = 0, updated_at_us = $1 WHERE id = $2 AND organisation_id = $3")
        .bind(now.as_micros())
        .bind(id.to_string())
        .bind(found.organisation_id.to_string())
        .execute(&mut *write.transaction)
        .await
        .map_err(StoreError::from)?;
        due_at(&mut write.transaction, webhook, now).await?;
        let after = write.delivery_inside(scope, webhook, id).await?;
        write.commit().await?;
        Ok(after)
    }
}

impl WriteTransaction {
    async fn delivery_inside(
        &mut self,
        scope: Scope,
        webhook: WebhookId,
        id: DeliveryId,
    ) -> Result<DeliveryRecord, Problem> {
        let found = one(&mut self.transaction, scope, webhook, id).await?;
        found.ok_or_else(|| Problem::NotFound("the webhook has no such delivery".to_owned()))
    }
}

fn require_active(webhook: &WebhookRecord) -> Result<(), Problem> {
    if webhook.active {
        return Ok(());
    }
    Err(Problem::Conflict(
        "the webhook is switched off: switch it on with {\"active\": true} first".to_owned(),
    ))
}

async fn one(
    connection: &mut Connection,
    scope: Scope,
    webhook: WebhookId,
    id: DeliveryId,
) -> Result<Option<DeliveryRecord>, StoreError> {
    let mut statement = Statement::new("SELECT * FROM webhook_deliveries");
    within_organisation(&mut statement, scope);
    statement.bind(" AND webhook_id = ", webhook.to_string(), "");
    statement.bind(" AND id = ", id.to_string(), "");
    let Some(row) = statement.query().fetch_optional(&mut *connection).await? else { return Ok(None) };
    Ok(with_attempts(connection, vec![delivery(&row)?]).await?.pop())
}

fn matching(statement: &mut Statement, scope: Scope, webhook: WebhookId, filter: DeliveryFilter) {
    within_organisation(statement, scope);
    statement.bind(" AND webhook_id = ", webhook.to_string(), "");
    statement.bind_text(" AND status = ", filter.status.map(DeliveryStatus::as_str));
}

/// The same deliveries, each with its attempts.
async fn with_attempts(
    connection: &mut Connection,
    mut deliveries: Vec<DeliveryRecord>,
) -> Result<Vec<DeliveryRecord>, StoreError> {
    if deliveries.is_empty() {
        return Ok(deliveries);
    }
    let mut statement = Statement::new("SELECT * FROM webhook_attempts WHERE delivery_id IN (");
    for (index, delivery) in deliveries.iter().enumerate() {
        statement.bind(if index == 0 { "" } else { ", " }, delivery.id.to_string(), "");
    }
    statement.push(") ORDER BY delivery_id, number");
    let mut attempts: HashMap<DeliveryId, Vec<Attempt>> = HashMap::new();
    for row in statement.query().fetch_all(connection).await? {
        attempts.entry(parsed(&row, "delivery_id")?).or_default().push(attempt(&row)?);
    }
    for delivery in &mut deliveries {
        delivery.attempts = attempts.remove(&delivery.id).unwrap_or_default();
    }
    Ok(deliveries)
}
