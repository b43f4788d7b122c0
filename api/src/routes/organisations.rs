//! Organisations: the tenants.

use axum::Json;
use axum::extract::{OriginalUri, Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use sidetone_model::access::{Permission, Scope};
use sidetone_model::call_info::{self, CallInfoTarget};
use sidetone_model::directory::{Numbering, Secret};
use sidetone_model::field_check::StoredRule;
use sidetone_model::ids::OrganisationId;
use sidetone_model::language::Language;
use sidetone_model::money::{Amount, Currency};
use sidetone_model::organisation::{
    NewOrganisation, OrganisationChange, OrganisationRecord, OrganisationView,
};
use sidetone_model::page::Page;
use sidetone_model::problem::FieldProblem;
use sidetone_model::rules;

use crate::auth::Caller;
use crate::body::declare::{checked, integer, nullable, optional, parsed, required};
use crate::body::{Body, Fields, body};
use crate::error::{ApiError, ErrorBody};
use crate::listing::{self, ListParams, NameSortParam, OrganisationParam};
use crate::managed::{created, seen};
use crate::page;
use crate::params::With;
use crate::state::ApiState;

body! {
    /// A new organisation.
    pub(crate) struct NewOrganisationBody(state: &ApiState) {
        /// Unique name.
        #[schema(min_length = 1, max_length = 100)]
        name: String = required(checked(StoredRule::FreeOrganisationName, parsed(rules::name))),
        /// Its phones register as `number@sip_domain`; unique.
        #[schema(max_length = 253, example = "globex.example")]
        sip_domain: String = required(checked(StoredRule::FreeSipDomain, parsed(rules::sip_domain))),
        /// The currency of its amounts; `EUR` by default.
        currency: Option<Currency> = optional(parsed(rules::currency)),
        /// The credit; null, the default, means no limit.
        #[schema(value_type = Option<Amount>, extensions(("x-nullable" = json!(true))))]
        credit: Option<Option<Amount>> = nullable(credit),
        /// The country code; empty, the default, when national numbers are not dialled.
        #[schema(pattern = "^([1-9][0-9]{0,2})?$", example = "44")]
        country_code: Option<String> = optional(parsed(rules::country_code)),
        /// The digits dialled before a national number; `0` by default.
        #[schema(pattern = "^[0-9]{0,5}$")]
        national_prefix: Option<String> = optional(parsed(rules::national_prefix)),
        /// The digits dialled in place of `+`; `00` by default.
        #[schema(pattern = "^[0-9]{1,5}$")]
        international_prefix: Option<String> = optional(parsed(rules::international_prefix)),
        /// The greatest number of simultaneous outbound calls; null, the default, means no limit.
        #[schema(value_type = Option<i64>, minimum = 0, maximum = 1_000_000, extensions(("x-nullable" = json!(true))))]
        max_outbound_calls: Option<Option<u32>> = nullable(integer(0..=rules::OUTBOUND_CALLS_MAX.into())),
        /// The longest duration of an answered call, in seconds; null, the default, uses the node's limit.
        #[schema(value_type = Option<i64>, minimum = 60, maximum = 86_400, extensions(("x-nullable" = json!(true))))]
        max_call_seconds: Option<Option<u32>> = nullable(integer(rules::CALL_SECONDS)),
        /// The URL that the service requests on every answered call for a note to show on the phone: `https` on a
        /// public address. Empty, the default, for none.
        #[schema(max_length = 2048, pattern = "^([Hh][Tt][Tt][Pp][Ss]://[^\\s#]+)?$", example = "https://crm.example/sidetone")]
        call_info_url: Option<String> = optional(parsed(|url| outgoing_url(url, state))),
        /// The signing secret; required with `call_info_url`. Never shown.
        #[schema(value_type = Option<String>, max_length = 256, pattern = "^(.{16,256})?$", write_only, example = "4f1c0a7e9b2d4c68")]
        call_info_secret: Option<Secret> = optional(parsed(secret)),
        /// The secret that signs the callbacks of `POST /calls`. Never shown.
        #[schema(value_type = Option<String>, max_length = 256, pattern = "^(.{16,256})?$", write_only)]
        callback_secret: Option<Secret> = optional(parsed(secret)),
        /// Days that recordings of rooms are kept after the session; 0, the default, means without limit.
        #[schema(value_type = Option<i64>, minimum = 0, maximum = 36_500)]
        recording_retention_days: Option<u32> = optional(integer(0..=rules::RETENTION_DAYS_MAX.into())),
        /// The language of the built-in prompts for callers, `de` or `en`; `en` by default.
        #[schema(value_type = Option<String>, pattern = "^(de|en)$")]
        language: Option<Language> = optional(parsed(rules::language)),
        /// Whether its phones change their own forwarding and do not disturb by dialling star codes; true by default.
        star_codes: Option<bool> = optional(Fields::boolean),
    }
    ignores READ_ONLY;
    checks |fields: &mut Fields| {
        let signed = OrganisationChange {
            call_info_url: call_info_url.clone().flatten(),
            call_info_secret: call_info_secret.clone().flatten(),
            ..OrganisationChange::default()
        };
        check_call_info(fields, &signed, false, false);
    };
}

body! {
    /// Changes of an organisation; omitted fields keep their values. Only operators change other fields than the
    /// name, the prefixes, the call-info URL with its secret, the secret of callbacks, the retention of recordings,
    /// the language, and the star codes.
    pub(crate) struct OrganisationChangeBody(state: &ApiState, stored: &OrganisationRecord) {
        /// The new name.
        #[schema(min_length = 1, max_length = 100)]
        name: Option<String> = optional(checked(StoredRule::FreeOrganisationName, parsed(rules::name))),
        /// The new domain; only while there are no extensions, because their passwords belong to the domain.
        #[schema(max_length = 253)]
        sip_domain: Option<String> = optional(checked(StoredRule::FreeSipDomain, parsed(rules::sip_domain))),
        /// The new currency.
        currency: Option<Currency> = optional(parsed(rules::currency)),
        /// The new credit, or null for no limit.
        #[schema(value_type = Option<Amount>, extensions(("x-nullable" = json!(true))))]
        credit: Option<Option<Amount>> = nullable(credit),
        /// The new country code, or empty for none.
        #[schema(pattern = "^([1-9][0-9]{0,2})?$")]
        country_code: Option<String> = optional(parsed(rules::country_code)),
        /// The new prefix.
        #[schema(pattern = "^[0-9]{0,5}$")]
        national_prefix: Option<String> = optional(parsed(rules::national_prefix)),
        /// The new prefix.
        #[schema(pattern = "^[0-9]{1,5}$")]
        international_prefix: Option<String> = optional(parsed(rules::international_prefix)),
        /// The new limit, or null for none.
        #[schema(value_type = Option<i64>, minimum = 0, maximum = 1_000_000, extensions(("x-nullable" = json!(true))))]
        max_outbound_calls: Option<Option<u32>> = nullable(integer(0..=rules::OUTBOUND_CALLS_MAX.into())),
        /// The new limit, or null for the node's.
        #[schema(value_type = Option<i64>, minimum = 60, maximum = 86_400, extensions(("x-nullable" = json!(true))))]
        max_call_seconds: Option<Option<u32>> = nullable(integer(rules::CALL_SECONDS)),
        /// The new URL, `https` on a public address; empty removes the URL and the secret.
        #[schema(max_length = 2048, pattern = "^([Hh][Tt][Tt][Pp][Ss]://[^\\s#]+)?$", example = "https://crm.example/sidetone")]
        call_info_url: Option<String> = optional(parsed(|url| outgoing_url(url, state))),
        /// The new secret; required with the first URL. Empty removes the secret and the URL. Never shown.
        #[schema(value_type = Option<String>, max_length = 256, pattern = "^(.{16,256})?$", write_only, example = "4f1c0a7e9b2d4c68")]
        call_info_secret: Option<Secret> = optional(parsed(secret)),
        /// The new secret that signs the callbacks of `POST /calls`, also of those that wait to be sent. Empty removes it.
        /// Never shown.
        #[schema(value_type = Option<String>, max_length = 256, pattern = "^(.{16,256})?$", write_only)]
        callback_secret: Option<Secret> = optional(parsed(secret)),
        /// The new number of days; older recordings are deleted within an hour. 0 means without limit.
        #[schema(value_type = Option<i64>, minimum = 0, maximum = 36_500)]
        recording_retention_days: Option<u32> = optional(integer(0..=rules::RETENTION_DAYS_MAX.into())),
        /// The new language of the built-in prompts, `de` or `en`, for callers from now on.
        #[schema(value_type = Option<String>, pattern = "^(de|en)$")]
        language: Option<Language> = optional(parsed(rules::language)),
        /// Whether its phones dial star codes from now on. Without them, the numbers are those of the dial plan.
        star_codes: Option<bool> = optional(Fields::boolean),
    }
    ignores READ_ONLY;
    checks |fields: &mut Fields| {
        let change = OrganisationChange {
            call_info_url: call_info_url.clone().flatten(),
            call_info_secret: call_info_secret.clone().flatten(),
            ..OrganisationChange::default()
        };
        check_call_info(fields, &change, stored.has_call_info_secret, !stored.call_info_url.is_empty());
    };
}

type ListQuery = With<ListParams, With<NameSortParam, OrganisationParam>>;
const READ_ONLY: &[&str] =
    &["id", "balance", "has_call_info_secret", "has_callback_secret", "created_at", "updated_at"];

/// List organisations
///
/// An operator sees all organisations, other callers their own.
#[utoipa::path(
    get,
    path = "/organisations",
    operation_id = "listOrganisations",
    tag = "Directory",
    params(ListQuery),
    responses((status = 200, description = "The page.", body = Page<OrganisationView<'static>>)),
    extensions(("x-permission" = json!("directory:read"))),
)]
pub(crate) async fn list(
    caller: Caller,
    State(state): State<ApiState>,
    OriginalUri(uri): OriginalUri,
) -> Result<Response, ApiError> {
    caller.require(Permission::DirectoryRead)?;
    let listing = listing::read::<ListQuery>(&uri, &caller)?;
    let page = state.directory()?.organisations.list(caller.scope(), &listing).await?;
    let billing = caller.may(Permission::BillingRead);
    Ok(Json(page.as_ref().map(|organisation| organisation.view(billing))).into_response())
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
    let new = body.read_new(&caller, &state, |fields| new_organisation(fields, &state)).await?;
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
/// A JSON merge patch: omitted fields keep their values. Callers who are not operators can change only their own
/// organisation: its name, prefixes, call-info URL with its secret, secret of callbacks, retention of recordings,
/// language, and star codes.
/// Read-only fields are ignored, so that what was read can be sent back.
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
            description = "Another organisation has the name or the domain, or the domain cannot change because extensions exist.",
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
    let read = |fields: &mut Fields| organisation_change(fields, &state, &before);
    let change = body.read_change(&caller, &state, Some(before.id), before.id.0, read).await?;
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
        (status = 204, description = "Removed."),
        (status = 409, description = "It still has resources; the message names them.", body = ErrorBody),
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
    let body = NewOrganisationBody::read(fields, state)?;
    let plain = Numbering::default();
    let call_info = match (body.call_info_url, body.call_info_secret) {
        (Some(url), Some(secret)) if !url.is_empty() => Some(CallInfoTarget { url, secret }),
        _ => None,
    };
    Some(NewOrganisation {
        name: body.name,
        sip_domain: body.sip_domain,
        currency: body.currency.or_else(|| rules::currency(rules::CURRENCY_DEFAULT).ok())?,
        credit: body.credit.flatten(),
        numbering: Numbering {
            country_code: body.country_code.filter(|code| !code.is_empty()),
            national_prefix: body.national_prefix.unwrap_or(plain.national_prefix),
            international_prefix: body.international_prefix.unwrap_or(plain.international_prefix),
        },
        max_outbound_calls: body.max_outbound_calls.flatten(),
        max_call_seconds: body.max_call_seconds.flatten(),
        call_info,
        callback_secret: body.callback_secret.unwrap_or_default(),
        recording_retention_days: body.recording_retention_days.unwrap_or_default(),
        language: body.language.unwrap_or_default(),
        star_codes: body.star_codes.unwrap_or(true),
    })
}

fn organisation_change(
    fields: &mut Fields,
    state: &ApiState,
    stored: &OrganisationRecord,
) -> Option<OrganisationChange> {
    let body = OrganisationChangeBody::read(fields, state, stored)?;
    Some(OrganisationChange {
        name: body.name,
        sip_domain: body.sip_domain,
        currency: body.currency,
        credit: body.credit,
        country_code: body.country_code.map(|code| Some(code).filter(|code| !code.is_empty())),
        national_prefix: body.national_prefix,
        international_prefix: body.international_prefix,
        max_outbound_calls: body.max_outbound_calls,
        max_call_seconds: body.max_call_seconds,
        call_info_url: body.call_info_url,
        call_info_secret: body.call_info_secret,
        callback_secret: body.callback_secret,
        recording_retention_days: body.recording_retention_days,
        language: body.language,
        star_codes: body.star_codes,
    })
}

/// Refuses a call-info URL without its secret, and a secret without its URL.
fn check_call_info(fields: &mut Fields, change: &OrganisationChange, had_secret: bool, had_url: bool) {
    if fields.is_refused("call_info_url") || fields.is_refused("call_info_secret") {
        return;
    }
    if let Err(FieldProblem { field, message }) = change.require_signed_call_info(had_secret, had_url) {
        fields.refuse::<()>(&field, message);
    }
}

fn credit(fields: &mut Fields, name: &'static str) -> Option<Amount> {
    match fields.amount(name)? {
        credit if credit < Amount::ZERO => fields.refuse(name, "must not be negative"),
        credit => Some(credit),
    }
}

/// Reads the URL of a request that this process sends; an empty text means none.
fn outgoing_url(url: &str, state: &ApiState) -> Result<String, String> {
    if url.is_empty() { Ok(String::new()) } else { state.check_outgoing_url(url).map(|()| url.to_owned()) }
}

/// Reads the signing secret; an empty text means none.
fn secret(secret: &str) -> Result<Secret, rules::Rule> {
    if secret.is_empty() { Ok(Secret::default()) } else { call_info::secret(secret) }
}
