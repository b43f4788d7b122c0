//! The prices of AI models.

use sidetone_model::access::Scope;
use sidetone_model::ai_price::{AiPrice, AiPriceFilter, AiPriceKind, AiPrices, ModelPattern};
use sidetone_model::conversation::AiUse;
use sidetone_model::ids::{AiPriceId, OrganisationId};
use sidetone_model::money::Amount;
use sidetone_model::page::{Page, Window};
use sidetone_model::ports::PortFuture;
use sidetone_model::problem::Problem;
use sidetone_model::time::Timestamp;
use uuid::Uuid;

use crate::columns::{instant, instant_opt, parsed, word};
use crate::paging::{List, SortColumn, Sorting, rows};
use crate::references::no_organisation;
use crate::sql::{Connection, Row, sql};
use crate::statement::Statement;
use crate::{Change, Store, StoreError, WriteTransaction};

impl AiPrices for Store {
    fn list(&self, scope: Scope, filter: AiPriceFilter, window: Window) -> PortFuture<'_, Page<AiPrice>> {
        Box::pin(async move { Ok(self.list_ai_prices(scope, &filter, window).await?) })
    }

    fn find(&self, id: AiPriceId) -> PortFuture<'_, Option<AiPrice>> {
        Box::pin(async move { Ok(self.find_ai_price(id).await?) })
    }

    fn put(&self, price: AiPrice, now: Timestamp) -> PortFuture<'_, ()> {
        Box::pin(async move { self.put_ai_price(&price, now).await })
    }

    fn remove(&self, id: AiPriceId) -> PortFuture<'_, bool> {
        Box::pin(async move { Ok(self.remove_ai_price(id).await?) })
    }
}

impl Store {
    async fn list_ai_prices(
        &self,
        scope: Scope,
        filter: &AiPriceFilter,
        window: Window,
    ) -> Result<Page<AiPrice>, StoreError> {
        let list = List {
            count: "SELECT COUNT(*) AS total FROM ai_prices WHERE TRUE",
            items: "SELECT * FROM ai_prices WHERE TRUE",
            matching: &|statement| matching(statement, scope, filter),
            sorting: Sorting::ascending(ORDER),
        };
        let mut transaction = self.readers().begin_read().await?;
        rows(&mut transaction, &list, &window).await?.try_map(|row| price(&row))
    }

    async fn find_ai_price(&self, id: AiPriceId) -> Result<Option<AiPrice>, StoreError> {
        let row = sql("SELECT * FROM ai_prices WHERE id = $1")
            .bind(id.to_string())
            .fetch_optional(self.readers())
            .await?;
        row.map(|row| price(&row)).transpose()
    }

    async fn put_ai_price(&self, price: &AiPrice, now: Timestamp) -> Result<(), Problem> {
        let mut transaction = self.writer().begin_write().await.map_err(StoreError::from)?;
        if let Some(organisation) = price.organisation_id {
            let row = sql("SELECT id FROM organisations WHERE id = $1")
                .bind(organisation.to_string())
                .fetch_optional(&mut *transaction)
                .await
                .map_err(StoreError::from)?;
            if row.is_none() {
                return Err(no_organisation());
            }
        }
        if let Some(row) = same_key(&mut transaction, price).await? {
            let other: AiPriceId = parsed(&row, "id")?;
            if other != price.id {
                return Err(Problem::Conflict(format!(
                    "the price {other} is for the same kind, organisation, provider, model and from_time"
                )));
            }
        }
        put(&mut transaction, price, now).await?;
        transaction.commit().await.map_err(StoreError::from)?;
        Ok(())
    }

    async fn remove_ai_price(&self, id: AiPriceId) -> Result<bool, StoreError> {
        let mut transaction = self.writer().begin_write().await?;
        let done = sql("DELETE FROM ai_prices WHERE id = $1")
            .bind(id.to_string())
            .execute(&mut *transaction)
            .await?;
        transaction.commit().await?;
        Ok(done.rows_affected() == 1)
    }
}

impl WriteTransaction {
    /// Creates or updates the price; kind, organisation, provider, model and start identify it. Prices are
    /// read when a conversation completes, so no engine has to be notified.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn declare_ai_price(
        &mut self,
        declared: &AiPrice,
        now: Timestamp,
    ) -> Result<Change, StoreError> {
        let mut wanted = declared.clone();
        let Some(row) = same_key(&mut self.transaction, &wanted).await? else {
            wanted.id = AiPriceId(Uuid::new_v4());
            put(&mut self.transaction, &wanted, now).await?;
            return Ok(Change::Created);
        };
        let stored = price(&row)?;
        wanted.id = stored.id;
        if wanted == stored {
            return Ok(Change::Unchanged);
        }
        put(&mut self.transaction, &wanted, now).await?;
        Ok(Change::Changed)
    }
}

