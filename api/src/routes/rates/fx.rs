//! Conversion rates between currencies.

use axum::Json;
use axum::extract::{OriginalUri, Path, State};
use axum::http::StatusCode;
use axum::response::Response;
use serde::Serialize;
use sidetone_model::access::Permission;
use sidetone_model::ids::FxRateId;
use sidetone_model::money::{Amount, Currency};
use sidetone_model::page::Page;
use sidetone_model::rating::FxRate;
use sidetone_model::rules;
use sidetone_model::time::Timestamp;
use utoipa::{IntoParams, ToSchema};
use uuid::Uuid;

use crate::auth::Caller;
use crate::body::{Body, Fields};
use crate::error::{ApiError, ErrorBody};
use crate::managed::created;
use crate::routes::rates::fields::{READ_ONLY, RateWindowParams};
use crate::routes::rates::fields::{query, remove, require_operator, shown, visible};
use crate::state::ApiState;

/// What one unit of a currency is in another, from an instant on.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = FxRate)]
pub(crate) struct FxRateView {
    id: FxRateId,
    /// The currency converted.
    from: Currency,
    /// The currency converted into.
    to: Currency,
    /// One unit of `from` in `to`.
    #[schema(value_type = Amount, example = "0.9200")]
    rate: String,
    /// Holds from this instant until the next one of the pair begins.
    from_time: Timestamp,
}

impl From<FxRate> for FxRateView {
    fn from(rate: FxRate) -> Self {
        let FxRate { id, from, to, rate, from_time } = rate;
        Self { id, from, to, rate: rate.to_text(0), from_time }
    }
}

/// A conversion rate: all of it to make one, what changes of it to change one.
#[derive(ToSchema)]
#[expect(dead_code, reason = "says in the document what `create` and `change` read")]
pub(crate) struct FxRateBody {
    /// The currency converted.
    #[schema(example = "USD", pattern = "^[A-Z]{3}$")]
    from: Option<String>,
    /// The currency converted into.
    #[schema(example = "EUR", pattern = "^[A-Z]{3}$")]
    to: Option<String>,
    /// One unit of `from` in `to`; above 0, at most 10000000.
    #[schema(example = "0.9200")]
    rate: Option<Amount>,
    /// Holds from this instant until the next one of the pair begins; since ever unless given.
    from_time: Option<Timestamp>,
}

/// The pair of a list of conversion rates, for the document.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(dead_code, reason = "described, never made: `query` names every wrong parameter")]
pub(crate) struct FxPairParams {
    /// From one currency.
    #[param(example = "USD", pattern = "^[A-Z]{3}$")]
    from: Option<String>,
    /// Into one currency.
    #[param(example = "EUR", pattern = "^[A-Z]{3}$")]
    to: Option<String>,
}

/// List conversion rates
///
/// By pair and the instant they begin. For operators.
#[utoipa::path(
    get,
    path = "/fx-rates",
    operation_id = "listFxRates",
    tag = "Rates",
    params(RateWindowParams, FxPairParams),
    responses((status = 200, description = "The page.", body = Page<FxRateView>)),
    extensions(("x-permission" = json!("margin:read"))),
)]
pub(crate) async fn list(
    caller: Caller,
    State(state): State<ApiState>,
    OriginalUri(uri): OriginalUri,
) -> Result<Json<Page<FxRateView>>, ApiError> {
    require_operator(&caller, Permission::MarginRead)?;
    let (filter, window) = query(&uri, &["from", "to"])?;
    let page = state.rates()?.fx.list(caller.scope(), filter, window).await?;
    Ok(shown(page, FxRateView::from))
}

/// Create a conversion rate
///
/// For operators.
#[utoipa::path(
    post,
    path = "/fx-rates",
    operation_id = "createFxRate",
    tag = "Rates",
    request_body = FxRateBody,
    responses(
        (status = 201, description = "The rate; `Location` names it.", body = FxRateView),
        (status = 409, description = "There is one with the same pair and beginning.", body = ErrorBody),
    ),
    extensions(("x-permission" = json!("rates:write"))),
)]
pub(crate) async fn create(
    caller: Caller,
    State(state): State<ApiState>,
    body: Body,
) -> Result<Response, ApiError> {
    require_operator(&caller, Permission::RatesWrite)?;
    let rate = body.read(new_rate)?;
    state.rates()?.fx.create(rate.clone(), (state.clock)()).await?;
    Ok(created("fx-rates", rate.id, FxRateView::from(rate)))
}

