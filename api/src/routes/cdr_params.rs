//! The parameters of the call log; `cdr_query` converts them to queries.

use serde::Deserialize;
use sidetone_model::call::{BillingMode, Direction, Transport};
use sidetone_model::call_log::CdrSort;
use sidetone_model::cursor::Cursor;
use sidetone_model::directory::Network;
use sidetone_model::ids::{
    AgentId, CampaignId, ExtensionId, NodeId, OrganisationId, RoomId, TeamId, TrunkId,
};
use sidetone_model::quality::{Hundredths, MediaVerdict};
use sidetone_model::time::Timestamp;
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{AnyOfBuilder, KnownFormat, ObjectBuilder, Schema, SchemaFormat, Type};
use utoipa::{PartialSchema, ToSchema};

use crate::page::{self, Wrong};
use crate::params::{query, word};

query! {
    /// The filters.
    pub(crate) struct CdrFilterParams {
        /// The extension that called or was called: also its missed calls from other extensions.
        extension_id: ExtensionId = page::id,
        /// Part of the number dialled, in any case; `%` and `_` match literally. For an inbound call this is the DID it
        /// arrived on; it also matches outbound calls to that number, so combine with `direction=inbound` for arrivals
        /// only.
        #[param(max_length = 1000)]
        did: String = page::text,
        /// Calls placed by one campaign.
        campaign_id: CampaignId = page::id,
        /// Started at this instant or later: an RFC 3339 timestamp, or `YYYY-MM-DD` for its midnight in UTC.
        #[param(value_type = Option<Bound>, inline, example = "2026-01-31")]
        from: Timestamp = page::bound,
        /// Started before this instant; same formats.
        #[param(value_type = Option<Bound>, inline, example = "2026-02-01T00:00:00Z")]
        to: Timestamp = page::bound,
        /// The team of the record.
        team_id: TeamId = page::id,
        /// The text that the program gave when it requested the call, whole.
        #[param(max_length = 1000, example = "ticket-4711")]
        reference: String = page::text,
        /// The agent of the record.
        agent_id: AgentId = page::id,
        /// The direction of the call.
        direction: Direction = direction,
        /// The transport of the call.
        transport: Transport = transport,
        /// Whether the call has a price.
        billing_mode: BillingMode = billing_mode,
        /// The conference room that a party of the call was in, whichever way it came there.
        room_id: RoomId = page::id,
        /// The hangup cause of the caller's leg, exactly; an unknown name matches nothing.
        #[param(max_length = 1000, example = "USER_BUSY")]
        hangup_cause: String = page::text,
        /// The verdict on the caller's leg.
        media_verdict: MediaVerdict = verdict,
        /// The verdict on the called party's leg.
        media_verdict_b: MediaVerdict = verdict,
        /// The `mos` of the record is at most this; records without one are left out.
        #[param(value_type = Option<f64>, minimum = 1, maximum = 5, example = 3.5)]
        mos_max: Hundredths = mos,
        /// `true`: only transcoded calls; `false`: only the others.
        transcoded: bool = page::boolean,
        /// The trunk that carried the outside leg.
        trunk_id: TrunkId = page::id,
        /// The User-Agent of a party: a `user_agent_a` or `user_agent_b`, whole. It needs `from`.
        #[param(max_length = 1000, example = "Example Phone 7.1")]
        user_agent: String = page::text,
        /// Billed at least this many seconds.
        #[param(value_type = Option<i64>, minimum = 0)]
        min_billsec: u64 = page::count,
        /// The network of a party: a `network_a` or `network_b`, such as `192.0.2.0/24`. It needs `from`.
        #[param(value_type = Option<String>, max_length = 64, example = "192.0.2.0/24")]
        network: Network = network,
        /// The switch node that carried the call.
        node_id: NodeId = page::id,
        /// One organisation; 403 outside the caller's scope.
        organisation_id: OrganisationId = page::id,
        /// Searches the numbers and the cause of a record, ignoring case; `%` and `_` match literally.
        #[param(max_length = 1000)]
        q: String = page::text,
    }
}

query! {
    /// The part of the list, and its order.
    pub(crate) struct CdrPageParams {
        /// Records on a page.
        #[param(value_type = Option<i32>, minimum = 1, maximum = 500, default = 50)]
        limit: u32 = page::limit,
        /// Records to skip.
        #[param(value_type = Option<i64>, minimum = 0, default = 0)]
        offset: u64 = page::count,
        /// Pages by cursor in place of offsets: empty for the first page, then the `next_cursor` of the page before, with the
        /// same other parameters.
        #[param(value_type = Option<String>, max_length = 4096)]
        cursor: Cursor = page::cursor,
        /// Sort key; records without a value come last, equal values are sorted by `call_uuid`.
        #[param(inline)]
        sort: CdrSort = sort,
        /// Sort direction; `desc` by default.
        #[param(inline)]
        order: OrderKey = word,
    }
}

