//! Agents: human and virtual agents, who take the calls of an extension.

use axum::Json;
use axum::extract::{OriginalUri, Path, State};
use axum::http::StatusCode;
use axum::response::Response;
use sidetone_model::access::Permission;
use sidetone_model::ids::{AgentId, ExtensionId, OrganisationId, TeamId, UserId};
use sidetone_model::page::Page;
use sidetone_model::rules;
use sidetone_model::team::{Agent, AgentChange, AgentKind, NewAgent};
use utoipa::ToSchema;

use crate::auth::Caller;
use crate::body::{Body, Fields};
use crate::error::{ApiError, ErrorBody};
use crate::listing::{self, BY_NAME, Kind, ListParams, NameSortParam, OrganisationParam, TeamParam};
use crate::managed::{created, seen};
use crate::page;
use crate::state::ApiState;

/// An agent to be made.
#[derive(ToSchema)]
#[expect(dead_code, reason = "says in the document what `create` reads")]
pub(crate) struct NewAgentBody {
    #[schema(min_length = 1, max_length = 100)]
    name: String,
    kind: AgentKind,
    /// The team of their records; without one it is the extension's.
    #[schema(value_type = Option<String>, format = Uuid, extensions(("x-nullable" = json!(true))))]
    team_id: Option<TeamId>,
    /// The extension they take calls on, which no other agent has.
    #[schema(value_type = Option<String>, format = Uuid, extensions(("x-nullable" = json!(true))))]
    extension_id: Option<ExtensionId>,
    /// The user that a human agent logs in as, which no other agent has.
    #[schema(value_type = Option<String>, format = Uuid, extensions(("x-nullable" = json!(true))))]
    user_id: Option<UserId>,
    /// Whose it will be; the caller's own organisation unless an operator names another.
    organisation_id: Option<OrganisationId>,
}

/// What changes of an agent.
#[derive(ToSchema)]
#[expect(dead_code, reason = "says in the document what `change` reads")]
pub(crate) struct AgentChangeBody {
    #[schema(min_length = 1, max_length = 100)]
    name: Option<String>,
    kind: Option<AgentKind>,
    /// The team of their records; without one it is the extension's.
    #[schema(value_type = Option<String>, format = Uuid, extensions(("x-nullable" = json!(true))))]
    team_id: Option<TeamId>,
    /// The extension they take calls on, which no other agent has.
    #[schema(value_type = Option<String>, format = Uuid, extensions(("x-nullable" = json!(true))))]
    extension_id: Option<ExtensionId>,
    /// The user that a human agent logs in as, which no other agent has.
    #[schema(value_type = Option<String>, format = Uuid, extensions(("x-nullable" = json!(true))))]
    user_id: Option<UserId>,
}

/// List agents
#[utoipa::path(
    get,
    path = "/agents",
    operation_id = "listAgents",
    tag = "Teams and agents",
    params(ListParams, OrganisationParam, TeamParam, NameSortParam),
    responses((status = 200, description = "The page.", body = Page<Agent>)),
    extensions(("x-permission" = json!("directory:read"))),
)]
pub(crate) async fn list(
    caller: Caller,
    State(state): State<ApiState>,
    OriginalUri(uri): OriginalUri,
) -> Result<Json<Page<Agent>>, ApiError> {
    caller.require(Permission::DirectoryRead)?;
    let kind = Kind { sorts: BY_NAME, organisation_id: true, team_id: true };
    let listing = listing::read(&uri, &caller, &kind)?;
    Ok(Json(state.panel()?.agents.list(caller.scope(), &listing).await?))
}

