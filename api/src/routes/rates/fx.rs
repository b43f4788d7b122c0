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
use sidetone_model::rate_book::RateBook;
use sidetone_model::rating::{FxRate, RateFilter};
use sidetone_model::rules;
use sidetone_model::time::Timestamp;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::auth::Caller;
use crate::body::declare::{optional, parsed};
use crate::body::{Body, Fields, body};
use crate::error::{ApiError, ErrorBody};
use crate::params::{With, query};
use crate::ports::RatePorts;
use crate::routes::rates::fields::{READ_ONLY, RateWindowParams};
use crate::routes::rates::resource::{self, RateQuery, RateResource, require_operator};
use crate::state::ApiState;

/// The conversion rate of one currency into another, from an instant on.
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
    /// Valid from this instant until the next rate of the pair starts.
    from_time: Timestamp,
}

impl From<FxRate> for FxRateView {
    fn from(rate: FxRate) -> Self {
        let FxRate { id, from, to, rate, from_time } = rate;
        Self { id, from, to, rate: rate.to_text(0), from_time }
    }
}

body! {
    /// A conversion rate. To create one, send all required fields; to change one, only the changed fields.
    pub(crate) struct FxRateBody {
        /// The currency converted.
        #[schema(value_type = Option<String>, example = "USD", pattern = "^[A-Z]{3}$")]
        from: Option<Currency> = optional(parsed(rules::currency)),
        /// The currency converted into.
        #[schema(value_type = Option<String>, example = "EUR", pattern = "^[A-Z]{3}$")]
        to: Option<Currency> = optional(parsed(rules::currency)),
        /// One unit of `from` in `to`; above 0, at most 10000000.
        #[schema(example = "0.9200")]
        rate: Option<Amount> = optional(parsed(rules::fx_rate)),
        /// Valid from this instant until the next rate of the pair starts; by default without a start.
        from_time: Option<Timestamp> = optional(Fields::timestamp),
    }
    ignores READ_ONLY;
}

query! {
    /// The pair of a list of conversion rates.
    pub(crate) struct FxPairParams {
        /// From one currency.
        #[param(value_type = Option<String>, example = "USD", pattern = "^[A-Z]{3}$")]
        from: Currency = rules::currency,
        /// Into one currency.
        #[param(value_type = Option<String>, example = "EUR", pattern = "^[A-Z]{3}$")]
        to: Currency = rules::currency,
    }
}

impl RateQuery for FxPairParams {
    fn put(self, filter: &mut RateFilter) {
        filter.from = self.from;
        filter.to = self.to;
    }
}

type ListQuery = With<RateWindowParams, FxPairParams>;

impl RateResource for FxRate {
    const COLLECTION: &'static str = "fx-rates";
    type Query = ListQuery;
    type View = FxRateView;

    fn book(ports: &RatePorts) -> &dyn RateBook<Self> {
        ports.fx.as_ref()
    }

    fn id(&self) -> FxRateId {
        self.id
    }

    fn require_reader(caller: &Caller) -> Result<(), ApiError> {
        require_operator(caller, Permission::MarginRead)
    }

    fn is_visible(&self, _: &Caller) -> bool {
        true
    }

    fn read_new(fields: &mut Fields) -> Option<Self> {
        let body = FxRateBody::read(fields)?;
        let from = fields.require_given("from", body.from);
        let to = fields.require_given("to", body.to);
        let rate = fields.require_given("rate", body.rate);
        let from_time = body.from_time.unwrap_or_default();
        checked(fields, FxRate { id: Uuid::new_v4().into(), from: from?, to: to?, rate: rate?, from_time })
    }

    fn read_change(self, fields: &mut Fields) -> Option<Self> {
        let body = FxRateBody::read(fields)?;
        let after = FxRate {
            id: self.id,
            from: body.from.unwrap_or(self.from),
            to: body.to.unwrap_or(self.to),
            rate: body.rate.unwrap_or(self.rate),
            from_time: body.from_time.unwrap_or(self.from_time),
        };
        checked(fields, after)
    }
}

/// List conversion rates
///
/// Sorted by pair and start. For operators.
#[utoipa::path(
    get,
    path = "/fx-rates",
    operation_id = "listFxRates",
    tag = "Rates",
    params(ListQuery),
    responses((status = 200, description = "The page.", body = Page<FxRateView>)),
    extensions(("x-permission" = json!("margin:read"))),
)]
pub(crate) async fn list(
    caller: Caller,
    State(state): State<ApiState>,
    OriginalUri(uri): OriginalUri,
) -> Result<Json<Page<FxRateView>>, ApiError> {
    resource::list::<FxRate>(&caller, &state, &uri).await
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
        (status = 409, description = "A rate with the same pair and start exists.", body = ErrorBody),
    ),
    extensions(("x-permission" = json!("rates:write"))),
)]
pub(crate) async fn create(
    caller: Caller,
    State(state): State<ApiState>,
    body: Body,
) -> Result<Response, ApiError> {
    resource::create::<FxRate>(&caller, &state, body).await
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
    resource::find::<FxRate>(&caller, &state, &id).await
}

/// Change a conversion rate
///
/// A JSON merge patch: omitted fields keep their values. Settled calls keep their conversion rate. For operators.
#[utoipa::path(
    patch,
    path = "/fx-rates/{id}",
    operation_id = "changeFxRate",
    tag = "Rates",
    params(("id" = FxRateId, Path, description = "The rate's `id`.")),
    request_body = FxRateBody,
    responses(
        (status = 200, description = "The whole rate.", body = FxRateView),
        (status = 409, description = "A rate with the same pair and start exists.", body = ErrorBody),
    ),
    extensions(("x-permission" = json!("rates:write"))),
)]
pub(crate) async fn change(
    caller: Caller,
    State(state): State<ApiState>,
    Path(id): Path<String>,
    body: Body,
) -> Result<Json<FxRateView>, ApiError> {
    resource::change::<FxRate>(&caller, &state, &id, body).await
}

/// Remove a conversion rate
///
/// Settled calls keep their conversion rate. For operators.
#[utoipa::path(
    delete,
    path = "/fx-rates/{id}",
    operation_id = "deleteFxRate",
    tag = "Rates",
    params(("id" = FxRateId, Path, description = "The rate's `id`.")),
    responses((status = 204, description = "Removed.")),
    extensions(("x-permission" = json!("rates:write"))),
)]
pub(crate) async fn delete(
    caller: Caller,
    State(state): State<ApiState>,
    Path(id): Path<String>,
) -> Result<StatusCode, ApiError> {
    resource::delete::<FxRate>(&caller, &state, &id).await
}

fn checked(fields: &mut Fields, rate: FxRate) -> Option<FxRate> {
    if rate.from == rate.to {
        return fields.refuse("to", "must be another currency than from");
    }
    Some(rate)
}
