//! Organisations: the tenants.

use axum::Json;
use axum::extract::{OriginalUri, Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use sidetone_model::access::{Permission, Scope};
use sidetone_model::call_info::{self, CallInfoTarget};
use sidetone_model::directory::{Numbering, Secret};
use sidetone_model::ids::OrganisationId;
use sidetone_model::money::{Amount, Currency};
use sidetone_model::organisation::{
    NewOrganisation, OrganisationChange, OrganisationRecord, OrganisationView,
};
use sidetone_model::page::Page;
use sidetone_model::problem::FieldProblem;
use sidetone_model::rules;
use utoipa::ToSchema;

use crate::auth::Caller;
use crate::body::{Body, Fields};
use crate::error::{ApiError, ErrorBody};
use crate::listing::{self, BY_NAME, Kind, ListParams, NameSortParam};
use crate::managed::{created, max_call_seconds, seen};
use crate::page;
use crate::state::ApiState;

/// A new organisation.
#[derive(ToSchema)]
#[expect(dead_code, reason = "says in the document what `create` reads")]
pub(crate) struct NewOrganisationBody {
    /// Unique name.
    #[schema(min_length = 1, max_length = 100)]
    name: String,
    /// Its phones register as `number@sip_domain`; unique.
    #[schema(max_length = 253, example = "acme.test")]
    sip_domain: String,
    /// The currency of its amounts; `EUR` unless given.
    currency: Option<Currency>,
    /// What it may spend; null, as when it is left out, is no limit.
    #[schema(extensions(("x-nullable" = json!(true))))]
    credit: Option<Amount>,
    /// The digits of its country; empty, as when it is left out, when national numbers are not dialled.
    #[schema(pattern = "^([1-9][0-9]{0,2})?$", example = "44")]
    country_code: Option<String>,
    /// What its people key before a national number; `0` unless given.
    #[schema(pattern = "^[0-9]{0,5}$")]
    national_prefix: Option<String>,
    /// What its people key in place of `+`; `00` unless given.
    #[schema(pattern = "^[0-9]{1,5}$")]
    international_prefix: Option<String>,
    /// Calls out to the world that it may have at once; null, as when it is left out, is no limit.
    #[schema(minimum = 0, maximum = 1_000_000, extensions(("x-nullable" = json!(true))))]
    max_outbound_calls: Option<i64>,
    /// How many seconds an answered call lasts at most; null, as when it is left out, takes the node's limit.
    #[schema(minimum = 60, maximum = 86_400, extensions(("x-nullable" = json!(true))))]
    max_call_seconds: Option<i64>,
    /// Where the service asks, on every answered call, for a note to show on the phone: `https` on a public address.
    /// Empty, as when it is left out, is nowhere.
    #[schema(max_length = 2048, pattern = "^(https://[^\\s#]+)?$", example = "https://crm.example/sidetone")]
    call_info_url: Option<String>,
    /// What the service signs with; required with `call_info_url`. Never shown.
    #[schema(max_length = 256, pattern = "^(.{16,256})?$", write_only)]
    call_info_secret: Option<String>,
    /// Days that the recordings of its rooms are kept after the session; 0, as when it is left out, is for ever.
    #[schema(minimum = 0, maximum = 36_500)]
    recording_retention_days: Option<i64>,
}

/// What changes of an organisation; what is left out stays as it is. All but the name, the prefixes, the
/// call-info URL with its secret and the retention of recordings is for operators.
#[derive(ToSchema)]
#[expect(dead_code, reason = "says in the document what `change` reads")]
pub(crate) struct OrganisationChangeBody {
    /// Another name.
    #[schema(min_length = 1, max_length = 100)]
    name: Option<String>,
    /// Another domain, while it has no extensions: their passwords belong to the domain.
    #[schema(max_length = 253)]
    sip_domain: Option<String>,
    /// Another currency.
    currency: Option<Currency>,
    /// Another credit, or null for no limit.
    #[schema(extensions(("x-nullable" = json!(true))))]
    credit: Option<Amount>,
    /// Another country, or none.
    #[schema(pattern = "^([1-9][0-9]{0,2})?$")]
    country_code: Option<String>,
    /// Another prefix.
    #[schema(pattern = "^[0-9]{0,5}$")]
    national_prefix: Option<String>,
    /// Another prefix.
    #[schema(pattern = "^[0-9]{1,5}$")]
    international_prefix: Option<String>,
    /// Another limit, or null for none.
    #[schema(minimum = 0, maximum = 1_000_000, extensions(("x-nullable" = json!(true))))]
    max_outbound_calls: Option<i64>,
    /// Another limit, or null for the node's.
    #[schema(minimum = 60, maximum = 86_400, extensions(("x-nullable" = json!(true))))]
    max_call_seconds: Option<i64>,
    /// Another URL, `https` on a public address; empty is none, and the secret goes with it.
    #[schema(max_length = 2048, pattern = "^(https://[^\\s#]+)?$", example = "https://crm.example/sidetone")]
    call_info_url: Option<String>,
    /// Another secret; required with a URL where there is none yet. Empty takes the URL along. Never shown.
    #[schema(max_length = 256, pattern = "^(.{16,256})?$", write_only)]
    call_info_secret: Option<String>,
    /// Another number of days; recordings that are older are deleted within the hour. 0 is for ever.
    #[schema(minimum = 0, maximum = 36_500)]
    recording_retention_days: Option<i64>,
}

const KIND: Kind = Kind { sorts: BY_NAME, organisation_id: true, team_id: false };
const READ_ONLY: &[&str] = &["id", "balance", "has_call_info_secret", "created_at", "updated_at"];

/// List organisations
///
/// Every organisation for an operator, one's own for everybody else.
#[utoipa::path(
    get,
    path = "/organisations",
    operation_id = "listOrganisations",
    tag = "Directory",
    params(ListParams, NameSortParam, listing::OrganisationParam),
    responses((status = 200, description = "The page.", body = Page<OrganisationView<'static>>)),
    extensions(("x-permission" = json!("directory:read"))),
)]
pub(crate) async fn list(
    caller: Caller,
    State(state): State<ApiState>,
    OriginalUri(uri): OriginalUri,
) -> Result<Response, ApiError> {
    caller.require(Permission::DirectoryRead)?;
    let listing = listing::read(&uri, &caller, &KIND)?;
    let Page { items, total, limit, offset } =
        state.directory()?.organisations.list(caller.scope(), &listing).await?;
    let billing = caller.may(Permission::BillingRead);
    let items: Vec<_> = items.iter().map(|organisation| organisation.view(billing)).collect();
    Ok(Json(Page { items, total, limit, offset }).into_response())
}

/// Create an organisation
///
/// For operators.
#[utoipa::path(
    post,
    path = "/organisations",
    operation_id = "createOrganisation",
    tag = "Directory",
    request_body = NewOrganisationBody,
    responses(
        (status = 201, description = "The organisation; `Location` names it.", body = OrganisationView<'static>),
        (status = 409, description = "Another organisation has the name or the domain.", body = ErrorBody),
    ),
    extensions(("x-permission" = json!("organisations:write"))),
)]
pub(crate) async fn create(
    caller: Caller,
    State(state): State<ApiState>,
    body: Body,
) -> Result<Response, ApiError> {
    require_operator(&caller)?;
    let new = body.read(|fields| new_organisation(fields, &state))?;
    let made = state.directory()?.organisations.create(new, (state.clock)()).await?;
    Ok(created("organisations", made.id, made.view(caller.may(Permission::BillingRead))))
}

