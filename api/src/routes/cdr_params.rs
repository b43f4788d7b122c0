//! The query of the call log for the API document; `cdr_query` reads it.
#![expect(
    dead_code,
    reason = "described, never made: the reader names every wrong field, which no derived one does"
)]

use sidetone_model::call::{Direction, Transport};
use sidetone_model::ids::{AgentId, CampaignId, ExtensionId, NodeId, OrganisationId, TeamId, TrunkId};
use sidetone_model::quality::MediaVerdict;
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{AnyOfBuilder, KnownFormat, ObjectBuilder, Schema, SchemaFormat, Type};
use utoipa::{IntoParams, PartialSchema, ToSchema};

/// The filters.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct CdrFilterParams {
    /// The extension the call was on.
    extension_id: Option<ExtensionId>,
    /// Part of the number dialled, in any case; `%` and `_` match literally. For an inbound call this is the DID it
    /// arrived on; it also matches outbound calls to that number, so combine with `direction=inbound` for arrivals
    /// only.
    #[param(max_length = 1000)]
    did: Option<String>,
    /// Calls placed by one campaign.
    campaign_id: Option<CampaignId>,
    /// Started at this instant or later: an RFC 3339 timestamp, or `YYYY-MM-DD` for its midnight in UTC.
    #[param(inline, example = "2026-01-31")]
    from: Option<Bound>,
    /// Started before this instant; same formats.
    #[param(inline, example = "2026-02-01T00:00:00Z")]
    to: Option<Bound>,
    /// The team of the record.
    team_id: Option<TeamId>,
    /// The agent of the record.
    agent_id: Option<AgentId>,
    /// Where the call came from and went to.
    direction: Option<Direction>,
    /// What carried the call.
    transport: Option<Transport>,
    /// Why the caller's leg ended, exactly; a name that is not known matches nothing.
    #[param(max_length = 1000, example = "USER_BUSY")]
    hangup_cause: Option<String>,
    /// The verdict on the caller's leg.
    media_verdict: Option<MediaVerdict>,
    /// The verdict on the called party's leg.
    media_verdict_b: Option<MediaVerdict>,
    /// `true`: only transcoded calls; `false`: only the others.
    transcoded: Option<bool>,
    /// The trunk that carried the outside leg.
    trunk_id: Option<TrunkId>,
    /// Billed at least this many seconds.
    #[param(minimum = 0)]
    min_billsec: Option<i64>,
    /// The switch node that carried the call.
    node_id: Option<NodeId>,
    /// One organisation; outside the caller's scope answers 403.
    organisation_id: Option<OrganisationId>,
    /// Free text, in any case, over the numbers and the cause of a record; `%` and `_` match themselves.
    #[param(max_length = 1000)]
    q: Option<String>,
}

/// The part of the list, and its order.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct CdrPageParams {
    /// How many records at most.
    #[param(minimum = 1, maximum = 500, default = 50)]
    limit: Option<i32>,
    /// How many records to skip.
    #[param(minimum = 0, default = 0)]
    offset: Option<i64>,
    /// Sorted by what; records without a value come last, and `call_uuid` decides between equals.
    #[param(inline)]
    sort: Option<CdrSortKey>,
    /// Which way; `desc` unless given.
    #[param(inline)]
    order: Option<OrderKey>,
}

/// How an export is written.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct CdrExportParams {
    /// `csv` is RFC 4180 with a header row, `ndjson` one record a line. A build with the feature `parquet` knows
    /// `parquet` too, a columnar file; others answer 400.
    #[param(inline)]
    format: Option<FormatKey>,
    /// An export is sorted by `started_at` alone.
    #[param(inline)]
    sort: Option<ExportSortKey>,
    /// Which way; `desc` unless given.
    #[param(inline)]
    order: Option<OrderKey>,
}

/// A file of bytes that are no text.
#[derive(ToSchema)]
#[schema(value_type = String, format = Binary)]
pub(crate) struct Binary(Vec<u8>);

/// A date or an instant.
pub(crate) struct Bound;

impl PartialSchema for Bound {
    fn schema() -> RefOr<Schema> {
        let text = |format| {
            let format = Some(SchemaFormat::KnownFormat(format));
            ObjectBuilder::new().schema_type(Type::String).format(format)
        };
        let either = AnyOfBuilder::new().item(text(KnownFormat::Date)).item(text(KnownFormat::DateTime));
        RefOr::T(Schema::AnyOf(either.build()))
    }
}

impl ToSchema for Bound {}

/// Sort keys.
#[derive(ToSchema)]
#[schema(rename_all = "snake_case", default = "started_at")]
enum CdrSortKey {
    Billsec,
    CallerNumber,
    DestinationNumber,
    Direction,
    EndedAt,
    SellAmount,
    StartedAt,
}

/// Directions of a sort.
#[derive(ToSchema)]
#[schema(rename_all = "snake_case")]
enum OrderKey {
    Asc,
    Desc,
}

/// File formats.
#[derive(ToSchema)]
#[schema(rename_all = "snake_case", default = "csv")]
enum FormatKey {
    Csv,
    Ndjson,
    #[cfg(feature = "parquet")]
    Parquet,
}

/// Sort keys of an export.
#[derive(ToSchema)]
#[schema(rename_all = "snake_case")]
enum ExportSortKey {
    StartedAt,
}
