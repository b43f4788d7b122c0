//! Changes of extensions that phones dial as star codes, stored by the same port as over HTTP.

use std::sync::Arc;
use std::time::Duration;

use sidetone_model::access::Scope;
use sidetone_model::extension::{ExtensionChange, Extensions};
use sidetone_model::ids::{ExtensionId, OrganisationId};
use sidetone_model::problem::Problem;
use sidetone_model::time::Timestamp;

/// Stores a change of an extension.
///
/// # Errors
/// The SIP status for the phone: 404 for a number that the extension cannot dial, 503 when the database takes too long.
pub(super) async fn store(
    extensions: Option<Arc<dyn Extensions>>,
    (extension, organisation): (ExtensionId, OrganisationId),
    change: ExtensionChange,
    now: Timestamp,
) -> Result<(), u16> {
    let Some(extensions) = extensions else { return Err(UNAVAILABLE) };
    let stored = extensions.change(Scope::Organisation(organisation), extension, change, now);
    match tokio::time::timeout(STORE_MAX, stored).await {
        Ok(Ok(_)) => {
            tracing::info!(extension.id = %extension, "an extension was changed by a star code");
            Ok(())
        }
        Ok(Err(Problem::InvalidRequest(_) | Problem::NotFound(_))) => Err(NOT_FOUND),
        Ok(Err(problem)) => {
            tracing::warn!(extension.id = %extension, ?problem, "a star code could not be stored");
            Err(UNAVAILABLE)
        }
        Err(_) => {
            tracing::warn!(extension.id = %extension, "a star code could not be stored in time");
            Err(UNAVAILABLE)
        }
    }
}

/// How long a phone waits for the database.
const STORE_MAX: Duration = Duration::from_secs(5);
const NOT_FOUND: u16 = 404;
const UNAVAILABLE: u16 = 503;
