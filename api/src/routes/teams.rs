//! Teams.

use axum::Json;
use axum::extract::{OriginalUri, Path, State};
use axum::http::StatusCode;
use axum::response::Response;
use sidetone_model::access::Permission;
use sidetone_model::field_check::StoredRule;
use sidetone_model::ids::{OrganisationId, TeamId};
use sidetone_model::page::Page;
use sidetone_model::rules;
use sidetone_model::team::Team;

use crate::auth::Caller;
use crate::body::declare::{checked, id_of, optional, parsed, required};
use crate::body::{Body, body};
use crate::error::{ApiError, ErrorBody};
use crate::listing::{self, ListParams, NameSortParam, OrganisationParam};
use crate::managed::{created, seen};
use crate::page;
use crate::params::With;
use crate::state::ApiState;

body! {
    /// A new team.
    pub(crate) struct NewTeamBody {
        /// Unique within the organisation.
        #[schema(min_length = 1, max_length = 100)]
        name: String = required(checked(StoredRule::FreeTeamName, parsed(rules::name))),
        /// The owner; the caller's organisation by default, any organisation for an operator.
        organisation_id: Option<OrganisationId> = optional(id_of(StoredRule::Organisation)),
    }
    ignores &["id", "created_at", "updated_at"];
}

body! {
    /// Changes of a team.
    pub(crate) struct TeamChangeBody {
        /// Unique within the organisation.
        #[schema(min_length = 1, max_length = 100)]
        name: Option<String> = optional(checked(StoredRule::FreeTeamName, parsed(rules::name))),
    }
    ignores &["id", "organisation_id", "created_at", "updated_at"];
}

type ListQuery = With<ListParams, With<OrganisationParam, NameSortParam>>;

/// List teams
///
/// A caller who sees only one team gets that team.
#[utoipa::path(
    get,
    path = "/teams",
    operation_id = "listTeams",
    tag = "Teams and agents",
    params(ListQuery),
    responses((status = 200, description = "The page.", body = Page<Team>)),
    extensions(("x-permission" = json!("directory:read"))),
)]
pub(crate) async fn list(
    caller: Caller,
    State(state): State<ApiState>,
    OriginalUri(uri): OriginalUri,
) -> Result<Json<Page<Team>>, ApiError> {
    caller.require(Permission::DirectoryRead)?;
    let listing = listing::read::<ListQuery>(&uri, &caller)?;
    Ok(Json(state.panel()?.teams.list(caller.scope(), &listing).await?))
}

/// Create a team
#[utoipa::path(
    post,
    path = "/teams",
    operation_id = "createTeam",
    tag = "Teams and agents",
    request_body = NewTeamBody,
    responses(
        (status = 201, description = "The team.", body = Team),
        (status = 409, description = "The organisation has a team of that name.", body = ErrorBody),
    ),
    extensions(("x-permission" = json!("directory:write"))),
)]
pub(crate) async fn create(
    caller: Caller,
    State(state): State<ApiState>,
    body: Body,
) -> Result<Response, ApiError> {
    caller.require(Permission::DirectoryWrite)?;
    let NewTeamBody { name, organisation_id } = body.read_new(&caller, &state, NewTeamBody::read).await?;
    let organisation = caller.organisation(organisation_id)?;
    let team = state.panel()?.teams.create(organisation, name, (state.clock)()).await?;
    Ok(created("teams", team.id, team))
}

/// Read a team
#[utoipa::path(
    get,
    path = "/teams/{id}",
    operation_id = "getTeam",
    tag = "Teams and agents",
    params(("id" = TeamId, Path, description = "The team's id.")),
    responses((status = 200, description = "The team.", body = Team)),
    extensions(("x-permission" = json!("directory:read"))),
)]
pub(crate) async fn find(
    caller: Caller,
    State(state): State<ApiState>,
    Path(id): Path<String>,
) -> Result<Json<Team>, ApiError> {
    caller.require(Permission::DirectoryRead)?;
    let id = page::path_id("id", &id)?;
    Ok(Json(own(&caller, state.panel()?.teams.find(id).await?)?))
}

/// Change a team
#[utoipa::path(
    patch,
    path = "/teams/{id}",
    operation_id = "changeTeam",
    tag = "Teams and agents",
    params(("id" = TeamId, Path, description = "The team's id.")),
    request_body = TeamChangeBody,
    responses(
        (status = 200, description = "The team.", body = Team),
        (status = 409, description = "The organisation has a team of that name.", body = ErrorBody),
    ),
    extensions(("x-permission" = json!("directory:write"))),
)]
pub(crate) async fn change(
    caller: Caller,
    State(state): State<ApiState>,
    Path(id): Path<String>,
    body: Body,
) -> Result<Json<Team>, ApiError> {
    caller.require(Permission::DirectoryWrite)?;
    let id: TeamId = page::path_id("id", &id)?;
    let teams = &state.panel()?.teams;
    let team = own(&caller, teams.find(id).await?)?;
    let organisation = Some(team.organisation_id);
    let TeamChangeBody { name } =
        body.read_change(&caller, &state, organisation, id.0, TeamChangeBody::read).await?;
    let Some(name) = name else { return Ok(Json(team)) };
    Ok(Json(teams.rename(caller.scope(), id, name, (state.clock)()).await?))
}

/// Delete a team
///
/// Records keep its id.
#[utoipa::path(
    delete,
    path = "/teams/{id}",
    operation_id = "deleteTeam",
    tag = "Teams and agents",
    params(("id" = TeamId, Path, description = "The team's id.")),
    responses(
        (status = 204, description = "The team is gone."),
        (status = 409, description = "The team still has members; the message names them.", body = ErrorBody),
    ),
    extensions(("x-permission" = json!("directory:write"))),
)]
pub(crate) async fn delete(
    caller: Caller,
    State(state): State<ApiState>,
    Path(id): Path<String>,
) -> Result<StatusCode, ApiError> {
    caller.require(Permission::DirectoryWrite)?;
    let id = page::path_id("id", &id)?;
    let teams = &state.panel()?.teams;
    own(&caller, teams.find(id).await?)?;
    teams.delete(caller.scope(), id).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Returns the team if the caller may see it.
fn own(caller: &Caller, found: Option<Team>) -> Result<Team, ApiError> {
    seen(found, "team", |team| caller.scope().covers(team.organisation_id, Some(team.id)))
}
