//! Rates: the prices for organisations, the prices of carriers, and conversion rates.
//!
//! The three kinds are read and written in the same way; the differences are in the statements of [`Stored`].
//! Every change increases the revision of the rates, so that a running engine notices.

use sidetone_model::access::Scope;
use sidetone_model::ids::{CostRateId, FxRateId, SellRateId};
use sidetone_model::money::Amount;
use sidetone_model::page::{Page, Window};
use sidetone_model::ports::PortFuture;
use sidetone_model::problem::{FieldProblem, Problem};
use sidetone_model::rate_book::RateBook;
use sidetone_model::rating::{
    CostRate, FxRate, Increments, Price, Rate, RateFilter, RateSnapshot, SellRate, Validity,
};
use sidetone_model::time::Timestamp;

use crate::columns::{instant, instant_opt, number, parsed};
use crate::paging::{List, SortColumn, Sorting, rows};
use crate::search::containing;
use crate::sql::{Row, Value, sql};
use crate::statement::Statement;
use crate::{Change, Store, StoreError, WriteTransaction};

/// A kind of rate and its table.
trait Stored: Rate + Sized {
    /// Selects every rate.
    const ALL: &'static str;
    /// Parameter: the id.
    const DELETE: &'static str;
    /// Parameter: the id.
    const FIND: &'static str;
    /// Parameters: [`Stored::values`] and the time.
    const INSERT: &'static str;
    /// Parameter: the owner's id; empty where there is no owner.
    const OWNER: &'static str;
    /// The field that contains the owner.
    const OWNER_FIELD: &'static str;
    /// Parameters: the natural key.
    const TWIN: &'static str;
    /// Parameters: [`Stored::values`] and the time.
    const UPDATE: &'static str;

    /// The columns, from the id on.
    fn values(&self) -> Vec<Value>;

    /// The natural key, which is unique.
    fn key(&self) -> Vec<Value>;

    /// The rate of a row.
    fn of(row: &Row) -> Result<Self, StoreError>;

    /// The same rate under another id.
    fn under(self, id: Self::Id) -> Self;

    fn id(&self) -> Self::Id;

    fn id_value(id: Self::Id) -> Value;

    /// Adds the list's condition.
    fn narrowed(statement: &mut Statement, scope: Scope, filter: &RateFilter);

    /// `SELECT *`, and `SELECT COUNT(*) AS total`.
    const PAGE: [&'static str; 2];
    /// The sort of the list.
    const ORDER: &'static [SortColumn];
}

impl Store {
    /// Returns a revision that grows with every change of the rates; cheap enough to read every second.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn rate_revision(&self) -> Result<i64, StoreError> {
        let row = sql(REVISION).fetch_one(self.readers()).await?;
        Ok(row.try_get("revision")?)
    }

    /// All rates, as of one instant.
    ///
    /// # Errors
    /// When the database fails, or contains values that this version does not know.
    pub async fn rates(&self) -> Result<RateSnapshot, StoreError> {
        let mut transaction = self.readers().begin_read().await?;
        let revision = sql(REVISION).fetch_one(&mut *transaction).await?;
        let sell = sql(SellRate::ALL).fetch_all(&mut *transaction).await?;
        let cost = sql(CostRate::ALL).fetch_all(&mut *transaction).await?;
        let fx = sql(FxRate::ALL).fetch_all(&mut *transaction).await?;
        Ok(RateSnapshot {
            revision: revision.try_get("revision")?,
            sell: sell.iter().map(SellRate::of).collect::<Result<_, _>>()?,
            cost: cost.iter().map(CostRate::of).collect::<Result<_, _>>()?,
            fx: fx.iter().map(FxRate::of).collect::<Result<_, _>>()?,
        })
    }
}