/// Create an agent
///
/// Records of calls on the agent's extension carry its id from then on.
#[utoipa::path(
    post,
    path = "/agents",
    operation_id = "createAgent",
    tag = "Teams and agents",
    request_body = NewAgentBody,
    responses(
        (status = 201, description = "The agent.", body = Agent),
        (status = 409, description = "Another agent has the extension or the user.", body = ErrorBody),
    ),
    extensions(("x-permission" = json!("directory:write"))),
)]
pub(crate) async fn create(
    caller: Caller,
    State(state): State<ApiState>,
    body: Body,
) -> Result<Response, ApiError> {
    caller.require(Permission::DirectoryWrite)?;
    let (organisation, new) = body.read(|fields| {
        let organisation = fields.uuid("organisation_id");
        let name = fields.required("name", |fields, name| fields.parsed(name, rules::name));
        let kind = fields.required("kind", kind);
        let team_id = fields.or_null("team_id", Fields::uuid).flatten();
        let extension_id = fields.or_null("extension_id", Fields::uuid).flatten();
        let user_id = fields.or_null("user_id", Fields::uuid).flatten();
        fields.read_only(&["id", "created_at", "updated_at"]);
        let organisation_id = caller.principal().organisation_id;
        let (name, kind) = (name?, kind?);
        Some((organisation, NewAgent { organisation_id, team_id, name, kind, extension_id, user_id }))
    })?;
    let new = NewAgent { organisation_id: caller.organisation(organisation)?, ..new };
    let agent = state.panel()?.agents.create(new, (state.clock)()).await?;
    Ok(created("agents", agent.id, agent))
}

/// Read an agent
#[utoipa::path(
    get,
    path = "/agents/{id}",
    operation_id = "getAgent",
    tag = "Teams and agents",
    params(("id" = AgentId, Path, description = "The agent's id.")),
    responses((status = 200, description = "The agent.", body = Agent)),
    extensions(("x-permission" = json!("directory:read"))),
)]
pub(crate) async fn find(
    caller: Caller,
    State(state): State<ApiState>,
    Path(id): Path<String>,
) -> Result<Json<Agent>, ApiError> {
    caller.require(Permission::DirectoryRead)?;
    let id = page::path_id("id", &id)?;
    Ok(Json(own(&caller, state.panel()?.agents.find(id).await?)?))
}

/// Change an agent
///
/// Records of calls that ended before keep what they carry.
#[utoipa::path(
    patch,
    path = "/agents/{id}",
    operation_id = "changeAgent",
    tag = "Teams and agents",
    params(("id" = AgentId, Path, description = "The agent's id.")),
    request_body = AgentChangeBody,
    responses(
        (status = 200, description = "The agent.", body = Agent),
        (status = 409, description = "Another agent has the extension or the user.", body = ErrorBody),
    ),
    extensions(("x-permission" = json!("directory:write"))),
)]
pub(crate) async fn change(
    caller: Caller,
    State(state): State<ApiState>,
    Path(id): Path<String>,
    body: Body,
) -> Result<Json<Agent>, ApiError> {
    caller.require(Permission::DirectoryWrite)?;
    let id = page::path_id("id", &id)?;
    let agents = &state.panel()?.agents;
    let agent = own(&caller, agents.find(id).await?)?;
    let change = body.read(|fields| {
        let change = AgentChange {
            name: fields.parsed("name", rules::name),
            kind: kind(fields, "kind"),
            team_id: fields.or_null("team_id", Fields::uuid),
            extension_id: fields.or_null("extension_id", Fields::uuid),
            user_id: fields.or_null("user_id", Fields::uuid),
        };
        fields.read_only(&["id", "organisation_id", "created_at", "updated_at"]);
        Some(change)
    })?;
    if change == AgentChange::default() {
        return Ok(Json(agent));
    }
    Ok(Json(agents.change(caller.scope(), id, change, (state.clock)()).await?))
}

/// Delete an agent
///
/// Records keep its id.
#[utoipa::path(
    delete,
    path = "/agents/{id}",
    operation_id = "deleteAgent",
    tag = "Teams and agents",
    params(("id" = AgentId, Path, description = "The agent's id.")),
    responses((status = 204, description = "The agent is gone.")),
    extensions(("x-permission" = json!("directory:write"))),
)]
pub(crate) async fn delete(
    caller: Caller,
    State(state): State<ApiState>,
    Path(id): Path<String>,
) -> Result<StatusCode, ApiError> {
    caller.require(Permission::DirectoryWrite)?;
    let id = page::path_id("id", &id)?;
    let agents = &state.panel()?.agents;
    own(&caller, agents.find(id).await?)?;
    agents.delete(caller.scope(), id).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Returns the agent if the caller may see it.
fn own(caller: &Caller, found: Option<Agent>) -> Result<Agent, ApiError> {
    seen(found, "agent", |agent| caller.scope().covers(agent.organisation_id, agent.team_id))
}

fn kind(fields: &mut Fields, name: &'static str) -> Option<AgentKind> {
    fields.word(name, &AgentKind::ALL)
}
