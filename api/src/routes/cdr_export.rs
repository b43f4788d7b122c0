//! The call log as a file: read and written in pieces, as fast as the caller takes them.
//!
//! Between two pieces no connection and no snapshot is held: a slow caller costs one piece of memory and
//! blocks nothing in the database.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{OriginalUri, State};
use axum::http::HeaderValue;
use axum::http::header::{CONTENT_DISPOSITION, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use serde_json::Value;
use sidetone_model::access::{Permission, Scope};
use sidetone_model::call_log::CdrPlace;
use sidetone_model::cdr::Cdr;
use sidetone_model::csv;
use sidetone_model::ports::CdrLog;
use sidetone_model::problem::{FieldProblem, Problem};

use crate::auth::Caller;
use crate::error::ApiError;
use crate::routes::cdr_params::{Binary, Format};
#[cfg(feature = "parquet")]
use crate::routes::cdr_parquet::CdrParquet;
use crate::routes::cdr_query::{self, ExportParams, ExportQuery};
use crate::state::ApiState;

/// Export call records
///
/// All records that match the filters, as one file of at most 1,000,000 records.
#[utoipa::path(
    get,
    path = "/cdrs/export",
    operation_id = "exportCdrs",
    tag = "Call log",
    params(ExportParams),
    responses((
        status = 200,
        description = "The file. If the connection ends before the body does, the file is incomplete.",
        content(
            (String = "text/csv"),
            (String = "application/x-ndjson"),
            (inline(Binary) = "application/vnd.apache.parquet"),
        ),
        headers(("Content-Disposition" = String, description = "The file's name.")),
    )),
    extensions(("x-permission" = json!("calls:read"))),
)]
pub(crate) async fn export(
    caller: Caller,
    State(state): State<ApiState>,
    OriginalUri(uri): OriginalUri,
) -> Result<Response, ApiError> {
    caller.require(Permission::CallsRead)?;
    let query = cdr_query::export(&uri)?;
    caller.narrow(query.filter.organisation_id)?;
    let scope = caller.scope();
    let count = state.cdrs.count(scope, &query.filter, ROWS_MAX.saturating_add(1)).await?;
    if count > u64::from(ROWS_MAX) {
        return Err(ApiError::invalid(vec![FieldProblem {
            field: "query".to_owned(),
            message: "matches more than 1,000,000 records, narrow it with from and to".to_owned(),
        }]));
    }
    let (content_type, disposition) = match query.format {
        Format::Csv => ("text/csv; charset=utf-8", "attachment; filename=\"cdrs.csv\""),
        Format::Ndjson => ("application/x-ndjson", "attachment; filename=\"cdrs.ndjson\""),
        #[cfg(feature = "parquet")]
        Format::Parquet => ("application/vnd.apache.parquet", "attachment; filename=\"cdrs.parquet\""),
    };
    let headers = [
        (CONTENT_TYPE, HeaderValue::from_static(content_type)),
        (CONTENT_DISPOSITION, HeaderValue::from_static(disposition)),
    ];
    let export = Export::new(Arc::clone(&state.cdrs), scope, caller.may(Permission::MarginRead), query)?;
    Ok((headers, Body::from_stream(stream::try_unfold(export, Export::next))).into_response())
}

/// An export in progress.
struct Export {
    log: Arc<dyn CdrLog>,
    scope: Scope,
    query: ExportQuery,
    file: File,
    after: Option<CdrPlace>,
    /// The rows left to read; 0 at the end.
    left: u32,
}

impl Export {
    fn new(log: Arc<dyn CdrLog>, scope: Scope, margin: bool, query: ExportQuery) -> Result<Self, Problem> {
        let file = File::new(query.format, margin)?;
        Ok(Self { log, scope, query, file, after: None, left: ROWS_MAX })
    }

    /// Returns the next piece. A failure here ends the connection: the status is already sent, and the
    /// missing end of the chunked body shows the caller that the file is incomplete.
    async fn next(mut self) -> Result<Option<(Vec<u8>, Self)>, Problem> {
        match self.piece().await {
            Ok(piece) if piece.is_empty() => Ok(None),
            Ok(piece) => Ok(Some((piece, self))),
            Err(problem) => {
                tracing::error!(error = %problem, "an export was broken off");
                Err(problem)
            }
        }
    }

    async fn piece(&mut self) -> Result<Vec<u8>, Problem> {
        if self.left > 0 {
            let limit = self.left.min(self.file.chunk_len());
            let ExportQuery { filter, order, .. } = &self.query;
            let cdrs = self.log.chunk(self.scope, filter, *order, self.after, limit).await?;
            let read = u32::try_from(cdrs.len()).unwrap_or(u32::MAX);
            self.left = if read < limit { 0 } else { self.left.saturating_sub(read) };
            self.after = cdrs.last().map(CdrPlace::from);
            self.file.write(&cdrs)?;
            if self.left == 0 {
                self.file.finish()?;
            }
        }
        self.file.take()
    }
}