impl WriteTransaction {
    /// Creates or updates the organisation's sell rate, by prefix and start; a new rate gets the id of `rate`.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn declare_sell_rate(&mut self, rate: SellRate, now: Timestamp) -> Result<Change, StoreError> {
        self.declare_rate(rate, now, |a, b| (a.price, a.validity) == (b.price, b.validity)).await
    }

    /// Creates or updates the trunk's cost rate, in the same way.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn declare_cost_rate(&mut self, rate: CostRate, now: Timestamp) -> Result<Change, StoreError> {
        self.declare_rate(rate, now, |a, b| (a.price, a.validity) == (b.price, b.validity)).await
    }

    /// Creates or updates the conversion rate, by its pair and start.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn declare_fx_rate(&mut self, rate: FxRate, now: Timestamp) -> Result<Change, StoreError> {
        self.declare_rate(rate, now, |a, b| a.rate == b.rate).await
    }

    async fn declare_rate<R: Stored>(
        &mut self,
        rate: R,
        now: Timestamp,
        same: fn(&R, &R) -> bool,
    ) -> Result<Change, StoreError> {
        match self.twin(&rate).await? {
            None => {
                self.write_rate(R::INSERT, &rate, now).await?;
                Ok(self.note_rates(Change::Created))
            }
            Some(twin) if same(&twin, &rate) => Ok(Change::Unchanged),
            Some(twin) => {
                let id = twin.id();
                self.write_rate(R::UPDATE, &rate.under(id), now).await?;
                Ok(self.note_rates(Change::Changed))
            }
        }
    }

    /// The stored rate with the same natural key.
    async fn twin<R: Stored>(&mut self, rate: &R) -> Result<Option<R>, StoreError> {
        let query = rate.key().into_iter().fold(sql(R::TWIN), |query, value| query.bind(value));
        query.fetch_optional(&mut *self.transaction).await?.as_ref().map(R::of).transpose()
    }

    async fn write_rate<R: Stored>(
        &mut self,
        statement: &'static str,
        rate: &R,
        now: Timestamp,
    ) -> Result<u64, StoreError> {
        let query = rate.values().into_iter().fold(sql(statement), |query, value| query.bind(value));
        Ok(query.bind(now.as_micros()).execute(&mut *self.transaction).await?.rows_affected())
    }

    /// Refuses a rate whose owner does not exist, and one with the natural key of another.
    async fn check_rate<R: Stored>(&mut self, rate: &R, id: R::Id) -> Result<(), Problem> {
        if let Some(owner) = rate.key().into_iter().next().filter(|_| !R::OWNER.is_empty()) {
            let found = sql(R::OWNER).bind(owner).fetch_optional(&mut *self.transaction).await;
            if found.map_err(StoreError::from)?.is_none() {
                return Err(Problem::InvalidRequest(vec![FieldProblem {
                    field: R::OWNER_FIELD.to_owned(),
                    message: "there is none with this id".to_owned(),
                }]));
            }
        }
        match self.twin(rate).await? {
            Some(twin) if R::id_value(twin.id()) != R::id_value(id) => Err(Problem::Conflict(
                "there is a rate for the same numbers or currencies that begins at the same time, change that one"
                    .to_owned(),
            )),
            _ => Ok(()),
        }
    }
}