/// The prices that may apply to the AI usage `ai`: those of its provider and model, for all organisations or for
/// `organisation`, in force at `at`.
pub(super) async fn prices_for(
    connection: &mut Connection,
    organisation: OrganisationId,
    ai: &AiUse,
    at: Timestamp,
) -> Result<Vec<AiPrice>, StoreError> {
    let rows = sql("SELECT * FROM ai_prices
         WHERE provider = $1 AND (organisation_id = '' OR organisation_id = $2)
           AND (model = $3 OR (is_prefix = 1 AND SUBSTR($3, 1, LENGTH(model)) = model))
           AND from_time_us <= $4 AND (to_time_us IS NULL OR to_time_us > $4)")
    .bind(&ai.provider)
    .bind(organisation.to_string())
    .bind(&ai.model)
    .bind(at.as_micros())
    .fetch_all(connection)
    .await?;
    rows.iter().map(price).collect()
}

/// An organisation sees its own prices and those for all organisations, but not those of others.
fn matching(statement: &mut Statement, scope: Scope, filter: &AiPriceFilter) {
    if let Some(own) = scope.organisation() {
        statement.bind(" AND (organisation_id = '' OR organisation_id = ", own.to_string(), ")");
    }
    statement.bind_text(" AND organisation_id = ", filter.organisation_id);
    statement.bind_text(" AND kind = ", filter.kind);
    statement.bind_text(" AND provider = ", filter.provider.as_deref());
}

/// The stored price for the same kind, organisation, provider, model and start.
async fn same_key(connection: &mut Connection, price: &AiPrice) -> Result<Option<Row>, StoreError> {
    let (model, is_prefix) = model(price);
    let row =
        sql("SELECT * FROM ai_prices WHERE provider = $1 AND model = $2 AND is_prefix = $3 AND kind = $4
           AND organisation_id = $5 AND from_time_us = $6")
        .bind(&price.provider)
        .bind(model)
        .bind(is_prefix)
        .bind(price.kind.as_str())
        .bind(organisation_text(price))
        .bind(price.from_time.as_micros())
        .fetch_optional(connection)
        .await?;
    Ok(row)
}

async fn put(connection: &mut Connection, price: &AiPrice, now: Timestamp) -> Result<(), StoreError> {
    let (model, is_prefix) = model(price);
    sql("INSERT INTO ai_prices (id, kind, organisation_id, provider, model, is_prefix, text_input_scaled,
         audio_input_scaled, output_scaled, currency, from_time_us, to_time_us, created_at_us, updated_at_us)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $13)
         ON CONFLICT (id) DO UPDATE SET kind = excluded.kind, organisation_id = excluded.organisation_id,
         provider = excluded.provider, model = excluded.model, is_prefix = excluded.is_prefix,
         text_input_scaled = excluded.text_input_scaled, audio_input_scaled = excluded.audio_input_scaled,
         output_scaled = excluded.output_scaled, currency = excluded.currency,
         from_time_us = excluded.from_time_us, to_time_us = excluded.to_time_us,
         updated_at_us = excluded.updated_at_us")
    .bind(price.id.to_string())
    .bind(price.kind.as_str())
    .bind(organisation_text(price))
    .bind(&price.provider)
    .bind(model)
    .bind(is_prefix)
    .bind(price.text_input_per_million.scaled())
    .bind(price.audio_input_per_million.map(Amount::scaled))
    .bind(price.output_per_million.scaled())
    .bind(price.currency.as_str())
    .bind(price.from_time.as_micros())
    .bind(price.to_time.map(Timestamp::as_micros))
    .bind(now.as_micros())
    .execute(connection)
    .await?;
    Ok(())
}

fn model(price: &AiPrice) -> (&str, bool) {
    match &price.model {
        ModelPattern::Exact(name) => (name, false),
        ModelPattern::Prefix(prefix) => (prefix, true),
    }
}

fn organisation_text(price: &AiPrice) -> String {
    price.organisation_id.map_or_else(String::new, |id| id.to_string())
}

fn price(row: &Row) -> Result<AiPrice, StoreError> {
    let organisation: &str = row.try_get("organisation_id")?;
    let organisation_id = if organisation.is_empty() { None } else { Some(parsed(row, "organisation_id")?) };
    let model: String = row.try_get("model")?;
    let is_prefix = row.try_get::<i64>("is_prefix")? != 0;
    Ok(AiPrice {
        id: parsed(row, "id")?,
        kind: word(row, "kind", AiPriceKind::from_name)?,
        organisation_id,
        provider: row.try_get("provider")?,
        model: if is_prefix { ModelPattern::Prefix(model) } else { ModelPattern::Exact(model) },
        text_input_per_million: Amount::from_scaled(row.try_get("text_input_scaled")?),
        audio_input_per_million: row.try_get::<Option<i64>>("audio_input_scaled")?.map(Amount::from_scaled),
        output_per_million: Amount::from_scaled(row.try_get("output_scaled")?),
        currency: parsed(row, "currency")?,
        from_time: instant(row, "from_time_us")?,
        to_time: instant_opt(row, "to_time_us")?,
    })
}

const ORDER: &[SortColumn] = &[
    SortColumn::Text("provider"),
    SortColumn::Text("model"),
    SortColumn::Integer("is_prefix"),
    SortColumn::Text("kind"),
    SortColumn::Text("organisation_id"),
    SortColumn::Integer("from_time_us"),
    SortColumn::Text("id"),
];
