//! Sell rates: the prices that organisations pay.

use axum::Json;
use axum::extract::{OriginalUri, Path, State};
use axum::http::StatusCode;
use axum::response::Response;
use serde::Serialize;
use sidetone_model::access::Permission;
use sidetone_model::field_check::StoredRule;
use sidetone_model::ids::{OrganisationId, SellRateId};
use sidetone_model::page::Page;
use sidetone_model::rate_book::RateBook;
use sidetone_model::rating::{RateFilter, SellRate};
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
use crate::routes::rates::resource::{self, RateQuery, RateResource};
use crate::state::ApiState;

/// The price that an organisation pays for calls to one prefix.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = SellRate)]
pub(crate) struct SellRateView {
    id: SellRateId,
    /// The organisation that pays.
    organisation_id: OrganisationId,
    #[serde(flatten)]
    price: PriceView,
}

impl From<SellRate> for SellRateView {
    fn from(rate: SellRate) -> Self {
        let price = PriceView::of(&rate.prefix, &rate.price, &rate.validity);
        Self { id: rate.id, organisation_id: rate.organisation_id, price }
    }
}

body! {
    /// A sell rate. To create one, send all required fields; to change one, only the changed fields.
    pub(crate) struct SellRateBody {
        /// The organisation that pays. It cannot be changed later.
        organisation_id: Option<OrganisationId> = optional(id_of(StoredRule::Organisation)),
        #[serde(flatten)]
        price: PriceBody = beside(PriceBody::read),
    }
    ignores READ_ONLY;
}

query! {
    /// One organisation; 403 outside the caller's scope.
    pub(crate) struct SellRateOwnerParam {
        /// One organisation; 403 outside the caller's scope.
        organisation_id: OrganisationId = page::id,
    }
}

impl RateQuery for SellRateOwnerParam {
    fn put(self, filter: &mut RateFilter) {
        filter.organisation_id = self.organisation_id;
    }
}

type ListQuery = With<RateWindowParams, With<PrefixParam, SellRateOwnerParam>>;

impl RateResource for SellRate {
    const COLLECTION: &'static str = "sell-rates";
    type Query = ListQuery;
    type View = SellRateView;

    fn book(ports: &RatePorts) -> &dyn RateBook<Self> {
        ports.sell.as_ref()
    }

    fn id(&self) -> SellRateId {
        self.id
    }

    fn require_reader(caller: &Caller) -> Result<(), ApiError> {
        caller.require(Permission::BillingRead)
    }

    fn is_visible(&self, caller: &Caller) -> bool {
        caller.scope().reaches(self.organisation_id)
    }

    fn read_new(fields: &mut Fields) -> Option<Self> {
        let body = SellRateBody::read(fields)?;
        let organisation_id = fields.require_given("organisation_id", body.organisation_id);
        let (prefix, price, validity) = body.price.whole(fields)?;
        Some(SellRate {
            id: Uuid::new_v4().into(),
            organisation_id: organisation_id?,
            prefix,
            price,
            validity,
        })
    }

    fn read_change(self, fields: &mut Fields) -> Option<Self> {
        let body = SellRateBody::read(fields)?;
        if body.organisation_id.is_some_and(|owner| owner != self.organisation_id) {
            fields.refuse::<()>("organisation_id", "cannot be changed, make another rate");
        }
        let (price, validity) = body.price.applied(fields, (self.price, self.validity))?;
        Some(SellRate { prefix: body.price.prefix.unwrap_or(self.prefix), price, validity, ..self })
    }
}

/// List sell rates
///
/// Sorted by organisation_id, prefix and start. A caller sees the rates that its own organisation pays.
#[utoipa::path(
    get,
    path = "/sell-rates",
    operation_id = "listSellRates",
    tag = "Rates",
    params(ListQuery),
    responses((status = 200, description = "The page.", body = Page<SellRateView>)),
    extensions(("x-permission" = json!("billing:read"))),
)]
pub(crate) async fn list(
    caller: Caller,
    State(state): State<ApiState>,
    OriginalUri(uri): OriginalUri,
) -> Result<Json<Page<SellRateView>>, ApiError> {
    resource::list::<SellRate>(&caller, &state, &uri).await
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
        (status = 409, description = "A rate with the same prefix and start exists.", body = ErrorBody),
    ),
    extensions(("x-permission" = json!("rates:write"))),
)]
pub(crate) async fn create(
    caller: Caller,
    State(state): State<ApiState>,
    body: Body,
) -> Result<Response, ApiError> {
    resource::create::<SellRate>(&caller, &state, body).await
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
    resource::find::<SellRate>(&caller, &state, &id).await
}

/// Change a sell rate
///
/// A JSON merge patch: omitted fields keep their values. Calls in progress keep their prices, settled calls their
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
        (status = 409, description = "A rate with the same prefix and start exists.", body = ErrorBody),
    ),
    extensions(("x-permission" = json!("rates:write"))),
)]
pub(crate) async fn change(
    caller: Caller,
    State(state): State<ApiState>,
    Path(id): Path<String>,
    body: Body,
) -> Result<Json<SellRateView>, ApiError> {
    resource::change::<SellRate>(&caller, &state, &id, body).await
}

/// Remove a sell rate
///
/// Calls in progress keep their prices. For operators.
#[utoipa::path(
    delete,
    path = "/sell-rates/{id}",
    operation_id = "deleteSellRate",
    tag = "Rates",
    params(("id" = SellRateId, Path, description = "The rate's `id`.")),
    responses((status = 204, description = "Removed.")),
    extensions(("x-permission" = json!("rates:write"))),
)]
pub(crate) async fn delete(
    caller: Caller,
    State(state): State<ApiState>,
    Path(id): Path<String>,
) -> Result<StatusCode, ApiError> {
    resource::delete::<SellRate>(&caller, &state, &id).await
}
