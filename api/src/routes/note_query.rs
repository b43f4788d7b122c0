//! The query of the lists of notes.

use axum::http::Uri;
use serde::Serialize;
use sidetone_model::note::{NoteLevel, NoteQuery, NoteSource, NoteStatus};
use utoipa::{IntoParams, ToSchema};

use crate::error::ApiError;
use crate::page;
use crate::routes::cdr_params::Bound;
use crate::routes::cdr_query::{boolean, bound};

/// Reads the query of `uri`.
///
/// # Errors
/// `invalid_request` with every wrong parameter.
pub(crate) fn list(uri: &Uri) -> Result<NoteQuery, ApiError> {
    let mut query = NoteQuery::default();
    page::read(uri, |name, value| {
        match name {
            "acked" => query.acked = Some(boolean(value)?),
            "level" => {
                let level = NoteLevel::from_alias(value);
                query.level =
                    Some(level.ok_or("must be one of info, warning, alert, warn, critical, error")?);
            }
            "limit" => query.window.limit = page::limit(value)?,
            "offset" => query.window.offset = page::count(value)?,
            "since" => query.since = Some(bound(value)?),
            "source" => {
                let source = NoteSource::from_name(value);
                query.source = Some(source.ok_or("must be one of api, url, conference")?);
            }
            "status" => {
                let status = NoteStatus::from_name(value);
                query.status = Some(status.ok_or("must be one of pending, sent, acked, failed")?);
            }
            _ => page::unknown()?,
        }
        Ok(())
    })?;
    Ok(query)
}

/// The parameters, for the document.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(dead_code, reason = "described, never made: `list` names every wrong parameter")]
pub(crate) struct NoteParams {
    /// Notes that are this far.
    #[param(inline)]
    status: Option<NoteStatus>,
    /// Notes of this level; `warn` is `warning`, `critical` and `error` are `alert`.
    #[param(inline)]
    level: Option<LevelKey>,
    /// Where they came from: a request, the call-info URL, or a conference room.
    #[param(inline)]
    source: Option<NoteSource>,
    /// `true`: those that somebody acknowledged; `false`: the others.
    acked: Option<bool>,
    /// Sent at this instant or later: an RFC 3339 timestamp, or `YYYY-MM-DD` for its midnight in UTC.
    #[param(inline, example = "2026-01-31")]
    since: Option<Bound>,
    /// How many notes at most.
    #[param(minimum = 1, maximum = 500, default = 50)]
    limit: Option<i32>,
    /// How many notes to skip.
    #[param(minimum = 0, default = 0)]
    offset: Option<i64>,
}

/// The names of levels.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = NoteLevelName)]
#[expect(dead_code, reason = "described, never made: `Note::parse` reads it")]
pub(crate) enum LevelKey {
    Alert,
    Critical,
    Error,
    Info,
    Warn,
    Warning,
}

#[cfg(test)]
mod tests {
    use axum::response::IntoResponse;
    use sidetone_model::page::Window;

    use super::*;

    #[test]
    fn every_filter_is_read() {
        let read = |query: &str| list(&format!("/infos?{query}").parse().unwrap());
        let query =
            read("status=acked&level=critical&source=url&acked=false&since=1970-01-01&limit=7&offset=9");
        let expected = NoteQuery {
            status: Some(NoteStatus::Acked),
            level: Some(NoteLevel::Alert),
            source: Some(NoteSource::Url),
            acked: Some(false),
            since: Some(sidetone_model::time::Timestamp::from_micros(0)),
            window: Window { limit: 7, offset: 9 },
        };
        assert_eq!(query.unwrap(), expected);
        assert_eq!(read("").unwrap(), NoteQuery::default());
        for wrong in [
            "status=lost",
            "level=Info",
            "source=room",
            "acked=1",
            "since=now",
            "limit=0",
            "sort=title",
            "acked=true&acked=true",
        ] {
            assert_eq!(read(wrong).unwrap_err().into_response().status(), 400, "{wrong}");
        }
    }
}
