//! The messages that wait in the mailbox of an extension, for organisations that run their own voicemail.

use axum::Json;
use axum::extract::{Path, State};
use sidetone_model::access::Permission;
use sidetone_model::ids::ExtensionId;
use sidetone_model::message_waiting::MessageWaiting;

use crate::auth::Caller;
use crate::body::declare::{integer, optional, required};
use crate::body::{Body, Fields, body};
use crate::error::ApiError;
use crate::routes::extensions::visible;
use crate::state::ApiState;

body! {
    /// The messages in a mailbox. The urgent ones are part of the others.
    pub(crate) struct MessageWaitingBody {
        /// New messages: the lamps of the phones are on while there is one.
        #[schema(value_type = i32, minimum = 0, maximum = 9999, example = 2)]
        new: u32 = required(integer(0..=MessageWaiting::COUNT_MAX)),
        /// Messages that were heard and kept; 0 by default.
        #[schema(value_type = Option<i32>, minimum = 0, maximum = 9999, default = 0)]
        old: Option<u32> = optional(integer(0..=MessageWaiting::COUNT_MAX)),
        /// Of the new ones, the urgent; 0 by default.
        #[schema(value_type = Option<i32>, minimum = 0, maximum = 9999, default = 0)]
        urgent_new: Option<u32> = optional(integer(0..=MessageWaiting::COUNT_MAX)),
        /// Of the old ones, the urgent; 0 by default.
        #[schema(value_type = Option<i32>, minimum = 0, maximum = 9999, default = 0)]
        urgent_old: Option<u32> = optional(integer(0..=MessageWaiting::COUNT_MAX)),
    }
    checks |fields: &mut Fields| {
        let count = |given: Option<Option<u32>>| given.flatten().unwrap_or_default();
        if new.is_some_and(|new| count(urgent_new) > new) {
            fields.refuse::<()>("urgent_new", "must be at most new: the urgent messages are part of the new ones");
        }
        if old.is_some() && count(urgent_old) > count(old) {
            fields.refuse::<()>("urgent_old", "must be at most old: the urgent messages are part of the old ones");
        }
    };
}

/// Read the waiting messages
///
/// The messages in the mailbox of the extension, as they were set last.
#[utoipa::path(
    get,
    path = "/extensions/{id}/message-waiting",
    operation_id = "getMessageWaiting",
    tag = "Directory",
    params(("id" = ExtensionId, Path, description = "The extension's `id`.")),
    responses((status = 200, description = "The messages.", body = MessageWaiting)),
    extensions(("x-permission" = json!("directory:read"))),
)]
pub(crate) async fn read(
    caller: Caller,
    State(state): State<ApiState>,
    Path(id): Path<String>,
) -> Result<Json<MessageWaiting>, ApiError> {
    caller.require(Permission::DirectoryRead)?;
    let extension = visible(&caller, &state, &id).await?.id;
    Ok(Json(state.directory()?.extensions.message_waiting(caller.scope(), extension).await?))
}

/// Set the waiting messages
///
/// For organisations that run their own voicemail. Phones that subscribe to `message-summary` (RFC 3842) of the extension are
/// sent the new state within two seconds, and again when they subscribe; with `notify_message_waiting` of the extension, also its
/// registered phones that do not. The state is stored.
#[utoipa::path(
    put,
    path = "/extensions/{id}/message-waiting",
    operation_id = "setMessageWaiting",
    tag = "Directory",
    params(("id" = ExtensionId, Path, description = "The extension's `id`.")),
    request_body = MessageWaitingBody,
    responses((status = 200, description = "The messages.", body = MessageWaiting)),
    extensions(("x-permission" = json!("calls:control"))),
)]
pub(crate) async fn set(
    caller: Caller,
    State(state): State<ApiState>,
    Path(id): Path<String>,
    body: Body,
) -> Result<Json<MessageWaiting>, ApiError> {
    caller.require(Permission::CallsControl)?;
    let body = body.read(MessageWaitingBody::read)?;
    let extension = visible(&caller, &state, &id).await?.id;
    let waiting = MessageWaiting {
        new: body.new,
        old: body.old.unwrap_or_default(),
        urgent_new: body.urgent_new.unwrap_or_default(),
        urgent_old: body.urgent_old.unwrap_or_default(),
    };
    state.directory()?.extensions.set_message_waiting(caller.scope(), extension, waiting).await?;
    Ok(Json(waiting))
}
