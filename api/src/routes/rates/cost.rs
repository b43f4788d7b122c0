//! Cost rates: the prices of carriers.

use axum::Json;
use axum::extract::{OriginalUri, Path, State};
use axum::http::StatusCode;
use axum::response::Response;
use serde::Serialize;
use sidetone_model::access::Permission;
use sidetone_model::ids::{CostRateId, TrunkId};
use sidetone_model::money::{Amount, Currency};
use sidetone_model::page::Page;
use sidetone_model::rating::CostRate;
use sidetone_model::time::Timestamp;
use utoipa::{IntoParams, ToSchema};
use uuid::Uuid;

use crate::auth::Caller;
use crate::body::{Body, Fields};
use crate::error::{ApiError, ErrorBody};
use crate::managed::created;
use crate::routes::rates::fields::{PrefixParam, PriceChange, READ_ONLY, RateWindowParams};
use crate::routes::rates::fields::{query, remove, require_operator, shown, visible};
use crate::state::ApiState;

/// What a carrier charges for calls to one prefix.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = CostRate)]
pub(crate) struct CostRateView {
    id: CostRateId,
    /// The carrier.
    trunk_id: TrunkId,
    /// The beginning of the numbers that it is for.
    #[schema(example = "+44")]
    prefix: String,
    /// The price of 60 seconds.
    #[schema(value_type = Amount)]
    per_minute: String,
    currency: Currency,
    /// Seconds: the first increment, and each next one.
    #[schema(min_items = 2, max_items = 2)]
    increments: [u32; 2],
    /// Holds from this instant on.
    from_time: Timestamp,
    /// Holds until this instant; null is for ever.
    #[schema(required)]
    to_time: Option<Timestamp>,
}

impl From<CostRate> for CostRateView {
    fn from(rate: CostRate) -> Self {
        Self {
            id: rate.id,
            trunk_id: rate.trunk_id,
            prefix: rate.prefix.to_string(),
            per_minute: rate.price.per_minute.to_text(rate.price.currency.places()),
            currency: rate.price.currency,
            increments: rate.price.increments.into(),
            from_time: rate.validity.from,
            to_time: rate.validity.to,
        }
    }
}

/// A cost rate: all of it to make one, what changes of it to change one.
#[derive(ToSchema)]
#[expect(dead_code, reason = "says in the document what `create` and `change` read")]
pub(crate) struct CostRateBody {
    /// The carrier. Fixed once the rate is made.
    trunk_id: Option<TrunkId>,
    /// The beginning of the numbers that it is for; `+` alone is every E.164 number.
    #[schema(example = "+44", pattern = r"^(\+[0-9]{0,15}|[0-9]{1,15})$")]
    prefix: Option<String>,
    /// The price of 60 seconds, 0 to 10000.
    #[schema(example = "0.0120")]
    per_minute: Option<Amount>,
    /// What it is paid in.
    #[schema(example = "EUR", pattern = "^[A-Z]{3}$")]
    currency: Option<String>,
    /// Seconds: the first increment, and each next one; `[1, 1]` unless given.
    #[schema(example = json!([60, 1]), min_items = 2, max_items = 2)]
    increments: Option<Vec<u32>>,
    /// Holds from this instant on; since ever unless given.
    from_time: Option<Timestamp>,
    /// Holds until this instant; null is for ever.
    #[schema(value_type = Option<String>, format = DateTime, extensions(("x-nullable" = json!(true))))]
    to_time: Option<Timestamp>,
}

/// Of one trunk.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(dead_code, reason = "described, never made: `query` names every wrong parameter")]
pub(crate) struct CostRateOwnerParam {
    /// Of one trunk.
    trunk_id: Option<TrunkId>,
}

/// List cost rates
///
/// By trunk_id, prefix and the instant they begin. For operators.
#[utoipa::path(
    get,
    path = "/cost-rates",
    operation_id = "listCostRates",
    tag = "Rates",
    params(RateWindowParams, PrefixParam, CostRateOwnerParam),
    responses((status = 200, description = "The page.", body = Page<CostRateView>)),
    extensions(("x-permission" = json!("margin:read"))),
)]
pub(crate) async fn list(
    caller: Caller,
    State(state): State<ApiState>,
    OriginalUri(uri): OriginalUri,
) -> Result<Json<Page<CostRateView>>, ApiError> {
    require_operator(&caller, Permission::MarginRead)?;
    let (filter, window) = query(&uri, &["prefix", "trunk_id"])?;
    let page = state.rates()?.cost.list(caller.scope(), filter, window).await?;
    Ok(shown(page, CostRateView::from))
}

