//! Trunks: carriers and peers.

use axum::Json;
use axum::extract::{OriginalUri, Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use sidetone_model::access::{Permission, Scope};
use sidetone_model::directory::{Network, Secret, Srtp, StrictSource, Video};
use sidetone_model::field_check::StoredRule;
use sidetone_model::ids::{OrganisationId, TrunkId};
use sidetone_model::page::Page;
use sidetone_model::problem::FieldProblem;
use sidetone_model::trunk::{NewTrunk, TrunkChange, TrunkRecord, TrunkView, beyond_owner, require_possible};
use sidetone_model::trunk_interop::{InboundNumbers, OutboundNumbers, TrunkInterop, TrunkInteropChange};
use sidetone_model::trunk_status::TrunkStatus;
use sidetone_model::{rules, trunk_rules};

use crate::auth::Caller;
use crate::body::declare::{checked, id_of, integer, nullable, optional, parsed, texts};
use crate::body::{Body, Fields, body};
use crate::error::{ApiError, ErrorBody};
use crate::listing::{self, ListParams, NameSortParam, OrganisationParam};
use crate::managed::{created, seen};
use crate::page;
use crate::params::With;
use crate::state::ApiState;

body! {
    /// A trunk. To create one, send all required fields; to change one, only the changed fields.
    pub(crate) struct TrunkBody(whole: Whole<'_>) {
        /// The organisation that uses it; the caller's organisation by default. Null is a trunk that all
        /// organisations share, which only an operator creates.
        #[schema(value_type = Option<String>, format = Uuid, extensions(("x-nullable" = json!(true))))]
        organisation_id: Option<Option<OrganisationId>> = nullable(id_of(StoredRule::Organisation)),
        /// Unique name; required for a new trunk.
        #[schema(min_length = 1, max_length = 100, example = "carrier")]
        name: Option<String> = optional(checked(StoredRule::FreeTrunkName, parsed(rules::name))),
        /// Where outbound calls are sent, such as `sip:carrier.example:5060`; empty for inbound only. Callers who are
        /// not operators must name a public address. A carrier is shared or belongs to one organisation: another
        /// organisation's carrier is refused.
        #[schema(value_type = Option<String>, example = "sip:192.0.2.20:5060")]
        address: Option<Option<String>> = optional(parsed(server_address)),
        /// The networks that its inbound calls come from. A network belongs to one tenant. Callers who are not
        /// operators must name public networks of 24 bits or more (IPv6: 48).
        #[schema(value_type = Option<Vec<String>>, max_items = 64, example = json!(["192.0.2.0/24"]))]
        accept_from: Option<Vec<Network>> = optional(texts(0..=rules::NETWORKS_MAX, rules::network)),
        /// Trunks with a lower priority are tried first; 10 by default.
        #[schema(value_type = Option<i64>, minimum = 0, maximum = 65535)]
        priority: Option<u16> = optional(integer(0..=u16::MAX.into())),
        /// Our user name at the carrier; may be empty.
        #[schema(max_length = 128)]
        username: Option<String> = optional(parsed(rules::trunk_identity)),
        /// The password of `username`; without it, challenges are not answered. Never shown.
        #[schema(max_length = 128, write_only)]
        password: Option<String> = optional(parsed(rules::trunk_password)),
        /// The only realm that gets our credentials; when empty, the realm in the challenge of the trunk's own
        /// address.
        #[schema(max_length = 128)]
        realm: Option<String> = optional(parsed(rules::trunk_identity)),
        /// Whether the switch registers at the carrier; needs an address and a username.
        register: Option<bool> = optional(Fields::boolean),
        /// Numbers that are sent exactly as dialled, such as `112`.
        #[schema(max_items = 64)]
        short_numbers: Option<Vec<String>> = optional(texts(0..=rules::SHORT_NUMBERS_MAX, rules::short_number)),
        /// Which source addresses of media are accepted; null, the default of a new one, uses the node's setting.
        #[schema(value_type = Option<String>, pattern = "^(any|sdp|signalling)$", extensions(("x-nullable" = json!(true))))]
        strict_source: Option<Option<StrictSource>> = nullable(parsed(rules::strict_source)),
        /// Whether media is encrypted by SRTP; `off` by default.
        #[schema(value_type = Option<String>, pattern = "^(off|optional|required)$")]
        srtp: Option<Srtp> = optional(parsed(rules::trunk_srtp)),
        /// Whether video is relayed (`pass`) or refused; `off` by default.
        #[schema(value_type = Option<String>, pattern = "^(off|pass)$")]
        video: Option<Video> = optional(parsed(rules::video)),
        /// The longest duration of an answered call over the trunk, in seconds; null, the default, uses the limit of
        /// the organisation or the node.
        #[schema(value_type = Option<i64>, minimum = 60, maximum = 86_400, extensions(("x-nullable" = json!(true))))]
        max_call_seconds: Option<Option<u32>> = nullable(integer(rules::CALL_SECONDS)),
        /// Further servers of the carrier, tried in order after `address` when it does not answer or answers 503. Calls
        /// from all of them are inbound calls of the trunk.
        #[schema(max_items = 8, example = json!(["sip:b.carrier.example"]))]
        backup_addresses: Option<Vec<String>> =
            optional(texts(0..=trunk_rules::BACKUP_ADDRESSES_MAX, rules::trunk_address)),
        /// The server that every request is sent to, such as `sip:proxy.example:5060`; `address` stays in the
        /// Request-URI. Empty, the default, sends to `address`.
        #[schema(value_type = Option<String>)]
        outbound_proxy: Option<Option<String>> = optional(parsed(server_address)),
        /// The domain in From and P-Asserted-Identity, and of our account where the switch registers. Empty, the default,
        /// is the host of `address`.
        #[schema(max_length = 253)]
        from_domain: Option<String> = optional(parsed(trunk_rules::from_domain)),
        /// The country whose national numbers the carrier writes, such as `44`. Empty, the default, if it writes none.
        #[schema(max_length = 3)]
        country_code: Option<String> = optional(parsed(rules::country_code)),
        /// The prefix of a national number that is not part of it; `0` by default.
        #[schema(max_length = 5)]
        national_prefix: Option<String> = optional(parsed(rules::national_prefix)),
        /// How digits without `+` and `00` are read: with a country code unless they begin with the national prefix
        /// (`international`, the default), or as a national number with or without its prefix (`national`).
        #[schema(value_type = Option<String>, pattern = "^(international|national)$")]
        inbound_numbers: Option<InboundNumbers> = optional(parsed(trunk_rules::inbound_numbers)),
        /// How numbers are written to the carrier: `+4420…` (`e164`, the default), `4420…` (`digits`), `004420…`
        /// (`prefixed`), or `020…` for those of the trunk's country and `00…` for others (`national`).
        #[schema(value_type = Option<String>, pattern = "^(digits|e164|national|prefixed)$")]
        outbound_numbers: Option<OutboundNumbers> = optional(parsed(trunk_rules::outbound_numbers)),
        /// The codecs of its calls, in order of preference; empty, the default, for every codec.
        #[schema(max_items = 14, example = json!(["PCMA", "PCMU"]))]
        codecs: Option<Vec<String>> =
            optional(texts(0..=trunk_rules::CODECS_MAX, trunk_rules::codec_of_list())),
        /// Further headers of INVITEs to the carrier, such as `X-Account: 42`; none that the switch writes itself.
        #[schema(max_items = 16, example = json!(["X-Account: 42"]))]
        headers: Option<Vec<String>> = optional(texts(0..=trunk_rules::HEADERS_MAX, trunk_rules::header)),
        /// Seconds after which a call that the carrier only answered with 100 goes on to the next server or trunk, if there
        /// is one; 20 by default.
        #[schema(value_type = Option<i64>, minimum = 5, maximum = 120)]
        progress_seconds: Option<u32> = optional(integer(trunk_rules::PROGRESS_SECONDS)),
        /// The interval of OPTIONS to each address of the carrier, in seconds: 10 to 3600, or 0, the default, for none. The
        /// results are in `GET /trunks/{id}/status`.
        #[schema(value_type = Option<i64>, minimum = 0, maximum = 3600)]
        qualify_seconds: Option<u32> = optional(integer(trunk_rules::QUALIFY_SECONDS)),
        /// Whether the carrier may transfer an extension that it talks to, by REFER to a number that the extension can dial,
        /// at the cost of the organisation; false by default.
        transfers: Option<bool> = optional(Fields::boolean),
    }
    ignores READ_ONLY;
    checks |fields: &mut Fields| {
        let change = TrunkChange {
            address: address.clone().flatten(),
            accept_from: accept_from.clone().flatten(),
            username: username.clone().flatten(),
            register: register.flatten(),
            interop: TrunkInteropChange {
                backup_addresses: backup_addresses.clone().flatten(),
                outbound_proxy: outbound_proxy.clone().flatten(),
                country_code: country_code.clone().flatten(),
                inbound_numbers: inbound_numbers.flatten(),
                outbound_numbers: outbound_numbers.flatten(),
                qualify_seconds: qualify_seconds.flatten(),
                ..TrunkInteropChange::default()
            },
            ..TrunkChange::default()
        };
        whole.check(fields, change);
    };
}

/// The complete trunk that a body changes, and whether the caller is an operator.
#[derive(Clone, Copy)]
pub(crate) struct Whole<'a> {
    /// `None` for a new trunk.
    stored: Option<&'a TrunkRecord>,
    is_operator: bool,
}

