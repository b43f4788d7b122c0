//! The query of the lists of notes.

use std::borrow::Cow;

use axum::http::Uri;
use serde::Serialize;
use sidetone_model::cursor::Cursor;
use sidetone_model::note::{NoteLevel, NoteQuery, NoteSource, NoteStatus};
use sidetone_model::page::Window;
use sidetone_model::time::Timestamp;
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{ObjectBuilder, Schema, Type};
use utoipa::{PartialSchema, ToSchema};

use crate::auth::Caller;
use crate::error::ApiError;
use crate::page::{self, Wrong};
use crate::params::{self, query};
use crate::routes::cdr_params::Bound;

/// Reads the query of `uri`.
///
/// # Errors
/// `invalid_request` with every wrong parameter.
pub(crate) fn list(uri: &Uri, caller: &Caller) -> Result<NoteQuery, ApiError> {
    let given: NoteParams = params::read(uri)?;
    let window = params::window(uri, caller, (given.limit, given.offset, given.cursor.clone()))?;
    Ok(filter(given, window))
}

fn filter(given: NoteParams, window: Window) -> NoteQuery {
    let NoteParams { status, level, source, acked, since, .. } = given;
    NoteQuery { status, level, source, acked, since, window }
}

query! {
    /// The parameters.
    pub(crate) struct NoteParams {
        /// Notes with this status.
        #[param(inline)]
        status: NoteStatus = status,
        /// Notes of this level; `warn` is `warning`, `critical` and `error` are `alert`.
        #[param(value_type = Option<LevelName>, inline)]
        level: NoteLevel = level,
        /// The origin of the note: a request, the call-info URL, or a conference room.
        #[param(inline)]
        source: NoteSource = source,
        /// `true`: acknowledged notes only; `false`: the others.
        acked: bool = page::boolean,
        /// Sent at this instant or later: an RFC 3339 timestamp, or `YYYY-MM-DD` for its midnight in UTC.
        #[param(value_type = Option<Bound>, inline, example = "2026-01-31")]
        since: Timestamp = page::bound,
        /// Notes on a page.
        #[param(value_type = Option<i32>, minimum = 1, maximum = 500, default = 50)]
        limit: u32 = page::limit,
        /// Notes to skip.
        #[param(value_type = Option<i64>, minimum = 0, default = 0)]
        offset: u64 = page::count,
        /// Pages by cursor in place of offsets: empty for the first page, then the `next_cursor` of the page before, with the
        /// same other parameters.
        #[param(value_type = Option<String>, max_length = 4096)]
        cursor: Cursor = page::cursor,
    }
}

fn status(value: &str) -> Result<NoteStatus, Wrong> {
    NoteStatus::from_name(value).ok_or_else(|| "must be one of pending, sent, acked, failed".to_owned())
}

fn level(value: &str) -> Result<NoteLevel, Wrong> {
    NoteLevel::from_alias(value)
        .ok_or_else(|| "must be one of info, warning, alert, warn, critical, error".to_owned())
}

fn source(value: &str) -> Result<NoteSource, Wrong> {
    NoteSource::from_name(value).ok_or_else(|| "must be one of api, url, conference".to_owned())
}

/// The names of levels, with the aliases.
#[derive(Debug, Serialize)]
pub(crate) struct LevelName;

impl PartialSchema for LevelName {
    fn schema() -> RefOr<Schema> {
        let names = NoteLevel::NAMES.map(|(name, _)| name);
        let text = ObjectBuilder::new().schema_type(Type::String).enum_values(Some(names));
        // With the title, generators do not name it `NoteLevel`, which has fewer names.
        let text = text.title(Some("NoteLevelName")).description(Some("The names of levels."));
        RefOr::T(Schema::Object(text.build()))
    }
}

impl ToSchema for LevelName {
    fn name() -> Cow<'static, str> {
        Cow::Borrowed("NoteLevelName")
    }
}

#[cfg(test)]
mod tests {
    use axum::response::IntoResponse;

    use super::*;

    #[test]
    fn every_filter_is_read() {
        let read = |query: &str| {
            let given: NoteParams = params::read(&format!("/infos?{query}").parse().unwrap())?;
            let window = Window::at(given.offset.unwrap_or(0), given.limit.unwrap_or(Window::LIMIT_DEFAULT));
            Ok::<_, ApiError>(filter(given, window))
        };
        let query =
            read("status=acked&level=critical&source=url&acked=false&since=1970-01-01&limit=7&offset=9");
        let expected = NoteQuery {
            status: Some(NoteStatus::Acked),
            level: Some(NoteLevel::Alert),
            source: Some(NoteSource::Url),
            acked: Some(false),
            since: Some(Timestamp::from_micros(0)),
            window: Window::at(9, 7),
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