/// Read an organisation
#[utoipa::path(
    get,
    path = "/organisations/{id}",
    operation_id = "getOrganisation",
    tag = "Directory",
    params(("id" = OrganisationId, Path, description = "The organisation's `id`.")),
    responses((status = 200, description = "The organisation.", body = OrganisationView<'static>)),
    extensions(("x-permission" = json!("directory:read"))),
)]
pub(crate) async fn find(
    caller: Caller,
    State(state): State<ApiState>,
    Path(id): Path<String>,
) -> Result<Response, ApiError> {
    caller.require(Permission::DirectoryRead)?;
    let found = visible(&caller, &state, &id).await?;
    Ok(Json(found.view(caller.may(Permission::BillingRead))).into_response())
}

/// Change an organisation
///
/// A JSON merge patch: what is left out stays as it is. Who is no operator changes the name, the prefixes, the
/// call-info URL with its secret and the retention of recordings of their own organisation. Read-only fields are ignored, so that what was read can be sent back.
#[utoipa::path(
    patch,
    path = "/organisations/{id}",
    operation_id = "changeOrganisation",
    tag = "Directory",
    params(("id" = OrganisationId, Path, description = "The organisation's `id`.")),
    request_body = OrganisationChangeBody,
    responses(
        (status = 200, description = "The whole organisation.", body = OrganisationView<'static>),
        (
            status = 409,
            description = "Another organisation has the name or the domain, or phones have passwords for the domain.",
            body = ErrorBody,
        ),
    ),
    extensions(("x-permission" = json!("organisations:write"))),
)]
pub(crate) async fn change(
    caller: Caller,
    State(state): State<ApiState>,
    Path(id): Path<String>,
    body: Body,
) -> Result<Response, ApiError> {
    caller.require(Permission::OrganisationsWrite)?;
    let before = visible(&caller, &state, &id).await?;
    let change = body.read(|fields| organisation_change(fields, &state))?;
    let for_operators = change.for_operators(&before);
    if caller.scope() != Scope::Everything && !for_operators.is_empty() {
        return Err(ApiError::forbidden(format!("only an operator changes {}", for_operators.join(", "))));
    }
    let organisations = &state.directory()?.organisations;
    let changed = organisations.change(caller.scope(), before.id, change, (state.clock)()).await?;
    Ok(Json(changed.view(caller.may(Permission::BillingRead))).into_response())
}