impl Whole<'_> {
    /// Refuses settings that do not fit together, unless one of them was already refused itself.
    fn check(self, fields: &mut Fields, change: TrunkChange) {
        let stored = self.stored;
        let address = change.address.unwrap_or_else(|| stored.and_then(|trunk| trunk.address.clone()));
        let register = change.register.unwrap_or_else(|| stored.is_some_and(|trunk| trunk.register));
        let username = stored.map(|trunk| trunk.username.clone()).unwrap_or_default();
        let username = change.username.unwrap_or(username);
        let interop = stored.map(|trunk| trunk.interop.clone()).unwrap_or_default().changed(change.interop);
        let address = address.as_deref();
        let wrong = interop.wrong_together(address).into_iter();
        let wrong = wrong.chain(require_possible(register, address, &username).err());
        let tenants = (!self.is_operator).then(|| {
            let kept = stored.map(|trunk| trunk.accept_from.clone()).unwrap_or_default();
            beyond_owner(stored, address, &interop, &change.accept_from.unwrap_or(kept))
        });
        let wrong: Vec<FieldProblem> = wrong.chain(tenants.into_iter().flatten()).collect();
        for FieldProblem { field, message } in wrong {
            let depends = |name: &&str| message.contains(*name) && fields.is_refused(name);
            if !fields.is_refused(&field) && !["address", "country_code", "username"].iter().any(depends) {
                fields.refuse::<()>(&field, message);
            }
        }
    }
}

