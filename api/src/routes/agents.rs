//! Agents: human and virtual agents, who take the calls of an extension.

use axum::Json;
use axum::extract::{OriginalUri, Path, State};
use axum::http::StatusCode;
use axum::response::Response;
use sidetone_model::access::Permission;
use sidetone_model::field_check::StoredRule;
use sidetone_model::ids::{AgentId, ExtensionId, OrganisationId, TeamId, UserId};
use sidetone_model::page::Page;
use sidetone_model::rules;
use sidetone_model::team::{Agent, AgentChange, AgentKind, NewAgent};

use crate::auth::Caller;
use crate::body::declare::{checked, id_of, null_or, nullable, optional, parsed, required, word};
use crate::body::{Body, Fields, body};
use crate::error::{ApiError, ErrorBody};
use crate::listing::{self, ListParams, NameSortParam, OrganisationParam, TeamParam};
use crate::managed::{created, seen};
use crate::page;
use crate::params::With;
use crate::state::ApiState;

body! {
    /// A new agent.
    pub(crate) struct NewAgentBody {
        #[schema(min_length = 1, max_length = 100)]
        name: String = required(parsed(rules::name)),
        kind: AgentKind = required(word(&AgentKind::ALL)),
        /// The team on the agent's call records; the extension's team when it is absent.
        #[schema(value_type = Option<String>, format = Uuid, extensions(("x-nullable" = json!(true))))]
        team_id: Option<TeamId> = null_or(id_of(StoredRule::Team)),
        /// The agent's extension; no other agent may have it.
        #[schema(value_type = Option<String>, format = Uuid, extensions(("x-nullable" = json!(true))))]
        extension_id: Option<ExtensionId> = null_or(extension),
        /// The user of a human agent; no other agent may have it.
        #[schema(value_type = Option<String>, format = Uuid, extensions(("x-nullable" = json!(true))))]
        user_id: Option<UserId> = null_or(user),
        /// The owner; the caller's organisation by default, any organisation for an operator.
        organisation_id: Option<OrganisationId> = optional(id_of(StoredRule::Organisation)),
    }
    ignores &["id", "created_at", "updated_at"];
    checks |fields: &mut Fields| check_user(fields, kind, user_id.flatten());
}

body! {
    /// Changes of an agent.
    pub(crate) struct AgentChangeBody(stored: &Agent) {
        #[schema(min_length = 1, max_length = 100)]
        name: Option<String> = optional(parsed(rules::name)),
        kind: Option<AgentKind> = optional(word(&AgentKind::ALL)),
        /// The team on the agent's call records; the extension's team when it is absent.
        #[schema(value_type = Option<String>, format = Uuid, extensions(("x-nullable" = json!(true))))]
        team_id: Option<Option<TeamId>> = nullable(id_of(StoredRule::Team)),
        /// The agent's extension; no other agent may have it.
        #[schema(value_type = Option<String>, format = Uuid, extensions(("x-nullable" = json!(true))))]
        extension_id: Option<Option<ExtensionId>> = nullable(extension),
        /// The user of a human agent; no other agent may have it.
        #[schema(value_type = Option<String>, format = Uuid, extensions(("x-nullable" = json!(true))))]
        user_id: Option<Option<UserId>> = nullable(user),
    }
    ignores &["id", "organisation_id", "created_at", "updated_at"];
    checks |fields: &mut Fields| {
        let kind = kind.flatten().unwrap_or(stored.kind);
        check_user(fields, Some(kind), user_id.flatten().unwrap_or(stored.user_id));
    };
}

type ListQuery = With<ListParams, With<OrganisationParam, With<TeamParam, NameSortParam>>>;

/// List agents
#[utoipa::path(
    get,
    path = "/agents",
    operation_id = "listAgents",
    tag = "Teams and agents",
    params(ListQuery),
    responses((status = 200, description = "The page.", body = Page<Agent>)),
    extensions(("x-permission" = json!("directory:read"))),
)]
pub(crate) async fn list(
    caller: Caller,
    State(state): State<ApiState>,
    OriginalUri(uri): OriginalUri,
) -> Result<Json<Page<Agent>>, ApiError> {
    caller.require(Permission::DirectoryRead)?;
    let listing = listing::read::<ListQuery>(&uri, &caller)?;
    Ok(Json(state.panel()?.agents.list(caller.scope(), &listing).await?))
}

/// Create an agent
///
/// Later call records of the agent's extension carry its id.
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
    let NewAgentBody { name, kind, team_id, extension_id, user_id, organisation_id } =
        body.read_new(&caller, &state, NewAgentBody::read).await?;
    let organisation_id = caller.organisation(organisation_id)?;
    let new = NewAgent { organisation_id, team_id, name, kind, extension_id, user_id };
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
/// Records of earlier calls do not change.
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
    let id: AgentId = page::path_id("id", &id)?;
    let agents = &state.panel()?.agents;
    let agent = own(&caller, agents.find(id).await?)?;
    let organisation = Some(agent.organisation_id);
    let AgentChangeBody { name, kind, team_id, extension_id, user_id } = body
        .read_change(&caller, &state, organisation, id.0, |fields| AgentChangeBody::read(fields, &agent))
        .await?;
    let change = AgentChange { name, kind, team_id, extension_id, user_id };
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

/// Refuses `user_id` for a virtual agent.
fn check_user(fields: &mut Fields, kind: Option<AgentKind>, user: Option<UserId>) {
    if kind == Some(AgentKind::Virtual) && user.is_some() && !fields.is_refused("user_id") {
        let message = "a virtual agent does not log in, leave it out or make the kind human";
        fields.refuse::<()>("user_id", message);
    }
}

fn extension(fields: &mut Fields, name: &'static str) -> Option<ExtensionId> {
    checked(StoredRule::ExtensionOfNoAgent, id_of(StoredRule::Extension))(fields, name)
}

fn user(fields: &mut Fields, name: &'static str) -> Option<UserId> {
    checked(StoredRule::UserOfNoAgent, id_of(StoredRule::User))(fields, name)
}
