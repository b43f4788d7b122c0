//! The costs and sell prices of AI models: set by the operator, read by the organisations that pay them.

use axum::Json;
use axum::extract::{OriginalUri, Path, State};
use axum::http::header::LOCATION;
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use sidetone_model::access::{Permission, Scope};
use sidetone_model::ai_price::{AiPrice, AiPriceKind};
use sidetone_model::ids::AiPriceId;
use sidetone_model::page::Page;

use crate::auth::Caller;
use crate::body::Body;
use crate::error::{ApiError, ErrorBody};
use crate::page::path_id;
use crate::routes::ai_price_body::{
    AiPriceBody, AiPriceParams, AiPricePatchBody, AiPriceView, changed, query,
};
use crate::state::ApiState;

/// List prices of AI models
///
/// The sell prices of the caller's organisation and those for all organisations, sorted by provider, model and start;
/// costs only with `margin:read`.
#[utoipa::path(
    get,
    path = "/ai-prices",
    operation_id = "listAiPrices",
    tag = "AI prices",
    params(AiPriceParams),
    responses((status = 200, description = "The page.", body = Page<AiPriceView>)),
    extensions(("x-permission" = json!("billing:read"))),
)]
pub(crate) async fn list(
    caller: Caller,
    State(state): State<ApiState>,
    OriginalUri(uri): OriginalUri,
) -> Result<Response, ApiError> {
    caller.require(Permission::BillingRead)?;
    let (mut filter, window) = query(&uri, &caller)?;
    caller.narrow(filter.organisation_id)?;
    match filter.kind {
        Some(kind) => require_sight(&caller, kind)?,
        None if !caller.may(Permission::MarginRead) => filter.kind = Some(AiPriceKind::Sell),
        None => {}
    }
    let page = state.ai_prices()?.list(caller.scope(), filter, window).await?;
    Ok(Json(page.map(|price| AiPriceView::from(&price))).into_response())
}

/// Read a price of an AI model
#[utoipa::path(
    get,
    path = "/ai-prices/{id}",
    operation_id = "getAiPrice",
    tag = "AI prices",
    params(("id" = AiPriceId, Path, description = "The price.")),
    responses((status = 200, description = "The price.", body = AiPriceView)),
    extensions(("x-permission" = json!("billing:read"))),
)]
pub(crate) async fn find(
    caller: Caller,
    State(state): State<ApiState>,
    Path(id): Path<String>,
) -> Result<Response, ApiError> {
    caller.require(Permission::BillingRead)?;
    let price = stored(&state, path_id("id", &id)?).await?;
    if price.organisation_id.is_some_and(|own| !caller.scope().covers(own, None)) {
        return Err(ApiError::forbidden("the price is another organisation's"));
    }
    require_sight(&caller, price.kind)?;
    Ok(Json(AiPriceView::from(&price)).into_response())
}

/// Set a new price of an AI model
///
/// For operators. A conversation is priced when it completes, at the prices in force when it began. A customer's own
/// price takes precedence over one for all customers, an exact model over a prefix, a longer prefix over a shorter
/// one, and a newer price over an older one.
#[utoipa::path(
    post,
    path = "/ai-prices",
    operation_id = "createAiPrice",
    tag = "AI prices",
    request_body = AiPriceBody,
    responses(
        (status = 201, description = "The price.", body = AiPriceView),
        (status = 409, description = "A price for the same kind, organisation, model and start exists already (`conflict`).", body = ErrorBody),
    ),
    extensions(("x-permission" = json!("rates:write"))),
)]
pub(crate) async fn create(
    caller: Caller,
    State(state): State<ApiState>,
    body: Body,
) -> Result<Response, ApiError> {
    require_operator(&caller)?;
    let price: AiPrice = body.read_new(&caller, &state, AiPriceBody::read).await?.into();
    state.ai_prices()?.put(price.clone(), (state.clock)()).await?;
    let location = HeaderValue::from_str(&format!("/api/v1/ai-prices/{}", price.id));
    let location = location.map_err(|_| ApiError::internal())?;
    Ok((StatusCode::CREATED, [(LOCATION, location)], Json(AiPriceView::from(&price))).into_response())
}

/// Change a price of an AI model
///
/// For operators. Completed conversations keep their amounts.
#[utoipa::path(
    patch,
    path = "/ai-prices/{id}",
    operation_id = "changeAiPrice",
    tag = "AI prices",
    params(("id" = AiPriceId, Path, description = "The price.")),
    request_body = AiPricePatchBody,
    responses(
        (status = 200, description = "The price.", body = AiPriceView),
        (status = 409, description = "A price for the same kind, organisation, model and start exists already (`conflict`).", body = ErrorBody),
    ),
    extensions(("x-permission" = json!("rates:write"))),
)]
pub(crate) async fn change(
    caller: Caller,
    State(state): State<ApiState>,
    Path(id): Path<String>,
    body: Body,
) -> Result<Response, ApiError> {
    require_operator(&caller)?;
    let old = stored(&state, path_id("id", &id)?).await?;
    let (owner, id) = (old.organisation_id, old.id.0);
    let price = body.read_change(&caller, &state, owner, id, |fields| changed(fields, old)).await?;
    state.ai_prices()?.put(price.clone(), (state.clock)()).await?;
    Ok(Json(AiPriceView::from(&price)).into_response())
}

/// Remove a price of an AI model
///
/// For operators. Completed conversations keep their amounts.
#[utoipa::path(
    delete,
    path = "/ai-prices/{id}",
    operation_id = "deleteAiPrice",
    tag = "AI prices",
    params(("id" = AiPriceId, Path, description = "The price.")),
    responses((status = 204, description = "Removed.")),
    extensions(("x-permission" = json!("rates:write"))),
)]
pub(crate) async fn remove(
    caller: Caller,
    State(state): State<ApiState>,
    Path(id): Path<String>,
) -> Result<StatusCode, ApiError> {
    require_operator(&caller)?;
    if state.ai_prices()?.remove(path_id("id", &id)?).await? {
        Ok(StatusCode::NO_CONTENT)
    } else {
        Err(ApiError::not_found(NONE))
    }
}

async fn stored(state: &ApiState, id: AiPriceId) -> Result<AiPrice, ApiError> {
    state.ai_prices()?.find(id).await?.ok_or_else(|| ApiError::not_found(NONE))
}

/// Only the operator sets prices: no organisation may set its own.
fn require_operator(caller: &Caller) -> Result<(), ApiError> {
    caller.require(Permission::RatesWrite)?;
    if caller.scope() == Scope::Everything {
        return Ok(());
    }
    Err(ApiError::forbidden("AI prices are set by the operator"))
}

fn require_sight(caller: &Caller, kind: AiPriceKind) -> Result<(), ApiError> {
    match kind {
        AiPriceKind::Cost => caller.require(Permission::MarginRead),
        AiPriceKind::Sell => Ok(()),
    }
}

const NONE: &str = "there is no such price";