impl<R: Stored + 'static> RateBook<R> for Store {
    fn list(&self, scope: Scope, filter: RateFilter, window: Window) -> PortFuture<'_, Page<R>> {
        Box::pin(async move { Ok(self.rate_page(scope, &filter, window).await?) })
    }

    fn find(&self, id: R::Id) -> PortFuture<'_, Option<R>> {
        Box::pin(async move {
            let found = sql(R::FIND).bind(R::id_value(id)).fetch_optional(self.readers()).await;
            Ok(found.map_err(StoreError::from)?.as_ref().map(R::of).transpose()?)
        })
    }

    fn create(&self, rate: R, now: Timestamp) -> PortFuture<'_, ()> {
        Box::pin(async move {
            let mut write = self.write().await?;
            write.check_rate(&rate, rate.id()).await?;
            write.write_rate(R::INSERT, &rate, now).await?;
            write.note_rates(Change::Created);
            Ok(write.commit().await?)
        })
    }

    fn replace(&self, rate: R, now: Timestamp) -> PortFuture<'_, ()> {
        Box::pin(async move {
            let mut write = self.write().await?;
            write.check_rate(&rate, rate.id()).await?;
            if write.write_rate(R::UPDATE, &rate, now).await? == 0 {
                return Err(Problem::NotFound("the rate was deleted".to_owned()));
            }
            write.note_rates(Change::Changed);
            Ok(write.commit().await?)
        })
    }

    fn delete(&self, id: R::Id) -> PortFuture<'_, bool> {
        Box::pin(async move {
            let mut write = self.write().await?;
            let done = sql(R::DELETE).bind(R::id_value(id)).execute(&mut *write.transaction).await;
            if done.map_err(StoreError::from)?.rows_affected() == 0 {
                return Ok(false);
            }
            write.note_rates(Change::Changed);
            write.commit().await?;
            Ok(true)
        })
    }
}

impl Store {
    async fn rate_page<R: Stored>(
        &self,
        scope: Scope,
        filter: &RateFilter,
        window: Window,
    ) -> Result<Page<R>, StoreError> {
        let [items, count] = R::PAGE;
        let list = List {
            count,
            items,
            matching: &|statement| R::narrowed(statement, scope, filter),
            sorting: Sorting::ascending(R::ORDER),
        };
        let mut transaction = self.readers().begin_read().await?;
        rows(&mut transaction, &list, &window).await?.try_map(|row| R::of(&row))
    }
}

impl Stored for SellRate {
    const ALL: &'static str = "SELECT * FROM sell_rates ORDER BY organisation_id, prefix, from_time_us";
    const DELETE: &'static str = "DELETE FROM sell_rates WHERE id = $1";
    const FIND: &'static str = "SELECT * FROM sell_rates WHERE id = $1";
    const INSERT: &'static str =
        "INSERT INTO sell_rates (id, organisation_id, prefix, from_time_us, to_time_us,
        per_minute_scaled, currency, first_s, next_s, created_at_us, updated_at_us)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $10)";
    const ORDER: &'static [SortColumn] = &[
        SortColumn::Text("organisation_id"),
        SortColumn::Text("prefix"),
        SortColumn::Integer("from_time_us"),
        SortColumn::Text("id"),
    ];
    const OWNER: &'static str = "SELECT id FROM organisations WHERE id = $1";
    const OWNER_FIELD: &'static str = "organisation_id";
    const PAGE: [&'static str; 2] =
        ["SELECT * FROM sell_rates WHERE TRUE", "SELECT COUNT(*) AS total FROM sell_rates WHERE TRUE"];
    const TWIN: &'static str =
        "SELECT * FROM sell_rates WHERE organisation_id = $1 AND prefix = $2 AND from_time_us = $3";
    const UPDATE: &'static str = "UPDATE sell_rates SET organisation_id = $2, prefix = $3, from_time_us = $4,
        to_time_us = $5, per_minute_scaled = $6, currency = $7, first_s = $8, next_s = $9, updated_at_us = $10
        WHERE id = $1";

    fn values(&self) -> Vec<Value> {
        let key = [self.id.to_string(), self.organisation_id.to_string(), self.prefix.to_string()];
        priced_values(key, &self.price, self.validity)
    }

    fn key(&self) -> Vec<Value> {
        let texts = [self.organisation_id.to_string(), self.prefix.to_string()].map(Value::from);
        texts.into_iter().chain([self.validity.from.as_micros().into()]).collect()
    }

    fn of(row: &Row) -> Result<Self, StoreError> {
        let (price, validity) = priced(row)?;
        Ok(SellRate {
            id: parsed(row, "id")?,
            organisation_id: parsed(row, "organisation_id")?,
            prefix: parsed(row, "prefix")?,
            price,
            validity,
        })
    }

    fn under(self, id: SellRateId) -> Self {
        SellRate { id, ..self }
    }

    fn id(&self) -> SellRateId {
        self.id
    }

    fn id_value(id: SellRateId) -> Value {
        id.to_string().into()
    }

    fn narrowed(statement: &mut Statement, scope: Scope, filter: &RateFilter) {
        statement.bind_text(" AND organisation_id = ", scope.organisation());
        statement.bind_text(" AND organisation_id = ", filter.organisation_id);
        narrowed_by_prefix(statement, filter);
    }
}