type ListQuery = With<ListParams, With<NameSortParam, OrganisationParam>>;
const READ_ONLY: &[&str] = &["id", "has_password", "created_at", "updated_at"];

/// List trunks
///
/// A page of the trunks that the caller manages, by name by default. Shared trunks belong to the operator.
#[utoipa::path(
    get,
    path = "/trunks",
    operation_id = "listTrunks",
    tag = "Trunks",
    params(ListQuery),
    responses((status = 200, description = "The page.", body = Page<TrunkView<'static>>)),
    extensions(("x-permission" = json!("trunks:write"))),
)]
pub(crate) async fn list(
    caller: Caller,
    State(state): State<ApiState>,
    OriginalUri(uri): OriginalUri,
) -> Result<Response, ApiError> {
    caller.require(Permission::TrunksWrite)?;
    let listing = listing::read::<ListQuery>(&uri, &caller)?;
    let page = state.directory()?.trunks.list(caller.scope(), &listing).await?;
    Ok(Json(page.as_ref().map(TrunkRecord::view)).into_response())
}

/// Create a trunk
#[utoipa::path(
    post,
    path = "/trunks",
    operation_id = "createTrunk",
    tag = "Trunks",
    request_body = TrunkBody,
    responses(
        (status = 201, description = "The trunk; `Location` names it.", body = TrunkView<'static>),
        (
            status = 409,
            description = "Another trunk has the name, or a trunk of another organisation uses the carrier or one of the networks.",
            body = ErrorBody,
        ),
    ),
    extensions(("x-permission" = json!("trunks:write"))),
)]
pub(crate) async fn create(
    caller: Caller,
    State(state): State<ApiState>,
    body: Body,
) -> Result<Response, ApiError> {
    caller.require(Permission::TrunksWrite)?;
    let whole = Whole { stored: None, is_operator: caller.scope() == Scope::Everything };
    let (owner, mut new) = body.read_new(&caller, &state, |fields| new_trunk(fields, whole)).await?;
    new.organisation_id = match owner {
        Some(None) => None,
        Some(named) => Some(caller.organisation(named)?),
        None => Some(caller.organisation(None)?),
    };
    require_own(&caller, new.organisation_id)?;
    let trunk = state.directory()?.trunks.create(caller.scope(), new, (state.clock)()).await?;
    Ok(created("trunks", trunk.id, trunk.view()))
}

