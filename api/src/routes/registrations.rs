//! Registrations of phones.

use axum::Json;
use axum::extract::{OriginalUri, State};
use sidetone_model::access::Permission;
use sidetone_model::cursor::Cursor;
use sidetone_model::ids::ExtensionId;
use sidetone_model::page::Page;
use sidetone_model::registration::{RegistrationQuery, RegistrationRecord};

use crate::auth::Caller;
use crate::error::{ApiError, ErrorBody};
use crate::listing::OrganisationParam;
use crate::page;
use crate::params::{self, With, query};
use crate::state::ApiState;

query! {
    /// The parameters of the list.
    pub(crate) struct RegistrationParams {
        /// Registrations at this extension.
        extension_id: ExtensionId = page::id,
        /// Registrations on a page.
        #[param(value_type = Option<i32>, minimum = 1, maximum = 500, default = 50)]
        limit: u32 = page::limit,
        /// Registrations to skip.
        #[param(value_type = Option<i64>, minimum = 0, default = 0)]
        offset: u64 = page::count,
        /// Pages by cursor in place of offsets: empty for the first page, then the `next_cursor` of the page before, with the
        /// same other parameters.
        #[param(value_type = Option<String>, max_length = 4096)]
        cursor: Cursor = page::cursor,
    }
}

type ListQuery = With<RegistrationParams, OrganisationParam>;

/// List registrations
///
/// A page of the phones that are registered now at the extensions in the caller's scope, by number of the extension. Where
/// several nodes share a database without a cluster, these are the registrations at the node that is asked.
///
/// In a cluster the page has those of all nodes; nodes that do not answer within 300 ms are named in the header
/// `X-Sidetone-Missing`, `offset` and `limit` together are at most 500, and there is one page by cursor.
#[utoipa::path(
    get,
    path = "/registrations",
    operation_id = "listRegistrations",
    tag = "Directory",
    params(ListQuery),
    responses(
        (status = 200, description = "The page.", body = Page<RegistrationRecord>),
        (status = 503, description = "The switch is overloaded (`node_busy`).", body = ErrorBody),
    ),
    extensions(("x-permission" = json!("directory:read"))),
)]
pub(crate) async fn list(
    caller: Caller,
    State(state): State<ApiState>,
    OriginalUri(uri): OriginalUri,
) -> Result<Json<Page<RegistrationRecord>>, ApiError> {
    caller.require(Permission::DirectoryRead)?;
    let With(query, OrganisationParam { organisation_id }) = params::read::<ListQuery>(&uri)?;
    caller.narrow(organisation_id)?;
    let RegistrationParams { extension_id, limit, offset, cursor } = query;
    let window = params::window(&uri, &caller, (limit, offset, cursor))?;
    let query = RegistrationQuery { organisation_id, extension_id, window };
    Ok(Json(state.registrations()?.list(caller.scope(), query).await?))
}