/// Create a cost rate
///
/// For operators.
#[utoipa::path(
    post,
    path = "/cost-rates",
    operation_id = "createCostRate",
    tag = "Rates",
    request_body = CostRateBody,
    responses(
        (status = 201, description = "The rate; `Location` names it.", body = CostRateView),
        (status = 409, description = "There is one with the same prefix and beginning.", body = ErrorBody),
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
    state.rates()?.cost.create(rate.clone(), (state.clock)()).await?;
    Ok(created("cost-rates", rate.id, CostRateView::from(rate)))
}

/// Read a cost rate
#[utoipa::path(
    get,
    path = "/cost-rates/{id}",
    operation_id = "getCostRate",
    tag = "Rates",
    params(("id" = CostRateId, Path, description = "The rate's `id`.")),
    responses((status = 200, description = "The rate.", body = CostRateView)),
    extensions(("x-permission" = json!("margin:read"))),
)]
pub(crate) async fn find(
    caller: Caller,
    State(state): State<ApiState>,
    Path(id): Path<String>,
) -> Result<Json<CostRateView>, ApiError> {
    require_operator(&caller, Permission::MarginRead)?;
    let rate: CostRate = visible(state.rates()?.cost.as_ref(), &id, |_| true).await?;
    Ok(Json(rate.into()))
}

/// Change a cost rate
///
/// A JSON merge patch: what is left out stays as it is. Calls that began keep their prices, and settled ones their
/// amounts. For operators.
#[utoipa::path(
    patch,
    path = "/cost-rates/{id}",
    operation_id = "changeCostRate",
    tag = "Rates",
    params(("id" = CostRateId, Path, description = "The rate's `id`.")),
    request_body = CostRateBody,
    responses(
        (status = 200, description = "The whole rate.", body = CostRateView),
        (status = 409, description = "There is one with the same prefix and beginning.", body = ErrorBody),
    ),
    extensions(("x-permission" = json!("rates:write"))),
)]
pub(crate) async fn change(
    caller: Caller,
    State(state): State<ApiState>,
    Path(id): Path<String>,
    body: Body,
) -> Result<Json<CostRateView>, ApiError> {
    require_operator(&caller, Permission::RatesWrite)?;
    let book = state.rates()?.cost.as_ref();
    let before: CostRate = visible(book, &id, |_| true).await?;
    let rate = body.read(|fields| changed(fields, before))?;
    book.replace(rate.clone(), (state.clock)()).await?;
    Ok(Json(rate.into()))
}

/// Remove a cost rate
///
/// Calls that began keep their prices. For operators.
#[utoipa::path(
    delete,
    path = "/cost-rates/{id}",
    operation_id = "deleteCostRate",
    tag = "Rates",
    params(("id" = CostRateId, Path, description = "The rate's `id`.")),
    responses((status = 204, description = "It is gone.")),
    extensions(("x-permission" = json!("rates:write"))),
)]
pub(crate) async fn delete(
    caller: Caller,
    State(state): State<ApiState>,
    Path(id): Path<String>,
) -> Result<StatusCode, ApiError> {
    require_operator(&caller, Permission::RatesWrite)?;
    remove(state.rates()?.cost.as_ref(), &id).await
}

fn new_rate(fields: &mut Fields) -> Option<CostRate> {
    let trunk_id = fields.required("trunk_id", Fields::uuid::<TrunkId>);
    let change = PriceChange::read(fields);
    fields.read_only(READ_ONLY);
    let (prefix, price, validity) = change.whole(fields)?;
    Some(CostRate { id: Uuid::new_v4().into(), trunk_id: trunk_id?, prefix, price, validity })
}

fn changed(fields: &mut Fields, before: CostRate) -> Option<CostRate> {
    let owner: Option<TrunkId> = fields.uuid("trunk_id");
    if owner.is_some_and(|owner| owner != before.trunk_id) {
        fields.refuse::<()>("trunk_id", "cannot be changed, make another rate");
    }
    let change = PriceChange::read(fields);
    fields.read_only(READ_ONLY);
    let (price, validity) = change.applied(fields, (before.price, before.validity))?;
    Some(CostRate { prefix: change.prefix.unwrap_or(before.prefix), price, validity, ..before })
}
