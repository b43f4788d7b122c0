//! Users who log in, managed by the administrators of an organisation or of the platform.

use axum::Json;
use axum::extract::{OriginalUri, Path, State};
use axum::http::StatusCode;
use axum::response::Response;
use serde::Serialize;
use sidetone_model::access::{Permission, Role};
use sidetone_model::directory::Secret;
use sidetone_model::ids::{OrganisationId, TeamId, UserId};
use sidetone_model::listing::ListingSort;
use sidetone_model::page::Page;
use sidetone_model::rules::{self, PASSWORD_LEN_MAX, PASSWORD_LEN_MIN};
use sidetone_model::user::{Email, NewUser, User, UserChange};
use utoipa::{IntoParams, ToSchema};

use crate::auth::Caller;
use crate::body::{Body, Fields};
use crate::error::{ApiError, ErrorBody};
use crate::listing::{self, Kind, ListParams, OrganisationParam, TeamParam};
use crate::managed::{created, seen};
use crate::page;
use crate::state::ApiState;

/// A user that was made, and the password that was generated for them.
#[derive(Serialize, ToSchema)]
pub(crate) struct NewUserView {
    #[serde(flatten)]
    user: User,
    /// Only when it was generated; never shown again.
    #[serde(skip_serializing_if = "Option::is_none")]
    password: Option<String>,
}

/// A user to be made.
#[derive(ToSchema)]
#[expect(dead_code, reason = "says in the document what `create` reads")]
pub(crate) struct NewUserBody {
    /// What they log in with, in any case; unique over all organisations.
    email: Email,
    /// What people call them; what stands before the `@` unless given.
    #[schema(max_length = 100)]
    name: Option<String>,
    role: Role,
    /// Generated, and answered once, unless given.
    #[schema(format = Password, min_length = 8, max_length = 128)]
    password: Option<String>,
    /// The team whose records a supervisor or an agent sees; without one they see nothing.
    #[schema(value_type = Option<String>, format = Uuid, extensions(("x-nullable" = json!(true))))]
    team_id: Option<TeamId>,
    disabled: Option<bool>,
    /// Whose it will be; the caller's own organisation unless an operator names another.
    organisation_id: Option<OrganisationId>,
}

/// What changes of a user.
#[derive(ToSchema)]
#[expect(dead_code, reason = "says in the document what `change` reads")]
pub(crate) struct UserChangeBody {
    email: Option<Email>,
    #[schema(min_length = 1, max_length = 100)]
    name: Option<String>,
    /// Another one ends their sessions.
    role: Option<Role>,
    /// Another one ends their sessions.
    #[schema(format = Password, min_length = 8, max_length = 128)]
    password: Option<String>,
    #[schema(value_type = Option<String>, format = Uuid, extensions(("x-nullable" = json!(true))))]
    team_id: Option<TeamId>,
    /// Keeping them out ends their sessions.
    disabled: Option<bool>,
}

/// The sort of the users, for the document.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(dead_code, reason = "described, never made: `listing::read` names every wrong parameter")]
pub(crate) struct EmailSortParam {
    /// Sorted by what; `id` decides between equals.
    #[param(inline)]
    sort: Option<EmailSortKey>,
}

#[derive(ToSchema)]
#[schema(rename_all = "snake_case", default = "email")]
#[expect(dead_code, reason = "described, never made: `listing::read` names every wrong parameter")]
enum EmailSortKey {
    CreatedAt,
    Email,
}

/// List users
///
/// `q` searches addresses and names.
#[utoipa::path(
    get,
    path = "/users",
    operation_id = "listUsers",
    tag = "Users",
    params(ListParams, OrganisationParam, TeamParam, EmailSortParam),
    responses((status = 200, description = "The page.", body = Page<User>)),
    extensions(("x-permission" = json!("users:write"))),
)]
pub(crate) async fn list(
    caller: Caller,
    State(state): State<ApiState>,
    OriginalUri(uri): OriginalUri,
) -> Result<Json<Page<User>>, ApiError> {
    caller.require(Permission::UsersWrite)?;
    let kind = Kind { sorts: BY_EMAIL, organisation_id: true, team_id: true };
    let listing = listing::read(&uri, &caller, &kind)?;
    Ok(Json(state.panel()?.users.list(caller.scope(), &listing).await?))
}

/// Create a user
///
/// Nobody gives a role that may do what they may not; operators alone make operators.
#[utoipa::path(
    post,
    path = "/users",
    operation_id = "createUser",
    tag = "Users",
    request_body = NewUserBody,
    responses(
        (status = 201, description = "The user.", body = NewUserView),
        (status = 409, description = "Somebody logs in with this address.", body = ErrorBody),
    ),
    extensions(("x-permission" = json!("users:write"))),
)]
pub(crate) async fn create(
    caller: Caller,
    State(state): State<ApiState>,
    body: Body,
) -> Result<Response, ApiError> {
    caller.require(Permission::UsersWrite)?;
    let (organisation, new) = body.read(|fields| {
        let organisation = fields.uuid("organisation_id");
        let email = fields.required("email", email);
        let name = fields.parsed("name", rules::label).filter(|name| !name.trim().is_empty());
        let role = fields.required("role", role);
        let password = password(fields);
        let team_id = fields.or_null("team_id", Fields::uuid).flatten();
        let disabled = fields.boolean("disabled").unwrap_or_default();
        fields.read_only(&["id", "created_at", "updated_at"]);
        let (email, role) = (email?, role?);
        let name = name.unwrap_or_else(|| email.local_part().to_owned());
        let organisation_id = caller.principal().organisation_id;
        Some((organisation, NewUser { organisation_id, team_id, email, name, role, password, disabled }))
    })?;
    let new = NewUser { organisation_id: caller.organisation(organisation)?, ..new };
    require_appointment(&caller, new.role)?;
    let (user, password) = state.panel()?.users.create(new, (state.clock)()).await?;
    let password = password.map(|password| password.0);
    Ok(created("users", user.id, NewUserView { user, password }))
}