query! {
    /// How an export is written.
    pub(crate) struct CdrExportParams {
        /// `csv` is RFC 4180 with a header row, `ndjson` one record per line. `parquet`, a columnar file, needs a
        /// build with the feature `parquet`; other builds answer 400.
        #[param(inline)]
        format: Format = format,
        /// An export is always sorted by `started_at`.
        #[param(inline)]
        sort: ExportSortKey = export_sort,
        /// Sort direction; `desc` by default.
        #[param(inline)]
        order: OrderKey = word,
    }
}

/// A binary file.
pub(crate) struct Binary;

impl PartialSchema for Binary {
    fn schema() -> RefOr<Schema> {
        let format = Some(SchemaFormat::KnownFormat(KnownFormat::Binary));
        let bytes = ObjectBuilder::new().schema_type(Type::String).format(format);
        RefOr::T(Schema::Object(bytes.description(Some("A binary file.")).build()))
    }
}

impl ToSchema for Binary {}

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

/// Directions of a sort.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum OrderKey {
    Asc,
    Desc,
}

/// File formats.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(default = "csv")]
pub(crate) enum Format {
    /// RFC 4180.
    Csv,
    /// One JSON object a line.
    Ndjson,
    /// Apache Parquet, a columnar file.
    #[cfg(feature = "parquet")]
    Parquet,
}

/// Sort keys of an export.
#[derive(Debug, ToSchema)]
#[schema(rename_all = "snake_case")]
pub(crate) enum ExportSortKey {
    StartedAt,
}

fn direction(value: &str) -> Result<Direction, Wrong> {
    Direction::from_name(value).ok_or_else(|| "must be one of inbound, outbound, internal".to_owned())
}

fn billing_mode(value: &str) -> Result<BillingMode, Wrong> {
    BillingMode::from_name(value).ok_or_else(|| "must be one of free, rated".to_owned())
}

/// Reads a limit of mean opinion scores. Scores have two decimals, so further decimals of the limit have no effect.
fn mos(value: &str) -> Result<Hundredths, Wrong> {
    let plain = value.len() <= 32 && value.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    let mos = value.parse::<f64>().ok().filter(|mos| plain && (1.0..=5.0).contains(mos));
    // In binary, 3.55 is a little less than 355 hundredths.
    mos.map(|mos| Hundredths((mos * 100.0 + 1e-9).floor() as i64))
        .ok_or_else(|| "must be a number from 1 to 5, such as 3.5".to_owned())
}

fn network(value: &str) -> Result<Network, Wrong> {
    value.parse().map_err(|_| "must be a network such as 192.0.2.0/24 or 2001:db8:1:2::/64".to_owned())
}

fn transport(value: &str) -> Result<Transport, Wrong> {
    Transport::from_name(value).ok_or_else(|| "must be one of node, sip, whatsapp".to_owned())
}

fn verdict(value: &str) -> Result<MediaVerdict, Wrong> {
    MediaVerdict::from_name(value).ok_or_else(|| {
        let known = MediaVerdict::ALL.map(|(_, name)| name).join(", ");
        format!("unknown verdict '{}', must be one of {known}", page::shown(value))
    })
}

fn sort(value: &str) -> Result<CdrSort, Wrong> {
    CdrSort::from_name(value).ok_or_else(|| {
        let known = CdrSort::ALL.map(|(_, name)| name).join(", ");
        format!("unknown key '{}', must be one of {known}", page::shown(value))
    })
}

/// With any other key the database would sort all records for each piece that is read.
fn export_sort(value: &str) -> Result<ExportSortKey, Wrong> {
    match sort(value)? {
        CdrSort::StartedAt => Ok(ExportSortKey::StartedAt),
        _ => Err("an export is always sorted by started_at".to_owned()),
    }
}

fn format(value: &str) -> Result<Format, Wrong> {
    word(value).map_err(|_| match value {
        "parquet" => "this build has no parquet, must be csv or ndjson; a build with --features parquet \
                      writes it"
            .to_owned(),
        _ => "must be one of csv, ndjson, parquet".to_owned(),
    })
}