/// The part of the file that was written but not sent yet.
enum File {
    Csv {
        text: String,
        columns: Vec<&'static str>,
        margin: bool,
    },
    Ndjson {
        text: String,
        margin: bool,
    },
    #[cfg(feature = "parquet")]
    Parquet(Box<CdrParquet>),
}

impl File {
    fn new(format: Format, margin: bool) -> Result<Self, Problem> {
        let columns =
            || COLUMNS.into_iter().filter(|column| margin || !MARGIN_COLUMNS.contains(column)).collect();
        Ok(match format {
            Format::Csv => {
                let (mut text, columns): (_, Vec<_>) = (String::new(), columns());
                csv::write_header(&mut text, &columns);
                Self::Csv { text, columns, margin }
            }
            Format::Ndjson => Self::Ndjson { text: String::new(), margin },
            #[cfg(feature = "parquet")]
            Format::Parquet => {
                let columns: Vec<_> = columns();
                Self::Parquet(Box::new(CdrParquet::new(&columns, margin)?))
            }
        })
    }

    /// The number of records that are read and written together.
    fn chunk_len(&self) -> u32 {
        match self {
            Self::Csv { .. } | Self::Ndjson { .. } => CHUNK_LEN,
            #[cfg(feature = "parquet")]
            Self::Parquet(_) => ROW_GROUP_LEN,
        }
    }

    fn write(&mut self, cdrs: &[Cdr]) -> Result<(), Problem> {
        let failed = |error: serde_json::Error| Problem::Internal(error.to_string());
        match self {
            Self::Csv { text, columns, margin } => {
                for cdr in cdrs {
                    let mut object = serde_json::to_value(cdr.view(*margin)).map_err(failed)?;
                    flatten_callee(&mut object);
                    csv::write_object(text, columns, &object);
                }
            }
            Self::Ndjson { text, margin } => {
                for cdr in cdrs {
                    text.push_str(&serde_json::to_string(&cdr.view(*margin)).map_err(failed)?);
                    text.push('\n');
                }
            }
            #[cfg(feature = "parquet")]
            Self::Parquet(file) => file.write(cdrs)?,
        }
        Ok(())
    }

    /// Ends the file, if its format has an end marker.
    fn finish(&mut self) -> Result<(), Problem> {
        match self {
            Self::Csv { .. } | Self::Ndjson { .. } => Ok(()),
            #[cfg(feature = "parquet")]
            Self::Parquet(file) => file.finish(),
        }
    }

    fn take(&mut self) -> Result<Vec<u8>, Problem> {
        match self {
            Self::Csv { text, .. } | Self::Ndjson { text, .. } => Ok(std::mem::take(text).into_bytes()),
            #[cfg(feature = "parquet")]
            Self::Parquet(file) => file.take(),
        }
    }
}

/// Gives each figure of the called party a separate column: `media_b.loss_pct` becomes `loss_pct_b`.
fn flatten_callee(record: &mut Value) {
    let Some(fields) = record.as_object_mut() else { return };
    if let Some(Value::Object(figures)) = fields.remove("media_b") {
        fields.extend(figures.into_iter().map(|(name, value)| (format!("{name}_b"), value)));
    }
}

/// The fields of a record in the order of the API documentation; those of the called party last.
const COLUMNS: [&str; 56] = [
    "call_uuid",
    "direction",
    "transport",
    "started_at",
    "answered_at",
    "ended_at",
    "billsec",
    "billing_mode",
    "transcoded",
    "codec_a",
    "codec_b",
    "caller_number",
    "destination_number",
    "dialled_number",
    "agent_id",
    "team_id",
    "campaign_id",
    "contact_id",
    "fs_node_id",
    "hangup_cause",
    "bridge_cause",
    "sip_status",
    "ended_by",
    "transferred_from",
    "transferred_to",
    "reference",
    "forwarded_by",
    "forward_reason",
    "forwarded_to",
    "fax",
    "sell_amount",
    "cost_amount",
    "margin",
    "currency",
    "cost_currency",
    "cost_amount_original",
    "fx_rate",
    "cost_unconverted",
    "ai_tokens",
    "jitter_ms",
    "loss_pct",
    "mean_interval_ms",
    "quality_pct",
    "mos",
    "media_verdict",
    "jitter_ms_b",
    "loss_pct_b",
    "mean_interval_ms_b",
    "quality_pct_b",
    "mos_b",
    "media_verdict_b",
    "media_verdict_worse",
    "user_agent_a",
    "network_a",
    "user_agent_b",
    "network_b",
];
/// Columns that need `margin:read`.
const MARGIN_COLUMNS: [&str; 6] =
    ["cost_amount", "margin", "cost_currency", "cost_amount_original", "fx_rate", "cost_unconverted"];
/// Records in a piece: about 500 KiB of text, and below 1 MiB if every record has every field.
const CHUNK_LEN: u32 = 700;
/// Records in a row group: a few MiB while it is written, and 200 groups in the footer of the largest file.
#[cfg(feature = "parquet")]
const ROW_GROUP_LEN: u32 = 5000;
/// The most records of one export.
const ROWS_MAX: u32 = 1_000_000;
