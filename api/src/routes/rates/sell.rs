//! Sell rates: the prices that organisations pay.

use axum::Json;
use axum::extract::{OriginalUri, Path, State};
use axum::http::StatusCode;
use axum::response::Response;
use serde::Serialize;
use sidetone_model::access::Permission;
use sidetone_model::ids::{OrganisationId, SellRateId};
use sidetone_model::money::{Amount, Currency};
use sidetone_model::page::Page;
use sidetone_model::rating::SellRate;
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

/// What an organisation pays for calls to one prefix.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = SellRate)]
pub(crate) struct SellRateView {
    id: SellRateId,
    /// Who pays it.
    organisation_id: OrganisationId,
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

impl From<SellRate> for SellRateView {
    fn from(rate: SellRate) -> Self {
        Self {
            id: rate.id,
            organisation_id: rate.organisation_id,
            prefix: rate.prefix.to_string(),
            per_minute: rate.price.per_minute.to_text(rate.price.currency.places()),
            currency: rate.price.currency,
            increments: rate.price.increments.into(),
            from_time: rate.validity.from,
            to_time: rate.validity.to,
        }
    }
}

/// A sell rate: all of it to make one, what changes of it to change one.
#[derive(ToSchema)]
#[expect(dead_code, reason = "says in the document what `create` and `change` read")]
pub(crate) struct SellRateBody {
    /// Who pays it. Fixed once the rate is made.
    organisation_id: Option<OrganisationId>,
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

/// Of one organisation; outside the caller's scope answers 403.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(dead_code, reason = "described, never made: `query` names every wrong parameter")]
pub(crate) struct SellRateOwnerParam {
    /// Of one organisation; outside the caller's scope answers 403.
    organisation_id: Option<OrganisationId>,
}

/// List sell rates
///
/// By organisation_id, prefix and the instant they begin. A caller sees what their own organisation pays.
#[utoipa::path(
    get,
    path = "/sell-rates",
    operation_id = "listSellRates",
    tag = "Rates",
    params(RateWindowParams, PrefixParam, SellRateOwnerParam),
    responses((status = 200, description = "The page.", body = Page<SellRateView>)),
    extensions(("x-permission" = json!("billing:read"))),
)]
pub(crate) async fn list(
    caller: Caller,
    State(state): State<ApiState>,
    OriginalUri(uri): OriginalUri,
) -> Result<Json<Page<SellRateView>>, ApiError> {
    caller.require(Permission::BillingRead)?;
    let (filter, window) = query(&uri, &["prefix", "organisation_id"])?;
    caller.narrow(filter.organisation_id)?;
    let page = state.rates()?.sell.list(caller.scope(), filter, window).await?;
    Ok(shown(page, SellRateView::from))
}

/// Create a sell rate
///
/// For operators.
#[utoipa::path(
    post,
    path = "/sell-rates",
    operation_id = "createSellRate",
    tag = "Rates",
    request_body = SellRateBody,
    responses(
        (status = 201, description = "The rate; `Location` names it.", body = SellRateView),
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
    state.rates()?.sell.create(rate.clone(), (state.clock)()).await?;
    Ok(created("sell-rates", rate.id, SellRateView::from(rate)))
}

/// Read a sell rate
#[utoipa::path(
    get,
    path = "/sell-rates/{id}",
    operation_id = "getSellRate",
    tag = "Rates",
    params(("id" = SellRateId, Path, description = "The rate's `id`.")),
    responses((status = 200, description = "The rate.", body = SellRateView)),
    extensions(("x-permission" = json!("billing:read"))),
)]
pub(crate) async fn find(
    caller: Caller,
    State(state): State<ApiState>,
    Path(id): Path<String>,
) -> Result<Json<SellRateView>, ApiError> {
    caller.require(Permission::BillingRead)?;
    let rate: SellRate =
        visible(state.rates()?.sell.as_ref(), &id, |rate| caller.scope().reaches(rate.organisation_id))
            .await?;
    Ok(Json(rate.into()))
}

/// Change a sell rate
///
/// A JSON merge patch: what is left out stays as it is. Calls that began keep their prices, and settled ones their
/// amounts. For operators.
#[utoipa::path(
    patch,
    path = "/sell-rates/{id}",
    operation_id = "changeSellRate",
    tag = "Rates",
    params(("id" = SellRateId, Path, description = "The rate's `id`.")),
    request_body = SellRateBody,
    responses(
        (status = 200, description = "The whole rate.", body = SellRateView),
        (status = 409, description = "There is one with the same prefix and beginning.", body = ErrorBody),
    ),
    extensions(("x-permission" = json!("rates:write"))),
)]
pub(crate) async fn change(
    caller: Caller,
    State(state): State<ApiState>,
    Path(id): Path<String>,
    body: Body,
) -> Result<Json<SellRateView>, ApiError> {
    require_operator(&caller, Permission::RatesWrite)?;
    let book = state.rates()?.sell.as_ref();
    let before: SellRate = visible(book, &id, |_| true).await?;
    let rate = body.read(|fields| changed(fields, before))?;
    book.replace(rate.clone(), (state.clock)()).await?;
    Ok(Json(rate.into()))
}

/// Remove a sell rate
///
/// Calls that began keep their prices. For operators.
#[utoipa::path(
    delete,
    path = "/sell-rates/{id}",
    operation_id = "deleteSellRate",
    tag = "Rates",
    params(("id" = SellRateId, Path, description = "The rate's `id`.")),
    responses((status = 204, description = "It is gone.")),
    extensions(("x-permission" = json!("rates:write"))),
)]
pub(crate) async fn delete(
    caller: Caller,
    State(state): State<ApiState>,
    Path(id): Path<String>,
) -> Result<StatusCode, ApiError> {
    require_operator(&caller, Permission::RatesWrite)?;
    remove(state.rates()?.sell.as_ref(), &id).await
}

fn new_rate(fields: &mut Fields) -> Option<SellRate> {
    let organisation_id = fields.required("organisation_id", Fields::uuid::<OrganisationId>);
    let change = PriceChange::read(fields);
    fields.read_only(READ_ONLY);
    let (prefix, price, validity) = change.whole(fields)?;
    Some(SellRate { id: Uuid::new_v4().into(), organisation_id: organisation_id?, prefix, price, validity })
}

fn changed(fields: &mut Fields, before: SellRate) -> Option<SellRate> {
    let owner: Option<OrganisationId> = fields.uuid("organisation_id");
    if owner.is_some_and(|owner| owner != before.organisation_id) {
        fields.refuse::<()>("organisation_id", "cannot be changed, make another rate");
    }
    let change = PriceChange::read(fields);
    fields.read_only(READ_ONLY);
    let (price, validity) = change.applied(fields, (before.price, before.validity))?;
    Some(SellRate { prefix: change.prefix.unwrap_or(before.prefix), price, validity, ..before })
}