impl Stored for CostRate {
    const ALL: &'static str = "SELECT * FROM cost_rates ORDER BY trunk_id, prefix, from_time_us";
    const DELETE: &'static str = "DELETE FROM cost_rates WHERE id = $1";
    const FIND: &'static str = "SELECT * FROM cost_rates WHERE id = $1";
    const INSERT: &'static str = "INSERT INTO cost_rates (id, trunk_id, prefix, from_time_us, to_time_us,
        per_minute_scaled, currency, first_s, next_s, created_at_us, updated_at_us)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $10)";
    const ORDER: &'static [SortColumn] = &[
        SortColumn::Text("trunk_id"),
        SortColumn::Text("prefix"),
        SortColumn::Integer("from_time_us"),
        SortColumn::Text("id"),
    ];
    const OWNER: &'static str = "SELECT id FROM trunks WHERE id = $1";
    const OWNER_FIELD: &'static str = "trunk_id";
    const PAGE: [&'static str; 2] =
        ["SELECT * FROM cost_rates WHERE TRUE", "SELECT COUNT(*) AS total FROM cost_rates WHERE TRUE"];
    const TWIN: &'static str =
        "SELECT * FROM cost_rates WHERE trunk_id = $1 AND prefix = $2 AND from_time_us = $3";
    const UPDATE: &'static str = "UPDATE cost_rates SET trunk_id = $2, prefix = $3, from_time_us = $4,
        to_time_us = $5, per_minute_scaled = $6, currency = $7, first_s = $8, next_s = $9, updated_at_us = $10
        WHERE id = $1";

    fn values(&self) -> Vec<Value> {
        let key = [self.id.to_string(), self.trunk_id.to_string(), self.prefix.to_string()];
        priced_values(key, &self.price, self.validity)
    }

    fn key(&self) -> Vec<Value> {
        let texts = [self.trunk_id.to_string(), self.prefix.to_string()].map(Value::from);
        texts.into_iter().chain([self.validity.from.as_micros().into()]).collect()
    }

    fn of(row: &Row) -> Result<Self, StoreError> {
        let (price, validity) = priced(row)?;
        Ok(CostRate {
            id: parsed(row, "id")?,
            trunk_id: parsed(row, "trunk_id")?,
            prefix: parsed(row, "prefix")?,
            price,
            validity,
        })
    }

    fn under(self, id: CostRateId) -> Self {
        CostRate { id, ..self }
    }

    fn id(&self) -> CostRateId {
        self.id
    }

    fn id_value(id: CostRateId) -> Value {
        id.to_string().into()
    }

    /// Cost rates are inside no organisation: only operators see the carriers' prices.
    fn narrowed(statement: &mut Statement, scope: Scope, filter: &RateFilter) {
        if scope != Scope::Everything {
            statement.push(" AND FALSE");
        }
        statement.bind_text(" AND trunk_id = ", filter.trunk_id);
        narrowed_by_prefix(statement, filter);
    }
}