/// Read a trunk
#[utoipa::path(
    get,
    path = "/trunks/{id}",
    operation_id = "getTrunk",
    tag = "Trunks",
    params(("id" = TrunkId, Path, description = "The trunk's `id`.")),
    responses((status = 200, description = "The trunk.", body = TrunkView<'static>)),
    extensions(("x-permission" = json!("trunks:write"))),
)]
pub(crate) async fn find(
    caller: Caller,
    State(state): State<ApiState>,
    Path(id): Path<String>,
) -> Result<Response, ApiError> {
    caller.require(Permission::TrunksWrite)?;
    Ok(Json(visible(&caller, &state, &id).await?.view()).into_response())
}

/// Read the state of a trunk
///
/// The registration, the live calls, the addresses and the last refusals of a trunk at the node that is asked.
#[utoipa::path(
    get,
    path = "/trunks/{id}/status",
    operation_id = "getTrunkStatus",
    tag = "Trunks",
    params(("id" = TrunkId, Path, description = "The trunk's `id`.")),
    responses(
        (status = 200, description = "The state.", body = TrunkStatus),
        (status = 503, description = "The switch is overloaded (`node_busy`).", body = ErrorBody),
    ),
    extensions(("x-permission" = json!("trunks:write"))),
)]
pub(crate) async fn status(
    caller: Caller,
    State(state): State<ApiState>,
    Path(id): Path<String>,
) -> Result<Json<TrunkStatus>, ApiError> {
    caller.require(Permission::TrunksWrite)?;
    let id = visible(&caller, &state, &id).await?.id;
    let found = state.trunk_statuses()?.find(id).await?;
    found
        .map(Json)
        .ok_or_else(|| ApiError::not_found("the switch has not read the trunk yet; ask again in a second"))
}

/// Change a trunk
///
/// A JSON merge patch: omitted fields keep their values. Read-only fields are ignored, so that a resource can be sent
/// back as it was read.
#[utoipa::path(
    patch,
    path = "/trunks/{id}",
    operation_id = "changeTrunk",
    tag = "Trunks",
    params(("id" = TrunkId, Path, description = "The trunk's `id`.")),
    request_body = TrunkBody,
    responses(
        (status = 200, description = "The whole trunk.", body = TrunkView<'static>),
        (
            status = 409,
            description = "Another trunk has the name, or a trunk of another organisation uses the carrier or one of the networks.",
            body = ErrorBody,
        ),
    ),
    extensions(("x-permission" = json!("trunks:write"))),
)]
pub(crate) async fn change(
    caller: Caller,
    State(state): State<ApiState>,
    Path(id): Path<String>,
    body: Body,
) -> Result<Response, ApiError> {
    caller.require(Permission::TrunksWrite)?;
    let stored = visible(&caller, &state, &id).await?;
    let id = stored.id;
    let whole = Whole { stored: Some(&stored), is_operator: caller.scope() == Scope::Everything };
    let read = |fields: &mut Fields| trunk_change(fields, whole);
    let change = body.read_change(&caller, &state, stored.organisation_id, id.0, read).await?;
    if let Some(owner) = change.organisation_id {
        require_own(&caller, owner)?;
    }
    let trunk = state.directory()?.trunks.change(caller.scope(), id, change, (state.clock)()).await?;
    Ok(Json(trunk.view()).into_response())
}

