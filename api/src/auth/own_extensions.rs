//! The extensions on which a caller takes calls.

use sidetone_model::access::{Principal, Scope, Who};
use sidetone_model::ids::ExtensionId;
use sidetone_model::problem::Problem;

use crate::state::ApiState;

/// The extensions of a user who sees one team: such a user sees the live rooms that contain these extensions. Empty
/// for all other callers, whose access does not depend on extensions.
pub(crate) async fn own_extensions(
    principal: &Principal,
    state: &ApiState,
) -> Result<Vec<ExtensionId>, Problem> {
    match (principal.scope, principal.who, &state.rooms) {
        (Scope::Team { .. }, Who::User(user), Some(rooms)) => rooms.extensions_of(user).await,
        _ => Ok(Vec::new()),
    }
}
