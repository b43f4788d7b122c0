//! The operations of every kind of rates. The kinds differ in their fields and in the callers who may read
//! them.

use axum::Json;
use axum::http::{StatusCode, Uri};
use axum::response::Response;
use serde::Serialize;
use sidetone_model::access::{Permission, Scope};
use sidetone_model::page::Page;
use sidetone_model::rate_book::RateBook;
use sidetone_model::rating::{Rate, RateFilter};
use uuid::Uuid;

use crate::auth::Caller;
use crate::body::{Body, Fields};
use crate::error::ApiError;
use crate::listing::WindowParts;
use crate::managed::{created, seen};
use crate::page;
use crate::params::{self, Parameters, With};
use crate::ports::RatePorts;
use crate::state::ApiState;

/// A kind of rates.
pub(super) trait RateResource: Rate<Id: From<Uuid> + std::fmt::Display> {
    /// The last segment of the path.
    const COLLECTION: &'static str;
    /// The parameters of the list.
    type Query: RateQuery;
    /// The JSON of a rate.
    type View: From<Self> + Serialize;

    /// The stored rates.
    fn book(ports: &RatePorts) -> &dyn RateBook<Self>;

    fn id(&self) -> Self::Id;

    /// Refuses callers who may not read rates of this kind.
    fn require_reader(caller: &Caller) -> Result<(), ApiError>;

    /// Whether a caller who may read rates of this kind may see this one.
    fn is_visible(&self, caller: &Caller) -> bool;

    /// Reads a new rate.
    fn read_new(fields: &mut Fields) -> Option<Self>;

    /// Reads the changes of `self` and applies them.
    fn read_change(self, fields: &mut Fields) -> Option<Self>;
}

/// Parameters of a list of rates.
pub(super) trait RateQuery: Parameters {
    /// Puts the parameters that were given into the filter and the window.
    fn put(self, filter: &mut RateFilter);

    /// Takes out `limit`, `offset` and `cursor`.
    fn window(&mut self) -> WindowParts {
        WindowParts::default()
    }
}

impl<A: RateQuery, B: RateQuery> RateQuery for With<A, B> {
    fn put(self, filter: &mut RateFilter) {
        self.0.put(filter);
        self.1.put(filter);
    }

    fn window(&mut self) -> WindowParts {
        // The first part has these parameters.
        self.0.window()
    }
}

pub(super) async fn list<R: RateResource>(
    caller: &Caller,
    state: &ApiState,
    uri: &Uri,
) -> Result<Json<Page<R::View>>, ApiError> {
    R::require_reader(caller)?;
    let mut filter = RateFilter::default();
    let mut given = params::read::<R::Query>(uri)?;
    let window = params::window(uri, caller, given.window())?;
    given.put(&mut filter);
    caller.narrow(filter.organisation_id)?;
    let page = R::book(state.rates()?).list(caller.scope(), filter, window).await?;
    Ok(Json(page.map(R::View::from)))
}

pub(super) async fn create<R: RateResource>(
    caller: &Caller,
    state: &ApiState,
    body: Body,
) -> Result<Response, ApiError> {
    require_operator(caller, Permission::RatesWrite)?;
    let rate = body.read_new(caller, state, R::read_new).await?;
    R::book(state.rates()?).create(rate.clone(), (state.clock)()).await?;
    Ok(created(R::COLLECTION, rate.id(), R::View::from(rate)))
}

pub(super) async fn find<R: RateResource>(
    caller: &Caller,
    state: &ApiState,
    id: &str,
) -> Result<Json<R::View>, ApiError> {
    R::require_reader(caller)?;
    let found = R::book(state.rates()?).find(page::path_id("id", id)?).await?;
    Ok(Json(seen(found, "rate", |rate| rate.is_visible(caller))?.into()))
}

pub(super) async fn change<R: RateResource>(
    caller: &Caller,
    state: &ApiState,
    id: &str,
    body: Body,
) -> Result<Json<R::View>, ApiError> {
    require_operator(caller, Permission::RatesWrite)?;
    let book = R::book(state.rates()?);
    let before: R = seen(book.find(page::path_id("id", id)?).await?, "rate", |_| true)?;
    let rate = body.read(|fields| before.read_change(fields))?;
    book.replace(rate.clone(), (state.clock)()).await?;
    Ok(Json(rate.into()))
}

pub(super) async fn delete<R: RateResource>(
    caller: &Caller,
    state: &ApiState,
    id: &str,
) -> Result<StatusCode, ApiError> {
    require_operator(caller, Permission::RatesWrite)?;
    if R::book(state.rates()?).delete(page::path_id("id", id)?).await? {
        return Ok(StatusCode::NO_CONTENT);
    }
    Err(ApiError::not_found("there is no such rate"))
}

/// Refuses a caller who may not set prices: an organisation that set its own could call for free.
pub(super) fn require_operator(caller: &Caller, permission: Permission) -> Result<(), ApiError> {
    caller.require(permission)?;
    if caller.scope() == Scope::Everything {
        return Ok(());
    }
    Err(ApiError::forbidden("only an operator manages rates"))
}