/// Remove a trunk
#[utoipa::path(
    delete,
    path = "/trunks/{id}",
    operation_id = "deleteTrunk",
    tag = "Trunks",
    params(("id" = TrunkId, Path, description = "The trunk's `id`.")),
    responses(
        (status = 204, description = "Removed."),
        (status = 409, description = "It still has rates.", body = ErrorBody),
    ),
    extensions(("x-permission" = json!("trunks:write"))),
)]
pub(crate) async fn delete(
    caller: Caller,
    State(state): State<ApiState>,
    Path(id): Path<String>,
) -> Result<StatusCode, ApiError> {
    caller.require(Permission::TrunksWrite)?;
    let id = visible(&caller, &state, &id).await?.id;
    state.directory()?.trunks.delete(caller.scope(), id).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Only the operator may change a trunk that all organisations share.
fn require_own(caller: &Caller, owner: Option<OrganisationId>) -> Result<(), ApiError> {
    match owner {
        None if caller.scope() != Scope::Everything => {
            Err(ApiError::forbidden("only an operator manages shared trunks"))
        }
        owner => caller.narrow(owner),
    }
}

async fn visible(caller: &Caller, state: &ApiState, id: &str) -> Result<TrunkRecord, ApiError> {
    let id: TrunkId = page::path_id("id", id)?;
    let found = state.directory()?.trunks.find(id).await?;
    let scope = caller.scope();
    seen(found, "trunk", |found| match found.organisation_id {
        None => scope == Scope::Everything,
        Some(owner) => scope.covers(owner, None),
    })
}

fn new_trunk(fields: &mut Fields, whole: Whole<'_>) -> Option<(Option<Option<OrganisationId>>, NewTrunk)> {
    let change = trunk_change(fields, whole)?;
    let name = fields.require_given("name", change.name);
    let new = NewTrunk {
        // The handler sets the caller's organisation.
        organisation_id: None,
        name: name?,
        address: change.address.flatten(),
        accept_from: change.accept_from.unwrap_or_default(),
        priority: change.priority.unwrap_or(rules::PRIORITY_DEFAULT),
        username: change.username.unwrap_or_default(),
        password: change.password.unwrap_or_default(),
        realm: change.realm.unwrap_or_default(),
        register: change.register.unwrap_or_default(),
        short_numbers: change.short_numbers.unwrap_or_default(),
        strict_source: change.strict_source.flatten(),
        srtp: change.srtp.unwrap_or(Srtp::Off),
        video: change.video.unwrap_or(Video::Off),
        max_call_seconds: change.max_call_seconds.flatten(),
        interop: TrunkInterop::default().changed(change.interop),
    };
    Some((change.organisation_id, new))
}

fn trunk_change(fields: &mut Fields, whole: Whole<'_>) -> Option<TrunkChange> {
    let body = TrunkBody::read(fields, whole)?;
    Some(TrunkChange {
        organisation_id: body.organisation_id,
        name: body.name,
        address: body.address,
        accept_from: body.accept_from,
        priority: body.priority,
        username: body.username,
        password: body.password.map(Secret),
        realm: body.realm,
        register: body.register,
        short_numbers: body.short_numbers,
        strict_source: body.strict_source,
        srtp: body.srtp,
        video: body.video,
        max_call_seconds: body.max_call_seconds,
        interop: TrunkInteropChange {
            backup_addresses: body.backup_addresses,
            outbound_proxy: body.outbound_proxy,
            from_domain: body.from_domain,
            country_code: body.country_code,
            national_prefix: body.national_prefix,
            inbound_numbers: body.inbound_numbers,
            outbound_numbers: body.outbound_numbers,
            codecs: body.codecs,
            headers: body.headers,
            progress_seconds: body.progress_seconds,
            qualify_seconds: body.qualify_seconds,
            transfers: body.transfers,
        },
    })
}

/// Reads the address of a trunk; an empty text means none.
fn server_address(text: &str) -> Result<Option<String>, rules::Rule> {
    if text.is_empty() { Ok(None) } else { rules::trunk_address(text).map(Some) }
}
