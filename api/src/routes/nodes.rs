//! The nodes of the installation.

use axum::Json;
use axum::extract::{OriginalUri, State};
use sidetone_model::access::{Permission, Scope};
use sidetone_model::cluster::NodeRecord;
use sidetone_model::page::{Page, Window};

use crate::auth::Caller;
use crate::error::ApiError;
use crate::page;
use crate::params::{self, query};
use crate::state::ApiState;

query! {
    /// The parameters of the list.
    pub(crate) struct NodeParams {
        /// Nodes on a page.
        #[param(value_type = Option<i32>, minimum = 1, maximum = 500, default = 50)]
        limit: u32 = page::limit,
        /// Nodes to skip.
        #[param(value_type = Option<i64>, minimum = 0, default = 0)]
        offset: u64 = page::count,
    }
}

/// List nodes
///
/// For operators. A page of the nodes of the cluster as the node sees them that answers, by name, with their load and
/// whether they are there; a node without a cluster lists itself. A node that was lost stays in the list for an hour.
#[utoipa::path(
    get,
    path = "/nodes",
    operation_id = "listNodes",
    tag = "Operations",
    params(NodeParams),
    responses((status = 200, description = "The page.", body = Page<NodeRecord>)),
    extensions(("x-permission" = json!("organisations:write"))),
)]
pub(crate) async fn list(
    caller: Caller,
    State(state): State<ApiState>,
    OriginalUri(uri): OriginalUri,
) -> Result<Json<Page<NodeRecord>>, ApiError> {
    caller.require(Permission::OrganisationsWrite)?;
    if caller.scope() != Scope::Everything {
        return Err(ApiError::forbidden("only an operator lists the nodes"));
    }
    let NodeParams { limit, offset } = params::read::<NodeParams>(&uri)?;
    let plain = Window::default();
    let window =
        Window { limit: limit.unwrap_or(plain.limit), offset: offset.unwrap_or(plain.offset), cursor: None };
    let nodes = state.nodes()?.list().await?;
    let (total, skipped) = (nodes.len() as u64, usize::try_from(window.offset).unwrap_or(usize::MAX));
    let items = nodes.into_iter().skip(skipped).take(window.limit as usize).collect();
    Ok(Json(Page::by_offset(items, total, &window)))
}