/// Read a conversion rate
#[utoipa::path(
    get,
    path = "/fx-rates/{id}",
    operation_id = "getFxRate",
    tag = "Rates",
    params(("id" = FxRateId, Path, description = "The rate's `id`.")),
    responses((status = 200, description = "The rate.", body = FxRateView)),
    extensions(("x-permission" = json!("margin:read"))),
)]
pub(crate) async fn find(
    caller: Caller,
    State(state): State<ApiState>,
    Path(id): Path<String>,
) -> Result<Json<FxRateView>, ApiError> {
    require_operator(&caller, Permission::MarginRead)?;
    let rate: FxRate = visible(state.rates()?.fx.as_ref(), &id, |_| true).await?;
    Ok(Json(rate.into()))
}

/// Change a conversion rate
///
/// A JSON merge patch: what is left out stays as it is. Settled calls keep the rate that they were
/// converted at. For operators.
#[utoipa::path(
    patch,
    path = "/fx-rates/{id}",
    operation_id = "changeFxRate",
    tag = "Rates",
    params(("id" = FxRateId, Path, description = "The rate's `id`.")),
    request_body = FxRateBody,
    responses(
        (status = 200, description = "The whole rate.", body = FxRateView),
        (status = 409, description = "There is one with the same pair and beginning.", body = ErrorBody),
    ),
    extensions(("x-permission" = json!("rates:write"))),
)]
pub(crate) async fn change(
    caller: Caller,
    State(state): State<ApiState>,
    Path(id): Path<String>,
    body: Body,
) -> Result<Json<FxRateView>, ApiError> {
    require_operator(&caller, Permission::RatesWrite)?;
    let book = state.rates()?.fx.as_ref();
    let before: FxRate = visible(book, &id, |_| true).await?;
    let rate = body.read(|fields| changed(fields, before))?;
    book.replace(rate.clone(), (state.clock)()).await?;
    Ok(Json(rate.into()))
}

/// Remove a conversion rate
///
/// Settled calls keep the rate that they were converted at. For operators.
#[utoipa::path(
    delete,
    path = "/fx-rates/{id}",
    operation_id = "deleteFxRate",
    tag = "Rates",
    params(("id" = FxRateId, Path, description = "The rate's `id`.")),
    responses((status = 204, description = "It is gone.")),
    extensions(("x-permission" = json!("rates:write"))),
)]
pub(crate) async fn delete(
    caller: Caller,
    State(state): State<ApiState>,
    Path(id): Path<String>,
) -> Result<StatusCode, ApiError> {
    require_operator(&caller, Permission::RatesWrite)?;
    remove(state.rates()?.fx.as_ref(), &id).await
}

fn new_rate(fields: &mut Fields) -> Option<FxRate> {
    let (from, to, rate, from_time) = read(fields);
    let from = fields.require_given("from", from);
    let to = fields.require_given("to", to);
    let rate = fields.require_given("rate", rate);
    let id = Uuid::new_v4().into();
    checked(
        fields,
        FxRate { id, from: from?, to: to?, rate: rate?, from_time: from_time.unwrap_or_default() },
    )
}

fn changed(fields: &mut Fields, before: FxRate) -> Option<FxRate> {
    let (from, to, rate, from_time) = read(fields);
    let after = FxRate {
        id: before.id,
        from: from.unwrap_or(before.from),
        to: to.unwrap_or(before.to),
        rate: rate.unwrap_or(before.rate),
        from_time: from_time.unwrap_or(before.from_time),
    };
    checked(fields, after)
}

fn read(fields: &mut Fields) -> (Option<Currency>, Option<Currency>, Option<Amount>, Option<Timestamp>) {
    let read = (
        fields.parsed("from", rules::currency),
        fields.parsed("to", rules::currency),
        fields.parsed("rate", rules::fx_rate),
        fields.timestamp("from_time"),
    );
    fields.read_only(READ_ONLY);
    read
}

fn checked(fields: &mut Fields, rate: FxRate) -> Option<FxRate> {
    if rate.from == rate.to {
        return fields.refuse("to", "must be another currency than from");
    }
    Some(rate)
}