/// Read a user
#[utoipa::path(
    get,
    path = "/users/{id}",
    operation_id = "getUser",
    tag = "Users",
    params(("id" = UserId, Path, description = "The user's id.")),
    responses((status = 200, description = "The user.", body = User)),
    extensions(("x-permission" = json!("users:write"))),
)]
pub(crate) async fn find(
    caller: Caller,
    State(state): State<ApiState>,
    Path(id): Path<String>,
) -> Result<Json<User>, ApiError> {
    caller.require(Permission::UsersWrite)?;
    let id = page::path_id("id", &id)?;
    Ok(Json(own(&caller, state.panel()?.users.find(id).await?)?))
}

/// Change a user
///
/// Another role, another password and keeping them out end the user's sessions.
#[utoipa::path(
    patch,
    path = "/users/{id}",
    operation_id = "changeUser",
    tag = "Users",
    params(("id" = UserId, Path, description = "The user's id.")),
    request_body = UserChangeBody,
    responses(
        (status = 200, description = "The user.", body = User),
        (status = 409, description = "Somebody logs in with this address, or nobody would be left who runs what \
            the user runs.", body = ErrorBody),
    ),
    extensions(("x-permission" = json!("users:write"))),
)]
pub(crate) async fn change(
    caller: Caller,
    State(state): State<ApiState>,
    Path(id): Path<String>,
    body: Body,
) -> Result<Json<User>, ApiError> {
    caller.require(Permission::UsersWrite)?;
    let id = page::path_id("id", &id)?;
    let users = &state.panel()?.users;
    let user = own(&caller, users.find(id).await?)?;
    let change = body.read(|fields| {
        let change = UserChange {
            email: email(fields, "email"),
            name: fields.parsed("name", rules::name),
            role: role(fields, "role"),
            password: password(fields),
            team_id: fields.or_null("team_id", Fields::uuid),
            disabled: fields.boolean("disabled"),
        };
        fields.read_only(&["id", "organisation_id", "created_at", "updated_at"]);
        Some(change)
    })?;
    // A caller who could set an operator's password could act as the operator.
    require_appointment(&caller, user.role)?;
    require_appointment(&caller, change.role.unwrap_or(user.role))?;
    if change == UserChange::default() {
        return Ok(Json(user));
    }
    Ok(Json(users.change(caller.scope(), id, change, (state.clock)()).await?))
}

/// Delete a user
///
/// Their sessions end.
#[utoipa::path(
    delete,
    path = "/users/{id}",
    operation_id = "deleteUser",
    tag = "Users",
    params(("id" = UserId, Path, description = "The user's id.")),
    responses(
        (status = 204, description = "The user is gone."),
        (status = 409, description = "The user is an agent, or nobody would be left who runs what the user runs.",
            body = ErrorBody),
    ),
    extensions(("x-permission" = json!("users:write"))),
)]
pub(crate) async fn delete(
    caller: Caller,
    State(state): State<ApiState>,
    Path(id): Path<String>,
) -> Result<StatusCode, ApiError> {
    caller.require(Permission::UsersWrite)?;
    let id = page::path_id("id", &id)?;
    let users = &state.panel()?.users;
    let user = own(&caller, users.find(id).await?)?;
    require_appointment(&caller, user.role)?;
    users.delete(caller.scope(), id).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Returns the user if the caller may see it.
fn own(caller: &Caller, found: Option<User>) -> Result<User, ApiError> {
    seen(found, "user", |user| caller.scope().covers(user.organisation_id, user.team_id))
}

fn require_appointment(caller: &Caller, role: Role) -> Result<(), ApiError> {
    if caller.principal().may_appoint(role) {
        return Ok(());
    }
    let role = role.as_str();
    Err(ApiError::forbidden(format!("the role {role} may do what the caller may not, or see more")))
}

fn email(fields: &mut Fields, name: &'static str) -> Option<Email> {
    fields.parsed(name, str::parse::<Email>)
}

fn password(fields: &mut Fields) -> Option<Secret> {
    fields.text("password", PASSWORD_LEN_MIN..=PASSWORD_LEN_MAX).map(Secret)
}

fn role(fields: &mut Fields, name: &'static str) -> Option<Role> {
    fields.word(name, &Role::ALL.map(|(role, name)| (name, role)))
}

const BY_EMAIL: &[(&str, ListingSort)] =
    &[("created_at", ListingSort::CreatedAt), ("email", ListingSort::Name)];