impl Stored for FxRate {
    const ALL: &'static str = "SELECT * FROM fx_rates ORDER BY from_currency, to_currency, from_time_us";
    const DELETE: &'static str = "DELETE FROM fx_rates WHERE id = $1";
    const FIND: &'static str = "SELECT * FROM fx_rates WHERE id = $1";
    const INSERT: &'static str = "INSERT INTO fx_rates (id, from_currency, to_currency, from_time_us,
        rate_scaled, created_at_us, updated_at_us) VALUES ($1, $2, $3, $4, $5, $6, $6)";
    const ORDER: &'static [SortColumn] = &[
        SortColumn::Text("from_currency"),
        SortColumn::Text("to_currency"),
        SortColumn::Integer("from_time_us"),
        SortColumn::Text("id"),
    ];
    const OWNER: &'static str = "";
    const OWNER_FIELD: &'static str = "";
    const PAGE: [&'static str; 2] =
        ["SELECT * FROM fx_rates WHERE TRUE", "SELECT COUNT(*) AS total FROM fx_rates WHERE TRUE"];
    const TWIN: &'static str =
        "SELECT * FROM fx_rates WHERE from_currency = $1 AND to_currency = $2 AND from_time_us = $3";
    const UPDATE: &'static str =
        "UPDATE fx_rates SET from_currency = $2, to_currency = $3, from_time_us = $4,
        rate_scaled = $5, updated_at_us = $6 WHERE id = $1";

    fn values(&self) -> Vec<Value> {
        let key = self.key();
        std::iter::once(Self::id_value(self.id)).chain(key).chain([self.rate.scaled().into()]).collect()
    }

    fn key(&self) -> Vec<Value> {
        let texts = [self.from.to_string(), self.to.to_string()].map(Value::from);
        texts.into_iter().chain([self.from_time.as_micros().into()]).collect()
    }

    fn of(row: &Row) -> Result<Self, StoreError> {
        Ok(FxRate {
            id: parsed(row, "id")?,
            from: parsed(row, "from_currency")?,
            to: parsed(row, "to_currency")?,
            rate: Amount::from_scaled(row.try_get("rate_scaled")?),
            from_time: instant(row, "from_time_us")?,
        })
    }

    fn under(self, id: FxRateId) -> Self {
        FxRate { id, ..self }
    }

    fn id(&self) -> FxRateId {
        self.id
    }

    fn id_value(id: FxRateId) -> Value {
        id.to_string().into()
    }

    fn narrowed(statement: &mut Statement, scope: Scope, filter: &RateFilter) {
        if scope != Scope::Everything {
            statement.push(" AND FALSE");
        }
        statement.bind_text(" AND from_currency = ", filter.from);
        statement.bind_text(" AND to_currency = ", filter.to);
    }
}

fn priced_values(key: [String; 3], price: &Price, validity: Validity) -> Vec<Value> {
    let [first, next] = <[u32; 2]>::from(price.increments).map(i64::from);
    let rest: [Value; 6] = [
        validity.from.as_micros().into(),
        validity.to.map(Timestamp::as_micros).into(),
        price.per_minute.scaled().into(),
        price.currency.to_string().into(),
        first.into(),
        next.into(),
    ];
    key.into_iter().map(Value::from).chain(rest).collect()
}

fn priced(row: &Row) -> Result<(Price, Validity), StoreError> {
    let increments = Increments::new(number(row, "first_s")?, number(row, "next_s")?);
    let price = Price {
        per_minute: Amount::from_scaled(row.try_get("per_minute_scaled")?),
        currency: parsed(row, "currency")?,
        increments: increments.ok_or(StoreError::Corrupt { column: "first_s" })?,
    };
    Ok((price, Validity { from: instant(row, "from_time_us")?, to: instant_opt(row, "to_time_us")? }))
}

fn narrowed_by_prefix(statement: &mut Statement, filter: &RateFilter) {
    if let Some(prefix) = &filter.prefix {
        // Only digits and a plus: no character has a special meaning in LIKE.
        let beginning = containing(prefix.as_str()).trim_start_matches('%').to_owned();
        statement.bind(" AND prefix LIKE ", beginning, r" ESCAPE '\'");
    }
}

const REVISION: &str = "SELECT revision FROM directory_revision WHERE id = 2";
