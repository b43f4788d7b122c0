//! What all kinds of rates have in common.

use axum::http::{StatusCode, Uri};
use sidetone_model::access::{Permission, Scope};
use sidetone_model::money::{Amount, Currency};
use sidetone_model::page::{Page, Window};
use sidetone_model::rate_book::RateBook;
use sidetone_model::rating::{Increments, Prefix, Price, Rate, RateFilter, Validity};
use sidetone_model::rules;
use sidetone_model::time::Timestamp;
use utoipa::IntoParams;
use uuid::Uuid;

use crate::auth::Caller;
use crate::body::Fields;
use crate::error::ApiError;
use crate::managed::seen;
use crate::page;

/// The window of a list of rates, for the document.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(dead_code, reason = "described, never made: `query` names every wrong parameter")]
pub(super) struct RateWindowParams {
    /// Items of a page.
    #[param(minimum = 1, maximum = 500, default = 50)]
    limit: Option<i64>,
    /// Items to skip.
    #[param(minimum = 0, default = 0)]
    offset: Option<i64>,
}

/// The prefix that rates are looked up by, for the document.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(dead_code, reason = "described, never made: `query` names every wrong parameter")]
pub(super) struct PrefixParam {
    /// Rates whose prefix begins like this; `+` is written as `%2B`.
    #[param(example = "+44", pattern = r"^(\+[0-9]{0,15}|[0-9]{1,15})$")]
    prefix: Option<String>,
}

/// The changes of a price; a field that was left out is `None`.
#[derive(Debug, Default)]
pub(super) struct PriceChange {
    pub(super) prefix: Option<Prefix>,
    pub(super) per_minute: Option<Amount>,
    pub(super) currency: Option<Currency>,
    pub(super) increments: Option<Increments>,
    pub(super) from_time: Option<Timestamp>,
    pub(super) to_time: Option<Option<Timestamp>>,
}

impl PriceChange {
    pub(super) fn read(fields: &mut Fields) -> Self {
        PriceChange {
            prefix: fields.parsed("prefix", rules::prefix),
            per_minute: fields.parsed("per_minute", rules::per_minute),
            currency: fields.parsed("currency", rules::currency),
            increments: increments(fields),
            from_time: fields.timestamp("from_time"),
            to_time: fields.or_null("to_time", Fields::timestamp),
        }
    }

    /// The price and its validity, with missing fields taken from `before`.
    pub(super) fn applied(
        &self,
        fields: &mut Fields,
        before: (Price, Validity),
    ) -> Option<(Price, Validity)> {
        let (price, validity) = before;
        let price = Price {
            per_minute: self.per_minute.unwrap_or(price.per_minute),
            currency: self.currency.unwrap_or(price.currency),
            increments: self.increments.unwrap_or(price.increments),
        };
        let from = self.from_time.unwrap_or(validity.from);
        let to = self.to_time.unwrap_or(validity.to);
        if to.is_some_and(|to| to <= from) {
            return fields.refuse("to_time", "must be later than from_time");
        }
        Some((price, Validity { from, to }))
    }

    /// A complete new price.
    pub(super) fn whole(self, fields: &mut Fields) -> Option<(Prefix, Price, Validity)> {
        let prefix = fields.require_given("prefix", self.prefix.clone());
        let per_minute = fields.require_given("per_minute", self.per_minute);
        let currency = fields.require_given("currency", self.currency);
        let (prefix, per_minute, currency) = (prefix?, per_minute?, currency?);
        let price = Price { per_minute, currency, increments: Increments::SECONDS };
        let (price, validity) = self.applied(fields, (price, Validity::default()))?;
        Some((prefix, price, validity))
    }
}

/// `[first, next]` in seconds.
fn increments(fields: &mut Fields) -> Option<Increments> {
    let value = fields.value("increments")?;
    let steps = value.as_array().map(Vec::as_slice);
    let seconds = |step: &serde_json::Value| step.as_u64().and_then(|step| u32::try_from(step).ok());
    let increments = match steps {
        Some([first, next]) => {
            seconds(first).zip(seconds(next)).and_then(|(first, next)| Increments::new(first, next))
        }
        _ => None,
    };
    increments.or_else(|| {
        let most = Increments::STEP_MAX_S;
        fields.refuse("increments", format!("must be two numbers of seconds, 1 to {most}, such as [60, 1]"))
    })
}

/// Reads the filter and the window of a list; `known` are its filters.
pub(super) fn query(uri: &Uri, known: &[&str]) -> Result<(RateFilter, Window), ApiError> {
    let (mut filter, mut window) = (RateFilter::default(), Window::default());
    page::read(uri, |name, value| {
        match name {
            "limit" => window.limit = page::limit(value)?,
            "offset" => window.offset = page::count(value)?,
            _ if !known.contains(&name) => page::unknown()?,
            "from" => filter.from = Some(rules::currency(value)?),
            "organisation_id" => filter.organisation_id = Some(page::uuid(value)?.into()),
            "prefix" => filter.prefix = Some(rules::prefix(value)?),
            "to" => filter.to = Some(rules::currency(value)?),
            "trunk_id" => filter.trunk_id = Some(page::uuid(value)?.into()),
            _ => page::unknown()?,
        }
        Ok(())
    })?;
    Ok((filter, window))
}

/// Refuses a caller who may not set prices: an organisation that set its own could call for nothing.
pub(super) fn require_operator(caller: &Caller, permission: Permission) -> Result<(), ApiError> {
    caller.require(permission)?;
    if caller.scope() == Scope::Everything {
        return Ok(());
    }
    Err(ApiError::forbidden("this is between the operator and its carriers and customers"))
}

/// Returns the rate with `id` if the caller may see it.
pub(super) async fn visible<R: Rate>(
    book: &dyn RateBook<R>,
    id: &str,
    may_see: impl FnOnce(&R) -> bool,
) -> Result<R, ApiError>
where
    R::Id: From<Uuid>,
{
    let id: R::Id = page::path_id("id", id)?;
    seen(book.find(id).await?, "rate", may_see)
}

/// Removes the rate with `id`.
pub(super) async fn remove<R: Rate>(book: &dyn RateBook<R>, id: &str) -> Result<StatusCode, ApiError>
where
    R::Id: From<Uuid>,
{
    if book.delete(page::path_id("id", id)?).await? {
        return Ok(StatusCode::NO_CONTENT);
    }
    Err(ApiError::not_found("there is no such rate"))
}

/// Returns the page with every rate as callers see it.
pub(super) fn shown<R, V>(page: Page<R>, view: impl FnMut(R) -> V) -> axum::Json<Page<V>> {
    axum::Json(page.map(view))
}

pub(super) const READ_ONLY: &[&str] = &["id"];
