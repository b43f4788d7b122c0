//! Webhooks as the API manages them.

use sidetone_model::access::Scope;
use sidetone_model::directory::Secret;
use sidetone_model::ids::WebhookId;
use sidetone_model::listing::Listing;
use sidetone_model::page::Page;
use sidetone_model::problem::Problem;
use sidetone_model::time::Timestamp;
use sidetone_model::webhook::{NewWebhook, SECRET_OVERLAP_US, WEBHOOKS_MAX, WebhookChange, WebhookRecord};
use uuid::Uuid;

use crate::columns::number;
use crate::listing::Table;
use crate::paging::SortColumn;
use crate::references::no_organisation;
use crate::search::searchable;
use crate::sql::{Connection, sql};
use crate::webhooks::rows::{patterns_text, webhook};
use crate::{Change, Store, StoreError, WriteTransaction};

const TABLE: Table = Table {
    count: "SELECT COUNT(*) AS total FROM webhooks",
    select: "SELECT * FROM webhooks",
    team: None,
    by_name: &[SortColumn::Text("url"), SortColumn::Text("id")],
};

impl Store {
    /// The webhooks inside `scope` that the listing selects.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn list_webhooks(
        &self,
        scope: Scope,
        listing: &Listing,
    ) -> Result<Page<WebhookRecord>, StoreError> {
        self.page(scope, listing, &TABLE, webhook).await
    }

    /// One webhook, of any organisation.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn webhook(&self, id: WebhookId) -> Result<Option<WebhookRecord>, StoreError> {
        self.one(sql("SELECT * FROM webhooks WHERE id = $1").bind(id.to_string()), webhook).await
    }

    /// Creates a webhook that signs with `secret`.
    ///
    /// # Errors
    /// As [`sidetone_model::webhook::Webhooks::create`].
    pub async fn create_webhook(
        &self,
        new: NewWebhook,
        secret: &Secret,
        now: Timestamp,
    ) -> Result<WebhookRecord, Problem> {
        let mut write = self.write().await?;
        write.require_room_for_webhook(&new).await?;
        let made = WebhookRecord {
            id: WebhookId(Uuid::new_v4()),
            organisation_id: new.organisation_id,
            url: new.url,
            events: new.events,
            description: new.description,
            active: new.active,
            disabled_reason: None,
            failing_since: None,
            old_secret_until: None,
            created_at: now,
            updated_at: now,
        };
        let statement =
            sql("INSERT INTO webhooks (id, organisation_id, url, events, description, active, secret,
             search, created_at_us, updated_at_us) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $9)")
            .bind(made.id.to_string())
            .bind(made.organisation_id.to_string())
            .bind(&made.url)
            .bind(patterns_text(&made.events))
            .bind(&made.description)
            .bind(made.active)
            .bind(&secret.0)
            .bind(search(&made))
            .bind(now.as_micros());
        // The switch does not read webhooks: the directory's revision does not change.
        write.finish(statement, Change::Unchanged).await?;
        Ok(made)
    }

    /// Changes a webhook inside `scope`. Disabling it cancels its waiting deliveries; enabling it, or changing its
    /// address, resets its failures.
    ///
    /// # Errors
    /// As [`sidetone_model::webhook::Webhooks::change`].
    pub async fn change_webhook(
        &self,
        scope: Scope,
        id: WebhookId,
        change: WebhookChange,
        now: Timestamp,
    ) -> Result<WebhookRecord, Problem> {
        let mut write = self.write().await?;
        let before = write.webhook_inside(scope, id).await?;
        let (was_active, old_url) = (before.active, before.url.clone());
        let after = WebhookRecord {
            url: change.url.unwrap_or(before.url),
            events: change.events.unwrap_or(before.events),
            description: change.description.unwrap_or(before.description),
            active: change.active.unwrap_or(before.active),
            updated_at: now,
            ..before
        };
        let restarted = (after.active && !was_active) || after.url != old_url;
        let after = WebhookRecord {
            disabled_reason: after.disabled_reason.filter(|_| !after.active),
            failing_since: after.failing_since.filter(|_| !restarted),
            ..after
        };
        let statement = sql(
            "UPDATE webhooks SET url = $1, events = $2, description = $3, active = $4, disabled_reason = $5,
             failing_since_us = $6, search = $7, updated_at_us = $8 WHERE id = $9 AND organisation_id = $10",
        )
        .bind(&after.url)
        .bind(patterns_text(&after.events))
        .bind(&after.description)
        .bind(after.active)
        .bind(after.disabled_reason.map(|reason| reason.as_str()))
        .bind(after.failing_since.map(Timestamp::as_micros))
        .bind(search(&after))
        .bind(now.as_micros())
        .bind(id.to_string())
        .bind(after.organisation_id.to_string());
        statement.execute(&mut *write.transaction).await.map_err(StoreError::from)?;
        // Also when it is enabled: an interrupted attempt of a crashed node belongs to the time when it was disabled.
        if was_active != after.active {
            cancel_waiting(&mut write.transaction, id, now).await?;
        }
        write.commit().await?;
        Ok(after)
    }

    /// Removes a webhook inside `scope`; waiting and running deliveries are cancelled.
    ///
    /// # Errors
    /// As [`sidetone_model::webhook::Webhooks::delete`].
    pub async fn delete_webhook(&self, scope: Scope, id: WebhookId, now: Timestamp) -> Result<(), Problem> {
        let mut write = self.write().await?;
        let found = write.webhook_inside(scope, id).await?;
        sql("DELETE FROM webhooks WHERE id = $1 AND organisation_id = $2")
            .bind(id.to_string())
            .bind(found.organisation_id.to_string())
            .execute(&mut *write.transaction)
            .await
            .map_err(StoreError::from)?;
        let statement =
            sql("UPDATE webhook_deliveries SET status = 'cancelled', next_at_us = NULL, node_id = NULL,
             lease = NULL, updated_at_us = $1
             WHERE webhook_id = $2 AND organisation_id = $3 AND next_at_us IS NOT NULL")
            .bind(now.as_micros())
            .bind(id.to_string())
            .bind(found.organisation_id.to_string());
        write.finish(statement, Change::Unchanged).await?;
        Ok(())
    }

    /// Makes a webhook inside `scope` sign with `secret`, and also with the previous secret for a day.
    ///
    /// # Errors
    /// As [`sidetone_model::webhook::Webhooks::rotate_secret`].
    pub async fn rotate_webhook_secret(
        &self,
        scope: Scope,
        id: WebhookId,
        secret: &Secret,
        now: Timestamp,
    ) -> Result<WebhookRecord, Problem> {
        let mut write = self.write().await?;
        let before = write.webhook_inside(scope, id).await?;
        let until = now.plus_micros(SECRET_OVERLAP_US);
        let statement = sql("UPDATE webhooks SET old_secret = secret, old_secret_until_us = $1, secret = $2,
             updated_at_us = $3 WHERE id = $4 AND organisation_id = $5")
        .bind(until.as_micros())
        .bind(&secret.0)
        .bind(now.as_micros())
        .bind(id.to_string())
        .bind(before.organisation_id.to_string());
        write.finish(statement, Change::Unchanged).await?;
        Ok(WebhookRecord { old_secret_until: Some(until), updated_at: now, ..before })
    }
}

impl WriteTransaction {
    /// Returns the webhook, locked against other deliveries and changes until the transaction ends.
    pub(super) async fn webhook_inside(
        &mut self,
        scope: Scope,
        id: WebhookId,
    ) -> Result<WebhookRecord, Problem> {
        lock(&mut self.transaction, id).await?;
        let query = sql("SELECT * FROM webhooks WHERE id = $1").bind(id.to_string());
        let found = self.one(query, webhook).await?;
        found
            .filter(|found| scope.covers(found.organisation_id, None))
            .ok_or_else(|| Problem::NotFound("there is no such webhook".to_owned()))
    }

    async fn require_room_for_webhook(&mut self, new: &NewWebhook) -> Result<(), Problem> {
        let row = sql("SELECT COUNT(*) AS total,
             (SELECT COUNT(*) FROM organisations WHERE id = $1) AS organisations
             FROM webhooks WHERE organisation_id = $1")
        .bind(new.organisation_id.to_string())
        .fetch_one(&mut *self.transaction)
        .await
        .map_err(StoreError::from)?;
        if number::<u64>(&row, "organisations")? == 0 {
            return Err(no_organisation());
        }
        if number::<u64>(&row, "total")? >= WEBHOOKS_MAX {
            return Err(Problem::Conflict(format!(
                "the organisation has {WEBHOOKS_MAX} webhooks, which is as many as there may be: remove one first"
            )));
        }
        Ok(())
    }
}

/// Locks the webhook and its deliveries until the transaction ends; returns whether it exists.
pub(super) async fn lock(connection: &mut Connection, id: WebhookId) -> Result<bool, StoreError> {
    let done = sql("UPDATE webhooks SET updated_at_us = updated_at_us WHERE id = $1")
        .bind(id.to_string())
        .execute(connection)
        .await?;
    Ok(done.rows_affected() == 1)
}

/// Cancels the waiting deliveries of a disabled webhook. A running attempt continues, unless its node has
/// crashed.
pub(super) async fn cancel_waiting(
    connection: &mut Connection,
    id: WebhookId,
    now: Timestamp,
) -> Result<(), StoreError> {
    sql(
        "UPDATE webhook_deliveries SET status = 'cancelled', next_at_us = NULL, node_id = NULL, lease = NULL,
         updated_at_us = $1
         WHERE webhook_id = $2 AND next_at_us IS NOT NULL AND (node_id IS NULL OR next_at_us <= $1)",
    )
    .bind(now.as_micros())
    .bind(id.to_string())
    .execute(connection)
    .await?;
    Ok(())
}

fn search(webhook: &WebhookRecord) -> String {
    searchable([Some(webhook.url.as_str()), Some(webhook.description.as_str())])
}
