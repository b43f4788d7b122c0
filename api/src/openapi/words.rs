//! Enumerations of the model that parameters refer to. utoipa only references the type of a parameter, but
//! adds that of a body to the components.

use sidetone_model::access::Role;
use sidetone_model::call::{Direction, Transport};
use sidetone_model::ids;
use sidetone_model::live_call::CallState;
use sidetone_model::money::{Amount, Currency};
use sidetone_model::time::Timestamp;
use utoipa::OpenApi as _;
use utoipa::openapi::{Components, OpenApi};

/// A document with components only.
pub(super) fn words() -> OpenApi {
    let mut words = Words::openapi();
    words.components.get_or_insert_with(Components::new).schemas.extend(ids::schemas());
    words
}

#[derive(utoipa::OpenApi)]
#[openapi(components(schemas(Amount, CallState, Currency, Direction, Role, Timestamp, Transport)))]
struct Words;
