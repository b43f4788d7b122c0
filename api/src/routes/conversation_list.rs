//! The list of conversations.

use axum::Json;
use axum::extract::{OriginalUri, State};
use axum::response::{IntoResponse, Response};
use sidetone_model::access::Permission;
use sidetone_model::conversation::{ConversationItem, ConversationQuery};
use sidetone_model::cursor::Cursor;
use sidetone_model::ids::AgentId;
use sidetone_model::page::Page;
use sidetone_model::time::Timestamp;

use crate::auth::Caller;
use crate::error::ApiError;
use crate::listing::OrganisationParam;
use crate::page;
use crate::params::{self, With, query};
use crate::routes::cdr_params::Bound;
use crate::routes::conversations::sight;
use crate::state::ApiState;

query! {
    /// The parameters of the list.
    pub(crate) struct ConversationParams {
        /// Conversations of this agent.
        agent_id: AgentId = page::id,
        /// Started at this instant or later: an RFC 3339 timestamp, or `YYYY-MM-DD` for its midnight in UTC.
        #[param(value_type = Option<Bound>, inline, example = "2026-01-31")]
        from: Timestamp = page::bound,
        /// Started before this instant; same formats.
        #[param(value_type = Option<Bound>, inline, example = "2026-02-01T00:00:00Z")]
        to: Timestamp = page::bound,
        /// `true`: conversations that have not ended; `false`: the others.
        running: bool = page::boolean,
        /// Conversations on a page.
        #[param(value_type = Option<i32>, minimum = 1, maximum = 500, default = 50)]
        limit: u32 = page::limit,
        /// Conversations to skip.
        #[param(value_type = Option<i64>, minimum = 0, default = 0)]
        offset: u64 = page::count,
        /// Pages by cursor in place of offsets: empty for the first page, then the `next_cursor` of the page before, with the
        /// same other parameters.
        #[param(value_type = Option<String>, max_length = 4096)]
        cursor: Cursor = page::cursor,
    }
}

type ListQuery = With<ConversationParams, OrganisationParam>;

/// List conversations
///
/// A page of the conversations in the caller's scope, the latest first, without their transcripts. Callers with the
/// role `team_supervisor` or `agent` see those of their own team.
#[utoipa::path(
    get,
    path = "/conversations",
    operation_id = "listConversations",
    tag = "Conversations",
    params(ListQuery),
    responses((status = 200, description = "The page.", body = Page<ConversationItem<'static>>)),
    extensions(("x-permission" = json!("calls:read"))),
)]
pub(crate) async fn list(
    caller: Caller,
    State(state): State<ApiState>,
    OriginalUri(uri): OriginalUri,
) -> Result<Response, ApiError> {
    caller.require(Permission::CallsRead)?;
    let With(
        ConversationParams { agent_id, from, to, running, limit, offset, cursor },
        OrganisationParam { organisation_id },
    ) = params::read::<ListQuery>(&uri)?;
    caller.narrow(organisation_id)?;
    let window = params::window(&uri, &caller, (limit, offset, cursor))?;
    let query = ConversationQuery { agent_id, from, organisation_id, running, to, window };
    let page = state.conversations()?.list(caller.scope(), &query).await?;
    let sight = sight(&caller);
    let page = page.as_ref().map(|listed| listed.conversation.item(sight, listed.turn_count));
    Ok(Json(page).into_response())
}