/// Remove an organisation
///
/// For operators. Its call records stay.
#[utoipa::path(
    delete,
    path = "/organisations/{id}",
    operation_id = "deleteOrganisation",
    tag = "Directory",
    params(("id" = OrganisationId, Path, description = "The organisation's `id`.")),
    responses(
        (status = 204, description = "It is gone."),
        (status = 409, description = "It still owns something; the message names what.", body = ErrorBody),
    ),
    extensions(("x-permission" = json!("organisations:write"))),
)]
pub(crate) async fn delete(
    caller: Caller,
    State(state): State<ApiState>,
    Path(id): Path<String>,
) -> Result<StatusCode, ApiError> {
    require_operator(&caller)?;
    let id = visible(&caller, &state, &id).await?.id;
    state.directory()?.organisations.delete(caller.scope(), id).await?;
    Ok(StatusCode::NO_CONTENT)
}

fn require_operator(caller: &Caller) -> Result<(), ApiError> {
    caller.require(Permission::OrganisationsWrite)?;
    if caller.scope() == Scope::Everything {
        return Ok(());
    }
    Err(ApiError::forbidden("only an operator creates and removes organisations"))
}

/// Returns the organisation in a path if the caller belongs to it.
pub(crate) async fn visible(
    caller: &Caller,
    state: &ApiState,
    id: &str,
) -> Result<OrganisationRecord, ApiError> {
    let id: OrganisationId = page::path_id("id", id)?;
    let found = state.directory()?.organisations.find(id).await?;
    seen(found, "organisation", |found| caller.scope().reaches(found.id))
}

fn new_organisation(fields: &mut Fields, state: &ApiState) -> Option<NewOrganisation> {
    let change = organisation_change(fields, state)?;
    // All present fields of the change were read; what a new one requires in addition is reported here.
    if let Err(FieldProblem { field, message }) = change.require_signed_call_info(false, false) {
        fields.refuse::<()>(&field, message);
    }
    let name = fields.require_given("name", change.name);
    let sip_domain = fields.require_given("sip_domain", change.sip_domain);
    let plain = Numbering::default();
    let call_info = match (change.call_info_url, change.call_info_secret) {
        (Some(url), Some(secret)) if !url.is_empty() => Some(CallInfoTarget { url, secret }),
        _ => None,
    };
    Some(NewOrganisation {
        name: name?,
        sip_domain: sip_domain?,
        currency: change.currency.or_else(|| rules::currency(rules::CURRENCY_DEFAULT).ok())?,
        credit: change.credit.flatten(),
        numbering: Numbering {
            country_code: change.country_code.flatten(),
            national_prefix: change.national_prefix.unwrap_or(plain.national_prefix),
            international_prefix: change.international_prefix.unwrap_or(plain.international_prefix),
        },
        max_outbound_calls: change.max_outbound_calls.flatten(),
        max_call_seconds: change.max_call_seconds.flatten(),
        call_info,
        recording_retention_days: change.recording_retention_days.unwrap_or_default(),
    })
}

fn organisation_change(fields: &mut Fields, state: &ApiState) -> Option<OrganisationChange> {
    let limits = 0..=i64::from(rules::OUTBOUND_CALLS_MAX);
    let country_code = fields.parsed("country_code", rules::country_code);
    let limit = fields.or_null("max_outbound_calls", |fields, name| {
        fields.integer(name, limits).and_then(|limit| u32::try_from(limit).ok())
    });
    let change = OrganisationChange {
        name: fields.parsed("name", rules::name),
        sip_domain: fields.parsed("sip_domain", rules::sip_domain),
        currency: fields.parsed("currency", rules::currency),
        credit: fields.or_null("credit", |fields, name| match fields.amount(name) {
            Some(credit) if credit < Amount::ZERO => fields.refuse(name, "must not be negative"),
            credit => credit,
        }),
        country_code: country_code.map(|code| Some(code).filter(|code| !code.is_empty())),
        national_prefix: fields.parsed("national_prefix", rules::national_prefix),
        international_prefix: fields.parsed("international_prefix", rules::international_prefix),
        max_outbound_calls: limit,
        max_call_seconds: max_call_seconds(fields),
        call_info_url: fields.parsed("call_info_url", |url| match url {
            "" => Ok(String::new()),
            url => state.check_outgoing_url(url).map(|()| url.to_owned()),
        }),
        call_info_secret: fields.parsed("call_info_secret", |secret| match secret {
            "" => Ok(Secret::default()),
            secret => call_info::secret(secret),
        }),
        recording_retention_days: fields
            .integer("recording_retention_days", 0..=i64::from(rules::RETENTION_DAYS_MAX))
            .and_then(|days| u32::try_from(days).ok()),
    };
    fields.read_only(READ_ONLY);
    Some(change)
}
