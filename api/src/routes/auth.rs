//! Logging in and out, and the caller's own account.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use serde::Serialize;
use sidetone_model::access::{Permission, Role};
use sidetone_model::directory::Secret;
use sidetone_model::ids::{ExtensionId, OrganisationId, UserId};
use sidetone_model::problem::FieldProblem;
use sidetone_model::rules::{PASSWORD_LEN_MAX, PASSWORD_LEN_MIN};
use sidetone_model::time::Timestamp;
use sidetone_model::user::{Email, User};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::auth::{Caller, Client, LoginRefusal};
use crate::body::declare::{required, text};
use crate::body::{Body, Fields, body};
use crate::error::{ApiError, ErrorBody};
use crate::state::ApiState;

/// The answer to a login.
#[derive(Serialize, ToSchema)]
pub(crate) struct Login {
    /// Send it as `Authorization: Bearer <token>` with later requests.
    token: String,
    /// Always `Bearer`.
    token_type: &'static str,
    /// When the session ends: 12 hours after the login.
    expires_at: Timestamp,
    user: LoginUser,
}

/// The user who logged in.
#[derive(Serialize, ToSchema)]
pub(crate) struct LoginUser {
    id: UserId,
    name: String,
    email: Email,
    role: Role,
    organisation_id: OrganisationId,
    /// The extension of the user's agent, whose forwarding the user may change; absent without one, and in the answer to
    /// a login.
    #[serde(skip_serializing_if = "Option::is_none")]
    extension_id: Option<ExtensionId>,
    /// The user's permissions.
    permissions: Vec<Permission>,
}

impl From<User> for LoginUser {
    fn from(user: User) -> Self {
        let User { id, name, email, role, organisation_id, .. } = user;
        Self { id, name, email, role, organisation_id, extension_id: None, permissions: role.permissions() }
    }
}

body! {
    /// An email address and a password.
    pub(crate) struct LoginBody {
        #[schema(example = "ada@acme.test")]
        email: String = required(not_blank),
        #[schema(format = Password)]
        password: String = required(text(1..=PASSWORD_LEN_MAX)),
    }
}

/// Log in
///
/// Begins a panel session of 12 hours. An unknown address and a wrong password get the same answer. After five
/// failures within five minutes for one account from one address, or 30 for all accounts, the answer is 429 with
/// `Retry-After`. While an account has 50 failures from all addresses, each address may fail once there. Every login
/// counts against the rate limit of the address.
#[utoipa::path(
    post,
    path = "/auth/login",
    operation_id = "login",
    tag = "Authentication",
    request_body = LoginBody,
    responses(
        (status = 200, description = "The session.", body = Login),
        (status = 401, description = "The address or the password is wrong (`invalid_credentials`).", body = ErrorBody),
    ),
    security(()),
)]
pub(crate) async fn log_in(
    client: Client,
    State(state): State<ApiState>,
    body: Body,
) -> Result<Json<Login>, ApiError> {
    let panel = state.panel()?;
    let LoginBody { email, password } = body.read(LoginBody::read)?;
    let password = Secret(password);
    let tries = client.attempts_at(&email);
    let now = (state.clock)();
    let refused = |why| state.attempts.refused(now, client.address(), &email, why);
    state.attempts.take(tries, now).map_err(|seconds| {
        refused(LoginRefusal::Limited);
        ApiError::rate_limited(seconds)
    })?;
    let account = panel.accounts.log_in(&email, &password).await?.ok_or_else(|| {
        refused(LoginRefusal::Wrong);
        ApiError::invalid_credentials()
    })?;
    state.attempts.succeed(tries);
    let token = panel.token_key.issue(&account, Uuid::new_v4(), now);
    Ok(Json(Login {
        token: token.text,
        token_type: "Bearer",
        expires_at: token.expires_at,
        user: account.user.into(),
    }))
}

/// Log out
///
/// Ends the session of this request; other sessions of the user continue.
#[utoipa::path(
    post,
    path = "/auth/logout",
    operation_id = "logout",
    tag = "Authentication",
    responses((status = 204, description = "The session has ended."))
)]
pub(crate) async fn log_out(caller: Caller, State(state): State<ApiState>) -> Result<StatusCode, ApiError> {
    let (_, session) = caller.session()?;
    let now = (state.clock)();
    state.panel()?.accounts.end_session(session.id, session.expires_at, now).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Read your own user
///
/// The user of the session.
#[utoipa::path(
    get,
    path = "/auth/me",
    operation_id = "getSelf",
    tag = "Authentication",
    responses((status = 200, description = "The user.", body = LoginUser))
)]
pub(crate) async fn me(caller: Caller, State(state): State<ApiState>) -> Result<Json<LoginUser>, ApiError> {
    let (id, _) = caller.session()?;
    let user = state.panel()?.users.find(id).await?;
    // The user was removed after the request was authenticated.
    let user = user.ok_or_else(|| ApiError::unauthenticated("the user is no more"))?;
    let extension_id = match &state.directory {
        Some(directory) => directory.extensions.of_user(id).await?,
        None => None,
    };
    Ok(Json(LoginUser { extension_id, ..user.into() }))
}

body! {
    /// The current and the new password.
    pub(crate) struct PasswordBody {
        #[schema(format = Password)]
        old_password: String = required(text(1..=PASSWORD_LEN_MAX)),
        #[schema(format = Password, min_length = 8, max_length = 128)]
        new_password: String = required(text(PASSWORD_LEN_MIN..=PASSWORD_LEN_MAX)),
    }
}

/// Change your password
///
/// Ends every session of the user, including this one. Failures count like failed logins.
#[utoipa::path(
    post,
    path = "/auth/password",
    operation_id = "changePassword",
    tag = "Authentication",
    request_body = PasswordBody,
    responses((status = 204, description = "The password is changed and every session has ended."))
)]
pub(crate) async fn change_password(
    caller: Caller,
    client: Client,
    State(state): State<ApiState>,
    body: Body,
) -> Result<StatusCode, ApiError> {
    let (user, _) = caller.session()?;
    let panel = state.panel()?;
    let PasswordBody { old_password, new_password } = body.read(PasswordBody::read)?;
    let (old, new) = (Secret(old_password), Secret(new_password));
    let tries = client.attempts_at(&user.to_string());
    let now = (state.clock)();
    state.attempts.take(tries, now).map_err(ApiError::rate_limited)?;
    if !panel.accounts.change_password(user, &old, &new, now).await? {
        let message = "is not the present password".to_owned();
        return Err(ApiError::invalid(vec![FieldProblem { field: "old_password".to_owned(), message }]));
    }
    state.attempts.succeed(tries);
    Ok(StatusCode::NO_CONTENT)
}

fn not_blank(fields: &mut Fields, name: &'static str) -> Option<String> {
    let text = fields.text(name, 1..=EMAIL_LEN_MAX)?;
    if text.trim().is_empty() { fields.refuse(name, "must not be empty") } else { Some(text) }
}

/// Longer than any address.
const EMAIL_LEN_MAX: usize = 320;
