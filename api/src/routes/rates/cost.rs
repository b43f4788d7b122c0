//! Cost rates: the prices of carriers.

use axum::Json;
use axum::extract::{OriginalUri, Path, State};
use axum::http::StatusCode;
use axum::response::Response;
use serde::Serialize;
use sidetone_model::access::Permission;
use sidetone_model::field_check::StoredRule;
use sidetone_model::ids::{CostRateId, TrunkId};
use sidetone_model::page::Page;
use sidetone_model::rate_book::RateBook;
use sidetone_model::rating::{CostRate, RateFilter};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::auth::Caller;
use crate::body::declare::{beside, id_of, optional};
use crate::body::{Body, Fields, body};
use crate::error::{ApiError, ErrorBody};
use crate::page;
use crate::params::{With, query};
use crate::ports::RatePorts;
use crate::routes::rates::fields::{PrefixParam, PriceBody, PriceView, READ_ONLY, RateWindowParams};
use crate::routes::rates::resource::{self, RateQuery, RateResource, require_operator};
use crate::state::ApiState;

/// The price that a carrier charges for calls to one prefix.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = CostRate)]
pub(crate) struct CostRateView {
    id: CostRateId,
    /// The carrier.
    trunk_id: TrunkId,
    #[serde(flatten)]
    price: PriceView,
}

impl From<CostRate> for CostRateView {
    fn from(rate: CostRate) -> Self {
        let price = PriceView::of(&rate.prefix, &rate.price, &rate.validity);
        Self { id: rate.id, trunk_id: rate.trunk_id, price }
    }
}

body! {
    /// A cost rate. To create one, send all required fields; to change one, only the changed fields.
    pub(crate) struct CostRateBody {
        /// The carrier. It cannot be changed later.
        #[schema(value_type = Option<String>, format = Uuid, example = "0198c3f0-5b7e-7cc2-9f30-2d1f6d0b7a11")]
        trunk_id: Option<TrunkId> = optional(id_of(StoredRule::Trunk)),
        #[serde(flatten)]
        price: PriceBody = beside(PriceBody::read),
    }
    ignores READ_ONLY;
}

query! {
    /// One trunk.
    pub(crate) struct CostRateOwnerParam {
        /// One trunk.
        trunk_id: TrunkId = page::id,
    }
}

impl RateQuery for CostRateOwnerParam {
    fn put(self, filter: &mut RateFilter) {
        filter.trunk_id = self.trunk_id;
    }
}

type ListQuery = With<RateWindowParams, With<PrefixParam, CostRateOwnerParam>>;

impl RateResource for CostRate {
    const COLLECTION: &'static str = "cost-rates";
    type Query = ListQuery;
    type View = CostRateView;

    fn book(ports: &RatePorts) -> &dyn RateBook<Self> {
        ports.cost.as_ref()
    }

    fn id(&self) -> CostRateId {
        self.id
    }

    fn require_reader(caller: &Caller) -> Result<(), ApiError> {
        require_operator(caller, Permission::MarginRead)
    }

    fn is_visible(&self, _: &Caller) -> bool {
        true
    }

    fn read_new(fields: &mut Fields) -> Option<Self> {
        let body = CostRateBody::read(fields)?;
        let trunk_id = fields.require_given("trunk_id", body.trunk_id);
        let (prefix, price, validity) = body.price.whole(fields)?;
        Some(CostRate { id: Uuid::new_v4().into(), trunk_id: trunk_id?, prefix, price, validity })
    }

    fn read_change(self, fields: &mut Fields) -> Option<Self> {
        let body = CostRateBody::read(fields)?;
        if body.trunk_id.is_some_and(|owner| owner != self.trunk_id) {
            fields.refuse::<()>("trunk_id", "cannot be changed, make another rate");
        }
        let (price, validity) = body.price.applied(fields, (self.price, self.validity))?;
        Some(CostRate { prefix: body.price.prefix.unwrap_or(self.prefix), price, validity, ..self })
    }
}

/// List cost rates
///
/// Sorted by trunk_id, prefix and start. For operators.
#[utoipa::path(
    get,
    path = "/cost-rates",
    operation_id = "listCostRates",
    tag = "Rates",
    params(ListQuery),
    responses((status = 200, description = "The page.", body = Page<CostRateView>)),
    extensions(("x-permission" = json!("margin:read"))),
)]
pub(crate) async fn list(
    caller: Caller,
    State(state): State<ApiState>,
    OriginalUri(uri): OriginalUri,
) -> Result<Json<Page<CostRateView>>, ApiError> {
    resource::list::<CostRate>(&caller, &state, &uri).await
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
        (status = 409, description = "A rate with the same prefix and start exists.", body = ErrorBody),
    ),
    extensions(("x-permission" = json!("rates:write"))),
)]
pub(crate) async fn create(
    caller: Caller,
    State(state): State<ApiState>,
    body: Body,
) -> Result<Response, ApiError> {
    resource::create::<CostRate>(&caller, &state, body).await
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
    resource::find::<CostRate>(&caller, &state, &id).await
}

/// Change a cost rate
///
/// A JSON merge patch: omitted fields keep their values. Calls in progress keep their prices, settled calls their
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
        (status = 409, description = "A rate with the same prefix and start exists.", body = ErrorBody),
    ),
    extensions(("x-permission" = json!("rates:write"))),
)]
pub(crate) async fn change(
    caller: Caller,
    State(state): State<ApiState>,
    Path(id): Path<String>,
    body: Body,
) -> Result<Json<CostRateView>, ApiError> {
    resource::change::<CostRate>(&caller, &state, &id, body).await
}

/// Remove a cost rate
///
/// Calls in progress keep their prices. For operators.
#[utoipa::path(
    delete,
    path = "/cost-rates/{id}",
    operation_id = "deleteCostRate",
    tag = "Rates",
    params(("id" = CostRateId, Path, description = "The rate's `id`.")),
    responses((status = 204, description = "Removed.")),
    extensions(("x-permission" = json!("rates:write"))),
)]
pub(crate) async fn delete(
    caller: Caller,
    State(state): State<ApiState>,
    Path(id): Path<String>,
) -> Result<StatusCode, ApiError> {
    resource::delete::<CostRate>(&caller, &state, &id).await
}
